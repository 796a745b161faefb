"""A table in memory as a source: the rows that a program hands in, as text."""

import hashlib
from collections.abc import Sequence

import pyarrow as pa

from schemas.audit.source import Source
from schemas.errors import DataQualityError, SpecError, nearest
from tasks.ingest.sources.raw import Raw


def digest(source: Source) -> str:
    """sha256 of the names and cells of the table."""
    sink = pa.BufferOutputStream()
    table = _table(source)
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return hashlib.sha256(sink.getvalue()).hexdigest()


def header(source: Source) -> list[str]:
    """Names of the columns, in order."""
    return list(_table(source).column_names)


def read(source: Source, columns: Sequence[str]) -> Raw:
    """The named columns as text.

    Raises:
        DataQualityError: the table has no such column; the nearest one is named.
    """
    table = _table(source)
    for name in columns:
        if name not in table.column_names:
            raise DataQualityError(f"the frame has no column {name!r}; {nearest(name, table.column_names)}")
    return Raw(table.select(list(columns)), list(range(1, table.num_rows + 1)))


def _table(source: Source) -> pa.Table:
    if source.frame is None:
        raise SpecError(
            "the rows of this spec were a frame in Python; write them to a file, and give its kind and path",
            ("source", "kind"),
        )
    table: pa.Table = source.frame
    return table.combine_chunks()
