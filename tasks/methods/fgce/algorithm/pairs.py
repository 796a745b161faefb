"""Costs of all feasible pairs of a group, as levels: the first limit on cost that covers the pair.

A pair of factual and candidate is stored as one byte, the first level that covers it; the last level is no limit. Costs
themselves exist only while a block of factuals is priced, and are recomputed for the few chosen candidates.

Scope: prices. Costs: ``costs``. Choice: ``selection``. Reach: ``tasks.feasibility_graph.algorithm.reachability``.
"""

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from tasks.feasibility_graph.algorithm.reachability import Component, Reach, Words
from tasks.methods.fgce.algorithm.costs.distances import Costs
from tasks.numerics.arrays import Floats, Longs

Bytes = NDArray[np.uint8]

BLOCK = 256
"""Factuals that are priced at once: their costs are held as numbers only as long as that takes."""

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


def price(reach: Reach, costs: Costs, weight: Longs, grid: Floats) -> Offers:
    """Price every feasible pair of a group.

    Args:
        reach: Who can reach whom.
        costs: What it costs.
        weight: ``(m,)`` factual rows at each node of the induced graph.
        grid: ``(L - 1,)`` limits on cost, ascending, in units of the cost; a last level without limit is added.

    Raises:
        ValueError: If the levels do not fit into a byte.
    """
    if len(grid) >= NEVER - 1:
        raise ValueError(f"{len(grid)} limits on cost; at most {NEVER - 2} fit into one byte per pair")
    cuts, parts = [(0, 0, 0)], []
    for part in reach.active:
        parts.append((part.factuals, part.candidates, *_priced(part, costs, weight[part.factuals], grid)))
        f, c, pairs = cuts[-1]
        size = len(part.factuals), len(part.candidates)
        cuts.append((f + size[0], c + size[1], pairs + size[0] * size[1]))
    return _offers(parts, cuts, weight, len(grid) + 1)


def _priced(part: Component, costs: Costs, weight: Longs, grid: Floats) -> tuple[NDArray[np.generic], ...]:
    """Levels ``(f * c,)``, rows and cost by level ``(c, L)``, each factual's cheapest cost and its place."""
    f, c = len(part.factuals), len(part.candidates)
    out = (
        np.full(f * c, NEVER, dtype=np.uint8),
        np.zeros((c, len(grid) + 1), dtype=np.int64),
        np.zeros((c, len(grid) + 1)),
        np.full(f, np.nan),
        np.full(f, -1, dtype=np.int64),
    )
    for start in range(0, f, BLOCK):
        rows = slice(start, min(start + BLOCK, f))
        _price(costs.rows(part, rows), part.bits[rows], weight[rows], grid, start, *out)
    return out


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
    cost: Floats,
    bits: Words,
    weight: Longs,
    grid: Floats,
    start: int,
    level: Bytes,
    gain: Longs,
    total: Floats,
    cheapest: Floats,
    choice: Longs,
) -> None:
    """Write the prices of some factuals, the first of them ``start``, into the arrays of their component."""
    for i in range(cost.shape[0]):
        for j in range(cost.shape[1]):
            if not (bits[i, j // 64] >> np.uint64(j % 64)) & np.uint64(1):
                continue
            step = np.searchsorted(grid, cost[i, j])
            level[(start + i) * cost.shape[1] + j] = step
            gain[j, step] += weight[i]
            total[j, step] += weight[i] * cost[i, j]
            if choice[start + i] < 0 or cost[i, j] < cheapest[start + i]:
                cheapest[start + i] = cost[i, j]
                choice[start + i] = j


def within(offers: Offers, part: int | None) -> Offers:
    """The offers of one component by itself, for a selection that serves a subgroup; no offers for None."""
    cuts = offers.cuts[:1] if part is None else offers.cuts[part : part + 2]
    (f, c, pairs), (f_end, c_end, pairs_end) = cuts[0], cuts[-1]
    facts, cands = slice(f, f_end), slice(c, c_end)
    return Offers(
        factual=offers.factual[facts],
        weight=offers.weight[facts],
        candidate=offers.candidate[cands],
        level=offers.level[pairs:pairs_end],
        cuts=cuts - cuts[0],
        gain=offers.gain[cands],
        total=offers.total[cands],
        cheapest=offers.cheapest[facts],
        choice=offers.choice[facts],
    )


def paid(offers: Offers, reach: Reach, costs: Costs, picks: Longs) -> Floats:
    """What every factual pays to each of the chosen candidates.

    Args:
        offers: The offers of all active components of ``reach``.
        reach: Who can reach whom.
        costs: What it costs; not necessarily the cost by which the candidates were chosen.
        picks: ``(k,)`` nodes; -1 stands for none.

    Returns:
        ``(f, k)``, NaN where the candidate is not feasible.
    """
    out = np.full((len(offers.factual), len(picks)), np.nan)
    for at, part in enumerate(reach.active):
        rows = slice(offers.cuts[at, 0], offers.cuts[at + 1, 0])
        place = np.searchsorted(part.candidates, picks)
        known = np.append(part.candidates, -1)[place] == picks
        for turn in np.flatnonzero(known & (picks >= 0)):
            j = int(place[turn])
            reached = (part.bits[:, j // 64] >> np.uint64(j % 64)) & np.uint64(1) > 0
            out[rows, turn] = np.where(reached, costs.column(part, j), np.nan)
    return out


def cheapest(offers: Offers, reach: Reach, costs: Costs) -> Floats:
    """``(f,)`` cost of the cheapest feasible candidate of every factual, by any cost; NaN where there is none."""
    out = np.full(len(offers.factual), np.inf)
    for at, part in enumerate(reach.active):
        start = offers.cuts[at, 0]
        for first in range(0, len(part.factuals), BLOCK):
            rows = slice(first, min(first + BLOCK, len(part.factuals)))
            within = np.where(part.reach(rows), costs.rows(part, rows), np.inf)
            out[start + rows.start : start + rows.stop] = within.min(axis=1, initial=np.inf)
    return np.where(np.isinf(out), np.nan, out)


def nearest(paid: Floats) -> tuple[Floats, Longs]:
    """Cheapest of the chosen candidates for every factual, the earlier of two at the same cost.

    ``paid`` is ``(f, k)`` with NaN; returns ``(f,)`` costs, NaN where none is feasible, and ``(f,)`` places, or -1.
    """
    finite = np.where(np.isnan(paid), np.inf, paid)
    if not paid.shape[1]:
        return np.full(len(paid), np.nan), np.full(len(paid), -1, dtype=np.int64)
    rank = finite.argmin(axis=1)
    cost = finite[np.arange(len(paid)), rank]
    return np.where(np.isinf(cost), np.nan, cost), np.where(np.isinf(cost), -1, rank).astype(np.int64)
