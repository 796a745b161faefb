"""Rules of a table: its declaration as conditions in DuckDB's SQL.

A rule keeps the name of the Great Expectations expectation that states it, and means the same: NaN counts as absent,
absent values keep every range and code set, and every row of a repeated key breaks uniqueness.

Scope: what is asked of a table. Counting: ``counts``. The verdict: ``judge``.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from schemas.table import Column, Table

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
    """The rules about values of a table whose columns have the declared names and types.

    A row that breaks several is set aside for the first: a key of several columns comes before the columns.
    """
    key = [column for name in declared.key for column in declared.columns if column.name == name]
    rules = [_of_key(key)] if len(key) > 1 else []
    for column in declared.columns:
        rules += _of_column(column)
        rules += [_of_key(key)] if key == [column] else []
    return rules


def types(schema: pa.Schema, declared: Table) -> Count:
    """The count of columns whose name or Arrow type is not the declared one.

    Arrow types are compared as text: ``string`` and ``large_string`` or a dictionary of strings are not the same.
    """
    wanted = {field.name: str(field.type) for field in declared.schema()}
    found = {field.name: str(field.type) for field in schema}
    names = list(dict.fromkeys([*wanted, *found]))
    wrong = [name for name in names if wanted.get(name) != found.get(name)]
    return Count(_pair(", ".join(wrong) or None, "declared_type", "written_type"), len(names), len(wrong))


def order(schema: pa.Schema, declared: Table) -> Count:
    """The count of columns that are not at their declared place."""
    wanted = [column.name for column in declared.columns]
    wrong = sum(name != found for name, found in zip(wanted, schema.names, strict=True))
    return Count(Rule(ORDERED, ", ".join(wanted), "{}"), len(wanted), wrong)


def balance(rows_in: int, rows_out: int, refused: int) -> Count:
    """Whether rows in = rows out + rows refused: one pair of numbers."""
    return Count(_pair(None, "rows_in", "rows_out_and_refused"), 1, int(rows_in != rows_out + refused))


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _pair(column: str | None, first: str, second: str) -> Rule:
    return Rule(EQUAL_PAIR, column, json.dumps({"column_A": first, "column_B": second}))


def _of_column(column: Column) -> Iterator[Rule]:
    there, name = _present(column), quoted(column.name)
    if not column.nullable:
        yield Rule(NOT_NULL, column.name, "{}", broken=_absent(column))
    limits = {"max_value": (column.maximum, "<="), "min_value": (column.minimum, ">=")}
    bounds = {key: (float(limit), sign) for key, (limit, sign) in limits.items() if limit is not None}
    if bounds:
        expected = json.dumps({key: limit for key, (limit, _) in bounds.items()})
        inside = " AND ".join(f"{name} {sign} ?" for _, sign in bounds.values())
        yield Rule(BETWEEN, column.name, expected, there, f"NOT ({inside})", tuple(b for b, _ in bounds.values()))
    if column.codes:
        codes = [str(code) for code in column.codes]
        places = ", ".join("?" * len(codes))
        yield Rule(IN_SET, column.name, json.dumps({"value_set": codes}), there, f"{name} NOT IN ({places})", (*codes,))


def _of_key(columns: list[Column]) -> Rule:
    """Rows without any value of the key are not compared with each other; one absent value equals another."""
    there = " OR ".join(f"({_present(column)})" for column in columns)
    parts = tuple(_or_null(column) for column in columns)
    expectation = UNIQUE if len(columns) == 1 else UNIQUE_TOGETHER
    return Rule(expectation, ", ".join(column.name for column in columns), "{}", there, key=parts)


def _or_null(column: Column) -> str:
    """A value, or NULL where it is absent."""
    name = quoted(column.name)
    return f"CASE WHEN {_present(column)} THEN {name} END" if column.type == "double" else name


def _absent(column: Column) -> str:
    return f"NOT ({_present(column)})" if column.type == "double" else f"{quoted(column.name)} IS NULL"


def _present(column: Column) -> str:
    """Condition of a value that is there: DuckDB takes NaN for a number above all others."""
    name = quoted(column.name)
    return f"{name} IS NOT NULL AND NOT isnan({name})" if column.type == "double" else f"{name} IS NOT NULL"
