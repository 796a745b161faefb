"""Batches of rows that can be read again from the start, as often as an estimate needs a pass."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tasks.numerics.arrays import Floats, Ints


@dataclass(frozen=True)
class Batch:
    """Some rows of a regression, ``m`` of them."""

    y: Floats
    """``(m,)`` outcome; 0 or 1 for a logit."""
    x: Floats
    """``(m, p)`` design with its intercept."""
    cluster: Ints | None = None
    """``(m,)`` cluster of each row, numbered from 0 over all batches; None for independent rows."""
    level: Ints | None = None
    """``(m,)`` level of the fixed effect that is to be taken out, numbered in the same way."""

    def rows(self, chosen: slice) -> "Batch":
        """Some of its rows."""
        ids = (None if each is None else each[chosen] for each in (self.cluster, self.level))
        return Batch(self.y[chosen], self.x[chosen], *ids)


Batches = Callable[[], Iterator[Batch]]
"""Each call begins a new pass over the same rows in the same order."""


def every(batches: Batches, step: int) -> Batch:
    """Every ``step``-th row in one batch, whichever way the rows are split; one pass."""
    seen, y, x = 0, list[Floats](), list[Floats]()
    for batch in batches():
        chosen = slice(-seen % step, None, step)
        y.append(batch.y[chosen].copy())  # a view would keep the whole batch
        x.append(batch.x[chosen].copy())
        seen += len(batch.y)
    return Batch(np.concatenate(y), np.concatenate(x))


class ClusterSums:
    """Sums of scores by cluster, over batches; ``(G, p)`` grows with the clusters that were seen."""

    def __init__(self, columns: int) -> None:
        self.sums: Floats = np.zeros((0, columns))
        self.rows: Floats = np.zeros(0)

    def add(self, scores: Floats, cluster: Ints) -> None:
        """Add the scores of a batch to the sums of their clusters."""
        levels = max(len(self.rows), int(cluster.max(initial=-1)) + 1)
        more = levels - len(self.rows)
        self.sums, self.rows = np.pad(self.sums, ((0, more), (0, 0))), np.pad(self.rows, (0, more))
        for column in range(self.sums.shape[1]):
            self.sums[:, column] += np.bincount(cluster, scores[:, column], levels)
        self.rows += np.bincount(cluster, minlength=levels)

    @property
    def clusters(self) -> int:
        """How many clusters have rows."""
        return int(np.count_nonzero(self.rows))

    @property
    def meat(self) -> Floats:
        """``(p, p)`` cross products of the sums."""
        found: Floats = self.sums.T @ self.sums
        return found


class Meat:
    """Cross products of scores, of rows or, where batches have them, of clusters."""

    def __init__(self, columns: int) -> None:
        self.of_rows: Floats = np.zeros((columns, columns))
        self.by_cluster: ClusterSums | None = None

    def add(self, x: Floats, residuals: Floats, cluster: Ints | None) -> None:
        """Add the scores x * residual of a batch."""
        scores = x * residuals[:, None]
        self.of_rows += scores.T @ scores
        if cluster is not None:
            self.by_cluster = self.by_cluster or ClusterSums(x.shape[1])
            self.by_cluster.add(scores, cluster)

    @property
    def robust(self) -> Floats:
        """``(p, p)`` of rows, or of clusters times G / (G - 1); NaN with one cluster."""
        by = self.by_cluster
        if by is None:
            return self.of_rows
        return by.meat * (by.clusters / (by.clusters - 1) if by.clusters > 1 else np.nan)
