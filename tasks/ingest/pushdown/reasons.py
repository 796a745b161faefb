"""Why a row is refused: the rules in their order, of which the first that holds counts."""
# ruff: noqa: S608 names are ours

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from schemas.audit.column import ColumnSpec
from schemas.audit.source import Keep
from schemas.audit.spec import Decision
from schemas.terms import Kind, Refusal
from tasks.ingest.pushdown.bound_values import BoundValues
from tasks.ingest.pushdown.cells import Cells
from tasks.ingest.pushdown.numbers import Number
from tasks.ingest.sources.laid import Laid

if TYPE_CHECKING:
    import duckdb

Line = tuple[str, str | None]
"""Reason, and the column to blame."""


class Rule(NamedTuple):
    """SQL of whether a row is refused, with what is told of it."""

    broken: str
    reason: Refusal
    column: str | None

    @property
    def line(self) -> Line:
        """Reason and column."""
        return self.reason.value, self.column


def of_policy(laid: Laid) -> list[Rule]:
    """What the source's own policy refuses."""
    return [Rule(f"q{i}", reason, column) for i, (reason, column) in enumerate(laid.quarantined)]


class RowIds(NamedTuple):
    """How rows are called, and which of them cannot be told from others."""

    sql: str
    rules: list[Rule]


def row_ids(column: str | None, cells: Cells, connection: "duckdb.DuckDBPyConnection") -> RowIds:
    """Unique identifiers. Rows that share one are all refused, since none of them can be called the right one."""
    if column is None:
        return RowIds("CAST(place AS VARCHAR)", [])
    text, missing = cells.text(column), cells.missing(column)
    connection.execute(
        f"CREATE TEMP TABLE shared_ids AS SELECT {text} AS text FROM cells WHERE NOT {missing} "
        f"GROUP BY {text} HAVING count(*) > 1"
    )
    ((shared,),) = connection.sql("SELECT count(*) FROM shared_ids").fetchall()
    twice = f"NOT {missing} AND {text} IN (SELECT text FROM shared_ids)" if shared else "false"
    rules = [Rule(missing, Refusal.MISSING_ROW_ID, column), Rule(twice, Refusal.DUPLICATE_ROW_ID, column)]
    sql = f"CASE WHEN {missing} OR ({twice}) THEN {text} || '#' || CAST(place AS VARCHAR) ELSE {text} END"
    return RowIds(sql, rules)


def not_kept(keep: Mapping[str, Keep], ranges: Mapping[str, Number], cells: Cells, bound: BoundValues) -> list[Rule]:
    """Rows that the spec does not keep; a range keeps no cell that is missing or no number."""
    return [
        Rule(f"NOT ({_kept(name, rule, ranges, cells, bound)})", Refusal.FILTERED, name) for name, rule in keep.items()
    ]


def _kept(name: str, rule: Keep, ranges: Mapping[str, Number], cells: Cells, bound: BoundValues) -> str:
    if rule.ranged:
        low, high = (None if end is None else bound.value(end) for end in (rule.minimum, rule.maximum))
        number = ranges[name].value
        within = [f"({number}) IS NOT NULL", f"NOT {cells.missing(name)}"]
        within += [f"({number}) >= {low}"] if low else []
        within += [f"({number}) <= {high}"] if high else []
        return f"coalesce({' AND '.join(within)}, false)"
    return f"NOT {cells.missing(name)}" if rule.present else bound.among(cells.text(name), rule.values)


def unlisted(cells: Cells) -> list[Rule]:
    """Values that the mapping of a derived column does not list."""
    return [Rule(cells.unlisted(name), Refusal.UNKNOWN_CATEGORY, name) for name in cells.derived]


def decided(decision: Decision, cells: Cells, bound: BoundValues) -> str:
    """SQL of a decision: true, false, or null where the value is neither."""
    text = cells.text(decision.column)
    no, yes = bound.among(text, decision.unfavourable), bound.among(text, decision.favourable)
    return f"CASE WHEN {no} THEN false WHEN {yes} THEN true END"


def undecided(decision: Decision, sql: str, cells: Cells) -> list[Rule]:
    """Rows without a decision, and with one that the audit is not about."""
    unknown, missing = f"({sql}) IS NULL", cells.missing(decision.column)
    return [
        Rule(f"{unknown} AND {missing}", Refusal.MISSING_DECISION, decision.column),
        Rule(f"{unknown} AND NOT {missing}", Refusal.DECISION_NOT_AUDITED, decision.column),
    ]


def untyped(
    columns: Mapping[str, ColumnSpec], read: Mapping[str, Number], cells: Cells, bound: BoundValues
) -> list[Rule]:
    """Values that do not fit the type of their column."""
    rules: list[Rule] = []
    for name, column in columns.items():
        if column.type is Kind.CONTINUOUS:
            rules.append(Rule(read[name].unread, Refusal.NOT_A_NUMBER, name))
            rules.append(Rule(read[name].infinite, Refusal.NOT_FINITE, name))
        elif column.order:
            known = bound.among(cells.text(name), column.order)
            rules.append(Rule(f"NOT ({known}) AND NOT {cells.absent(name)}", Refusal.UNKNOWN_CATEGORY, name))
    return rules


def first_broken(rules: Sequence[Rule]) -> tuple[str, list[Line]]:
    """SQL of the number of a row's line, null of a row that is used; and the lines by their number."""
    lines = list(dict.fromkeys(rule.line for rule in rules))
    cases = " ".join(f"WHEN {rule.broken} THEN {lines.index(rule.line)}" for rule in rules if rule.broken != "false")
    return f"CAST(CASE {cases} ELSE NULL END AS INTEGER)" if cases else "CAST(NULL AS INTEGER)", lines
