"""Recourse under other rules: what each factual would pay if a constraint, or the limit on one step, were lifted.

The search is FGCE's own, made again on another graph (FGCE, Table VI, which does so for two data sets). Protected
groups are never crossed, whatever is lifted, because they are strata of the graph. So one search serves every group of
every protected attribute: no path leads from one into another. A lifted rule is a thought experiment about the graph.
It is no advice to anyone, and it does not show what a rule causes.

Cost is the L2 distance of factual and candidate in encoded units, whatever FGCE is told to count elsewhere: the weight
of a path depends on the graph, and so could not be compared between graphs (the paper's table takes L2 as well).

Here belong variants of the rules, the search and its tallies. Connectivity against epsilon is in ``connectivity``.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numba
import numpy as np

from schemas.methods import FgceSettings
from tasks.algorithms import feasibility, radius, reachability
from tasks.algorithms.detector import Bools, FeasibilityGraph, Floats, Ints, Longs, Tally
from tasks.algorithms.feasibility import Distinct, Rules
from tasks.algorithms.reachability import Words

SHARE, BURDEN = "infeasible_share_without", "burden_without"

NOTHING, EPSILON = "nothing", "epsilon"
EVERY, EVERY_AND_EPSILON = "every constraint", "every constraint and epsilon"
NAMES = (NOTHING, EPSILON, EVERY, EVERY_AND_EPSILON)
"""What is lifted, where it is not the constraint of one feature."""


@dataclass(frozen=True)
class Variant:
    """The rules with something lifted."""

    without: str
    """What is lifted: a feature's name, or one of the words above."""
    rules: Rules
    codes: Ints
    """``(n, t)`` category codes of the columns that still have a transition rule."""
    epsilon: float
    """Radius of one step; ``inf`` where a step may be of any length."""


@dataclass(frozen=True)
class Asked:
    """Whose recourse is searched for: the rows of one decision maker."""

    factual: Bools
    """``(n,)`` rows to explain."""
    candidate: Bools
    """``(n,)`` rows that may serve as a counterfactual."""


@dataclass(frozen=True)
class Searched:
    """The cheapest recourse under one variant."""

    parameters: Mapping[str, float | str]
    """``without``; and ``nearest``, the out-edges kept per node, where the graph had to be cut down to them."""
    costs: tuple[Floats, ...]
    """For each question ``(n,)``: cost of the cheapest feasible candidate, NaN where there is none or none is asked."""


def variants(given: Variant, lifted: Mapping[str, tuple[Rules, Ints]], every: Rules) -> list[Variant]:
    """The rules as they are, without each constraint, without all of them, and each of the ends without epsilon.

    Args:
        given: The rules of the audit; ``without`` is ``NOTHING``.
        lifted: For each constrained feature, the rules and codes without its constraint.
        every: The rules without any constraint; no code is needed then.
    """
    none = np.zeros((len(given.codes), 0), dtype=np.int32)
    single = [Variant(name, rules, codes, given.epsilon) for name, (rules, codes) in lifted.items()]
    far = Variant(EPSILON, given.rules, given.codes, math.inf)
    if not single:
        return [given, far]
    whole = [Variant(EVERY, every, none, given.epsilon), Variant(EVERY_AND_EPSILON, every, none, math.inf)]
    return [given, *single, far, *whole]


def search(
    encoded: Floats, strata: Ints, variant: Variant, asked: tuple[Asked, ...], settings: FgceSettings
) -> Searched:
    """Find everyone's cheapest recourse under a variant.

    Without epsilon a candidate counts if one permitted step leads to it. Chains of permitted steps add nothing where
    the rules are transitive, as up, down and immutable are; allowed transitions need not be, and then only what one
    step reaches is counted.

    Args:
        encoded: ``(n, p)`` features in [0, 1].
        strata: ``(n, s)`` integers never to be crossed, every protected attribute among them.
        variant: The rules and the radius.
        asked: The questions.
        settings: Strictness, and the bounds of the graph's size.

    Raises:
        ValueError: If lengths differ.
        DataQualityError: If an encoded value is not finite, or a transition rule does not know a code.
    """
    distinct = feasibility.collapse(encoded, variant.codes, strata, variant.rules)
    said: dict[str, float | str] = {"without": variant.without}
    if math.isinf(variant.epsilon):
        return Searched(said, tuple(cheapest_step(distinct, variant.rules, each) for each in asked))
    built = feasibility.build(distinct, variant.rules, variant.epsilon, settings)
    if built.capped:
        said["nearest"] = settings.nearest
    return Searched(said, tuple(cheapest_path(distinct, built.graph, each) for each in asked))


def cheapest_path(distinct: Distinct, graph: FeasibilityGraph, asked: Asked) -> Floats:
    """Cost of the cheapest candidate that a directed path leads to, ``(n,)``; NaN where there is none."""
    factuals, candidates = _nodes(distinct, asked)
    size = len(distinct.bucket)
    reach = reachability.reachable(graph, _mask(factuals, size), _mask(candidates, size))
    cost = np.full(size, np.inf)
    for part in reach.active:
        near, far = distinct.encoded[part.factuals], distinct.encoded[part.candidates]
        cost[part.factuals] = _cheapest_reached(near, far, part.bits)
    return _of_rows(cost, distinct, asked)


def cheapest_step(distinct: Distinct, rules: Rules, asked: Asked) -> Floats:
    """Cost of the cheapest candidate that one permitted step of any length leads to, ``(n,)``; NaN if there is none."""
    factuals, candidates = _nodes(distinct, asked)
    cost = np.full(len(distinct.bucket), np.inf)
    cost[factuals] = radius.nearest_of(feasibility.space_of(distinct, rules), factuals, candidates)
    return _of_rows(cost, distinct, asked)


def tallies(parameters: Mapping[str, float | str], costs: Floats, group: Ints, groups: int) -> Iterator[Tally]:
    """Infeasible share and burden of each group that has factuals, by row.

    Args:
        parameters: What was lifted (``Searched.parameters``).
        costs: ``(f,)`` cost of each factual row, NaN where it has no feasible candidate.
        group: ``(f,)`` group of each.
        groups: Number of groups.
    """
    for number in range(groups):
        own = costs[group == number]
        if not len(own):
            continue
        refused = int(np.isnan(own).sum())
        split = np.array([len(own) - refused, refused], dtype=np.int64)
        yield Tally(number, 0, SHARE, parameters, np.array([0.0, 1.0]), split, headline=False, compared=False)
        values, counts = np.unique(own, return_counts=True)
        yield Tally(number, 0, BURDEN, parameters, values, counts.astype(np.int64), headline=False, compared=False)


def _nodes(distinct: Distinct, asked: Asked) -> tuple[Longs, Longs]:
    """Nodes with a factual row and nodes with a candidate row, ascending."""
    factuals, candidates = (np.unique(distinct.node[rows]) for rows in (asked.factual, asked.candidate))
    return factuals.astype(np.int64), candidates.astype(np.int64)


def _mask(nodes: Longs, size: int) -> Bools:
    mask = np.zeros(size, dtype=np.bool_)
    mask[nodes] = True
    return mask


def _of_rows(cost: Floats, distinct: Distinct, asked: Asked) -> Floats:
    """Costs of nodes as costs of the rows that were asked about."""
    known = np.where(np.isfinite(cost), cost, np.nan)[distinct.node]
    return np.where(asked.factual, known, np.nan)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _cheapest_reached(near: Floats, far: Floats, bits: Words) -> Floats:
    """L2 distance of each of ``near`` ``(f, p)`` to the nearest of ``far`` ``(c, p)`` whose bit is set."""
    best = np.full(near.shape[0], np.inf)
    for i in range(near.shape[0]):
        for j in range(far.shape[0]):
            if not (bits[i, j // 64] >> np.uint64(j % 64)) & np.uint64(1):
                continue
            total = 0.0
            for column in range(near.shape[1]):
                total += (near[i, column] - far[j, column]) ** 2
                if total >= best[i]:
                    break
            best[i] = min(best[i], total)
    nearest: Floats = np.sqrt(best)
    return nearest
