"""A workbook: equal bytes, numbers as numbers, and no text of the data that a spreadsheet would run."""

import io
import time
from collections.abc import Sequence

import pytest
from exported_run import HOSTILE
from openpyxl import Workbook, load_workbook

from tasks.reporting.exports.workbook import LONGEST, Sheet, spreadsheet


def read(*sheets: Sheet, in_memory: bool = False) -> Workbook:
    return load_workbook(io.BytesIO(spreadsheet(sheets, in_memory=in_memory)))


def sheet(rows: Sequence[Sequence[object]], **more: object) -> Sheet:
    header = tuple(f"c{i}" for i in range(len(rows[0]) if rows else 1))
    return Sheet("One", header, rows, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("in_memory", [False, True])
def test_equal_rows_give_equal_bytes_at_another_time(in_memory: bool) -> None:
    first = spreadsheet([sheet([(1, "a")])], in_memory=in_memory)
    time.sleep(2.1)  # a zip counts time by two seconds
    assert first == spreadsheet([sheet([(1, "a")])], in_memory=in_memory)


@pytest.mark.parametrize("text", [*HOSTILE[:-1], "=1+1", "http://example.org", "00012", "{=1}"])
@pytest.mark.parametrize("in_memory", [False, True])
def test_text_stays_text(text: str, in_memory: bool) -> None:
    cell = read(sheet([(text,)]), in_memory=in_memory)["One"]["A2"]
    assert (cell.value.replace("_x000D_", "\r"), cell.data_type, cell.hyperlink) == (text, "s", None)
    assert bool(cell.quotePrefix) == text.startswith(("=", "+", "-", "@", "\t", "\r"))


def test_numbers_and_truth_keep_their_kind_and_nothing_is_an_empty_cell() -> None:
    [cells] = read(sheet([(3, 0.1 + 0.2, True, None, "", float("nan"), float("inf"))]))["One"].iter_rows(min_row=2)
    assert [cell.value for cell in cells] == [3, pytest.approx(0.3, abs=1e-15), True, None, None, "nan", "inf"]
    assert [cell.data_type for cell in cells[:3]] == ["n", "n", "b"]


def test_what_is_too_long_for_a_cell_is_cut() -> None:
    assert len(read(sheet([("x" * 40_000,)]))["One"]["A2"].value) == LONGEST


def test_a_sheet_is_laid_out_for_reading_and_print() -> None:
    place = read(sheet([("a", 1), ("b", 2)], above=("Restricted",), filtered=True))["One"]
    assert [row[0].value for row in place.iter_rows()] == ["Restricted", "c0", "a", "b"]
    assert (place.freeze_panes, place.auto_filter.ref) == ("A3", "A2:B4")
    assert place.page_setup.orientation == "landscape"
    assert place.print_area == "'One'!$A$1:$B$4"
    assert not place.merged_cells.ranges
    assert all(place.column_dimensions[name].width >= 9 for name in "AB")


def test_a_sheet_without_rows_has_its_header() -> None:
    assert [cell.value for cell in read(sheet([], filtered=True))["One"][1]] == ["c0"]
