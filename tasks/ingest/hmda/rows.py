"""HMDA rows laid out for DuckDB, from a file or a sorted vintage."""

# ruff: noqa: S608 what goes into the SQL is quoted, or a name of ours

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.audit.partition import ALL, Part
from schemas.audit.source import Source
from schemas.bounds import canonical
from schemas.errors import DataQualityError, InfrastructureError, SpecError, nearest
from schemas.tables.hmda import EXEMPT_CODE, SUBMITTED
from schemas.terms import Refusal
from tasks.ingest.hmda.canonical import (
    CANONICAL,
    DERIVED,
    SQL_TYPES,
    lacking,
    listed,
    literal,
    parquet,
    quoted,
)
from tasks.ingest.hmda.conversion import broken_rows, open_raw, source_rows
from tasks.ingest.hmda.layouts import Recognised, recognise
from tasks.ingest.sources import files, raw
from tasks.ingest.sources.raw import Laid, Unread
from tasks.lake.local_directory import BESIDE
from tasks.lake.storage import connected

if TYPE_CHECKING:
    import duckdb


# --------------------------------------------------------------------------------------------------------------------
# The rows of a vintage as they lie on the disk: one file, or files by state that are sorted by lender.
#
# Scope: finding and naming them. How they are written: ``tasks.ingest.vintages.sorting``.


SORTED: Final = "applications"
"""Directory of sorted rows: ``state=TX/part-0.parquet`` and so on."""
LENDERS_FILE: Final = "lenders.parquet"
"""Beside it."""
LENDER: Final = "lender_id"
"""Column by which the rows are sorted."""


def is_sorted(rows: Path) -> bool:
    """Whether a path is the directory of a vintage's rows."""
    return rows.name == SORTED and rows.is_dir() and any(rows.glob("state=*/*.parquet"))


def files_of(rows: Path) -> list[Path]:
    """The Parquet files of rows: one, or those of a directory."""
    return sorted(rows.glob("*/*.parquet")) if rows.is_dir() else [rows]


def located(source: Source) -> list[Path]:
    """The files of a source; a sorted vintage is the directory of its rows, also under its name before it was sorted.

    Raises:
        InfrastructureError: one is not there or cannot be read.
        SpecError: one is another directory, a FIFO or a device.
    """
    paths = [_now(Path(path)) for path in source.paths]
    plain = tuple(str(path) for path in paths if not is_sorted(path))
    if plain:
        files.locate(source.model_copy(update={"path": plain}))
    return paths


def _now(path: Path) -> Path:
    """Where the rows of a vintage lie that a run read in one file, and that were sorted since."""
    since = path.parent / BESIDE / SORTED
    return since if path.name == f"{SORTED}.parquet" and not path.exists() and is_sorted(since) else path


def table_of(rows: Path, part: Part | None = None) -> str:
    """Rows as a table of SQL, which has at least those of a part: of a lender, the files of its states alone.

    Whoever asks for a part still says so in a predicate: other lenders are in the same files.
    """
    if part is None or part.column != LENDER or not rows.is_dir() or not rows.with_name(LENDERS_FILE).is_file():
        return _whole(rows, parquet(rows))
    is_lender = pc.field(LENDER) == part.value
    lender_states = pq.read_table(
        rows.with_name(LENDERS_FILE), columns=["states"], filters=is_lender, partitioning=None
    )
    states = {f"state={state}" for text in lender_states["states"].to_pylist() for state in text.split(",")}
    files = [file for file in files_of(rows) if file.parent.name in states]
    table = f"read_parquet({listed(map(str, files))}, hive_partitioning = false)" if files else parquet(rows)
    return _whole(rows, table)


def _whole(rows: Path, table: str) -> str:
    """The same with the columns that a vintage of an earlier release does not have, which are null in it."""
    column_names = set(pq.read_schema(files_of(rows)[0]).names)
    later = [f"NULL::{SQL_TYPES[CANONICAL[name].type]} AS {name}" for name in SUBMITTED if name not in column_names]
    return f"(SELECT *, {', '.join(later)} FROM {table})" if later else table


# --------------------------------------------------------------------------------------------------------------------
# An open HMDA file as canonical applications: those of a vintage, or of a file that is converted here.
#
# Both are the same from here on, a Parquet file with its refusals beside it. What is done about departures from a
# layout is in ``reading``.


@dataclass(frozen=True)
class OpenFile:
    """An open file."""

    name: str
    """As it was given."""
    rows: Path
    """The applications: a file, or the directory of a sorted vintage; ``refusals.parquet`` lies beside it."""
    recognised: Recognised | None
    """None of a vintage."""
    connection: "duckdb.DuckDBPyConnection"

    def table(self, part: Part | None = None) -> str:
        """The applications as a table of SQL; of a lender's part at least the lender's."""
        return table_of(self.rows, part)

    @property
    def own(self) -> tuple[str, ...]:
        """Columns that the file's layout does not know; a vintage has none."""
        return () if self.recognised is None else _own(self.recognised)

    def given(self) -> set[str]:
        """Canonical columns in which some row has a value."""
        return _with_values(self.rows)

    def unread(self) -> list[Unread]:
        """Rows of the file that are no applications, in its order.

        Raises:
            InfrastructureError: a vintage's refusals do not lie beside its applications.
        """
        file = self.rows.with_name("refusals.parquet")
        if not file.is_file():
            raise InfrastructureError(
                f"there is no {file.name} in the folder of {self.rows}, and refused rows would be missing: give "
                "the file in the vintage's own folder"
            )
        table = pq.read_table(file).sort_by("source_row").to_pylist()
        return [Unread(row["source_row"], Refusal(row["reason"]), row["column"], row["detail"]) for row in table]

    def own_column(self, name: str) -> dict[int, str]:
        """Number of the row in the file -> cell of a column that its layout does not know."""
        if self.recognised is None:
            raise ValueError("a vintage has canonical columns alone")
        pieces = open_raw(self.connection, self.recognised)
        cells = self.connection.sql(
            f"SELECT source_row, coalesce({quoted(name)}, '') AS cell FROM raw"
        ).to_arrow_table()
        broken = broken_rows(self.connection, self.recognised, pieces, cells.num_rows)
        numbers = source_rows(cells["source_row"].to_numpy(), pieces, broken)
        return dict(zip(numbers.tolist(), cells["cell"].to_pylist(), strict=True))


def columns_of(path: Path, rename: Mapping[str, str]) -> tuple[set[str], tuple[str, ...]]:
    """The canonical columns that a file gives, and its own that its layout does not know; nothing is converted for it.

    ``rename`` is that of ``recognise``.

    Raises:
        DataQualityError: no known layout, or a Parquet file of another table.
        InfrastructureError: it cannot be read.
    """
    if _is_parquet(path):
        _check_canonical(path)
        return _with_values(path), ()
    with TemporaryDirectory(prefix="evenhand-hmda-") as scratch:
        recognised = recognise(path, Path(scratch), rename=rename)
        return set(CANONICAL) - set(lacking(recognised)), _own(recognised)


@contextmanager
def open_file(path: Path, rename: Mapping[str, str] | None = None) -> Iterator[OpenFile]:
    """A file, as long as it is open; what was converted or unpacked of it is gone afterwards.

    ``rename`` is that of ``recognise``.

    Raises:
        DataQualityError: no known layout, a Parquet file of another table, or a file that cannot be read to its end.
        InfrastructureError: it cannot be read, or the disk for temporary files is full.
    """
    from tasks.ingest.hmda.conversion import APPLICATIONS_FILE, convert

    with (
        TemporaryDirectory(prefix="evenhand-hmda-") as scratch,
        connected() as connection,
    ):
        if _is_parquet(path):
            _check_canonical(path)
            yield OpenFile(path.name, path, None, connection)
            return
        recognised = recognise(path, Path(scratch), rename=rename)
        convert(recognised, Path(scratch))
        yield OpenFile(path.name, Path(scratch) / APPLICATIONS_FILE, recognised, connection)


def _is_parquet(path: Path) -> bool:
    if is_sorted(path):
        return True
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def _own(recognised: Recognised) -> tuple[str, ...]:
    return tuple(name for name in recognised.unknown if name not in CANONICAL)


def _with_values(path: Path) -> set[str]:
    """Columns of Parquet files that are not null in every row, by the counts that they keep."""
    return {name for file in files_of(path) for name in _with_values_of(file, file.stat().st_mtime_ns)}


@cache
def _with_values_of(file: Path, written: int) -> frozenset[str]:  # noqa: ARG001 a file written anew is another
    meta = pq.ParquetFile(file).metadata
    groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
    chunks = [(group.num_rows, group.column(i)) for group in groups for i in range(group.num_columns)]
    return frozenset(c.path_in_schema for n, c in chunks if c.statistics is None or c.statistics.null_count < n)


def _check_canonical(path: Path) -> None:
    try:
        column_names = set(pq.read_schema(files_of(path)[0]).names)
    except (OSError, pa.ArrowException) as error:
        raise InfrastructureError(f"{path.name} cannot be read: {error}") from error
    lacking = [name for name in CANONICAL if name not in column_names and name not in SUBMITTED]
    if lacking or path.stem != "applications":
        why = f"it has no column {lacking[0]!r}" if lacking else "a vintage's file is called applications.parquet"
        raise DataQualityError(
            f"{path.name} is no vintage of HMDA, {why}; `evenhand data add` makes one of a delivered file, and other "
            "Parquet files are of kind: parquet"
        )


# --------------------------------------------------------------------------------------------------------------------
# The rows of HMDA files laid out for DuckDB: the canonical columns that an audit names, as text.
#
# Where a file departs from its layout, the policy of the spec decides, here. What the columns mean is in ``canonical``.


_Key = tuple[Refusal, str]


@dataclass(frozen=True)
class _File:
    """One file: SQL of its rows without those that the policy refuses, and SQL of the refusals by reason and column."""

    name: str
    file: OpenFile
    where: str
    quarantined: dict[_Key, str]


@contextmanager
def lay(source: Source, columns: Sequence[str], connection: "duckdb.DuckDBPyConnection") -> Iterator[Laid]:
    """The named columns: what is missing or not applicable is empty, what need not be reported is Exempt.

    Codes are those of the canonical table, numbers give back the same number. Rows of a second file are numbered after
    those of the first; those of a partition have the numbers that they have in the year.

    Raises:
        DataQualityError: no known layout, rows of another year than the source is of, or a departure at which the
            policy says to stop.
        InfrastructureError: a file is not there.
    """
    with ExitStack() as stack:
        opened = []
        for path in located(placed(source)):
            file = stack.enter_context(open_file(path, source.rename))
            check_unknown_columns(file.name, file.own, source)
            opened.append(_opened(file, source, columns, connection))
        yield _laid(opened, source, columns, connection)


def placed(source: Source) -> Source:
    """A source with known files.

    Raises:
        SpecError: it names a vintage, and nobody has looked up its file.
    """
    if not source.paths:
        raise SpecError(
            "source.vintage names an edition that the lake holds: `evenhand backfill SPEC --years YEAR` looks it up; "
            "an audit of one file takes source.path",
            ("source", "vintage"),
        )
    return source


def check_unknown_columns(name: str, unknown: Sequence[str], source: Source) -> None:
    """Hold a file's own columns against the policy.

    Raises:
        DataQualityError: there are some, and the policy says to stop.
    """
    if unknown and source.policy.unknown_columns == "stop":
        raise DataQualityError(
            f"{name} has columns that its layout does not know: {', '.join(unknown)}; leave them out, or set "
            "source.policy.unknown_columns to quarantine or accept"
        )


def _opened(file: OpenFile, source: Source, columns: Sequence[str], connection: "duckdb.DuckDBPyConnection") -> _File:
    column_names = [*CANONICAL, *file.own]
    for name in columns:
        if name not in column_names:
            raise DataQualityError(f"{file.name} has no column {name!r}; {nearest(name, column_names)}")
    part = _part_of(source)
    where = f"WHERE {_is_part(part)}" if part is not None and part.column in CANONICAL else ""
    column = raw.COLUMNS[0]
    if source.year is not None and column not in source.keep:
        counts = connection.sql(
            f"SELECT {column}, count(*) FROM {file.table(_part_of(source))} {where} "
            f"GROUP BY {column} ORDER BY min(source_row)"
        ).fetchall()
        rows_by_year = {str(year): rows for year, rows in counts if year is not None}
        raw.year_of(file.name, column, rows_by_year, source.year)
    return _File(file.name, file, where, _quarantined(file, source, columns, where, connection))


def _laid(
    files: Sequence[_File], source: Source, columns: Sequence[str], connection: "duckdb.DuckDBPyConnection"
) -> Laid:
    keys = list(dict.fromkeys(key for source_file in files for key in source_file.quarantined))
    selects, unread, before = list[str](), list[Unread](), 0
    for number, source_file in enumerate(files):
        cells = [f"{_cell(source_file, name, source, number, connection)} AS c{i}" for i, name in enumerate(columns)]
        flags = [f"{source_file.quarantined.get(key, 'false')} AS q{i}" for i, key in enumerate(keys)]
        chosen = ", ".join([f"source_row + {before} AS place", *cells, *flags])
        selects.append(
            f"SELECT {chosen} FROM {source_file.file.table(_part_of(source))} AS applications {source_file.where}"
        )
        refused = source_file.file.unread() if _part_of(source) is None or len(files) > 1 else []
        unread += [replace(unread_row, row=before + unread_row.row) for unread_row in refused]
        if len(files) > 1:
            ((rows,),) = connection.sql(f"SELECT count(*) FROM {source_file.file.table()}").fetchall()
            before += rows + len(refused)
    numeric = frozenset(name for name in columns if name in CANONICAL and CANONICAL[name].type != "string")
    column_sets = numeric, _coded_as_compared(columns, source)
    source_view = Laid(" UNION ALL ".join(selects), tuple(columns), tuple(keys), unread, *column_sets)
    part = _part_of(source)
    if part is None:
        return source_view
    rows = source_view.rows
    if part.column not in CANONICAL:
        rows = f"SELECT * FROM ({rows}) WHERE c{source_view.columns.index(part.column)} = {literal(part.value)}"
    return replace(source_view, rows=rows, unread=())


def _part_of(source: Source) -> Part | None:
    return None if source.part is None or source.part.value == ALL else source.part


def _is_part(part: Part) -> str:
    """Whether a row is of the partition, so that row groups of others are not read."""
    if not part.value:
        return f"{quoted(part.column)} IS NULL"
    column = (
        quoted(part.column) if CANONICAL[part.column].type == "string" else f"CAST({quoted(part.column)} AS VARCHAR)"
    )
    return f"{column} = {literal(part.value)}"


def _coded_as_compared(columns: Sequence[str], source: Source) -> frozenset[str]:
    """Columns that hold nothing but codes; as it was filed, a code may be any text."""
    if source.policy.unknown_codes == "accept":
        return frozenset()
    coded = [name for name in columns if name in CANONICAL and CANONICAL[name].codes]
    return frozenset(name for name in coded if all(canonical(code) == code for code in CANONICAL[name].codes))


def _cell(of: _File, name: str, source: Source, number: int, connection: "duckdb.DuckDBPyConnection") -> str:
    """A column of the file as text: a canonical one, or its own that no layout knows."""
    if name in CANONICAL:
        column, value = CANONICAL[name], quoted(name)
        if EXEMPT_CODE in column.codes:
            return f"CASE {value} WHEN '{EXEMPT_CODE}' THEN 'Exempt' ELSE {_coded(name, source)} END"
        if column.codes:
            return _coded(name, source)
        exempt = f"exempt IS NOT NULL AND list_contains(string_split(exempt, ','), {literal(name)})"
        return f"CASE WHEN {exempt} THEN 'Exempt' ELSE coalesce(CAST({value} AS VARCHAR), '') END"
    cell_of, table = of.file.own_column(name), f"own_{number}_{of.file.own.index(name)}"
    rows, cells = pa.array(list(cell_of), pa.int64()), pa.array(list(cell_of.values()), pa.string())
    connection.register(table, pa.table({"source_row": rows, "cell": cells}))
    return f"(SELECT cell FROM {table} AS own WHERE own.source_row = applications.source_row)"


def _coded(name: str, source: Source) -> str:
    """A code; where the policy accepts those that no guide lists, as it was filed."""
    keys = (name, f"{name}_raw") if source.policy.unknown_codes == "accept" else ()
    filed = "".join(f", unknown_codes ->> {literal(_path(key))}" for key in keys)
    return f"coalesce({quoted(name)}{filed}, '')"


def _path(name: str) -> str:
    return f'$."{name}"'


def _unknown(name: str) -> str:
    """Whether the column, or one that it is made of, was filed with a code that no guide lists."""
    _, parts = DERIVED.get(name, (None, ()))
    paths = [_path(part) for part in (name, f"{name}_raw", *parts)]
    conditions = " OR ".join(f"json_exists(unknown_codes, {literal(path)})" for path in paths)
    return f"(unknown_codes IS NOT NULL AND coalesce({conditions}, false))"


def _quarantined(
    file: OpenFile, source: Source, columns: Sequence[str], where: str, connection: "duckdb.DuckDBPyConnection"
) -> dict[_Key, str]:
    """What the policy does: nothing, refusals, or an error."""
    out: dict[_Key, str] = {}
    policy = source.policy
    if policy.unknown_columns == "quarantine" and file.own:
        out[Refusal.UNKNOWN_COLUMN, file.own[0]] = "true"
    file_columns = file.given() if policy.missing_columns == "quarantine" else set(CANONICAL)
    out |= {
        (Refusal.MISSING_COLUMN, name): "true" for name in columns if name in CANONICAL and name not in file_columns
    }
    coded_columns = [name for name in columns if name in CANONICAL and policy.unknown_codes != "accept"]
    if not coded_columns:
        return out
    counts = ", ".join(f"count_if({_unknown(name)})" for name in coded_columns)
    (counted_rows,) = connection.sql(f"SELECT {counts} FROM {file.table(_part_of(source))} {where}").fetchall()
    for name, rows in zip(coded_columns, counted_rows, strict=True):
        if rows and policy.unknown_codes == "stop":
            raise DataQualityError(
                f"{rows:,} rows of {file.name} have a code of {name} that no filing guide lists: "
                "see the schema report, or set source.policy.unknown_codes to quarantine or accept"
            )
        if rows:
            out[Refusal.UNKNOWN_CODE, name] = _unknown(name)
    return out
