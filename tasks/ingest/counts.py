"""Counts what the recipe of an audit reads of its source, over all applications.

Rows are refused here by the source's own rules alone: foot, repeats, lines that cannot be read, keys that stand twice,
and rows that the spec does not keep. Scope: counts. How a cell is read: ``tasks.ingest.intake``.
"""

# ruff: noqa: S608 names are ours, values are bound

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from schemas.audit.spec import AuditSpec, Protected
from schemas.terms import Kind, Refusal
from tasks.ingest import registry
from tasks.ingest.applications import BATCH, database, in_order
from tasks.ingest.hmda.canonical import quoted
from tasks.ingest.intake.recipe import respelled
from tasks.ingest.sources.raw import COLUMNS, Laid
from tasks.ingest.statement import Question, Statement, statement

if TYPE_CHECKING:
    import duckdb

_EXACT = "DECIMAL(38, 9)"
"""In which numbers are added, so that no order of the rows changes a sum."""

_TOGETHER = 60
"""Columns of categories that are counted in one query: GROUPING tells at most 63 apart."""


@dataclass(frozen=True)
class OpenTable:
    """A source that is open and was read by its recipe."""

    question: Question
    view: Laid
    statement: Statement
    connection: "duckdb.DuckDBPyConnection"

    @property
    def refused(self) -> str:
        """Whether the source's own rules refuse a row."""
        rules = [f"q{i}" for i in range(len(self.view.quarantined))]
        return " OR ".join([*rules, f"NOT ({self.statement.kept})"])

    def rows(self, chosen: str, clause: str = "") -> list[tuple[Any, ...]]:
        """A query over the applications."""
        query = f"SELECT {chosen} FROM {self.statement.rows} WHERE NOT ({self.refused}) {clause}"
        return self.connection.sql(query).fetchall()

    def by(self, value: str) -> dict[str, int]:
        """Applications by a value, the most frequent one first."""
        return dict(self.rows(f"{value} AS value, count(*)", "GROUP BY value ORDER BY count(*) DESC, min(place)"))


@contextmanager
def opened(spec: AuditSpec, spill: Path | None = None) -> Iterator[OpenTable]:
    """The source of an audit, read by its recipe.

    Raises:
        EvenhandError: as readers of sources say; two values of the spec mean different things and are the same folded.
    """
    source = spec.source
    if source.kind == "hmda" and source.year is None:
        source = source.model_copy(update={"year": spec.year})
    question = Question(source, spec.row_id, spec.decision, spec.outcome, spec.protected, spec.kept())
    partition_columns = (spec.by.column,) if spec.by else ()
    names = registry.columns_read(question, registry.year_column_of(source))
    with database(spill) as connection, registry.lay(question, names, connection, partition_columns) as view:
        question = respelled(question, view.columns, partition_columns)
        yield OpenTable(question, view, statement(question, view, connection), connection)


def facts(
    spec: AuditSpec, table: OpenTable, is_nobody: Callable[[str], bool], why: Callable[[str], str]
) -> dict[str, Any]:
    """What was read: rows, years, decisions, groups, columns and rules.

    Args:
        spec: of the audit.
        table: its source.
        is_nobody: whether a group is no people, such as `not provided`.
        why: the reason for which a column of the spec is left out.
    """
    view = table.view
    document = {"rows": _rows(table), "year": spec.year, "years": _years(table)}
    document |= {"joined": dict(view.joined)} if view.joined else {}
    document["decision"] = _decision(table)
    document["protected"] = [_attribute(p, i, table, is_nobody) for i, p in enumerate(spec.protected)]
    document["columns"] = _columns(spec, table, why)
    document["rules"] = [
        {"column": rule.column, "rule": rule.rule, "cells": rule.cells, "rows": rule.rows} for rule in view.rules
    ]
    return document


def write_table(table: OpenTable, file: Path, folder: Path | None) -> int:
    """Write the applications as Parquet: numbers as numbers, all else as text; missing cells are null. Gives the rows.

    Args:
        table: the source.
        file: to write.
        folder: for rows that do not fit into memory.
    """
    import pyarrow.parquet as pq

    cells, typed = table.statement.cells, table.statement.values
    numbers = {name for name, column in table.question.columns.items() if column.type is Kind.CONTINUOUS}
    chosen = ["place"]
    for name in table.view.columns:
        text = f"CASE WHEN {cells.absent(name)} THEN NULL ELSE {cells.text(name)} END"
        chosen.append(f"{typed[name] if name in numbers else text} AS {quoted(name)}")
    query = f"SELECT {', '.join(chosen)} FROM {table.statement.rows} WHERE NOT ({table.refused})"
    types = [(name, pa.float64() if name in numbers else pa.string()) for name in table.view.columns]
    schema, written = pa.schema(types), 0
    with pq.ParquetWriter(file, schema) as writer:
        for rows in in_order(table.connection.sql(query).to_arrow_reader(BATCH), folder):
            writer.write_table(rows.drop_columns(["place"]).cast(schema))
            written += rows.num_rows
    return written


def filled(table: OpenTable, names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Share of the favourable decisions with a value in each column, and of the others; 0 where there is none."""
    decision, cells = table.question.decision, table.statement.cells
    filled_cells = ", ".join(f"count_if(NOT {cells.absent(name)})" for name in names)
    rows = table.rows(f"{cells.text(decision.column)} AS value, count(*), {filled_cells}", "GROUP BY value")
    shares = []
    for side in (decision.favourable, decision.unfavourable):
        of_side = [numbers for value, *numbers in rows if value in side]
        decided, *present = map(sum, zip(*of_side, strict=True)) if of_side else [0] * (1 + len(names))
        shares.append([number / decided if decided else 0.0 for number in present])
    return dict(zip(names, zip(*shares, strict=True), strict=True))


def _rows(table: OpenTable) -> dict[str, Any]:
    """Rows of the source, applications, and refused rows by reason; of several reasons the first counts."""
    reasons = [reason for reason, _ in table.view.quarantined]
    cases = " ".join(f"WHEN q{i} THEN '{reason}'" for i, reason in enumerate(reasons))
    reason = f"CASE {cases} WHEN NOT ({table.statement.kept}) THEN '{Refusal.FILTERED}' END"
    rows = dict(
        table.connection.sql(
            f"SELECT {reason} AS reason, count(*) FROM {table.statement.rows} GROUP BY reason"
        ).fetchall()
    )
    applications = rows.pop(None, 0)
    refused = Counter({reason: n for reason, n in rows.items() if n})
    refused.update(str(unread.reason) for unread in table.view.unread)
    return {
        "in": applications + refused.total(),
        "applications": applications,
        "refused": dict(sorted(refused.items())),
    }


def _years(table: OpenTable) -> dict[str, int]:
    """Rows by their year, those among them that the spec does not keep."""
    named = (table.question.source.year_column, *COLUMNS)
    column = next((name for name in named if name in table.view.columns), None)
    if column is None:
        return {}
    text = table.statement.cells.text(column)
    year = f"left({text}, 4)" if column in table.view.dates else text
    rules = " OR ".join(f"q{i}" for i in range(len(table.view.quarantined))) or "false"
    query = f"SELECT {year} AS year, count(*) FROM {table.statement.rows} WHERE NOT ({rules}) AND {text} <> '' "
    return dict(table.connection.sql(f"{query} GROUP BY year ORDER BY year").fetchall())


def _decision(table: OpenTable) -> dict[str, Any]:
    decision, cells = table.question.decision, table.statement.cells
    missing = f"{cells.absent(decision.column)}"
    rows = table.by(f"CASE WHEN {missing} THEN NULL ELSE {cells.text(decision.column)} END")
    sides = {side: getattr(decision, side) for side in ("favourable", "unfavourable", "neither")}
    listed = [value for values in sides.values() for value in values]
    number = {side: {value: rows[value] for value in values if value in rows} for side, values in sides.items()}
    unknown = {value: n for value, n in rows.items() if value is not None and value not in listed}
    if table.question.source.intake is None:  # there a value of no list is no decision of the audit, and no surprise
        number["neither"], unknown = number["neither"] | unknown, {}
    missing_rows = sum(n for value, n in rows.items() if value is None)
    return {"column": decision.column, **number, "missing": missing_rows, "unknown": unknown}


def _attribute(p: Protected, at: int, table: OpenTable, is_nobody: Callable[[str], bool]) -> dict[str, Any]:
    """Rows by group, as the table says it: a group of one value under that value, one of several under its name."""
    rows = table.by(table.statement.groups[at])
    missing = rows.pop(p.missing, 0)
    value_of = {group: v[0] for group, v in p.groups.items() if len(v) == 1 and v[0] not in p.groups.keys() - {group}}
    nobody = {group for group in rows if group != p.reference and is_nobody(value_of.get(group, group))}
    return {
        "column": p.columns[0],
        "columns": list(p.columns),
        "name": p.name,
        "reference": value_of.get(p.reference, p.reference),
        "groups": {value_of.get(group, group): n for group, n in rows.items() if group not in nobody},
        "nobody": {value_of.get(group, group): n for group, n in rows.items() if group in nobody},
        "missing": missing,
        "names": {value: group for group, value in value_of.items() if group in rows and group != value},
    }


def _columns(spec: AuditSpec, table: OpenTable, why: Callable[[str], str]) -> dict[str, Any]:
    """Every column of the spec; many are counted in one query, as a table may have hundreds of them."""
    recipes = spec.source.intake.columns if spec.source.intake else {}
    numbers = [name for name, column in table.question.columns.items() if column.type is Kind.CONTINUOUS]
    chosen = []
    for name in numbers:
        value, absent = table.statement.values[name], table.statement.cells.absent(name)
        exact = f"TRY_CAST({value} AS {_EXACT})"
        chosen += [f"count({value})", f"count_if({absent})", f"count_if(NOT {absent} AND ({value}) IS NULL)"]
        chosen += [f"CAST(sum({exact}) AS DOUBLE)", f"count({exact})", f"fsum({value})", f"count_if({value} = 0)"]
    figures = table.rows(", ".join(chosen))[0] if chosen else ()
    categories = [name for name in table.question.columns if name not in numbers]
    counts_by_column: dict[str, dict[str | None, int]] = {}
    for first in range(0, len(categories), _TOGETHER):
        counts_by_column |= _values(table, categories[first : first + _TOGETHER])
    out: dict[str, Any] = {}
    for name, column in spec.columns.items():
        role = {"role": "feature" if column.used else "excluded"}
        if not column.kept:
            out[name] = {"role": "excluded", "why": why(name)}
        elif column.type is Kind.CONTINUOUS:
            n, missing, unread, total, exact_cells, rough, zeros = figures[7 * numbers.index(name) :][:7]
            unit = recipes[name].unit if name in recipes else None
            number = {
                "n": n,
                "sum": (total if exact_cells == n else rough) or 0.0,
                "missing": missing,
                "unread": unread,
                "zeros": zeros,
            }
            out[name] = {**role, "kind": "number", "unit": unit, **number}
        else:
            missing = counts_by_column[name].pop(None, 0)
            counts = dict(sorted(counts_by_column[name].items(), key=lambda item: (-item[1], item[0] or "")))
            order = list(column.order)
            out[name] = {**role, "kind": "category", "counts": counts, "order": order, "missing": missing}
    return out


def _values(table: OpenTable, names: Sequence[str]) -> dict[str, dict[str | None, int]]:
    """Column -> value -> applications, None of a missing one; in one query, as each binds all columns of the source."""
    cells = ", ".join(f"{table.statement.values[name]} AS v{i}" for i, name in enumerate(names))
    listed = ", ".join(f"v{i}" for i in range(len(names)))
    sets = ", ".join(f"(v{i})" for i in range(len(names)))
    rows = table.connection.sql(
        f"SELECT grouping({listed}), coalesce({listed}, NULL), count(*) FROM (SELECT {cells} FROM "
        f"{table.statement.rows} WHERE NOT ({table.refused})) GROUP BY GROUPING SETS ({sets})"
    ).fetchall()
    all_others = (1 << len(names)) - 1  # of each column the bit that says that a row is not grouped by it
    name_of = {all_others ^ (1 << (len(names) - 1 - i)): name for i, name in enumerate(names)}
    counts: dict[str, dict[str | None, int]] = {name: {} for name in names}
    for which, value, number in rows:
        counts[name_of[which]][value] = number
    return counts
