"""What every source gives: text, row numbers, and the lines that could not be read."""

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Raw:
    """A source as read: nothing is typed yet, and nothing is lost."""

    table: pa.Table
    """String columns, one row each."""
    source_row: list[int]
    """``(rows,)`` number of each row in the source, from 1."""
    malformed: list[int]
    """Numbers of the rows whose line could not be split into the columns of the header."""
