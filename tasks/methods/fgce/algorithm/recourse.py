"""FGCE on some rows of one group: reachable candidates, their costs, and the few that serve most.

``search`` finds feasible pairs and their costs; ``explain`` prices them under limits on cost and selects. They are
separate because the limits depend on all groups (``curves``).

Scope: one group. Comparison of groups and sizes: ``detection``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tasks.feasibility_graph.algorithm import reachability
from tasks.feasibility_graph.algorithm.reachability import Reach
from tasks.methods.fgce.algorithm import pairs, selection
from tasks.methods.fgce.algorithm.costs.distances import Costs
from tasks.numerics.arrays import Floats, Ints, Longs
from tasks.numerics.problem import FeasibilityGraph, Problem

CostsOf = Callable[[FeasibilityGraph, Floats, Reach], Costs]
"""Costs of the pairs of an induced graph, from the graph, its points and who can reach whom."""

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
        return _number(self.reach.component, self.weight)


@dataclass(frozen=True)
class Explained:
    """What is selected for these rows, and what each of them pays."""

    searched: Searched
    offers: pairs.Offers
    selected: selection.Selection
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
        paid = pairs.paid(self.offers, self.searched.reach, self.searched.costs, picks)
        return self.of_rows(pairs.nearest(paid)[0], np.nan)

    def in_cost(self, costs: Costs) -> tuple[Floats, Floats]:
        """By another cost: what the selected ``(n, k)`` and the cheapest candidates ``(n,)`` cost, NaN if none."""
        reach = self.searched.reach
        paid = self.of_rows(pairs.paid(self.offers, reach, costs, self.picks), np.nan)
        return paid, self.of_rows(pairs.cheapest(self.offers, reach, costs), np.nan)

    def of_rows(self, values: NDArray[_Scalar], missing: float) -> NDArray[_Scalar]:
        """Values of the factual nodes of the offers, along the first axis, as values of the factual rows."""
        return _of_rows(self.searched, self.offers, values, missing)


def search(problem: Problem, rows: Longs, costs_of: CostsOf) -> Searched:
    """Who can reach whom among ``rows`` ``(r,)`` of one group, ascending, and what it costs."""
    nodes, first, local = np.unique(problem.node[rows].astype(np.int64), return_index=True, return_inverse=True)
    points = problem.encoded[rows[first]]
    factual, candidates = problem.factual[rows], np.flatnonzero(problem.candidate[rows])
    weight = np.bincount(local[factual], minlength=len(nodes)).astype(np.int64)
    candidate = np.full(len(nodes), -1, dtype=np.int64)
    candidate[local[candidates[::-1]]] = rows[candidates[::-1]]  # the smallest row is written last
    graph = reachability.induced(problem.graph, nodes)
    reach = reachability.reachable(graph, weight > 0, candidate >= 0)
    costs = costs_of(graph, points, reach)
    return Searched(rows[factual], local[factual], points, graph, weight, candidate, reach, costs)


def explain(searched: Searched, grid: Floats, k: int) -> Explained:
    """Price the pairs, select at most ``k`` candidates at each limit of ``grid`` and at none, and say who pays what."""
    return _explained(searched, pairs.price(searched.reach, searched.costs, searched.weight, grid), k)


def of_subgroup(found: Explained, number: int, k: int) -> Explained:
    """The same for one subgroup by itself: candidates are selected for it alone (FGCE, local version)."""
    searched, reach = found.searched, found.searched.reach
    inside = searched.subgroup == number
    here = inside[searched.at]
    label = reach.component[inside][0]
    part = next((at for at, each in enumerate(reach.active) if each.label == label), None)
    alone = replace(
        searched,
        factuals=searched.factuals[here],
        at=searched.at[here],
        weight=np.where(inside, searched.weight, 0),
        reach=Reach(reach.component, () if part is None else (reach.active[part],)),
    )
    return _explained(alone, pairs.within(found.offers, part), k)


def _explained(searched: Searched, offers: pairs.Offers, k: int) -> Explained:
    selected = selection.greedy(offers, k)
    paid = pairs.paid(offers, searched.reach, searched.costs, selected.picks[-1])
    return Explained(
        searched,
        offers,
        selected,
        cheapest=_of_rows(searched, offers, offers.cheapest, np.nan),
        choice=_of_rows(searched, offers, offers.choice, -1),
        paid=_of_rows(searched, offers, paid, np.nan),
        turn=_of_rows(searched, offers, selected.turn.T, -1).T,
    )


def _of_rows(searched: Searched, offers: pairs.Offers, values: NDArray[_Scalar], missing: float) -> NDArray[_Scalar]:
    """Values of the factual nodes of the offers, along the first axis, as values of the factual rows."""
    spread = np.full((len(searched.weight), *values.shape[1:]), missing, dtype=values.dtype)
    spread[offers.factual] = values
    return spread[searched.at]


def _number(component: Ints, weight: Longs) -> Ints:
    """Number components from 1 by falling number of factual rows, then by smallest node; 0 without factuals."""
    labels, first, inverse = np.unique(component, return_index=True, return_inverse=True)
    rows = np.bincount(inverse, weight, minlength=len(labels))
    order = np.lexsort((first, -rows))
    number = np.empty(len(labels), dtype=np.int32)
    number[order] = np.arange(1, len(labels) + 1)
    return np.where(rows > 0, number, 0).astype(np.int32)[inverse]
