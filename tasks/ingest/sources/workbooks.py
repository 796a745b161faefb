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
from tasks.ingest.sources.containers import local
from tasks.ingest.sources.layout import usable_names
from tasks.ingest.sources.reader_process import facts_of, read_apart


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


def sheets(source: Source, path: Path) -> tuple[str, ...]:
    """Names of the sheets that are not hidden and hold cells.

    Raises:
        DataQualityError: the workbook is damaged.
    """
    with local(path, source.member, source.maximum_bytes) as file:
        return facts_of(source.kind, file).sheets


def cells(source: Source, path: Path) -> pa.Table:
    """The rows of a sheet that are not blank, with ``row``, the number of each in the sheet from 1.

    Raises:
        DataQualityError: the workbook is damaged, or has no such sheet.
    """
    state = path.stat()
    return _cells(
        source.kind, path, source.member, source.sheet, source.maximum_bytes, (state.st_mtime_ns, state.st_size)
    )


@lru_cache(2)
def _cells(
    kind: str,
    path: Path,
    member: str | None,
    sheet: str | None,
    most: int,
    state: tuple[int, int],  # noqa: ARG001
) -> pa.Table:
    """The same, kept for the next question about the file in its present state."""
    with local(path, member, most) as file:
        grid = read_apart(kind, file, sheet=sheet).table
    filled = [pc.not_equal(pc.utf8_trim_whitespace(column), "") for column in grid.columns]
    grid = grid.append_column("row", pa.array(range(1, grid.num_rows + 1), pa.int64()))
    return grid.filter(reduce(pc.or_, filled))


def _named(source: Source, path: Path) -> tuple[list[str], pa.Table]:
    """Names of the columns, and the rows below them."""
    rows = cells(source, path)
    rows = rows.filter(pc.greater(rows["row"], source.skip)).drop_columns("row")
    if rows.num_rows < (1 if source.header else 2):
        raise DataQualityError(f"{path.name} has no rows in its sheet below row {source.skip}; give a table with rows")
    if source.header:
        spelled, body = [""] * rows.num_columns, rows
    else:
        spelled, body = [column[0].as_py() for column in rows.columns], rows.slice(1)
    kept = [i for i, text in enumerate(spelled) if text.strip() or _has_cells(body.column(i))]
    if source.header and len(source.header) != len(kept):
        raise DataQualityError(
            f"{path.name} has {len(kept)} columns with cells and source.header names {len(source.header)}"
        )
    found = list(source.header) or usable_names(spelled[i] for i in kept)
    return found, body.select(kept)


def _has_cells(column: pa.ChunkedArray) -> bool:
    return bool(pc.any(pc.not_equal(pc.utf8_trim_whitespace(column), "")).as_py())
