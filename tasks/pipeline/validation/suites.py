"""Suites of expectations from the declaration of a table: a kind of rule a time, or in standard expectations.

The boundary of a stage judges by the first, in one query a table. Files for others have the second, which any Great
Expectations reads without this package. Scope: which expectations. What they count: ``expectations``.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from schemas.table import Table
from tasks.pipeline.validation import expectations as ours
from tasks.pipeline.validation.rows import (
    BETWEEN,
    IN_SET,
    NOT_NULL,
    ORDERED,
    ROW_COUNT,
    UNIQUE,
    UNIQUE_TOGETHER,
    bounds_of,
    repeated,
)
from tasks.pipeline.validation.source import expectation, suite_of

SQL_TYPES = {
    "string": "VARCHAR",
    "double": "DOUBLE",
    "int64": "BIGINT",
    "int32": "INTEGER",
    "bool": "BOOLEAN",
    "doubles": "DOUBLE[]",
    "strings": "VARCHAR[]",
    "binary": "BLOB",
}
"""DuckDB's type of a declared one."""
_TABLES = 1_000
"""Declarations of which the expectations are kept: a worker judges the same ones for every partition."""


@lru_cache(_TABLES)
def of_schema(declared: Table) -> tuple[Any, ...]:
    """Expectations about names, order and types of columns; where one fails nothing else of the table is judged."""
    names = [column.name for column in declared.columns]
    types = {column.name: SQL_TYPES[column.type] for column in declared.columns}
    return expectation(ORDERED, {"column_list": names}), ours.ExpectTableColumnsToHaveTypes(types=types)


@lru_cache(_TABLES)
def of_values(declared: Table) -> tuple[Any, ...]:
    """Expectations about values: one for each kind of rule that the table has."""
    required = [column.name for column in declared.columns if not column.nullable]
    bounds = {column.name: limits for column in declared.columns if (limits := bounds_of(column))}
    sets = {column.name: [str(code) for code in column.codes] for column in declared.columns if column.codes}
    suite = [ours.ExpectColumnsToHaveNoMissingValues(columns=required)] if required else []
    suite += [ours.ExpectColumnsToBeBetween(bounds=bounds)] if bounds else []
    suite += [ours.ExpectColumnsToBeInSets(value_sets=sets)] if sets else []
    suite += [ours.ExpectTableKeyToBeUnique(columns=list(declared.key))] if declared.key else []
    return tuple(suite)


@lru_cache(_TABLES)
def of_rows(number: int) -> Any:
    """The expectation about the number of rows."""
    return expectation(ROW_COUNT, {"value": number})


def standard(declared: Table) -> dict[str, Any]:
    """The suite of a table in Great Expectations' own expectations, one a rule, as its JSON.

    A key of several columns that may have absent parts is a query: on a database its own expectation joins by equality
    and misses such keys.
    """
    names = [column.name for column in declared.columns]
    suite = [expectation(ORDERED, {"column_list": names}), *_of_columns(declared), *_of_key(declared)]
    content: dict[str, Any] = suite_of(declared.name, suite).to_json_dict()
    return {name: value for name, value in content.items() if name != "id"}


def _of_columns(declared: Table) -> Iterator[Any]:
    for column in declared.columns:
        if not column.nullable:
            yield expectation(NOT_NULL, {"column": column.name})
        if bounds := bounds_of(column):
            yield expectation(BETWEEN, {"column": column.name, **bounds})
        if column.codes:
            yield expectation(IN_SET, {"column": column.name, "value_set": [str(code) for code in column.codes]})


def _of_key(declared: Table) -> Iterator[Any]:
    nullable = [column.name for column in declared.columns if column.nullable and column.name in declared.key]
    if len(declared.key) == 1:
        yield expectation(UNIQUE, {"column": declared.key[0]})
    elif nullable:
        query = f"SELECT * FROM {{batch}} QUALIFY {repeated(declared.key)}"  # noqa: S608 names are quoted
        yield expectation("unexpected_rows_expectation", {"unexpected_rows_query": query})
    elif declared.key:
        yield expectation(UNIQUE_TOGETHER, {"column_list": list(declared.key)})
