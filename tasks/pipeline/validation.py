"""Validation at the boundary of a stage: rules of a table, counted by DuckDB."""

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import duckdb
import pyarrow as pa

from schemas.table import Column, Table
from schemas.tables.applications import VALIDATIONS
from tasks.lake.storage import connected

if TYPE_CHECKING:
    import pyarrow.dataset as pads


# --------------------------------------------------------------------------------------------------------------------
# Rules of a table: its declaration as conditions in DuckDB's SQL.
#
# A rule keeps the name of the Great Expectations expectation that states it, and means the same: NaN counts as absent,
# absent values keep every range and code set, and every row of a repeated key breaks uniqueness.
#
# Scope: what is asked of a table. Counting: ``counts``. The verdict: ``judge``.


NOT_NULL = "expect_column_values_to_not_be_null"
BETWEEN = "expect_column_values_to_be_between"
IN_SET = "expect_column_values_to_be_in_set"
UNIQUE = "expect_column_values_to_be_unique"
UNIQUE_TOGETHER = "expect_compound_columns_to_be_unique"
ORDERED = "expect_table_columns_to_match_ordered_list"
EQUAL_PAIR = "expect_column_pair_values_to_be_equal"

EVERY = "true"
"""Condition of every row."""


@dataclass(frozen=True)
class Rule:
    """One rule of a table."""

    expectation: str
    """Name of the expectation, as the table ``validations`` has it."""
    column: str | None
    """The column or columns that it is about."""
    expected: str
    """Its arguments as JSON."""
    element: str = EVERY
    """Condition of a row whose value is held against the rule."""
    broken: str = "false"
    """Condition of such a row that breaks it; its ``?`` stand for ``values``, in order."""
    values: tuple[str | float, ...] = ()
    key: tuple[str, ...] = ()
    """Expressions that must be unique together; ``broken`` is not used then."""

    @property
    def names_rows(self) -> bool:
        """Whether it is about single rows, which can be named, and not about the table as a whole."""
        return bool(self.key) or self.broken != "false"


@dataclass(frozen=True)
class Count:
    """A rule and how many values were held against it."""

    rule: Rule
    elements: int
    unexpected: int


def rules_of(declared: Table) -> list[Rule]:
    """The rules about values of a table with columns of the declared names and types.

    A row that breaks several is set aside for the first: a key of several columns comes before the columns.
    """
    key = [column for name in declared.key for column in declared.columns if column.name == name]
    rules = [_of_key(key)] if len(key) > 1 else []
    for column in declared.columns:
        rules += _of_column(column)
        rules += [_of_key(key)] if key == [column] else []
    return rules


def types(schema: pa.Schema, declared: Table) -> Count:
    """The count of columns with a name or Arrow type other than the declared one.

    Arrow types are compared as text: ``string`` and ``large_string`` or a dictionary of strings are not the same.
    """
    declared_types = {field.name: str(field.type) for field in declared.schema()}
    actual_types = {field.name: str(field.type) for field in schema}
    names = list(dict.fromkeys([*declared_types, *actual_types]))
    wrong = [name for name in names if declared_types.get(name) != actual_types.get(name)]
    return Count(_pair(", ".join(wrong) or None, "declared_type", "written_type"), len(names), len(wrong))


def order(schema: pa.Schema, declared: Table) -> Count:
    """The count of columns that are not at their declared place."""
    declared_names = [column.name for column in declared.columns]
    wrong = sum(name != actual for name, actual in zip(declared_names, schema.names, strict=True))
    return Count(Rule(ORDERED, ", ".join(declared_names), "{}"), len(declared_names), wrong)


def balance(rows_in: int, rows_out: int, refused: int) -> Count:
    """Whether rows in = rows out + rows refused: one pair of numbers."""
    return Count(_pair(None, "rows_in", "rows_out_and_refused"), 1, int(rows_in != rows_out + refused))


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _pair(column: str | None, first: str, second: str) -> Rule:
    return Rule(EQUAL_PAIR, column, json.dumps({"column_A": first, "column_B": second}))


def _of_column(column: Column) -> Iterator[Rule]:
    present, name = _present(column), quoted(column.name)
    if not column.nullable:
        yield Rule(NOT_NULL, column.name, "{}", broken=_absent(column))
    limits = {"max_value": (column.maximum, "<="), "min_value": (column.minimum, ">=")}
    bounds = {key: (float(limit), sign) for key, (limit, sign) in limits.items() if limit is not None}
    if bounds:
        expected = json.dumps({key: limit for key, (limit, _) in bounds.items()})
        inside = " AND ".join(f"{name} {sign} ?" for _, sign in bounds.values())
        yield Rule(BETWEEN, column.name, expected, present, f"NOT ({inside})", tuple(b for b, _ in bounds.values()))
    if column.codes:
        codes = [str(code) for code in column.codes]
        places = ", ".join("?" * len(codes))
        yield Rule(
            IN_SET, column.name, json.dumps({"value_set": codes}), present, f"{name} NOT IN ({places})", (*codes,)
        )


def _of_key(columns: list[Column]) -> Rule:
    """Rows without any value of the key are not compared with each other; one absent value equals another."""
    present = " OR ".join(f"({_present(column)})" for column in columns)
    parts = tuple(_or_null(column) for column in columns)
    expectation = UNIQUE if len(columns) == 1 else UNIQUE_TOGETHER
    return Rule(expectation, ", ".join(column.name for column in columns), "{}", present, key=parts)


def _or_null(column: Column) -> str:
    """A value, or NULL where it is absent."""
    name = quoted(column.name)
    return f"CASE WHEN {_present(column)} THEN {name} END" if column.type == "double" else name


def _absent(column: Column) -> str:
    return f"NOT ({_present(column)})" if column.type == "double" else f"{quoted(column.name)} IS NULL"


def _present(column: Column) -> str:
    """Condition of a present value: DuckDB takes NaN for a number above all others."""
    name = quoted(column.name)
    return f"{name} IS NOT NULL AND NOT isnan({name})" if column.type == "double" else f"{name} IS NOT NULL"


# --------------------------------------------------------------------------------------------------------------------
# Counts of rules over all rows of a table, by DuckDB in one pass.
#
# A key is unique if there are as many hashes of it as rows; only where there are fewer are the keys themselves grouped.
# DuckDB streams the table and uses one thread. Counts are integers, so they are the same for any order of the rows.
#
# Scope: numbers of rows, and identifiers of those that break a rule. The rules: ``rules``.


Content: TypeAlias = "pa.Table | pads.Dataset"
"""Rows in memory, or in one or several Parquet files that are read as a stream."""
HASHES = 2**24
"""Hashes of a key that are counted at a time: a table of more rows is passed over once for each part."""
MEMORY = "500MB"
"""Of DuckDB; what does not fit goes to the disk: 20 million hashes take no longer than without a limit."""


def count(content: Content, rules: Sequence[Rule]) -> list[Count]:
    """Count the elements of each rule and those that break it.

    Args:
        content: columns of the names and types that the rules are about.
        rules: at most one of them about a key.
    """
    rows = content.num_rows if isinstance(content, pa.Table) else content.count_rows()
    if not rows or not rules:
        return [Count(rule, 0, 0) for rule in rules]
    parts = -(-rows // HASHES)
    elements = list(dict.fromkeys(rule.element for rule in rules))
    expressions = [_number(condition) for condition in elements] + [_broken(rule, parts, 0) for rule in rules]
    numbers = _only(
        content, f"SELECT {', '.join(expressions)} FROM content", [v for rule in rules for v in rule.values]
    )
    of = dict(zip(elements, numbers, strict=False))
    return [
        Count(rule, of[rule.element], _repeated(content, rule, of[rule.element], n, parts) if rule.key else n)
        for rule, n in zip(rules, numbers[len(elements) :], strict=True)
    ]


def broken_rows(content: Content, rule: Rule, most: int | None) -> tuple[str, ...]:
    """``row_id`` of the rows that break a rule, in the order of the table; the first ``most`` if that is given.

    A row without an identifier is not among them.
    """
    broken = f"count(*) OVER (PARTITION BY {', '.join(rule.key)}) > 1" if rule.key else rule.broken
    marked_rows = (
        f"SELECT row_id, row_number() OVER () AS place, ({rule.element}) AND ({broken}) AS broken FROM content"
    )
    query = f"SELECT row_id FROM ({marked_rows}) WHERE broken AND row_id IS NOT NULL ORDER BY place"
    row_ids = _rows(content, query if most is None else f"{query} LIMIT {most}", rule.values)
    return tuple(row_id for (row_id,) in row_ids)


def _broken(rule: Rule, parts: int, part: int) -> str:
    """Aggregate of a rule: the elements that break it; of a key the number of different hashes in a part."""
    if not rule.key:
        return _number(rule.element, rule.broken)
    digest = f"hash({', '.join(rule.key)})"
    of_part = f"{digest} % {parts} = {part}" if parts > 1 else EVERY
    return _number(rule.element, of_part, of=f"DISTINCT {digest}")


def _number(*conditions: str, of: str = "*") -> str:
    """Aggregate of the rows that meet all conditions; one that all rows meet costs time to plan."""
    met = " AND ".join(f"({condition})" for condition in conditions if condition != EVERY)
    return f"count({of}) FILTER (WHERE {met})" if met else f"count({of})"


def _repeated(content: Content, rule: Rule, elements: int, hashes: int, parts: int) -> int:
    """Rows with a key that another row has, too; ``hashes`` are those of the first part."""
    for part in range(1, parts):
        hashes += _only(content, f"SELECT {_broken(rule, parts, part)} FROM content")[0]
    if hashes == elements:
        return 0
    keys = ", ".join(rule.key)
    grouped = f"SELECT count(*) AS n FROM content WHERE {rule.element} GROUP BY {keys} HAVING count(*) > 1"
    return _only(content, f"SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM ({grouped})")[0]


def _only(content: Content, query: str, values: Sequence[str | float] = ()) -> tuple[int, ...]:
    (row,) = _rows(content, query, values)
    return row


def _rows(content: Content, query: str, values: Sequence[str | float] = ()) -> list[tuple[Any, ...]]:
    """Rows of a query over ``content``; each query reads the rows again."""
    reader = content.to_reader() if isinstance(content, pa.Table) else _streamed(content)
    with _connected() as connection:
        connection.register("content", reader)
        return connection.execute(query, list(values)).fetchall()  # a relation would be planned twice


def _streamed(content: "pads.Dataset") -> pa.RecordBatchReader:
    """One row group after the other; a scanner of the data set holds several, and what it has read of the file."""
    from pyarrow.parquet import ParquetFile

    files = (ParquetFile(path, pre_buffer=False) for path in content.files)
    return pa.RecordBatchReader.from_batches(
        content.schema, (batch for of in files for batch in of.iter_batches(2**16))
    )


@contextmanager
def _connected() -> Iterator[duckdb.DuckDBPyConnection]:
    with _database(os.getpid()).cursor() as connection:
        try:
            yield connection
        finally:
            connection.unregister("content")


@cache
def _database(process: int) -> duckdb.DuckDBPyConnection:  # noqa: ARG001 the child of a fork opens its own
    """One database without tables a process: to open one costs as much as to count the tables of a small stage."""
    where = tempfile.gettempdir()
    return connected({"threads": 1, "temp_directory": where, "memory_limit": MEMORY})


# --------------------------------------------------------------------------------------------------------------------
# The boundary of a stage: all its tables held against their declarations in one suite.
#
# Great Expectations is imported on first use and sees counts only, so its cost does not grow with the rows.
#
# Scope: results of rules. Quarantine and errors: ``tasks.pipeline.stage``.


MOST_IDS = 10_000
"""Identifiers given for a rule of a table whose rows are not set aside; all are counted."""


@dataclass(frozen=True)
class Outcome:
    """The result of one rule on one table."""

    expectation: str
    column: str | None
    expected: str
    success: bool
    elements: int
    unexpected: int
    row_ids: tuple[str, ...]
    """Identifiers of the rows that broke it, where the table has them."""


def validate(content: Content, declared: Table) -> list[Outcome]:
    """Hold one table against its declaration; see ``validate_all``."""
    (outcomes,) = validate_all([(content, declared)])
    return outcomes


def validate_all(
    tables: Sequence[tuple[Content, Table]], rows: tuple[int, int, int] | None = None
) -> list[list[Outcome]]:
    """Hold tables against their declarations, and the numbers of rows in, out and refused against each other.

    Returns:
        The outcomes of each table, then those of the numbers of rows where they are given.

    Raises:
        InfrastructureError: the engine failed on an expectation.
    """
    from tasks.pipeline.judge import judge

    counts = [_counts(content, declared) for content, declared in tables]
    counts += [[balance(*rows)]] if rows else []
    every = [rule_count for of_table in counts for rule_count in of_table]
    verdicts = iter(
        judge([rule_count.elements for rule_count in every], [rule_count.unexpected for rule_count in every])
    )
    verdicts_by_table = [[(rule_count, next(verdicts)) for rule_count in of_table] for of_table in counts]
    sources: list[tuple[Content, Table] | None] = [*tables, *([None] if rows else [])]
    return [
        [_outcome(rule_count, is_met, source) for rule_count, is_met in of_table]
        for of_table, source in zip(verdicts_by_table, sources, strict=True)
    ]


def as_table(stage: str, results: Sequence[tuple[str, Outcome, bool]]) -> pa.Table:
    """The results of a stage, as (table, outcome, quarantined) triples, in the shape of ``VALIDATIONS``."""
    return VALIDATIONS.build(
        stage=[stage] * len(results),
        table=[name for name, _, _ in results],
        expectation=[o.expectation for _, o, _ in results],
        column=[o.column for _, o, _ in results],
        expected=[o.expected for _, o, _ in results],
        success=[o.success for _, o, _ in results],
        elements=[o.elements for _, o, _ in results],
        unexpected=[o.unexpected for _, o, _ in results],
        quarantined=[q for _, _, q in results],
    )


def prepare_engine() -> None:
    """Load Great Expectations ahead of its first use."""
    from tasks.pipeline.judge import prepare

    prepare()


def _counts(content: Content, declared: Table) -> list[Count]:
    """Columns of other names or types have no countable rules: such a table gets no further checks."""
    typed = types(content.schema, declared)
    if typed.unexpected:
        return [typed]
    return [typed, order(content.schema, declared), *count(content, rules_of(declared))]


def _outcome(rule_count: Count, is_met: bool, source: tuple[Content, Table] | None) -> Outcome:
    rule = rule_count.rule
    ids: tuple[str, ...] = ()
    if not is_met and source and rule.names_rows and "row_id" in source[0].schema.names:
        content, declared = source
        ids = broken_rows(content, rule, None if declared.per_application else MOST_IDS)
    return Outcome(
        rule.expectation, rule.column, rule.expected, is_met, rule_count.elements, rule_count.unexpected, ids
    )
