"""Intake of a source: its rows with every cell as the text that the recipe of its column makes of it, and the counts.

SQL reads plain cells; Python reads the distinct texts of the others, which are joined. Nothing is held but these texts.
Scope: queries over the rows. What a text is read as: ``recipe``; numbers in SQL: ``sql``.
"""

# ruff: noqa: S608 names are ours, values are bound or quoted

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from schemas.audit.intake import Intake
from schemas.errors import UnreadCellsError
from schemas.terms import Refusal
from tasks.ingest.hmda.canonical import literal
from tasks.ingest.intake.dates import OLDEST
from tasks.ingest.intake.recipe import UNREAD_AGE, Cell, Reading, cells_of, number_cell, readings
from tasks.ingest.intake.sql import NumberSql, layered, number_sql
from tasks.ingest.sources.raw import CellCount, Laid, RuleCount
from tasks.ingest.statement import Question

if TYPE_CHECKING:
    import duckdb

SAMPLE: Final = 20_000
"""First rows whose texts tell SQL what stands beside numbers."""
MOST_UNREAD: Final = 0.01
"""Share of unread cells, among those that are there, up to which their rows are refused; above it the audit stops."""
MOST_CASES: Final = 24
"""Texts of a column that are read as others without a join."""
TOGETHER: Final = 24
"""Columns whose texts are counted in one query."""
SHOWN: Final = 3
"""Unread cells that the terminal shows."""
_SHORT: Final = 15
"""Digits and signs of a number that every reader takes for the same."""
_UNREAD_KINDS: Final = {
    "number": "numbers",
    "date": "dates by the formats of its recipe",
    "age": f"dates of birth that give an age from 0 to {OLDEST}",
}
_PLAIN: Final = re.compile(r"[0-9]{1,15}|-[1-9][0-9]{0,14}|-?[0-9]+[.][0-9]+")
_MAP: Final = pa.schema([("text", pa.string()), ("value", pa.string())])


def read(
    view: Laid,
    names: Sequence[str],
    question: Question,
    connection: "duckdb.DuckDBPyConnection",
    partition_columns: Collection[str] = (),
) -> Laid:
    """Columns of a source by the recipe of the audit.

    Args:
        view: the source, with all of its columns where rows may repeat.
        names: the columns to give.
        question: the parts of the spec about rows; its source has a recipe.
        connection: where the source is.
        partition_columns: columns that partitions are cut by.

    Raises:
        SpecError: two values of the spec that mean different things are the same once they are folded.
    """
    intake = question.source.intake
    if intake is None:
        return view
    read_by = readings(question, names, partition_columns)
    connection.execute(f"CREATE TEMP VIEW intake_source AS {view.rows}")
    columns = _columns(view, names, read_by, connection)
    repeated = _repeats(view, intake, connection)
    quarantined, places = list(view.quarantined), [f"q{i}" for i in range(len(view.quarantined))]
    if repeated:
        places.insert(0, "place IN (SELECT place FROM intake_repeats)")
        quarantined.insert(0, (Refusal.DUPLICATE, None))
    chosen = ["place", *(f"{column.sql} AS c{i}" for i, column in enumerate(columns))]
    chosen += [f"{sql} AS q{i}" for i, sql in enumerate(places)]
    joins = " ".join(column.join for column in columns if column.join)
    as_read = [column for column in columns if column.reading]
    rows = layered("intake_source", [column.number for column in columns if column.number])
    of_cells = (RuleCount(c.name, rule, c.rules[rule], c.rules[rule]) for c in as_read for rule in sorted(c.rules))
    return replace(
        view,
        rows=f"SELECT {', '.join(chosen)} FROM {rows} AS intake_rows {joins}",
        columns=tuple(names),
        quarantined=tuple(quarantined),
        plain=frozenset(),
        as_compared=frozenset(column.name for column in as_read),
        numbers=frozenset(column.name for column in as_read if column.plain),
        dates=frozenset(name for name, reading in read_by.items() if reading.recipe.read == "date"),
        cells=tuple(column.count() for column in as_read),
        rules=(*view.rules, *_rules_of_rows(view, question, repeated, connection), *of_cells),
        unread_cells={column.name: column.unread for column in as_read if column.unread},
    )


def check_unread(view: Laid) -> None:
    """Hold the unread cells of every column against the share that may be refused.

    Raises:
        UnreadCellsError: a column has more; a few of its cells are kept apart from the message.
    """
    for count in view.cells:
        present = count.values + count.unread
        if count.unread > MOST_UNREAD * present:
            kind = _UNREAD_KINDS[count.read]
            raise UnreadCellsError(
                f"{count.unread:,} of the {present:,} cells of {count.column!r} are no {kind}, and at most "
                f"{MOST_UNREAD:.0%} may be: correct its recipe under source.intake.columns (marks, format, further "
                "words under `missing`), or leave the column out",
                view.unread_cells.get(count.column, ()),
            )


@dataclass
class _Column:
    """How one column is selected, and what became of its cells."""

    name: str
    sql: str
    reading: Reading | None = None
    number: NumberSql | None = None
    join: str = ""
    plain: bool = False
    """Whether every cell is empty or a plain number."""
    fates: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    unread: tuple[str, ...] = ()

    def count(self) -> CellCount:
        kind = self.reading.recipe.read if self.reading else "text"
        values, missing, unread = (self.fates[fate] for fate in ("value", "missing", "unread"))
        return CellCount(self.name, kind, values + missing + unread, values, missing, unread)


def _columns(
    view: Laid, names: Sequence[str], read_by: Mapping[str, Reading], connection: "duckdb.DuckDBPyConnection"
) -> list[_Column]:
    """The columns, those of one kind counted in few queries: each query binds all columns of the source."""
    at = {name: view.columns.index(name) for name in names}
    number_columns = [name for name, reading in read_by.items() if reading.recipe.read == "number"]
    cells = [f"list(DISTINCT c{at[name]})" for name in number_columns]
    chosen = ", ".join(f"c{at[name]}" for name in number_columns)
    start = f"(SELECT {chosen} FROM intake_source LIMIT {SAMPLE})"
    ((*texts,),) = connection.sql(f"SELECT {', '.join(cells)} FROM {start}").fetchall() if cells else ((),)
    samples = dict(zip(number_columns, texts, strict=True))
    texts_read = [name for name in read_by if name not in samples]
    counts: dict[str, dict[str, int]] = {}
    for first in range(0, len(texts_read), TOGETHER):
        counts |= _texts({name: at[name] for name in texts_read[first : first + TOGETHER]}, connection)
    columns = []
    for name in names:
        if name in samples:
            columns.append(_number_column(at[name], read_by[name], samples[name] or (), connection))
        elif name in counts and (decided := read_by[name].recipe.at) is not None:
            column = _Column(name, f"c{at[name]}", read_by[name])
            columns.append(_age_column(column, read_by[decided], at, counts, connection))
        elif name in counts:
            read_cells = cells_of(read_by[name], counts[name])
            column = _counted(_Column(name, f"c{at[name]}", read_by[name]), read_cells, counts[name])
            changed = {text: cell.text for text, cell in read_cells.items() if cell.text != text}
            _map(column, at[name], changed, connection)
            columns.append(column)
        else:
            columns.append(_Column(name, f"c{at[name]}"))
    return columns


def _texts(at: Mapping[str, int], connection: "duckdb.DuckDBPyConnection") -> dict[str, dict[str, int]]:
    """Texts of each column with their rows, in the order in which they come first."""
    cells = [f"c{place}" for place in dict.fromkeys(at.values())]
    sets = ", ".join(f"({cell})" for cell in cells)
    which = " ".join(f"WHEN {cell} IS NOT NULL THEN {i}" for i, cell in enumerate(cells))  # no cell of a row is null
    rows = connection.sql(
        f"SELECT CASE {which} END AS column_at, coalesce({', '.join(cells)}, NULL), count(*) FROM intake_source "
        f"GROUP BY GROUPING SETS ({sets}) ORDER BY column_at, min(place)"
    ).fetchall()
    texts: list[dict[str, int]] = [{} for _ in cells]
    for i, text, number in rows:
        texts[i][text] = number
    return {name: texts[cells.index(f"c{place}")] for name, place in at.items()}


def _age_column(
    column: _Column,
    decided: Reading,
    at: Mapping[str, int],
    counts: Mapping[str, Mapping[str, int]],
    connection: "duckdb.DuckDBPyConnection",
) -> _Column:
    """Ages at the decision: Python reads the distinct dates, SQL subtracts them as ``recipe.age_cell`` does."""
    here, there = at[column.name], at[decided.column]
    assert column.reading is not None  # noqa: S101 as a column of ages has one
    births, days = counts[column.name], counts[decided.column]
    cells = cells_of(column.reading, births)
    decided_on = {text: UNREAD_AGE if c.fate == "unread" else c.text for text, c in cells_of(decided, days).items()}
    born, birth_join = _joined(f"c{here}", f"intake_births_{here}", {t: c.text for t, c in cells.items()}, connection)
    day, day_join = _joined(f"c{there}", f"intake_days_{here}", decided_on, connection)
    column.join = f"{birth_join} {day_join}"
    years = f"CAST(left({day}, 4) AS INTEGER) - CAST(left({born}, 4) AS INTEGER)"
    years = f"{years} - CAST(right({day}, 5) < right({born}, 5) AS INTEGER)"
    column.sql = (
        f"CASE WHEN NOT contains({born}, '-') THEN {born} WHEN NOT contains({day}, '-') THEN {day} "
        f"WHEN {years} BETWEEN 0 AND {OLDEST} THEN CAST({years} AS VARCHAR) ELSE '{UNREAD_AGE}' END"
    )
    query = f"SELECT {column.sql} AS age, contains({born}, '-') AS dated, count(*) FROM intake_source {column.join}"
    for age, dated, rows in connection.sql(f"{query} GROUP BY age, dated").fetchall():
        column.fates[{"": "missing", UNREAD_AGE: "unread"}.get(age, "value")] += rows
        column.rules["age"] += rows if dated and age not in ("", UNREAD_AGE) else 0
    for text, cell in cells.items():
        column.rules.update(dict.fromkeys(cell.rules, births[text]) if cell.fate == "missing" else {})
    column.rules = +column.rules
    column.plain = not column.fates["unread"]
    return column


def _number_column(
    at: int, reading: Reading, texts: Collection[str], connection: "duckdb.DuckDBPyConnection"
) -> _Column:
    cell = f"c{at}"
    sql = number_sql(reading, at, texts)
    source = layered(f"(SELECT {cell} FROM intake_source)", [sql])
    rows = connection.sql(
        f"SELECT text, any_value({cell}), count(*), max(size) FROM (SELECT {cell}, "
        f"CASE WHEN NOT {sql.in_sql} THEN {cell} END AS text, "
        f"CASE WHEN {sql.in_sql} THEN {sql.signature} END AS signature, "
        f"CASE WHEN {sql.in_sql} THEN strlen({sql.value}) END AS size FROM {source}) "
        "GROUP BY text, signature"
    ).fetchall()
    by_sql = [(number_cell(reading, example), n, size) for text, example, n, size in rows if text is None]
    odd = {text: n for text, _, n, _ in rows if text is not None}
    cells = cells_of(reading, odd)
    column = _counted(_Column(reading.column, cell, reading, number=sql), cells, odd)
    for result, n, _ in by_sql:
        column.fates[result.fate] += n
        column.rules.update(dict.fromkeys(result.rules, n))
    values = {result.text for result in cells.values()}
    short = all(size <= _SHORT for *_, size in by_sql)
    column.plain = short and all(len(v) <= _SHORT and _PLAIN.fullmatch(v) for v in values - {""})
    if values <= {""}:
        column.sql = "''"
    else:
        _map(column, at, {text: result.text for text, result in cells.items()}, connection)
    column.sql = f"CASE WHEN {sql.in_sql} THEN {sql.value} ELSE {column.sql} END"
    return column


def _counted(column: _Column, cells: Mapping[str, Cell], counts: Mapping[str, int]) -> _Column:
    for text, result in cells.items():
        column.fates[result.fate] += counts[text]
        column.rules.update(dict.fromkeys(result.rules, counts[text]))
    unread = sorted((text for text, result in cells.items() if result.fate == "unread"), key=lambda text: -counts[text])
    column.unread = tuple(unread[:SHOWN])
    return column


def _map(column: _Column, at: int, value_of: Mapping[str, str], connection: "duckdb.DuckDBPyConnection") -> None:
    """Read texts of a column as others: few by cases, since every join takes memory; many by a table that is joined."""
    if 0 < len(value_of) <= MOST_CASES:
        cases = " ".join(f"WHEN {literal(text)} THEN {literal(value)}" for text, value in value_of.items())
        column.sql = f"CASE {column.sql} {cases} ELSE {column.sql} END"
    elif value_of:
        column.sql, column.join = _joined(column.sql, f"intake_texts_{at}", value_of, connection)


def _joined(
    cell: str, name: str, value_of: Mapping[str, str], connection: "duckdb.DuckDBPyConnection"
) -> tuple[str, str]:
    """SQL of a cell that reads texts as others, by a table of this name, and SQL of its join."""
    connection.register(name, pa.table({"text": list(value_of), "value": list(value_of.values())}, _MAP))
    return f"coalesce({name}.value, {cell})", f"LEFT JOIN {name} ON {cell} = {name}.text"


def _repeats(view: Laid, intake: Intake, connection: "duckdb.DuckDBPyConnection") -> int:
    """Number of rows that the rule about repeats refuses; their places are the table ``intake_repeats``."""
    if intake.repeats == "all":
        return 0
    cells = ", ".join(f"c{i}" for i in range(len(view.columns)))
    alike = f"SELECT hash({cells}) AS alike FROM intake_source GROUP BY alike HAVING count(*) > 1"
    refused = {"first": "nth > 1", "none": "times > 1"}[intake.repeats]
    connection.execute(
        "CREATE TEMP TABLE intake_repeats AS SELECT place FROM ("
        f"SELECT place, row_number() OVER (same ORDER BY place) AS nth, count(*) OVER same AS times FROM intake_source "
        f"WHERE hash({cells}) IN ({alike}) WINDOW same AS (PARTITION BY {cells})) WHERE {refused}"
    )
    ((number,),) = connection.sql("SELECT count(*) FROM intake_repeats").fetchall()
    return int(number)


def _rules_of_rows(
    view: Laid, question: Question, repeated: int, connection: "duckdb.DuckDBPyConnection"
) -> Iterator[RuleCount]:
    source = question.source
    ((rows,),) = connection.sql("SELECT count(*) FROM intake_source").fetchall()
    foot = sum(unread.reason is Refusal.FOOTER for unread in view.unread)
    counts = {
        "encoding": rows if source.encoding != "utf-8" else 0,
        "skip": source.skip * len(source.paths),
        "foot": foot,
        "repeat": repeated,
    }
    yield from (RuleCount("", rule, 0, number) for rule, number in counts.items() if number)
