"""Costs of recourse: distances, density-weighted edges, cheapest paths."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numba
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from schemas.errors import DataQualityError
from tasks.feasibility_graph.algorithm import Component
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.problem import FeasibilityGraph

# --------------------------------------------------------------------------------------------------------------------
# Cost of recourse: the distance of factual and candidate, or the length of the path between them.
#
# ``vector`` is the L2 distance in encoded units (the paper's choice). It may exceed epsilon, since it is not the length
# of the path. ``path`` is the least sum of edge weights along feasible steps, and ``hops`` counts those steps (FGCE,
# section III; the authors' code counts nodes instead, one more).
#
# Scope: the interface between costs and their users. Sums along paths: ``paths``.


class Costs(Protocol):
    """Costs of the pairs of a component. A cost means nothing where the pair is not feasible."""

    def rows(self, part: Component, rows: slice) -> Floats:
        """``(r, c)`` costs of some factuals to every candidate."""

    def column(self, part: Component, candidate: int) -> Floats:
        """``(f,)`` costs of every factual to one candidate, given by its place."""


@dataclass(frozen=True)
class Vector:
    """L2 distances, computed on demand."""

    points: Floats
    """``(m, p)`` encoded features of the nodes of the induced graph."""
    _varying: dict[int, tuple[Floats, Floats]] = field(default_factory=dict, repr=False)

    def rows(self, part: Component, rows: slice) -> Floats:
        """``(r, c)`` distances."""
        near, far = self._ends(part)
        distances: Floats = _distances(near[rows], far)
        return distances

    def column(self, part: Component, candidate: int) -> Floats:
        """``(f,)`` distances."""
        near, far = self._ends(part)
        distances: Floats = _distances(near, far[candidate : candidate + 1])[:, 0]
        return distances

    def _ends(self, part: Component) -> tuple[Floats, Floats]:
        """Factuals and candidates without the columns that do not vary: those add exactly nothing to a distance."""
        if part.label not in self._varying:
            ends = self.points[np.concatenate([part.factuals, part.candidates])]
            ends = np.ascontiguousarray(ends[:, (ends != ends[:1]).any(axis=0)])
            self._varying[part.label] = ends[: len(part.factuals)], ends[len(part.factuals) :]
        return self._varying[part.label]


@dataclass(frozen=True)
class Tabled:
    """Costs that were computed for all pairs beforehand."""

    table: Mapping[int, Floats]
    """By the component's label, ``(f, c)``."""

    def rows(self, part: Component, rows: slice) -> Floats:
        """``(r, c)`` costs."""
        return self.table[part.label][rows]

    def column(self, part: Component, candidate: int) -> Floats:
        """``(f,)`` costs."""
        return self.table[part.label][:, candidate]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _distances(near: Floats, far: Floats) -> Floats:
    """L2 distances ``(f, c)``, summed column by column."""
    out = np.empty((near.shape[0], far.shape[0]))
    for i in range(near.shape[0]):
        for j in range(far.shape[0]):
            total = 0.0
            for column in range(near.shape[1]):
                total += (near[i, column] - far[j, column]) ** 2
            out[i, j] = np.sqrt(total)
    return out


def feasible(costs: Costs, part: Component) -> Floats:
    """``(f, c)`` costs of a component's pairs, ``inf`` where there is no path: for exact optima of small groups."""
    return np.where(part.reach(), costs.rows(part, slice(None)), np.inf)


def pairs(parts: tuple[Component, ...]) -> int:
    """Number of pairs of factual and candidate in some components: what exact optima have to look at."""
    return sum(len(part.factuals) * len(part.candidates) for part in parts)


# --------------------------------------------------------------------------------------------------------------------
# Gaussian kernel density at the midpoint of a feasible step, and the edge weights made from it.
#
# A path through populated regions is more plausible, so an edge weighs more where the density at its midpoint is low
# (FGCE, section III, after FACE). Weights cost far more than the graph. They are computed only for path costs, and only
# for edges that some path can use.
#
# The sum over kernels is our own loop. The trees of sklearn's KernelDensity add and subtract bounds near the density of
# a whole cluster, so that small densities are lost in rounding (scikit-learn issue 25799). On German credit, at the
# bandwidth of FGCE's authors, half of the edges are off by more than a factor of ten, some by 1e26. Without its tree
# sklearn is right, and 4 to 20 times slower than this loop.
#
# Scope: bandwidths, densities and weights. Sums along paths: ``paths``.


Rule = float | Literal["scott", "authors", "cross_validated"]
Form = Literal["quotient", "product", "authors"]

FLOOR = 1e-8
"""Added to the density before it divides, so that empty space has a finite weight (the value of FGCE's authors)."""

NEGLIGIBLE = 40.0
"""A kernel is left out of the sum when it is below exp(-40) = 4e-18 of the largest one."""

TILE = 128
"""Points with distances in memory at a time."""

SAMPLE, FOLDS = 2_000, 5
"""Distinct points and folds of the cross-validation."""

FACTORS = 2.0 ** np.arange(-2.0, 1.5, 0.5)
"""Bandwidths that the cross-validation tries, as multiples of Scott's: a quarter to twice."""

BLOCK = 4_096
"""Midpoints held at a time."""


@dataclass(frozen=True)
class Density:
    """Gaussian kernel density estimate with one bandwidth for all columns."""

    points: Floats
    """``(m, p)`` encoded features; equal rows may share a point."""
    multiplicity: Longs
    """``(m,)`` rows at each point."""
    bandwidth: float
    """Standard deviation of a kernel, in encoded units."""


def bandwidth(points: Floats, multiplicity: Longs, rule: Rule, rng: np.random.Generator) -> float:
    """Bandwidth by a rule, for ``n`` rows in ``p`` columns.

    ``scott``, the default, is ``s n^(-1 / (p + 4))`` (Scott, 1992) with ``s`` the root of the mean variance of the
    columns, because one isotropic kernel serves all. ``authors`` is what FGCE's code does under that name:
    ``(4 s^5 / 3n)^(1/5)``, the normal-reference rule for a single variable, with ``s`` taken over the whole matrix as
    if it were one column. ``cross_validated`` takes the multiple of Scott's with the largest held-out likelihood. Equal
    rows are held out together; even so, columns with few values reward ever smaller bandwidths (COMPAS ends at the
    smallest that is tried), and a density much narrower than an edge says no more of its midpoint than the edge's
    length does. That is why Scott's rule is the default.

    Args:
        points: ``(m, p)`` encoded features of the distinct rows.
        multiplicity: ``(m,)`` rows at each point; ``n`` is their sum.
        rule: A bandwidth in encoded units, taken as it is, or the name of a rule.
        rng: Draws the sample and the folds of ``cross_validated``; other rules leave it alone.

    Raises:
        DataQualityError: If no positive finite bandwidth results.
    """
    value = _by_rule(points, multiplicity, rule, rng) if isinstance(rule, str) else float(rule)
    if not 0 < value < np.inf:
        raise DataQualityError(
            f"bandwidth {rule} of the kernel density is {value}, expected a positive number: do the {len(points)} "
            "points vary, and are all values finite? Give more rows, or a number as the bandwidth"
        )
    return value


def _by_rule(points: Floats, multiplicity: Longs, rule: str, rng: np.random.Generator) -> float:
    """The rule's value, 0.0 or NaN where there is none."""
    if (points == points[:1]).all():  # before any sum: rounding would leave a spread above 0
        return 0.0
    n = float(multiplicity.sum())
    if rule == "authors":
        mean = multiplicity @ points.mean(axis=1) / n
        variance = multiplicity @ ((points - mean) ** 2).mean(axis=1) / n
        return float((4 * variance**2.5 / (3 * n)) ** 0.2)
    spread = multiplicity @ (points - multiplicity @ points / n) ** 2 / n
    scott = float(np.sqrt(spread.mean()) * n ** (-1 / (points.shape[1] + 4)))
    if rule == "scott" or not scott > 0:
        return scott
    return _most_likely(points, multiplicity, scott * FACTORS, rng)


def _most_likely(points: Floats, multiplicity: Longs, grid: Floats, rng: np.random.Generator) -> float:
    """The bandwidth of the grid under which points held out fold by fold are most likely, the smaller of two equal.

    At most ``SAMPLE`` points are drawn, with their rows; a fold holds out distinct points.
    """
    sample_rows = rng.permutation(len(points))[:SAMPLE]
    folds = np.array_split(sample_rows, min(FOLDS, len(sample_rows)))
    likelihood = np.zeros(len(grid))
    for fold in folds:
        training_rows = np.setdiff1d(sample_rows, fold)
        for place, width in enumerate(grid):
            log_densities = log_density(
                Density(points[training_rows], multiplicity[training_rows], width), points[fold]
            )
            likelihood[place] += multiplicity[fold] @ log_densities
    return float(grid[likelihood.argmax()])


def log_density(density: Density, at: Floats) -> Floats:
    """Natural logarithm of the density at ``(q, p)`` points, ``(q,)``, to about 13 digits.

    Takes one pass over the points for each, and no memory beyond a copy of them.
    """
    n, columns = density.multiplicity.sum(), at.shape[1]
    scale = 0.5 / density.bandwidth**2
    layout = np.ascontiguousarray(density.points.T, dtype=np.float64)
    sums = _log_kernels(layout, density.multiplicity.astype(np.float64), np.ascontiguousarray(at), scale)
    result: Floats = sums - np.log(n) - columns / 2 * np.log(2 * np.pi * density.bandwidth**2)
    return result


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _log_kernels(columns: Floats, multiplicity: Floats, at: Floats, scale: float) -> Floats:
    """Logarithm of the sum of unscaled kernels, relative to the nearest point, so that nothing underflows.

    All queries meet one tile of points before the next, so that the tile stays in the processor's cache; the sum is
    rescaled when a tile brings a nearer point.
    """
    nearest, total = np.full(at.shape[0], np.inf), np.zeros(at.shape[0])
    squared = np.empty(TILE)
    for start in range(0, columns.shape[1], TILE):
        width = min(TILE, columns.shape[1] - start)
        for query in range(at.shape[0]):
            _squared_distances(columns, start, at[query], squared[:width])
            low = squared[:width].min()
            if low < nearest[query]:
                total[query] *= np.exp((low - nearest[query]) * scale)
                nearest[query] = low
            limit = nearest[query] + NEGLIGIBLE / scale
            for point in range(width):
                if squared[point] <= limit:
                    total[query] += multiplicity[start + point] * np.exp((nearest[query] - squared[point]) * scale)
    return np.log(total) - nearest * scale


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _squared_distances(columns: Floats, start: int, query: Floats, out: Floats) -> None:
    """Squared distances to the points from ``start`` on, as many as ``out`` holds.

    ``columns`` is ``(p, m)``: running along the points, the inner loop needs no reduction, and the compiler can use
    vector instructions without reordering any sum.
    """
    out[:] = 0.0
    for column in range(columns.shape[0]):
        values = columns[column, start : start + out.shape[0]]
        for point in range(out.shape[0]):
            out[point] += (values[point] - query[column]) ** 2


def edge_weights(
    graph: FeasibilityGraph, points: Floats, density: Density, form: Form = "quotient", is_needed: Bools | None = None
) -> Floats:
    """Weight of every edge from its length and the density at its midpoint (FGCE, section III).

    ``quotient`` is ``distance / (density + FLOOR)``. ``product``, ``distance * density``, is the formula as printed; it
    makes crowded paths dear, against the paper's own text and FACE. ``authors``, ``distance^2 / (density + FLOOR)``, is
    what their code computes.

    Args:
        graph: The graph, or one that a group's nodes induce.
        points: ``(m, p)`` encoded features of its nodes.
        density: Estimated on all rows, whatever the group.
        form: The formula.
        is_needed: ``(edges,)`` edges to weigh (``paths.usable_edges``); all if left out.

    Returns:
        ``(edges,)`` weights; ``inf``, an edge that no path takes, where none was wanted. A quotient below the smallest
        float is 0.

    Raises:
        DataQualityError: If a weight is not finite.
    """
    weights = np.full(len(graph.indices), np.inf)
    edges = np.arange(len(weights)) if is_needed is None else np.flatnonzero(is_needed)
    source = np.repeat(np.arange(graph.size), np.diff(graph.indptr))[edges]
    # a step and the way back have one midpoint
    ends = np.sort([source, graph.indices[edges]], axis=0)
    middles, middle_of = np.unique(ends[0] * graph.size + ends[1], return_inverse=True)
    log_densities = np.empty(len(middles))
    for start in range(0, len(middles), BLOCK):
        first, second = np.divmod(middles[start : start + BLOCK], graph.size)
        log_densities[start : start + BLOCK] = log_density(density, (points[first] + points[second]) / 2)
    # in logarithms: in many columns the density itself may not fit into a float
    with np.errstate(divide="ignore", over="ignore"):
        length = np.log(graph.distances[edges])
        if form == "product":
            weights[edges] = np.exp(length + log_densities[middle_of])
        else:
            power = 2.0 if form == "authors" else 1.0
            weights[edges] = np.exp(power * length - np.logaddexp(log_densities, np.log(FLOOR))[middle_of])
    if not np.isfinite(weights[edges]).all():
        raise DataQualityError(
            f"a weight of the form {form} at bandwidth {density.bandwidth} is not finite, expected a number for every "
            "edge; take a larger bandwidth, or the form quotient"
        )
    return weights


# --------------------------------------------------------------------------------------------------------------------
# Cheapest paths in the feasibility graph: sums of edge weights, and numbers of steps.
#
# These are FGCE's alternatives (section III) to the straight distance. Costs are computed on the graph that a group's
# nodes induce, one weakly connected component at a time, since their matrix holds a float for every pair.
#
# Scope: shortest paths. Weights: ``density``. Reach: ``tasks.feasibility_graph.algorithm``.


PATHS_BLOCK = 2**23
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


def shortest_path(graph: FeasibilityGraph, start: int, end: int) -> tuple[int, ...]:
    """Nodes of the shortest directed path between two nodes, both ends included; none where no path leads there."""
    _, before = dijkstra(_links(graph, graph.distances), indices=start, return_predecessors=True)
    path = [end]
    while path[-1] != start:
        if before[path[-1]] < 0:
            return ()
        path.append(int(before[path[-1]]))
    return tuple(reversed(path))


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
    open_ = np.isfinite(weights)
    indptr = np.concatenate([[0], np.cumsum(open_)])[graph.indptr]
    links = _links(FeasibilityGraph(indptr, graph.indices[open_], graph.distances[open_]), weights[open_])
    rows = max(PATHS_BLOCK // graph.size, 1)
    for start in range(0, len(factuals), rows):
        block = slice(start, start + rows)
        costs[block] = dijkstra(links, indices=factuals[block])[:, candidates]
    return costs


def hop_costs(graph: FeasibilityGraph, factuals: Longs, candidates: Longs) -> Floats:
    """Fewest edges on a directed path from each factual to each candidate, ``(f, c)``; ``inf`` where no path leads.

    The code of FGCE's authors counts the nodes of the path, one more.
    """
    return path_costs(graph, np.ones(len(graph.indices)), factuals, candidates)
