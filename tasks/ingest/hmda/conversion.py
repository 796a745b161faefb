"""Converts a recognised file of any size to the canonical table as validated Parquet, with a table of refusals.

DuckDB streams: once over the file where every row is an application, and once more for those that are not. Nothing is
lost: rows in are rows written plus rows refused, by reason, and what is written is held against its declaration before
it gets its name. Scope: that order and the counts. What becomes of a cell: ``canonical``.
"""
# ruff: noqa: S608 what goes into the SQL is quoted, or a name of ours

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from schemas.errors import InfrastructureError
from schemas.tables.hmda import HMDA_APPLICATIONS, HMDA_REFUSALS
from schemas.terms import Refusal
from tasks.ingest.hmda.canonical.cells import literal, parquet, quoted
from tasks.ingest.hmda.canonical.columns import select
from tasks.ingest.hmda.expectations import check
from tasks.ingest.hmda.files.recognition import Recognised
from tasks.ingest.hmda.lines import broken_rows, open_raw, source_rows
from tasks.ingest.hmda.pieces import Piece
from tasks.lake.threads import Setting, connected, threads

APPLICATIONS_FILE, REFUSALS_FILE = "applications.parquet", "refusals.parquet"
_MEMORY = "1200MB"
"""Of DuckDB; Python and what DuckDB does not count need some more, and 2 GB is what may be used."""
_MOST_THREADS = 4
"""Each holds a group of rows until it is written."""
_ROW_GROUP = 65_536


@dataclass(frozen=True)
class Converted:
    """What became of the rows of a file: ``rows_in`` are ``rows`` written and all that are ``refused``."""

    rows_in: int
    rows: int
    refused: Mapping[str, int]
    """Reason -> rows."""
    years: Mapping[int, int]
    """Year of activity -> rows; empty where the file does not say."""
    unknown_codes: Mapping[str, Mapping[str, int]]
    """Column -> code that no filing guide lists -> rows; the column is null in them."""
    flags: Mapping[str, int]
    """Sign of a wrong unit -> rows."""


def convert(recognised: Recognised, target: Path) -> Converted:
    """Write ``target/applications.parquet`` and ``target/refusals.parquet``, over those that are there.

    Memory stays below 2 GB whatever the size of the file; what does not fit goes to disk inside of ``target``.

    Raises:
        DataQualityError: the lines of the file cannot be told apart.
        InfrastructureError: memory or disk is not enough, or the file cannot be read.
    """
    draft, refusals = target / f".{APPLICATIONS_FILE}", target / f".{REFUSALS_FILE}"
    try:
        target.mkdir(parents=True, exist_ok=True)
        with _connected(target) as connection:
            rows = _separated(connection, recognised, draft, refusals)
            check(connection, draft, HMDA_APPLICATIONS)
            check(connection, refusals, HMDA_REFUSALS)
            reasons = _counts(connection, refusals, "reason")
            unknown, flags = _unknown_codes(connection, draft), _flags(connection, draft)
            years = _counts(connection, draft, "activity_year")
            told = Converted(rows + sum(reasons.values()), rows, reasons, years, unknown, flags)
        refusals.replace(target / REFUSALS_FILE)
        draft.replace(target / APPLICATIONS_FILE)
    except (duckdb.OutOfMemoryException, duckdb.IOException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InfrastructureError(f"{recognised.path.name} could not be converted in {target}: {reason}") from error
    finally:
        if target.is_dir():
            draft.unlink(missing_ok=True)
            refusals.unlink(missing_ok=True)
    return told


def _separated(connection: duckdb.DuckDBPyConnection, recognised: Recognised, draft: Path, refusals: Path) -> int:
    """Write the applications, and the rows that are none; gives how many applications there are."""
    pieces = open_raw(connection, recognised, _threads())
    query = select(recognised)
    rows = _written(connection, f"SELECT * EXCLUDE (refusal) FROM ({query}) WHERE refusal IS NULL", draft)
    all_fit = rows == recognised.lines - recognised.header
    refused = _written(connection, _NONE_REFUSED if all_fit else _REFUSED.format(query), refusals)
    broken = broken_rows(connection, recognised, pieces, rows + refused)
    if len(broken):
        _renumber(draft, pieces, broken)
        _renumber(refusals, pieces, broken)
        _add_broken(connection, refusals, broken)
    return rows


def _threads() -> int:
    return min(threads(), _MOST_THREADS)


@contextmanager
def _connected(target: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    spill = target / ".spill"
    settings: dict[str, Setting] = {
        "memory_limit": _MEMORY,
        "temp_directory": str(spill),
        "threads": _threads(),
        "preserve_insertion_order": False,  # rows carry their numbers; to keep their order would cost memory
        "autoinstall_known_extensions": False,
    }
    try:
        with connected(settings) as connection:
            yield connection
    finally:
        shutil.rmtree(spill, ignore_errors=True)


_REFUSED = (
    'SELECT source_row, refusal.reason AS reason, refusal."column" AS "column", refusal.detail AS detail '
    "FROM ({}) WHERE refusal IS NOT NULL ORDER BY source_row"
)
"""The rows that are no applications, over what ``select`` gives. All rows may be such: they are streamed, too."""
_NONE_REFUSED = "SELECT 1::BIGINT AS source_row, '' AS reason, '' AS \"column\", '' AS detail WHERE false"


def _written(connection: duckdb.DuckDBPyConnection, query: str, draft: Path) -> int:
    """Write what a query gives; returns how many rows that is."""
    copied = connection.execute(
        f"COPY ({query}) TO {literal(str(draft))} (FORMAT parquet, ROW_GROUP_SIZE {_ROW_GROUP})"
    ).fetchone()
    return int(copied[0]) if copied else 0


def _add_broken(connection: duckdb.DuckDBPyConnection, refusals: Path, broken: NDArray[np.int64]) -> None:
    """Put the broken lines among the other refusals, by their place in the file."""
    more = refusals.with_name(f"{refusals.name}.more")
    connection.register("broken", pa.table({"source_row": broken}))
    said = f"SELECT source_row, {literal(Refusal.MALFORMED_LINE)} AS reason, NULL::VARCHAR, NULL::VARCHAR FROM broken"
    try:
        _written(connection, f"FROM (FROM {parquet(refusals)} UNION ALL {said}) ORDER BY source_row", more)
        more.replace(refusals)
    finally:
        more.unlink(missing_ok=True)


def _renumber(draft: Path, pieces: Sequence[Piece], broken: NDArray[np.int64]) -> None:
    """Give the rows of a draft their places in the file, which has broken lines among them."""
    numbered = draft.with_name(f"{draft.name}.numbered")
    try:
        with pq.ParquetFile(draft) as file, pq.ParquetWriter(numbered, file.schema_arrow) as writer:
            for group in range(file.num_row_groups):
                table = file.read_row_group(group)
                rows = source_rows(table["source_row"].to_numpy(), pieces, broken)
                writer.write_table(table.set_column(0, file.schema_arrow.field(0), pa.array(rows)))
        numbered.replace(draft)
    finally:
        numbered.unlink(missing_ok=True)


def _counts(connection: duckdb.DuckDBPyConnection, draft: Path, column: str) -> dict[Any, int]:
    """Value of a column -> rows; those without one do not count."""
    name = quoted(column)
    return dict(
        connection.execute(
            f"SELECT {name}, count(*) FROM {parquet(draft)} WHERE {name} IS NOT NULL GROUP BY ALL ORDER BY ALL"
        ).fetchall()
    )


def _unknown_codes(connection: duckdb.DuckDBPyConnection, draft: Path) -> dict[str, dict[str, int]]:
    found = connection.execute(
        f"SELECT each.key, each.value ->> '$', count(*) FROM {parquet(draft)}, json_each(unknown_codes) AS each "
        "WHERE unknown_codes IS NOT NULL GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    out: dict[str, dict[str, int]] = {}
    for column, code, rows in found:
        out.setdefault(column, {})[code] = rows
    return out


def _flags(connection: duckdb.DuckDBPyConnection, draft: Path) -> dict[str, int]:
    return dict(
        connection.execute(
            "SELECT flag, count(*) FROM (SELECT unnest(string_split(unit_flag, ',')) AS flag "
            f"FROM {parquet(draft)} WHERE unit_flag IS NOT NULL) GROUP BY ALL ORDER BY ALL"
        ).fetchall()
    )
