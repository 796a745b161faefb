"""Sorts the rows of a vintage into files by state and lender, in memory that does not grow with the rows.

The rows are dealt out to the pieces of an arrangement as they stream by, and put aside without order. Then each piece
is sorted by itself and written. A sort of the whole table does not end within this memory: DuckDB does not spill enough
of wide rows (docs/vintages.md).
"""
# ruff: noqa: S608 what goes into the SQL is quoted, or a name of ours

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute as pc
from pyarrow import ipc

from schemas.errors import DataQualityError, InfrastructureError, SuiteError
from tasks.ingest.hmda.canonical.cells import enumeration, literal, parquet, quoted
from tasks.ingest.hmda.canonical.codes import CANONICAL
from tasks.ingest.hmda.sorted_rows import SORTED
from tasks.ingest.vintages.arrangement import MOST_ROWS, NO_LENDER, NO_STATE, Arrangement, Piece, arranged
from tasks.lake.threads import Setting, connected, threads

if TYPE_CHECKING:
    import duckdb

_MEMORY = "800MB"
"""Of DuckDB; a piece in Arrow needs some 200 MB beside it."""
_ROW_GROUP = 65_536
_ORDER = [("lender_id", "ascending", "at_start"), ("source_row", "ascending")]


@contextmanager
def bounded(folder: Path) -> Iterator["duckdb.DuckDBPyConnection"]:
    """A connection whose memory is bounded, and that spills into a folder, which is as before afterwards.

    Raises:
        DataQualityError: rows of an earlier release hold a code that this one does not list.
        InfrastructureError: memory or disk is not enough.
    """
    import duckdb

    spill = folder / ".spill"
    settings: dict[str, Setting] = {
        "memory_limit": _MEMORY,
        "temp_directory": str(spill),
        "threads": min(threads(), 2),
        "autoinstall_known_extensions": False,
    }
    try:
        with connected(settings) as connection:
            yield connection
    except duckdb.ConversionException as error:
        why = str(error).splitlines()[0]
        raise DataQualityError(f"a row has a code that no list knows ({why}); add the delivered file again") from error
    except (duckdb.OutOfMemoryException, duckdb.IOException, pa.ArrowException) as error:  # of a stream, Arrow's own
        raise InfrastructureError(f"rows could not be sorted in {folder}: {str(error).splitlines()[0]}") from error
    finally:
        shutil.rmtree(spill, ignore_errors=True)


def sort_rows(rows: Path, folder: Path, most: int = MOST_ROWS) -> dict[str, int]:
    """Write ``folder/applications`` of a file of applications.

    Args:
        rows: Parquet in any order; it stays.
        folder: Gets the directory, and what is put aside until it is done.
        most: Rows of a file.

    Returns:
        Name of each file below the folder -> its rows.

    Raises:
        SuiteError: a file got other rows than were counted.
        InfrastructureError: memory or disk is not enough.
    """
    aside, target = folder / ".aside", folder / SORTED
    shutil.rmtree(target, ignore_errors=True)
    aside.mkdir()
    try:
        with bounded(folder) as connection:
            plan = arranged(_counts(connection, rows), partial(_numbers, connection, rows), most)
            _deal_out(connection, rows, plan, aside)
            for number, piece in enumerate(plan.pieces):
                _write(connection, aside / str(number), piece, target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return {f"{SORTED}/{piece.path}": piece.rows for piece in plan.pieces}


def _counts(connection: "duckdb.DuckDBPyConnection", rows: Path) -> list[tuple[str, str, int]]:
    return connection.execute(
        f"SELECT coalesce(CAST(state_code AS VARCHAR), '{NO_STATE}') AS state, "
        f"coalesce(lender_id, '{NO_LENDER}') AS lender, count(*) FROM {parquet(rows)} GROUP BY ALL ORDER BY ALL"
    ).fetchall()


def _numbers(connection: "duckdb.DuckDBPyConnection", rows: Path, state: str, lender: str) -> NDArray[np.int64]:
    found = connection.execute(
        f"SELECT source_row FROM {parquet(rows)} WHERE coalesce(CAST(state_code AS VARCHAR), '{NO_STATE}') = ? "
        f"AND coalesce(lender_id, '{NO_LENDER}') = ? ORDER BY source_row",
        [state, lender],
    ).fetchnumpy()
    numbers: NDArray[np.int64] = found["source_row"]
    return numbers


def _deal_out(connection: "duckdb.DuckDBPyConnection", rows: Path, plan: Arrangement, aside: Path) -> None:
    """Write the rows of each piece, in no order, to a file of its number; codes as numbers of a dictionary."""
    codes = ", ".join(
        f"CAST({quoted(column.name)} AS {enumeration(column.codes)}) AS {quoted(column.name)}"
        for column in CANONICAL.values()
        if column.codes
    )
    reader = connection.sql(f"SELECT * REPLACE ({codes}) FROM {parquet(rows)}").to_arrow_reader(_ROW_GROUP)
    options = ipc.IpcWriteOptions(compression="lz4")
    writers: dict[int, ipc.RecordBatchStreamWriter] = {}
    with ExitStack() as open_files:
        for batch in reader:
            table = pa.table(batch)
            piece = plan.of(table)
            order = np.argsort(piece, kind="stable")
            table = table.take(pa.array(order))
            found, starts = np.unique(piece[order], return_index=True)
            for number, start, end in zip(found.tolist(), starts, [*starts[1:], len(order)], strict=True):
                if number not in writers:
                    made = ipc.new_stream(str(aside / str(number)), table.schema, options=options)
                    writers[number] = open_files.enter_context(made)
                writers[number].write_table(table.slice(start, end - start))


def _write(connection: "duckdb.DuckDBPyConnection", aside: Path, piece: Piece, target: Path) -> None:
    """Sort a piece and write it as Parquet.

    DuckDB has to keep the order in which rows come (``preserve_insertion_order``, its default): else the threads of a
    COPY write groups of rows as they finish them.
    """
    with ipc.open_stream(str(aside)) as reader:
        table = reader.read_all()
    table = table.take(pc.sort_indices(table, sort_keys=_ORDER))
    aside.unlink()
    file = target / piece.path
    file.parent.mkdir(parents=True, exist_ok=True)
    connection.register("piece", table)
    try:
        told = connection.execute(
            f"COPY piece TO {literal(str(file))} (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {_ROW_GROUP})"
        ).fetchone()
    finally:
        connection.unregister("piece")
        del table
        pa.default_memory_pool().release_unused()
    if told is None or told[0] != piece.rows:
        raise SuiteError(f"{piece.path}: {told} rows written, and {piece.rows:,} counted; nothing is published")
