"""Generate and detect CST: from the causal graph of the spec to counterfactuals, their decisions and findings."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import loans, spec_of

from schemas.audit.partition import Sampling
from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from schemas.terms import Refusal
from tasks.counterfactuals.algorithm.causal_model import Unimaginable
from tasks.counterfactuals.rows import NOISE
from tasks.in_memory import call_plainly
from tasks.plan import plan

Tables = dict[str, pd.DataFrame]


OTHERS = ("connect", "ablate", "detect fgce", "abandoned", "adjust", "detect adjusted")
"""Steps of other methods."""


def write(place: Path, frame: pd.DataFrame) -> None:
    frame.to_csv(place / "loans.csv", index=False)


def run(spec: AuditSpec, until: str = "detect cst") -> Tables:
    steps = [step for step in plan(spec).steps if step.name not in OTHERS]
    last = next(i for i, step in enumerate(steps) if step.name == until)
    return {name: pa.concat_tables(parts).to_pandas() for name, parts in call_plainly(steps[: last + 1]).items()}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    place = tmp_path_factory.mktemp("loans")
    write(place, loans())
    return run(spec_of(place))


def test_everyone_outside_the_reference_group_is_imagined_once(found: Tables) -> None:
    outside = found["memberships"].query("group != 'white'")["row_id"]
    made = found["counterfactuals"]
    assert sorted(made["row_id"]) == sorted(outside)
    assert made["refusal"].isna().all()
    assert set(made["group"]) == {"Black", "(missing)"}


def test_of_a_large_file_those_who_are_asked_are_imagined(found: Tables, place: Path) -> None:
    sampling = Sampling.model_construct(queries=60, pool_rows=None)
    sampled = run(spec_of(place).model_copy(update={"sampling": sampling}))
    made, before = (tables["counterfactuals"].set_index("row_id").sort_index() for tables in (sampled, found))
    assert sorted(made.index) == sorted(sampled["findings"].query("method == 'cst'")["row_id"].unique())
    assert len(made) < len(before)
    assert (made["income"] == before.loc[made.index, "income"]).all(), "the causal model is that of all rows"
    everybody = run(spec_of(place, methods__cst__scaling="z_scores").model_copy(update={"sampling": sampling}))
    assert len(everybody["counterfactuals"]) == len(before), "distances are scaled to all of them"


def test_noise_and_effect_make_the_imagined_value(found: Tables) -> None:
    """Linear with additive noise: the imagined value differs from the real one by the effect of the group alone."""
    both = found["counterfactuals"].merge(found["applicants"], on="row_id", suffixes=("_there", "_here"))
    moved = (both["income_there"] - both["income_here"]).groupby(both["group"])
    assert (moved.std() < 1e-9).all()
    real = found["applicants"].merge(found["memberships"], on="row_id").groupby("group")["income"].mean()
    assert moved.mean()["Black"] == pytest.approx(real["white"] - real["Black"])
    assert np.stack(both[f"{NOISE}income"]).shape == (len(both), 1)
    assert (both["purpose_there"] == both["purpose_here"]).all(), "no edge leads to it"


def test_imagined_applicants_are_decided_on_by_the_model_that_decided_on_the_real_ones(place: Path) -> None:
    """Where the graph moves nothing that the model looks at, the decision is the factual one to the last digit."""
    spec = spec_of(place, causal_graph__edges="[[race, purpose]]", columns__purpose__type="nominal")
    found = run(spec, "generate")
    there, here = found["counterfactuals"], found["applicants"]
    same = there.merge(here, on=["row_id", "purpose"], suffixes=("", "_here"))["row_id"]
    assert len(same) > 20
    decided = found["counterfactual_decisions"].merge(
        found["decisions"].query("decision_maker == 'model'"), on="row_id", suffixes=("_there", "_here")
    )
    kept = decided[decided["row_id"].isin(same)]
    assert kept["score_there"].to_numpy() == pytest.approx(kept["score_here"].to_numpy(), abs=1e-12)
    assert (kept["favourable_there"] == kept["favourable_here"]).all()


def test_findings_of_both_decision_makers_with_evidence(found: Tables) -> None:
    findings = found["findings"]
    complainants = len(found["counterfactuals"])
    assert findings.groupby("decision_maker").size().to_dict() == {"lender": complainants, "model": complainants}
    tested = findings[findings["refusal"].isna()]
    assert tested["statistic"].to_numpy() == pytest.approx((tested["control"] - tested["test"]).to_numpy())
    near = found["evidence"].groupby(["row_id", "decision_maker", "role"]).size()
    assert set(near) == {5}
    variants = found["tallies"].query("measure == 'share_detected'")
    of = variants.groupby("decision_maker")["parameters"].agg(lambda p: {x.split('"variant": "')[-1][:-2] for x in p})
    assert {"cf", "cst_with_centres", "cst", "st"} <= of["model"]
    assert of["lender"] & {"cf", "cst_with_centres"} == set(), "the lender cannot be asked"
    assert set(found["draws"].query("method == 'cst'")["reference"]) == {"null"}


def test_small_groups_and_unimaginable_rows_are_refused_with_a_reason(place: Path) -> None:
    frame = loans()
    frame.loc[frame.index[:4], "race"] = "x"
    write(place, frame)
    overrides = {"protected__0__groups": "{white: [w], Black: [b], few: [x]}"}
    found = run(spec_of(place, **overrides))
    few = found["findings"].query("group == 'few'")
    assert len(few) == 2 * 4
    assert set(few["refusal"]) == {Refusal.TOO_FEW_NEIGHBOURS}
    assert set(few["verdict"]) == {"not_tested"}


def test_a_count_that_is_none_is_refused_and_the_rows_balance(place: Path) -> None:
    overrides = {"causal_graph__mechanisms": "{amount: {kind: count}}"}
    frame = loans()
    black = np.flatnonzero(frame["race"] == "b")[:3]
    frame.loc[frame.index[black], "amount"] += 0.5
    write(place, frame)
    found = run(spec_of(place, **overrides))
    refused = found["counterfactuals"].query("refusal.notna()")
    assert set(refused["refusal"]) == {Refusal.NOT_A_COUNT}
    assert len(refused) == 3
    told = found["findings"][found["findings"]["row_id"].isin(refused["row_id"])]
    assert set(told["refusal"]) == {Refusal.NO_COUNTERFACTUAL}


def test_every_reason_not_to_imagine_a_row_is_a_refusal() -> None:
    assert {str(reason) for reason in Unimaginable} <= {str(reason) for reason in Refusal}


def test_without_a_causal_graph_there_is_situation_testing_only(place: Path) -> None:
    spec = spec_of(place, causal_graph="{}")
    assert "generate" not in [step.name for step in plan(spec).steps]
    found = run(spec)
    variants = found["tallies"].query("measure == 'share_detected' and parameters != '{}'")["parameters"]
    assert all('"variant": "st"' in said for said in variants)


def test_a_graph_that_leads_nowhere_from_the_attribute_is_a_named_error(place: Path) -> None:
    with pytest.raises(SpecError, match="no edge leads out of a protected attribute; add one from race"):
        plan(spec_of(place, causal_graph__edges="[[income, amount]]"))
    with pytest.raises(SpecError, match="'race' is a protected attribute, and 'income' cannot be its cause"):
        spec_of(place, causal_graph__edges="[[income, race]]")
    with pytest.raises(SpecError, match=r"unknown node 'incom'.*income"):
        spec_of(place, causal_graph__edges="[[race, incom]]")


def crossed(place: Path) -> AuditSpec:
    frame = loans(900)
    frame["sex"] = np.where(np.arange(len(frame)) % 3 == 0, "f", "m")
    write(place, frame)
    protected = """
      - {name: race, columns: [race], groups: {white: [w], Black: [b]}, reference: white, missing: Black}
      - {name: sex, columns: [sex], reference: m}
      - {name: both, columns: [race, sex], reference: white and m}
    """
    edges = "[[race, income], [race, history], [sex, income], [income, amount]]"
    return spec_of(place, protected=protected, causal_graph__edges=edges)


@pytest.mark.slow
def test_crossed_attributes_set_both_and_know_the_single_ones(place: Path) -> None:
    found = run(crossed(place))
    made = found["counterfactuals"].set_index(["protected_attribute", "row_id"])["income"]
    here = found["applicants"].set_index("row_id")["income"]
    double = found["memberships"].query("protected_attribute == 'both' and group == 'Black and f'")["row_id"]
    moved = {name: (made[name].loc[double] - here.loc[double]).to_numpy() for name in ("race", "sex", "both")}
    assert moved["both"] == pytest.approx(moved["race"] + moved["sex"])
    of_double = "measure == 'share_multiple' and group == 'Black and f'"
    assert not found["tallies"].query(of_double).empty
    sampling = Sampling.model_construct(queries=60, pool_rows=300)
    sampled = run(crossed(place).model_copy(update={"sampling": sampling}))["tallies"].query(of_double)
    assert 0 < sampled["count"].sum() < found["tallies"].query(of_double)["count"].sum()
    assert sampled["value"].notna().all(), "those asked of the crossed attribute are imagined of the single ones"
