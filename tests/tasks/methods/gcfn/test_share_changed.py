"""Net share of changed decisions and relative change: by hand, refits of an audit, where there is no error."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import spec_of
from test_gcfn import detect, drawn_problem, mediated, problem

from schemas.errors import SpecError
from tasks.counterfactuals.gan import cases
from tasks.in_memory import call_plainly
from tasks.methods.gcfn.algorithm import detection
from tasks.methods.gcfn.algorithm.detection import RELATIVE, Mediated
from tasks.methods.gcfn.refit_generators.refits import resampled
from tasks.methods.gcfn.settings import GcfnSettings
from tasks.numerics.statistics.sampling import Asked
from tasks.plan import plan
from tasks.preprocessing.columns import columns_of

GCFN = {"networks": 2, "epochs": 2, "hidden": 4, "batch": 16, "device": "cpu"}
ROLES = {"columns__income__role": "mediator", "columns__history__role": "[financial, mediator]"}
OTHERS = {"methods__adjusted": "null", "methods__fgce": "null", "methods__cst": "null", "causal_graph": "{}"}


def four(refits=(), spread=0.0, denial=(0.5, 0.8, 0.4, 0.1, 0.5, 0.5), flips=None):
    """Rows 0 and 1 are of the reference group; of 2 to 5 two are denied."""
    flips = [[0, 0, 1, 1, 0, 1], [0, 0, 1, 1, 0, 1]] if flips is None else flips
    found = mediated(range(6), flips, [[0, 0, 0.2, 0.1, -0.1, 0.0]] * 2, [spread] * 6)
    own = Mediated(
        **vars(found) | {"denial": np.array(denial), "refits": {"b": np.array(refits)} if len(refits) else {}}
    )
    return problem([0, 0, 1, 1, 1, 1], [True, True, False, False, True, True], own)


def told(of, measure="share_changed", **options):
    return [a for a in detect(of, **options).aggregates if a.measure == measure]


def test_by_hand():
    (one,) = told(four())  # of the group: two turn favourable, one unfavourable
    assert (one.group, one.value, one.n, dict(one.parameters), one.compared) == (1, 0.25, 4, {}, False)
    assert (one.interval, one.reason) == (None, "")
    assert np.isnan(one.inference.se)


def test_it_is_the_share_denied_now_less_the_share_denied_then():
    for seed in range(5):
        of = drawn_problem(seed)
        for one in told(of):
            data = of.method_data
            rows = [m for m, row in enumerate(data.row) if of.group[row] == one.group and not data.refusal[m]]
            now = ~of.applicants.favourable[of.method_data.row[rows]]
            then = now ^ of.method_data.flips[:, rows]
            assert one.value == pytest.approx(now.mean() - then.mean())


def test_a_sample_of_the_group_adds_its_variance_and_everybody_adds_none():
    drawn = np.array([0.2, 0.3, 0.1, 0.25, 0.3])
    of = four(drawn)
    hashed = np.arange(6, dtype=np.uint64)
    (whole,) = told(replace(of, sample=Asked.of(hashed, of.group, np.array([2, 4]))))
    assert whole.inference.se == drawn.std(ddof=1)
    (some,) = told(replace(of, sample=Asked.of(hashed, of.group, np.array([2, 3]))))
    net = np.array([1.0, 1.0, 0.0])  # rows 2 to 4; row 5 is not asked
    assert (some.value, some.n) == (pytest.approx(2 / 3), 3)
    assert some.inference.se**2 == pytest.approx(drawn.var(ddof=1) + net.var(ddof=1) / 3 * (1 - 3 / 4))
    findings = detect(replace(of, sample=Asked.of(hashed, of.group, np.array([2, 3])))).findings
    assert findings.row.tolist() == [2, 3, 4]


def test_refits_give_a_standard_error_and_no_interval():
    drawn = np.array([0.2, 0.3, 0.1, 0.25, 0.3])
    (one,) = told(four(drawn))
    assert (one.inference.se, one.inference.df, one.interval) == (drawn.std(ddof=1), 4, None)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"spread": 0.3}, detection.NOT_IDENTIFIED),
        ({"flips": [[0, 0, 1, 1, 0, 1], [0, 0, 0, 0, 1, 1]]}, detection.NOT_IDENTIFIED),
        ({"refits": [0.1, np.nan, 0.2]}, detection.NOT_REFITTED),
        ({"refits": [0.1, 0.1, 0.1]}, detection.NOT_REFITTED),
        ({"refits": [0.1, np.nan]}, detection.NOT_REFITTED),
    ],
)
def test_without_an_honest_error_there_is_none_and_a_reason(options, reason):
    (one,) = told(four(**{"refits": [0.2, 0.3, 0.1], **options}))
    assert (one.reason, one.interval) == (reason, None)
    assert np.isfinite(one.value)
    assert np.isnan(one.inference.se)


def test_relative_change_by_hand():
    (one,) = told(four(), "relative_change")
    assert one.value == pytest.approx((0.2 + 0.1 - 0.1 + 0.0) / (0.4 + 0.1 + 0.5 + 0.5))
    assert (one.n, len(one.replicates)) == (4, 20)
    evidence = detect(four(denial=(0.5, 0.8, 0.4, 0.0, 0.5, 0.5))).evidence
    assert set(evidence.role.tolist()) == {RELATIVE}
    assert dict(zip(evidence.row.tolist(), evidence.value.tolist(), strict=True)) == pytest.approx(
        {2: 0.5, 4: -0.2, 5: 0.0}
    )
    assert (evidence.other == evidence.row).all()


def test_a_model_without_probabilities_has_no_relative_change():
    assert told(four(denial=()), "relative_change") == []
    assert len(detect(four(denial=())).evidence.row) == 0
    assert told(four(denial=(0.0,) * 6), "relative_change") == []


def audit(place: Path, **gcfn):
    return plan(spec_of(place, methods__gcfn=json.dumps(GCFN | gcfn), **ROLES, **OTHERS)).steps


def test_the_stage_runs_only_where_it_is_asked_for(place: Path):
    assert "refit_generators" not in [step.name for step in audit(place)]
    plain, more = ({step.name: step.settings for step in audit(place, **own)} for own in ({}, {"refits": 3}))
    assert plain["mediate"] == more["mediate"]
    with pytest.raises(SpecError, match="refits tell only of a group most of which is identified"):
        audit(place, refits=3, networks=1)
    with pytest.raises(ValueError, match="one refit has no spread"):
        GcfnSettings(refits=1)


@pytest.mark.slow
def test_refits_of_an_audit(place: Path):
    steps = [step for step in audit(place, refits=3) if step.name not in ("measure", "publish", "report")]
    tables = call_plainly(steps)
    refits = tables["generator_refits"][0].to_pandas()
    assert len(refits) == 3 * refits.groupby(["protected_attribute", "group"]).ngroups > 0
    assert refits["share_changed"].between(-1, 1).all()
    rows = tables["aggregates"][-1].to_pandas().query("measure == 'share_changed'")
    assert set(rows["group"]) == set(refits["group"])
    for _, row in rows.iterrows():
        own = refits[(refits["group"] == row["group"]) & (refits["protected_attribute"] == row["protected_attribute"])]
        expected = own["share_changed"].std()
        assert row["reason"] is not None or (row["se"], row["df"]) == (pytest.approx(expected), 2)
    again = call_plainly(steps)["generator_refits"][0]
    assert again.equals(tables["generator_refits"][0])


def test_every_category_keeps_its_size_and_rows_not_learnt_from_stay_apart(place: Path):
    steps = audit(place, refits=3, rows=200)
    refit = next(step for step in steps if step.name == "refit_generators")
    tables = {name: parts[0] for name, parts in call_plainly(steps[: steps.index(refit)]).items()}
    columns = columns_of(tables["applicants"], tables["encodings"])
    for case in cases(columns, tables["memberships"], tables["applicants"]["row_id"].to_numpy(), refit.settings):
        learnt, drawn = resampled(case, np.random.default_rng(0))
        of = case.rows.category
        assert np.bincount(of[drawn]).tolist() == np.bincount(of).tolist()
        assert np.bincount(of[learnt]).tolist() == np.bincount(of[case.trained]).tolist()
        assert set(learnt) <= set(case.trained)
        assert len(set(learnt)) < len(case.trained) < len(case.rows)
