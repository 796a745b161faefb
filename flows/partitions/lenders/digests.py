"""Digests of the rows of every partition, kept in the lake so that a source is read for them once."""

import hashlib
import io
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.audit.spec import AuditSpec
from tasks.ingest import registry
from tasks.ingest.cells import canonical
from tasks.ingest.part_digests import part_digests
from tasks.lake.store import Lake


def digests_of(spec: AuditSpec, lake: Lake) -> Mapping[str, str]:
    """Value of the column -> digest of the rows that have it; of rows without one under the empty value.

    Args:
        spec: with ``by``, its source that of one year and of no partition.
        lake: keeps what was counted.

    Raises:
        EvenhandError: as readers of sources say.
    """
    source_sha256 = registry.digest(spec.source)
    column = spec.by.column if spec.by else ""
    path = f"parts/{source_sha256[:32]}-{hashlib.sha256(column.encode()).hexdigest()[:10]}.parquet"
    held = _held(lake.storage.read(path))
    table = held
    if table is None:
        with spilling(lake) as spill:
            table = part_digests(spec.source, column, spill)
        sink = io.BytesIO()
        pq.write_table(table, sink)
        lake.write_file(path, sink.getvalue())
    return _by_value(spec, table)


@contextmanager
def spilling(lake: Lake) -> Iterator[Path]:
    """A folder of the lake for what does not fit into memory, which goes afterwards."""
    place = lake.storage.local / "tmp"
    place.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="parts-", dir=place) as spill:
        yield Path(spill)


def _held(content: bytes | None) -> pa.Table | None:
    """What was kept; None of a file that cannot be read, which is then made again."""
    try:
        return None if content is None else pq.read_table(io.BytesIO(content))
    except pa.ArrowException:
        return None


def _by_value(spec: AuditSpec, table: pa.Table) -> dict[str, str]:
    """The digests by value; of texts that all mean missing, the digest of their digests."""
    column = spec.kept().get(spec.by.column) if spec.by else None
    missing = {"", *spec.source.missing, *(column.missing if column else ())}
    found: dict[str, list[str]] = defaultdict(list)
    for row in table.to_pylist():
        found["" if canonical(row["value"]) in missing else row["value"]].append(row["rows_sha256"])
    return {
        value: each[0] if len(each) == 1 else hashlib.sha256("".join(sorted(each)).encode()).hexdigest()
        for value, each in found.items()
    }
