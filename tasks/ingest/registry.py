"""The sources by their kind in the audit spec."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING

from schemas.audit.source import Source
from schemas.audit.spec import AuditSpec
from schemas.errors import DataQualityError, Location, SpecError, nearest
from tasks.ingest.sources.laid import Laid, registered

if TYPE_CHECKING:
    import duckdb


def reader(source: Source) -> ModuleType:
    """The module that reads a source: ``digest``, ``header`` and ``read``; each loads libraries of its own."""
    match source.kind:
        case "boston1990":
            from tasks.ingest.sources import boston

            return boston
        case "csv" | "parquet":
            from tasks.ingest.sources import delimited

            return delimited
        case "synthetic":
            from tasks.ingest.synthetic import source as synthetic

            return synthetic
        case "hmda":
            from tasks.ingest import hmda

            return hmda


def digest(source: Source) -> str:
    """sha256 of the bytes of a source; of a partition that of its rows, as they were counted, and no file is read."""
    return source.part.rows_sha256 if source.part is not None else str(reader(source).digest(source))


@contextmanager
def lay(source: Source, columns: Sequence[str], connection: "duckdb.DuckDBPyConnection") -> Iterator[Laid]:
    """The named columns as rows of SQL, as long as the source is open; of one partition where it names one."""
    if source.kind == "hmda":
        from tasks.ingest.hmda.laying import lay as lay_hmda

        with lay_hmda(source, columns, connection) as laid:
            yield laid
        return
    names = list(columns)
    if source.part is not None and source.part.column not in names:
        names.append(source.part.column)
    yield registered(reader(source).read(source, names), connection, source.part)


def check_columns(spec: AuditSpec) -> None:
    """Hold the columns that the spec names against the header of its source, before anything is run.

    Raises:
        SpecError: the source lacks one; it is named with its place in the spec and the nearest that exists. Or a
            derived column takes the name of one that the source has.
        DataQualityError: HMDA knows the column, and this file does not give it.
    """
    known: list[str] = reader(spec.source).header(spec.source)
    _check_derived(spec.source, known)
    known = [*known, *spec.source.derive]
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
        if name not in known and spec.source.kind == "hmda":
            _check_delivered(name)
        _check_known(name, known, location)


def unnamed_columns(spec: AuditSpec) -> tuple[str, ...]:
    """Columns of a user's own table that the spec does not name; those of HMDA and of made tables are known."""
    if spec.source.kind not in ("csv", "parquet"):
        return ()
    named = {spec.row_id, spec.decision.column, spec.source.year_column, *spec.columns, *spec.source.keep}
    named |= {spec.by.column} if spec.by else set()
    named |= {spec.outcome.column} if spec.outcome else set()
    named |= {column for p in spec.protected for column in p.columns}
    named |= {derived.column for derived in spec.source.derive.values()}
    return tuple(name for name in reader(spec.source).header(spec.source) if name not in named)


def _check_delivered(name: str) -> None:
    """Tell of a column that HMDA knows that this file does not give it."""
    from tasks.ingest import hmda

    if told := hmda.lacking(name):
        raise DataQualityError(told)


def _check_known(name: str, known: list[str], location: Location) -> None:
    if name not in known:
        hint = "; is source.delimiter right?" if len(known) == 1 else ""
        raise SpecError(f"the source has no column {name!r}; {nearest(name, known)}{hint}", location)


def _check_derived(source: Source, known: list[str]) -> None:
    """A derived column is made from a column of the source, and hides none of them."""
    for name, derived in source.derive.items():
        if name in known:
            message = f"the source has a column {name!r} already; give the derived one a name of its own"
            raise SpecError(message, ("source", "derive", name))
        _check_known(derived.column, known, ("source", "derive", name, "column"))
