"""Connectivity of the feasibility graph at several epsilons (FGCE, section V, Figures 1 and 5).

One graph is built at the largest epsilon and cut back to the shorter ones. All counts are over rows, as in the paper:
equal rows are separate vertices, linked both ways, although they share a node here. No edge crosses a protected group,
so the components of the whole graph are those of its groups.

Scope: epsilons, cuts and counts by group, and the counts of the reference group subsampled to a group's size, because
components and singletons grow with the rows. Reachability: ``tasks.feasibility_graph.algorithm.reachability``.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.feasibility_graph.algorithm import graph as feasibility
from tasks.feasibility_graph.algorithm.graph import Distinct, Rules
from tasks.feasibility_graph.algorithm.reachability import components, induced
from tasks.feasibility_graph.settings import GraphSettings
from tasks.methods.fgce.algorithm.ablation import subsamples
from tasks.methods.fgce.algorithm.ablation.subsamples import Matched
from tasks.numerics.arrays import Bools, Ints, Longs
from tasks.numerics.problem import FeasibilityGraph
from tasks.numerics.results import Aggregate, Draws

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
        distinct, nodes = subsamples.thinned(self.distinct, rows)
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
    wanted = sorted(set(epsilons))
    while wanted:
        built = feasibility.build(distinct, rules, wanted[-1], probing)
        if not built.capped:
            return Nested(distinct, built.graph, tuple(wanted), settings.strict)
        wanted.pop()
    none = FeasibilityGraph(np.zeros(len(distinct.bucket) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0))
    return Nested(distinct, none, (), settings.strict)


def connections(joined: Nested) -> list[Connection]:
    """The nodes at each epsilon, ascending."""
    found, graph = [], joined.graph
    for epsilon in reversed(joined.epsilons):
        graph = within(graph, epsilon, joined.strict)
        found.append(_connection(epsilon, graph, joined.distinct.multiplicity))
    return found[::-1]


def within(graph: FeasibilityGraph, epsilon: float, strict: bool) -> FeasibilityGraph:
    """The graph with the edges that are no longer than ``epsilon`` (shorter, if ``strict``)."""
    near = graph.distances < epsilon if strict else graph.distances <= epsilon
    kept = np.flatnonzero(near)
    return FeasibilityGraph(np.searchsorted(kept, graph.indptr), graph.indices[kept], graph.distances[kept])


def _connection(epsilon: float, graph: FeasibilityGraph, multiplicity: Longs) -> Connection:
    weak, strong = components(graph)
    joined = np.diff(graph.indptr) > 0
    joined[graph.indices] = True
    passed = np.concatenate([[0], np.cumsum(multiplicity[graph.indices])])
    others = np.diff(passed[graph.indptr]) + multiplicity - 1
    return Connection(epsilon, weak, strong, ~joined & (multiplicity == 1), multiplicity * others)


def aggregates(
    found: Sequence[Connection], distinct: Distinct, group: Ints, groups: int, epsilons: Sequence[float]
) -> Iterator[Aggregate]:
    """Components, strong components, singletons and density of each group that has rows, at each epsilon.

    Density is the share of the ordered pairs of rows that are edges (the paper prints it in percent).

    Args:
        found: The connections.
        distinct: The nodes.
        group: ``(n,)`` group of each row; rows that share a node share a group.
        groups: Number of groups.
        epsilons: Radii that were asked for; one without a connection is refused with its reason.

    Raises:
        ValueError: If a component reaches into two groups: the protected attribute is then no stratum of the graph.
    """
    of_node = np.empty(len(distinct.bucket), dtype=np.int32)
    of_node[distinct.node] = group
    known = {each.epsilon: each for each in found}
    for epsilon in sorted(set(epsilons)):
        for number in range(groups):
            own = np.flatnonzero(of_node == number)
            rows = int(distinct.multiplicity[own].sum())
            if rows:
                yield from _of_group(known.get(epsilon), epsilon, own, rows, number)
        if epsilon in known:
            _hold_apart(known[epsilon], of_node)


def draws(joined: Nested, sizes: Sequence[Matched]) -> Iterator[Draws]:
    """The four measures of the reference group at the size of each smaller group, at each epsilon that has a graph."""
    for size in sizes:
        drawn = [[_values(found, len(rows)) for found in connections(joined.thinned(rows))] for rows in size.rows]
        for epsilon, values in zip(joined.epsilons, zip(*drawn, strict=True), strict=True):
            for measure in MEASURES:
                yield Draws(size.group, measure, {"epsilon": epsilon}, np.array([each[measure] for each in values]))


def _of_group(found: Connection | None, epsilon: float, own: Longs, rows: int, group: int) -> Iterator[Aggregate]:
    """The four measures of the nodes ``own``, which stand for ``rows`` rows."""
    values, reason = dict.fromkeys(MEASURES, math.nan), TOO_LARGE
    if found is not None:
        values, reason = _values(found.of(own), rows), "one row makes no pair"
    for measure, value in values.items():
        why = reason if math.isnan(value) else ""
        counted = None if math.isnan(value) or measure == DENSITY else int(value)
        at = {"epsilon": epsilon}
        yield Aggregate(group, 0, measure, at, value, rows, compared=False, events=counted, reason=why)


def _values(found: Connection, rows: int) -> dict[str, float]:
    """The four measures of all nodes of a connection, which stand for ``rows`` rows; no density of one row."""
    pairs = rows * (rows - 1)
    return {
        COMPONENTS: len(np.unique(found.weak)),
        STRONG_COMPONENTS: len(np.unique(found.strong)),
        SINGLETONS: int(found.alone.sum()),
        DENSITY: int(found.links.sum()) / pairs if pairs else math.nan,
    }


def _hold_apart(found: Connection, of_node: Ints) -> None:
    """Check that no component holds nodes of two groups."""
    _, first, part = np.unique(found.weak, return_index=True, return_inverse=True)
    if (of_node[first][part] != of_node).any():
        raise ValueError("a component holds rows of two groups; give the protected attribute to the graph as a stratum")
