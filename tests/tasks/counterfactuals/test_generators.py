"""One method, three ways to say who a complainant would have been: CST with every generator that it accepts."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import spec_of
from test_generate import Tables, run

from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from tasks.plan import plan

FINANCIAL = {"columns__income__role": "financial", "columns__amount__role": "financial"}
MEDIATORS = {"columns__income__role": "mediator", "columns__amount__role": "mediator"}


def nearest(place: Path, **overrides: str) -> AuditSpec:
    return spec_of(place, methods__cst__generator="nearest", **FINANCIAL, **overrides)


def variants(tallies) -> set[str]:
    said = tallies.query("measure == 'share_significant' and parameters != '{}'")["parameters"].map(json.loads)
    return {each["variant"] for each in said}


def unfair(found: Tables, maker: str, group: str) -> float:
    """The share of a group that is refused, and as its counterfactual is not (CF)."""
    told = found["tallies"].query("decision_maker == @maker and measure == 'share_detected' and group == @group")
    told = told[told["parameters"].map(lambda p: json.loads(p) == {"variant": "cf"})].dropna(subset="value")
    assert len(told)
    return float((told["value"] * told["count"]).sum() / told["count"].sum())


def test_a_match_is_a_real_applicant_of_the_reference_group_with_the_same_outcome(place: Path) -> None:
    found = run(nearest(place))
    made, members = found["counterfactuals"], found["memberships"].set_index("row_id")["group"]
    assert set(made["generator"]) == {"nearest"}
    assert len(made) == (members != "white").sum()
    matched = made[made["refusal"].isna()]
    assert (members.loc[matched["other_row_id"]] == "white").all()
    outcome = found["decisions"].query("decision_maker == 'lender'").set_index("row_id")["outcome"]
    np.testing.assert_array_equal(outcome.loc[matched["row_id"]], outcome.loc[matched["other_row_id"]])
    there = found["applicants"].set_index("row_id").loc[matched["other_row_id"]]
    for name in ("income", "amount", "purpose", "history"):
        np.testing.assert_array_equal(matched[name].to_numpy(), there[name].to_numpy())
    fold = found["decisions"].query("decision_maker == 'model'").set_index("row_id")["fold"]
    assert (fold.loc[matched["row_id"]].to_numpy() != fold.loc[matched["other_row_id"]].to_numpy()).all(), "learnt from"


def test_no_one_of_the_reference_group_whom_the_model_learnt_from_is_nearer(place: Path) -> None:
    """The clear loop: standardised on the rows learnt from, of the same outcome."""
    found = run(nearest(place, methods__cst__matching="{winsorise: null}"), "generate")
    model = found["decisions"].query("decision_maker == 'model'").set_index("row_id")
    money = found["applicants"].set_index("row_id")[["income", "amount"]]
    white = set(found["memberships"].query("group == 'white'")["row_id"])
    for _, made in found["counterfactuals"].head(25).iterrows():
        pool = model.index[(model["fold"] != model["fold"][made["row_id"]])]
        at = (money - money.loc[pool].mean()) / money.loc[pool].std(ddof=0)
        like = [i for i in pool if i in white and model["outcome"][i] == model["outcome"][made["row_id"]]]
        distances = np.sqrt(((at.loc[like] - at.loc[made["row_id"]]) ** 2).sum(axis=1))
        assert made["distance"] == pytest.approx(distances.min())
        assert distances[made["other_row_id"]] == pytest.approx(distances.min())


def test_without_a_causal_graph_the_nearest_still_makes_a_counterfactual_situation_test(place: Path) -> None:
    found = run(nearest(place, causal_graph="{}"))
    assert {"st", "cst"} <= variants(found["tallies"])
    assert len(found["causal_checks"]) == 0, "no cause is assumed, and so none can be contradicted"
    assert set(found["draws"]["reference"]) == {"null"}


def test_the_lenders_decision_on_a_match_is_known_and_the_same_where_it_is_the_outcome(place: Path) -> None:
    found = run(nearest(place))
    assert unfair(found, "lender", "Black") == 0
    assert unfair(found, "model", "Black") > 0


def test_who_is_too_far_has_no_counterfactual(place: Path) -> None:
    found = run(nearest(place, methods__cst__matching="{maximum_distance: 0.05}"))
    refused = found["counterfactuals"].query("refusal == 'too_far'")
    assert 0 < len(refused) < len(found["counterfactuals"])
    told = found["findings"][found["findings"]["row_id"].isin(refused["row_id"])]
    assert set(told["refusal"]) == {"no_counterfactual"}


def test_financial_columns_are_needed(place: Path) -> None:
    with pytest.raises(SpecError, match="role: financial"):
        run(spec_of(place, methods__cst__generator="nearest"))


def test_mediators_of_gcfn_are_counterfactuals_of_situation_testing(place: Path) -> None:
    spec = spec_of(
        place, methods__cst__generator="quantile", methods__gcfn="{generator: quantile}", causal_graph="{}", **MEDIATORS
    )
    assert [step.name for step in plan(spec).steps].count("generate") == 0
    found = run(spec)
    assert {"st", "cst", "cst_with_centres"} <= variants(found["tallies"])
    cf = unfair(found, "model", "Black")
    flips = found["mediated_decisions"].query("to_group == 'white'").set_index("row_id")["flips"].map(lambda f: f[0])
    model = found["decisions"].query("decision_maker == 'model'").set_index("row_id")["favourable"]
    black = [i for i in found["memberships"].query("group == 'Black'")["row_id"] if i in flips.index]
    assert cf == pytest.approx(np.mean([flips[i] == 1 and not model[i] for i in black]))


def test_a_generator_that_nobody_trains_is_a_named_error(place: Path) -> None:
    with pytest.raises(SpecError, match=r"methods.cst.generator: gan takes .*add `gcfn: \{generator: gan\}`"):
        spec_of(place, methods__cst__generator="gan", causal_graph="{}", **MEDIATORS)


def test_what_another_generator_needs_does_not_touch_the_key(place: Path) -> None:
    """Settings of matching decide nothing where the causal model imagines, nor the graph where matches are sought."""
    scm = [s.settings for s in plan(spec_of(place, methods__cst__matching="{maximum_distance: 1}")).steps]
    assert next(s for s in scm if hasattr(s, "generator")).matching.maximum_distance is None
    steps = plan(nearest(place)).steps
    assert not next(s.settings for s in steps if s.name == "generate").causal_graph.edges
