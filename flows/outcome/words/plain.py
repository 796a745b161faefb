"""Words of an error without values of rows, and in one line; and rows of a stage, counted roughly."""

import re
from collections.abc import Collection
from typing import Final

from schemas.artifact import Partition
from tasks.lake.store import Lake

_LONGEST: Final = 600
"""Characters of a message."""
_LEAST_TOLD: Final = 100
"""Fewer rows than this are not counted in a log."""
_QUOTED: Final = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_YEAR: Final = re.compile(r"(?<!\d)\d{4}(?!\d)")


def without_cells(text: str, known: Collection[str]) -> str:
    """The first line of a message, with what it quotes left out where that is no text of the spec.

    Messages about data may quote cells, and name rows in the lines below the first.
    """

    def kept(quote: re.Match[str]) -> str:
        quoted = quote[0][1:-1]
        return quote[0] if quoted in known or _YEAR.sub("{year}", quoted) in known else "\N{HORIZONTAL ELLIPSIS}"

    return _QUOTED.sub(kept, text.split("\n", maxsplit=1)[0].rstrip(":"))


def one_line(text: str) -> str:
    """A message as one line of bounded length."""
    line = " ".join(part.strip() for part in text.splitlines() if part.strip())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 4].rstrip() + " ..."


def stage_words(partition: Partition, seconds: float, lake: Lake) -> str:
    """What is said of a stage at its end."""
    refused = lake.lineage(partition)["rows"]["refused"]
    how = "from the lake" if partition.reused else f"{seconds:.1f} s"
    return f"{about(partition.tables[0].rows)} rows, {about(refused)} refused, {how}"


def about(rows: int) -> str:
    """A number of rows in a log: to two digits, since rows are counted here before it is decided what may be told.

    Rows that a stage refused are withheld where they are few, and they are what two exact numbers differ by.
    """
    return f"< {_LEAST_TOLD}" if 0 < rows < _LEAST_TOLD else f"{roughly(rows):,}"


def roughly(rows: int) -> int:
    """The same as a number, for metrics and traces: to two digits, 0 where they are few."""
    return 0 if rows < _LEAST_TOLD else int(float(f"{rows:.1e}"))
