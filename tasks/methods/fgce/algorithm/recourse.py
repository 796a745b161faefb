"""Feasible pairs of a group, their costs, and few counterfactuals for many factuals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

from tasks.feasibility_graph import algorithm
from tasks.feasibility_graph.algorithm import Reach, Words
from tasks.methods.fgce.algorithm import costs as algorithm_costs
from tasks.methods.fgce.algorithm.costs import Costs, Tabled, Vector
from tasks.methods.fgce.settings import FgceSettings
from tasks.numerics.arrays import Floats, Ints, Longs
from tasks.numerics.problem import FeasibilityGraph, Problem

# --------------------------------------------------------------------------------------------------------------------
# Costs of all feasible pairs of a group, as levels: the first limit on cost that covers the pair.
#
# A pair of factual and candidate is stored as one byte, the first level that covers it; the last level is no limit.
# Costs themselves exist only while a block of factuals is priced, and are recomputed for the few chosen candidates.
#
# Scope: prices. Costs: ``costs``. Choice: ``selection``. Reach: ``tasks.feasibility_graph.algorithm``.


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
    cuts = [(0, 0, 0)]
    parts: list[tuple[NDArray[np.generic], ...]] = []
    for part in reach.active:
        f, c = len(part.factuals), len(part.candidates)
        # levels of the pairs, rows and cost by candidate and level, each factual's cheapest cost and its place
        prices = (
            np.full(f * c, NEVER, dtype=np.uint8),
            np.zeros((c, len(grid) + 1), dtype=np.int64),
            np.zeros((c, len(grid) + 1)),
            np.full(f, np.nan),
            np.full(f, -1, dtype=np.int64),
        )
        part_weight = weight[part.factuals]
        for start in range(0, f, BLOCK):
            rows = slice(start, min(start + BLOCK, f))
            _price(costs.rows(part, rows), part.bits[rows], part_weight[rows], grid, start, *prices)
        parts.append((part.factuals, part.candidates, *prices))
        factuals, candidates, pairs = cuts[-1]
        cuts.append((factuals + f, candidates + c, pairs + f * c))
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


def paid_costs(offers: Offers, reach: Reach, costs: Costs, picks: Longs) -> Floats:
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
        is_candidate = np.append(part.candidates, -1)[place] == picks
        for turn in np.flatnonzero(is_candidate & (picks >= 0)):
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


# --------------------------------------------------------------------------------------------------------------------
# Few counterfactuals for many factuals: Algorithm 1 of FGCE, maximum coverage under a limit on cost.
#
# At most k candidates are chosen. Each newly covers most factual rows at a cost of at most d; ties go to the smaller
# total cost over all factuals it covers within d, covered before or not, then to the smaller node. The choices for k
# are the first k of those for k + 1, so one run per d serves every k.
#
# Scope: the greedy choice. Candidates: ``pairs``. Exact optima: ``covering``.


Turns = Ints


@dataclass(frozen=True)
class Selection:
    """The greedy choice at every level."""

    picks: Longs
    """``(L, k)`` nodes in the order of choice; -1 once nothing more can be covered."""
    turn: Turns
    """``(L, f)`` the turn, from 0, in which each factual of the offers was covered, or -1."""

    def covered(self, weight: Longs) -> Longs:
        """``(L, k)`` factual rows covered by the first 1, 2, ... k candidates; ``weight`` ``(f,)`` rows at each."""
        turns = np.arange(self.picks.shape[1])
        return np.stack([(weight * (turn >= 0)) @ (turn[:, None] <= turns) for turn in self.turn])


def greedy(offers: Offers, k: int) -> Selection:
    """Choose up to ``k`` candidates at every level, pooled over the components (FGCE, Algorithm 1).

    Total costs are compared to 9 decimals, so that the order of summation breaks no tie.
    """
    total = np.round(offers.total, 9)
    picks, turn = _greedy(offers.level, offers.cuts, offers.weight, offers.candidate, offers.gain, total, k, 0)
    return Selection(np.append(offers.candidate, -1)[picks], turn)


def cover(offers: Offers) -> Longs:
    """Nodes chosen greedily, without limit on cost, until every factual of the offers that can be covered is."""
    total, most = np.round(offers.total, 9), len(offers.factual)
    last = offers.gain.shape[1] - 1
    picks, _ = _greedy(offers.level, offers.cuts, offers.weight, offers.candidate, offers.gain, total, most, last)
    nodes: Longs = offers.candidate[picks[-1][picks[-1] >= 0]]
    return nodes


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _greedy(
    level: Bytes, cuts: Longs, weight: Longs, node: Longs, gain: Longs, total: Floats, k: int, first: int
) -> tuple[Longs, Turns]:
    """Places of the chosen candidates (-1: none), ``(L, k)``, and the turn that covered each factual, ``(L, f)``.

    Levels before ``first`` are left out.
    """
    levels = gain.shape[1]
    picks = np.full((levels, k), -1, dtype=np.int64)
    turns = np.full((levels, weight.shape[0]), -1, dtype=np.int32)
    for limit in range(first, levels):
        if limit > first and (gain[:, limit] == gain[:, limit - 1]).all():
            picks[limit] = picks[limit - 1]  # no pair costs what lies between the two limits
            turns[limit] = turns[limit - 1]
            continue
        remaining_gain = gain[:, limit].copy()
        for turn in range(k):
            best = _best(remaining_gain, total[:, limit], node)
            if best < 0:
                break
            picks[limit, turn] = best
            _cover(level, cuts, weight, remaining_gain, turns[limit], best, limit, turn)
    return picks, turns


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _best(remaining_gain: Longs, total: Floats, node: Longs) -> int:
    """Place of the candidate that covers most rows still open, ties as in Algorithm 1; -1 if none covers any."""
    best = -1
    for j in range(remaining_gain.shape[0]):
        if remaining_gain[j] == 0 or (best >= 0 and remaining_gain[j] < remaining_gain[best]):
            continue
        if (
            best < 0
            or remaining_gain[j] > remaining_gain[best]
            or total[j] < total[best]
            or (total[j] == total[best] and node[j] < node[best])
        ):
            best = j
    return best


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _cover(
    level: Bytes, cuts: Longs, weight: Longs, remaining_gain: Longs, turns: Turns, pick: int, limit: int, turn: int
) -> None:
    """Close the factuals that ``pick`` covers within the level, and take their rows from every other candidate."""
    part = np.searchsorted(cuts[:, 1], pick, side="right") - 1
    first, start, width = cuts[part, 0], cuts[part, 1], cuts[part + 1, 1] - cuts[part, 1]
    gain, at = remaining_gain[start : start + width], np.uint8(limit)
    for i in range(first, cuts[part + 1, 0]):
        pairs = cuts[part, 2] + (i - first) * width
        if turns[i] >= 0 or level[pairs + pick - start] > limit:
            continue
        turns[i] = turn
        row = level[pairs : pairs + width]
        for j in range(width):  # without a branch, so that the compiler takes several at once
            gain[j] -= weight[i] if row[j] <= at else 0


# --------------------------------------------------------------------------------------------------------------------
# FGCE on some rows of one group: reachable candidates, their costs, and the few that serve most.
#
# ``search`` finds feasible pairs and their costs; ``explain`` prices them under limits on cost and selects. They are
# separate because the limits depend on all groups (``curves``).
#
# Scope: one group. Comparison of groups and sizes: ``detection``.


CostsOf = Callable[[FeasibilityGraph, Floats, Reach], Costs]
"""Costs of the pairs of an induced graph, from the graph, its points and its feasible pairs."""

_Scalar = TypeVar("_Scalar", bound=np.generic)


@dataclass(frozen=True)
class Searched:
    """The feasible pairs of some rows of one group. Node ids are places in ``points``."""

    factuals: Longs
    """``(n,)`` rows to explain, ascending."""
    at: Longs
    """``(n,)`` node of each."""
    points: Floats
    """``(m, p)`` encoded features of the nodes."""
    graph: FeasibilityGraph
    """The graph that they induce."""
    weight: Longs
    """``(m,)`` rows to explain at each node."""
    candidate: Longs
    """``(m,)`` smallest candidate row at each node, -1 where there is none."""
    reach: Reach
    costs: Costs

    @property
    def subgroup(self) -> Ints:
        """``(m,)`` subgroup of each node: 1, 2, ... by falling number of factual rows, 0 where there are none."""
        labels, first, inverse = np.unique(self.reach.component, return_index=True, return_inverse=True)
        rows = np.bincount(inverse, self.weight, minlength=len(labels))
        order = np.lexsort((first, -rows))
        number = np.empty(len(labels), dtype=np.int32)
        number[order] = np.arange(1, len(labels) + 1)
        return np.where(rows > 0, number, 0).astype(np.int32)[inverse]


@dataclass(frozen=True)
class Explained:
    """What is selected for these rows, and what each of them pays."""

    searched: Searched
    offers: Offers
    selected: Selection
    cheapest: Floats
    """``(n,)`` cost of the cheapest feasible candidate of each factual row, NaN where there is none."""
    choice: Longs
    """``(n,)`` its node, or -1."""
    paid: Floats
    """``(n, k)`` cost of each selected candidate without limit on cost, NaN where it is not feasible."""
    turn: Ints
    """``(L, n)`` turn in which each factual row is covered at each level, or -1."""

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """``(n,)`` factual rows with some feasible candidate."""
        return ~np.isnan(self.cheapest)

    @property
    def picks(self) -> Longs:
        """``(k,)`` nodes selected without limit on cost; -1 once nothing more can be covered."""
        picks: Longs = self.selected.picks[-1]
        return picks

    def pays(self, picks: Longs) -> Floats:
        """``(n,)`` cost of the cheapest of some nodes for each factual row, NaN where none is feasible."""
        paid = paid_costs(self.offers, self.searched.reach, self.searched.costs, picks)
        return self.of_rows(nearest(paid)[0], np.nan)

    def in_cost(self, costs: Costs) -> tuple[Floats, Floats]:
        """By another cost: what the selected ``(n, k)`` and the cheapest candidates ``(n,)`` cost, NaN if none."""
        reach = self.searched.reach
        paid = self.of_rows(paid_costs(self.offers, reach, costs, self.picks), np.nan)
        return paid, self.of_rows(cheapest(self.offers, reach, costs), np.nan)

    def of_rows(self, values: NDArray[_Scalar], missing: float) -> NDArray[_Scalar]:
        """Values of the factual nodes of the offers, along the first axis, as values of the factual rows."""
        return _of_rows(self.searched, self.offers, values, missing)


def search(problem: Problem, rows: Longs, costs_of: CostsOf) -> Searched:
    """The feasible pairs among ``rows`` ``(r,)`` of one group, ascending, and their costs."""
    nodes, first, local = np.unique(problem.node[rows].astype(np.int64), return_index=True, return_inverse=True)
    points = problem.encoded[rows[first]]
    factual, candidates = problem.factual[rows], np.flatnonzero(problem.candidate[rows])
    weight = np.bincount(local[factual], minlength=len(nodes)).astype(np.int64)
    candidate = np.full(len(nodes), -1, dtype=np.int64)
    candidate[local[candidates[::-1]]] = rows[candidates[::-1]]  # the smallest row is written last
    graph = algorithm.induced(problem.graph, nodes)
    reach = algorithm.reachable(graph, weight > 0, candidate >= 0)
    costs = costs_of(graph, points, reach)
    return Searched(rows[factual], local[factual], points, graph, weight, candidate, reach, costs)


def explain(searched: Searched, grid: Floats, k: int) -> Explained:
    """Price the pairs, select at most ``k`` candidates at each limit of ``grid`` and at none, and say who pays what."""
    return _explained(searched, price(searched.reach, searched.costs, searched.weight, grid), k)


def cheapest_costs(searched: Searched) -> Floats:
    """``(n,)`` cost of the cheapest feasible candidate of each factual row, NaN without any; none is selected."""
    offers = price(searched.reach, searched.costs, searched.weight, np.zeros(0))
    return _of_rows(searched, offers, offers.cheapest, np.nan)


def of_subgroup(explained: Explained, number: int, k: int) -> Explained:
    """The same for one subgroup by itself: candidates are selected for it alone (FGCE, local version)."""
    searched, reach = explained.searched, explained.searched.reach
    inside = searched.subgroup == number
    in_subgroup = inside[searched.at]
    label = reach.component[inside][0]
    part = next((at for at, active_part in enumerate(reach.active) if active_part.label == label), None)
    alone = replace(
        searched,
        factuals=searched.factuals[in_subgroup],
        at=searched.at[in_subgroup],
        weight=np.where(inside, searched.weight, 0),
        reach=Reach(reach.component, () if part is None else (reach.active[part],)),
    )
    return _explained(alone, within(explained.offers, part), k)


def _explained(searched: Searched, offers: Offers, k: int) -> Explained:
    selected = greedy(offers, k)
    paid = paid_costs(offers, searched.reach, searched.costs, selected.picks[-1])
    return Explained(
        searched,
        offers,
        selected,
        cheapest=_of_rows(searched, offers, offers.cheapest, np.nan),
        choice=_of_rows(searched, offers, offers.choice, -1),
        paid=_of_rows(searched, offers, paid, np.nan),
        turn=_of_rows(searched, offers, selected.turn.T, -1).T,
    )


def _of_rows(searched: Searched, offers: Offers, values: NDArray[_Scalar], missing: float) -> NDArray[_Scalar]:
    """Values of the factual nodes of the offers, along the first axis, as values of the factual rows."""
    spread = np.full((len(searched.weight), *values.shape[1:]), missing, dtype=values.dtype)
    spread[offers.factual] = values
    return spread[searched.at]


# --------------------------------------------------------------------------------------------------------------------
# Choice of the cost of a problem for one group: distances, or paths over weighted edges.
#
# The kernel density of path costs is fitted to all rows, once, and only for path costs.
#
# Scope: the choice. Distances, weights and shortest paths: ``costs``.


Kind = Literal["vector", "path", "hops"]


@dataclass(frozen=True)
class Pricing:
    """The costs of one problem."""

    problem: Problem
    settings: FgceSettings
    rng: np.random.Generator
    """For the cross-validation of the bandwidth, where the settings choose it."""

    def costs(self, graph: FeasibilityGraph, points: Floats, reach: Reach) -> Costs:
        """Costs of an induced graph's pairs, by the cost of the settings."""
        return self.by(self.settings.cost, graph, points, reach)

    def by(self, kind: Kind, graph: FeasibilityGraph, points: Floats, reach: Reach) -> Costs:
        """Costs of an induced graph's pairs: the graph, its points ``(m, p)``, and its feasible pairs."""
        if kind == "vector":
            return Vector(points)
        if kind == "hops":
            hops = algorithm_costs.hop_costs
            return Tabled({part.label: hops(graph, part.factuals, part.candidates) for part in reach.active})
        weights = np.full(len(graph.indices), np.inf)
        if reach.active:  # only edges that some path from a factual to a candidate can use need a weight
            factuals = np.concatenate([part.factuals for part in reach.active])
            candidates = np.concatenate([part.candidates for part in reach.active])
            usable = algorithm_costs.usable_edges(graph, factuals, candidates)
            weights = algorithm_costs.edge_weights(graph, points, self._density, self.settings.weights, usable)
        paths = algorithm_costs.path_costs
        return Tabled({part.label: paths(graph, weights, part.factuals, part.candidates) for part in reach.active})

    def dearest(self, searched: Sequence[Searched]) -> float:
        """The cost at which the grid of limits ends.

        For the L2 distance the square root of the number of features (a one-hot set is one feature), as in the paper;
        for other costs, on which it is silent, the largest cost of any feasible pair, or 1 where there is none.
        """
        if self.settings.cost == "vector":
            return float(np.sqrt(len(self.problem.features)))
        # one table of costs in memory at a time
        tables = (
            group_search.costs.rows(part, slice(None))
            for group_search in searched
            for part in group_search.reach.active
        )
        finite = [float(np.max(table, initial=0.0, where=np.isfinite(table))) for table in tables]
        return max(finite, default=1.0) or 1.0

    @cached_property
    def _density(self) -> algorithm_costs.Density:
        _, first, rows = np.unique(self.problem.node, return_index=True, return_counts=True)
        points = self.problem.encoded[first]
        width = algorithm_costs.bandwidth(points, rows, self.settings.bandwidth, self.rng)
        return algorithm_costs.Density(points, rows, width)
