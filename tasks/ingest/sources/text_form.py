"""The form of delimited text: its delimiter and quotes, the place of its table, its records and its foot.

Scope: one text in a known encoding. Which file it is in, and what a user is asked about: ``door``.
"""

import csv
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow.compute as pc

from schemas.audit.source import Source
from schemas.errors import DataQualityError, SeveralLinesError, SpecError
from tasks.ingest.sources import files, layout
from tasks.ingest.sources.delimited_text import MOST_COLUMNS, KeptLines, Records, cells_at, dialect
from tasks.ingest.sources.layout import Layout

DELIMITERS: Final = {
    **{",": "commas", ";": "semicolons", "\t": "tabs", "|": "pipes"},
    **{"^": "carets", "~": "tildes", "\x1f": "unit separators", " ": "blanks"},
}
"""What parts cells, in words; blanks where nothing else does. Of cells below each other, see ``Form.starts``."""
HEAD: Final = 2**20
"""Bytes at the start by which the form is recognised."""
TAIL: Final = 2**16
"""Bytes at the end."""
_NEAR: Final = 0.9
"""Share of the best delimiter's records with which another one is looked at too."""
_UNSEEN: Final = "\x1f"
"""Stands between cells that stood below each other."""
_APART: Final = re.compile(r"\S {2,}\S")
_RULE: Final = re.compile(r"\s*[-=_]{2,}(?:[\s+|]+[-=_]+)+\s*")
"""A line of dashes below the names."""
_RULED, _FEWEST = 40, 3
"""Lines in which it is; columns of a table whose cells stand below each other."""
_MOST_PLACES: Final = 16 * HEAD
"""Characters of its lines, each as long as the longest one."""
_SURE: Final = 0.99
"""Share of the records that have to fit where quotes that are not closed are taken for letters."""


@dataclass(frozen=True)
class Form:
    """How the first records of a text read by one delimiter."""

    delimiter: str
    quoting: bool
    records: list[list[str]]
    """Without blank ones."""
    lines: list[int]
    """The line, from 1, in which each begins."""
    layout: Layout
    starts: tuple[int, ...] = ()
    """Characters at which cells begin that stand below each other."""
    comment: str | None = None
    """The mark of a line of dashes between the names and the rows."""

    @property
    def rank(self) -> tuple[bool, int, int]:
        """Of two that fit about as many records the better is the larger: no blanks, an early header, many columns."""
        header = self.layout.header
        return self.delimiter != " ", -(self.layout.first if header is None else header), self.layout.width


def head_of(source: Source, path: Path, size: int) -> tuple[str, Callable[[int], int]]:
    """The first whole lines of a text, and what gives the number of a line in the file."""
    lines, head = KeptLines(source, path), b""
    for chunk in lines:
        head += chunk
        if len(head) >= size:
            break
    if len(head) > size:
        head = head[: head.rfind(b"\n", 0, size) + 1 or head.rfind(b"\r", 0, size) + 1 or size]
    return head.decode(errors="ignore"), lines.line_number


def form_of(text: str, name: str) -> Form:
    """How the records read by the delimiter that most of them agree on; with quotes, unless many more fit without.

    Raises:
        SpecError: no delimiter parts them.
        DataQualityError: there is nothing, or a header alone.
    """
    if not text.strip():
        raise DataQualityError(f"{name} is empty: a header and at least one row are needed")
    forms: list[Form] = []
    for mark in (mark for mark in DELIMITERS if mark in text):
        quoted = _parted(text, mark, quoting=True)
        plain = _parted(text, mark, quoting=False) if '"' in text else None
        fewer = quoted is None or (plain is not None and quoted.layout.coverage < _NEAR * plain.layout.coverage)
        best = plain if fewer else quoted
        forms += [best] if best is not None else []
    if not forms:
        start = next(line for line in text.splitlines() if line.strip())
        if len(text.strip().splitlines()) == 1 and any(mark in start for mark in DELIMITERS):
            raise DataQualityError(f"{name} has a header and no row: give the whole table")
        listed = "commas, semicolons, tabs, pipes or blanks"
        raise SpecError(f"{name} has one column: a table has its cells between {listed}")
    if all(form.delimiter == " " or form.layout.coverage < _NEAR for form in forms):
        forms = [form] if (form := _below_each_other(text)) is not None else forms
    most = max(form.layout.coverage for form in forms if form.delimiter != " " or len(forms) == 1)
    return max((form for form in forms if form.layout.coverage >= _NEAR * most), key=lambda form: form.rank)


def _below_each_other(text: str) -> Form | None:
    """The records of lines with aligned cells, with two blanks or more between some of each line."""
    lines = [line.rstrip() for line in text.expandtabs().splitlines()]
    ruled = next((line for line in lines[:_RULED] if _RULE.fullmatch(line)), "")
    rule = ruled.split()[0] if ruled else None
    rows = [line for line in lines if _APART.search(line) and not (rule and line.startswith(rule))]
    if 2 * len(rows) < len([line for line in lines if line]) or "\t" in text:
        return None
    width = max(map(len, rows))
    if len(rows) * width > _MOST_PLACES:
        return None
    letters = np.array([line.ljust(width) for line in [ruled] if ruled] or [line.ljust(width) for line in rows])
    filled = (letters.view("U1").reshape(-1, width) != " ").any(axis=0)
    begin = np.flatnonzero(filled & ~np.append(False, filled[:-1]))
    names = rows[0]  # a place without a name is between two words of a cell
    starts = tuple(at for i, at in enumerate(begin.tolist()) if not i or names[at : [*begin, width][i + 1]].strip())
    if len(starts) < _FEWEST or len(starts) > MOST_COLUMNS:
        return None
    numbered = [(i, line) for i, line in enumerate(lines, start=1) if line and not (rule and line.startswith(rule))]
    records = [cells_at(line, starts) or [line] for _, line in numbered]
    place = layout.laid_out(records)
    if place is None or place.width != len(starts):
        return None
    return Form(_UNSEEN, False, records, [i for i, _ in numbered], place, starts, rule)


def _parted(text: str, delimiter: str, quoting: bool) -> Form | None:
    """The records of a text by a delimiter, if a table lies in them."""
    records, lines = records_of(text, delimiter, quoting)
    place = layout.laid_out(records)
    return None if place is None else Form(delimiter, quoting, records, lines, place)


def records_of(text: str, delimiter: str, quoting: bool) -> tuple[list[list[str]], list[int]]:
    """The records that are not blank, and the line in which each begins; as far as they can be parted."""
    style: Final = csv.QUOTE_MINIMAL if quoting else csv.QUOTE_NONE
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=style)
    records: list[list[str]] = []
    lines: list[int] = []
    line = 1
    try:
        for record in reader:
            if record:
                records.append(record)
                lines.append(line)
            line = reader.line_num + 1
    except csv.Error:  # a cell longer than the library takes
        pass
    return records, lines


def comment_of(form: Form) -> str | None:
    """The mark of lines between the rows that are comments."""
    place = form.layout
    between = [r for r in form.records[place.first : place.last] if len(r) != place.width]
    named = form.records[place.header] if place.header is not None else ["#"]
    marked = bool(between) and all(record[0].startswith("#") for record in between)
    return "#" if marked and not named[0].startswith("#") else None


def repeated_header(form: Form, text: str) -> tuple[str, int] | None:
    """The line of names that is repeated among the rows, as on each page of a printed report, and how often.

    None where it does not, or the names take more than one line.
    """
    place = form.layout
    if place.header is None or place.beside:
        return None
    names = form.records[place.header]
    times = sum(record == names for record in form.records[place.first :])
    line = text.splitlines()[form.lines[place.header] - 1] if times else ""
    return (line, times) if line and records_of(line, form.delimiter, form.quoting)[0] == [names] else None


def counted(source: Source, path: Path, width: int) -> tuple[Source, int, str]:
    """The source with what its quotes need, its records below ``skip``, and the end of its text.

    Raises:
        DataQualityError: a quote is not closed, and the cells in quotes need theirs.
    """
    try:
        return (source, *count_records(source, path))
    except SeveralLinesError:
        several = source.model_copy(update={"multiline": True})
        counts = count_records(several, path)
        # A cell between two stray quotes has the delimiters of as many rows.
        names = files.header(several)
        raw = files.read(several, names)
        cells = [name for name in names if "\n" in name or "\r" in name]
        for column in raw.table.columns:
            cells += pc.filter(column, pc.match_substring_regex(column, r"[\r\n]")).to_pylist()
        marks = ((cell.count(source.delimiter), cell.count("\n") or cell.count("\r")) for cell in cells)
        if raw.unread or any(delimiters >= (width - 1) * lines for delimiters, lines in marks):
            raise
        return (several, *counts)
    except DataQualityError:
        plain = source.model_copy(update={"quote": "none"})
        count, tail = count_records(plain, path)
        records, _ = records_of(head_of(plain, path, HEAD)[0], source.delimiter, quoting=False)
        if sum(len(record) == width for record in records) < _SURE * len(records):
            raise
        return plain, count, tail


def count_records(source: Source, path: Path) -> tuple[int, str]:
    """The records below ``skip``, and the end of the text.

    Raises:
        DataQualityError: as ``Records``.
    """
    lines, tail = KeptLines(source, path), b""
    records = Records(path.name, dialect(source), lines.line_number)
    for chunk in lines:
        records.add(chunk)
        tail = chunk[-TAIL:] if len(chunk) >= TAIL else (tail + chunk)[-TAIL:]
    records.finish()
    if len(tail) == TAIL:  # it may begin within a line
        tail = tail[tail.find(b"\n") + 1 or tail.find(b"\r") + 1 :]
    return records.count, tail.decode(errors="ignore")


def foot_records(source: Source, tail: str, place: Layout) -> list[list[str]]:
    """The records at the end that are no rows."""
    quoting = source.quote == "double"
    records, _ = records_of(tail, source.delimiter, quoting)
    if quoting and 2 * sum(len(record) == place.width for record in records) < len(records):
        records, _ = records_of(tail[tail.find('"') + 1 :], source.delimiter, quoting)  # it began within a cell
    count = layout.foot_of(records, place.width, place.judges)
    return records[len(records) - count :]
