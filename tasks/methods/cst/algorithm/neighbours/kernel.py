"""The compiled search of nearest neighbours: one query at a time, block by block of rows that lie close together.

A row's distance is summed in a fixed order: its nominal distance, then |d1|, |d2|, ... in the order of the numeric
columns; the division comes last. Adding a non-negative number never decreases a rounded sum, so a part of that sum in
the same order is a lower bound to the last bit. Rows are skipped by this bound, and the search stays exact, ties
included.

Scope: the loops. Inner loops take arrays and no tuples, because numba counts references to each array of a tuple at
every call. Blocks and work units: ``search``.
"""

from typing import NamedTuple

import numba
import numpy as np

from tasks.numerics.arrays import Floats, Longs

BLOCK = 64
"""Most rows of a block: few enough for the first cache, enough for a loop over them to use wide registers."""

NOBODY = np.iinfo(np.int64).max
"""The worst of all keys: what stands where no row was found."""

BANDS = 64
"""Bands into which groups are sorted by nominal distance; up to 64 nominal columns each mismatch has its own."""

SLACK = 1e-15
"""Above the rounding of a multiplication and a division together (twice 2^-53, relatively)."""


class Blocks(NamedTuple):
    """The rows that may be neighbours: grouped by nominal values, each group cut into blocks. For numba, a tuple."""

    key: Longs
    """``(m,)`` id of each row, or its negative; of rows at equal distance the one with the smaller key is nearer."""
    numeric: Floats
    """``(a, m)`` coordinates, one column after the other, so that a block of a column is read in one go."""
    nominal: Floats
    """``(g, b)`` nominal values that the rows of a group share."""
    overlap: bool
    """Whether two nominal values are 0 or 1 apart, and not their difference."""
    divisor: float
    block_of_group: Longs
    """``(g + 1,)`` first block of each group."""
    row_of_block: Longs
    """``(blocks + 1,)`` first row of each block."""
    low: Floats
    """``(a, blocks)`` smallest coordinates in each block."""
    high: Floats
    """``(a, blocks)`` largest coordinates in each block."""


class Queries(NamedTuple):
    """The applicants whose neighbours are sought."""

    numeric: Floats
    """``(q, a)`` coordinates."""
    nominal: Floats
    """``(q, b)`` nominal values."""
    combination: Longs
    """``(q,)`` number of the combination of nominal values, from 0."""
    excluded: Longs
    """``(q,)`` key of the row that is not to be returned, or ``NOBODY``."""


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def search(blocks: Blocks, queries: Queries, order: Longs, distances: Floats, keys: Longs) -> None:
    """Find the nearest rows of some queries.

    Args:
        blocks: The rows that may be neighbours.
        queries: All queries.
        order: The queries to answer; those of one combination of nominal values stand together.
        distances: ``(q, k)``, filled in, nearest first; holds the largest distance that counts when handed in.
        keys: ``(q, k)``, filled in; holds ``NOBODY`` when handed in.
    """
    nominal, bound = np.empty(blocks.nominal.shape[0]), np.empty(blocks.row_of_block.shape[0] - 1)
    groups, combination = np.zeros(0, np.int64), -1
    for query in order:
        if queries.combination[query] != combination:
            combination = queries.combination[query]
            _nominal_distances(blocks.nominal, queries.nominal[query], blocks.overlap, nominal)
            groups = _nearly_ordered(nominal)
        values, excluded = queries.numeric[query], queries.excluded[query]
        _search_groups(blocks, groups, nominal, values, excluded, distances[query], keys[query], bound)
        _sort(distances[query], keys[query])


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _search_groups(
    blocks: Blocks,
    groups: Longs,
    nominal: Floats,
    values: Floats,
    excluded: int,
    distances: Floats,
    keys: Longs,
    bound: Floats,
) -> None:
    """Keep the rows nearest to ``values``, over all groups by their nominal distance; ``bound`` is room to work in."""
    sums = np.empty(BLOCK)
    for group in groups:
        if nominal[group] > _limit(distances[0], blocks.divisor):
            continue
        first, last = blocks.block_of_group[group], blocks.block_of_group[group + 1]
        bound[first:last] = nominal[group]
        _add_gaps(blocks.low[:, first:last], blocks.high[:, first:last], values, bound[first:last])
        near = first + np.argmin(bound[first:last])
        # outwards from the nearest block, because blocks that follow each other lie close together
        for step in range(2 * max(near - first + 1, last - near)):
            block = near + (step + 1) // 2 if step % 2 else near - step // 2
            if first <= block < last and bound[block] <= _limit(distances[0], blocks.divisor):
                start, stop = blocks.row_of_block[block], blocks.row_of_block[block + 1]
                sums[:] = nominal[group]
                _add_differences(blocks.numeric[:, start:stop], values, sums)
                _keep(sums, blocks.key[start:stop], excluded, blocks.divisor, distances, keys)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _nominal_distances(groups: Floats, values: Floats, overlap: bool, out: Floats) -> None:
    """Sum over the nominal columns of the distance of each group, ``(g, b)``, from ``values``."""
    for group in range(groups.shape[0]):
        out[group] = 0.0
        for column in range(groups.shape[1]):
            difference = abs(groups[group, column] - values[column])
            out[group] += difference if not overlap else 1.0 if difference > 0.0 else 0.0


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _nearly_ordered(nominal: Floats) -> Longs:
    """The groups by their nominal distance, cut into ``BANDS``: near ones first is a matter of speed alone."""
    order, start = np.empty(nominal.shape[0], np.int64), np.zeros(BANDS + 2, np.int64)
    width = max(nominal.max(), 1.0) / BANDS if nominal.shape[0] else 1.0
    for distance in nominal:
        start[int(distance / width) + 1] += 1
    start = np.cumsum(start)
    for group in range(nominal.shape[0]):
        band = int(nominal[group] / width)
        order[start[band]] = group
        start[band] += 1
    return order


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _add_gaps(low: Floats, high: Floats, values: Floats, out: Floats) -> None:
    """Add the least that the numbers of a row in each box ``low .. high``, ``(a, blocks)``, differ from ``values``."""
    for column in range(values.shape[0]):
        least, most, value = low[column], high[column], values[column]
        for block in range(out.shape[0]):
            out[block] += max(least[block] - value, value - most[block], 0.0)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _add_differences(numeric: Floats, values: Floats, out: Floats) -> None:
    """Add how far each row of a block, ``(a, rows)``, is from ``values`` in numbers."""
    for column in range(values.shape[0]):
        here, value = numeric[column], values[column]
        for i in range(here.shape[0]):
            out[i] += abs(here[i] - value)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _limit(distance: float, divisor: float) -> float:
    """A number such that every sum above it is above ``distance`` after division, too."""
    return distance * divisor * (1 + SLACK) + np.finfo(np.float64).tiny


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _keep(sums: Floats, candidates: Longs, excluded: int, divisor: float, distances: Floats, keys: Longs) -> None:
    """Keep those candidates that are better than the worst kept, which is on top of the heap."""
    limit = _limit(distances[0], divisor)
    for i in range(candidates.shape[0]):
        if sums[i] <= limit and candidates[i] != excluded:
            distance = sums[i] / divisor
            if _worse(distances, keys, 0, distance, candidates[i]):
                _sift(distances, keys, distance, candidates[i], keys.shape[0])
                limit = _limit(distances[0], divisor)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _worse(distances: Floats, keys: Longs, entry: int, distance: float, key: int) -> bool:
    """Whether an entry of the heap is further than a row, or as far with a larger key."""
    here: float = distances[entry]
    return here > distance or (here == distance and bool(keys[entry] > key))


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _sift(distances: Floats, keys: Longs, distance: float, key: int, size: int) -> None:
    """Put a row in the place of the worst of the first ``size`` entries of the heap."""
    slot, child = 0, 1
    while child < size:
        if child + 1 < size and _worse(distances, keys, child + 1, distances[child], keys[child]):
            child += 1
        if not _worse(distances, keys, child, distance, key):
            break
        distances[slot], keys[slot] = distances[child], keys[child]
        slot, child = child, 2 * child + 1
    distances[slot], keys[slot] = distance, key


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _sort(distances: Floats, keys: Longs) -> None:
    """Sort the heap in place, nearest first."""
    for last in range(keys.shape[0] - 1, 0, -1):
        distance, key = distances[last], keys[last]
        distances[last], keys[last] = distances[0], keys[0]
        _sift(distances, keys, distance, key, last)
