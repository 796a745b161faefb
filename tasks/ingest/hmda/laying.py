"""The rows of HMDA files laid out for DuckDB: the canonical columns that an audit names, as text.

Where a file departs from its layout, the policy of the spec decides, here. What the columns mean is in ``canonical``.
"""
# ruff: noqa: S608 what goes into the SQL is quoted, or a name of ours

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from schemas.audit.partition import ALL, Part
from schemas.audit.source import Source
from schemas.errors import DataQualityError, SpecError, nearest
from schemas.tables.hmda import EXEMPT_CODE
from schemas.terms import Refusal
from tasks.ingest import year_of_rows
from tasks.ingest.cells import canonical
from tasks.ingest.hmda.applications import OpenFile, open_file
from tasks.ingest.hmda.canonical.cells import literal, quoted
from tasks.ingest.hmda.canonical.codes import CANONICAL
from tasks.ingest.hmda.canonical.derived import DERIVED
from tasks.ingest.hmda.sorted_rows import located
from tasks.ingest.sources.laid import Laid
from tasks.ingest.sources.raw import Unread

if TYPE_CHECKING:
    import duckdb

_Key = tuple[Refusal, str]


@dataclass(frozen=True)
class _File:
    """One file: its rows as SQL without what the policy refuses, which is SQL of its own by reason and column."""

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
            file = stack.enter_context(open_file(path))
            check_unknown_columns(file.name, file.own, source)
            opened.append(_opened(file, source, columns, connection))
        yield _laid(opened, source, columns, connection)


def placed(source: Source) -> Source:
    """A source whose files are known.

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
    _check_known(file, columns)
    part = _part_of(source)
    where = f"WHERE {_is_part(part)}" if part is not None and part.column in CANONICAL else ""
    _check_year(file, source, where, connection)
    return _File(file.name, file, where, _quarantined(file, source, columns, where, connection))


def _laid(
    files: Sequence[_File], source: Source, columns: Sequence[str], connection: "duckdb.DuckDBPyConnection"
) -> Laid:
    keys = list(dict.fromkeys(key for each in files for key in each.quarantined))
    selects, unread, before = list[str](), list[Unread](), 0
    for number, each in enumerate(files):
        cells = [f"{_cell(each, name, source, number, connection)} AS c{i}" for i, name in enumerate(columns)]
        flags = [f"{each.quarantined.get(key, 'false')} AS q{i}" for i, key in enumerate(keys)]
        chosen = ", ".join([f"source_row + {before} AS place", *cells, *flags])
        selects.append(f"SELECT {chosen} FROM {each.file.table(_part_of(source))} AS applications {each.where}")
        refused = each.file.unread() if _part_of(source) is None or len(files) > 1 else []
        unread += [replace(one, row=before + one.row) for one in refused]
        if len(files) > 1:
            ((rows,),) = connection.sql(f"SELECT count(*) FROM {each.file.table()}").fetchall()
            before += rows + len(refused)
    known = _numeric(columns), _coded_as_compared(columns, source)
    return _of_part(Laid(" UNION ALL ".join(selects), tuple(columns), tuple(keys), unread, *known), source)


def _of_part(laid: Laid, source: Source) -> Laid:
    """Its rows of a partition; lines that could not be read belong to none."""
    part = _part_of(source)
    if part is None:
        return laid
    rows = laid.rows
    if part.column not in CANONICAL:
        rows = f"SELECT * FROM ({rows}) WHERE c{laid.columns.index(part.column)} = {literal(part.value)}"
    return replace(laid, rows=rows, unread=())


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


def _numeric(columns: Sequence[str]) -> frozenset[str]:
    """Columns of numbers."""
    return frozenset(name for name in columns if name in CANONICAL and CANONICAL[name].type != "string")


def _coded_as_compared(columns: Sequence[str], source: Source) -> frozenset[str]:
    """Columns that hold nothing but codes; as it was filed, a code may be any text."""
    if source.policy.unknown_codes == "accept":
        return frozenset()
    coded = [name for name in columns if name in CANONICAL and CANONICAL[name].codes]
    return frozenset(name for name in coded if all(canonical(code) == code for code in CANONICAL[name].codes))


def _cell(of: _File, name: str, source: Source, number: int, connection: "duckdb.DuckDBPyConnection") -> str:
    """A column of the file as text: a canonical one, or its own that no layout knows."""
    if name in CANONICAL:
        return _text(name, source)
    cell_of, table = of.file.own_column(name), f"own_{number}_{of.file.own.index(name)}"
    rows, cells = pa.array(list(cell_of), pa.int64()), pa.array(list(cell_of.values()), pa.string())
    connection.register(table, pa.table({"source_row": rows, "cell": cells}))
    return f"(SELECT cell FROM {table} AS own WHERE own.source_row = applications.source_row)"


def _text(name: str, source: Source) -> str:
    """A canonical column as text."""
    column, value = CANONICAL[name], quoted(name)
    if EXEMPT_CODE in column.codes:
        return f"CASE {value} WHEN '{EXEMPT_CODE}' THEN 'Exempt' ELSE {_coded(name, source)} END"
    if column.codes:
        return _coded(name, source)
    exempt = f"exempt IS NOT NULL AND list_contains(string_split(exempt, ','), {literal(name)})"
    return f"CASE WHEN {exempt} THEN 'Exempt' ELSE coalesce(CAST({value} AS VARCHAR), '') END"


def _coded(name: str, source: Source) -> str:
    """A code; where the policy accepts those that no guide lists, as it was filed."""
    told = (name, f"{name}_raw") if source.policy.unknown_codes == "accept" else ()
    filed = "".join(f", unknown_codes ->> {literal(_path(key))}" for key in told)
    return f"coalesce({quoted(name)}{filed}, '')"


def _path(name: str) -> str:
    return f'$."{name}"'


def _unknown(name: str) -> str:
    """Whether the column, or one that it is made of, was filed with a code that no guide lists."""
    _, parts = DERIVED.get(name, (None, ()))
    paths = [_path(part) for part in (name, f"{name}_raw", *parts)]
    told = " OR ".join(f"json_exists(unknown_codes, {literal(path)})" for path in paths)
    return f"(unknown_codes IS NOT NULL AND coalesce({told}, false))"


def _quarantined(
    file: OpenFile, source: Source, columns: Sequence[str], where: str, connection: "duckdb.DuckDBPyConnection"
) -> dict[_Key, str]:
    """What the policy does: nothing, refusals, or an error."""
    out: dict[_Key, str] = {}
    policy = source.policy
    if policy.unknown_columns == "quarantine" and file.own:
        out[Refusal.UNKNOWN_COLUMN, file.own[0]] = "true"
    given = file.given() if policy.missing_columns == "quarantine" else set(CANONICAL)
    out |= {(Refusal.MISSING_COLUMN, name): "true" for name in columns if name in CANONICAL and name not in given}
    asked = [name for name in columns if name in CANONICAL and policy.unknown_codes != "accept"]
    if not asked:
        return out
    counts = ", ".join(f"count_if({_unknown(name)})" for name in asked)
    (found,) = connection.sql(f"SELECT {counts} FROM {file.table(_part_of(source))} {where}").fetchall()
    for name, rows in zip(asked, found, strict=True):
        if rows and policy.unknown_codes == "stop":
            raise DataQualityError(
                f"{rows:,} rows of {file.name} have a code of {name} that no filing guide lists: "
                "see the schema report, or set source.policy.unknown_codes to quarantine or accept"
            )
        if rows:
            out[Refusal.UNKNOWN_CODE, name] = _unknown(name)
    return out


def _check_known(file: OpenFile, columns: Sequence[str]) -> None:
    known = [*CANONICAL, *file.own]
    for name in columns:
        if name not in known:
            raise DataQualityError(f"{file.name} has no column {name!r}; {nearest(name, known)}")


def _check_year(file: OpenFile, source: Source, where: str, connection: "duckdb.DuckDBPyConnection") -> None:
    """Hold the rows against the year that the source is of; where the spec keeps some years, ingest judges those."""
    column = year_of_rows.COLUMNS[0]
    if source.year is not None and column not in source.keep:
        counts = connection.sql(
            f"SELECT {column}, count(*) FROM {file.table(_part_of(source))} {where} "
            f"GROUP BY {column} ORDER BY min(source_row)"
        ).fetchall()
        found = {str(year): rows for year, rows in counts if year is not None}
        year_of_rows.year_of(file.name, column, found, source.year)
