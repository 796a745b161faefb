"""Validates a Parquet file of any size against the declaration of its table, by aggregates that DuckDB streams.

The same rules as in ``tasks.pipeline.validation``: columns in order and types, nulls, ranges, code sets and the key.
That one shows the rows that break a rule, to set them aside; here a row that breaks one is a fault of ours, and the
file is not published.
"""
# ruff: noqa: S608 what goes into the SQL is quoted

from collections.abc import Iterator
from pathlib import Path

import duckdb

from schemas.errors import SuiteError
from schemas.table import Column, Table
from tasks.ingest.hmda.canonical.cells import SQL_TYPES, enumeration, parquet, quoted


def check(connection: duckdb.DuckDBPyConnection, file: Path, declared: Table) -> None:
    """Hold a file against the declaration of its rows, whose key is one column.

    Raises:
        SuiteError: it does not keep it; the column and the number of rows are named.
    """
    table = parquet(file)
    _check_types(connection, table, declared)
    rules = [(column, rule) for column in declared.columns for rule in _broken(column)]
    counts = connection.execute(f"SELECT {', '.join(rule for _, rule in rules)} FROM {table}").fetchone() or ()
    for (column, _), rows in zip(rules, counts, strict=True):
        if rows:
            raise SuiteError(
                f"{declared.name}.{column.name}: {rows:,} rows break its declaration; nothing is published"
            )
    (key,) = declared.key
    numbers = next(column for column in declared.columns if column.name == key).type != "string"
    twice = _repeated(connection, table, key) if numbers else _alike(connection, table, key)
    if twice:
        shared = "number" if numbers else "text"
        raise SuiteError(
            f"{declared.name}.{key}: {twice:,} rows share their {shared} with another; nothing is published"
        )


def _check_types(connection: duckdb.DuckDBPyConnection, table: str, declared: Table) -> None:
    found = [(name, kind) for name, kind, *_ in connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()]
    wanted = [(column.name, SQL_TYPES[column.type]) for column in declared.columns]
    if found != wanted:
        wrong = sorted(set(found) ^ set(wanted)) or "their order"
        raise SuiteError(f"{declared.name}: columns are not as declared: {wrong}; nothing is published")


def _broken(column: Column) -> Iterator[str]:
    """SQL of how many values break each rule of a column."""
    name = quoted(column.name)
    if not column.nullable:
        yield f"count(*) - count({name})"
    if column.minimum is not None:
        yield f"count(*) FILTER (WHERE NOT {name} >= {column.minimum!r})"
    if column.maximum is not None:
        yield f"count(*) FILTER (WHERE NOT {name} <= {column.maximum!r})"
    if column.codes:  # asked so, DuckDB looks at every entry of the file's dictionary once, and not at every row
        yield f"count({name}) - count(TRY_CAST({name} AS {enumeration(column.codes)}))"


def _repeated(connection: duckdb.DuckDBPyConnection, table: str, key: str) -> int:
    """Rows whose number occurs before: each number is a bit of the word of its 64, so that memory stays small."""
    words = (
        f"SELECT count(*) AS n, bit_count(bit_or(1::HUGEINT << CAST({quoted(key)} % 64 AS INTEGER))) AS each "
        f"FROM {table} GROUP BY {quoted(key)} // 64"
    )
    counted = connection.execute(f"SELECT coalesce(sum(n - each), 0) FROM ({words})").fetchone()
    return int(counted[0]) if counted else 0


def _alike(connection: duckdb.DuckDBPyConnection, table: str, key: str) -> int:
    """Rows whose text occurs before; of tables that are short."""
    counted = connection.execute(f"SELECT count(*) - count(DISTINCT {quoted(key)}) FROM {table}").fetchone()
    return int(counted[0]) if counted else 0
