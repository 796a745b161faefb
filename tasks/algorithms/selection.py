"""Few counterfactuals for many factuals: Algorithm 1 of FGCE, maximum coverage under a limit on cost.

At most k candidates are chosen, each time the one that newly covers most factual rows at a cost of at most d; ties go
to the smaller total cost over all factuals it covers within d, covered before or not, then to the smaller node. The
choices for k are the first k of those for k + 1, so one run per d serves every k. Cost is the L2 distance of the two
applications, which may well exceed epsilon: it is not the length of the path.

The limits d are levels: a pair of factual and candidate is stored as one byte, the first level that covers it. The
last level is no limit at all.

Here belong prices and the greedy choice. Who can reach whom is in ``reachability``.
"""

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from tasks.algorithms.detector import Floats, Longs
from tasks.algorithms.reachability import Reach, Words

Bytes = NDArray[np.uint8]

NEVER = 255
"""Level of a pair without a feasible path."""


@dataclass(frozen=True)
class Offers:
    """Every feasible pair of one group with its price, components one after the other. ``L`` levels, the last free."""

    factual: Longs
    """``(f,)`` nodes with rows to explain, in active components."""
    weight: Longs
    """``(f,)`` rows to explain at each."""
    candidate: Longs
    """``(c,)`` candidate nodes of active components."""
    level: Bytes
    """``(pairs,)`` first level that covers the pair, or ``NEVER``; by component, then factual, then candidate."""
    cuts: Longs
    """``(components + 1, 3)`` where each component starts in ``factual``, ``candidate`` and ``level``."""
    gain: Longs
    """``(c, L)`` factual rows covered at each level."""
    total: Floats
    """``(c, L)`` total cost of covering them."""
    cheapest: Floats
    """``(f,)`` cost of the cheapest feasible candidate, NaN where there is none."""
    choice: Longs
    """``(f,)`` its node (the smallest of several), -1 where there is none."""


@dataclass(frozen=True)
class Selection:
    """The greedy choice at every level."""

    picks: Longs
    """``(L, k)`` nodes in the order of choice; -1 once nothing more can be covered."""
    covered: Longs
    """``(L, k)`` factual rows covered by the first 1, 2, ... k of them."""


def price(reach: Reach, points: Floats, weight: Longs, grid: Floats) -> Offers:
    """Price every feasible pair of a group.

    Args:
        reach: Who can reach whom.
        points: ``(m, p)`` encoded features of the nodes of the induced graph.
        weight: ``(m,)`` factual rows at each node.
        grid: ``(L - 1,)`` limits on cost, ascending, in encoded units; a last level without limit is added.

    Raises:
        ValueError: If the levels do not fit into a byte.
    """
    if len(grid) >= NEVER - 1:
        raise ValueError(f"{len(grid)} limits on cost; at most {NEVER - 2} fit into one byte per pair")
    cuts, parts = [(0, 0, 0)], []
    for part in reach.active:
        ends = points[np.concatenate([part.factuals, part.candidates])]
        # a column that does not vary here adds exactly nothing to any distance
        ends = np.ascontiguousarray(ends[:, (ends != ends[:1]).any(axis=0)])
        near, far = ends[: len(part.factuals)], ends[len(part.factuals) :]
        parts.append((part.factuals, part.candidates, *_price(near, far, part.bits, weight[part.factuals], grid)))
        f, c, pairs = cuts[-1]
        cuts.append((f + len(near), c + len(far), pairs + len(near) * len(far)))
    return _offers(parts, cuts, weight, len(grid) + 1)


def _offers(
    parts: list[tuple[NDArray[np.generic], ...]], cuts: list[tuple[int, int, int]], weight: Longs, levels: int
) -> Offers:
    """Put the components one after the other, and turn counts by level into counts up to each level."""
    none = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint8), np.zeros((0, levels), np.int64)
    empty = (*none, np.zeros((0, levels)), np.zeros(0), np.zeros(0, np.int64))
    columns = [np.concatenate(column) for column in zip(empty, *parts, strict=True)]
    factual, candidate, level, gain, total, cheapest, choice = columns
    node = np.append(candidate, -1)
    starts = np.array(cuts, dtype=np.int64)
    # choice is a place within the component; -1 picks the -1 appended
    first = np.repeat(starts[:-1, 1], np.diff(starts[:, 0]))
    return Offers(
        factual=factual,
        weight=weight[factual],
        candidate=candidate,
        level=level,
        cuts=starts,
        gain=np.cumsum(gain, axis=1),
        total=np.cumsum(total, axis=1),
        cheapest=cheapest,
        choice=node[np.where(choice < 0, -1, first + choice)],
    )


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _price(
    near: Floats, far: Floats, bits: Words, weight: Longs, grid: Floats
) -> tuple[Bytes, Longs, Floats, Floats, Longs]:
    """Levels ``(f * c,)``, rows and cost by level ``(c, L)``, and each factual's cheapest cost and its place."""
    level = np.full(near.shape[0] * far.shape[0], NEVER, dtype=np.uint8)
    gain = np.zeros((far.shape[0], grid.shape[0] + 1), dtype=np.int64)
    total = np.zeros((far.shape[0], grid.shape[0] + 1))
    cheapest = np.full(near.shape[0], np.nan)
    choice = np.full(near.shape[0], -1, dtype=np.int64)
    for i in range(near.shape[0]):
        for j in range(far.shape[0]):
            if not (bits[i, j // 64] >> np.uint64(j % 64)) & np.uint64(1):
                continue
            cost = _distance(near[i], far[j])
            step = np.searchsorted(grid, cost)
            level[i * far.shape[0] + j] = step
            gain[j, step] += weight[i]
            total[j, step] += weight[i] * cost
            if choice[i] < 0 or cost < cheapest[i]:
                cheapest[i] = cost
                choice[i] = j
    return level, gain, total, cheapest, choice


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _distance(one: Floats, other: Floats) -> float:
    """L2 distance, summed column by column."""
    total = 0.0
    for column in range(one.shape[0]):
        total += (one[column] - other[column]) ** 2
    return np.sqrt(total)  # type: ignore[no-any-return]


def greedy(offers: Offers, k: int) -> Selection:
    """Choose up to ``k`` candidates at every level, pooled over the components (FGCE, Algorithm 1).

    Total costs are compared to 9 decimals, so that the order of summation breaks no tie.
    """
    total = np.round(offers.total, 9)
    picks, covered = _greedy(offers.level, offers.cuts, offers.weight, offers.candidate, offers.gain, total, k)
    return Selection(np.append(offers.candidate, -1)[picks], covered)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _greedy(
    level: Bytes, cuts: Longs, weight: Longs, node: Longs, gain: Longs, total: Floats, k: int
) -> tuple[Longs, Longs]:
    """Places of the chosen candidates (-1: none) and rows covered, ``(L, k)`` each."""
    levels = gain.shape[1]
    picks = np.full((levels, k), -1, dtype=np.int64)
    covered = np.zeros((levels, k), dtype=np.int64)
    for limit in range(levels):
        left = gain[:, limit].copy()
        open_ = np.ones(weight.shape[0], dtype=np.bool_)
        rows = 0
        for turn in range(k):
            best = _best(left, total[:, limit], node)
            if best >= 0:
                picks[limit, turn] = best
                rows += left[best]
                _cover(level, cuts, weight, left, open_, best, limit)
            covered[limit, turn] = rows
    return picks, covered


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _best(left: Longs, total: Floats, node: Longs) -> int:
    """Place of the candidate that covers most rows still open, ties as in Algorithm 1; -1 if none covers any."""
    best = -1
    for j in range(left.shape[0]):
        if left[j] == 0 or (best >= 0 and left[j] < left[best]):
            continue
        if (
            best < 0
            or left[j] > left[best]
            or total[j] < total[best]
            or (total[j] == total[best] and node[j] < node[best])
        ):
            best = j
    return best


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _cover(
    level: Bytes, cuts: Longs, weight: Longs, left: Longs, open_: NDArray[np.bool_], pick: int, limit: int
) -> None:
    """Close the factuals that ``pick`` covers within the level, and take their rows from every other candidate."""
    part = np.searchsorted(cuts[:, 1], pick, side="right") - 1
    first, start, width = cuts[part, 0], cuts[part, 1], cuts[part + 1, 1] - cuts[part, 1]
    for i in range(first, cuts[part + 1, 0]):
        pairs = cuts[part, 2] + (i - first) * width
        if not open_[i] or level[pairs + pick - start] > limit:
            continue
        open_[i] = False
        for j in range(width):
            if level[pairs + j] <= limit:
                left[start + j] -= weight[i]


def assign(offers: Offers, points: Floats, picks: Longs) -> tuple[Floats, Longs]:
    """Nearest feasible of the chosen candidates for every factual, the earlier of two at the same cost.

    Returns:
        ``(f,)`` costs, NaN where no chosen candidate is feasible; ``(f,)`` its place in ``picks``, or -1.
    """
    chosen = picks[picks >= 0]
    order = np.argsort(offers.candidate)
    places = order[np.searchsorted(offers.candidate, chosen, sorter=order)] if len(chosen) else chosen
    cost, rank = _assign(offers.level, offers.cuts, offers.factual, points, places, chosen)
    return cost, rank


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _assign(
    level: Bytes, cuts: Longs, factual: Longs, points: Floats, places: Longs, picks: Longs
) -> tuple[Floats, Longs]:
    """As ``assign``, with the places of the picks among the candidates."""
    cost = np.full(factual.shape[0], np.nan)
    rank = np.full(factual.shape[0], -1, dtype=np.int64)
    for turn in range(picks.shape[0]):
        part = np.searchsorted(cuts[:, 1], places[turn], side="right") - 1
        first, width = cuts[part, 0], cuts[part + 1, 1] - cuts[part, 1]
        pair = cuts[part, 2] + places[turn] - cuts[part, 1]
        for i in range(first, cuts[part + 1, 0]):
            if level[pair + (i - first) * width] == NEVER:
                continue
            paid = _distance(points[factual[i]], points[picks[turn]])
            if rank[i] < 0 or paid < cost[i]:
                cost[i] = paid
                rank[i] = turn
    return cost, rank
