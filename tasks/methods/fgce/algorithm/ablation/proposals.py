"""Whether proposed changes are possible: a feasible path leads from the applicant to what is proposed (FGCE, Table VI).

Proposals come from anywhere, so they are no rows of the data. Each is joined to the graph as a node without steps of
its own. It is possible if the applicant, or a row that the applicant can reach, is a permitted step within epsilon away
from it. Without epsilon one permitted step of any length must lead from the applicant to it, as in ``rules``.

Scope: the check of any list of proposals. Systems that propose: ``tasks.baselines.algorithm.explanations``.
"""

import math
from dataclasses import dataclass

import numpy as np

from tasks.feasibility_graph.algorithm import graph as feasibility
from tasks.feasibility_graph.algorithm import radius, reachability
from tasks.feasibility_graph.algorithm.graph import Distinct
from tasks.feasibility_graph.settings import GraphSettings
from tasks.methods.fgce.algorithm.ablation.rules import Variant
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.problem import FeasibilityGraph


@dataclass(frozen=True)
class Proposed:
    """Rows of the data, and one proposal for each of some of them."""

    encoded: Floats
    """``(n + f, p)`` features in [0, 1]: the ``n`` rows, then the ``f`` proposals."""
    strata: Ints
    """``(n + f, s)`` integers never to be crossed."""
    applicant: Longs
    """``(f,)`` row of the applicant whom each proposal is for."""

    @property
    def rows(self) -> int:
        """``n``."""
        return len(self.encoded) - len(self.applicant)


def possible(proposed: Proposed, variant: Variant, settings: GraphSettings) -> Bools:
    """Tells which proposals a feasible path leads to.

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
    distinct = feasibility.collapse(proposed.encoded, variant.codes, proposed.strata, variant.rules)
    start, end = distinct.node[proposed.applicant], distinct.node[proposed.rows :]
    if not math.isfinite(variant.epsilon):
        return _in_one_step(distinct, variant, start, end)
    built = feasibility.build(distinct, variant.rules, variant.epsilon, settings)
    data = np.zeros(built.graph.size, dtype=np.bool_)
    data[distinct.node[: proposed.rows]] = True
    return _by_paths(_without_steps(built.graph, ~data), start, end)


def _in_one_step(distinct: Distinct, variant: Variant, start: Ints, end: Ints) -> Bools:
    space = feasibility.space_of(distinct, variant.rules)
    steps = [radius.nearest_of(space, one, other)[0] for one, other in zip(start[:, None], end[:, None], strict=True)]
    found: Bools = np.isfinite(steps)
    return found


def _without_steps(graph: FeasibilityGraph, nodes: Bools) -> FeasibilityGraph:
    """The graph without the edges out of some nodes, given as ``(m,)``."""
    kept = ~np.repeat(nodes, np.diff(graph.indptr))
    indptr = np.concatenate([[0], np.cumsum(kept)])[graph.indptr]
    return FeasibilityGraph(indptr, graph.indices[kept], graph.distances[kept])


def _by_paths(graph: FeasibilityGraph, start: Ints, end: Ints) -> Bools:
    """``(f,)`` whether a directed path, of length 0 or more, leads from each start to its own end."""
    factual, candidate = np.zeros((2, graph.size), dtype=np.bool_)
    factual[start] = True
    candidate[end] = True
    found = np.zeros(len(start), dtype=np.bool_)
    for part in reachability.reachable(graph, factual, candidate).active:
        row, column = (np.searchsorted(nodes, each) for nodes, each in ((part.factuals, start), (part.candidates, end)))
        inside = np.isin(start, part.factuals) & np.isin(end, part.candidates)
        found[inside] = part.reach()[row[inside], column[inside]]
    return found
