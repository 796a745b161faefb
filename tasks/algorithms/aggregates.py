"""Optima, areas of least costs, saturation points and sizes as aggregates: measures that are no means over rows.

The interval of an optimum comes from solving it anew on factual rows drawn with replacement, that of d0 and of a
saturation point from drawing rows anew with the selection held as it is. A largest cost or a smallest number can only
fall when rows are left out, so these intervals reach further down than up: they say how much the value hangs on few
rows, not where the value of another sample would lie.

Here belong replicates and what is said of each value. The values are made in ``optima`` and ``curves``.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from schemas.methods import FgceSettings
from tasks.algorithms import curves, optima
from tasks.algorithms.curves import Limits
from tasks.algorithms.detector import Aggregate, Floats
from tasks.algorithms.optima import Scale, Solved, Value
from tasks.algorithms.recourse import Explained

HEADLINES = ("k0", "d0", "d0_at_k0")
"""Optima whose difference from the reference group is tested."""


def resolve(found: Explained, settings: FgceSettings, rng: np.random.Generator) -> list[Solved]:
    """The optima on factual rows drawn anew with replacement, ``settings.resolves`` times; none for a large group."""
    out = []
    for _ in range(settings.resolves):
        drawn = rng.choice(found.searched.at, len(found.searched.at))
        solved = optima.solve(found.searched, np.bincount(drawn, minlength=len(found.searched.weight)), settings)
        if solved is None:
            return []
        out.append(solved)
    return out


def of_optima(solved: Solved, again: Sequence[Solved], scale: Scale) -> Iterator[Aggregate]:
    """k0, d0, d0 at k0, least cost by k and share, its area and where it levels off."""

    def made(measure: str, value_of: Callable[[Solved], Value], **at: float) -> Aggregate:
        value, reason = value_of(solved)
        replicates = np.array([value_of(each).value for each in again], dtype=np.float64)
        tested = measure in HEADLINES
        return Aggregate(0, 0, measure, at, value, solved.n, tested, reason=reason, replicates=replicates)

    yield made("k0", lambda s: s.k0)
    yield made("d0", lambda s: s.d0)
    yield made("d0_at_k0", lambda s: s.d0_at_k0)
    for k, c in solved.least_cost:
        yield made("least_cost", lambda s, at=(k, c): s.least_cost[at], k=k, c=c)  # type: ignore[misc]
    for c in dict.fromkeys(c for _, c in solved.least_cost):
        yield made("cauc", lambda s, c=c: optima.cauc(s, c, scale), c=c)  # type: ignore[misc]
        yield made("cauc_saturation", lambda s, c=c: optima.cheapest_k(s, c), c=c)  # type: ignore[misc]


def of_curves(found: Explained, limits: Limits, draws: int, rng: np.random.Generator) -> Iterator[Aggregate]:
    """Where coverage levels off: the limit d for every k, and the k for every limit d."""
    n, most = len(found.cheapest), found.paid.shape[1]
    coverage = curves.coverage_of_resamples(found.turn, most, draws, rng)
    if len(limits.of_k):
        for k in range(1, most + 1):
            points = curves.saturation(coverage[:, limits.at_k, k - 1], limits.of_k)
            yield _saturation("kauc_saturation", {"k": k}, points, n)
    for d, level in zip(limits.of_d.tolist(), limits.at_d, strict=True):
        points = curves.saturation(coverage[:, level, :], np.arange(1.0, most + 1))
        yield _saturation("dauc_saturation", {"d": round(d, 10)}, points, n)


def _saturation(measure: str, at: dict[str, float], points: Floats, n: int) -> Aggregate:
    """``points`` ``(draws + 1,)`` of the resamples, the sample's own last."""
    value = float(points[-1])
    reason = "" if np.isfinite(value) else "nothing is covered at any point of the grid"
    return Aggregate(0, 0, measure, at, value, n, reason=reason, replicates=points[:-1])


def of_sizes(found: Explained) -> Iterator[Aggregate]:
    """Nodes of a subgroup, and nodes with a candidate."""
    inside = found.searched.reach.component == found.searched.reach.component[found.searched.at[0]]
    sizes = {"component_nodes": inside, "component_candidates": inside & (found.searched.candidate >= 0)}
    for measure, counted in sizes.items():
        n = int(counted.sum())
        yield Aggregate(0, 0, measure, {}, float(n), n, compared=False)
