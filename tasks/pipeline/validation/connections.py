"""DuckDB for validation: one database a process, one connection a thread, and a table as a view of it.

A view gives NaN as absent: DuckDB takes it for a number above all others. Scope: connections and views. SQL of rules:
``rows``. What Great Expectations asks over them: ``source``.
"""

import os
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias

import duckdb
import pyarrow as pa

from tasks.lake.storage import Setting, connected

if TYPE_CHECKING:
    import pyarrow.dataset as pads

Content: TypeAlias = "pa.Table | pads.Dataset"
"""Rows in memory, or in one or several Parquet files that are read as a stream."""
MEMORY = "500MB"
"""Of DuckDB; what does not fit goes to the disk."""

_OF_THREAD = threading.local()


def connection() -> duckdb.DuckDBPyConnection:
    """The connection of this thread: the one that ``using`` put in place, or else that of the process's database."""
    open_connections: list[duckdb.DuckDBPyConnection] = getattr(_OF_THREAD, "using", [])
    if open_connections:
        return open_connections[-1]
    if getattr(_OF_THREAD, "process", None) != os.getpid():  # the child of a fork opens its own
        _OF_THREAD.connection, _OF_THREAD.process = _database(os.getpid()).cursor(), os.getpid()
    own: duckdb.DuckDBPyConnection = _OF_THREAD.connection
    return own


@contextmanager
def view(name: str, content: Content) -> Iterator[None]:
    """A table as the view ``name`` of this thread's connection, with NaN as absent; it is dropped at the end."""
    of_thread, rows = connection(), f"rows of {name}"
    if isinstance(content, pa.Table):
        of_thread.register(rows, content)
        source = quoted(rows)
    else:
        source = f"read_parquet([{', '.join(literal(str(path)) for path in content.files)}], hive_partitioning=false)"
    columns = ", ".join(_without_nan(field) for field in content.schema)
    try:
        of_thread.execute(f"CREATE OR REPLACE TEMP VIEW {quoted(name)} AS SELECT {columns or '1'} FROM {source}")  # noqa: S608 names are quoted
        yield
    finally:
        of_thread.execute(f"DROP VIEW IF EXISTS {quoted(name)}")
        of_thread.unregister(rows)


@contextmanager
def confined(content: Content) -> Iterator[None]:
    """A database for foreign SQL, which reads no file but those of the table, writes none and keeps its settings."""
    files = [] if isinstance(content, pa.Table) else [str(Path(path).resolve()) for path in content.files]
    # DuckDB may also read and write where it spills, so that this is a folder without anything else
    with TemporaryDirectory() as spill, connected({**_settings(), "temp_directory": spill}) as database:
        database.execute(f"SET allowed_paths = [{', '.join(literal(path) for path in files)}]")
        database.execute("SET enable_external_access = false")
        database.execute("SET lock_configuration = true")
        _OF_THREAD.using = [*getattr(_OF_THREAD, "using", []), database]
        try:
            yield
        finally:
            _OF_THREAD.using = _OF_THREAD.using[:-1]


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str | float) -> str:
    """A text or number as SQL: numbers are doubles, as a decimal number would be compared exactly."""
    text = "'" + str(value).replace("'", "''") + "'"
    return text if isinstance(value, str) else f"CAST({text} AS DOUBLE)"


def rows_of(query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """All rows of a query over the views of this thread."""
    return connection().execute(query, list(parameters)).fetchall()


def _without_nan(field: pa.Field) -> str:
    name = quoted(field.name)
    return f"CASE WHEN NOT isnan({name}) THEN {name} END AS {name}" if pa.types.is_floating(field.type) else name


@cache
def _database(process: int) -> duckdb.DuckDBPyConnection:  # noqa: ARG001 the child of a fork opens its own
    """One database without tables a process: to open one costs as much as to count the tables of a small stage."""
    return connected(_settings())


def _settings() -> Mapping[str, Setting]:
    where = tempfile.gettempdir()
    return {"threads": 1, "temp_directory": where, "memory_limit": MEMORY, "python_enable_replacements": False}
