"""Times FGCE on scored rows, stage by stage; ``evenhand bench fgce`` starts it as a process of its own.

It imports neither tables nor stages of an audit, so that the process's peak memory is that of the method. Numba's
kernels are compiled, or loaded from its cache, on a small sample before anything is timed.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tasks.feasibility_graph.algorithm import graph as feasibility
from tasks.feasibility_graph.algorithm.graph import Built, Distinct, Rules
from tasks.feasibility_graph.algorithm.reachability import components
from tasks.methods.fgce.algorithm import curves, optima, recourse, tallies
from tasks.methods.fgce.algorithm.curves import Limits
from tasks.methods.fgce.algorithm.optima import Full
from tasks.methods.fgce.algorithm.pricing import Pricing
from tasks.methods.fgce.algorithm.recourse import Explained
from tasks.methods.fgce.bench import plain
from tasks.methods.fgce.settings import FgceSettings
from tasks.numerics.arrays import Ints, Longs
from tasks.numerics.problem import FeasibilityGraph, Problem
from tasks.proof.work import answer, peak_mb, sampled

COLLAPSE, GRAPH, REACH, SELECT = "collapse equal rows", "graph", "reachability", "selection at every limit d"
COMPONENTS, OPTIMA, TABLES = "components", "exact k0, d0, d0 at k0", "(k, d) tables and areas"
TIMES = 3
"""Runs, of which the fastest counts: other processes can only make one slower."""

WARM_ROWS = 2_000

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Scored(plain.Rows):
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
class Done:
    """Results of the stages."""

    distinct: Distinct
    built: Built
    full: list[Full]
    limits: Limits
    explained: list[Explained]
    seconds: dict[str, float]

    @property
    def edges_of_rows(self) -> int:
        """Edges where equal rows are vertices of their own, linked both ways, as in the paper."""
        rows, graph = self.distinct.multiplicity, self.built.graph
        return int(np.repeat(rows, np.diff(graph.indptr)) @ rows[graph.indices] + rows @ (rows - 1))


def stages(scored: Scored, settings: FgceSettings) -> Done:
    """Computes graph, components, reachability, exact k0 and d0, and all (k, d) tables of every group."""
    clock, rules = Clock(), Rules(scored.direction)
    codes = np.zeros((len(scored.group), 0), dtype=np.int32)
    distinct = clock(COLLAPSE, lambda: feasibility.collapse(scored.encoded, codes, scored.group[:, None], rules))
    built = clock(GRAPH, lambda: feasibility.build(distinct, rules, float(settings.epsilon), settings))
    clock(COMPONENTS, lambda: components(built.graph))
    problem, members = _problem(scored, distinct, built.graph)
    pricing = Pricing(problem, settings, np.random.default_rng(0))
    searched = clock(REACH, lambda: [recourse.search(problem, rows, pricing.costs) for rows in members])
    full = clock(OPTIMA, lambda: [_full(found, settings) for found in searched])
    needed = max((each.d0_at_k0.value for each in full if each.n), default=None)
    limits = curves.limits(pricing.dearest(searched), needed)
    explained = clock(SELECT, lambda: [recourse.explain(found, limits.levels, settings.k) for found in searched])
    clock(TABLES, lambda: [[*tallies.coverage(of, limits), *tallies.areas(of, limits)] for of in explained])
    return Done(distinct, built, full, limits, explained, clock.seconds)


def fastest(scored: Scored, settings: FgceSettings) -> Done:
    """Returns the fastest of several runs."""
    return min((stages(scored, settings) for _ in range(TIMES)), key=lambda done: sum(done.seconds.values()))


def measure(scored: Scored, asked: str, rows: str, seed: str) -> dict[str, Any]:
    """Measures times, counts and peak memory of the stages on so many rows."""
    settings = FgceSettings.model_validate_json(asked)
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
        "optima": [_words(each) for each in done.full],
    }


def compare(scored: Scored, asked: str, rows: str, seed: str) -> dict[str, Any]:
    """Runs ``compared`` on the rows."""
    return compared(scored, FgceSettings.model_validate_json(asked), int(rows), int(seed))


def compared(scored: Scored, settings: FgceSettings, rows: int, seed: int) -> dict[str, Any]:
    """Times the arrays and the plain form for the same work on the same rows.

    Raises:
        RuntimeError: If they do not find the same edges, components and coverage.
    """
    sample, clock = scored.sample(rows, seed), Clock()
    stages(scored.sample(WARM_ROWS, seed), settings)
    done = fastest(sample, settings)
    ours = plain.Plain(
        done.edges_of_rows,
        tuple(len(np.unique(each.searched.reach.component)) for each in done.explained),
        tuple(each.selected.covered(each.offers.weight) for each in done.explained),
    )
    limits = [*done.limits.levels, np.inf]
    rules, epsilon = Rules(sample.direction), float(settings.epsilon)
    theirs = clock("plain", lambda: plain.explain(sample, rules, epsilon, limits, settings.k))
    _require_equal(ours, theirs)
    return {
        "rows": len(sample.group),
        "edges_of_rows": ours.edges,
        "factuals": int(sample.factual.sum()),
        "covered": sum(int(each[-1, -1]) for each in ours.covered),
        "cells": sum(each.size for each in ours.covered),
        "arrays_s": sum(done.seconds[stage] for stage in (COLLAPSE, GRAPH, REACH, SELECT)),
        "plain_s": clock.seconds["plain"],
    }


def _require_equal(ours: plain.Plain, theirs: plain.Plain) -> None:
    same = [np.array_equal(mine, other) for mine, other in zip(ours.covered, theirs.covered, strict=True)]
    if (ours.edges, ours.components) != (theirs.edges, theirs.components) or not all(same):
        raise RuntimeError(f"the arrays and the plain loops differ; the arrays: {ours}; the plain loops: {theirs}")


def _problem(scored: Scored, distinct: Distinct, graph: FeasibilityGraph) -> tuple[Problem, list[Longs]]:
    """The problem, and the rows of each of its groups."""
    groups, group = np.unique(scored.group, return_inverse=True)
    features = tuple(str(number) for number in np.unique(scored.feature))
    problem = Problem(
        encoded=scored.encoded,
        feature_of_column=scored.feature,
        features=features,
        group=group.astype(np.int32),
        groups=tuple(str(each) for each in groups),
        reference=0,
        factual=scored.factual,
        candidate=scored.candidate,
        node=distinct.node,
        graph=graph,
    )
    return problem, [np.flatnonzero(group == each) for each in range(len(groups))]


def _full(found: recourse.Searched, settings: FgceSettings) -> Full:
    tables = optima.tables_of(found, settings)
    if tables is None:
        raise RuntimeError("a group has more than exact_pairs pairs; its optima would be bounds")
    return optima.full(optima.parts_of(tables, found.weight), optima.solver_of(settings))


def _words(full: Full) -> str:
    """The optima of a group, with the reason of one that is none."""
    if not full.n:
        return "none coverable"
    reasons = full.k0.reason or full.d0_at_k0.reason
    values = f"k0 {full.k0.value:g}, d0 {full.d0.value:.4f}, at k0 {full.d0_at_k0.value:.4f}"
    return f"{full.n} coverable: {values}" + (f" ({reasons})" if reasons else "")


if __name__ == "__main__":
    answer(measure, compare)
