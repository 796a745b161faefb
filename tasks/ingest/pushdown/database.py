"""The DuckDB of one ingest: its share of memory and threads, and where it puts what does not fit."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from schemas.errors import InfrastructureError
from tasks.lake.threads import Setting, connected
from tasks.pipeline.lineage.memory import NAME, allowed_mb

if TYPE_CHECKING:
    import duckdb

SHARE = 0.25
"""Of the memory that an audit may take."""
MOST_MB = 800.0
"""The tables that the stage holds and Arrow's readers come on top of it: a whole year stays below 1.5 GB."""


@contextmanager
def database(spill: Path | None) -> Iterator["duckdb.DuckDBPyConnection"]:
    """A connection of its own; what does not fit into memory goes to a folder, or nowhere without one.

    Raises:
        InfrastructureError: EVENHAND_MEMORY is no size; the rows do not fit into the memory or onto the disk.
    """
    import duckdb

    memory = f"{min(SHARE * allowed_mb(), MOST_MB):.0f}MB"
    config: dict[str, Setting] = {
        "memory_limit": memory,
        "temp_directory": "" if spill is None else str(spill),
        "preserve_insertion_order": False,
    }
    try:
        with connected(config) as connection:
            yield connection
    except (duckdb.OutOfMemoryException, duckdb.IOException) as error:
        raise _unfit(memory, error) from error
    except OSError as error:
        if "Out of Memory Error" in str(error):  # as Arrow hands it on from a stream
            raise _unfit(memory, error) from error
        raise


def _unfit(memory: str, error: Exception) -> InfrastructureError:
    first = str(error).strip().partition("\n")[0]
    return InfrastructureError(
        f"the source could not be read within {memory} of memory: {first}; set {NAME} higher, or make room on the disk"
    )
