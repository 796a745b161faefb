"""Sorts the rows of a vintage into files by state and lender."""

# ruff: noqa: S608 what goes into the SQL is quoted, or a name of ours

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import ipc

from schemas.errors import DataQualityError, InfrastructureError, SuiteError
from schemas.tables.hmda import HMDA_LENDERS
from tasks.ingest.hmda.canonical import CANONICAL, enumeration, literal, parquet, quoted
from tasks.ingest.hmda.conversion import check
from tasks.ingest.hmda.rows import LENDER, LENDERS_FILE, SORTED, files_of
from tasks.ingest.sources.raw import counted
from tasks.lake.storage import Setting, connected, threads

if TYPE_CHECKING:
    import duckdb


# --------------------------------------------------------------------------------------------------------------------
# Which file of a sorted vintage a row goes to: pieces of a state, each a range of lenders.
#
# A state's rows are in the order of lender and number in the file. They are cut into pieces of about the same work:
# whole lenders as long as they fit, and a lender of more rows than a piece holds by the numbers of its rows. Scope: the
# plan. What is written by it: ``sorting``.


NO_STATE: Final = "none"
"""In the place of the state of rows that have none."""
NO_LENDER: Final = ""
MOST_ROWS: Final = 131_072
"""Of a piece: two groups of rows. More do not sort within the memory that is allowed."""

Numbers = Callable[[str, str], NDArray[np.int64]]
"""State and lender -> the numbers of its rows in the file, in their order."""


@dataclass(frozen=True)
class Piece:
    """One file of rows."""

    state: str
    number: int
    """Within its state, from 0."""
    rows: int

    @property
    def path(self) -> str:
        """Its name below the directory of all rows."""
        return f"state={self.state}/part-{self.number}.parquet"


@dataclass(frozen=True)
class Arrangement:
    """The pieces in the order of states and lenders, and which rows are in each."""

    pieces: tuple[Piece, ...]
    states: pa.Array
    lenders: pa.Array
    first: NDArray[np.int32]
    """States x lenders: the number of the piece; of a lender that is cut, of its first."""
    cuts: dict[tuple[int, int], NDArray[np.int64]]
    """Of those that are cut: the lowest number of a row of the second piece, of the third, ..."""

    def of(self, rows: pa.Table) -> NDArray[np.int32]:
        """The number of the piece of each row of a table of applications."""
        states = pc.fill_null(pc.cast(rows["state_code"], pa.string()), NO_STATE)
        lenders = pc.fill_null(rows["lender_id"], NO_LENDER)
        state, lender = (
            pc.index_in(values, among).to_numpy() for values, among in ((states, self.states), (lenders, self.lenders))
        )
        out: NDArray[np.int32] = self.first[state, lender]
        numbers = rows["source_row"].to_numpy()
        for (s, name), cuts in self.cuts.items():
            theirs = (state == s) & (lender == name)
            out[theirs] += np.searchsorted(cuts, numbers[theirs], side="right").astype(np.int32)
        return out


def arranged(counts: Iterable[tuple[str, str, int]], numbers: Numbers, most: int = MOST_ROWS) -> Arrangement:
    """The plan for a table of applications.

    Args:
        counts: State, lender and rows, in the order of states and lenders.
        numbers: Asked of lenders that have more rows in a state than a piece holds.
        most: Rows of a piece.
    """
    listed = list(counts)
    states, lenders = sorted({state for state, _, _ in listed}), sorted({lender for _, lender, _ in listed})
    place = {name: i for i, name in enumerate(lenders)}
    first = np.full((len(states), len(lenders)), -1, np.int32)
    cuts: dict[tuple[int, int], NDArray[np.int64]] = {}
    pieces: list[Piece] = []
    for s, state in enumerate(states):
        state_lenders = [(lender, rows) for of, lender, rows in listed if of == state]
        filled: list[int] = []
        for lender, rows in state_lenders:
            if rows > most:
                cut = numbers(state, lender)[most::most]
                first[s, place[lender]], cuts[s, place[lender]] = len(pieces) + len(filled), cut
                filled += [most] * len(cut) + [rows - most * len(cut)]
                continue
            if not filled or filled[-1] + rows > most:
                filled.append(0)
            filled[-1] += rows
            first[s, place[lender]] = len(pieces) + len(filled) - 1
        pieces += [Piece(state, i, rows) for i, rows in enumerate(filled)]
    return Arrangement(tuple(pieces), pa.array(states), pa.array(lenders), first, cuts)


# --------------------------------------------------------------------------------------------------------------------
# Sorts the rows of a vintage into files by state and lender, in memory that does not grow with the rows.
#
# The rows are dealt out to the pieces of an arrangement as they stream by, and put aside without order. Then each piece
# is sorted by itself and written. A sort of the whole table does not end within this memory: DuckDB does not spill
# enough of wide rows (docs/vintages.md).


_MEMORY = "800MB"
"""Of DuckDB; a piece in Arrow needs some 200 MB beside it."""
_ROW_GROUP = 65_536
_ORDER = [("lender_id", "ascending", "at_start"), ("source_row", "ascending")]


@contextmanager
def bounded(folder: Path) -> Iterator["duckdb.DuckDBPyConnection"]:
    """A connection with bounded memory, which spills into a folder; the spilled files are removed afterwards.

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
            counts = connection.execute(
                f"SELECT coalesce(CAST(state_code AS VARCHAR), '{NO_STATE}') AS state, "
                f"coalesce(lender_id, '{NO_LENDER}') AS lender, count(*) FROM {parquet(rows)} GROUP BY ALL ORDER BY ALL"
            ).fetchall()
            plan = arranged(counts, partial(_numbers, connection, rows), most)
            _deal_out(connection, rows, plan, aside)
            for number, piece in enumerate(plan.pieces):
                _write(connection, aside / str(number), piece, target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return {f"{SORTED}/{piece.path}": piece.rows for piece in plan.pieces}


def _numbers(connection: "duckdb.DuckDBPyConnection", rows: Path, state: str, lender: str) -> NDArray[np.int64]:
    columns = connection.execute(
        f"SELECT source_row FROM {parquet(rows)} WHERE coalesce(CAST(state_code AS VARCHAR), '{NO_STATE}') = ? "
        f"AND coalesce(lender_id, '{NO_LENDER}') = ? ORDER BY source_row",
        [state, lender],
    ).fetchnumpy()
    numbers: NDArray[np.int64] = columns["source_row"]
    return numbers


def _deal_out(connection: "duckdb.DuckDBPyConnection", rows: Path, plan: Arrangement, aside: Path) -> None:
    """Write the rows of each piece, in no order, to a file of its number; codes as numbers of a dictionary."""
    names = set(pq.read_schema(files_of(rows)[0]).names)  # a vintage of an earlier release has fewer
    codes = ", ".join(
        f"CAST({quoted(column.name)} AS {enumeration(column.codes)}) AS {quoted(column.name)}"
        for column in CANONICAL.values()
        if column.codes and column.name in names
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
            piece_numbers, starts = np.unique(piece[order], return_index=True)
            for number, start, end in zip(piece_numbers.tolist(), starts, [*starts[1:], len(order)], strict=True):
                if number not in writers:
                    stream = ipc.new_stream(str(aside / str(number)), table.schema, options=options)
                    writers[number] = open_files.enter_context(stream)
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
        written_rows = connection.execute(
            f"COPY piece TO {literal(str(file))} (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {_ROW_GROUP})"
        ).fetchone()
    finally:
        connection.unregister("piece")
        del table
        pa.default_memory_pool().release_unused()
    if written_rows is None or written_rows[0] != piece.rows:
        raise SuiteError(f"{piece.path}: {written_rows} rows written, and {piece.rows:,} counted; nothing is published")


# --------------------------------------------------------------------------------------------------------------------
# The lenders of a vintage: ``lenders.parquet``, one row a lender, which says what there is without reading it.


_ACTIONS = ", ".join(f"count(*) FILTER (action_taken = '{code}') AS action_taken_{code}" for code in "12345678")
_QUERY = f"""
SELECT coalesce(lender_id, '{NO_LENDER}') AS lender_id, NULL::VARCHAR AS name, count(*) AS rows, {_ACTIONS},
  array_to_string(list_sort(list(DISTINCT coalesce(CAST(state_code AS VARCHAR), '{NO_STATE}'))), ',') AS states,
  min(source_row) AS first_row, max(source_row) AS last_row
FROM {{}} GROUP BY ALL ORDER BY ALL
"""


def write_lenders(rows: Path, folder: Path) -> int:
    """Write ``folder/lenders.parquet`` of a vintage's rows; returns how many lenders there are.

    Raises:
        SuiteError: what was found does not keep its declaration.
        InfrastructureError: memory or disk is not enough.
    """
    target = folder / LENDERS_FILE
    with bounded(folder) as connection:
        lenders = connection.sql(_QUERY.format(parquet(rows))).to_arrow_table()
        digests = counted(connection, parquet(rows), LENDER)
        table = lenders.append_column("rows_sha256", digests["rows_sha256"])
        if digests["value"] != lenders[LENDER] or digests["rows"] != lenders["rows"]:
            raise RuntimeError("digests and counts list the lenders in different orders")
        pq.write_table(table.cast(HMDA_LENDERS.schema()), target)
    check(target, HMDA_LENDERS)
    return int(table.num_rows)
