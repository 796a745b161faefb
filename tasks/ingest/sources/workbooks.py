"""One sheet of a workbook, its columns as text: the rows below ``skip``, without blank ones and without empty columns.

Scope: rows and names. The cells come from a process of their own (``reader_process``).
"""

from collections.abc import Sequence
from functools import lru_cache, reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from schemas.audit.source import Source
from schemas.errors import DataQualityError
from tasks.ingest.sources.containers import check_archive, local
from tasks.ingest.sources.layout import usable_names
from tasks.ingest.sources.reader_process import read_apart


def names(source: Source, path: Path) -> list[str]:
    """Names of the columns: the first row below ``skip``, or those that the spec gives.

    Raises:
        DataQualityError: the workbook is damaged, or has no such sheet, or no rows.
    """
    return _named(source, path)[0]


def table(source: Source, path: Path, columns: Sequence[str]) -> tuple[pa.Table, list[int]]:
    """The named columns as text, and the numbers of broken rows: none here.

    Raises:
        DataQualityError: as ``names``.
    """
    all_names, rows = _named(source, path)
    return rows.rename_columns(all_names).select(list(columns)), []


def cells(source: Source, path: Path) -> tuple[pa.Table, tuple[str, ...]]:
    """The rows of a sheet that are not blank, with ``row``, the number of each in the sheet; and the sheets to choose.

    Raises:
        DataQualityError: the workbook is damaged, or has no such sheet.
    """
    now = path.stat()
    return _cells(path, source.member, source.sheet, source.maximum_bytes, (now.st_mtime_ns, now.st_size))


@lru_cache(4)
def _cells(
    path: Path,
    member: str | None,
    sheet: str | None,
    most: int,
    state: tuple[int, int],  # noqa: ARG001
) -> tuple[pa.Table, tuple[str, ...]]:
    """The same, kept for the next question about the file in its present state."""
    with local(path, member, most) as file:
        check_archive(file)
        reading = read_apart("excel", file, sheet=sheet)
    grid = reading.table
    grid = grid.select([name for name in grid.column_names if _has_cells(grid[name])])
    if not grid.num_columns:
        raise DataQualityError(f"{path.name} has no cells in its sheet; give a table with rows")
    filled = [pc.not_equal(pc.utf8_trim_whitespace(column), "") for column in grid.columns]
    grid = grid.append_column("row", pa.array(range(1, grid.num_rows + 1), pa.int64()))
    return grid.filter(reduce(pc.or_, filled)), reading.facts.sheets


def _named(source: Source, path: Path) -> tuple[list[str], pa.Table]:
    """Names of the columns, and the rows below them."""
    rows, _ = cells(source, path)
    rows = rows.filter(pc.greater(rows["row"], source.skip)).drop_columns("row")
    if rows.num_rows < (1 if source.header else 2):
        raise DataQualityError(f"{path.name} has no rows in its sheet below row {source.skip}; give a table with rows")
    if source.header:
        spelled, body = [""] * rows.num_columns, rows
    else:
        spelled, body = [column[0].as_py() for column in rows.columns], rows.slice(1)
    used = [i for i, text in enumerate(spelled) if text.strip() or _has_cells(body.column(i))]
    if source.header and len(source.header) != len(used):
        raise DataQualityError(
            f"{path.name} has {len(used)} columns with cells and source.header names {len(source.header)}"
        )
    column_names = list(source.header) or usable_names(spelled[i] for i in used)
    return column_names, body.select(used)


def _has_cells(column: pa.ChunkedArray) -> bool:
    return bool(pc.any(pc.not_equal(pc.utf8_trim_whitespace(column), "")).as_py())
