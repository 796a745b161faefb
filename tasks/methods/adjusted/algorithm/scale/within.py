"""Fixed effects without dummies: the within transformation (Frisch, Waugh and Lovell).

An intercept and whatever does not vary within a level become zero: leave them out of the design.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tasks.methods.adjusted.algorithm.scale.batches import Batch, Batches, ClusterSums
from tasks.numerics.arrays import Floats, Ints

MOST_ROUNDS = 10_000
APART = 1e-12
"""Rounds end when no value moves by more than this share of its column's standard deviation."""


def demeaned(batches: Batches) -> tuple[Batches, int]:
    """The same rows less the means of their level, and the number of levels; one pass, and one more for each use.

    Raises:
        ValueError: A batch has no levels.
    """
    sums: ClusterSums | None = None
    for batch in batches():
        values = np.column_stack([batch.y, batch.x])
        sums = sums or ClusterSums(values.shape[1])
        sums.add(values, _levels(batch.level))
    if sums is None:
        return batches, 0
    means = sums.sums / np.maximum(sums.rows, 1)[:, None]

    def less_means() -> Iterator[Batch]:
        for batch in batches():
            of = means[_levels(batch.level)]
            yield replace(batch, y=batch.y - of[:, 0], x=batch.x - of[:, 1:])

    return less_means, sums.clusters


def _levels(level: Ints | None) -> Ints:
    if level is None:
        raise ValueError("rows without levels have no fixed effect to be taken out")
    return level


def within(values: Floats, effects: Sequence[Ints]) -> Floats:
    """``(n, k)`` values less several fixed effects, by alternating projections (Guimaraes and Portugal 2010).

    Args:
        values: ``(n, k)`` outcome and columns.
        effects: For each fixed effect ``(n,)`` levels, from 0.

    Raises:
        ValueError: The projections do not settle.
    """
    left: Floats = np.array(values, dtype=np.float64)
    scale = np.maximum(left.std(axis=0), np.finfo(float).tiny)
    for _ in range(MOST_ROUNDS):
        before = left
        for levels in effects:
            left = _less_means(left, levels)
        if len(effects) == 1 or float((np.abs(left - before) / scale).max(initial=0.0)) <= APART:
            return left
    raise ValueError(f"fixed effects did not settle in {MOST_ROUNDS} rounds")


def _less_means(values: Floats, levels: Ints) -> Floats:
    counts = np.maximum(np.bincount(levels), 1)
    means = np.column_stack([np.bincount(levels, column) / counts for column in values.T])
    found: Floats = values - means[levels]
    return found
