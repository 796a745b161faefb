"""Threads that a process may use, and a DuckDB connection that keeps to them.

DuckDB takes all cores unless it is told otherwise, so that processes side by side slow each other down.
Scope: what this process was given. Who shares cores out among processes: ``flows.concurrency.workers``.
"""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb


def threads() -> int:
    """Threads that this process may use: NUMBA_NUM_THREADS, which workers share out, else all cores."""
    given = os.environ.get("NUMBA_NUM_THREADS", "")
    return int(given) if given.isdecimal() and int(given) else cores()


def cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


Setting = str | bool | int | float | list[str]


def connected(settings: "Mapping[str, Setting] | None" = None) -> "duckdb.DuckDBPyConnection":
    """A connection to an empty database in memory, with no more threads than this process may use.

    It draws no progress: DuckDB does so on standard output after two seconds, where commands print JSON.

    Args:
        settings: DuckDB's own, over the number of threads.
    """
    import duckdb

    connection = duckdb.connect(config={"threads": threads(), **(settings or {})})
    connection.execute("SET enable_progress_bar = false")
    return connection
