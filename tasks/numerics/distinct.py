"""Distinct places: equal rows are searched for once, and ties are found regardless of rounding.

Public data hold thousands of applicants with the very same values. So a k-d tree over the distinct places is small.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from tasks.numerics.arrays import Floats, Longs

WORKERS = 2
"""Threads of a search."""


@dataclass(frozen=True)
class Places:
    """``n`` rows gathered by their place; ``m`` distinct places."""

    at: Floats
    """``(m, f)`` coordinates."""
    order: Longs
    """``(n,)`` rows by place, and ascending within each."""
    start: Longs
    """``(m,)`` where a place begins in ``order``."""

    @property
    def first(self) -> Longs:
        """``(m,)`` the lowest row at each place."""
        return self.order[self.start]

    @property
    def count(self) -> Longs:
        """``(m,)`` rows at each place."""
        return np.diff(self.start, append=len(self.order))


def gather(coordinates: Floats) -> Places:
    """The distinct places of rows ``(n, f)``."""
    order = np.lexsort(coordinates.T[::-1])
    ordered = coordinates[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    start = np.flatnonzero(new)
    return Places(ordered[start], order, start)


def nearest(tree: cKDTree, rank: Longs, queries: Floats) -> tuple[Longs, Floats]:
    """The place nearest to each query, and of several equally near the one of the lowest rank.

    Distances are equal if they are so in single precision: one unit above and one unit below are equally far, whatever
    the last bits of the doubles say. A search does not promise any order among equals, so it is widened for as long as
    its last neighbour is as near as its first.

    Args:
        tree: ``m`` distinct places.
        rank: ``(m,)`` for example the lowest row at each.
        queries: ``(q, f)``.

    Returns:
        Places, ``(q,)``, and their distances, ``(q,)``.
    """
    place, distance = np.empty(len(queries), np.int64), np.empty(len(queries))
    # queries that lie close together read the same part of the tree: a third faster from 100,000 places
    asked = cKDTree(queries, balanced_tree=False).indices
    k = min(2, tree.n)
    while len(asked):
        away, found = tree.query(queries[asked], k=np.arange(1, k + 1), workers=WORKERS)
        tied = away.astype(np.float32) == away[:, :1].astype(np.float32)
        best = np.where(tied, rank[found], np.iinfo(np.int64).max).argmin(axis=1)
        at = np.arange(len(asked))
        place[asked], distance[asked] = found[at, best], away[at, best]
        asked = asked[tied[:, -1]] if k < tree.n else asked[:0]
        k = min(4 * k, tree.n)
    return place, distance
