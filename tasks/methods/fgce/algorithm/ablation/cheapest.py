"""Cheapest feasible candidate of every factual, on a whole graph or on some of its rows.

Cost is the L2 distance of factual and candidate in encoded units. The questions of all decision makers are answered at
once, because they share the expensive part, reachability. Scope: the search on one graph. Choice of graphs: ``rules``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np

from tasks.feasibility_graph.algorithm import graph as feasibility
from tasks.feasibility_graph.algorithm import radius, reachability
from tasks.feasibility_graph.algorithm.graph import Distinct, Rules
from tasks.feasibility_graph.algorithm.reachability import Words
from tasks.methods.fgce.algorithm.ablation import subsamples
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.problem import FeasibilityGraph


@dataclass(frozen=True)
class Asked:
    """Whose recourse is searched for: the rows of one decision maker."""

    factual: Bools
    """``(n,)`` rows to explain."""
    candidate: Bools
    """``(n,)`` rows that may serve as a counterfactual."""

    def of(self, rows: Longs) -> "Asked":
        """The same question about some rows only."""
        return Asked(self.factual[rows], self.candidate[rows])


@dataclass(frozen=True)
class Joined:
    """Rows, and how they are joined."""

    distinct: Distinct
    rules: Rules
    graph: FeasibilityGraph | None
    """None where a step may be of any length: all that break no rule are then steps, and too many to be stored."""

    def thinned(self, rows: Longs) -> "Joined":
        """What is left with ``rows`` ``(r,)`` alone."""
        distinct, nodes = subsamples.thinned(self.distinct, rows)
        graph = None if self.graph is None else reachability.induced(self.graph, nodes)
        return Joined(distinct, self.rules, graph)


def cheapest(joined: Joined, asked: Sequence[Asked]) -> tuple[Floats, ...]:
    """Cost of each row's cheapest feasible candidate.

    Returns:
        For each question ``(n,)``; NaN where there is no feasible candidate or none is asked for.
    """
    nodes = [_nodes(joined.distinct, each) for each in asked]
    if joined.graph is None:
        costs = _by_steps(joined, nodes)
    else:
        costs = _by_paths(joined.distinct.encoded, joined.graph, nodes)
    known = (np.where(np.isfinite(cost), cost, np.nan)[joined.distinct.node] for cost in costs)
    return tuple(np.where(each.factual, cost, np.nan) for each, cost in zip(asked, known, strict=True))


def _nodes(distinct: Distinct, asked: Asked) -> Asked:
    """The question about nodes: those with a factual row, and those with a candidate row."""
    size = len(distinct.bucket)
    return Asked(*(np.bincount(distinct.node[rows], minlength=size) > 0 for rows in (asked.factual, asked.candidate)))


def _by_steps(joined: Joined, asked: Sequence[Asked]) -> list[Floats]:
    """Cost of the cheapest candidate that one permitted step leads to, ``(m,)`` each; infinite if there is none."""
    space = feasibility.space_of(joined.distinct, joined.rules)
    costs = [np.full(len(joined.distinct.bucket), np.inf) for _ in asked]
    for cost, each in zip(costs, asked, strict=True):
        factuals, candidates = np.flatnonzero(each.factual), np.flatnonzero(each.candidate)
        cost[factuals] = radius.nearest_of(space, factuals, candidates)
    return costs


def _by_paths(points: Floats, graph: FeasibilityGraph, asked: Sequence[Asked]) -> list[Floats]:
    """Cost of the cheapest candidate that a directed path leads to, ``(m,)`` each; infinite if there is none."""
    costs = [np.full(len(points), np.inf) for _ in asked]
    factual = np.any([each.factual for each in asked], axis=0)
    candidate = np.any([each.candidate for each in asked], axis=0)
    for part in reachability.reachable(graph, factual, candidate).active:
        for cost, each in zip(costs, asked, strict=True):
            own = each.factual[part.factuals]
            near, wanted = part.factuals[own], each.candidate[part.candidates]
            cost[near] = _cheapest_reached(points[near], points[part.candidates], part.bits[own], wanted)
    return costs


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _cheapest_reached(near: Floats, far: Floats, bits: Words, wanted: Bools) -> Floats:
    """L2 distance of each of ``near`` ``(f, p)`` to the nearest ``wanted`` of ``far`` ``(c, p)``, by its bit."""
    best = np.full(near.shape[0], np.inf)
    for i in range(near.shape[0]):
        for j in range(far.shape[0]):
            if not wanted[j] or not (bits[i, j // 64] >> np.uint64(j % 64)) & np.uint64(1):
                continue
            total = 0.0
            for column in range(near.shape[1]):
                total += (near[i, column] - far[j, column]) ** 2
                if total >= best[i]:
                    break
            best[i] = min(best[i], total)
    nearest: Floats = np.sqrt(best)
    return nearest
