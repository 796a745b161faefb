"""Ablation of rules: recourse cost if a constraint is lifted."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numba
import numpy as np

from tasks.feasibility_graph import algorithm
from tasks.feasibility_graph.algorithm import IMMUTABLE, Distinct, Rules, Words
from tasks.feasibility_graph.settings import GraphSettings
from tasks.methods.fgce.settings import EPSILON, EVERY, EVERY_AND_EPSILON
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.problem import FeasibilityGraph
from tasks.numerics.results import Draws, Tally

# --------------------------------------------------------------------------------------------------------------------
# Subsamples of the reference group at another group's size: drawn rows, and the nodes that remain.
#
# A small group has fewer candidates and a thinner graph under any rules (specs of FGCE, 'Epsilon and size'). So each
# measurement is repeated on subgraphs that subsamples of the reference group induce.
#
# Scope: rows and nodes. Measurements: ``rules`` and ``connectivity``.


@dataclass(frozen=True)
class Matched:
    """The reference group, subsampled to the size of a group."""

    group: int
    """The group of that size."""
    rows: tuple[Longs, ...]
    """For each draw ``(size,)`` rows of the reference group, ascending."""


def matched(group: Ints, groups: int, reference: int, draws: int, rng: np.random.Generator) -> list[Matched]:
    """Subsamples of the reference group, drawn without replacement, for every group that has rows and is smaller.

    Args:
        group: ``(n,)`` group of each row.
        groups: Number of groups.
        reference: The reference group.
        draws: Subsamples for each group; 0 for none.
        rng: One child generator is spawned per group, so that a group's draws do not depend on the other groups.
    """
    reference_rows, sizes = np.flatnonzero(group == reference), np.bincount(group, minlength=groups)
    return [
        Matched(number, tuple(np.sort(child.choice(reference_rows, size, replace=False)) for _ in range(draws)))
        for number, (size, child) in enumerate(zip(sizes, rng.spawn(groups), strict=True))
        if draws and 0 < size < len(reference_rows)
    ]


def thinned(distinct: Distinct, rows: Longs) -> tuple[Distinct, Longs]:
    """The nodes of ``rows`` ``(r,)``, for these rows alone, and their numbers ``(m,)`` among all nodes.

    They keep their order, so that buckets stay slices and the subgraph induced by the numbers is theirs.
    """
    nodes, node, multiplicity = np.unique(distinct.node[rows], return_inverse=True, return_counts=True)
    remaining = Distinct(
        encoded=distinct.encoded[nodes],
        codes=distinct.codes[nodes],
        bucket=distinct.bucket[nodes],
        node=node.astype(np.int32),
        multiplicity=multiplicity.astype(np.int64),
    )
    return remaining, nodes.astype(np.int64)


# --------------------------------------------------------------------------------------------------------------------
# Cheapest feasible candidate of every factual, on a whole graph or on some of its rows.
#
# Cost is the L2 distance of factual and candidate in encoded units. The questions of all decision makers are answered
# at once, because they share the expensive part, reachability. Scope: the search on one graph. Choice of graphs:
# ``rules``.


@dataclass(frozen=True)
class Query:
    """A search for recourse: the rows to explain and the candidates of one decision maker."""

    factual: Bools
    """``(n,)`` rows to explain."""
    candidate: Bools
    """``(n,)`` rows that may serve as a counterfactual."""

    def of(self, rows: Longs) -> "Query":
        """The same search, of some rows only."""
        return Query(self.factual[rows], self.candidate[rows])


@dataclass(frozen=True)
class Joined:
    """Rows, and how they are joined."""

    distinct: Distinct
    rules: Rules
    graph: FeasibilityGraph | None
    """None where a step may be of any length: all that break no rule are then steps, and too many to be stored."""

    def thinned(self, rows: Longs) -> "Joined":
        """What is left with ``rows`` ``(r,)`` alone."""
        distinct, nodes = thinned(self.distinct, rows)
        graph = None if self.graph is None else algorithm.induced(self.graph, nodes)
        return Joined(distinct, self.rules, graph)


def cheapest(joined: Joined, queries: Sequence[Query]) -> tuple[Floats, ...]:
    """Cost of each row's cheapest feasible candidate.

    Returns:
        For each query ``(n,)``; NaN where there is no feasible candidate or the row is not to be explained.
    """
    distinct, size = joined.distinct, len(joined.distinct.bucket)
    at_nodes = [
        Query(*(np.bincount(distinct.node[rows], minlength=size) > 0 for rows in (query.factual, query.candidate)))
        for query in queries
    ]
    costs = [np.full(size, np.inf) for _ in queries]
    if joined.graph is None:  # one permitted step leads to the candidate
        space = algorithm.space_of(distinct, joined.rules)
        for cost, query in zip(costs, at_nodes, strict=True):
            factuals, candidates = np.flatnonzero(query.factual), np.flatnonzero(query.candidate)
            cost[factuals] = algorithm.nearest_of(space, factuals, candidates)
    else:  # a directed path leads to it
        points, factual = distinct.encoded, np.any([query.factual for query in at_nodes], axis=0)
        candidate = np.any([query.candidate for query in at_nodes], axis=0)
        for part in algorithm.reachable(joined.graph, factual, candidate).active:
            for cost, query in zip(costs, at_nodes, strict=True):
                is_factual, is_candidate = query.factual[part.factuals], query.candidate[part.candidates]
                near, far = part.factuals[is_factual], part.candidates
                cost[near] = _cheapest_reached(points[near], points[far], part.bits[is_factual], is_candidate)
    finite_costs = (np.where(np.isfinite(cost), cost, np.nan)[distinct.node] for cost in costs)
    return tuple(np.where(query.factual, cost, np.nan) for query, cost in zip(queries, finite_costs, strict=True))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _cheapest_reached(near: Floats, far: Floats, bits: Words, is_candidate: Bools) -> Floats:
    """L2 distance of each of ``near`` ``(f, p)`` to the nearest ``is_candidate`` of ``far`` ``(c, p)``, by its bit."""
    best = np.full(near.shape[0], np.inf)
    for i in range(near.shape[0]):
        for j in range(far.shape[0]):
            if not is_candidate[j] or not (bits[i, j // 64] >> np.uint64(j % 64)) & np.uint64(1):
                continue
            total = 0.0
            for column in range(near.shape[1]):
                total += (near[i, column] - far[j, column]) ** 2
                if total >= best[i]:
                    break
            best[i] = min(best[i], total)
    nearest: Floats = np.sqrt(best)
    return nearest


# --------------------------------------------------------------------------------------------------------------------
# Ablation of rules: recourse cost of each factual if a constraint, or the limit on one step, is lifted.
#
# FGCE's search is repeated on another graph (FGCE, Table VI, does so for two data sets). Protected groups are strata of
# the graph and never crossed, so one search serves every group of every protected attribute. A lifted rule is a thought
# experiment about the graph: it is no advice, and it does not show what a rule causes.
#
# Cost is the L2 distance in encoded units, whatever cost FGCE uses elsewhere: weights of paths depend on the graph, and
# are not comparable between graphs (the paper's table takes L2 as well).
#
# Scope: variants of the rules, order of the search, tallies and draws. Search: ``cheapest``. Connectivity by epsilon:
# ``connectivity``.


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
        """The parameters of this variant's measures: what was lifted, and how many steps its graph keeps per node."""
        return {"without": self.without} | ({} if nearest is None else {"nearest": nearest})


@dataclass(frozen=True)
class Searched:
    """The cheapest recourse under one variant: everyone's, and that of the reference group at other groups' sizes."""

    nearest: int | None
    """Out-edges kept per node, where the graph had to be cut down to them."""
    costs: tuple[Floats, ...]
    """For each query ``(n,)``: cost of the cheapest feasible candidate, NaN without one or without a search."""
    subsamples: tuple[Floats, ...]
    """For each size ``(queries, draws, 2)``: infeasible share and burden, NaN where no row has one."""


def variants(base: Variant, lifted: Mapping[str, tuple[Rules, Ints]], every: Rules) -> list[Variant]:
    """The rules as they are, without each constraint, without all of them, and each of the ends without epsilon.

    Args:
        base: The rules of the audit; ``without`` is ``names.NOTHING``.
        lifted: For each constrained feature, the rules and codes without its constraint.
        every: The rules without any constraint; no code is needed then.
    """
    none = np.zeros((len(base.codes), 0), dtype=np.int32)
    single = [Variant(name, rules, codes, base.epsilon) for name, (rules, codes) in lifted.items()]
    far = Variant(EPSILON, base.rules, base.codes, math.inf)
    if not single:
        return [base, far]
    without_rules = [Variant(EVERY, every, none, base.epsilon), Variant(EVERY_AND_EPSILON, every, none, math.inf)]
    return [base, *single, far, *without_rules]


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


def alike(first: Variant, other: Variant) -> bool:
    """Whether two variants have the same rules and radius; the lifted rules may differ."""
    moves, other_moves = first.rules.transitions, other.rules.transitions
    return (
        first.epsilon == other.epsilon
        and np.array_equal(first.rules.direction, other.rules.direction)
        and np.array_equal(first.codes, other.codes)
        and len(moves) == len(other_moves)
        and all(a == b and np.array_equal(m, n) for (a, m), (b, n) in zip(moves, other_moves, strict=True))
    )


def search(
    encoded: Floats,
    strata: Ints,
    variant: Variant,
    queries: Sequence[Query],
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
        queries: The questions.
        sizes: Subsamples of the reference group at the size of each smaller group.
        settings: Strictness, and the bounds of the graph's size.

    Raises:
        ValueError: If lengths differ.
        DataQualityError: If an encoded value is not finite, or a transition rule does not know a code.
    """
    distinct = algorithm.collapse(encoded, variant.codes, strata, variant.rules)
    joined, nearest = Joined(distinct, variant.rules, None), None
    if math.isfinite(variant.epsilon):
        built = algorithm.build(distinct, variant.rules, variant.epsilon, settings)
        joined, nearest = replace(joined, graph=built.graph), settings.nearest if built.capped else None
    drawn_shares = tuple(np.stack([_subsample(joined, rows, queries) for rows in size.rows], axis=1) for size in sizes)
    return Searched(nearest, cheapest(joined, queries), drawn_shares)


def _subsample(joined: Joined, rows: Longs, queries: Sequence[Query]) -> Floats:
    """Infeasible share and burden of a subsample, ``(queries, 2)``; NaN where there is no row to take a mean of."""
    alone, means = [query.of(rows) for query in queries], []
    for costs, query in zip(cheapest(joined.thinned(rows), alone), alone, strict=True):
        factual_costs = costs[query.factual]
        paid = factual_costs[~np.isnan(factual_costs)]
        refused = 1 - len(paid) / len(factual_costs) if len(factual_costs) else math.nan
        means.append((refused, float(paid.mean()) if len(paid) else math.nan))
    return np.array(means)


def tallies(parameters: Mapping[str, float | str], costs: Floats, group: Ints, groups: int) -> Iterator[Tally]:
    """Infeasible share and burden of each group that has factuals, by row.

    Args:
        parameters: What was lifted (``Variant.parameters``).
        costs: ``(f,)`` cost of each factual row, NaN where it has no feasible candidate.
        group: ``(f,)`` group of each.
        groups: Number of groups.
    """
    for number in range(groups):
        group_costs = costs[group == number]
        if not len(group_costs):
            continue
        refused = int(np.isnan(group_costs).sum())
        split = np.array([len(group_costs) - refused, refused], dtype=np.int64)
        flags = {"headline": False, "compared": False}
        yield Tally(number, 0, SHARE, parameters, np.array([0.0, 1.0]), split, share=True, **flags)
        values, counts = np.unique(group_costs, return_counts=True)
        yield Tally(number, 0, BURDEN, parameters, values, counts.astype(np.int64), **flags)


def draws(parameters: Mapping[str, float | str], drawn_shares: Floats, group: int) -> Iterator[Draws]:
    """Infeasible share and burden of the reference group at the size of ``group``.

    Args:
        parameters: What was lifted (``Variant.parameters``).
        drawn_shares: ``(draws, 2)`` of one question (``Searched.subsamples``).
        group: The group.
    """
    for measure, values in zip((SHARE, BURDEN), drawn_shares.T, strict=True):
        yield Draws(group, measure, parameters, values)


# --------------------------------------------------------------------------------------------------------------------
# Whether proposed changes are possible: a feasible path leads from the applicant to what is proposed (FGCE, Table VI).
#
# Proposals come from anywhere, so they are no rows of the data. Each is joined to the graph as a node without steps of
# its own. It is possible if the applicant, or a row that the applicant can reach, is a permitted step within epsilon
# away from it. Without epsilon one permitted step of any length must lead from the applicant to it, as in ``rules``.
#
# Scope: the check of any list of proposals. Systems that propose: ``research.fgce.group_explanations``.


@dataclass(frozen=True)
class Proposed:
    """Rows of the data, and one proposal for each of some of them."""

    encoded: Floats
    """``(n + f, p)`` features in [0, 1]: the ``n`` rows, then the ``f`` proposals."""
    strata: Ints
    """``(n + f, s)`` integers never to be crossed."""
    applicant: Longs
    """``(f,)`` row of the applicant of each proposal."""

    @property
    def rows(self) -> int:
        """``n``."""
        return len(self.encoded) - len(self.applicant)


def possible(proposed: Proposed, variant: Variant, settings: GraphSettings) -> Bools:
    """Returns which proposals a feasible path reaches.

    Args:
        proposed: The rows and the proposals.
        variant: The rules and the radius; its ``codes`` are of rows and proposals, ``(n + f, t)``.
        settings: Strictness, and the bounds of the graph's size.

    Returns:
        ``(f,)``. A proposal that changes nothing is possible.

    Raises:
        ValueError: If lengths differ.
        DataQualityError: If an encoded value is not finite, or a transition rule does not know a code.
    """
    distinct = algorithm.collapse(proposed.encoded, variant.codes, proposed.strata, variant.rules)
    start, end = distinct.node[proposed.applicant], distinct.node[proposed.rows :]
    if not math.isfinite(variant.epsilon):
        space = algorithm.space_of(distinct, variant.rules)
        steps = [
            algorithm.nearest_of(space, source, other)[0]
            for source, other in zip(start[:, None], end[:, None], strict=True)
        ]
        return np.asarray(np.isfinite(steps))
    built = algorithm.build(distinct, variant.rules, variant.epsilon, settings)
    data = np.zeros(built.graph.size, dtype=np.bool_)
    data[distinct.node[: proposed.rows]] = True
    # a proposal has no steps of its own: all edges out of nodes without a row of the data go
    is_kept = np.repeat(data, np.diff(built.graph.indptr))
    indptr = np.concatenate([[0], np.cumsum(is_kept)])[built.graph.indptr]
    graph = FeasibilityGraph(indptr, built.graph.indices[is_kept], built.graph.distances[is_kept])
    factual, candidate = np.zeros((2, graph.size), dtype=np.bool_)
    factual[start] = True
    candidate[end] = True
    is_reached = np.zeros(len(start), dtype=np.bool_)
    for part in algorithm.reachable(graph, factual, candidate).active:
        row, column = (
            np.searchsorted(nodes, endpoint) for nodes, endpoint in ((part.factuals, start), (part.candidates, end))
        )
        inside = np.isin(start, part.factuals) & np.isin(end, part.candidates)
        is_reached[inside] = part.reach()[row[inside], column[inside]]
    return is_reached
