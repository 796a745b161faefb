"""Cheapest paths in the feasibility graph: sums of edge weights, and numbers of steps.

These are FGCE's alternatives (section III) to the straight distance. Costs are computed on the graph that a group's
nodes induce, one weakly connected component at a time, since their matrix holds a float for every pair.

Scope: shortest paths. Weights: ``density``. Reach: ``tasks.feasibility_graph.algorithm.reachability``.
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.problem import FeasibilityGraph

BLOCK = 2**23
"""Costs held at a time between searches: one per source and node, 64 MB."""


def usable_edges(graph: FeasibilityGraph, factuals: Longs, candidates: Longs) -> Bools:
    """Edges on some walk from a factual to a candidate, ``(edges,)``: only these need a weight.

    Such an edge leaves a node that a factual reaches and enters one that reaches a candidate.
    """
    links = _links(graph, np.ones(len(graph.indices)))
    onward = _reached(links, factuals)
    home = _reached(links.T.tocsr(), candidates)
    return np.repeat(onward, np.diff(graph.indptr)) & home[graph.indices]


def _links(graph: FeasibilityGraph, weights: Floats) -> csr_array:
    """The graph as scipy reads it; an edge of weight 0 is stored, and stays an edge."""
    return csr_array((weights, graph.indices, graph.indptr), shape=(graph.size, graph.size))


def _reached(links: csr_array, starts: Longs) -> Bools:
    """Nodes that a path of any length, 0 included, leads to from one of ``starts``, ``(m,)``."""
    if not len(starts):
        return np.zeros(links.shape[0], dtype=np.bool_)
    reached: Bools = np.isfinite(dijkstra(links, indices=starts, unweighted=True, min_only=True))
    return reached


def path_costs(graph: FeasibilityGraph, weights: Floats, factuals: Longs, candidates: Longs) -> Floats:
    """Smallest sum of weights along a directed path from each factual to each candidate (FGCE, section III).

    Args:
        graph: The graph that the group's nodes induce.
        weights: ``(edges,)`` as ``density.edge_weights`` gives them; ``inf`` bars an edge.
        factuals: ``(f,)`` nodes.
        candidates: ``(c,)`` nodes.

    Returns:
        ``(f, c)`` costs in the unit of the weights; 0 where both share a node, ``inf`` where no path leads.

    Raises:
        ValueError: If a weight is negative or NaN, or their number is not that of the edges.
    """
    if len(weights) != len(graph.indices) or not (weights >= 0).all():
        raise ValueError(f"weights {weights.shape}: expected one of at least 0 for each of {len(graph.indices)} edges")
    costs = np.full((len(factuals), len(candidates)), np.inf)
    if not costs.size:
        return costs
    links = _open_links(graph, weights)
    rows = max(BLOCK // graph.size, 1)
    for start in range(0, len(factuals), rows):
        block = slice(start, start + rows)
        costs[block] = dijkstra(links, indices=factuals[block])[:, candidates]
    return costs


def _open_links(graph: FeasibilityGraph, weights: Floats) -> csr_array:
    """The edges of finite weight only: no search looks at the others."""
    open_ = np.isfinite(weights)
    indptr = np.concatenate([[0], np.cumsum(open_)])[graph.indptr]
    return _links(FeasibilityGraph(indptr, graph.indices[open_], graph.distances[open_]), weights[open_])


def hop_costs(graph: FeasibilityGraph, factuals: Longs, candidates: Longs) -> Floats:
    """Fewest edges on a directed path from each factual to each candidate, ``(f, c)``; ``inf`` where no path leads.

    The code of FGCE's authors counts the nodes of the path, one more.
    """
    return path_costs(graph, np.ones(len(graph.indices)), factuals, candidates)
