"""The parts of a table by the values of a column: how many rows each has, and a digest of what is in them.

The digest of a part is that of its rows alone, in no order: the sha256 over the sorted sha256 of its rows. So a part
that nobody corrected keeps its digest when the table is sorted, split or delivered again with other parts changed.
DuckDB makes the digests of rows and sorts them, spilling what does not fit; Python joins them as they stream by.
"""
# ruff: noqa: S608 what goes into the SQL is quoted, or a name of ours

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.errors import DataQualityError, nearest

if TYPE_CHECKING:
    import duckdb

COUNTED: Final = pa.schema(
    [
        pa.field("value", pa.string(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("rows_sha256", pa.string(), nullable=False),
    ]
)
"""One row a part: its value as text, empty where the column is null, its rows, and their digest."""

_BATCH = 65_536
_BYTES = 32
"""Of a digest."""
_FIELD = "chr(30)"
"""Before a cell: the separator of records of ASCII."""
_WIDTHS = (4, 8, 43)
"""Letters of a column's key: the first that tell all columns apart. Full names would be most of what is digested."""


def counted(
    connection: "duckdb.DuckDBPyConnection", relation: str, column: str, leave_out: Collection[str] = ("source_row",)
) -> pa.Table:
    """The parts of a relation by the value of a column, as ``COUNTED`` says, in the order of values by their bytes.

    Digests depend on the cells that have a value and on the names of their columns; not on the order of rows or of
    columns, on columns that are null throughout, or on how many threads work. Memory is that of the connection.

    Args:
        connection: Where the relation is; its settings bound threads and memory.
        relation: What stands after FROM: the name of a table or view, quoted, or a table function.
        column: Whose values make the parts.
        leave_out: Columns that say nothing of a row but where it lies, such as its number in the file.

    Raises:
        DataQualityError: the relation has no such column.
    """
    columns = {name: str(kind) for name, kind, *_ in connection.execute(f"DESCRIBE FROM {relation}").fetchall()}
    if column not in columns:
        raise DataQualityError(f"the rows have no column {column!r} to part them by; {nearest(column, list(columns))}")
    kept = sorted(name for name in columns if name not in leave_out)
    cells = [_cell(key, name, columns[name]) for key, name in zip(_keys(kept), kept, strict=True)]
    digest = f"unhex(sha256(concat({', '.join(cells)})))" if cells else "unhex(sha256(''))"
    query = f"SELECT coalesce(CAST({_quoted(column)} AS VARCHAR), '') AS value, {digest} AS digest FROM {relation}"
    return _joined(connection.sql(f"{query} ORDER BY value, digest").to_arrow_reader(_BATCH))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _keys(names: Sequence[str]) -> list[str]:
    """A short key for each name, of the same length, that depends on the name alone."""
    digests = [urlsafe_b64encode(hashlib.sha256(name.encode()).digest()).decode() for name in names]
    keys = ([digest[:width] for digest in digests] for width in _WIDTHS)
    return next(each for each in keys if len(set(each)) == len(names))


def _cell(key: str, name: str, kind: str) -> str:
    """SQL of a cell as text that no other cell has: its column's key and its value; nothing where it is null."""
    text = f"CAST({_quoted(name)} AS VARCHAR)"
    if not kind.endswith(
        ("INT", "INTEGER", "DOUBLE", "BOOLEAN")
    ):  # a text may hold the separator: it stands there twice
        text = f"replace({text}, {_FIELD}, {_FIELD} || {_FIELD})"
    return f"{_FIELD} || '{key}' || {text}"


def _joined(reader: pa.RecordBatchReader) -> pa.Table:
    """The parts of a stream of values and digests that is sorted by both."""
    values: list[str] = []
    rows: list[int] = []
    digests: list[str] = []
    whole = hashlib.sha256()
    for value, part in _runs(reader):
        if not values or values[-1] != value:
            digests += [whole.hexdigest()] if values else []
            values.append(value)
            rows.append(0)
            whole = hashlib.sha256()
        whole.update(part)
        rows[-1] += len(part) // _BYTES
    digests += [whole.hexdigest()] if values else []
    return pa.table([values, rows, digests], schema=COUNTED)


def _runs(reader: pa.RecordBatchReader) -> Iterator[tuple[str, memoryview]]:
    """Stretches of equal values within a batch, each with its digests one after another."""
    for batch in reader:
        if not batch.num_rows:
            continue
        digests = batch.column(1)
        _, offsets, content = digests.buffers()
        first = int(np.frombuffer(offsets, np.int32)[digests.offset])
        said = memoryview(content)[first : first + batch.num_rows * _BYTES]
        runs = pc.run_end_encode(batch.column(0))
        start = 0
        for value, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            yield value, said[start * _BYTES : end * _BYTES]
            start = end
