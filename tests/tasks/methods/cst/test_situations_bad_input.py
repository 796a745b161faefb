"""CST on specs and tables that will not do: each a named error, or a refusal with a reason among the findings."""

from pathlib import Path

import pandas as pd
import pytest
from conftest import SPEC, loans, spec_of

from schemas.errors import DataQualityError, SpecError
from schemas.terms import Refusal
from tasks.in_memory import call_plainly
from tasks.plan import plan

EDGES = "[[race, income], [race, history], [income, amount]]"


def findings(place: Path, frame: pd.DataFrame | None = None, text: str = SPEC, **overrides: str) -> pd.DataFrame:
    (loans() if frame is None else frame).to_csv(place / "loans.csv", index=False)
    steps = plan(spec_of(place, text, methods__fgce="null", methods__adjusted="null", **overrides)).steps
    last = next(place for place, step in enumerate(steps) if step.name == "detect cst")
    found = call_plainly(steps[: last + 1])
    return pd.concat([table.to_pandas() for table in found["findings"]])


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        (SPEC, {"methods__cst__k": "0"}, r"methods.cst.k: expected greater than or equal to 1, got 0"),
        (SPEC.replace(EDGES, "[[income, race]]"), {}, "'race' is a protected attribute, and 'income' cannot be its"),
        (SPEC.replace(EDGES, "[[race, income], [income, amount], [amount, income]]"), {}, "cycle: income -> amount"),
        (SPEC.replace(EDGES, "[[race, incom]]"), {}, "unknown node 'incom'; did you mean 'income'"),
        (SPEC.replace("Black: [b]", "Black: [b], Asian: [a]"), {}, "no row belongs to group 'Asian'"),
        (
            SPEC.replace("columns:\n", "  - {name: origin, columns: [race], reference: w}\ncolumns:\n"),
            {"protected__0__name": "descent"},
            "several attributes are made of 'race': descent and origin; name the one that is meant",
        ),
    ],
)
def test_a_spec_that_will_not_do(place: Path, text: str, overrides: dict[str, str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        findings(place, text=text, **overrides)


def test_a_group_of_no_more_than_k_members_is_refused_and_the_others_are_not(place: Path) -> None:
    frame = loans()
    frame.loc[:2, "race"] = "a"
    found = findings(place, frame, SPEC.replace("Black: [b]", "Black: [b], Asian: [a]"))
    refusals = found.groupby("group")["refusal"].agg(lambda each: set(each.dropna()))
    assert refusals.to_dict() == {"Asian": {Refusal.TOO_FEW_NEIGHBOURS}, "Black": set(), "(missing)": set()}


def test_a_column_without_a_value_is_named(place: Path) -> None:
    with pytest.raises(DataQualityError, match="income is missing in all 500"):
        findings(place, loans().assign(income=None))


def test_applications_with_a_third_decision_are_no_complainants(place: Path) -> None:
    frame = loans()
    frame.loc[:30, "approved"] = "maybe"
    assert set(findings(place, frame)["row_id"]).isdisjoint(frame["id"][:31])


def test_a_category_that_only_complainants_have_is_compared_like_any_other(place: Path) -> None:
    frame = loans()
    frame.loc[frame["race"] == "b", "purpose"] = "gift"
    found = findings(place, frame)
    assert set(found.query("group == 'Black'")["verdict"]) == {"detected", "not_detected"}


def test_rows_that_lack_a_value_never_reach_the_distance(place: Path) -> None:
    frame = loans()
    lacking = frame.index % 3 == 0
    frame.loc[lacking, "income"] = None
    found = findings(place, frame)
    assert set(found["row_id"]) <= set(frame.loc[~lacking, "id"])
    assert found["statistic"].notna().all()


def test_nobody_is_compared_with_a_reference_group_of_which_no_complete_row_is_left(place: Path) -> None:
    frame = loans()
    frame.loc[frame["race"] == "w", "income"] = None
    assert findings(place, frame).empty


def test_a_feature_that_bears_a_name_of_our_own_is_refused(place: Path) -> None:
    text = SPEC.replace("  purpose: {", "  group: {")
    with pytest.raises(SpecError, match="'group' is a name of our own; rename the column"):
        findings(place, loans().rename(columns={"purpose": "group"}), text)


def test_a_limit_on_complainants_holds_for_the_groups_that_have_some(place: Path) -> None:
    limits = "[{measure: share_significant, decision_maker: model, maximum: 1.0}]"
    loans().to_csv(place / "loans.csv", index=False)
    steps = plan(spec_of(place, methods__fgce="null", thresholds=limits, disclosure__profile="public")).steps[:-1]
    found = call_plainly(steps)
    checked = found["verdicts"][0].to_pandas().query("theory == 'own_limits' and role != 'theory'")
    assert set(checked["measure"]) == {"share_significant"}
    assert sorted(checked["group"]) == ["Black"], "groups that are no people are not judged"
    assert set(checked["decision_maker"]) == {"model"}
    told = found["measures"][0].to_pandas().query("measure == 'share_significant' and state == 'inconclusive'")
    assert sorted(told["group"]) == ["Black"]
