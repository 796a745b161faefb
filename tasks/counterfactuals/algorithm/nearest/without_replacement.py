"""Greedy matching without replacement: the nearest pair first, then the nearest of the remaining rows, and so on.

An optimal assignment (the Hungarian method) may give a person a worse match than a free one nearby, and its table of
distances does not fit 20,000 rows. In the greedy matching a row is passed over only for a nearer pair. Pairs that are
each other's nearest are matched in any order, so that whole rounds of them are matched at once.
"""

import numpy as np
from scipy.spatial import cKDTree

from tasks.numerics import distinct
from tasks.numerics.arrays import Floats, Longs
from tasks.numerics.distinct import Places


def match(rows: Floats, candidates: Places) -> tuple[Longs, Floats]:
    """Match ``(r, f)`` rows with candidates, each used at most once.

    Ties go to the place whose lowest row is lower, and at one place to the lower row.

    Returns:
        Number of each row's candidate, -1 where all were taken, and its distance, NaN there; ``(r,)`` both.
    """
    asking = distinct.gather(rows)
    taken, distance = np.full(len(rows), -1, np.int64), np.full(len(rows), np.nan)
    asking_left, offered_left = asking.count, candidates.count
    while asking_left.any() and offered_left.any():
        here, there, away = _each_others_nearest(asking, candidates, asking_left, offered_left)
        size = np.minimum(asking_left[here], offered_left[there])
        who = asking.order[_runs(asking.start[here] + asking.count[here] - asking_left[here], size)]
        whom = candidates.order[_runs(candidates.start[there] + candidates.count[there] - offered_left[there], size)]
        taken[who], distance[who] = whom, np.repeat(away, size)
        asking_left[here] -= size
        offered_left[there] -= size
    return taken, distance


def _each_others_nearest(
    asking: Places, offered: Places, asking_left: Longs, offered_left: Longs
) -> tuple[Longs, Longs, Floats]:
    """Places with rows left that are each other's nearest, and how far they are apart. There is always a pair."""
    mine, theirs = np.flatnonzero(asking_left), np.flatnonzero(offered_left)
    to, away = distinct.nearest(cKDTree(offered.at[theirs]), offered.first[theirs], asking.at[mine])
    asked = np.unique(to)
    back, _ = distinct.nearest(cKDTree(asking.at[mine]), asking.first[mine], offered.at[theirs[asked]])
    mutual = back[np.searchsorted(asked, to)] == np.arange(len(mine))
    return mine[mutual], theirs[to[mutual]], away[mutual]


def _runs(start: Longs, size: Longs) -> Longs:
    """The numbers ``start, start + 1, ...`` of each run, one run after the other."""
    ends = np.cumsum(size)
    return np.repeat(start - ends + size, size) + np.arange(ends[-1])
