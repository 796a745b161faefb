"""Converts an HMDA file to canonical Parquet: text lines as rows, validation, departures from the layout."""

# ruff: noqa: S608 what goes into the SQL is quoted, or a name of the layouts

import gzip
import io
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fsspec import AbstractFileSystem
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from schemas.audit.source import HmdaPolicy, Treatment
from schemas.errors import DataQualityError, InfrastructureError, SuiteError
from schemas.table import Table
from schemas.tables.hmda import HMDA_APPLICATIONS, HMDA_REFUSALS, SUBMITTED
from schemas.terms import Refusal
from tasks.ingest.hmda import submission
from tasks.ingest.hmda.canonical import CANONICAL, lacking, literal, parquet, quoted, select
from tasks.ingest.hmda.edits import EDITS, REPEATED, judged, repeated_rows
from tasks.ingest.hmda.layouts import SUBMISSION, Recognised
from tasks.lake.storage import Setting, connected, threads

# --------------------------------------------------------------------------------------------------------------------
# Pieces of a text file, each of whole lines, as files of a DuckDB file system: several threads read one file.
#
# Packed files and those of fixed width are one piece. Scope: bytes. Rows: ``lines``.


LEAST_BYTES = 2**24
"""Of a piece: less is not worth a thread."""
_PROTOCOL = "hmdapieces"
_CHUNK = 2**22
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Piece:
    """Bytes ``start`` to ``stop`` of the file."""

    start: int
    stop: int
    before: int
    """Rows that come before them."""
    header: bool = False
    """Whether the first line is the header of the file."""


def cut(recognised: Recognised, most: int) -> list[Piece]:
    """The file without its header in at most so many pieces; one that cannot be cut is one piece with the header."""
    if recognised.compression != "none" or recognised.layout.stops:
        return [Piece(0, recognised.path.stat().st_size, 0, recognised.header)]
    return list(_cut(recognised, most))


def serve(connection: duckdb.DuckDBPyConnection, path: Path, pieces: Sequence[Piece]) -> list[str]:
    """Let a connection read the pieces of a file, in place of those of another; gives the name of each."""
    if [piece.start for piece in pieces] == [0]:
        return [str(path)]  # the whole file, which DuckDB opens faster by itself
    if _PROTOCOL in connection.list_filesystems():
        connection.unregister_filesystem(_PROTOCOL)
    connection.register_filesystem(_Pieces(path, pieces))
    return [f"{_PROTOCOL}://{i}" for i in range(len(pieces))]


def _cut(recognised: Recognised, most: int) -> Iterator[Piece]:
    size = recognised.path.stat().st_size
    with recognised.path.open("rb") as file:
        start = len(_BOM) if file.read(len(_BOM)) == _BOM else 0
        if recognised.header:
            file.seek(0)
            start = len(file.readline())
        before, count = 0, max(1, min(most, (size - start) // LEAST_BYTES))
        for i in range(1, count + 1):
            file.seek(start + (size - start) // (count - i + 1))
            file.readline()
            stop = size if i == count else file.tell()
            yield Piece(start, stop, before)
            if i < count:
                file.seek(start)
                lines_between = sum(file.read(min(_CHUNK, stop - at)).count(b"\n") for at in range(start, stop, _CHUNK))
                before += lines_between
            start = stop


class _Part(io.RawIOBase):
    """One piece as a separate file."""

    def __init__(self, path: Path, piece: Piece) -> None:
        super().__init__()
        self._file, self._piece = path.open("rb", buffering=0), piece
        self._file.seek(piece.start)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell() - self._piece.start

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: self._piece.start, os.SEEK_CUR: self._file.tell(), os.SEEK_END: self._piece.stop}[whence]
        return self._file.seek(base + offset) - self._piece.start

    def read(self, size: int = -1) -> bytes:
        remaining = max(self._piece.stop - self._file.tell(), 0)
        return self._file.read(remaining if size < 0 else min(size, remaining)) or b""

    def close(self) -> None:
        self._file.close()
        super().close()


class _Pieces(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """The pieces by their number, as DuckDB opens files of Python."""

    protocol = _PROTOCOL
    cachable = False

    def __init__(self, path: Path, pieces: Sequence[Piece]) -> None:
        super().__init__()
        self._path, self._pieces = path, pieces

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        name = self._strip_protocol(path)
        piece = self._pieces[int(name)]
        return {"name": name, "size": piece.stop - piece.start, "type": "file"}

    def glob(self, path: str, **_: Any) -> list[str]:
        return [self._strip_protocol(path)]

    def modified(self, path: str) -> Any:  # noqa: ARG002
        return self._path.stat().st_mtime

    def _open(self, path: str, mode: str = "rb", **_: Any) -> _Part:  # noqa: ARG002
        return _Part(self._path, self._pieces[int(self._strip_protocol(path))])


# --------------------------------------------------------------------------------------------------------------------
# Lines of a recognised file as rows of text, and the numbers of those that do not split into its columns.
#
# Everything is read as text: what a cell means is for those who select from ``raw``. No line is lost: rows and broken
# lines are held against the number of lines in the file. DuckDB numbers rows only where it reads with one thread, so
# each piece is numbered by itself, and its rows go on from the lines before it.


_BLANK = "line IS NULL OR trim(line) = ''"


def open_raw(connection: duckdb.DuckDBPyConnection, recognised: Recognised, most: int = 1) -> list[Piece]:
    """Make the view ``raw`` of the file in at most so many pieces: its columns as text, blank as null, ``source_row``.

    ``source_row`` counts the rows that can be read; ``source_rows`` makes of it the place in the file.
    """
    pieces = cut(recognised, most)
    names = serve(connection, recognised.path, pieces)
    if recognised.layout.stops:
        (name,) = names
        options = {
            "header": "false",
            "delim": "'\\x01'",
            "quote": "''",
            "escape": "''",
            "columns": "{'line': 'VARCHAR'}",
        }
        placed_lines = f"SELECT line, row_number() OVER () AS place FROM {_read_csv(recognised, name, **options)}"
        connection.execute(f"CREATE OR REPLACE TEMP VIEW placed_lines AS {placed_lines}")
        stops = recognised.layout.stops
        cells = ", ".join(
            f"nullif(trim(substr(line, {start + 1}, {stop - start})), '') AS \"{name}\""
            for name, start, stop in zip(recognised.columns, (0, *stops[:-1]), stops, strict=True)
        )
        condition = f"NOT ({_BLANK}) AND {_fits(recognised)}"
        fixed_width = f"SELECT {cells}, row_number() OVER () AS source_row FROM placed_lines WHERE {condition}"
        parts = [fixed_width]
    else:
        parts = [
            _delimited(recognised, piece, name, i) for i, (piece, name) in enumerate(zip(pieces, names, strict=True))
        ]
    rows = " UNION ALL ".join(parts)
    if recognised.layout is SUBMISSION:
        # what identifies a loan or a person is in this view alone, which nothing reads but SQL of the layout
        connection.execute(f"CREATE OR REPLACE TEMP VIEW fields AS {submission.filed(rows, recognised.sheet)}")
        repeated = repeated_rows("FROM fields", submission.FIELDS)
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {REPEATED} AS {repeated}")
        rows = submission.view(judged("FROM fields", submission.FIELDS), recognised.sheet)
    connection.execute(f"CREATE OR REPLACE TEMP VIEW raw AS {rows}")
    return pieces


def broken_rows(
    connection: duckdb.DuckDBPyConnection, recognised: Recognised, pieces: Sequence[Piece], rows: int
) -> NDArray[np.int64]:
    """Numbers of the rows, from 1, that do not split into the columns; ``rows`` is the number of rows of ``raw``.

    ``raw`` has to have been read to its end.

    Raises:
        DataQualityError: rows and broken lines together are not the lines of the file, as with a quote left open.
    """
    if recognised.layout.stops:
        queries = [f"SELECT place AS broken FROM placed_lines WHERE NOT ({_BLANK}) AND NOT {_fits(recognised)}"]
    else:
        queries = [
            f"SELECT DISTINCT line + {piece.before - piece.header} AS broken FROM {_rejects(i)}"
            for i, piece in enumerate(pieces)
        ]
    broken_places = np.concatenate(
        [connection.execute(query).fetchnumpy()["broken"].astype(np.int64) for query in queries]
    )
    expected = recognised.lines - recognised.header
    if rows + len(broken_places) not in (expected, expected - _blank_lines(recognised)):
        raise DataQualityError(
            f"{recognised.path.name} has {expected:,} lines below its header, "
            f"and {rows + len(broken_places):,} can be "
            "separated: a quote is left open, or a cell goes over several lines; correct the file or fetch it again"
        )
    return np.sort(broken_places)


def source_rows(places: NDArray[np.int64], pieces: Sequence[Piece], broken: NDArray[np.int64]) -> NDArray[np.int64]:
    """``(n,)`` places in the file, from 1, of rows by their number in ``raw``: broken lines take up places, too."""
    out = places.copy()
    bounds = [*(piece.before for piece in pieces), np.iinfo(np.int64).max]
    for low, high in pairwise(bounds):
        in_piece, missing = (places > low) & (places <= high), broken[(broken > low) & (broken <= high)]
        readable_before = missing - np.arange(1, len(missing) + 1)
        out[in_piece] += np.searchsorted(readable_before, places[in_piece] - 1, side="right")
    return out


def _blank_lines(recognised: Recognised) -> int:
    with gzip.open(recognised.path) if recognised.compression == "gzip" else recognised.path.open("rb") as file:
        return sum(not line.strip() for line in file)


def _rejects(index: int) -> str:
    return f"broken_lines_{index}"


def _read_csv(recognised: Recognised, name: str, **options: str) -> str:
    settings = {
        "auto_detect": "false",
        "encoding": literal(recognised.encoding),
        "compression": literal(recognised.compression),
        "new_line": literal(recognised.line_end.replace("\r", "\\r").replace("\n", "\\n")),
        "nullstr": "''",
        **options,
    }
    return f"read_csv({literal(name)}, {', '.join(f'{key} = {value}' for key, value in settings.items())})"


def _delimited(recognised: Recognised, piece: Piece, name: str, index: int) -> str:
    columns = ", ".join(f"{literal(column)}: 'VARCHAR'" for column in recognised.columns)
    table = _read_csv(
        recognised,
        name,
        header=str(piece.header).lower(),
        delim=literal(recognised.delimiter),
        quote=literal("" if recognised.layout is SUBMISSION else '"'),
        escape=literal("" if recognised.layout is SUBMISSION else '"'),
        columns="{" + columns + "}",
        store_rejects="true",
        rejects_table=literal(_rejects(index)),
        rejects_scan=literal(f"{_rejects(index)}_scan"),
        rejects_limit="0",
    )
    return f"SELECT *, row_number() OVER () + {piece.before} AS source_row FROM {table}"


def _fits(recognised: Recognised) -> str:
    """Whether a line is as long as a record, with the blanks of an empty last cell or without what is behind it."""
    stop = recognised.layout.stops[-1]
    return f"(length(line) = {stop} OR length(rtrim(line)) = {stop})"


# --------------------------------------------------------------------------------------------------------------------
# Holds a converted file against the declaration of its table, by the same suite as the boundary of a stage.
#
# A row that breaks a rule is a fault of ours here, and the file is not published.


def check(file: Path, declared: Table) -> None:
    """Check a Parquet file against the declaration of its rows.

    Raises:
        SuiteError: it does not keep it; the column, the rule and the number of rows are named.
        InfrastructureError: an expectation could not be evaluated.
    """
    import pyarrow.dataset as pads  # loads pandas

    from tasks.pipeline.validation import validate  # loads Great Expectations
    from tasks.pipeline.validation.rows import UNIQUE

    for outcome in validate(pads.dataset(file, format="parquet"), declared):
        if not outcome.success:
            broken = "share their value with another" if outcome.expectation == UNIQUE else "break its declaration"
            rule = outcome.expectation.removeprefix("expect_").replace("_", " ")
            of = f"{declared.name}.{outcome.column}"
            raise SuiteError(f"{of}: {outcome.unexpected:,} rows {broken} ({rule}); nothing is published")


# --------------------------------------------------------------------------------------------------------------------
# Converts a recognised file of any size to the canonical table as validated Parquet, with a table of refusals.
#
# DuckDB streams: once over the file where every row is an application, and once more for those that are not. Nothing is
# lost: rows in are rows written plus rows refused, by reason, and what is written is held against its declaration
# before it gets its name. Scope: that order and the counts. What becomes of a cell: ``canonical``.


APPLICATIONS_FILE, REFUSALS_FILE = "applications.parquet", "refusals.parquet"
EDITS_FILE = "edits.json"
"""Of a lender's own submission: its edits as a suite of expectations, and their result."""
_NAMED_ROWS = 10
"""Rows named for an edit; all are counted, and each has its own edits in ``failed_edits``."""
_MEMORY = "1200MB"
"""Of DuckDB; Python and what DuckDB does not count need some more, and 2 GB is what may be used."""
_MOST_THREADS = 4
"""Each holds a group of rows until it is written."""
_ROW_GROUP = 65_536


@dataclass(frozen=True)
class Converted:
    """What became of the rows of a file: ``rows_in`` are ``rows`` written and all that are ``refused``."""

    rows_in: int
    rows: int
    refused: Mapping[str, int]
    """Reason -> rows."""
    years: Mapping[int, int]
    """Year of activity -> rows; empty where the file does not say."""
    unknown_codes: Mapping[str, Mapping[str, int]]
    """Column -> code that no filing guide lists -> rows; the column is null in them."""
    flags: Mapping[str, int]
    """Sign of a wrong unit -> rows."""
    filled: Mapping[str, int] = field(default_factory=dict)
    """Column with unknown codes -> rows in which the file has anything there."""
    faults: tuple["Fault", ...] = ()
    """Refused rows by reason and column."""
    zeros: Mapping[str, int] = field(default_factory=dict)
    """Column of an amount -> rows in which it is 0, which is kept."""
    edits: Mapping[str, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    """Number of an edit that rows of a submission fail -> how many, and the numbers of the first of them."""


@dataclass(frozen=True)
class Fault:
    """Rows that were refused for one reason by one column."""

    reason: str
    column: str | None
    rows: int
    example: str | None
    """What stands in one of them."""


def convert(recognised: Recognised, target: Path) -> Converted:
    """Write ``target/applications.parquet`` and ``target/refusals.parquet``; existing files are overwritten.

    Memory stays below 2 GB whatever the size of the file; what does not fit goes to disk inside of ``target``.

    Raises:
        DataQualityError: the lines of the file cannot be told apart.
        InfrastructureError: memory or disk is not enough, or the file cannot be read.
    """
    draft, refusals = target / f".{APPLICATIONS_FILE}", target / f".{REFUSALS_FILE}"
    try:
        target.mkdir(parents=True, exist_ok=True)
        with _connected(target, recognised.layout is SUBMISSION) as connection:
            pieces = open_raw(connection, recognised, _threads())
            query = select(recognised)
            rows = _written(connection, f"SELECT * EXCLUDE (refusal) FROM ({query}) WHERE refusal IS NULL", draft)
            all_fit = rows == recognised.lines - recognised.header
            refused = _written(connection, _NONE_REFUSED if all_fit else _REFUSED.format(query), refusals)
            broken = broken_rows(connection, recognised, pieces, rows + refused)
            submission.check_entries(recognised.path.name, recognised.sheet, rows + refused + len(broken))
            if len(broken):
                _renumber(draft, pieces, broken)
                _renumber(refusals, pieces, broken)
                _add_broken(connection, refusals, broken)
            check(draft, HMDA_APPLICATIONS)
            check(refusals, HMDA_REFUSALS)
            reasons = _counts(connection, refusals, "reason")
            unknown, flags = _unknown_codes(connection, draft), _flags(connection, draft)
            years = _counts(connection, draft, "activity_year")
            filled, faults = _filled(connection, draft, unknown), _faults(connection, refusals)
            edits = _edits(connection, draft, target) if recognised.layout is SUBMISSION else {}
            counts = ", ".join(f"count_if({name} = 0)" for name in _AMOUNTS)
            (amounts,) = connection.execute(f"SELECT {counts} FROM {parquet(draft)}").fetchall()
            zeros = {name: of_column for name, of_column in zip(_AMOUNTS, amounts, strict=True) if of_column}
            converted = Converted(
                rows + sum(reasons.values()), rows, reasons, years, unknown, flags, filled, faults, zeros, edits
            )
        refusals.replace(target / REFUSALS_FILE)
        draft.replace(target / APPLICATIONS_FILE)
    except (duckdb.OutOfMemoryException, duckdb.IOException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InfrastructureError(f"{recognised.path.name} could not be converted in {target}: {reason}") from error
    finally:
        if target.is_dir():
            draft.unlink(missing_ok=True)
            refusals.unlink(missing_ok=True)
    return converted


def _threads() -> int:
    return min(threads(), _MOST_THREADS)


@contextmanager
def _connected(target: Path, has_edits: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection for a conversion; where rows are judged by edits, their conditions are run as they are written."""
    spill = target / ".spill"
    settings: dict[str, Setting] = {
        "memory_limit": _MEMORY,
        "temp_directory": str(spill),
        "threads": _threads(),
        "preserve_insertion_order": False,  # rows carry their numbers; to keep their order would cost memory
        "autoinstall_known_extensions": False,
        # to rewrite the conditions of so many edits takes seconds, and they run no faster
        **({"disabled_optimizers": "expression_rewriter"} if has_edits else {}),
    }
    try:
        with connected(settings) as connection:
            yield connection
    finally:
        shutil.rmtree(spill, ignore_errors=True)


_REFUSED = (
    'SELECT source_row, refusal.reason AS reason, refusal."column" AS "column", refusal.detail AS detail '
    "FROM ({}) WHERE refusal IS NOT NULL ORDER BY source_row"
)
"""The rows that are no applications, over what ``select`` gives. All rows may be such: they are streamed, too."""
_NONE_REFUSED = "SELECT 1::BIGINT AS source_row, '' AS reason, '' AS \"column\", '' AS detail WHERE false"


def _written(connection: duckdb.DuckDBPyConnection, query: str, draft: Path) -> int:
    """Write what a query gives; returns how many rows that is."""
    copied = connection.execute(
        f"COPY ({query}) TO {literal(str(draft))} (FORMAT parquet, ROW_GROUP_SIZE {_ROW_GROUP})"
    ).fetchone()
    return int(copied[0]) if copied else 0


def _add_broken(connection: duckdb.DuckDBPyConnection, refusals: Path, broken: NDArray[np.int64]) -> None:
    """Put the broken lines among the other refusals, by their place in the file."""
    extended = refusals.with_name(f"{refusals.name}.more")
    connection.register("broken", pa.table({"source_row": broken}))
    malformed_rows = (
        f"SELECT source_row, {literal(Refusal.MALFORMED_LINE)} AS reason, NULL::VARCHAR, NULL::VARCHAR FROM broken"
    )
    try:
        _written(
            connection, f"FROM (FROM {parquet(refusals)} UNION ALL {malformed_rows}) ORDER BY source_row", extended
        )
        extended.replace(refusals)
    finally:
        extended.unlink(missing_ok=True)


def _renumber(draft: Path, pieces: Sequence[Piece], broken: NDArray[np.int64]) -> None:
    """Give the rows of a draft their places in the file, which has broken lines among them."""
    numbered = draft.with_name(f"{draft.name}.numbered")
    try:
        with pq.ParquetFile(draft) as file, pq.ParquetWriter(numbered, file.schema_arrow) as writer:
            for group in range(file.num_row_groups):
                table = file.read_row_group(group)
                rows = source_rows(table["source_row"].to_numpy(), pieces, broken)
                writer.write_table(table.set_column(0, file.schema_arrow.field(0), pa.array(rows)))
        numbered.replace(draft)
    finally:
        numbered.unlink(missing_ok=True)


def _counts(connection: duckdb.DuckDBPyConnection, draft: Path, column: str) -> dict[Any, int]:
    """Value of a column -> rows; those without one do not count."""
    name = quoted(column)
    return dict(
        connection.execute(
            f"SELECT {name}, count(*) FROM {parquet(draft)} WHERE {name} IS NOT NULL GROUP BY ALL ORDER BY ALL"
        ).fetchall()
    )


def _unknown_codes(connection: duckdb.DuckDBPyConnection, draft: Path) -> dict[str, dict[str, int]]:
    code_counts = connection.execute(
        f"SELECT each.key, each.value ->> '$', count(*) FROM {parquet(draft)}, json_each(unknown_codes) AS each "
        "WHERE unknown_codes IS NOT NULL GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    out: dict[str, dict[str, int]] = {}
    for column, code, rows in code_counts:
        out.setdefault(column, {})[code] = rows
    return out


def _filled(
    connection: duckdb.DuckDBPyConnection, draft: Path, unknown: Mapping[str, Mapping[str, int]]
) -> dict[str, int]:
    """Rows with a value, known or unknown, of each column with unknown codes."""
    if not unknown:
        return {}
    counts = ", ".join(f"count({quoted(name)})" for name in unknown)
    ((*readable,),) = connection.execute(f"SELECT {counts} FROM {parquet(draft)}").fetchall()
    return {name: int(rows) + sum(unknown[name].values()) for name, rows in zip(unknown, readable, strict=True)}


def _faults(connection: duckdb.DuckDBPyConnection, refusals: Path) -> tuple[Fault, ...]:
    rows = connection.execute(
        f'SELECT reason, "column", count(*), min(detail) FROM {parquet(refusals)} GROUP BY ALL ORDER BY 3 DESC, 1, 2'
    ).fetchall()
    return tuple(Fault(*row) for row in rows)


def _edits(connection: duckdb.DuckDBPyConnection, draft: Path, target: Path) -> dict[str, tuple[int, tuple[int, ...]]]:
    """Hold the rows against the edits, as expectations, and write down what came of it."""
    import pyarrow.dataset as pads  # loads pandas

    from tasks.pipeline.validation import terms_listed  # loads Great Expectations

    words = {edit.number: edit.words for edit in EDITS}
    rows = pads.dataset(draft, format="parquet")
    counts, result = terms_listed(HMDA_APPLICATIONS.name, rows, "failed_edits", words)
    (target / EDITS_FILE).write_text(json.dumps(result, indent=1) + "\n")
    if not counts:
        return {}
    numbers = dict(
        connection.execute(
            f"SELECT number, list(source_row ORDER BY source_row)[:{_NAMED_ROWS}] FROM (SELECT source_row, "
            f"unnest(string_split(failed_edits, ',')) AS number FROM {parquet(draft)}) GROUP BY number"
        ).fetchall()
    )
    return {number: (rows_of, tuple(numbers[number])) for number, rows_of in counts.items()}


def _flags(connection: duckdb.DuckDBPyConnection, draft: Path) -> dict[str, int]:
    return dict(
        connection.execute(
            "SELECT flag, count(*) FROM (SELECT unnest(string_split(unit_flag, ',')) AS flag "
            f"FROM {parquet(draft)} WHERE unit_flag IS NOT NULL) GROUP BY ALL ORDER BY ALL"
        ).fetchall()
    )


# --------------------------------------------------------------------------------------------------------------------
# Schema report: departures of a file from its layout, and what its layout cannot give, one line each.
#
# Nothing here decides about rows: the policy of an audit's spec does.


Departure = Literal[
    "lacking_column",
    "missing_column",
    "unknown_column",
    "other_order",
    "no_header",
    "unknown_code",
    "unread_cells",
    "malformed_line",
    "refused_row",
    "failed_edit",
    "unit_error",
    "kept_zero",
]
Severity = Literal["note", "warning", "error"]
"""A note costs nothing; a warning means that something is not there or not known; an error, that rows are lost."""


_POLICY = HmdaPolicy()


class Finding(BaseModel):
    """One departure."""

    model_config = ConfigDict(frozen=True)

    kind: Departure
    severity: Severity
    column: str | None = None
    code: str | None = None
    rows: int = 0
    of: int = 0
    """Of unread cells: how many are filled in; of rows that are refused for one that is no number: all rows."""
    policy: Treatment = "accept"
    """What an audit does about it where its spec names the column and sets no policy."""
    text: str

    @property
    def emptied(self) -> bool:
        """Whether more of a column could not be read than may be."""
        return self.kind in ("unread_cells", "refused_row") and 0 < _MOST_UNREAD * self.of < self.rows


_AMOUNTS = ("income_usd", "loan_amount_usd", "property_value_usd")
"""Columns in which a 0 is read as a number, and may stand for a blank cell."""
_MOST_UNREAD = 0.05
"""Of the cells of a column that are filled in."""
_HINTS = (
    (r"-?\d(\.\d+)?[eE]\+\d+", "a spreadsheet shortened them, and what is gone is in the delivered file alone"),
    (r"(?i)null|nan|none|n/a|#n/a|<na>", "a program's word for nothing: HMDA has NA, or nothing"),
    (r"0(\.0)?", "0 is no code of it: where it stands for a blank cell, leave the cell blank"),
)
"""Pattern of what stands in cells that are not read -> what became of them."""


class SchemaReport(BaseModel):
    """What was found in one file."""

    model_config = ConfigDict(frozen=True)

    layout: str
    delimiter: str
    encoding: str
    columns: int
    rows_in: int
    rows: int
    refused: Mapping[str, int]
    amounts: Literal["exact", "midpoints", "thousands"] = "midpoints"
    """How amounts of loans and values of properties are filed; midpoints are those of bands of 10,000 dollars."""
    lender: str = ""
    """Of a submission: the name on its transmittal sheet."""
    findings: tuple[Finding, ...]


def report_on(recognised: Recognised, converted: Converted) -> SchemaReport:
    """The report on a file: its columns, its rows, and what is missing from its layout."""
    return SchemaReport(
        layout=recognised.layout.name,
        delimiter=recognised.delimiter,
        encoding=recognised.encoding,
        columns=len(recognised.columns),
        rows_in=converted.rows_in,
        rows=converted.rows,
        refused=dict(converted.refused),
        amounts=_amounts(recognised),
        lender=recognised.sheet.lender if recognised.sheet else "",
        findings=(*_of_columns(recognised), *_of_rows(converted), *_lacks(recognised)),
    )


def _of_columns(recognised: Recognised) -> Iterator[Finding]:
    layout = recognised.layout
    for name in recognised.missing:
        text = f"layout {layout.name} has the column {name!r}, and the file has not"
        yield Finding(kind="missing_column", severity="warning", column=name, policy=_POLICY.missing_columns, text=text)
    for name in recognised.unknown:
        use = "it can be named in the spec as it is"
        if name in CANONICAL:
            use = "a canonical column of that name is not taken from it unless it means the same; rename it to name it"
        text = f"layout {layout.name} has no column {name!r}; {use}"
        yield Finding(kind="unknown_column", severity="warning", column=name, policy=_POLICY.unknown_columns, text=text)
    expected = [name for name in layout.columns if name in recognised.columns]
    if [name for name in recognised.columns if name in layout.columns] != expected:
        yield Finding(kind="other_order", severity="note", text="the columns come in another order; they go by name")
    if layout.header and not recognised.header:
        yield Finding(kind="no_header", severity="note", text="no header; the columns go by their number and place")


def _amounts(recognised: Recognised) -> Literal["exact", "midpoints", "thousands"]:
    if recognised.layout is SUBMISSION:
        return "exact"
    return "midpoints" if recognised.layout.family == "modern" else "thousands"


def _of_rows(converted: Converted) -> Iterator[Finding]:
    for column, codes in converted.unknown_codes.items():
        yield _unread(column, codes, converted.filled[column])
        for code, rows in codes.items():
            text = f"{column} is {code!r}, which no filing guide lists"
            form: dict[str, Any] = {"column": column, "code": code, "rows": rows, "policy": _POLICY.unknown_codes}
            yield Finding(kind="unknown_code", severity="warning", text=text, **form)
    for fault in converted.faults:
        broken = fault.reason == Refusal.MALFORMED_LINE
        what = "could not be split into columns" if broken else "are no applications"
        where = f" in {fault.column}" if fault.column else ""
        example = f", such as {fault.example!r}" if fault.example else ""
        text = f"{fault.rows:,} rows {what}, and are refused: {fault.reason}{where}{example}"
        no_number = fault.reason == Refusal.NOT_A_NUMBER
        text += f": {_hint(fault.example, 'correct these cells')}" if no_number and fault.example else ""
        kind: Departure = "malformed_line" if broken else "refused_row"
        form = {"column": fault.column, "rows": fault.rows, "policy": "quarantine", "text": text}
        form["of"] = converted.rows_in if no_number else 0
        yield Finding(kind=kind, severity="error", **form)
    words = {edit.number: edit.words for edit in EDITS}
    for number, (rows, places) in converted.edits.items():
        named = ", ".join(map(str, places)) + (", ..." if rows > len(places) else "")
        row_words = "1 row" if rows == 1 else f"{rows:,} rows"
        text = f"edit {number} fails in {row_words} ({named}): {words[number]}"
        yield Finding(kind="failed_edit", severity="warning", code=number, rows=rows, text=text)
    for column, rows in converted.zeros.items():
        text = f"{column} is 0 in {'1 row' if rows == 1 else f'{rows:,} rows'}, kept as a number: HMDA has NA for none"
        yield Finding(kind="kept_zero", severity="warning", column=column, rows=rows, text=text)
    for rule, rows in converted.flags.items():
        if rows:
            text = f"{rows:,} rows look as if in another unit: {rule}; they are kept and flagged"
            yield Finding(kind="unit_error", severity="warning", rows=rows, text=text)


def _unread(column: str, codes: Mapping[str, int], filled: int) -> Finding:
    """One line on the cells of a column that are filled in and could not be read."""
    rows, usual = sum(codes.values()), max(codes, key=lambda code: codes[code])
    hint = _hint(usual, "no filing guide lists them")
    text = f"{rows:,} of {filled:,} cells of {column} are not read, such as {usual!r}: {hint}"
    severity: Severity = "error" if rows > _MOST_UNREAD * filled else "warning"
    form: dict[str, Any] = {"column": column, "rows": rows, "of": filled, "policy": _POLICY.unknown_codes}
    return Finding(kind="unread_cells", severity=severity, text=text, **form)


def _hint(cell: str, otherwise: str) -> str:
    """What became of a cell that is not read."""
    return next((words for pattern, words in _HINTS if re.fullmatch(pattern, cell)), otherwise)


def _lacks(recognised: Recognised) -> Iterator[Finding]:
    first, last = recognised.layout.years
    years = f"{first} and later" if last > first + 100 else f"{first} to {last}"
    for name in lacking(recognised):
        if name in SUBMITTED and not recognised.restricted:  # no published file has any of them
            continue
        text = f"this file of layout {recognised.layout.name} ({years}) says nothing of {name}"
        yield Finding(kind="lacking_column", severity="note", column=name, text=text)
