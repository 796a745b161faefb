"""Why a column is no feature: each reason on a column that has it, and not on one that looks alike."""

from pathlib import Path

import pytest
import unprepared_tables as tables

from flows.cli.draft.columns import AFTER, Sides, complete, drafted_entries, find_year
from flows.cli.draft.table import read_table

SIDES = Sides(("approved",), ("denied",))
N = tables.ROWS


def why(place: Path, **columns: object) -> tuple[bool, str]:
    """Whether the first of these columns is left out, and why."""
    table = read_table(tables.lender(place, **columns))
    found = {entry.name: entry for entry in drafted_entries(table, "answer", SIDES, ["gender"], "customer")}
    entry = found[next(iter(columns))]
    return entry.excluded, entry.why


REASONS = {
    "a number of the row": ({"position": range(N)}, "the number of the row"),
    "a key by its name": ({"loan_id": [7 * i % 101 for i in range(N)]}, "an identifier, by its name"),
    "days": ({"opened": ["2024-01-31"] * 100 + ["2023-12-01 10:15"] * (N - 100)}, "a date"),
    "days the other way round": ({"opened": [f"{i % 28 + 1}.3.2024" for i in range(N)]}, "a date"),
    "a place in numbers": ({"zip_code": [94000 + i % 60 for i in range(N)]}, "a place"),
    "free text": ({"remark": [f"said {i} things" for i in range(N)]}, f"text of {N} values"),
    "one value": ({"country": ["US"] * N}, "one value"),
    "nothing": ({"further": [""] * N}, "no value"),
    "mostly nothing": ({"second": (["5", "", "", "6", "", ""] * N)[:N]}, "missing in 67% of the rows"),
    "another protected name": (
        {"applicant_age_above_62": ["yes", "no"] * (N // 2)},
        "names a protected attribute (age)",
    ),
    "a name of the lake": ({"row_id": [i % 7 for i in range(N)]}, "a name that Evenhand uses itself"),
}


@pytest.mark.parametrize("name", REASONS)
def test_a_column_is_left_out_with_its_reason(name: str, tmp_path: Path) -> None:
    columns, reason = REASONS[name]
    excluded, said = why(tmp_path, **columns)
    assert excluded
    assert said.startswith(reason)


KEPT = {
    "a number that differs in each row": {"balance": [1.5 * (i * 7919 % 1000) + i / 1000 for i in range(N)]},
    "a few dates of terms": {"months": [12, 24, 36, 48] * (N // 4)},
    "words of a few kinds": {"employment": ["steady", "none", "self"] * (N // 3)},
    "a third missing on both sides": {"savings": (["", "1", "2"] * N)[:N]},
}


@pytest.mark.parametrize("name", KEPT)
def test_a_column_that_looks_alike_is_a_feature(name: str, tmp_path: Path) -> None:
    assert not why(tmp_path, **KEPT[name])[0]


def test_the_decision_under_another_name_is_left_out_and_a_good_predictor_is_not(tmp_path: Path) -> None:
    answers = read_table(tables.lender(tmp_path)).frame["answer"]
    often = [value if i % 4 else "denied" for i, value in enumerate(answers)]
    codes = {"stage": answers.map({"approved": "7", "denied": "9"}), "score_band": often}
    table = read_table(tables.lender(tmp_path, **codes))
    found = {entry.name: entry for entry in drafted_entries(table, "answer", SIDES, (), None)}
    assert (found["stage"].after, found["score_band"].excluded) == (True, False)
    assert found["stage"].why == f"{AFTER}, as it seems: by itself it tells 100% of the decisions"


def test_missing_shares_that_differ_by_less_than_half_are_no_reason(tmp_path: Path) -> None:
    approved = read_table(tables.lender(tmp_path)).frame["answer"] == "approved"
    for limit, after in ((6, True), (4, False)):
        cells = ["" if yes and i % 10 < limit else str(i % 9) for i, yes in enumerate(approved)]
        table = read_table(tables.lender(tmp_path, quoted=cells))
        [entry] = [e for e in drafted_entries(table, "answer", SIDES, (), None) if e.name == "quoted"]
        assert entry.after is after


def test_rows_with_every_feature_are_counted(tmp_path: Path) -> None:
    table = read_table(tables.lender(tmp_path, savings=(["", "1", "2"] * N)[:N]))
    found = drafted_entries(table, "answer", SIDES, ["gender"], None)
    assert complete(table, "answer", SIDES, found) == (N * 2 // 3, N)


def test_the_year_is_that_of_a_column_that_is_called_so(tmp_path: Path) -> None:
    assert find_year(read_table(tables.lender(tmp_path))) is None
    assert find_year(read_table(tables.lender(tmp_path, decision_year=["2021"] * N))) == (2021, True)
    assert find_year(read_table(tables.lender(tmp_path, year=["2021"] * 200 + ["2020"] * (N - 200)))) == (2021, False)
