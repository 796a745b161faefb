"""The workbook of a reviewer's pack: the warning first, text as text, and no copy of it on the disk meanwhile."""

import io
import tempfile

import pytest
from openpyxl import load_workbook

from flows.runs.pack import WARNING, _cell, _csv, _sheet, _workbook

ROWS = [{"pack: role": "complainant", "row_id": "=1+1", "noise": [0.5, 1.5]}, {"row_id": "L2", "income": 3}]


def test_each_sheet_is_below_the_warning_and_has_all_columns() -> None:
    book = load_workbook(io.BytesIO(_workbook({"complainants": ROWS, "files": []})))
    assert book.sheetnames == ["complainants", "files"]
    rows = list(book["complainants"].iter_rows(values_only=True))
    assert rows[0][0] == WARNING == book["files"]["A1"].value
    assert rows[1:] == [
        ("pack: role", "row_id", "noise", "income"),
        ("complainant", "=1+1", "0.5; 1.5", None),
        (None, "L2", None, 3),
    ]
    assert book["complainants"]["B3"].data_type == "s"
    assert book["complainants"].freeze_panes == "A3"


def test_rows_of_persons_are_in_no_temporary_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a temporary file")

    for name in ("TemporaryFile", "NamedTemporaryFile", "mkstemp", "mkdtemp"):
        monkeypatch.setattr(tempfile, name, refused)
    assert _workbook({"files": ROWS})


def test_csv_guards_what_a_spreadsheet_would_run() -> None:
    assert _csv(ROWS).decode().splitlines()[1] == "complainant,'=1+1,0.5; 1.5,"
    assert _cell([2.0]) == 2.0
    assert _sheet("files", ROWS).header == ("pack: role", "row_id", "noise", "income")
