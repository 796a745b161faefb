"""CST on specs and tables that will not do: each a named error, or a refusal with a reason among the findings."""

from pathlib import Path

import pandas as pd
import pytest
from conftest import SPEC, loans, spec_of

from flows.bench import call_plainly
from flows.plan import plan
from schemas.errors import DataQualityError, SpecError
from schemas.terms import Refusal

EDGES = "[[race, income], [race, history], [income, amount]]"


def findings(place: Path, frame: pd.DataFrame | None = None, text: str = SPEC, **overrides: str) -> pd.DataFrame:
    (loans() if frame is None else frame).to_csv(place / "loans.csv", index=False)
    found = call_plainly(plan(spec_of(place, text, methods__fgce="null", **overrides)).steps[:-2])
    return pd.concat([table.to_pandas() for table in found["findings"]])


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        (SPEC, {"methods__cst__k": "0"}, r"methods.cst.k: Input should be greater than or equal to 1, got 0"),
        (SPEC.replace(EDGES, "[[income, race]]"), {}, "'race' is a protected attribute, and 'income' cannot be its"),
        (SPEC.replace(EDGES, "[[race, income], [income, amount], [amount, income]]"), {}, "cycle: income -> amount"),
        (SPEC.replace(EDGES, "[[race, incom]]"), {}, "unknown node 'incom'; did you mean 'income'"),
        (SPEC.replace("Black: [b]", "Black: [b], Asian: [a]"), {}, "no row belongs to group 'Asian'"),
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
