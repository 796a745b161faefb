"""A source laid out for DuckDB: rows as SQL, each with its number, its cells as text and the policy's refusals.

Scope: the form. Who lays out which source: ``tasks.ingest.registry``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from schemas.audit.partition import ALL, Part
from schemas.terms import Refusal
from tasks.ingest.sources.raw import Raw, Unread

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class Laid:
    """A source as rows of SQL; nothing is typed yet, and nothing is lost."""

    rows: str
    """SQL that selects ``place``, the number of the row from 1; ``c0``, ``c1``, ... the cells of the columns in their
    order as text, never null; and ``q0``, ``q1``, ... whether the source's policy refuses the row."""
    columns: tuple[str, ...]
    """Names of ``c0``, ``c1``, ..."""
    quarantined: tuple[tuple[Refusal, str], ...] = ()
    """Reason and column of ``q0``, ``q1``, ... in the order in which they count."""
    unread: Sequence[Unread] = ()
    """Rows that are refused before anything is typed."""
    plain: frozenset[str] = frozenset()
    """Columns whose cells are ASCII alone, with no blanks around."""
    as_compared: frozenset[str] = frozenset()
    """Columns whose cells are what ``tasks.ingest.cells.canonical`` makes of them."""


def registered(raw: Raw, connection: "duckdb.DuckDBPyConnection", part: Part | None = None) -> Laid:
    """A source that was read, or its rows of one partition; lines that could not be read belong to none."""
    columns = tuple(raw.table.column_names)
    quarantined = tuple(raw.quarantined)
    named = [pa.array(np.asarray(raw.source_row, dtype=np.int64)), *raw.table.columns]
    named += [pa.array(np.asarray(raw.quarantined[key], dtype=bool)) for key in quarantined]
    names = ["place", *(f"c{i}" for i in range(len(columns))), *(f"q{i}" for i in range(len(quarantined)))]
    table = pa.table(named, names=names)
    if part is not None and part.value != ALL:
        import pyarrow.compute as pc

        table = table.filter(pc.equal(table[f"c{columns.index(part.column)}"], part.value))
    connection.register("source_rows", table)
    unread = () if part is not None and part.value != ALL else raw.unread
    return Laid("SELECT * FROM source_rows", columns, quarantined, unread)
