"""Sheets of workbooks: titles, totals, dates of both epochs, errors, hidden sheets; and workbooks made to do harm."""

import io
import zipfile
from collections.abc import Callable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from schemas.audit.source import Source
from schemas.errors import DataQualityError
from schemas.terms import Refusal
from tasks.ingest.sources import containers, files
from tasks.ingest.sources.door import Described, describe

NAMES = ("Id", "Decision", "Race", "Income")
ROWS = [(f"A{i:04}", ("Approved", "Denied")[i % 2], ("White", "Black")[i % 3 > 0], 1000 * i) for i in range(1, 31)]


def workbook(fill: Callable[[Any], object], **options: Any) -> bytes:
    sink = io.BytesIO()
    book = xlsxwriter.Workbook(sink, {"in_memory": True, **options})
    fill(book)
    book.close()
    return sink.getvalue()


def sheet(book: Any, name: str = "Loans", rows: Sequence[Sequence[object]] = (NAMES, *ROWS), top: int = 0) -> Any:
    page = book.add_worksheet(name)
    for i, row in enumerate(rows, start=top):
        page.write_row(i, 0, row)
    return page


def described(place: Path, content: bytes, name: str = "loans.xlsx", **choice: str) -> Described:
    (place / name).write_bytes(content)
    found = describe(place / name, **choice)
    raw = files.read(found.source, found.columns)
    assert found.source.kind == "excel"
    assert found.rows == raw.table.num_rows == len(raw.source_row)
    return found


def cells(found: Described, column: str) -> list[str]:
    return list(files.read(found.source, [column]).table[column].to_pylist())


def test_a_plain_sheet_needs_no_question(tmp_path: Path) -> None:
    found = described(tmp_path, workbook(sheet), name="loans.csv")
    assert (found.columns, found.rows, found.evidence) == (NAMES, 30, ())
    assert cells(found, "Income")[:2] == ["1000", "2000"]


def test_titles_blank_rows_empty_columns_and_totals(tmp_path: Path) -> None:
    def fill(book: Any) -> None:
        page = book.add_worksheet()
        page.write(0, 1, "A2023")
        page.write(1, 1, "Confidential")
        for i, row in enumerate((NAMES, *ROWS[:10], ("", "", "", ""), *ROWS[10:]), start=3):
            page.write_row(i, 1, [cell for cell in row[:2] if cell])
            page.write_row(i, 4, [cell for cell in row[2:] if cell])
        page.write(40, 1, "Total")
        page.write(40, 5, 465_000)

    found = described(tmp_path, workbook(fill))
    raw = files.read(found.source, found.columns)
    assert (found.columns, found.rows, found.titles) == (NAMES, 30, ("A2023", "Confidential"))
    assert (found.source.skip, found.source.foot) == (3, 1)
    assert [(row.row, row.reason) for row in raw.unread] == [(31, Refusal.FOOTER)]
    assert sorted(evidence.what for evidence in found.evidence) == ["foot", "title"]


@pytest.mark.parametrize("epoch_of_1904", [False, True])
def test_what_cells_hold_is_read_as_it_is_stored(tmp_path: Path, epoch_of_1904: bool) -> None:
    def fill(book: Any) -> None:
        page = sheet(book, rows=[("id", "day", "moment", "share", "flag", "formula", "error", "code", "large")])
        day, moment = book.add_format({"num_format": "d/m/yy"}), book.add_format({"num_format": "d/m/yy hh:mm"})
        share = book.add_format({"num_format": "0.0%"})
        for i in range(1, 5):
            page.write(i, 0, f"A{i}")
            page.write_datetime(i, 1, date(2023, 2, i), day)
            page.write_datetime(i, 2, datetime(2023, 2, i, 9, 30), moment)
            page.write_number(i, 3, 0.238, share)
            page.write_boolean(i, 4, i % 2 == 0)
            page.write_formula(i, 5, f"=10*{i}", None, 10 * i)
            page.write_formula(i, 6, "=1/0", None, "#DIV/0!")
            page.write_string(i, 7, f"00{i}")
            page.write_number(i, 8, 123456789012 + i)

    found = described(tmp_path, workbook(fill, date_1904=epoch_of_1904))
    first = {name: cells(found, name)[0] for name in found.columns}
    assert first == {
        "id": "A1",
        "day": "2023-02-01",
        "moment": "2023-02-01T09:30:00",
        "share": "0.238",
        "flag": "false",
        "formula": "10",
        "error": "",
        "code": "001",
        "large": "123456789013",
    }


def test_hidden_sheets_are_not_offered_and_notes_are_no_table(tmp_path: Path) -> None:
    def fill(book: Any) -> None:
        sheet(book, "Notes", [("Read me",), ("As of today",)])
        sheet(book, "Old", (NAMES, *ROWS, *ROWS)).hide()
        sheet(book, "Now")
        sheet(book, "Empty", ())

    found = described(tmp_path, workbook(fill))
    assert (found.source.sheet, found.rows, found.evidence) == ("Now", 30, ())
    assert described(tmp_path, workbook(fill), sheet="Old").rows == 60
    with pytest.raises(DataQualityError, match=r"has no sheet 'Nov'; it has 'Notes', 'Now', 'Empty'|'Nov'"):
        describe(tmp_path / "loans.xlsx", sheet="Nov")


def test_several_sheets_with_tables_are_a_question(tmp_path: Path) -> None:
    content = workbook(lambda book: (sheet(book, "Small", (NAMES, *ROWS[:5])), sheet(book, "Large")))
    found = described(tmp_path, content)
    assert (found.source.sheet, found.rows) == ("Large", 30)
    assert [(evidence.what, evidence.options) for evidence in found.evidence] == [("sheets", ("Small", "Large"))]
    left_out = found.source.model_copy(update={"sheet": None})
    assert files.read(left_out, NAMES).table.num_rows == 5  # the first, as the spec says


def test_two_header_rows_and_none(tmp_path: Path) -> None:
    two = described(tmp_path, workbook(lambda book: sheet(book, rows=[("X1", "X2", "X3", "X4"), NAMES, *ROWS])))
    assert (two.columns, two.source.skip, two.rows) == (NAMES, 1, 30)
    none = described(tmp_path, workbook(lambda book: sheet(book, rows=ROWS)), name="none.xlsx")
    assert (none.columns, none.rows) == (("column_1", "column_2", "column_3", "column_4"), 30)
    assert cells(none, "column_4")[0] == "1000"


def test_a_workbook_in_a_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("a/loans.xlsx", workbook(sheet))
        archive.writestr("readme.txt", "Read me.\n")
    found = describe(tmp_path / "export.zip")
    assert (found.source.member, found.columns, found.rows) == ("a/loans.xlsx", NAMES, 30)
    assert files.read(found.source, NAMES).table.num_rows == 30


# --------------------------------------------------------------------------------------------------------------------
# Workbooks of strangers.


SOUND = workbook(sheet)
PAGE = "xl/worksheets/sheet1.xml"
SPACE = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def with_part(part: str, content: bytes) -> bytes:
    """The sound workbook with another part."""
    sink = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(SOUND)) as source, zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in source.namelist():
            archive.writestr(name, content if name == part else source.read(name), compresslevel=1)
    return sink.getvalue()


def page(*rows: str, start: str = "") -> bytes:
    return f"{start}<worksheet {SPACE}><sheetData>{''.join(rows)}</sheetData></worksheet>".encode()


def cell(place: str, content: str = "<v>1</v>", kind: str = "n") -> str:
    return f'<row><c r="{place}" t="{kind}">{content}</c></row>'


ENTITIES = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 20 if i else "x" * 1000}">' for i in range(9))
LAUGHS = page(cell("A1", "<is><t>&e8;</t></is>", "inlineStr"), start=f"<!DOCTYPE w [{ENTITIES}]>")
OUTSIDE = f'<!DOCTYPE s [<!ENTITY e SYSTEM "file:///etc/hostname">]><sst {SPACE}><si><t>&e;</t></si></sst>'


def test_a_claimed_extent_is_not_believed(tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(SOUND)) as archive:
        content = archive.read(PAGE).replace(b"<dimension ", b'<dimension x="" ').replace(b"A1:D31", b"A1:XFD1048576")
    assert described(tmp_path, with_part(PAGE, content)).rows == 30


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (with_part(PAGE, page(cell("A1"), cell("XFD1048576"))), "ended the process that reads it|spreads the sheet"),
        (with_part(PAGE, page(cell("ZZZZZZ1"))), "no table|spreads|could not be read|ended the process"),
        (with_part(PAGE, page(cell("A4294967295"))), "no table|spreads|could not be read|ended the process"),
        (with_part(PAGE, LAUGHS), "could not be read as Excel"),
        (with_part("xl/sharedStrings.xml", OUTSIDE.encode()), "could not be read as Excel"),
        (lambda: with_part(PAGE, page(" " * (containers.FREE_BYTES + 1))), "unpacks to more than 200 times its size"),
        (with_part(PAGE, b"<worksheet><sheetData><row"), "could not be read as Excel|no sheet with cells"),
        (with_part("xl/workbook.xml", b"no XML"), "could not be read as Excel|no sheet"),
        (SOUND[: len(SOUND) // 2], "could not be unpacked"),
        (bytes.fromhex("d0cf11e0a1b11ae1") + bytes(5000), "could not be read as Excel"),
        (workbook(lambda book: book.add_worksheet()), "has no (sheet with cells|cells)"),
        (workbook(lambda book: sheet(book, rows=[("Read me",)])), "has no table in its sheets"),
        (workbook(lambda book: sheet(book, rows=[NAMES])), "has no table|has no rows"),
    ],
    ids=[
        "far",
        "letters",
        "number",
        "entities",
        "entity of a file",
        "bomb",
        "cut sheet",
        "no XML",
        "cut",
        "old",
        "empty",
        "note",
        "header",
    ],
)
def test_a_hostile_or_empty_workbook_is_named(tmp_path: Path, content: bytes | Callable[[], bytes], words: str) -> None:
    with pytest.raises(DataQualityError, match=words):
        described(tmp_path, content() if callable(content) else content)


def test_a_spec_of_a_sheet_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "loans.xlsx").write_bytes(SOUND)
    source = Source(kind="excel", path=str(tmp_path / "loans.xlsx"), sheet="Loan")
    with pytest.raises(DataQualityError, match=r"has no sheet 'Loan'; it has 'Loans'"):
        files.header(source)
