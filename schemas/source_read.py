"""The table of what an audit read, and how it is told."""

from collections.abc import Mapping
from typing import Any

from schemas.table import Column, Table

SOURCE_READ = Table(
    "source_read",
    "What the audit read, by the source itself: one row.",
    (
        Column("source", "string", "names of the files in order, or the vintage in words"),
        Column("sha256", "string", "of the file; of several files, that of their digests in order"),
        Column("rows", "int64", "rows of the source, those that could not be read among them", minimum=0),
        Column("year", "int64", "year of the rows that are kept; null where no column tells it", nullable=True),
    ),
)


def told(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row as a manifest keeps it, with the first 12 digits of the digest."""
    return {**row, "sha256": row["sha256"][:12]}
