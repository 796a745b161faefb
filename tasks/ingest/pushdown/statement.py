"""The statement of an audit: of every row of the source what the audit says of it.

In any order it gives ``place``, ``row_id``, ``refused`` (the number of its line of reason and column, null of a row
that is used), ``favourable``, ``outcome``, ``exempt`` (the first feature that is), ``g0``, ``g1``, ... (its groups) and
``v0``, ``v1``, ... (its typed columns).
"""
# ruff: noqa: S608 names are ours, values are bound

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from schemas.audit.column import ColumnSpec
from schemas.audit.source import Source
from schemas.audit.spec import Decision, Protected
from schemas.terms import Kind
from tasks.ingest.pushdown import reasons
from tasks.ingest.pushdown.bound_values import BoundValues
from tasks.ingest.pushdown.cells import Cells, lay_cells
from tasks.ingest.pushdown.groups import groups
from tasks.ingest.pushdown.numbers import Number, Wanted, numbers
from tasks.ingest.pushdown.reasons import Line
from tasks.ingest.pushdown.texts import lay_texts
from tasks.ingest.sources.laid import Laid

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class Question:
    """What the audit spec says of rows."""

    source: Source
    row_id: str | None
    decision: Decision
    outcome: Decision | None
    protected: tuple[Protected, ...]
    columns: Mapping[str, ColumnSpec]
    """Those that are kept."""


@dataclass(frozen=True)
class Statement:
    """SQL over the views of a connection."""

    sql: str
    """The rows in any order."""
    lines: Sequence[Line]
    """Reason and column by the number in ``refused``."""
    cells: Cells
    rows: str
    """The rows and what is joined to them, for another question."""
    kept: str
    """Whether ``source.keep`` keeps a row, whatever else is said of it."""


def statement(question: Question, laid: Laid, connection: "duckdb.DuckDBPyConnection") -> Statement:
    """Lay the views and look into the columns, for the statement over them."""
    bound = BoundValues(connection)
    lay_texts(laid, connection, bound)
    cells = lay_cells(laid.columns, question.source, question.columns, connection, bound)
    typed, ranges, joins = _numbers(question, cells, connection)
    ids = reasons.row_ids(question.row_id, cells, connection)
    filtered = reasons.not_kept(question.source.keep, ranges, cells, bound)
    favourable = reasons.decided(question.decision, cells, bound)
    outcome = reasons.decided(question.outcome, cells, bound) if question.outcome else favourable
    rules = [*reasons.of_policy(laid), *ids.rules, *filtered, *reasons.unlisted(cells)]
    rules += reasons.undecided(question.decision, favourable, cells)
    rules += reasons.undecided(question.outcome, outcome, cells) if question.outcome else []
    rules += reasons.untyped(question.columns, typed, cells, bound)
    refused, lines = reasons.first_broken(rules)
    chosen = ["place", f"{ids.sql} AS row_id", f"{refused} AS refused", f"{favourable} AS favourable"]
    chosen += [f"{outcome} AS outcome", f"{_first_exempt(question.columns, cells, bound)} AS exempt"]
    chosen += [f"{sql} AS g{i}" for i, sql in enumerate(groups(question.protected, cells, bound))]
    chosen += [f"{_value(n, c, typed, cells)} AS v{i}" for i, (n, c) in enumerate(question.columns.items())]
    rows = f"cells {' '.join(joins)}"
    kept = " AND ".join(f"NOT ({rule.broken})" for rule in filtered) or "true"
    return Statement(f"SELECT {', '.join(chosen)} FROM {rows}", lines, cells, rows, kept)


def _numbers(
    question: Question, cells: Cells, connection: "duckdb.DuckDBPyConnection"
) -> tuple[dict[str, Number], dict[str, Number], list[str]]:
    """The continuous columns by name; those of which a range is kept, whole; and what they have to be joined with."""
    continuous = [name for name, column in question.columns.items() if column.type is Kind.CONTINUOUS]
    ranged = [name for name, rule in question.source.keep.items() if rule.ranged]
    wanted = [*(Wanted(n, cells.absent(n)) for n in continuous), *(Wanted(n, "false") for n in ranged)]
    read = numbers(cells, wanted, connection)
    joins = [number.join for number in read if number.join]
    typed, whole = read[: len(continuous)], read[len(continuous) :]
    return dict(zip(continuous, typed, strict=True)), dict(zip(ranged, whole, strict=True)), joins


def _first_exempt(columns: Mapping[str, ColumnSpec], cells: Cells, bound: BoundValues) -> str:
    """Name of the first feature that is exempt from reporting."""
    features = [name for name, column in columns.items() if column.used]
    cases = " ".join(f"WHEN {cells.exempt(name)} THEN {bound.value(name)}" for name in features)
    return f"CASE {cases} ELSE NULL END" if cases else "NULL::VARCHAR"


def _value(name: str, column: ColumnSpec, typed: Mapping[str, Number], cells: Cells) -> str:
    """A finite number or a text; null where it is missing or exempt."""
    if column.type is Kind.CONTINUOUS:
        number = typed[name]
        return (
            number.value
            if number.infinite == "false"
            else f"CASE WHEN isfinite({number.value}) THEN {number.value} END"
        )
    return f"CASE WHEN {cells.absent(name)} THEN NULL ELSE {cells.text(name)} END"
