"""Raw rows of a source: text, row numbers, the layout for DuckDB, the check of their year, and sources in parts."""

# ruff: noqa: S608 what goes into the SQL is quoted, or a name of ours

import errno
import hashlib
import stat
from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from schemas.audit.partition import ALL, Part
from schemas.audit.source import Source
from schemas.errors import DataQualityError, Location, SpecError, nearest
from schemas.terms import Refusal

if TYPE_CHECKING:
    import duckdb


# --------------------------------------------------------------------------------------------------------------------
# Refuses a file that is not regular before it is opened: a FIFO blocks its reader, and a device has no end.


_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe (FIFO)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_SHOWN = 200
"""Letters of a path in a message."""
_NO_FILE = {errno.ELOOP: "a symbolic link that leads to itself", errno.ENAMETOOLONG: "a name longer than any file has"}


def check_regular(path: Path, location: Location = ()) -> None:
    """Hold a path that a user gave against what can be read as a file. One that is not there is left to the caller.

    Raises:
        SpecError: a directory, a FIFO, a socket, a device, a loop of symbolic links, or no name that a file can have;
            with its place in the spec.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if error.errno in _NO_FILE:
            raise _refused(path, _NO_FILE[error.errno], location) from error
        return
    except ValueError as error:  # a null character, or half of a character
        raise _refused(path, "a name that no file can have", location) from error
    if not stat.S_ISREG(mode):
        raise _refused(path, next((name for is_kind, name in _KINDS if is_kind(mode)), "something else"), location)


def _refused(path: Path, kind: str, location: Location) -> SpecError:
    path_text = str(path) if len(str(path)) <= _SHOWN else f"{str(path)[:_SHOWN]}..."
    return SpecError(f"{path_text!r} is not a file, but {kind}; give the path of a regular file", location)


# --------------------------------------------------------------------------------------------------------------------
# Raw rows of a source: text, row numbers, unreadable rows, and rows that are set aside.


@dataclass(frozen=True)
class Unread:
    """A row that the source itself refuses, so that nothing of it is in the table."""

    row: int
    """Its number in the source, from 1."""
    reason: Refusal
    column: str | None = None
    detail: str | None = None


@dataclass(frozen=True)
class Raw:
    """A source as read: nothing is typed yet, and nothing is lost."""

    table: pa.Table
    """String columns, one row each."""
    source_row: list[int]
    """``(rows,)`` number of each row in the source, from 1."""
    unread: Sequence[Unread] = ()
    """Rows that are refused before anything is typed."""
    quarantined: Mapping[tuple[Refusal, str | None], NDArray[np.bool_]] = field(default_factory=dict)
    """Reason and column -> ``(rows,)`` whether the policy of the source refuses the row of the table for it."""


# --------------------------------------------------------------------------------------------------------------------
# A source laid out for DuckDB: rows as SQL, each with its number, its cells as text and the policy's refusals.
#
# Scope: the form. Who lays out which source: ``tasks.ingest.registry``.


@dataclass(frozen=True)
class CellCount:
    """The cells of one column by what became of them."""

    column: str
    read: str
    """How they are read: number, date, bands or text."""
    cells: int
    values: int
    missing: int
    unread: int


@dataclass(frozen=True)
class RuleCount:
    """What one rule did in a column; without one, to whole rows."""

    column: str
    rule: str
    cells: int
    rows: int


@dataclass(frozen=True)
class Laid:
    """A source as rows of SQL; nothing is typed yet, and nothing is lost."""

    rows: str
    """SQL that selects ``place``, the number of the row from 1; ``c0``, ``c1``, ... the cells of the columns in their
    order as text, never null; and ``q0``, ``q1``, ... whether the source's policy refuses the row."""
    columns: tuple[str, ...]
    """Names of ``c0``, ``c1``, ..."""
    quarantined: tuple[tuple[Refusal, str | None], ...] = ()
    """Reason and column of ``q0``, ``q1``, ... in the order in which they count."""
    unread: Sequence[Unread] = ()
    """Rows that are refused before anything is typed."""
    plain: frozenset[str] = frozenset()
    """Columns whose cells are ASCII alone, with no blanks around."""
    as_compared: frozenset[str] = frozenset()
    """Columns whose cells are what ``schemas.bounds.canonical`` makes of them."""
    numbers: frozenset[str] = frozenset()
    """Columns whose cells are empty or a plain number (``tasks.ingest.statement.plain``)."""
    dates: frozenset[str] = frozenset()
    """Columns whose cells a recipe reads as dates: empty, or ISO text."""
    cells: Sequence[CellCount] = ()
    """What became of the cells of each column that a recipe read."""
    rules: Sequence[RuleCount] = ()
    """What each rule of the recipe, and of the join of a second file, did."""
    joined: Mapping[str, int] = field(default_factory=dict)
    """Rows matched and unmatched, and rows of the second file unused; empty without a second file."""
    unread_cells: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Column -> a few cells that could not be read, for the terminal alone."""


def registered(
    raw: Raw, connection: "duckdb.DuckDBPyConnection", part: Part | None = None, name: str = "source_rows"
) -> Laid:
    """A source that was read, or its rows of one partition; lines that could not be read belong to none."""
    columns = tuple(raw.table.column_names)
    quarantined = tuple(raw.quarantined)
    named = [pa.array(np.asarray(raw.source_row, dtype=np.int64)), *raw.table.columns]
    named += [pa.array(np.asarray(raw.quarantined[key], dtype=bool)) for key in quarantined]
    names = ["place", *(f"c{i}" for i in range(len(columns))), *(f"q{i}" for i in range(len(quarantined)))]
    table = pa.table(named, names=names)
    if part is not None and part.value != ALL:
        import pyarrow.compute as pc

        table = table.filter(pc.equal(table[f"c{columns.index(part.column)}"], part.value))
    connection.register(name, table)
    unread = () if part is not None and part.value != ALL else raw.unread
    return Laid(f"SELECT * FROM {name}", columns, quarantined, unread)


# --------------------------------------------------------------------------------------------------------------------
# Checks the year of a source's own rows against the year of the audit spec.
#
# A year's file under another year's name would be audited as that. Rows that the spec does not keep are not judged, and
# neither are rows without a year.


COLUMNS = ("activity_year", "as_of_year")
"""In which public HMDA tells the year: from 2018, and before."""

_FIRST, _LAST = 1900, 2200  # as the audit spec takes years
_YEAR_OF_ROWS_SHOWN = 5


def column_of(source: Source, header: Sequence[str]) -> str | None:
    """The column with the year of each row; None if there is none."""
    if source.year_column is not None:
        return source.year_column
    return next((name for name in COLUMNS if name in header), None)


def year_of(name: str, column: str, rows_by_year: Mapping[str, int], year: int) -> int | None:
    """The year of the rows, which is that of the spec; None where no row has one.

    Args:
        name: of the source, for the message.
        column: that tells the year.
        rows_by_year: its values, as text, with the counts of the rows that are kept.
        year: of the audit spec.

    Raises:
        DataQualityError: a row is of another year, or has something else than a year there.
    """
    if not rows_by_year.keys() <= {str(year)}:
        raise DataQualityError(_refusal(name, column, rows_by_year, year))
    return year if rows_by_year else None


def _refusal(name: str, column: str, rows_by_year: Mapping[str, int], year: int) -> str:
    """The found values and the next step. Only years are named: another value may be personal data."""
    if not any(map(_is_year, rows_by_year)):
        return f"{name}: column {column!r} holds no years; name another with source.year_column"
    other_values = {value: n for value, n in rows_by_year.items() if value != str(year)}
    years = sorted((value for value in other_values if _is_year(value)), key=lambda value: -other_values[value])
    listed_years = [f"{other_values[value]:,} of {value}" for value in sorted(years[:_YEAR_OF_ROWS_SHOWN])]
    listed_years += (
        [f"{n:,} of further years"] if (n := sum(other_values[value] for value in years[_YEAR_OF_ROWS_SHOWN:])) else []
    )
    listed_years += (
        [f"{n:,} with something else there"]
        if (n := sum(other_values.values()) - sum(other_values[v] for v in years))
        else []
    )
    own_year = f", beside {rows_by_year[str(year)]:,} of {year}" if str(year) in rows_by_year else ""
    if len(rows_by_year) == len(years) == 1:
        step = f"give --year {years[0]} (`year: {years[0]}` in the spec), or the file of {year}"
    else:
        step = f"give a file of {year} alone, or keep its rows alone: --set 'source.keep.{column}=[{year}]'"
    listed = f"{', '.join(listed_years)}{own_year} (column {column!r})"
    return f"{name} was said to be of {year} and has rows of other years: {listed}; {step}"


def _is_year(value: str) -> bool:
    return value.isascii() and value.isdigit() and _FIRST <= int(value) <= _LAST


# --------------------------------------------------------------------------------------------------------------------
# The parts of a table by the values of a column: how many rows each has, and a digest of what is in them.
#
# The digest of a part is that of its rows alone, in no order: the sha256 over the sorted sha256 of its rows. So a part
# that nobody corrected keeps its digest when the table is sorted, split or delivered again with other parts changed.
# DuckDB makes the digests of rows and sorts them, spilling what does not fit; Python joins them as they stream by.


COUNTED: Final = pa.schema(
    [
        pa.field("value", pa.string(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("rows_sha256", pa.string(), nullable=False),
    ]
)
"""One row a part: its value as text, empty where the column is null, its rows, and their digest."""

_BATCH = 65_536
_BYTES = 32
"""Of a digest."""
_FIELD = "chr(30)"
"""Before a cell: the separator of records of ASCII."""
_WIDTHS = (4, 8, 43)
"""Letters of a column's key: the first that tell all columns apart. Full names would be most of what is digested."""


def counted(
    connection: "duckdb.DuckDBPyConnection", relation: str, column: str, leave_out: Collection[str] = ("source_row",)
) -> pa.Table:
    """The parts of a relation by the value of a column, with the schema ``COUNTED``, in the byte order of the values.

    Digests depend on the cells that have a value and on the names of their columns; not on the order of rows or of
    columns, on columns that are null throughout, or on how many threads work. Memory is that of the connection.

    Args:
        connection: Where the relation is; its settings bound threads and memory.
        relation: What stands after FROM: the name of a table or view, quoted, or a table function.
        column: Whose values make the parts.
        leave_out: Columns that say nothing of a row but where it lies, such as its number in the file.

    Raises:
        DataQualityError: the relation has no such column.
    """
    columns = {name: str(kind) for name, kind, *_ in connection.execute(f"DESCRIBE FROM {relation}").fetchall()}
    if column not in columns:
        raise DataQualityError(f"the rows have no column {column!r} to part them by; {nearest(column, list(columns))}")
    names = sorted(name for name in columns if name not in leave_out)
    # a short key for each name, of the same length, that depends on the name alone
    digests = [urlsafe_b64encode(hashlib.sha256(name.encode()).digest()).decode() for name in names]
    candidates = ([digest[:width] for digest in digests] for width in _WIDTHS)
    keys = next(shortened for shortened in candidates if len(set(shortened)) == len(names))
    cells = [_cell(key, name, columns[name]) for key, name in zip(keys, names, strict=True)]
    digest = f"unhex(sha256(concat({', '.join(cells)})))" if cells else "unhex(sha256(''))"
    query = f"SELECT coalesce(CAST({_quoted(column)} AS VARCHAR), '') AS value, {digest} AS digest FROM {relation}"
    return _joined(connection.sql(f"{query} ORDER BY value, digest").to_arrow_reader(_BATCH))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _cell(key: str, name: str, kind: str) -> str:
    """SQL of a cell as text that no other cell has: its column's key and its value; nothing where it is null."""
    text = f"CAST({_quoted(name)} AS VARCHAR)"
    if not kind.endswith(
        ("INT", "INTEGER", "DOUBLE", "BOOLEAN")
    ):  # a text may hold the separator: it stands there twice
        text = f"replace({text}, {_FIELD}, {_FIELD} || {_FIELD})"
    return f"{_FIELD} || '{key}' || {text}"


def _joined(reader: pa.RecordBatchReader) -> pa.Table:
    """The parts of a stream of values and digests that is sorted by both."""
    values: list[str] = []
    rows: list[int] = []
    digests: list[str] = []
    digest = hashlib.sha256()
    for value, part in _runs(reader):
        if not values or values[-1] != value:
            digests += [digest.hexdigest()] if values else []
            values.append(value)
            rows.append(0)
            digest = hashlib.sha256()
        digest.update(part)
        rows[-1] += len(part) // _BYTES
    digests += [digest.hexdigest()] if values else []
    return pa.table([values, rows, digests], schema=COUNTED)


def _runs(reader: pa.RecordBatchReader) -> Iterator[tuple[str, memoryview]]:
    """Stretches of equal values within a batch, each with its digests one after another."""
    for batch in reader:
        if not batch.num_rows:
            continue
        digests = batch.column(1)
        _, offsets, content = digests.buffers()
        first = int(np.frombuffer(offsets, np.int32)[digests.offset])
        digest_bytes = memoryview(content)[first : first + batch.num_rows * _BYTES]
        runs = pc.run_end_encode(batch.column(0))
        start = 0
        for value, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            yield value, digest_bytes[start * _BYTES : end * _BYTES]
            start = end
