"""Judged rows in the order of the source, from a stream in any order and in bounded memory.

DuckDB's own sort of wide rows ends with an error where it should spill, whatever the folder for it: few rows are sorted
at once, and many are first put into files by ranges of their number, each of which is sorted for itself.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from tasks.lake import drafts

RANGE = 2**19
"""Numbers of rows of a file."""
_HELD = 2**14
"""Rows of a range that are held until they are written."""


def in_order(batches: Iterable[pa.RecordBatch], folder: Path | None) -> Iterator[pa.Table]:
    """The rows by ``place``, in tables one after the other.

    Args:
        batches: of one schema.
        folder: is made if the rows are more than are held at once; they are held without one.
    """
    waiting, held, files = iter(batches), list[pa.RecordBatch](), None
    for batch in waiting:
        held.append(batch)
        if folder is not None and sum(each.num_rows for each in held) > drafts.GROUP:
            files = _Ranges(folder, batch.schema)
            for each in held:
                files.add(each)
            held = []
            break
    if files is not None:
        for batch in waiting:
            files.add(batch)
        yield from files.tables()
    elif held:
        yield _sorted(pa.Table.from_batches(held))


def _sorted(rows: pa.Table) -> pa.Table:
    place = rows["place"].to_numpy()
    return rows if (place[1:] > place[:-1]).all() else rows.take(pa.array(np.argsort(place, kind="stable")))


class _Ranges:
    """A file for each range of numbers, open until all rows are there."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._schema = folder, schema
        self._held: dict[int, list[pa.RecordBatch]] = defaultdict(list)
        self._writers: dict[int, pa.ipc.RecordBatchFileWriter] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        of = batch["place"].to_numpy() // RANGE
        for at in np.unique(of).tolist():
            self._held[at].append(batch.filter(pa.array(of == at)))
            if sum(each.num_rows for each in self._held[at]) >= _HELD:
                self._write(at)

    def tables(self) -> Iterator[pa.Table]:
        """The rows of each range in order, whose file goes then."""
        for at in sorted({*self._held, *self._writers}):
            self._write(at)
            self._writers[at].close()
            with pa.ipc.open_file(str(self._path(at))) as file:
                rows = file.read_all()
            yield _sorted(rows)
            self._path(at).unlink()

    def _write(self, at: int) -> None:
        if at not in self._writers:
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writers[at] = pa.ipc.new_file(str(self._path(at)), self._schema, options=options)
        rows = pa.Table.from_batches(self._held.pop(at, []), self._schema)
        self._writers[at].write_table(rows.combine_chunks())

    def _path(self, at: int) -> Path:
        return self._folder / f"{at}.arrow"
