"""Runs FGCE in plain loops and with networkx: to be read beside the paper, and to measure the arrays against.

Every row is a vertex of its own here, equal rows too, and nothing is packed, condensed or skipped. Audits do not use
this module; the benchmark does, and finds in both the same edges, components and coverage.

Scope: graph, reach and greedy selection. Exact optima as printed: ``tasks.methods.fgce.reproduction.printed_mip``.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np

from tasks.feasibility_graph.algorithm.graph import IMMUTABLE, Rules
from tasks.numerics.arrays import Bools, Floats, Ints, Longs

Costs = Mapping[int, Mapping[int, float]]
"""For each factual row, what every candidate that it can reach costs."""


@dataclass(frozen=True)
class Rows:
    """The rows to explain, those that may serve as counterfactuals, and all others that a path may lead through."""

    encoded: Floats
    """``(n, p)`` features in [0, 1]."""
    group: Ints
    """``(n,)`` protected group; edges stay within it."""
    factual: Bools
    """``(n,)``"""
    candidate: Bools
    """``(n,)``"""


@dataclass(frozen=True)
class Plain:
    """Results of the plain form."""

    edges: int
    """Edges between rows."""
    components: tuple[int, ...]
    """Weakly connected components of each group."""
    covered: tuple[Longs, ...]
    """For each group ``(L, k)``: factual rows covered at every limit on cost by the first 1, 2, ... k candidates."""


def explain(rows: Rows, rules: Rules, epsilon: float, limits: Sequence[float], k: int) -> Plain:
    """Computes graph, components, reach and all (k, d) tables of every group (FGCE, sections III and IV, Algorithm 1).

    Args:
        rows: All rows.
        rules: The constraints, without allowed transitions.
        epsilon: An edge is shorter than this, in encoded units.
        limits: Limits d on cost, in encoded units.
        k: Most candidates that are selected.
    """
    graph = feasibility_graph(rows, rules, epsilon)
    number = _numbers(rows, rules)
    components, covered = [], []
    for group in np.unique(rows.group):
        inside = graph.subgraph(np.flatnonzero(rows.group == group).tolist())
        parts = [graph.subgraph(part) for part in nx.weakly_connected_components(inside)]
        costs = {factual: paid for part in parts for factual, paid in _reached(part, rows).items()}
        components.append(len(parts))
        covered.append(np.array([greedy(costs, number, d, k) for d in limits]))
    return Plain(graph.number_of_edges(), tuple(components), tuple(covered))


def feasibility_graph(rows: Rows, rules: Rules, epsilon: float) -> "nx.DiGraph[int]":
    """Builds the graph in which ``i -> j`` says that row ``i`` could come to look like row ``j`` in one step."""
    points, group, direction = rows.encoded.tolist(), rows.group.tolist(), rules.direction.tolist()
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(points)))
    for i, here in enumerate(points):
        for j, there in enumerate(points):
            if i != j and group[i] == group[j] and _allowed(here, there, direction):
                distance = _distance(here, there)
                if distance < epsilon:
                    graph.add_edge(i, j, distance=distance)
    return graph


def _allowed(here: Sequence[float], there: Sequence[float], direction: Sequence[int]) -> bool:
    """Whether a move breaks no constraint."""
    for before, after, rule in zip(here, there, direction, strict=True):
        if (rule == IMMUTABLE and after != before) or (rule != IMMUTABLE and rule * (after - before) < 0):
            return False
    return True


def _distance(here: Sequence[float], there: Sequence[float]) -> float:
    """L2 distance, summed column by column: an edge may hang on the last bit."""
    squared = 0.0
    for before, after in zip(here, there, strict=True):
        squared += (after - before) * (after - before)
    return math.sqrt(squared)


def _reached(part: "nx.DiGraph[int]", rows: Rows) -> Costs:
    """The feasible candidates of every factual of one component, with their L2 distance."""
    return {
        factual: {
            candidate: _distance(rows.encoded[factual].tolist(), rows.encoded[candidate].tolist())
            for candidate in nx.descendants(part, factual)
            if rows.candidate[candidate]
        }
        for factual in part
        if rows.factual[factual]
    }


def greedy(costs: Costs, number: Mapping[int, int], limit: float, k: int) -> list[int]:
    """Counts factual rows covered within ``limit`` by the first 1, 2, ... ``k`` candidates of Algorithm 1.

    Ties go to the smaller total cost over all factuals within the limit, covered before or not, then to the candidate
    with the smaller ``number``.
    """
    serves: dict[int, set[int]] = {}
    total: dict[int, float] = {}
    for factual, paid in costs.items():
        for candidate, cost in paid.items():
            if cost <= limit:
                serves.setdefault(candidate, set()).add(factual)
                total[candidate] = total.get(candidate, 0.0) + cost
    covered: set[int] = set()
    counts = []
    for _ in range(k):
        order = ((-len(serves[each] - covered), round(total[each], 9), number[each], each) for each in serves)
        covered |= serves[min(order)[-1]] if serves else set()
        counts.append(len(covered))
    return counts


def _numbers(rows: Rows, rules: Rules) -> dict[int, int]:
    """Rank of every row by its values, those that cannot change first: the order of the nodes that the arrays use."""
    fixed = rules.direction == IMMUTABLE
    keys = [(*rows.encoded[row, fixed].tolist(), *rows.encoded[row, ~fixed].tolist()) for row in range(len(rows.group))]
    return {row: rank for rank, row in enumerate(sorted(range(len(keys)), key=lambda row: keys[row]))}
