"""Repairs inputs so that they do not tell the groups apart (disparate impact remover; Feldman et al. 2015, section 5).

A value becomes its quantile in its own group, and then the median over the groups of that quantile's value. What a
group had at its 90th percentile, the other group has there afterwards. Ranks within a group are kept; a column that is
constant in each group, such as the group itself, becomes constant under full repair.

Columns with few values cannot be repaired below their step: values that are tied stay tied.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from tasks.numerics.arrays import Bools, Floats

_Column = tuple[tuple[Floats, Floats], tuple[Floats, Floats]]
"""Of one column, for each of the two groups: its distinct values and their quantiles, in order."""


@dataclass(frozen=True)
class Repair:
    """A repair fitted to training rows of two groups."""

    level: float
    """0: inputs stay as they are, to the bit. 1: full repair."""
    columns: tuple[_Column, ...]

    @classmethod
    def fitted(cls, inputs: Floats, protected: Bools, level: float = 1.0) -> Self:
        """Fits the quantiles of every column to training rows.

        Args:
            inputs: ``(r, d)``.
            protected: ``(r,)`` membership; both groups have a row.
            level: Share of the way to the common distribution.

        Raises:
            ValueError: A group has no row, or the level is outside 0..1.
        """
        if not 0 <= level <= 1:
            raise ValueError(f"the level of repair is {level:g}; it lies between 0 and 1")
        if protected.all() or not protected.any():
            raise ValueError("a repair needs training rows of both groups")
        one, other = inputs[~protected], inputs[protected]
        return cls(level, tuple((_quantiles(a), _quantiles(b)) for a, b in zip(one.T, other.T, strict=True)))

    def of(self, inputs: Floats, protected: Bools) -> Floats:
        """Returns repaired inputs ``(n, d)`` of rows of known group ``(n,)``; outside the training rows, the ends."""
        out = inputs.copy()
        if self.level == 0:
            return out
        for at, column in enumerate(self.columns):
            for own, rows in zip(column, (~protected, protected), strict=True):
                values = inputs[rows, at]
                rank = np.interp(values, *own)
                common = np.median([np.interp(rank, quantiles, known) for known, quantiles in column], axis=0)
                out[rows, at] = values + self.level * (common - values)
        return out


def _quantiles(values: Floats) -> tuple[Floats, Floats]:
    """The distinct values ``(v,)`` and the mean quantile of the rows that have each, between 0 and 1."""
    known, counts = np.unique(values, return_counts=True)
    ends = np.cumsum(counts)
    middle = ends - (counts + 1) / 2
    return known, middle / max(len(values) - 1, 1) if len(values) > 1 else np.full(1, 0.5)
