"""Nearest rows under relabelled groups: each row's neighbours are listed once, and every relabelling filters the lists.

The match of a row under a relabelling is the first of its list that carries the wanted label. A list that runs out is
searched anew among all rows with that label, never cut short: the result is that of a search from the start.

Scope: rows of one model with one outcome. Pairs and scores: ``pairing``.
"""

from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np
from scipy.spatial import cKDTree

from tasks.counterfactuals.algorithm.nearest import without_replacement
from tasks.counterfactuals.algorithm.nearest.matching import UNMATCHED, Index
from tasks.numerics import distinct
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.explanation import ModelView

DEPTH = 32
"""Neighbours listed: a label that one in ten carries is missing in 3 % of lists."""
FEW = 10_000_000
"""Distances that are all computed where lists run out; of more, a tree is built (some 10 ms either way)."""


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

    @cached_property
    def place(self) -> Longs:
        """``(n,)`` place of each row in ``rows``; -1 of a row that is not among them."""
        found = np.full(len(self.index.at), -1, np.int64)
        found[self.rows] = np.arange(len(self.rows))
        return found

    @cached_property
    def in_pool(self) -> Bools:
        """``(n,)`` whether a row is in the pool."""
        found = np.zeros(len(self.index.at), np.bool_)
        found[self.pool] = True
        return found

    def match(self, at: Longs, wanted: Bools) -> Longs:
        """The nearest pool row with the wanted label for each of some rows, or ``UNMATCHED``, ``(a,)``.

        Args:
            at: ``(a,)`` places in ``rows``.
            wanted: ``(n,)`` whether a row carries the label.
        """
        if not self.index.matching.replacement:
            return self._without_replacement(at, np.flatnonzero(self.in_pool & wanted))
        found, distance, sure = _first(self.near, self.away, at, wanted, len(self.pool))
        anew = np.flatnonzero(~sure)
        if len(anew):
            candidates = np.flatnonzero(self.in_pool & wanted)
            if not len(candidates):
                return np.full(len(at), UNMATCHED)
            found[anew], distance[anew] = self._searched(self.rows[at[anew]], candidates)
        return self._within_reach(found, distance)

    def _without_replacement(self, at: Longs, candidates: Longs) -> Longs:
        if not len(candidates):
            return np.full(len(at), UNMATCHED)
        places = distinct.gather(self.index.at[candidates])
        taken, distance = without_replacement.match(self.index.at[self.rows[at]], places)
        return self._within_reach(np.where(taken < 0, UNMATCHED, candidates[taken]), distance)

    def _searched(self, rows: Longs, candidates: Longs) -> tuple[Longs, Floats]:
        """The nearest of all candidates to each row, and how far it is."""
        if len(rows) * len(candidates) <= FEW:
            few: tuple[Longs, Floats] = _nearest_of_few(self.index.at, rows, candidates)
            return few
        places = distinct.gather(self.index.at[candidates])
        place, distance = distinct.nearest(cKDTree(places.at), places.first, self.index.at[rows])
        return candidates[places.first[place]], distance

    def _within_reach(self, found: Longs, distance: Floats) -> Longs:
        most = self.index.matching.maximum_distance
        return found if most is None else np.where(distance > most, UNMATCHED, found)


def lists(
    explained: ModelView,
    indices: tuple[Index, ...],
    among: Bools,
    depth: int = DEPTH,
    of: Bools | None = None,
) -> tuple[Lists, ...]:
    """The lists of every model and outcome.

    Args:
        explained: Models and their pools.
        indices: Of each model the rows laid out to be matched.
        among: ``(n,)`` rows whose labels are exchanged; no other row is matched, or a match.
        depth: Neighbours listed.
        of: ``(n,)`` the rows whose neighbours are listed; None: all of them.
    """
    out = []
    for number, (index, pool) in enumerate(zip(indices, explained.pools, strict=True)):
        for outcome in (False, True):
            own = among & (index.label == outcome)
            wanted = own & explained.rows_of(number)
            rows, there = np.flatnonzero(wanted if of is None else wanted & of), np.flatnonzero(own & pool)
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


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _first(near: Longs, away: Floats, at: Longs, wanted: Bools, pool: int) -> tuple[Longs, Floats, Bools]:
    """The first wanted row of some lists, its distance, and whether no row beyond the list can take its place.

    A list that ends before the pool of ``pool`` rows does may have left out rows as near as its last.
    """
    width = near.shape[1]
    found, distance = np.full(at.shape[0], -1, np.int64), np.full(at.shape[0], np.inf)
    sure = np.zeros(at.shape[0], np.bool_)
    for i in range(at.shape[0]):
        for j in range(width):
            if wanted[near[at[i], j]]:
                found[i], distance[i] = near[at[i], j], away[at[i], j]
                sure[i] = pool <= width or np.float32(distance[i]) < np.float32(away[at[i], width - 1])
                break
    return found, distance, sure


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _nearest_of_few(at: Floats, rows: Longs, candidates: Longs) -> tuple[Longs, Floats]:
    """The nearest candidate of each row in single precision, of equally near ones the lowest row."""
    found, distance = np.empty(rows.shape[0], np.int64), np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        least, least_double = np.float32(np.inf), np.inf
        for c in candidates:
            squared = 0.0
            for j in range(at.shape[1]):
                gap = at[rows[i], j] - at[c, j]
                squared += gap * gap
            if squared > least_double * (1 + 1e-6):  # no root where it cannot be among the nearest
                continue
            away = np.sqrt(squared)
            if np.float32(away) < least:
                least, found[i], distance[i] = np.float32(away), c, away
                least_double = squared
    return found, distance
