"""Tables that grow on the disk while a stage works, because they are too long to be held.

A table of few rows never touches the disk before it is published. Its file is the same either way: row groups are
those of a table that is written at once.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from tasks.lake.local_directory import clear

GROUP = 2**20
"""Rows of a row group, as ``pyarrow.parquet.write_table`` has them."""


@dataclass(frozen=True)
class Written:
    """A table in a Parquet file that is not published yet."""

    path: Path
    num_rows: int

    nbytes = 0
    """Bytes that are still to be written."""

    def dataset(self) -> pads.Dataset:
        """Its rows, to be read as a stream."""
        return pads.dataset(self.path, format="parquet")

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Its rows in order, all columns or some, a row group after the other."""
        yield from pq.ParquetFile(self.path, pre_buffer=False).iter_batches(columns=columns)

    def filtered(self, stays: Callable[[pa.RecordBatch], pa.Array]) -> "Written":
        """The rows that stay, in a file beside this one, in the same order."""
        kept = Draft(self.path.with_suffix(".kept.parquet"), pq.read_schema(self.path))
        for batch in self.batches():
            kept.append(pa.Table.from_batches([batch.filter(stays(batch))]))
        return kept.written()


class Draft:
    """One table, row group by row group."""

    def __init__(self, path: Path | None, schema: pa.Schema) -> None:
        """Nothing is written before there are rows for a row group; never without a path."""
        self._path, self._schema, self._rows = path, schema, 0
        self._held: list[pa.Table] = []
        self._writer: pq.ParquetWriter | None = None

    def append(self, rows: pa.Table) -> None:
        """Add rows behind those that are there."""
        self._held.append(rows)
        while self._path is not None and sum(each.num_rows for each in self._held) > GROUP:
            held = pa.concat_tables(self._held)
            self._write(self._path, held.slice(0, GROUP))
            self._held = [held.slice(GROUP)]

    def written(self) -> Written:
        """The table in its file, however few its rows are.

        Raises:
            ValueError: it has no place on the disk.
        """
        if self._path is None:
            raise ValueError("a table without a path is held")
        self._write(self._path, pa.concat_tables([self._schema.empty_table(), *self._held]))
        self._held = []
        return self._closed(self._path)

    def ended(self) -> pa.Table | Written:
        """The table: as it is held, or where it lies."""
        if self._writer is None or self._path is None:
            return pa.concat_tables([self._schema.empty_table(), *self._held])
        return self.written()

    def _write(self, path: Path, rows: pa.Table) -> None:
        if self._writer is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(path, self._schema, compression="zstd", store_schema=False)
        self._writer.write_table(rows, row_group_size=GROUP)
        self._rows += rows.num_rows

    def _closed(self, path: Path) -> Written:
        if self._writer is not None:
            self._writer.close()
        return Written(path, self._rows)


class Drafts:
    """The growing tables of one stage run."""

    def __init__(self, folder: Path | None) -> None:
        """In a folder of their own, which is made when it is needed; held in memory without one."""
        self._folder = folder

    def new(self, name: str, schema: pa.Schema) -> Draft:
        """A table that has no rows yet."""
        return Draft(self._folder and self._folder / f"{name}.parquet", schema)

    def aside(self, name: str) -> Path | None:
        """A folder, not made yet, for what does not fit into memory meanwhile; None without a lake."""
        if self._folder is None:
            return None
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder / name


IN_MEMORY = Drafts(None)
"""For who calls a stage's function without a lake."""


@contextmanager
def drafts(root: Path, folder: Path) -> Iterator[Drafts]:
    """Growing tables in a folder below ``root``, which is empty before and gone after.

    Raises:
        SpecError: the folder is a link, or lies behind one.
    """
    clear(root, folder)
    try:
        yield Drafts(folder)
    finally:
        clear(root, folder)
