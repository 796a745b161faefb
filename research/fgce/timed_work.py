"""Timed work of FGCE, and plain loops that it is compared with."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from research.benchmark import answer, peak_mb, sampled
from tasks.feasibility_graph import algorithm as feasibility
from tasks.feasibility_graph.algorithm import IMMUTABLE, Built, Distinct, Rules, components
from tasks.methods.fgce.algorithm import detection, optima, recourse
from tasks.methods.fgce.algorithm.optima import Full, Limits
from tasks.methods.fgce.algorithm.recourse import Explained, Pricing
from tasks.methods.fgce.settings import FgceSettings
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.problem import Problem

# --------------------------------------------------------------------------------------------------------------------
# Runs FGCE in plain loops and with networkx, for comparison with the paper and with the array implementation.
#
# Every row is a vertex of its own here, equal rows too, and nothing is packed, condensed or skipped. Audits do not use
# this module; the benchmark does, and finds in both the same edges, components and coverage.
#
# Scope: graph, reach and greedy selection. Exact optima as printed: ``research.fgce.cells``.


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
    # Rank of every row by its values, those that cannot change first: the order of the nodes that the arrays use.
    fixed = rules.direction == IMMUTABLE
    keys = [(*rows.encoded[row, fixed].tolist(), *rows.encoded[row, ~fixed].tolist()) for row in range(len(rows.group))]
    number = {row: rank for rank, row in enumerate(sorted(range(len(keys)), key=lambda row: keys[row]))}
    components, covered = [], []
    for group in np.unique(rows.group):
        inside = graph.subgraph(np.flatnonzero(rows.group == group).tolist())
        parts = [graph.subgraph(part) for part in nx.weakly_connected_components(inside)]
        costs: dict[int, dict[int, float]] = {}
        for part in parts:  # the feasible candidates of every factual, with their L2 distance
            for factual in part:
                if rows.factual[factual]:
                    start = rows.encoded[factual].tolist()
                    costs[factual] = {
                        candidate: _distance(start, rows.encoded[candidate].tolist())
                        for candidate in nx.descendants(part, factual)
                        if rows.candidate[candidate]
                    }
        components.append(len(parts))
        covered.append(np.array([greedy(costs, number, d, k) for d in limits]))
    return Plain(graph.number_of_edges(), tuple(components), tuple(covered))


def feasibility_graph(rows: Rows, rules: Rules, epsilon: float) -> "nx.DiGraph[int]":
    """Builds the graph: ``i -> j`` means that row ``i`` could become like row ``j`` in one step."""
    points, group, direction = rows.encoded.tolist(), rows.group.tolist(), rules.direction.tolist()
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(points)))
    for i, start in enumerate(points):
        for j, end in enumerate(points):
            if i == j or group[i] != group[j]:
                continue
            allowed = all(
                after == before if rule == IMMUTABLE else rule * (after - before) >= 0
                for before, after, rule in zip(start, end, direction, strict=True)
            )
            if allowed:
                distance = _distance(start, end)
                if distance < epsilon:
                    graph.add_edge(i, j, distance=distance)
    return graph


def _distance(start: Sequence[float], end: Sequence[float]) -> float:
    """L2 distance, summed column by column: an edge may hang on the last bit."""
    squared = 0.0
    for before, after in zip(start, end, strict=True):
        squared += (after - before) * (after - before)
    return math.sqrt(squared)


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
        order = (
            (-len(serves[candidate] - covered), round(total[candidate], 9), number[candidate], candidate)
            for candidate in serves
        )
        covered |= serves[min(order)[-1]] if serves else set()
        counts.append(len(covered))
    return counts


# --------------------------------------------------------------------------------------------------------------------
# Times FGCE on scored rows, stage by stage; ``evenhand bench fgce`` starts it as a separate process.
#
# It imports neither tables nor stages of an audit, so that the process's peak memory is that of the method. Numba's
# kernels are compiled, or loaded from its cache, on a small sample before anything is timed.


COLLAPSE, GRAPH, REACH, SELECT = "collapse equal rows", "graph", "reachability", "selection at every limit d"
COMPONENTS, OPTIMA, TABLES = "components", "exact k0, d0, d0 at k0", "(k, d) tables and areas"
TIMES = 3
"""Runs, of which the fastest counts: other processes can only make one slower."""

WARM_ROWS = 2_000

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Scored(Rows):
    """Rows as the stages before the graph leave them: encoded, scored and split."""

    direction: NDArray[np.int8]
    """``(p,)`` constraint of each encoded column, as ``Rules`` of the graph has it; no allowed transitions."""
    feature: Ints
    """``(p,)`` source feature of each encoded column."""

    def sample(self, size: int, seed: int) -> "Scored":
        """Draws ``size`` rows without replacement, or all if there are no more."""
        rows = sampled(len(self.group), size, seed)
        by_row = ("encoded", "group", "factual", "candidate")
        return replace(self, **{name: getattr(self, name)[rows] for name in by_row})


class Clock:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __call__(self, stage: str, work: Callable[[], _Value]) -> _Value:
        """Does some work and notes its seconds."""
        start = time.perf_counter()
        done = work()
        self.seconds[stage] = time.perf_counter() - start
        return done


@dataclass(frozen=True)
class StageResults:
    """Results of the stages."""

    distinct: Distinct
    built: Built
    full: list[Full]
    limits: Limits
    explained: list[Explained]
    seconds: dict[str, float]

    @property
    def edges_of_rows(self) -> int:
        """Edges between rows: equal rows are separate vertices, linked both ways, as in the paper."""
        rows, graph = self.distinct.multiplicity, self.built.graph
        return int(np.repeat(rows, np.diff(graph.indptr)) @ rows[graph.indices] + rows @ (rows - 1))


def stages(scored: Scored, settings: FgceSettings) -> StageResults:
    """Computes graph, components, reachability, exact k0 and d0, and all (k, d) tables of every group."""
    clock, rules = Clock(), Rules(scored.direction)
    codes = np.zeros((len(scored.group), 0), dtype=np.int32)
    distinct = clock(COLLAPSE, lambda: feasibility.collapse(scored.encoded, codes, scored.group[:, None], rules))
    built = clock(GRAPH, lambda: feasibility.build(distinct, rules, float(settings.epsilon), settings))
    clock(COMPONENTS, lambda: components(built.graph))
    groups, group = np.unique(scored.group, return_inverse=True)
    members = [np.flatnonzero(group == number) for number in range(len(groups))]
    problem = Problem(
        encoded=scored.encoded,
        feature_of_column=scored.feature,
        features=tuple(str(number) for number in np.unique(scored.feature)),
        group=group.astype(np.int32),
        groups=tuple(str(group_name) for group_name in groups),
        reference=0,
        factual=scored.factual,
        candidate=scored.candidate,
        node=distinct.node,
        graph=built.graph,
    )
    pricing = Pricing(problem, settings, np.random.default_rng(0))
    searched = clock(REACH, lambda: [recourse.search(problem, rows, pricing.costs) for rows in members])
    full = clock(OPTIMA, lambda: [_full(group_search, settings) for group_search in searched])
    required_limit = max((optimum.d0_at_k0.value for optimum in full if optimum.n), default=None)
    limits = optima.limits(pricing.dearest(searched), required_limit)
    explained = clock(
        SELECT, lambda: [recourse.explain(group_search, limits.levels, settings.k) for group_search in searched]
    )
    clock(TABLES, lambda: [[*detection.coverage(of, limits), *detection.areas(of, limits)] for of in explained])
    return StageResults(distinct, built, full, limits, explained, clock.seconds)


def fastest(scored: Scored, settings: FgceSettings) -> StageResults:
    """Returns the fastest of several runs."""
    return min((stages(scored, settings) for _ in range(TIMES)), key=lambda done: sum(done.seconds.values()))


def measure(scored: Scored, settings_json: str, rows: str, seed: str) -> dict[str, Any]:
    """Measures times, counts and peak memory of the stages on so many rows."""
    settings = FgceSettings.model_validate_json(settings_json)
    sample = scored.sample(int(rows), int(seed))
    stages(scored.sample(WARM_ROWS, int(seed)), settings)  # compiles: nothing after this waits for numba
    done = fastest(sample, settings)
    return {
        "peak_mb": peak_mb(),
        "rows": len(sample.group),
        "nodes": done.built.graph.size,
        "edges": done.built.edges,
        "edges_of_rows": done.edges_of_rows,
        "seconds": done.seconds,
        "optima": [_words(optimum) for optimum in done.full],
    }


def compare(scored: Scored, settings_json: str, rows: str, seed: str) -> dict[str, Any]:
    """Runs ``compared`` on the rows."""
    return compared(scored, FgceSettings.model_validate_json(settings_json), int(rows), int(seed))


def compared(scored: Scored, settings: FgceSettings, rows: int, seed: int) -> dict[str, Any]:
    """Times the arrays and the plain form for the same work on the same rows.

    Raises:
        RuntimeError: If they do not find the same edges, components and coverage.
    """
    sample, clock = scored.sample(rows, seed), Clock()
    stages(scored.sample(WARM_ROWS, seed), settings)
    done = fastest(sample, settings)
    ours = Plain(
        done.edges_of_rows,
        tuple(len(np.unique(group.searched.reach.component)) for group in done.explained),
        tuple(group.selected.covered(group.offers.weight) for group in done.explained),
    )
    limits = [*done.limits.levels, np.inf]
    rules, epsilon = Rules(sample.direction), float(settings.epsilon)
    theirs = clock("plain", lambda: explain(sample, rules, epsilon, limits, settings.k))
    _require_equal(ours, theirs)
    return {
        "rows": len(sample.group),
        "edges_of_rows": ours.edges,
        "factuals": int(sample.factual.sum()),
        "covered": sum(int(coverage[-1, -1]) for coverage in ours.covered),
        "cells": sum(coverage.size for coverage in ours.covered),
        "arrays_s": sum(done.seconds[stage] for stage in (COLLAPSE, GRAPH, REACH, SELECT)),
        "plain_s": clock.seconds["plain"],
    }


def _require_equal(ours: Plain, theirs: Plain) -> None:
    same = all(np.array_equal(coverage, other) for coverage, other in zip(ours.covered, theirs.covered, strict=True))
    if (ours.edges, ours.components) != (theirs.edges, theirs.components) or not same:
        raise RuntimeError(f"the arrays and the plain loops differ; the arrays: {ours}; the plain loops: {theirs}")


def _full(group_search: recourse.Searched, settings: FgceSettings) -> Full:
    tables = optima.tables_of(group_search, settings)
    if tables is None:
        raise RuntimeError("a group has more than exact_pairs pairs; its optima would be bounds")
    return optima.full(optima.parts_of(tables, group_search.weight), optima.solver_of(settings))


def _words(full: Full) -> str:
    """The optima of a group, with the reason of one that is none."""
    if not full.n:
        return "none coverable"
    reasons = full.k0.reason or full.d0_at_k0.reason
    values = f"k0 {full.k0.value:g}, d0 {full.d0.value:.4f}, at k0 {full.d0_at_k0.value:.4f}"
    return f"{full.n} coverable: {values}" + (f" ({reasons})" if reasons else "")


if __name__ == "__main__":
    answer(measure, compare)
