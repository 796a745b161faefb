"""Raw rows of a source: text, row numbers, unreadable rows, and rows that are set aside."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from schemas.terms import Refusal


@dataclass(frozen=True)
class Unread:
    """A row that the source itself refuses, so that nothing of it is in the table."""

    row: int
    """Its number in the source, from 1."""
    reason: Refusal
    column: str | None = None
    detail: str | None = None


@dataclass(frozen=True)
class Raw:
    """A source as read: nothing is typed yet, and nothing is lost."""

    table: pa.Table
    """String columns, one row each."""
    source_row: list[int]
    """``(rows,)`` number of each row in the source, from 1."""
    unread: Sequence[Unread] = ()
    """Rows that are refused before anything is typed."""
    quarantined: Mapping[tuple[Refusal, str], NDArray[np.bool_]] = field(default_factory=dict)
    """Reason and column -> ``(rows,)`` whether the policy of the source refuses the row of the table for it."""
