"""measures.xlsx: its sheets in their order, what stands on each, and where a run is too large for one."""

import io
from dataclasses import fields, replace
from typing import Any

import pytest
from decide_runs import boston
from exported_run import HOSTILE, material
from openpyxl import load_workbook

from tasks.reporting.declared import Declared
from tasks.reporting.exports import workbook as exported
from tasks.reporting.exports.single_file import BUDGETS
from tasks.reporting.exports.workbook import workbook
from tasks.reporting.first_page.page import decide
from tasks.reporting.material import Material, Measure

SHEETS = ["Read me", "Decide", "Figures", "Groups", "Checks", "Waterfall", "Measures", "Glossary"]
SAID = {
    "title": "Approvals", "short": "Rates", "question": "Do they differ?", "page": "approval-rates", "method": ["Shares."],  # noqa: E501
    "cannot": ["Why."],
}  # fmt: skip
RATE = {"words": "share approved", "unit": "rate", "meaning": "Those approved, of all."}


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """One method, that this file names."""
    shown = {"title": "Shares", "columns": [{"measure": "approval_rate"}]}
    said = {**SAID, "measures": {"approval_rate": RATE}, "glossary": {"limit": "What is tolerated."}}
    one = Declared.model_validate({**said, "evidence": [shown]})
    monkeypatch.setattr(exported, "all_declared", lambda: {"outcomes": one})
    monkeypatch.setattr(exported, "words", lambda: one.measures)


def sheets(made: Material) -> dict[str, list[dict[str, Any]]]:
    """Title -> rows by header."""
    book = load_workbook(io.BytesIO(workbook(made, decide(boston()))))
    assert book.sheetnames == SHEETS
    found = {}
    for place in book:
        header, *rows = place.iter_rows(values_only=True)
        found[place.title] = [dict(zip(header, row, strict=True)) for row in rows]
    return found


def test_the_sheets_say_what_the_pages_say() -> None:
    found, decision = sheets(material()), decide(boston())
    assert {"what": "answer", "is": decision.headline.words} in found["Read me"]
    said = [row["words"] for row in found["Decide"] if row["part"] == "what was found"]
    assert said == [question.sentence for question in decision.questions]
    assert [row["points"] for row in found["Figures"]] == [each.value for each in decision.figures.comparisons]
    assert [row["success"] for row in found["Checks"]] == [True, True, False]
    assert [row["n"] for row in found["Waterfall"]] == [500, None]
    terms = [(row["term"], row["kind"]) for row in found["Glossary"]]
    assert terms == [("approval_rate", "measure"), ("limit", "term")]


def test_measures_are_all_there_and_numbers_are_numbers() -> None:
    made = material()
    found = sheets(made)["Measures"]
    assert [row["value"] for row in found] == [m.value for m in made.measures]
    assert list(found[0]) == [field.name for field in fields(Measure)]


def test_a_ladder_is_printed_in_points_of_approval_with_its_lower_end_first() -> None:
    made = material()
    step = replace(
        made.measures[1], measure="adjusted_effect", parameters='{"rung": "terms"}', value=0.1, low=0.04, high=0.2
    )
    [row] = [row for row in sheets(replace(made, measures=(step,)))["Figures"] if row["figure"] == "ladder"]
    assert (row["points"], row["low"], row["high"]) == pytest.approx((-10, -20, -4))
    assert (row["group"], row["detail"]) == ("Black", "rung terms")


def test_too_many_measures_are_named_and_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exported, "MOST_MEASURES", 2)
    [row] = sheets(material())["Measures"]
    assert row["where"] == "3 measures are too many for a sheet: they are in measures.parquet"


def test_rows_without_a_number_are_the_first_for_which_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    made = material(withheld=["Black"])
    told = [m.value for m in made.measures if m.value is not None]
    assert 0 < len(told) < len(made.measures)
    monkeypatch.setattr(exported, "MOST_MEASURES", len(told))
    found = sheets(made)
    assert [row["value"] for row in found["Measures"]] == told
    said = f"{len(told)} of {len(made.measures)} have room here; all are in measures.parquet"
    assert {"what": "measures", "is": said} in found["Read me"]


def test_a_workbook_above_its_bytes_names_the_file_that_has_the_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    made = material()
    [most] = [budget.most.bytes for budget in BUDGETS if budget.files == "measures.xlsx"]
    assert most == exported.MOST_BYTES
    monkeypatch.setattr(exported, "MOST_BYTES", len(workbook(made, decide(boston()))) - 1)
    assert list(sheets(made)["Measures"][0]) == ["where"]


def test_a_withheld_group_has_no_number_on_any_sheet() -> None:
    found = sheets(material(withheld=["Black"]))
    rows = [row for name in ("Groups", "Measures") for row in found[name] if row["group"] == "Black"]
    assert rows
    assert {row[name] for row in rows for name in ("n", "value", "low", "high")} == {None}


def test_hostile_names_are_text_and_equal_runs_give_equal_bytes() -> None:
    found = sheets(material(HOSTILE[:-1]))
    assert {row["group"].replace("_x000D_", "\r") for row in found["Groups"]} > set(HOSTILE[:-1])
    decision = decide(boston())
    assert workbook(material(), decision) == workbook(material(), decision)
