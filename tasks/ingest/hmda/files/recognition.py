"""Recognises the layout of a file by its content: header, number of fields, and the shapes of values.

The name of a file is never asked. What does not fit is an error that says what was found; a few broken lines are not,
they are counted where the rows are read.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from schemas.errors import DataQualityError
from tasks.ingest.hmda.files.layouts import BY_NAME, LAYOUTS, Layout, normalised
from tasks.ingest.hmda.files.opening import Limits, Opened, opened

_SAMPLE_ROWS = 2000
_LEAST_COLUMNS = 3

_SHAPES = {  # of the columns by which one layout is told from another; blank cells say nothing
    **dict.fromkeys(("activity_year", "as_of_year"), r"(19|20)\d\d"),
    "lei": r"[0-9A-Za-z]{20}",
    "agency_code": r"[1-9]",
    "action_taken": r"[1-8]",
    "loan_type": r"[1-4]",
    "loan_purpose": r"[1-5]|31|32",
    "preapproval": r"[1-3]",
    **dict.fromkeys(("action_taken_name", "loan_type_name", "loan_purpose_name"), r"[A-Za-z].*"),
    **dict.fromkeys(("applicant_race_1", "co_applicant_race_1"), r"[1-8]|2[1-7]|4[1-4]"),
    **dict.fromkeys(("lien_status", "occupancy_type", "owner_occupancy"), r"[1-4]"),
    **dict.fromkeys(("loan_amount", "loan_amount_000s", "tract_population", "population"), r"[-+0-9.eE]+|NA|Exempt"),
}
_YEARS = ("activity_year", "as_of_year")
_FIXED = BY_NAME["nara_fixed"]
"""The one layout of fixed width."""


@dataclass(frozen=True)
class Recognised:
    """A file and how it is to be read."""

    path: Path
    """A file that DuckDB reads as it is: text, packed by gzip or not, or Parquet of the canonical layout."""
    layout: Layout
    delimiter: str
    """Empty where the columns have fixed widths."""
    encoding: Literal["utf-8", "latin-1"]
    columns: tuple[str, ...]
    """Names in the order of the file, normalised."""
    missing: tuple[str, ...] = ()
    """Columns of the layout that the file has not."""
    unknown: tuple[str, ...] = ()
    """Columns of the file that the layout has not."""
    header: bool = True
    """Whether the first line is a header."""
    compression: Literal["none", "gzip"] = "none"
    line_end: str = "\n"
    lines: int = 0
    """Lines of the file, its header included."""


def recognise(path: Path, scratch: Path, limits: Limits | None = None) -> Recognised:
    """The layout of a file. ``scratch`` is where the member of a zip archive is written, and stays the caller's.

    Raises:
        DataQualityError: no known layout; a header over rows of another layout; rows of a year that was not published
            so; a lender's own submission; or the file cannot be opened (see ``opening``).
        InfrastructureError: the file cannot be read, or the disk is too small.
    """
    file = opened(path, scratch, limits)
    lines = _lines(file)
    if not lines:
        raise DataQualityError(f"{path.name} has blank lines alone: rows of applications are expected")
    if file.head.lstrip()[:1] == b"<":
        raise DataQualityError(f"{path.name} is a web page and no data: the download failed, fetch it again")
    if _is_fixed(lines):
        layout, names, has_header = _fixed(path.name, lines), list(_FIXED.columns), False
    else:
        layout, names, has_header = _delimited(path.name, _records(path.name, lines, file.delimiter))
    known, found = set(layout.columns), set(names)
    return Recognised(
        *(file.path, layout, "" if layout.stops else file.delimiter, file.encoding, tuple(names)),
        missing=tuple(name for name in layout.columns if name not in found),
        unknown=tuple(name for name in names if name not in known),
        header=has_header,
        compression=file.compression,
        line_end=file.line_end,
        lines=file.lines,
    )


def years_said(path: Path, scratch: Path) -> tuple[int, ...]:
    """The years that the first rows of a file are of, in order; none where it has no such column.

    Raises:
        DataQualityError, InfrastructureError: as ``recognise`` says.
    """
    file = opened(path, scratch)
    lines = _lines(file)
    if not lines:
        return ()
    if _is_fixed(lines):
        found = {line[: _FIXED.stops[0]] for line in lines}
    else:
        records = _records(path.name, lines, file.delimiter)
        _, names, has_header = _delimited(path.name, records)
        at = next((names.index(name) for name in _YEARS if name in names), None)
        found = set() if at is None else {row[at].strip() for row in records[has_header:] if len(row) > at}
    return tuple(sorted(int(year) for year in found if re.fullmatch(_SHAPES["as_of_year"], year)))


def _lines(file: Opened) -> list[str]:
    """The first lines of the text; one that the head cuts through is left out."""
    lines = file.head.decode(file.encoding, errors="ignore").split(file.line_end)
    complete = lines if file.whole or len(lines) < 2 else lines[:-1]
    return [line for line in complete if line.strip()][: _SAMPLE_ROWS + 1]


def _records(name: str, lines: Sequence[str], delimiter: str) -> list[list[str]]:
    try:
        return [record for record in csv.reader(lines, delimiter=delimiter) if record]
    except csv.Error as error:
        raise DataQualityError(f"{name}: its first lines do not split into cells ({error}); mend it") from error


def _is_fixed(lines: Sequence[str]) -> bool:
    """Whether most lines are as long as a record of the National Archives, and begin with a year."""
    record = _FIXED.stops[-1]
    fits = [record in (len(line), len(line.rstrip())) and re.match(_SHAPES["as_of_year"], line) for line in lines]
    return sum(map(bool, fits)) * 2 > len(lines)


def _fixed(name: str, lines: Sequence[str]) -> Layout:
    starts = (0, *_FIXED.stops[:-1])
    records = [[line[a:b].strip() for a, b in zip(starts, _FIXED.stops, strict=True)] for line in lines]
    if wrong := _misfits(_FIXED, _FIXED.columns, records):
        raise DataQualityError(f"{name} has lines of {_FIXED.stops[-1]} characters, and yet {_told(wrong)}")
    return _FIXED


def _delimited(name: str, records: Sequence[Sequence[str]]) -> tuple[Layout, list[str], bool]:
    """The layout, the names of the file's columns, and whether the first record is a header."""
    _check_no_submission(name, records[0])
    names = [normalised(cell) or f"unnamed_{i}" for i, cell in enumerate(records[0], start=1)]
    if not _is_header(names):
        layout = _by_count(name, records)
        return layout, list(layout.columns), False
    _check_body(name, names, records[1:])
    return _by_names(name, names, records[1:]), names, True


def _is_header(names: Sequence[str]) -> bool:
    known = {name for layout in LAYOUTS for name in layout.columns}
    return sum(name in known for name in names) * 2 > len(names)


def _check_no_submission(name: str, first: Sequence[str]) -> None:
    if (first[0], len(first)) in (("1", 15), ("2", 110)):
        raise DataQualityError(
            f"{name} is a lender's own submission, with identifiers of loans, addresses and exact ages that public "
            "HMDA leaves out, and is not read: fetch the lender's Modified LAR, or its rows from the data browser"
        )


def _check_body(name: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Hold the header against the rows below it."""
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise DataQualityError(f"{name}: the header names {twice} more than once; every column needs its own name")
    counts = Counter(map(len, rows))
    usual = counts.most_common(1)[0][0] if counts else len(names)
    if usual != len(names):
        of = [layout.name for layout in LAYOUTS if len(layout.columns) == usual]
        hint = f", as in layout {' or '.join(of)}" if of else ""
        raise DataQualityError(
            f"{name} has a header of {len(names)} columns over rows of {usual} fields{hint}: header and body are of "
            "different layouts; fetch the file again, or take the header that belongs to it"
        )


def _by_names(name: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> Layout:
    """The layout with the most of the columns whose values fit, and of several the one that lacks least."""
    shared = {layout.name: len(set(names) & set(layout.columns)) for layout in LAYOUTS}
    most = max(shared.values())
    if most < _LEAST_COLUMNS:
        raise DataQualityError(f"{name} has {most} columns of HMDA, too few to know their layout; use kind: csv")
    equal = [layout for layout in LAYOUTS if shared[layout.name] == most]
    fitting = [layout for layout in equal if not _misfits(layout, names, rows)]
    if not fitting:
        wrong = _misfits(equal[0], names, rows)
        raise DataQualityError(
            f"{name} has the header of layout {equal[0].name}, and below it {_told(wrong)}: header and body are of "
            "different layouts, or the file is of another year"
        )
    if len({layout.family for layout in fitting}) > 1:
        raise DataQualityError(
            f"{name}: its columns fit {' and '.join(layout.name for layout in fitting)} alike, whose codes differ; "
            "a file with more of its columns is needed"
        )
    return min(fitting, key=lambda layout: (len(layout.columns), not layout.header))


def _by_count(name: str, records: Sequence[Sequence[str]]) -> Layout:
    """The layout with as many columns as most lines have fields, whose values fit; those without header come first."""
    count = Counter(map(len, records)).most_common(1)[0][0]
    rows = [record for record in records if len(record) == count]
    of_length = [layout for layout in LAYOUTS if len(layout.columns) == count and not layout.stops]
    for layout in sorted(of_length, key=lambda layout: layout.header):
        if not _misfits(layout, layout.columns, rows):
            return layout
    known = ", ".join(f"{len(layout.columns)} ({layout.name})" for layout in LAYOUTS)
    told = f"; as {of_length[0].name}, {_told(_misfits(of_length[0], of_length[0].columns, rows))}" if of_length else ""
    raise DataQualityError(
        f"{name} begins with no header of HMDA, and its rows of {count} fields fit no layout{told}. Known are {known} "
        "columns. A lender's Modified LAR has to come with its header; other files: use kind: csv"
    )


def _misfits(layout: Layout, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[tuple[str, str]]:
    """Columns whose shape most values do not have, or years that were not published so, each with such a value."""
    wrong = []
    whole = [row for row in rows if len(row) == len(columns)]
    for i, column in enumerate(columns):
        if column not in _SHAPES or column not in layout.columns:
            continue
        values = [re.sub(r"\.0+$", "", row[i].strip()) for row in whole]
        said = [value for value in values if value and value != "NA"]
        odd = [value for value in said if not _fits(layout, column, value)]
        if len(odd) * 2 > len(said):
            wrong.append((column, odd[0]))
    return wrong


def _fits(layout: Layout, column: str, value: str) -> bool:
    if not re.fullmatch(_SHAPES[column], value):
        return value in ("Exempt", "1111")
    return column not in _YEARS or layout.years[0] <= int(value) <= layout.years[1]


def _told(wrong: Sequence[tuple[str, str]]) -> str:
    return "most values of " + ", ".join(f"{column} are like {value!r}" for column, value in wrong[:3])
