"""Digests of the rows of a source by the values of a column: what identifies the run of a partition.

A digest is of all columns of the source, those that no spec names among them, and of no row's place: rows that come
before others change no digest but their own partition's.
"""
# ruff: noqa: S608 what goes into the SQL is quoted

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.audit.source import Source
from tasks.ingest import registry
from tasks.ingest.pushdown.database import database
from tasks.ingest.sources.parts import COUNTED, counted

if TYPE_CHECKING:
    import duckdb

_LENDER: Final = "lender_id"
_LENDERS: Final = "lenders.parquet"
"""Beside the rows of a vintage, where it was counted by lender."""


def part_digests(source: Source, column: str, spill: Path | None = None) -> pa.Table:
    """Value, rows and rows_sha256 of every part of a source, as ``tasks.ingest.sources.parts.COUNTED`` says.

    Args:
        source: whose parts; that of a partition is taken whole.
        column: of the source.
        spill: folder for what does not fit into memory.

    Raises:
        EvenhandError: as readers of sources say.
    """
    whole = source.model_copy(update={"part": None})
    held = _held(whole, column)
    if held is not None:
        return held
    with database(spill) as connection, _relation(whole, column, connection) as relation:
        return counted(connection, relation, column)


def digest_of_part(source: Source) -> str:
    """Digest of the rows of the partition that a source names, as they are now; empty where there are none.

    Raises:
        EvenhandError: as readers of sources say.
    """
    if source.part is None:
        raise ValueError("the source is no partition's")
    rows = part_digests(source, source.part.column).to_pylist()
    return next((row["rows_sha256"] for row in rows if row["value"] == source.part.value), "")


def _held(source: Source, column: str) -> pa.Table | None:
    """What a vintage says of its lenders; None of another column, or of a source that says nothing."""
    lenders = Path(source.vintage_file or "").parent / _LENDERS
    if source.vintage_file is None or column != _LENDER or not lenders.is_file():
        return None
    return pq.read_table(lenders, columns=[_LENDER, "rows", "rows_sha256"]).rename_columns(COUNTED.names).cast(COUNTED)


@contextmanager
def _relation(source: Source, column: str, connection: "duckdb.DuckDBPyConnection") -> Iterator[str]:
    """The rows as DuckDB reads them: of HMDA the converted ones, of others every column as text."""
    from tasks.ingest.hmda.canonical.codes import CANONICAL

    if source.kind == "hmda" and column in CANONICAL:
        from tasks.ingest.hmda.applications import open_file
        from tasks.ingest.hmda.sorted_rows import located

        with ExitStack() as stack:
            files = [stack.enter_context(open_file(path)) for path in located(source)]
            yield f"({' UNION ALL BY NAME '.join(f'SELECT * FROM {file.table()}' for file in files)})"
        return
    reader = registry.reader(source)
    connection.register("source_rows", reader.read(source, reader.header(source)).table)
    yield "source_rows"
