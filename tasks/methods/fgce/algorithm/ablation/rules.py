"""Ablation of rules: recourse cost of each factual if a constraint, or the limit on one step, is lifted.

FGCE's search is repeated on another graph (FGCE, Table VI, does so for two data sets). Protected groups are strata of
the graph and never crossed, so one search serves every group of every protected attribute. A lifted rule is a thought
experiment about the graph: it is no advice, and it does not show what a rule causes.

Cost is the L2 distance in encoded units, whatever cost FGCE uses elsewhere: weights of paths depend on the graph, and
are not comparable between graphs (the paper's table takes L2 as well).

Scope: variants of the rules, order of the search, tallies and draws. Search: ``cheapest``. Connectivity by epsilon:
``connectivity``.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tasks.feasibility_graph.algorithm import graph
from tasks.feasibility_graph.algorithm.graph import IMMUTABLE, Rules
from tasks.feasibility_graph.settings import GraphSettings
from tasks.methods.fgce.algorithm.ablation.cheapest import Asked, Joined, cheapest
from tasks.methods.fgce.algorithm.ablation.names import EPSILON, EVERY, EVERY_AND_EPSILON
from tasks.methods.fgce.algorithm.ablation.subsamples import Matched
from tasks.numerics.arrays import Floats, Ints, Longs
from tasks.numerics.results import Draws, Tally

SHARE, BURDEN = "infeasible_share_without", "burden_without"


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

    def parameters(self, nearest: int | None) -> dict[str, float | str]:
        """What tells the measures of this variant from the others', and of how much of its graph they are."""
        return {"without": self.without} | ({} if nearest is None else {"nearest": nearest})


@dataclass(frozen=True)
class Searched:
    """The cheapest recourse under one variant: everyone's, and that of the reference group at other groups' sizes."""

    nearest: int | None
    """Out-edges kept per node, where the graph had to be cut down to them."""
    costs: tuple[Floats, ...]
    """For each question ``(n,)``: cost of the cheapest feasible candidate, NaN where there is none or none is asked."""
    drawn: tuple[Floats, ...]
    """For each size ``(questions, draws, 2)``: infeasible share and burden, NaN where no row has one."""


def variants(given: Variant, lifted: Mapping[str, tuple[Rules, Ints]], every: Rules) -> list[Variant]:
    """The rules as they are, without each constraint, without all of them, and each of the ends without epsilon.

    Args:
        given: The rules of the audit; ``without`` is ``names.NOTHING``.
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


def binding(variant: Variant, encoded: Floats) -> Variant:
    """The variant with every column that no step can change counted as immutable: the same graph, sooner built.

    No step changes a column whose values all lie further apart than epsilon, as those of a one-hot set mostly do. So
    variants that lift such a rule only are ``alike``, and need one search between them.

    Args:
        variant: The rules and the radius.
        encoded: ``(n, p)`` features in [0, 1].
    """
    gaps = np.array([np.diff(np.unique(values)).min(initial=math.inf) for values in encoded.T])
    # rounding may make a step a trifle shorter than its longest side
    out_of_reach = gaps > variant.epsilon * (1 + 1e-9)
    direction = np.where(out_of_reach, IMMUTABLE, variant.rules.direction).astype(np.int8)
    return replace(variant, rules=Rules(direction, variant.rules.transitions))


def alike(one: Variant, other: Variant) -> bool:
    """Whether two variants have the same rules and radius, whatever each says was lifted."""
    moves, others = one.rules.transitions, other.rules.transitions
    return (
        one.epsilon == other.epsilon
        and np.array_equal(one.rules.direction, other.rules.direction)
        and np.array_equal(one.codes, other.codes)
        and len(moves) == len(others)
        and all(a == b and np.array_equal(m, n) for (a, m), (b, n) in zip(moves, others, strict=True))
    )


def search(
    encoded: Floats,
    strata: Ints,
    variant: Variant,
    asked: Sequence[Asked],
    sizes: Sequence[Matched],
    settings: GraphSettings,
) -> Searched:
    """Find everyone's cheapest recourse under a variant, and again that of subsamples of the reference group.

    Without epsilon a candidate counts if one permitted step leads to it. Chains of permitted steps add nothing where
    the rules are transitive, as up, down and immutable are; allowed transitions need not be, and then only what one
    step reaches is counted. A subsample is searched on what its rows leave of the graph; of a graph that was cut down
    to the nearest steps, that is fewer than a graph of its own would have been cut down to.

    Args:
        encoded: ``(n, p)`` features in [0, 1].
        strata: ``(n, s)`` integers never to be crossed, every protected attribute among them.
        variant: The rules and the radius.
        asked: The questions.
        sizes: Subsamples of the reference group at the size of each smaller group.
        settings: Strictness, and the bounds of the graph's size.

    Raises:
        ValueError: If lengths differ.
        DataQualityError: If an encoded value is not finite, or a transition rule does not know a code.
    """
    distinct = graph.collapse(encoded, variant.codes, strata, variant.rules)
    joined, nearest = Joined(distinct, variant.rules, None), None
    if math.isfinite(variant.epsilon):
        built = graph.build(distinct, variant.rules, variant.epsilon, settings)
        joined, nearest = replace(joined, graph=built.graph), settings.nearest if built.capped else None
    drawn = tuple(np.stack([_drawn(joined, rows, asked) for rows in size.rows], axis=1) for size in sizes)
    return Searched(nearest, cheapest(joined, asked), drawn)


def _drawn(joined: Joined, rows: Longs, asked: Sequence[Asked]) -> Floats:
    """Infeasible share and burden of a subsample, ``(questions, 2)``."""
    alone = [each.of(rows) for each in asked]
    costs = cheapest(joined.thinned(rows), alone)
    return np.array([_share_and_burden(paid[each.factual]) for paid, each in zip(costs, alone, strict=True)])


def _share_and_burden(costs: Floats) -> tuple[float, float]:
    """Means over factual rows by their ``costs``; NaN where there is no row to take one of."""
    paid = costs[~np.isnan(costs)]
    return 1 - len(paid) / len(costs) if len(costs) else math.nan, float(paid.mean()) if len(paid) else math.nan


def tallies(parameters: Mapping[str, float | str], costs: Floats, group: Ints, groups: int) -> Iterator[Tally]:
    """Infeasible share and burden of each group that has factuals, by row.

    Args:
        parameters: What was lifted (``Variant.parameters``).
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
        said = {"headline": False, "compared": False}
        yield Tally(number, 0, SHARE, parameters, np.array([0.0, 1.0]), split, share=True, **said)
        values, counts = np.unique(own, return_counts=True)
        yield Tally(number, 0, BURDEN, parameters, values, counts.astype(np.int64), **said)


def draws(parameters: Mapping[str, float | str], drawn: Floats, group: int) -> Iterator[Draws]:
    """Infeasible share and burden of the reference group at the size of ``group``.

    Args:
        parameters: What was lifted (``Variant.parameters``).
        drawn: ``(draws, 2)`` of one question (``Searched.drawn``).
        group: The group.
    """
    for measure, values in zip((SHARE, BURDEN), drawn.T, strict=True):
        yield Draws(group, measure, parameters, values)
