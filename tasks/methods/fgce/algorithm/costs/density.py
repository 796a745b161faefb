"""Gaussian kernel density at the midpoint of a feasible step, and the edge weights made from it.

A path through populated regions is more plausible, so an edge weighs more where the density at its midpoint is low
(FGCE, section III, after FACE). Weights cost far more than the graph. They are computed only for path costs, and only
for edges that some path can use.

The sum over kernels is our own loop. The trees of sklearn's KernelDensity add and subtract bounds near the density of a
whole cluster, so that small densities are lost in rounding (scikit-learn issue 25799). On German credit, at the
bandwidth of FGCE's authors, half of the edges are off by more than a factor of ten, some by 1e26. Without its tree
sklearn is right, and 4 to 20 times slower than this loop.

Scope: bandwidths, densities and weights. Sums along paths: ``paths``.
"""

from dataclasses import dataclass
from typing import Literal

import numba
import numpy as np

from schemas.errors import DataQualityError
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.problem import FeasibilityGraph

Rule = float | Literal["scott", "authors", "cross_validated"]
Form = Literal["quotient", "product", "authors"]

FLOOR = 1e-8
"""Added to the density before it divides, so that empty space has a finite weight (the value of FGCE's authors)."""

NEGLIGIBLE = 40.0
"""A kernel is left out of the sum when it is below exp(-40) = 4e-18 of the largest one."""

TILE = 128
"""Points whose distances are held at a time."""

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
    if (points == points[:1]).all():  # asked before any sum: rounding would leave a spread above 0
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
    drawn = rng.permutation(len(points))[:SAMPLE]
    folds = np.array_split(drawn, min(FOLDS, len(drawn)))
    likelihood = np.zeros(len(grid))
    for fold in folds:
        kept = np.setdiff1d(drawn, fold)
        for place, width in enumerate(grid):
            found = log_density(Density(points[kept], multiplicity[kept], width), points[fold])
            likelihood[place] += multiplicity[fold] @ found
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
    graph: FeasibilityGraph, points: Floats, density: Density, form: Form = "quotient", wanted: Bools | None = None
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
        wanted: ``(edges,)`` edges to weigh (``paths.usable_edges``); all if left out.

    Returns:
        ``(edges,)`` weights; ``inf``, an edge that no path takes, where none was wanted. A quotient below the smallest
        float is 0.

    Raises:
        DataQualityError: If a weight is not finite.
    """
    weights = np.full(len(graph.indices), np.inf)
    edges = np.arange(len(weights)) if wanted is None else np.flatnonzero(wanted)
    source = np.repeat(np.arange(graph.size), np.diff(graph.indptr))
    for start in range(0, len(edges), BLOCK):
        block = edges[start : start + BLOCK]
        middle = (points[source[block]] + points[graph.indices[block]]) / 2
        weights[block] = _weigh(graph.distances[block], log_density(density, middle), form)
    if not np.isfinite(weights[edges]).all():
        raise DataQualityError(
            f"a weight of the form {form} at bandwidth {density.bandwidth} is not finite, expected a number for every "
            "edge; take a larger bandwidth, or the form quotient"
        )
    return weights


def _weigh(distances: Floats, log_densities: Floats, form: Form) -> Floats:
    """The formula in logarithms: in many columns the density itself may not fit into a float."""
    with np.errstate(divide="ignore", over="ignore"):
        length = np.log(distances)
        if form == "product":
            return np.exp(length + log_densities)
        power = 2.0 if form == "authors" else 1.0
        return np.exp(power * length - np.logaddexp(log_densities, np.log(FLOOR)))
