"""A dialect of SQLAlchemy for DuckDB, with what Great Expectations needs to judge tables.

A statement is executed and all its rows are fetched at once: Great Expectations gives the connection back before it
fetches, SQLAlchemy rolls back then, and DuckDB drops a pending result when it rolls back. Nothing is committed, as
nothing is written. Scope: statements and reflection. The connections themselves: ``connections``.
"""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import duckdb
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, registry
from sqlalchemy.dialects.postgresql.base import PGCompiler, PGDialect, PGIdentifierPreparer
from sqlalchemy.engine import default
from sqlalchemy.pool import NullPool
from sqlalchemy.types import UserDefinedType

from tasks.pipeline.validation.connections import connection, quoted, rows_of

URL = "evenhand_duckdb://"

_TYPES: dict[str, Any] = {
    "VARCHAR": sa.VARCHAR,
    "DOUBLE": sa.DOUBLE,
    "FLOAT": sa.FLOAT,
    "BIGINT": sa.BIGINT,
    "INTEGER": sa.INTEGER,
    "SMALLINT": sa.SMALLINT,
    "BOOLEAN": sa.BOOLEAN,
    "BLOB": sa.BLOB,
    "DATE": sa.DATE,
    "TIMESTAMP": sa.TIMESTAMP,
}


class OtherType(UserDefinedType[Any]):
    """A type of DuckDB that SQLAlchemy has no class for, such as a list of doubles."""

    cache_ok = True

    def __init__(self, name: str = "OTHER") -> None:
        self.name = name

    def get_col_spec(self, **_: Any) -> str:
        """Its name in DuckDB."""
        return self.name


class Cursor:
    """A cursor of Python's database interface that holds all rows of its statement."""

    arraysize = 1
    rowcount = -1

    def __init__(self) -> None:
        self.description: Sequence[Any] | None = None
        self._rows: list[tuple[Any, ...]] = []

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        """Run a statement and fetch all its rows."""
        of_thread = connection()
        self._rows = of_thread.execute(statement, list(parameters)).fetchall()
        columns = of_thread.description or ()
        self.description = [(name, *[None] * 6) for name, *_ in columns]  # SQLAlchemy keeps it longer than DuckDB lives

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or None."""
        return self._rows.pop(0) if self._rows else None

    def fetchmany(self, size: int = arraysize) -> list[tuple[Any, ...]]:
        """The next rows."""
        rows, self._rows = self._rows[:size], self._rows[size:]
        return rows

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All remaining rows."""
        return self.fetchmany(len(self._rows))

    def close(self) -> None:
        """Forget the rows."""
        self._rows = []


class Connection:
    """The connection of this thread, as SQLAlchemy wants one; it stays open when SQLAlchemy gives it back."""

    def cursor(self) -> Cursor:
        """A cursor without rows."""
        return Cursor()

    def commit(self) -> None:
        """Nothing is written."""

    def rollback(self) -> None:
        """Nothing is written; DuckDB would drop results."""

    def close(self) -> None:
        """The connection belongs to the thread."""


class _Preparer(PGIdentifierPreparer):
    """Quotes every name: DuckDB reserves words that PostgreSQL does not."""

    def _requires_quotes(self, value: str) -> bool:  # noqa: ARG002 the base class passes the name
        return True


class _Compiler(PGCompiler):
    """Writes a match by regular expression as a search: DuckDB's ``~`` matches the whole text."""

    def visit_custom_op_binary(self, element: Any, operator: Any, **options: Any) -> str:
        if operator.opstring not in ("~", "!~"):
            return super().visit_custom_op_binary(element, operator, **options)  # type: ignore[no-untyped-call,no-any-return]
        left, right = self.process(element.left, **options), self.process(element.right, **options)
        return f"{'NOT ' if operator.opstring == '!~' else ''}regexp_matches({left}, {right})"


class Dialect(PGDialect):
    """DuckDB as PostgreSQL, in whose likeness its SQL is made."""

    name = "evenhand_duckdb"
    driver = "duckdb"
    default_paramstyle = "qmark"
    supports_statement_cache = True
    supports_server_side_cursors = False
    preparer = _Preparer
    statement_compiler = _Compiler
    postfetch_lastrowid = False
    execution_ctx_cls: Any = default.DefaultExecutionContext
    colspecs: Any = {}  # noqa: RUF012 the base class declares it so

    @classmethod
    def import_dbapi(cls) -> Any:
        """DuckDB's module has the errors and the level of threads that SQLAlchemy looks for."""
        return duckdb

    @classmethod
    def get_pool_class(cls, url: Any) -> type[NullPool]:  # noqa: ARG003 all URLs have none
        """No pool: a thread has its connection."""
        return NullPool

    def connect(self, *_: Any, **__: Any) -> Any:
        """A connection of this thread."""
        return Connection()

    def initialize(self, connection: Any) -> None:  # noqa: ARG002 nothing is read from the database
        """Name the schema; PostgreSQL would be asked for its version."""
        self.default_schema_name = "main"

    def on_connect(self) -> None:
        """Nothing is set on a connection."""

    def do_ping(self, dbapi_connection: Any) -> bool:  # noqa: ARG002 a database in this process answers
        """Whether the connection lives."""
        return True

    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> bool:  # noqa: ARG002
        """Whether a view of this thread has the name."""
        found = rows_of("SELECT 1 FROM duckdb_views() WHERE view_name = ?", [str(table_name)])
        return bool(found)

    def get_columns(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> Any:  # noqa: ARG002
        """Names and types of the columns of a view, read again at every call."""
        return [
            {
                "name": name,
                "type": _TYPES[kind]() if kind in _TYPES else OtherType(kind),
                "nullable": True,
                "default": None,
            }
            for name, kind, *_ in rows_of(f"DESCRIBE {quoted(str(table_name))}")
        ]

    def get_pk_constraint(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> Any:  # noqa: ARG002
        """A view has no key."""
        return {"constrained_columns": [], "name": None}


class _Module(ModuleType):
    """What Great Expectations recognises a dialect by: a module with ``dialect`` and the names of types."""

    dialect = type("Dialect", (postgresql.dialect,), {})


MODULE = _Module("duckdb_dialect")
MODULE.__dict__.update(_TYPES)

registry.register("evenhand_duckdb", __name__, "Dialect")
