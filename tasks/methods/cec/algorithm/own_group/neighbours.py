"""Nearest rows under relabelled groups: each row's neighbours are listed once, and every relabelling filters the lists.

The match of a row under a relabelling is the first of its list that carries the wanted label. A list that runs out is
searched anew among all rows with that label, never cut short: the result is that of a search from the start.

Scope: rows of one model with one outcome. Pairs and scores: ``pairing``.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from tasks.counterfactuals.algorithm.nearest import without_replacement
from tasks.counterfactuals.algorithm.nearest.matching import UNMATCHED, Index
from tasks.numerics import distinct
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.explanation import ModelView

DEPTH = 32
"""Neighbours listed: a label that one in ten carries is missing in 3 % of lists."""


@dataclass(frozen=True)
class Lists:
    """Rows that one model explains, with one outcome, and their nearest pool rows with that outcome."""

    model: int
    index: Index
    rows: Longs
    """``(r,)`` ascending."""
    pool: Longs
    """``(c,)`` rows that may be matches, ascending."""
    near: Longs
    """``(r, k)`` rows of the pool: nearest first in single precision, of equally near ones the lowest row."""
    away: Floats
    """``(r, k)`` their distances, in standard deviations."""

    def match(self, at: Longs, wanted: Bools) -> Longs:
        """The nearest pool row with the wanted label for each of some rows, or ``UNMATCHED``, ``(a,)``.

        Args:
            at: ``(a,)`` places in ``rows``.
            wanted: ``(n,)`` whether a row carries the label.
        """
        candidates = self.pool[wanted[self.pool]]
        if not len(candidates):
            return np.full(len(at), UNMATCHED)
        if not self.index.matching.replacement:
            taken, distance = without_replacement.match(
                self.index.at[self.rows[at]], distinct.gather(self.index.at[candidates])
            )
            return self._within_reach(np.where(taken < 0, UNMATCHED, candidates[taken]), distance)
        carries = wanted[self.near[at]]
        first, each = carries.argmax(axis=1), np.arange(len(at))
        found, distance = self.near[at, first], self.away[at, first]
        # rows as near as the last of a list may have been left out of it
        sure = carries[each, first] & (distance.astype(np.float32) < self.away[at, -1].astype(np.float32))
        anew = np.flatnonzero(~sure) if len(self.pool) > self.near.shape[1] else np.flatnonzero(~carries[each, first])
        if len(anew):
            places = distinct.gather(self.index.at[candidates])
            asked = self.index.at[self.rows[at[anew]]]
            place, distance[anew] = distinct.nearest(cKDTree(places.at), places.first, asked)
            found[anew] = candidates[places.first[place]]
        return self._within_reach(found, distance)

    def _within_reach(self, found: Longs, distance: Floats) -> Longs:
        most = self.index.matching.maximum_distance
        return found if most is None else np.where(distance > most, UNMATCHED, found)


def lists(explained: ModelView, indices: tuple[Index, ...], among: Bools, depth: int = DEPTH) -> tuple[Lists, ...]:
    """The lists of every model and outcome.

    Args:
        explained: Models and their pools.
        indices: Of each model the rows laid out to be matched.
        among: ``(n,)`` rows whose labels are exchanged; no other row is matched, or a match.
        depth: Neighbours listed.
    """
    out = []
    for number, (index, pool) in enumerate(zip(indices, explained.pools, strict=True)):
        for outcome in (False, True):
            own = among & (index.label == outcome)
            rows, there = np.flatnonzero(own & explained.rows_of(number)), np.flatnonzero(own & pool)
            if len(rows) and len(there):
                near, away = _nearest(index.at, rows, there, min(depth, len(there)))
                out.append(Lists(number, index, rows, there, near, away))
    return tuple(out)


def _nearest(at: Floats, rows: Longs, pool: Longs, depth: int) -> tuple[Longs, Floats]:
    """Rows of the pool by rising distance in single precision, then by row; ``(r, depth)``, and the distances."""
    # public data hold thousands of equal rows, on which a balanced tree would be slow to build
    tree = cKDTree(at[pool], balanced_tree=False)
    away, place = tree.query(at[rows], k=np.arange(1, depth + 1), workers=distinct.WORKERS)
    near = pool[place]
    order = np.lexsort((near, away.astype(np.float32)), axis=-1)
    return np.take_along_axis(near, order, axis=1), np.take_along_axis(away, order, axis=1)
