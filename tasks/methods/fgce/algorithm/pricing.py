"""Choice of the cost of a problem for one group: distances, or paths over weighted edges.

The kernel density of path costs is fitted to all rows, once, and only for path costs.

Scope: the choice. Distances, weights and shortest paths: ``costs``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from tasks.feasibility_graph.algorithm.reachability import Component, Reach
from tasks.methods.fgce.algorithm.costs import density, paths
from tasks.methods.fgce.algorithm.costs.distances import Costs, Tabled, Vector
from tasks.methods.fgce.algorithm.recourse import Searched
from tasks.methods.fgce.settings import FgceSettings
from tasks.numerics.arrays import Floats
from tasks.numerics.problem import FeasibilityGraph, Problem

Kind = Literal["vector", "path", "hops"]


@dataclass(frozen=True)
class Pricing:
    """The costs of one problem."""

    problem: Problem
    settings: FgceSettings
    rng: np.random.Generator
    """For the cross-validation of the bandwidth, if that is asked for."""

    def costs(self, graph: FeasibilityGraph, points: Floats, reach: Reach) -> Costs:
        """Costs of an induced graph's pairs, by the cost of the settings."""
        return self.by(self.settings.cost, graph, points, reach)

    def by(self, kind: Kind, graph: FeasibilityGraph, points: Floats, reach: Reach) -> Costs:
        """Costs of an induced graph's pairs: the graph, its points ``(m, p)``, and who can reach whom."""
        if kind == "vector":
            return Vector(points)
        if kind == "hops":
            hops = paths.hop_costs
            return Tabled({part.label: hops(graph, part.factuals, part.candidates) for part in reach.active})
        weights = self._weights(graph, points, reach)
        return Tabled({part.label: _table(graph, weights, part) for part in reach.active})

    def dearest(self, searched: Sequence[Searched]) -> float:
        """The cost at which the grid of limits ends.

        For the L2 distance the square root of the number of features (a one-hot set is one feature), as in the paper;
        for other costs, on which it is silent, the largest cost of any feasible pair, or 1 where there is none.
        """
        if self.settings.cost == "vector":
            return float(np.sqrt(len(self.problem.features)))
        finite = [_largest(found.costs.rows(part, slice(None))) for found in searched for part in found.reach.active]
        return max(finite, default=1.0) or 1.0

    def _weights(self, graph: FeasibilityGraph, points: Floats, reach: Reach) -> Floats:
        """Weights of the edges that some path from a factual to a candidate can use; the others are barred."""
        if not reach.active:
            return np.full(len(graph.indices), np.inf)
        factuals = np.concatenate([part.factuals for part in reach.active])
        candidates = np.concatenate([part.candidates for part in reach.active])
        usable = paths.usable_edges(graph, factuals, candidates)
        return density.edge_weights(graph, points, self._density, self.settings.weights, usable)

    @cached_property
    def _density(self) -> density.Density:
        _, first, rows = np.unique(self.problem.node, return_index=True, return_counts=True)
        points = self.problem.encoded[first]
        width = density.bandwidth(points, rows, self.settings.bandwidth, self.rng)
        return density.Density(points, rows, width)


def _table(graph: FeasibilityGraph, weights: Floats, part: Component) -> Floats:
    return paths.path_costs(graph, weights, part.factuals, part.candidates)


def _largest(costs: Floats) -> float:
    return float(np.max(costs, initial=0.0, where=np.isfinite(costs)))
