"""The source that a run read, as its ingest stage recorded it."""

from collections.abc import Sequence
from typing import Any

from schemas.artifact import Partition
from schemas.tables.source import SOURCE_READ, told
from tasks.lake.store import Lake


def source_read(lake: Lake, done: Sequence[Partition]) -> dict[str, Any]:
    """What was read, with the first 12 digits of its sha256: source, sha256, rows, year.

    Raises:
        IntegrityError: the table is not the one that was written.
    """
    partition = next(p for p in done if p.stage == "ingest")
    return told(lake.read(partition.table(SOURCE_READ.name)).to_pylist()[0])
