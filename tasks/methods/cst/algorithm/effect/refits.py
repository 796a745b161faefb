"""Variance that the estimated causal model adds to CST: it is fitted again to resamples of rows.

No search is repeated. The complainants are moved again, and the mean of z(x^CF)'b is taken with the coefficients b of
the reference side held fixed. Leaving this out costs 2 to 4 points of coverage.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tasks.methods.cst.algorithm.effect.side import Side
from tasks.numerics.arrays import Floats, Ints, Longs
from tasks.numerics.problem import Counterfactuals

REFITS = 50
"""Resamples."""

MOST_ROWS = 4_000
"""Rows of a resample; of a larger file the variance is scaled by resampled over all rows (m out of n bootstrap)."""

MOST_COMPLAINANTS = 500
"""Complainants of a group who are moved again: the mean shift of more is no other."""

Again = Callable[[Longs, Longs], Counterfactuals]
"""Moves rows ``(r,)`` by a causal model that is fitted to a sample of rows."""


class Mover(NamedTuple):
    """Complainants of one group and the regression that tells what their moves are worth."""

    row: Longs
    """``(c,)`` complainants with a counterfactual, ascending."""
    moved: Floats
    """``(c, p)`` their counterfactuals by the model of the audit."""
    reference: Side
    worth: Floats
    """``(c,)`` z(x^CF)'b of each."""

    @classmethod
    def of(cls, row: Longs, moved: Floats, reference: Side) -> "Mover":
        """The complainants ``(c,)`` of a group, moved to ``(c, p)``, beside the reference side."""
        return cls(row, moved, reference, reference.design.of(moved) @ reference.coefficients)

    def some(self, rng: np.random.Generator) -> "Mover":
        """At most ``MOST_COMPLAINANTS`` of them."""
        if len(self.row) <= MOST_COMPLAINANTS:
            return self
        chosen = np.sort(rng.choice(len(self.row), MOST_COMPLAINANTS, replace=False))
        return self._replace(row=self.row[chosen], moved=self.moved[chosen], worth=self.worth[chosen])

    def shift(self, made: Counterfactuals) -> float:
        """Mean change of z(x^CF)'b; who was not moved this time counts as unchanged."""
        own = np.flatnonzero(np.isin(self.row, made.row))
        again = made.values[np.searchsorted(made.row, self.row[own])]
        change = self.reference.design.of(again) @ self.reference.coefficients - self.worth[own]
        return float(change.sum()) / max(len(self.row), 1)


def structural_variances(again: Again, movers: Sequence[Mover], group: Ints, rng: np.random.Generator) -> list[float]:
    """Variance of each group's effect that the causal model's estimation adds.

    Args:
        again: Moves rows by a model fitted to a sample.
        movers: One for each group.
        group: ``(n,)`` labels; each keeps its number of rows in a resample.
        rng: Draws resamples.
    """
    if not movers:
        return []
    looked = [mover.some(rng) for mover in movers]
    rows = np.unique(np.concatenate([mover.row for mover in looked]))
    size = min(len(group), MOST_ROWS)
    shifts: list[list[float]] = []
    for _ in range(REFITS):
        made = again(rows, resample(group, size, rng))
        shifts.append([mover.shift(made) for mover in looked])
    found = np.var(np.array(shifts), axis=0, ddof=1) * size / len(group)
    return [float(each) for each in found]


def resample(group: Ints, size: int, rng: np.random.Generator) -> Longs:
    """``size`` rows with replacement, by label in the shares of the file, so that no label is lost; ascending."""
    order = np.argsort(group, kind="stable")
    labels, start, counts = np.unique(group[order], return_index=True, return_counts=True)
    wanted = np.maximum(1, np.round(counts * (size / len(group))).astype(np.int64))
    parts = [
        order[first + rng.integers(0, many, take)]
        for first, many, take in zip(start.tolist(), counts.tolist(), wanted.tolist(), strict=True)
    ]
    return np.sort(np.concatenate(parts)) if len(labels) else np.zeros(0, np.int64)
