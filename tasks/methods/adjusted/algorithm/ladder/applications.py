"""Input of the ladder: applications with their decision, group and control columns, as arrays aligned by row."""

from dataclasses import dataclass
from typing import Literal

from tasks.numerics.arrays import Bools, Floats, Ints


@dataclass(frozen=True)
class Control:
    """One column that similar applicants are similar in."""

    name: str
    kind: Literal["number", "category"]
    values: Floats
    """``(n,)`` numbers in the user's units, or the number of the category; NaN where missing."""
    categories: tuple[str, ...] = ()
    """Names of the categories, lowest first where they have an order; none for a number."""
    ordered: bool = False
    """Whether the categories have an order, and so percentiles."""
    scale: Literal["linear", "log"] = "linear"
    """Whether a number enters as its logarithm (money)."""


@dataclass(frozen=True)
class Block:
    """The control columns that one rung adds to those below it."""

    name: str
    controls: tuple[Control, ...]


@dataclass(frozen=True)
class Applications:
    """The applications of one decision maker and one protected attribute."""

    denied: Bools
    """``(n,)`` unfavourable decisions."""
    group: Ints
    """``(n,)`` index into ``groups``."""
    groups: tuple[str, ...]
    reference: int
    """Index into ``groups`` of the reference group."""
    blocks: tuple[Block, ...]
    """In the order of the rungs; rung 0 has none."""
    cluster: Ints | None = None
    """``(n,)`` cluster of each row, from 0; None for independent rows."""
