"""Counts of the partitions of a year: rows, usable ones, decisions, groups, and columns that have values.

The rows are judged as the stage ingest judges them, and DuckDB groups them by partition, decision and groups in one
pass; sums over these are small. What is counted is kept in the lake, by the digest of the source and what the spec says
of rows, so that each worker reads it.
"""
# ruff: noqa: S608 names are ours, values are bound

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from flows.partitions.lenders.digests import digests_of, spilling
from schemas.audit.column import ColumnSpec
from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from schemas.terms import Kind
from tasks.ingest import registry
from tasks.ingest.cells import canonical
from tasks.ingest.pushdown.database import database
from tasks.ingest.pushdown.statement import Question, Statement, statement
from tasks.lake.store import Lake
from tasks.pipeline.lineage.digests import code_digest, versions

if TYPE_CHECKING:
    import duckdb

MOST_VALUES: Final = 20_000
"""Partitions that a column may have."""
_PEOPLE = "sum(n), coalesce(sum(n) FILTER (usable), 0), coalesce(sum(n) FILTER (usable AND favourable), 0)"
"""SQL of ``People``."""


@dataclass
class People:
    """Rows of a partition, or of one of its groups."""

    rows: int = 0
    usable: int = 0
    """That are kept, have a decision, and whose cells are of the type of their columns."""
    favourable: int = 0
    """Of the usable ones."""


@dataclass
class Counts:
    """Counts of one partition."""

    people: People = field(default_factory=People)
    groups: dict[str, dict[str, People]] = field(default_factory=dict)
    """Protected attribute -> group -> people."""
    values: dict[str, int] = field(default_factory=dict)
    """Column of the spec -> usable rows that have a value in it."""
    rows_sha256: str = ""


def counts_of(spec: AuditSpec, lake: Lake) -> Mapping[str, Counts]:
    """The counts of every partition by its value; those of rows without a value under the empty one.

    Args:
        spec: with ``by``, its source that of one year.
        lake: keeps what was counted.

    Raises:
        SpecError: the column has more values than there may be partitions.
        EvenhandError: as readers of sources say.
    """
    whole = spec.model_copy(update={"source": spec.source.model_copy(update={"part": None})})
    source_sha256 = registry.digest(whole.source)
    path = f"parts/{_key(whole, source_sha256)}.json"
    held = lake.storage.read(path)
    if held is not None and (found := _read(held)) is not None:
        return found
    found = _counted(whole, lake)
    lake.write_file(path, json.dumps({value: asdict(each) for value, each in found.items()}).encode())
    return found


def _key(spec: AuditSpec, source_sha256: str) -> str:
    """Of what decides the counts: where the source lies does not."""
    said = spec.model_dump(mode="json", include={"decision", "outcome", "protected", "columns"})
    source = spec.source.model_dump(mode="json", exclude={"path", "vintage_file", "vintage", "part", "lacking"})
    code = code_digest([__name__])
    column = spec.by.column if spec.by else ""
    content = json.dumps([said, source, column, source_sha256, code, versions()], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


@lru_cache(maxsize=4)
def _read(content: bytes) -> dict[str, Counts] | None:
    """What was kept; None of a file that cannot be read, which is then counted again. Nobody changes what it gives."""
    try:
        return {value: _restored(**each) for value, each in json.loads(content).items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _restored(
    people: Mapping[str, int], groups: Mapping[str, Mapping[str, Any]], values: dict[str, int], rows_sha256: str
) -> Counts:
    by_group = {p: {group: People(**each) for group, each in of.items()} for p, of in groups.items()}
    return Counts(People(**people), by_group, values, rows_sha256)


def _counted(spec: AuditSpec, lake: Lake) -> dict[str, Counts]:
    with spilling(lake) as spill:
        found = _grouped(spec, spill)
    digests = digests_of(spec, lake)
    for value, each in found.items():
        each.rows_sha256 = digests.get(value, "")
    return found


def _grouped(spec: AuditSpec, spill: Path) -> dict[str, Counts]:
    question = _question(spec)
    with database(spill) as connection, registry.lay(spec.source, _columns(question), connection) as laid:
        _combine(connection, statement(question, laid, connection), question, _by(spec))
        found = _totals(connection, list(question.columns))
        for at, p in enumerate(spec.protected):
            _add_groups(found, connection, p.name, at)
        if laid.unread:
            found.setdefault("", Counts()).people.rows += len(laid.unread)
    return found


def _question(spec: AuditSpec) -> Question:
    """What the audit asks of rows, with the partitions' column as text among the columns.

    Rows that share an identifier are not looked for: within one partition they are another question.
    """
    by, kept = _by(spec), spec.kept()
    missing = kept[by].missing if by in kept else ()
    columns = {**kept, by: ColumnSpec(type=Kind.NOMINAL, missing=missing)}
    return Question(spec.source, None, spec.decision, spec.outcome, spec.protected, columns)


def _by(spec: AuditSpec) -> str:
    if spec.by is None:
        raise ValueError("a spec without `by` has no partitions")
    return spec.by.column


def _columns(question: Question) -> list[str]:
    """The columns of the source that are read."""
    decided = [each.column for each in (question.decision, question.outcome) if each]
    named = [*decided, *(c for p in question.protected for c in p.columns), *question.source.keep, *question.columns]
    derived = question.source.derive
    return list(dict.fromkeys([*(n for n in named if n not in derived), *(d.column for d in derived.values())]))


def _combine(connection: "duckdb.DuckDBPyConnection", asked: Statement, question: Question, by: str) -> None:
    """Make the table of combinations: a row for each partition, decision and groups that occur together."""
    at, cell = list(question.columns).index(by), f"c{asked.cells.at[by]}"
    as_they_are = [
        text for (text,) in connection.sql(f"SELECT DISTINCT {cell} FROM raw LIMIT {MOST_VALUES + 2}").fetchall()
    ]
    if len(as_they_are) > MOST_VALUES:
        raise _too_many(by)
    value, rows = f"coalesce(v{at}, '')", f"({asked.sql})"
    if any(text != canonical(text) for text in as_they_are):  # a partition is of cells as they are
        value, rows = f"CASE WHEN v{at} IS NULL THEN '' ELSE {cell} END", f"({asked.sql}) JOIN raw USING (place)"
    groups = "".join(f", g{i}" for i in range(len(question.protected)))
    known = "".join(
        f", count(*) FILTER (refused IS NULL AND v{i} IS NOT NULL) AS v{i}" for i in range(len(question.columns))
    )
    connection.execute(
        f"CREATE TEMP TABLE combinations AS SELECT {value} AS value, favourable, refused IS NULL AS usable{groups}, "
        f"count(*) AS n{known} FROM {rows} GROUP BY value, favourable, refused IS NULL{groups}"
    )


def _totals(connection: "duckdb.DuckDBPyConnection", columns: Sequence[str]) -> dict[str, Counts]:
    known = "".join(f", sum(v{at})" for at in range(len(columns)))
    found = connection.sql(f"SELECT value, {_PEOPLE}{known} FROM combinations GROUP BY value ORDER BY value").fetchall()
    return {
        value: Counts(People(*map(int, rest[:3])), values=dict(zip(columns, map(int, rest[3:]), strict=True)))
        for value, *rest in found
    }


def _add_groups(found: dict[str, Counts], connection: "duckdb.DuckDBPyConnection", name: str, at: int) -> None:
    query = f"SELECT value, g{at}, {_PEOPLE} FROM combinations GROUP BY value, g{at} ORDER BY value, g{at}"
    for value, group, *people in connection.sql(query).fetchall():
        found[value].groups.setdefault(name, {})[group] = People(*map(int, people))


def _too_many(column: str) -> SpecError:
    return SpecError(
        f"column {column!r} has more than {MOST_VALUES:,} values, and at most so many partitions are audited: is it a "
        "number or the identifier of a row? Name a column of lenders or places",
        ("by", "column"),
    )
