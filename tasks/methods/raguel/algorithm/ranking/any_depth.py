"""Blocks that take from any depth: our variant of Algorithm 2, for a fair ratio of the whole list.

Exchanges with the next block alone cannot change a group's mean by more than the width of a block. Here members of the
worst-off group move up from any depth, and the others slide down. Each block is filled with the next records of the
list. While it is unfair, its lowest-ranked record of an over-represented group returns to the head of the rest, and the
next record of the worst-off group comes in, modified as in Algorithm 2. A block that is touched at all continues,
within its bounds, until that group has its share of the list so far; otherwise rounding errors of the blocks would add
up. The price is that most of that group is modified.

Scope: kernels and their frame. Boundaries: ``tasks.counterfactuals.algorithm.recourse``.
"""

from typing import NamedTuple

import numba
import numpy as np

from tasks.methods.raguel.algorithm.ranking import counting, ratios, swapping
from tasks.methods.raguel.algorithm.ranking.blocks import BlockRules, starts
from tasks.methods.raguel.algorithm.ranking.counting import Bounds
from tasks.methods.raguel.algorithm.ranking.records import Records
from tasks.methods.raguel.algorithm.ranking.representation import Representation
from tasks.methods.raguel.algorithm.ranking.reranked import Reranked, by_record, ranks
from tasks.methods.raguel.algorithm.recourse import modification
from tasks.methods.raguel.algorithm.recourse.moves import Listed, Rules
from tasks.numerics.arrays import Bools, Floats, Ints, Longs

NOBODY = -1


def rerank_any(records: Records, held: Representation, size: int | Longs, settings: BlockRules) -> Reranked:
    """Re-rank a list block by block, with records of the worst-off group from any later block.

    Args:
        records: All with a cost.
        held: The bounds that every block is to keep.
        size: Records of a block, or ``(b,)`` of each.
        settings: ``rule``, ``delta`` and ``probes``; only the worst-off group moves, whatever ``direction`` says.

    Raises:
        SpecError: If a block is to have fewer than one record, or all together not as many as there are.
    """
    start = starts(len(records.cost), size)
    before, groups = records.ranked(), len(held.shares)
    listed = records.listed(before)
    worst = ratios.worst_off(records.cost, records.group, groups)
    least_ratio = settings.swaps(worst, groups).least_ratio
    block, left = _fill(listed, records.rules, held.bounds, start, worst, least_ratio, settings.probes)
    order = before[swapping.sorted_blocks(block, listed.cost, before, len(left))]
    return Reranked(
        order,
        ranks(before),
        ranks(order),
        by_record(listed.cost, before),
        by_record(listed.values, before),
        np.flatnonzero(left),
        block_before=by_record(np.repeat(np.arange(len(start) - 1), np.diff(start)), before),
        block=by_record(block, before),
    )


class Block(NamedTuple):
    """The block that is being filled, and how."""

    members: Longs
    """``(m,)`` places of its first records, by rank."""
    gone: Longs
    """``(m,)`` room for those of them that go back to the rest."""
    counts: Longs
    """``(g,)`` records of each group."""
    sums: Floats
    """``(g,)`` their costs."""
    moves: Bools
    """``(g,)`` only the worst-off group."""
    wanted: float
    """Records of the worst-off group that a block which is touched is filled up to."""
    worst: int
    least_ratio: float
    probes: int


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _fill(
    listed: Listed, rules: Rules, bounds: Bounds, start: Longs, worst: int, least_ratio: float, probes: int
) -> tuple[Longs, Bools]:
    """Fill block after block.

    Returns:
        ``(n,)`` block of each record; ``(b,)`` blocks that were left unfair because nothing helped.
    """
    n, groups = listed.cost.shape[0], bounds.shares.shape[0]
    blocks = start.shape[0] - 1
    taken, left = np.full(n, NOBODY), np.zeros(blocks, np.bool_)
    following, queue = _queue(listed.group, worst)
    back, head, moves, placed = np.empty(0, np.int64), 0, np.arange(groups) == worst, 0
    for b in range(blocks):
        members, head = _first(back, taken, head, start[b + 1] - start[b])
        counts, sums = np.zeros(groups, np.int64), np.zeros(groups)
        for i in members:
            taken[i] = b
            counts[listed.group[i]] += 1
            sums[listed.group[i]] += listed.cost[i]
        wanted = _wanted(bounds, worst, start[b], placed, len(members))
        block = Block(members, np.empty_like(members), counts, sums, moves, wanted, worst, least_ratio, probes)
        sent = 0
        if b < blocks - 1:
            while queue != NOBODY and taken[queue] != NOBODY:
                queue = following[queue]
            left[b], sent = _balance(listed, block, rules, bounds, taken, following, queue, b)
        back = np.sort(np.append(back[len(members) :], block.gone[:sent]))
        placed += counts[worst]
    return taken, left


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _wanted(bounds: Bounds, worst: int, before: int, placed: int, size: int) -> float:
    """Records of the worst-off group that give it its share of the list up to the end of a block, within bounds.

    Args:
        bounds: Of the counts.
        worst: The group.
        before: Records in the blocks before.
        placed: How many of them are of the group.
        size: Records of the block.
    """
    wanted = np.round(bounds.shares[worst] * (before + size)) - placed
    if bounds.bounded[worst]:
        low, high = counting.within(bounds, worst, size)
        wanted = min(max(wanted, low), high)
    return float(wanted)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _queue(group: Ints, worst: int) -> tuple[Longs, int]:
    """The next record of the worst-off group after each of them, and the first."""
    following, first = np.full(group.shape[0], NOBODY), NOBODY
    for place in range(group.shape[0] - 1, -1, -1):
        if group[place] == worst:
            following[place] = first
            first = place
    return following, first


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _first(back: Longs, taken: Longs, head: int, count: int) -> tuple[Longs, int]:
    """The next ``count`` records: those that were sent back, then from ``head`` on; and where to go on from."""
    members = np.empty(count, np.int64)
    found = min(back.shape[0], count)
    members[:found] = back[:found]
    while found < count:
        if taken[head] == NOBODY:
            members[found] = head
            found += 1
        head += 1
    return members, head


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _balance(
    listed: Listed, block: Block, rules: Rules, bounds: Bounds, taken: Longs, following: Longs, queue: int, number: int
) -> tuple[bool, int]:
    """Exchange records of a block until it is fair; whether that failed, and how many were sent back."""
    counts, sums, worst, size = block.counts, block.sums, block.worst, block.members.shape[0]
    edge, bottom, sent = listed.cost[block.members[size - 1]], size - 1, 0
    unfair = counting.violation(bounds, counts, size)
    while unfair > 0.0 or (sent > 0 and counts[worst] < block.wanted):
        over, under = swapping.out_of_bounds(bounds, counts, size)
        under[worst] = under[worst] or unfair == 0.0
        over[worst] = False
        while bottom >= 0 and not over[listed.group[block.members[bottom]]]:
            bottom -= 1
        if bottom < 0:
            return unfair > 0.0, sent
        z = block.members[bottom]
        leaves = listed.group[z]
        floors, limits = counting.intervals(
            bounds, counts, sums, max(unfair, 1.0), under & block.moves, leaves, listed.cost[z], block.least_ratio, edge
        )
        y = _next(listed, block, rules, taken, following, queue, floors[worst], limits[worst])
        if y == NOBODY:
            return unfair > 0.0, sent
        taken[y], taken[z] = number, NOBODY
        block.gone[sent] = z
        sent, bottom = sent + 1, bottom - 1
        counts[worst] += 1
        sums[worst] += listed.cost[y]
        counts[leaves] -= 1
        sums[leaves] -= listed.cost[z]
        unfair = counting.violation(bounds, counts, size)
    return False, sent


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _next(
    listed: Listed, block: Block, rules: Rules, taken: Longs, following: Longs, queue: int, floor: float, limit: float
) -> int:
    """The next record of the worst-off group that can reach the required cost, modified; or -1."""
    probed, y = 0, queue
    while y != NOBODY and probed < block.probes and floor <= limit:
        if taken[y] == NOBODY:
            probed += 1
            if floor <= listed.cost[y] <= limit:
                return y
            cost = modification.find(rules, listed, y, floor, limit)
            if cost < np.inf:
                modification.accept(listed, y, cost)
                return y
        y = following[y]
    return NOBODY
