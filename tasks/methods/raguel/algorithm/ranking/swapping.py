"""Algorithm 2 as compiled loops: block after block, records are exchanged with the next block and never further.

A record that has crossed a border does not move again, so the other records of a block keep their order, and sorting
waits until the end.

Scope: kernels on a window of consecutive blocks. Settings and windows: ``blocks``. Boundaries and permitted changes:
``tasks.counterfactuals.algorithm.recourse``.
"""

from typing import NamedTuple

import numba
import numpy as np

from tasks.methods.raguel.algorithm.ranking import counting
from tasks.methods.raguel.algorithm.ranking.counting import Bounds
from tasks.methods.raguel.algorithm.recourse import modification
from tasks.methods.raguel.algorithm.recourse.moves import Listed, Rules
from tasks.numerics.arrays import Bools, Floats, Longs

NOBODY = -1


class Swaps(NamedTuple):
    """How records may be exchanged. A tuple, because numba takes tuples."""

    movable: Bools
    """``(g,)`` groups whose records may be modified and brought up."""
    least_ratio: float
    """Ratio that a block is to have after every swap; 0 where it only must not fall."""


class Window(NamedTuple):
    """Records of consecutive blocks; within a block by cost and number. All but the first two are written over."""

    start: Longs
    """``(b + 1,)`` where each block begins."""
    edge: Floats
    """``(b,)`` cost of the last of the records that each block had at first."""
    crossed: Bools
    """``(n,)`` records that have crossed a border, and stay."""
    block: Longs
    """``(n,)`` block that each record is in now, numbered within the window."""
    records: Listed


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def swap(window: Window, rules: Rules, bounds: Bounds, swaps: Swaps) -> Bools:
    """Exchange records of every block but the last with the one after it, until it is fair or nothing helps.

    Returns:
        ``(b,)`` blocks that were left unfair; the last is not looked at.
    """
    blocks, groups = window.start.shape[0] - 1, bounds.shares.shape[0]
    left = np.zeros(blocks, np.bool_)
    for b in range(blocks - 1):
        counts, sums = _tally(window, b, groups)
        size = counts.sum()
        unfair = counting.violation(bounds, counts, size)
        first, last = np.full(groups, window.start[b + 1]), np.full(groups, window.start[b + 1] - 1)
        while unfair > 0.0:
            over, under = out_of_bounds(bounds, counts, size)
            z = _leaving(window, b, over, last)
            if z == NOBODY:
                left[b] = True
                break
            floors, limits = counting.intervals(
                bounds,
                counts,
                sums,
                unfair,
                under & swaps.movable,
                window.records.group[z],
                window.records.cost[z],
                swaps.least_ratio,
                window.edge[b],
            )
            y = _coming(window, b, floors, limits, first, rules)
            if y == NOBODY:
                left[b] = True
                break
            _exchange(window, b, y, z, counts, sums)
            unfair = counting.violation(bounds, counts, size)
    return left


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _tally(window: Window, b: int, groups: int) -> tuple[Longs, Floats]:
    """Records and costs of each group in a block: those it had that are still there, and those it received."""
    counts, sums = np.zeros(groups, np.int64), np.zeros(groups)
    for i in range(window.start[max(b - 1, 0)], window.start[b + 1]):
        if window.block[i] == b:
            counts[window.records.group[i]] += 1
            sums[window.records.group[i]] += window.records.cost[i]
    return counts, sums


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def out_of_bounds(bounds: Bounds, counts: Longs, size: int) -> tuple[Bools, Bools]:
    """Which groups are over-represented and which under-represented in a set that is not fair.

    Those beyond their bounds; where no group is beyond them on one side, those on that side of their share.
    """
    groups = counts.shape[0]
    over, under = np.zeros(groups, np.bool_), np.zeros(groups, np.bool_)
    for group in range(groups):
        if bounds.bounded[group]:
            low, high = counting.within(bounds, group, size)
            over[group], under[group] = counts[group] > high, counts[group] < low
    if not over.any():
        for group in range(groups):
            over[group] = not under[group] and counts[group] > bounds.shares[group] * size
    if not under.any():
        for group in range(groups):
            under[group] = not over[group] and counts[group] < bounds.shares[group] * size
    return over, under


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _leaving(window: Window, b: int, over: Bools, last: Longs) -> int:
    """The lowest-ranked record of an over-represented group that is still where it was; or -1.

    Args:
        window: All records.
        b: The block.
        over: ``(g,)`` over-represented groups.
        last: ``(g,)`` where to look for each group from; moved on past those that may not leave.
    """
    found, group, begin = NOBODY, window.records.group, window.start[b]
    for g in range(over.shape[0]):
        if over[g]:
            z = last[g]
            while z >= begin and (group[z] != g or window.block[z] != b or window.crossed[z]):
                z -= 1
            last[g] = z
            if z >= begin:
                found = max(found, z)
    return found


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _coming(window: Window, b: int, floors: Floats, limits: Floats, first: Longs, rules: Rules) -> int:
    """The highest-ranked record of the next block that can come at a cost within its group's limits; or -1.

    Args:
        window: All records; the one that comes is modified.
        b: The block it comes to.
        floors: ``(g,)`` least cost.
        limits: ``(g,)`` largest cost.
        first: ``(g,)`` where to look for each group from; moved on past those that are gone.
        rules: Of the modification.
    """
    group, cost, end = window.records.group, window.records.cost, window.start[b + 2]
    begin = end
    for g in range(first.shape[0]):
        if floors[g] <= limits[g]:
            while first[g] < end and (group[first[g]] != g or window.block[first[g]] != b + 1):
                first[g] += 1
            begin = min(begin, first[g])
    for y in range(begin, end):
        floor, limit = floors[group[y]], limits[group[y]]
        if floor > limit or window.block[y] != b + 1:
            continue
        if floor <= cost[y] <= limit:
            return y  # a tie at the border: it may come as it is
        found = modification.find(rules, window.records, y, floor, limit)
        if found < np.inf:
            modification.accept(window.records, y, found)
            return y
    return NOBODY


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _exchange(window: Window, b: int, y: int, z: int, counts: Longs, sums: Floats) -> None:
    """``y`` joins block ``b`` and ``z`` the next."""
    group, cost = window.records.group, window.records.cost
    window.block[y], window.block[z] = b, b + 1
    window.crossed[y], window.crossed[z] = True, True
    counts[group[y]] += 1
    sums[group[y]] += cost[y]
    counts[group[z]] -= 1
    sums[group[z]] -= cost[z]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def sorted_blocks(block: Longs, cost: Floats, number: Longs, blocks: int) -> Longs:
    """Places of the records by block, cost and number.

    Args:
        block: ``(n,)`` from 0.
        cost: ``(n,)``.
        number: ``(n,)`` of the record, for ties.
        blocks: How many there are.
    """
    ends = np.zeros(blocks + 1, np.int64)
    for i in range(block.shape[0]):
        ends[block[i] + 1] += 1
    ends = np.cumsum(ends)
    places, free = np.empty(block.shape[0], np.int64), ends[:-1].copy()
    for i in range(block.shape[0]):
        places[free[block[i]]] = i
        free[block[i]] += 1
    for b in range(blocks):
        mine = places[ends[b] : ends[b + 1]]
        mine = mine[np.argsort(cost[mine], kind="mergesort")]
        _sort_ties(mine, cost, number)
        places[ends[b] : ends[b + 1]] = mine
    return places


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _sort_ties(mine: Longs, cost: Floats, number: Longs) -> None:
    """Put runs of equal cost in order of number."""
    first = 0
    while first < mine.shape[0]:
        last = first + 1
        while last < mine.shape[0] and cost[mine[last]] == cost[mine[first]]:
            last += 1
        if last - first > 1:
            run = mine[first:last].copy()
            mine[first:last] = run[np.argsort(number[run], kind="mergesort")]
        first = last
