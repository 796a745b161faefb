"""Rows as an XLSX workbook: equal rows give equal bytes, and no text of the data is ever a formula or a link.

Scope: how a sheet is written. What stands on the sheets of a report: ``workbook``; on those of reviewers: ``flows``.
"""

import io
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from xlsxwriter import Workbook

from tasks.reporting.exports.formula_cells import FORMULA

LONGEST = 32_767
"""Characters of a cell; what is longer is cut."""
_CREATED = datetime(2000, 1, 1)
"""Written into every workbook in place of the clock, so that bytes repeat."""
_NARROWEST, _WIDEST = 9, 60
_SAMPLED = 200
"""Rows by which the width of a column is set."""
_A4 = 9


@dataclass(frozen=True)
class Sheet:
    """One sheet."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[Sequence[object]]
    """Cells are text, numbers, booleans or None; what is none of these is written as text."""
    above: tuple[str, ...] = field(default=())
    """Lines above the header."""
    filtered: bool = False
    """Whether the header has filters."""


def spreadsheet(sheets: Iterable[Sheet], *, in_memory: bool = False) -> bytes:
    """The content of an XLSX file.

    Args:
        sheets: in the order in which they stand.
        in_memory: whether nothing is written to disk meanwhile, as rows of persons ask for; it takes more memory.
    """
    sink = io.BytesIO()
    options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with Workbook(sink, {**options, "in_memory": in_memory, "constant_memory": not in_memory}) as book:
        book.set_properties({"created": _CREATED})
        bold = book.add_format({"bold": True, "text_wrap": True, "valign": "top"})
        guarded = book.add_format({"quote_prefix": True})
        for sheet in sheets:
            _fill(book.add_worksheet(sheet.title), sheet, bold, guarded)
    return sink.getvalue()


def _fill(place: Any, sheet: Sheet, bold: Any, guarded: Any) -> None:
    top, last = len(sheet.above), max(len(sheet.header) - 1, 0)
    lines = [*((line,) for line in sheet.above), sheet.header, *sheet.rows]
    for column, width in enumerate(_widths(sheet)):
        place.set_column(column, column, width)
    for number, line in enumerate(lines):
        for column, value in enumerate(line):
            _write(place, number, column, value, bold if number <= top else None, guarded)
    place.freeze_panes(top + 1, 0)
    if sheet.filtered and sheet.rows:
        place.autofilter(top, 0, len(lines) - 1, last)
    place.set_landscape()
    place.set_paper(_A4)
    place.fit_to_pages(1, 0)
    place.repeat_rows(top)
    place.print_area(0, 0, len(lines) - 1, last)


def _write(place: Any, row: int, column: int, value: object, form: Any, guarded: Any) -> None:
    """A cell: numbers as numbers, text as text; text like a formula keeps an apostrophe when it is edited."""
    if value is None or value == "":
        return
    if isinstance(value, bool):
        place.write_boolean(row, column, value, form)
    elif isinstance(value, int | float) and math.isfinite(value):
        place.write_number(row, column, value, form)
    else:
        text = str(value)[:LONGEST]
        place.write_string(row, column, text, form or (guarded if text.startswith(FORMULA) else None))


def _widths(sheet: Sheet) -> Iterator[int]:
    """Width of each column, by its header and its first rows."""
    for column, name in enumerate(sheet.header):
        cells = (row[column] for row in sheet.rows[:_SAMPLED])
        longest = max((len(_shown(cell)) for cell in cells), default=0)
        yield min(max(longest + 1, min(len(name) + 3, 24), _NARROWEST), _WIDEST)


def _shown(cell: object) -> str:
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell or "")
