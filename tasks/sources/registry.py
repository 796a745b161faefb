"""The sources by their kind in the audit spec."""

from types import ModuleType

from schemas.errors import SpecError, nearest
from schemas.settings import AuditSpec, Source
from tasks.sources import boston, delimited

_KINDS: dict[str, ModuleType] = {"boston1990": boston, "csv": delimited, "parquet": delimited}


def reader(source: Source) -> ModuleType:
    """The module that reads a source: ``digest``, ``header`` and ``read``."""
    return _KINDS[source.kind]


def digest(source: Source) -> str:
    """sha256 of the bytes of a source."""
    return str(reader(source).digest(source))


def check_columns(spec: AuditSpec) -> None:
    """Hold the columns that the spec names against the header of its source, before anything is run.

    Raises:
        SpecError: the source lacks one; it is named with its place in the spec and the nearest that exists.
    """
    known: list[str] = reader(spec.source).header(spec.source)
    named: list[tuple[tuple[str | int, ...], str]] = [(("decision", "column"), spec.decision.column)]
    if spec.row_id:
        named.append((("row_id",), spec.row_id))
    if spec.outcome:
        named.append((("outcome", "column"), spec.outcome.column))
    for i, p in enumerate(spec.protected):
        named += [(("protected", i, "columns", j), column) for j, column in enumerate(p.columns)]
    named += [(("columns", name), name) for name in spec.features()]
    named += [(("source", "keep", name), name) for name in spec.source.keep]
    for location, name in named:
        if name not in known:
            hint = "; is source.delimiter right?" if len(known) == 1 else ""
            raise SpecError(f"the source has no column {name!r}; {nearest(name, known)}{hint}", location)
