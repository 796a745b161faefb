"""Rules of a table: their names, their conditions in SQL, and the identifiers of rows that break one.

A rule keeps the name of the Great Expectations expectation that states it, and means the same: NaN counts as absent,
absent values keep every range and code set, and every row of a repeated key breaks uniqueness. Great Expectations
judges; SQL names the rows, as its own lists of rows are cut. Scope: one rule. All rules of a table: ``suites``.
"""

# ruff: noqa: S608 what goes into the SQL is quoted, or a literal

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from schemas.table import Column, Table
from tasks.pipeline.validation.connections import Content, literal, quoted, rows_of, view

NOT_NULL = "expect_column_values_to_not_be_null"
BETWEEN = "expect_column_values_to_be_between"
IN_SET = "expect_column_values_to_be_in_set"
UNIQUE = "expect_column_values_to_be_unique"
UNIQUE_TOGETHER = "expect_compound_columns_to_be_unique"
ORDERED = "expect_table_columns_to_match_ordered_list"
TYPES = "expect_table_columns_to_have_types"
ROW_COUNT = "expect_table_row_count_to_equal"


@dataclass(frozen=True)
class Rule:
    """One rule about values of a table."""

    expectation: str
    """Name of the expectation, as the table ``validations`` has it."""
    column: str
    """The column or columns that it is about."""
    expected: str
    """Its arguments as JSON."""
    broken: str
    """Condition of a row of the view that breaks it."""


def rules_of(declared: Table) -> list[Rule]:
    """The rules about values of a table with columns of the declared names and types.

    A row that breaks several is set aside for the first: a key of several columns comes before the columns.
    """
    rules = [_of_key(declared.key)] if len(declared.key) > 1 else []
    for column in declared.columns:
        rules += _of_column(column)
        rules += [_of_key(declared.key)] if declared.key == (column.name,) else []
    return rules


def broken_rows(name: str, content: Content, rule: Rule, most: int | None) -> tuple[str, ...]:
    """``row_id`` of the rows that break a rule, in the order of the table; the first ``most`` if that is given.

    A row without an identifier is not among them.
    """
    with view(name, content):
        marked_rows = f"SELECT row_id, row_number() OVER () AS place, {rule.broken} AS broken FROM {quoted(name)}"
        query = f"SELECT row_id FROM ({marked_rows}) WHERE broken AND row_id IS NOT NULL ORDER BY place"
        row_ids = rows_of(query if most is None else f"{query} LIMIT {most}")
    return tuple(row_id for (row_id,) in row_ids)


def outside(column: str, low: float | None, high: float | None) -> str:
    """Condition of a value that is not within its limits; never of an absent one."""
    limits = ((high, "<="), (low, ">="))
    inside = [f"{quoted(column)} {sign} {literal(float(limit))}" for limit, sign in limits if limit is not None]
    return f"NOT ({' AND '.join(inside)})"


def not_in(column: str, values: Sequence[str]) -> str:
    """Condition of a value that is not in a set; never of an absent one."""
    return f"{quoted(column)} NOT IN ({', '.join(literal(str(value)) for value in values)})"


def some_present(columns: Sequence[str]) -> str:
    """Condition of a row with any value of a key: the others are not compared with each other."""
    return "(" + " OR ".join(f"{quoted(column)} IS NOT NULL" for column in columns) + ")"


def repeated(columns: Sequence[str]) -> str:
    """Condition of a row with a key that another row has, too; one absent value equals another."""
    names = ", ".join(quoted(column) for column in columns)
    return f"{some_present(columns)} AND count(*) OVER (PARTITION BY {names}) > 1"


def bounds_of(column: Column) -> dict[str, float]:
    """Limits of a column as arguments of an expectation; empty where it has none."""
    limits = {"max_value": column.maximum, "min_value": column.minimum}
    return {key: float(limit) for key, limit in limits.items() if limit is not None}


def _of_column(column: Column) -> Iterator[Rule]:
    name = column.name
    if not column.nullable:
        yield Rule(NOT_NULL, name, "{}", f"{quoted(name)} IS NULL")
    if bounds := bounds_of(column):
        yield Rule(BETWEEN, name, json.dumps(bounds), outside(name, column.minimum, column.maximum))
    if column.codes:
        codes = [str(code) for code in column.codes]
        yield Rule(IN_SET, name, json.dumps({"value_set": codes}), not_in(name, codes))


def _of_key(columns: Sequence[str]) -> Rule:
    return Rule(UNIQUE if len(columns) == 1 else UNIQUE_TOGETHER, ", ".join(columns), "{}", repeated(columns))
