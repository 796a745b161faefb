"""Sources by kind in the audit spec, and digests of parts of a source."""

# ruff: noqa: S608 what goes into the SQL is quoted

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.audit.source import Source
from schemas.audit.spec import AuditSpec
from schemas.errors import DataQualityError, Location, SpecError, nearest
from tasks.ingest.applications import database
from tasks.ingest.sources.raw import COUNTED, Laid, counted, registered

if TYPE_CHECKING:
    import duckdb


# --------------------------------------------------------------------------------------------------------------------
# The sources by their kind in the audit spec.


def reader_of(source: Source) -> ModuleType:
    """The module that reads a source: ``digest``, ``header`` and ``read``; each module loads its libraries itself."""
    match source.kind:
        case "boston1990":
            from tasks.ingest.sources import boston

            return boston
        case "csv" | "parquet":
            from tasks.ingest.sources import files

            return files
        case "synthetic":
            from tasks.ingest.synthetic import source as synthetic

            return synthetic
        case "hmda":
            from tasks.ingest.hmda import source as hmda

            return hmda


def digest(source: Source) -> str:
    """sha256 of the bytes of a source; of a partition that of its rows, as they were counted, and no file is read."""
    return source.part.rows_sha256 if source.part is not None else str(reader_of(source).digest(source))


@contextmanager
def lay(source: Source, columns: Sequence[str], connection: "duckdb.DuckDBPyConnection") -> Iterator[Laid]:
    """The named columns as rows of SQL, as long as the source is open; of one partition where it names one."""
    if source.kind == "hmda":
        from tasks.ingest.hmda.rows import lay as lay_hmda

        with lay_hmda(source, columns, connection) as source_view:
            yield source_view
        return
    names = list(columns)
    if source.part is not None and source.part.column not in names:
        names.append(source.part.column)
    yield registered(reader_of(source).read(source, names), connection, source.part)


def check_columns(spec: AuditSpec) -> None:
    """Hold the columns that the spec names against the header of its source, before anything is run.

    Raises:
        SpecError: the source lacks one; it is named with its place in the spec and the nearest that exists. Or a
            derived column takes the name of one that the source has.
        DataQualityError: HMDA knows the column, and this file does not give it.
    """
    _check_restricted(spec)
    column_names: list[str] = reader_of(spec.source).header(spec.source)
    _check_derived(spec.source, column_names)
    column_names = [*column_names, *spec.source.derive]
    named: list[tuple[Location, str]] = [(("decision", "column"), spec.decision.column)]
    if spec.row_id:
        named.append((("row_id",), spec.row_id))
    if spec.by:
        named.append((("by", "column"), spec.by.column))
    if spec.outcome:
        named.append((("outcome", "column"), spec.outcome.column))
    for i, p in enumerate(spec.protected):
        named += [(("protected", i, "columns", j), column) for j, column in enumerate(p.columns)]
    named += [(("columns", name), name) for name in spec.kept()]
    named += [(("source", "keep", name), name) for name in spec.source.keep]
    if spec.source.year_column:
        named.append((("source", "year_column"), spec.source.year_column))
    for location, name in named:
        if name not in column_names and spec.source.kind == "hmda":
            _check_delivered(name)
        _check_known(name, column_names, location)


def _check_restricted(spec: AuditSpec) -> None:
    """A lender's own submission has exact ages, scores and amounts, so that small counts would tell of persons."""
    if spec.source.kind != "hmda" or spec.disclosure.profile != "public":
        return
    from tasks.ingest.hmda import source

    if source.restricted(spec.source):
        raise SpecError(
            "the source is a lender's own submission, of which `public` withholds too little: "
            "set disclosure.profile to strict",
            ("disclosure", "profile"),
        )


def unnamed_columns(spec: AuditSpec) -> tuple[str, ...]:
    """Columns of a user's own table that the spec does not name; those of HMDA and of made tables are known."""
    if spec.source.kind not in ("csv", "parquet"):
        return ()
    named = {spec.row_id, spec.decision.column, spec.source.year_column, *spec.columns, *spec.source.keep}
    named |= {spec.by.column} if spec.by else set()
    named |= {spec.outcome.column} if spec.outcome else set()
    named |= {column for p in spec.protected for column in p.columns}
    named |= {derived.column for derived in spec.source.derive.values()}
    return tuple(name for name in reader_of(spec.source).header(spec.source) if name not in named)


def _check_delivered(name: str) -> None:
    """Refuse a column that HMDA has in general and this file does not give."""
    from tasks.ingest.hmda import source

    if message := source.lacking(name):
        raise DataQualityError(message)


def _check_known(name: str, column_names: list[str], location: Location) -> None:
    if name not in column_names:
        hint = "; is source.delimiter right?" if len(column_names) == 1 else ""
        raise SpecError(f"the source has no column {name!r}; {nearest(name, column_names)}{hint}", location)


def _check_derived(source: Source, column_names: list[str]) -> None:
    """A derived column is made from a column of the source, and hides none of them."""
    for name, derived in source.derive.items():
        if name in column_names:
            message = f"the source has a column {name!r} already; give the derived one a name of its own"
            raise SpecError(message, ("source", "derive", name))
        _check_known(derived.column, column_names, ("source", "derive", name, "column"))


# --------------------------------------------------------------------------------------------------------------------
# Digests of the rows of a source by the values of a column: what identifies the run of a partition.
#
# A digest is of all columns of the source, those that no spec names among them, and of no row's place: rows that come
# before others change no digest but their own partition's.


_LENDER: Final = "lender_id"
_LENDERS: Final = "lenders.parquet"
"""Beside the rows of a vintage, where it was counted by lender."""


def part_digests(source: Source, column: str, spill: Path | None = None) -> pa.Table:
    """Value, rows and rows_sha256 of every part of a source, as ``tasks.ingest.sources.raw.COUNTED`` says.

    Args:
        source: whose parts; that of a partition is taken whole.
        column: of the source.
        spill: folder for what does not fit into memory.

    Raises:
        EvenhandError: as readers of sources say.
    """
    full_source = source.model_copy(update={"part": None})
    cached = _held(full_source, column)
    if cached is not None:
        return cached
    with database(spill) as connection, _relation(full_source, column, connection) as relation:
        return counted(connection, relation, column)


def digest_of_part(source: Source) -> str:
    """Digest of the rows of the partition that a source names, as they are now; empty where there are none.

    Raises:
        EvenhandError: as readers of sources say.
    """
    if source.part is None:
        raise ValueError("the source is no partition's")
    rows = part_digests(source, source.part.column).to_pylist()
    return next((row["rows_sha256"] for row in rows if row["value"] == source.part.value), "")


def _held(source: Source, column: str) -> pa.Table | None:
    """The lenders that a vintage has recorded; None for another column, or a source without a record."""
    lenders = Path(source.vintage_file or "").parent / _LENDERS
    if source.vintage_file is None or column != _LENDER or not lenders.is_file():
        return None
    return pq.read_table(lenders, columns=[_LENDER, "rows", "rows_sha256"]).rename_columns(COUNTED.names).cast(COUNTED)


@contextmanager
def _relation(source: Source, column: str, connection: "duckdb.DuckDBPyConnection") -> Iterator[str]:
    """The rows as DuckDB reads them: of HMDA the converted ones, of others every column as text."""
    from tasks.ingest.hmda.canonical import CANONICAL

    if source.kind == "hmda" and column in CANONICAL:
        from tasks.ingest.hmda.rows import located, open_file

        with ExitStack() as stack:
            files = [stack.enter_context(open_file(path)) for path in located(source)]
            yield f"({' UNION ALL BY NAME '.join(f'SELECT * FROM {file.table()}' for file in files)})"
        return
    reader = reader_of(source)
    connection.register("source_rows", reader.read(source, reader.header(source)).table)
    yield "source_rows"
