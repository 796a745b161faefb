"""The rows of a source as they are judged: applications of those that are used, and what became of each.

Both grow on the disk where they are many, so that no more than a row group of either is held.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from schemas.audit.column import ColumnSpec
from schemas.tables.applications import APPLICATIONS
from schemas.terms import Kind
from tasks.ingest.pushdown.ordering import in_order
from tasks.ingest.pushdown.reasons import Line
from tasks.ingest.pushdown.statement import Statement
from tasks.lake.drafts import Drafts, Written

if TYPE_CHECKING:
    import duckdb

BATCH = 65_536
"""Rows of a record batch."""
_JUDGED = {"place": pa.int64(), "row_id": pa.string(), "refused": pa.int32(), "favourable": pa.bool_()}


@dataclass(frozen=True)
class Judged:
    """What became of the rows, in the order of the source; the connection has all of them as the view ``judged``."""

    applications: pa.Table | Written
    rows: int
    lines: Sequence[Line]
    """Reason and column by the number in ``refused`` of the view."""
    attributes: tuple[str, ...]
    """Protected attributes; ``g0``, ``g1``, ... of the view are their groups."""
    every: pa.Table | Written
    """The view's rows."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Columns of the view in the order of the source; DuckDB gives up an order that no statement asks for."""
        if isinstance(self.every, Written):
            return self.every.batches(columns)
        return iter(self.every.select(columns).to_batches(BATCH))


def judge(
    statement: Statement,
    columns: Mapping[str, ColumnSpec],
    attributes: Sequence[str],
    connection: "duckdb.DuckDBPyConnection",
    drafts: Drafts,
) -> Judged:
    """Stream the statement's rows apart."""
    wide = _applications(columns)
    groups = [f"g{i}" for i in range(len(attributes))]
    narrow = pa.schema([*_JUDGED.items(), *((name, pa.string()) for name in groups)])
    used, every, rows = drafts.new(APPLICATIONS.name, wide), drafts.new("judged", narrow), 0
    stream = connection.sql(statement.sql).to_arrow_reader(BATCH)
    for judged in in_order(stream, drafts.aside("by number")):
        rows += judged.num_rows
        every.append(judged.select(narrow.names).cast(narrow))
        taken = judged.filter(pc.is_null(judged["refused"]))
        fixed = [taken["row_id"], taken["place"], taken["favourable"], taken["outcome"], taken["exempt"]]
        typed = [taken[f"v{i}"] for i in range(len(columns))]
        used.append(pa.Table.from_arrays([*fixed, *typed], names=wide.names).cast(wide))
    applications = used.ended()
    if isinstance(applications, pa.Table):
        applications = applications.combine_chunks()
    ended = every.ended()
    _register(ended, connection)
    return Judged(applications, rows, statement.lines, tuple(attributes), ended)


def _applications(columns: Mapping[str, ColumnSpec]) -> pa.Schema:
    kinds = [(name, pa.float64() if c.type is Kind.CONTINUOUS else pa.string()) for name, c in columns.items()]
    return pa.schema([*APPLICATIONS.schema(), *(pa.field(name, kind) for name, kind in kinds)])


def _register(rows: pa.Table | Written, connection: "duckdb.DuckDBPyConnection") -> None:
    if isinstance(rows, Written):
        connection.read_parquet(str(rows.path)).create_view("judged")
    else:
        connection.register("judged", rows)
