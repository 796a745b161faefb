"""Counts what the recipe of an audit reads of its source, over all applications.

Rows are refused here by the source's own rules alone: foot, repeats, lines that cannot be read, keys that stand twice,
and rows that the spec does not keep. Scope: counts. How a cell is read: ``tasks.ingest.intake``.
"""

# ruff: noqa: S608 names are ours, values are bound

from collections import Counter
from collections.abc import Callable, Iterator
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

_TOGETHER = 24
"""Columns of categories that are counted in one query, within its memory."""


@dataclass(frozen=True)
class Intake:
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
def opened(spec: AuditSpec, spill: Path | None = None) -> Iterator[Intake]:
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
        yield Intake(question, view, statement(question, view, connection), connection)


def facts(
    spec: AuditSpec, intake: Intake, is_nobody: Callable[[str], bool], why: Callable[[str], str]
) -> dict[str, Any]:
    """What was read: rows, years, decisions, groups, columns and rules.

    Args:
        spec: of the audit.
        intake: its source.
        is_nobody: whether a group is no people, such as `not provided`.
        why: the reason for which a column of the spec is left out.
    """
    view = intake.view
    document = {"rows": _rows(intake), "year": spec.year, "years": _years(intake)}
    document |= {"joined": dict(view.joined)} if view.joined else {}
    document["decision"] = _decision(intake)
    document["protected"] = [_attribute(p, i, intake, is_nobody) for i, p in enumerate(spec.protected)]
    document["columns"] = _columns(spec, intake, why)
    document["rules"] = [
        {"column": rule.column, "rule": rule.rule, "cells": rule.cells, "rows": rule.rows} for rule in view.rules
    ]
    return document


def write_table(intake: Intake, file: Path, folder: Path | None) -> int:
    """Write the applications as Parquet: numbers as numbers, all else as text; missing cells are null. Gives the rows.

    Args:
        intake: the source.
        file: to write.
        folder: for rows that do not fit into memory.
    """
    import pyarrow.parquet as pq

    cells, typed = intake.statement.cells, intake.statement.values
    numbers = {name for name, column in intake.question.columns.items() if column.type is Kind.CONTINUOUS}
    chosen = ["place"]
    for name in intake.view.columns:
        text = f"CASE WHEN {cells.absent(name)} THEN NULL ELSE {cells.text(name)} END"
        chosen.append(f"{typed[name] if name in numbers else text} AS {quoted(name)}")
    query = f"SELECT {', '.join(chosen)} FROM {intake.statement.rows} WHERE NOT ({intake.refused})"
    types = [(name, pa.float64() if name in numbers else pa.string()) for name in intake.view.columns]
    schema, written = pa.schema(types), 0
    with pq.ParquetWriter(file, schema) as writer:
        for rows in in_order(intake.connection.sql(query).to_arrow_reader(BATCH), folder):
            writer.write_table(rows.drop_columns(["place"]).cast(schema))
            written += rows.num_rows
    return written


def _rows(intake: Intake) -> dict[str, Any]:
    """Rows of the source, applications, and refused rows by reason; of several reasons the first counts."""
    reasons = [reason for reason, _ in intake.view.quarantined]
    cases = " ".join(f"WHEN q{i} THEN '{reason}'" for i, reason in enumerate(reasons))
    reason = f"CASE {cases} WHEN NOT ({intake.statement.kept}) THEN '{Refusal.FILTERED}' END"
    rows = dict(
        intake.connection.sql(
            f"SELECT {reason} AS reason, count(*) FROM {intake.statement.rows} GROUP BY reason"
        ).fetchall()
    )
    applications = rows.pop(None, 0)
    refused = Counter({reason: n for reason, n in rows.items() if n})
    refused.update(str(unread.reason) for unread in intake.view.unread)
    return {
        "in": applications + refused.total(),
        "applications": applications,
        "refused": dict(sorted(refused.items())),
    }


def _years(intake: Intake) -> dict[str, int]:
    """Rows by their year, those among them that the spec does not keep."""
    named = (intake.question.source.year_column, *COLUMNS)
    column = next((name for name in named if name in intake.view.columns), None)
    if column is None:
        return {}
    text = intake.statement.cells.text(column)
    year = f"left({text}, 4)" if column in intake.view.dates else text
    rules = " OR ".join(f"q{i}" for i in range(len(intake.view.quarantined))) or "false"
    query = f"SELECT {year} AS year, count(*) FROM {intake.statement.rows} WHERE NOT ({rules}) AND {text} <> '' "
    return dict(intake.connection.sql(f"{query} GROUP BY year ORDER BY year").fetchall())


def _decision(intake: Intake) -> dict[str, Any]:
    decision, cells = intake.question.decision, intake.statement.cells
    missing = f"{cells.absent(decision.column)}"
    rows = intake.by(f"CASE WHEN {missing} THEN NULL ELSE {cells.text(decision.column)} END")
    sides = {side: getattr(decision, side) for side in ("favourable", "unfavourable", "neither")}
    listed = [value for values in sides.values() for value in values]
    number = {side: {value: rows[value] for value in values if value in rows} for side, values in sides.items()}
    unknown = {value: n for value, n in rows.items() if value is not None and value not in listed}
    if intake.question.source.intake is None:  # there a value of no list is no decision of the audit, and no surprise
        number["neither"], unknown = number["neither"] | unknown, {}
    missing_rows = sum(n for value, n in rows.items() if value is None)
    return {"column": decision.column, **number, "missing": missing_rows, "unknown": unknown}


def _attribute(p: Protected, at: int, intake: Intake, is_nobody: Callable[[str], bool]) -> dict[str, Any]:
    """Rows by group, as the table says it: a group of one value under that value, one of several under its name."""
    rows = intake.by(intake.statement.groups[at])
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


def _columns(spec: AuditSpec, intake: Intake, why: Callable[[str], str]) -> dict[str, Any]:
    """Every column of the spec; many are counted in one query, as a table may have hundreds of them."""
    recipes = spec.source.intake.columns if spec.source.intake else {}
    numbers = [name for name, column in intake.question.columns.items() if column.type is Kind.CONTINUOUS]
    chosen = []
    for name in numbers:
        value, absent = intake.statement.values[name], intake.statement.cells.absent(name)
        exact = f"TRY_CAST({value} AS {_EXACT})"
        chosen += [f"count({value})", f"count_if({absent})", f"count_if(NOT {absent} AND ({value}) IS NULL)"]
        chosen += [f"CAST(sum({exact}) AS DOUBLE)", f"count({exact})", f"fsum({value})"]
    figures = intake.rows(", ".join(chosen))[0] if chosen else ()
    categories = [name for name in intake.question.columns if name not in numbers]
    values = [intake.statement.values[name] for name in categories]
    rows_of: list[Any] = []
    for first in range(0, len(values), _TOGETHER):
        chosen = [f"histogram({value}), count_if(({value}) IS NULL)" for value in values[first : first + _TOGETHER]]
        rows_of += intake.rows(", ".join(chosen))[0]
    out: dict[str, Any] = {}
    for name, column in spec.columns.items():
        role = {"role": "feature" if column.used else "excluded"}
        if not column.kept:
            out[name] = {"role": "excluded", "why": why(name)}
        elif column.type is Kind.CONTINUOUS:
            n, missing, unread, total, exact_cells, rough = figures[6 * numbers.index(name) :][:6]
            unit = recipes[name].unit if name in recipes else None
            number = {
                "n": n,
                "sum": (total if exact_cells == n else rough) or 0.0,
                "missing": missing,
                "unread": unread,
            }
            out[name] = {**role, "kind": "number", "unit": unit, **number}
        else:
            histogram, missing = rows_of[2 * categories.index(name) :][:2]
            counts = dict(sorted((histogram or {}).items(), key=lambda item: (-item[1], item[0])))
            order = list(column.order)
            out[name] = {**role, "kind": "category", "counts": counts, "order": order, "missing": missing}
    return out
