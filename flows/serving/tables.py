"""Queries of pages over published tables: one connection to an empty database, a cursor for each request.

A cursor sees only the tables that are registered on it. Parameters are bound, and the connection opens no file.
"""

import threading
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import duckdb
import pyarrow as pa

from schemas.errors import InfrastructureError
from tasks.lake.threads import connected

QUERY_SECONDS: Final = 10
_SANDBOX = """
    SET python_enable_replacements = false;
    SET allow_persistent_secrets = false;
    SET autoinstall_known_extensions = false;
    SET autoload_known_extensions = false;
    SET memory_limit = '512MB';
    SET temp_directory = '';
    SET enable_external_access = false;
    SET lock_configuration = true;
"""


class Tables:
    """Asks tables in memory."""

    def __init__(self, seconds: float = QUERY_SECONDS) -> None:
        """Open nothing yet; ``seconds`` are what a query may take."""
        self._seconds = seconds
        self._lock = threading.Lock()

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        made = connected()
        made.execute(_SANDBOX)
        return made

    def ask(self, tables: Mapping[str, pa.Table], query: str, given: Mapping[str, Any]) -> pa.Table:
        """The answer to a query.

        Args:
            tables: that it names.
            query: one statement of ours.
            given: its parameters.

        Raises:
            InfrastructureError: it takes more time or memory than it may.
        """
        with self._lock:
            cursor = self._connection.cursor()
        clock = threading.Timer(self._seconds, cursor.interrupt)
        try:
            for name, table in tables.items():
                cursor.register(name, table)
            clock.start()
            return cursor.sql(query, params=dict(given)).to_arrow_table()
        except (duckdb.InterruptException, duckdb.OutOfMemoryException) as error:
            raise InfrastructureError(
                f"the query took more than {self._seconds:g} seconds, or more memory than pages have; narrow it"
            ) from error
        finally:
            clock.cancel()
            cursor.close()
