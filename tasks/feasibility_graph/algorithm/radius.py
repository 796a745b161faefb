"""Radius search under constraints: pairs of distinct rows within epsilon that a permitted move joins.

Fused loops compiled by numba: one pair of rows at a time, abandoned as soon as a constraint breaks or the squared
distance is too large. No array is n x n (FGCE, section III). Trees and dense distances were slower on every data set
tried, because equality constraints already cut the rows into small buckets.

Scope: the kernels. The choice of epsilon: ``graph``.
"""

from typing import NamedTuple

import numba
import numpy as np

from tasks.numerics.arrays import Bools, Floats, Ints, Longs


class Space(NamedTuple):
    """Distinct rows, ordered by bucket, in the form the kernels read. A tuple, because numba takes tuples."""

    encoded: Floats
    """``(m, q)`` encoded values of the columns that are not immutable (the others are equal within a bucket)."""
    direction: Floats
    """``(q,)`` 1.0 only up, -1.0 only down, 0.0 free."""
    codes: Ints
    """``(m, t)`` category codes of the columns with a transition rule."""
    allowed: Bools
    """``(t, c, c)`` whether a move from one code to another is allowed."""
    start: Longs
    """``(m,)`` first row of the row's bucket."""
    stop: Longs
    """``(m,)`` one past the last row of the row's bucket."""


def early_exit(reach: float) -> float:
    """Squared distance beyond which a pair may be left unfinished.

    A little above ``reach`` squared, so that rounding never drops a pair which the comparison of the finished distance
    with ``reach`` would keep.
    """
    return max(reach, 0.0) ** 2 * (1 + 1e-9)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _move(space: Space, i: int, j: int, limit: float) -> float:
    """Squared distance of the move from row ``i`` to row ``j``; ``inf`` if it breaks a rule or passes ``limit``."""
    total = 0.0
    for column in range(space.encoded.shape[1]):
        delta = space.encoded[j, column] - space.encoded[i, column]
        if space.direction[column] * delta < 0.0:
            return np.inf
        total += delta * delta
        if total > limit:
            return np.inf
    for rule in range(space.codes.shape[1]):
        if not space.allowed[rule, space.codes[i, rule], space.codes[j, rule]]:
            return np.inf
    return total


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def nearest_move(space: Space) -> Floats:
    """Distance of every row to the nearest row joined to it by a feasible move, whichever way it goes.

    Returns:
        ``(m,)`` L2 distances; ``inf`` where no row of the bucket is joined at any distance.
    """
    size = space.encoded.shape[0]
    best = np.full(size, np.inf)
    for i in range(size):
        for j in range(space.start[i], space.stop[i]):
            if j == i:
                continue
            squared = _move(space, i, j, max(best[i], best[j]))
            if squared < best[i]:
                best[i] = squared
            if squared < best[j]:
                best[j] = squared
    nearest: Floats = np.sqrt(best)
    return nearest


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def nearest_of(space: Space, factuals: Longs, candidates: Longs) -> Floats:
    """Distance of each factual node to the nearest candidate node of its bucket that one permitted move leads to."""
    best = np.full(factuals.shape[0], np.inf)
    for i in range(factuals.shape[0]):
        first = np.searchsorted(candidates, space.start[factuals[i]])
        last = np.searchsorted(candidates, space.stop[factuals[i]])
        for j in range(first, last):
            best[i] = min(best[i], _move(space, factuals[i], candidates[j], best[i]))
    nearest: Floats = np.sqrt(best)
    return nearest


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def out_degrees(space: Space, rows: Longs, reach: float, limit: float) -> Longs:
    """Number of feasible moves out of each of ``rows`` that are no longer than ``reach``."""
    degrees = np.zeros(rows.shape[0], dtype=np.int64)
    for position in range(rows.shape[0]):
        i = rows[position]
        for j in range(space.start[i], space.stop[i]):
            if j != i and np.sqrt(_move(space, i, j, limit)) <= reach:
                degrees[position] += 1
    return degrees


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def fill(space: Space, indptr: Longs, reach: float, limit: float) -> tuple[Ints, Floats]:
    """Destinations (ascending within a row) and distances of all feasible moves, where ``indptr`` left room for them.

    Returns:
        ``(edges,)`` destinations and ``(edges,)`` L2 distances.
    """
    indices = np.empty(indptr[-1], dtype=np.int32)
    distances = np.empty(indptr[-1])
    edge = 0
    for i in range(space.encoded.shape[0]):
        for j in range(space.start[i], space.stop[i]):
            if j == i:
                continue
            distance = np.sqrt(_move(space, i, j, limit))
            if distance <= reach:
                indices[edge] = j
                distances[edge] = distance
                edge += 1
    return indices, distances


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _insert(keys: Floats, others: Floats, count: int, key: float, other: float) -> None:
    """Put a pair into two arrays sorted by ``keys`` (``count`` entries in use), after equal keys; the last may fall."""
    slot = min(count, keys.shape[0] - 1)
    while slot > 0 and keys[slot - 1] > key:
        keys[slot] = keys[slot - 1]
        others[slot] = others[slot - 1]
        slot -= 1
    keys[slot] = key
    others[slot] = other


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def fill_nearest(space: Space, keep: int, reach: float, limit: float) -> tuple[Longs, Ints, Floats]:
    """As ``fill``, but only the ``keep`` nearest feasible moves out of each row; ties go to the smaller row.

    Returns:
        ``(m,)`` moves kept per row; ``(m, keep)`` destinations, ascending; ``(m, keep)`` L2 distances.
    """
    size = space.encoded.shape[0]
    degrees = np.zeros(size, dtype=np.int64)
    indices = np.empty((size, keep), dtype=np.int32)
    distances = np.empty((size, keep))
    near, who = np.empty(keep), np.empty(keep)
    by_row, how_far = np.empty(keep), np.empty(keep)
    for i in range(size):
        count, within = 0, limit
        for j in range(space.start[i], space.stop[i]):
            if j == i:
                continue
            squared = _move(space, i, j, within)
            if np.sqrt(squared) <= reach and (count < keep or squared < near[keep - 1]):
                _insert(near, who, count, squared, float(j))
                count = min(count + 1, keep)
                if count == keep:
                    within = near[keep - 1]
        for kept in range(count):
            _insert(by_row, how_far, kept, who[kept], np.sqrt(near[kept]))
        degrees[i] = count
        for kept in range(count):
            indices[i, kept] = int(by_row[kept])
            distances[i, kept] = how_far[kept]
    return degrees, indices, distances
