"""Connectivity of the feasibility graph, and infeasible shares against relabelled groups."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numba
import numpy as np
from scipy.sparse import csr_array

from tasks.feasibility_graph import algorithm as feasibility
from tasks.feasibility_graph.algorithm import Distinct, Rules, Words, components, induced
from tasks.feasibility_graph.settings import GraphSettings
from tasks.methods.fgce.algorithm import ablation
from tasks.methods.fgce.algorithm.ablation import Matched, Query
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.problem import FeasibilityGraph
from tasks.numerics.results import Aggregate, Draws, Inference
from tasks.numerics.statistics import regression

# --------------------------------------------------------------------------------------------------------------------
# Connectivity of the feasibility graph at several epsilons (FGCE, section V, Figures 1 and 5).
#
# One graph is built at the largest epsilon and cut back to the shorter ones. All counts are over rows, as in the paper:
# equal rows are separate vertices, linked both ways, although they share a node here. No edge crosses a protected
# group, so the components of the whole graph are those of its groups.
#
# Scope: epsilons, cuts and counts by group, and the counts of the reference group subsampled to a group's size, because
# components and singletons grow with the rows. Reachability: ``tasks.feasibility_graph.algorithm``.


MULTIPLES = (0.25, 0.5, 0.625, 0.75, 0.875, 1.0, 1.25, 1.5)
"""Epsilons to look at, as multiples of the chosen one."""

COMPONENTS, STRONG_COMPONENTS, SINGLETONS, DENSITY = "components", "strong_components", "singletons", "density"
MEASURES = (COMPONENTS, STRONG_COMPONENTS, SINGLETONS, DENSITY)

TOO_LARGE = "the graph would have more than max_edges edges"


@dataclass(frozen=True)
class Connection:
    """How the nodes hang together at one epsilon."""

    epsilon: float
    """Radius of one step in encoded units."""
    weak: Ints
    """``(m,)`` weakly connected component of each node."""
    strong: Ints
    """``(m,)`` strongly connected component of each node."""
    alone: Bools
    """``(m,)`` whether the node is one row without an edge in or out; a row with an equal one is not alone."""
    links: Longs
    """``(m,)`` directed edges out of the node's rows, those between equal rows included."""

    def of(self, nodes: Longs) -> "Connection":
        """Some of the nodes only."""
        return Connection(self.epsilon, self.weak[nodes], self.strong[nodes], self.alone[nodes], self.links[nodes])


@dataclass(frozen=True)
class Nested:
    """The graphs of several epsilons: each is the widest one, cut back."""

    distinct: Distinct
    graph: FeasibilityGraph
    """At the largest of ``epsilons``."""
    epsilons: tuple[float, ...]
    """Radii of one step in encoded units, ascending."""
    strict: bool
    """Whether a radius is itself out of reach."""

    def thinned(self, rows: Longs) -> "Nested":
        """What is left with ``rows`` ``(r,)`` alone."""
        distinct, nodes = ablation.thinned(self.distinct, rows)
        return Nested(distinct, induced(self.graph, nodes), self.epsilons, self.strict)


def nested(distinct: Distinct, rules: Rules, epsilons: Sequence[float], settings: GraphSettings) -> Nested:
    """The graphs at several epsilons, without those that have more than ``max_edges`` edges.

    Args:
        distinct: The nodes.
        rules: The constraints.
        epsilons: Radii in encoded units.
        settings: ``max_edges``; and ``strict``, whether a radius is itself out of reach.
    """
    probing = settings.model_copy(update={"nearest": 1})  # a graph that is cut down is of no use here
    remaining_epsilons = sorted(set(epsilons))
    while remaining_epsilons:
        built = feasibility.build(distinct, rules, remaining_epsilons[-1], probing)
        if not built.capped:
            return Nested(distinct, built.graph, tuple(remaining_epsilons), settings.strict)
        remaining_epsilons.pop()
    none = FeasibilityGraph(np.zeros(len(distinct.bucket) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0))
    return Nested(distinct, none, (), settings.strict)


def connections(joined: Nested) -> list[Connection]:
    """The nodes at each epsilon, ascending."""
    by_epsilon, graph, multiplicity = [], joined.graph, joined.distinct.multiplicity
    for epsilon in reversed(joined.epsilons):
        graph = within(graph, epsilon, joined.strict)
        weak, strong = components(graph)
        has_edge = np.diff(graph.indptr) > 0
        has_edge[graph.indices] = True
        passed = np.concatenate([[0], np.cumsum(multiplicity[graph.indices])])
        links = multiplicity * (np.diff(passed[graph.indptr]) + multiplicity - 1)
        by_epsilon.append(Connection(epsilon, weak, strong, ~has_edge & (multiplicity == 1), links))
    return by_epsilon[::-1]


def within(graph: FeasibilityGraph, epsilon: float, strict: bool) -> FeasibilityGraph:
    """The graph with the edges that are no longer than ``epsilon`` (shorter, if ``strict``)."""
    near = graph.distances < epsilon if strict else graph.distances <= epsilon
    edges = np.flatnonzero(near)
    return FeasibilityGraph(np.searchsorted(edges, graph.indptr), graph.indices[edges], graph.distances[edges])


def aggregates(
    connected: Sequence[Connection], distinct: Distinct, group: Ints, groups: int, epsilons: Sequence[float]
) -> Iterator[Aggregate]:
    """Components, strong components, singletons and density of each group that has rows, at each epsilon.

    Density is the share of the ordered pairs of rows that are edges (the paper prints it in percent).

    Args:
        connected: The connections.
        distinct: The nodes.
        group: ``(n,)`` group of each row; rows that share a node share a group.
        groups: Number of groups.
        epsilons: The requested radii; one without a connection is refused with its reason.

    Raises:
        ValueError: If a component reaches into two groups: the protected attribute is then no stratum of the graph.
    """
    of_node = np.empty(len(distinct.bucket), dtype=np.int32)
    of_node[distinct.node] = group
    connection_of_epsilon = {connection.epsilon: connection for connection in connected}
    for epsilon in sorted(set(epsilons)):
        for number in range(groups):
            group_nodes = np.flatnonzero(of_node == number)
            rows = int(distinct.multiplicity[group_nodes].sum())
            if rows:
                connection = connection_of_epsilon.get(epsilon)
                values, reason = dict.fromkeys(MEASURES, math.nan), TOO_LARGE
                if connection is not None:
                    values, reason = _values(connection.of(group_nodes), rows), "one row makes no pair"
                for measure, value in values.items():
                    why = reason if math.isnan(value) else ""
                    count = None if math.isnan(value) or measure == DENSITY else int(value)
                    at = {"epsilon": epsilon}
                    yield Aggregate(number, 0, measure, at, value, rows, compared=False, events=count, reason=why)
        if epsilon in connection_of_epsilon:
            _, first, part = np.unique(connection_of_epsilon[epsilon].weak, return_index=True, return_inverse=True)
            if (of_node[first][part] != of_node).any():
                raise ValueError(
                    "a component holds rows of two groups; give the protected attribute to the graph as a stratum"
                )


def draws(joined: Nested, sizes: Sequence[Matched]) -> Iterator[Draws]:
    """The four measures of the reference group at the size of each smaller group, at each epsilon that has a graph."""
    for size in sizes:
        draw_values = [
            [_values(connection, len(rows)) for connection in connections(joined.thinned(rows))] for rows in size.rows
        ]
        for epsilon, values in zip(joined.epsilons, zip(*draw_values, strict=True), strict=True):
            for measure in MEASURES:
                yield Draws(
                    size.group, measure, {"epsilon": epsilon}, np.array([measures[measure] for measures in values])
                )


def _values(connection: Connection, rows: int) -> dict[str, float]:
    """The four measures of all nodes of a connection, ``rows`` rows in all; no density of one row."""
    pairs = rows * (rows - 1)
    return {
        COMPONENTS: len(np.unique(connection.weak)),
        STRONG_COMPONENTS: len(np.unique(connection.strong)),
        SINGLETONS: int(connection.alone.sum()),
        DENSITY: int(connection.links.sum()) / pairs if pairs else math.nan,
    }


# --------------------------------------------------------------------------------------------------------------------
# Infeasible share of a group against sets of its own size whose labels were drawn within propensity strata.
#
# The share depends on the number of rows and on their finances, so that it has no value to cover. The null is instead:
# given the propensity of being in the group, labels do not matter. A draw relabels as many applicants of the group and
# the reference group as the group has, stratum by stratum, and counts who has no feasible candidate in the graph that
# these rows induce. The mean over draws, not 0, is what the group's own share is held against.
#
# Scope: labels, shares of all draws at once, and the test. The graph of both groups: ``tasks.methods.fgce.ablate``.


DIFFERENCE, MEAN = "infeasible_share_relabelled", "infeasible_share_under_relabelling"

NO_FACTUAL = "no factual: nobody has anything to be explained"
NOBODY_ELSE = "the reference group has no rows, from whom labels could be exchanged"

WORD = 64
"""Draws that one word holds."""


@dataclass(frozen=True)
class Labels:
    """Who counts as a member: the group as it is, and as it was relabelled."""

    member: Bools
    """``(draws + 1, n)``; the group itself first."""
    alone: int
    """Members of the group in strata without anybody of the reference group: every draw keeps them."""


def design(encoded: Floats, strata: Ints) -> Floats:
    """``(n, d)`` rows for the propensity: 1, encoded columns, squares of those that are no indicators, and strata.

    Args:
        encoded: ``(n, p)`` features in [0, 1], without those that the group is made of.
        strata: ``(n, s)`` integers that no step crosses.
    """
    numbers = [column for column in encoded.T if len(np.unique(column)) > 1]
    squares = [column**2 for column in numbers if len(np.unique(column)) > 2]
    kinds = [stratum == code for stratum in strata.T for code in np.unique(stratum)[1:]]
    columns = [np.asarray(column, np.float64) for column in (*numbers, *squares, *kinds)]
    scaled = [(column - column.mean()) / column.std() for column in columns]
    return np.column_stack([np.ones(len(encoded)), *scaled])


def labels(rows: Floats, member: Bools, draws: int, rng: np.random.Generator) -> Labels:
    """Labels permuted within 30 strata of the propensity of the group.

    Args:
        rows: ``(n, d)`` as ``design`` makes them.
        member: ``(n,)`` who is of the group; all others are of the reference group.
        draws: Times that labels are permuted.
        rng: Permutes them.
    """
    stratum = regression.strata(regression.propensity(rows, member))
    member_draws, alone = np.tile(member, (draws + 1, 1)), 0
    for number in np.unique(stratum):
        inside = np.flatnonzero(stratum == number)
        member_draws[1:, inside] = rng.permuted(member_draws[1:, inside], axis=1)
        alone += len(inside) if member[inside].all() else 0
    return Labels(member_draws, alone)


@dataclass(frozen=True)
class Backwards:
    """A graph by its edges into each node."""

    starts: Longs
    """``(m + 1,)`` start of each node's in-edges."""
    sources: Longs
    """Where these come from."""
    node: Ints
    """``(n,)`` node of each row."""

    @classmethod
    def of(cls, graph: FeasibilityGraph, node: Ints) -> "Backwards":
        """The graph of some rows, turned round."""
        edges = np.ones(len(graph.indices), np.int8), graph.indices, graph.indptr
        into = csr_array(edges, shape=(graph.size, graph.size)).tocsc()
        return cls(into.indptr.astype(np.int64), into.indices.astype(np.int64), node)

    def rows(self, chosen: Longs) -> "Backwards":
        """The same for some of the rows only, ``(r,)``; nodes stay where they are."""
        return Backwards(self.starts, self.sources, self.node[chosen])


def shares(graph: Backwards, member_labels: Labels, query: Query) -> Floats:
    """Infeasible share of each set of members in the graph that its rows induce, ``(draws + 1,)``; NaN without factual.

    Args:
        graph: Its edges may join the groups.
        member_labels: The sets.
        query: Rows to explain, and candidates.
    """
    firsts = range(0, len(member_labels.member), WORD)
    return np.concatenate([_shares(graph, member_labels.member[first : first + WORD], query) for first in firsts])


def _shares(graph: Backwards, member: Bools, query: Query) -> Floats:
    """The same of at most ``WORD`` sets, each of them one bit."""
    bits, node = np.zeros(member.shape[1], np.uint64), graph.node
    for bit, labels_of_draw in enumerate(member):
        bits |= labels_of_draw.astype(np.uint64) << np.uint64(bit)
    inside, reached = (np.zeros(len(graph.starts) - 1, np.uint64) for _ in range(2))
    np.bitwise_or.at(inside, node, bits)
    np.bitwise_or.at(reached, node[query.candidate], bits[query.candidate])
    _spread(graph.starts, graph.sources, inside, reached)
    refused = bits[query.factual] & ~reached[node[query.factual]]
    count, every = (
        np.array([float(((words >> np.uint64(bit)) & np.uint64(1)).sum()) for bit in range(len(member))])
        for words in (refused, bits[query.factual])
    )
    refused_shares: Floats = np.divide(count, every, out=np.full(len(member), np.nan), where=every > 0)
    return refused_shares


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _spread(starts: Longs, sources: Longs, inside: Words, reached: Words) -> None:
    """Pass what is reached backwards along the edges, within the sets that a node is in, until nothing changes.

    Args:
        starts: ``(m + 1,)`` start of each node's in-edges.
        sources: Where these come from.
        inside: ``(m,)`` the sets that a node is in.
        reached: ``(m,)`` the sets in which it reaches a candidate; written to.
    """
    size = inside.shape[0]
    queue, waits = np.empty(size, np.int64), np.zeros(size, np.bool_)
    first, count = 0, 0
    for node in range(size):
        if reached[node]:
            queue[count] = node
            waits[node] = True
            count += 1
    while count:
        node = queue[first]
        first = (first + 1) % size
        count -= 1
        waits[node] = False
        for edge in range(starts[node], starts[node + 1]):
            source = sources[edge]
            reached_bits = reached[source] | (reached[node] & inside[source])
            if reached_bits != reached[source]:
                reached[source] = reached_bits
                if not waits[source]:
                    queue[(first + count) % size] = source
                    waits[source] = True
                    count += 1


def relabelled_draws(group: int, share: Floats) -> list[Draws]:
    """The draws of ``relabelled_aggregates``, less their mean: what the difference is by chance alone."""
    values = share[1:][np.isfinite(share[1:])]
    return [Draws(group, DIFFERENCE, {}, values - values.mean(), reference="null")] if len(values) else []


def relabelled_aggregates(group: int, share: Floats, alone: int, n: int) -> Iterator[Aggregate]:
    """How far the group's share lies above the mean of its draws, with the p of that, and the mean.

    Args:
        group: Its number.
        share: ``(draws + 1,)`` infeasible shares, its own first.
        alone: Members whom every draw keeps (``Labels.alone``).
        n: Its factual rows.
    """
    drawn_shares = share[1:][np.isfinite(share[1:])]
    note = f"{alone:,} applicants of the group are like nobody of the reference group, and are in every draw"
    mean = float(drawn_shares.mean()) if len(drawn_shares) else float("nan")
    reason = (note if alone else "") if len(drawn_shares) else "no draw has a factual"
    p = regression.p_of(float(share[0]), drawn_shares) if len(drawn_shares) else float("nan")
    value = float(share[0]) - mean
    yield Aggregate(group, 0, DIFFERENCE, {}, value, n, compared=False, reason=reason, inference=Inference(p=p))
    yield Aggregate(group, 0, MEAN, {}, mean, n, compared=False, reason=reason)


def refused(group: int, reason: str, n: int = 0) -> Iterator[Aggregate]:
    """The same of a group that nothing can be drawn for."""
    for measure in (DIFFERENCE, MEAN):
        yield Aggregate(group, 0, measure, {}, float("nan"), n, compared=False, reason=reason)
