"""Aggregates of FGCE: optima, areas of least costs, saturation points and sizes, which are no means over rows.

Optima are solved again on bootstrap samples of the factual rows; statistics of the greedy selection are resampled with
the selection fixed. k0 and d0 can only fall when rows are left out, so their intervals lie at or below the value: they
show the dependence on few rows, and not the range in another sample. d0 at k0 may rise, because fewer candidates may
then be allowed.

Scope: replicates and reasons of each value. Values: ``optima`` and ``curves``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.methods.fgce.algorithm import curves, optima
from tasks.methods.fgce.algorithm.covering import max_cover
from tasks.methods.fgce.algorithm.curves import Limits, Resampled
from tasks.methods.fgce.algorithm.optima import Full, Least, Scale
from tasks.methods.fgce.algorithm.recourse import Explained
from tasks.methods.fgce.settings import FgceSettings
from tasks.numerics.arrays import Floats, Longs
from tasks.numerics.results import Aggregate
from tasks.numerics.statistics.distributions import as_said


@dataclass(frozen=True)
class Solved:
    """The optima of a group, a subgroup or a subsample, and the same on resamples of its rows."""

    full: Full
    least: Least
    costs: Mapping[float, Floats]
    """By share c, ``(b + 1, k)`` least costs: of the resamples, if any, and last as in ``least``."""
    again: Sequence[Full] = ()
    """``full`` on resamples."""


def solve(found: Explained, limits: Limits, settings: FgceSettings, at: Resampled, rng: np.random.Generator) -> Solved:
    """The optima of ``found`` and, as often as ``settings.resolves`` says, of resamples of its rows.

    ``at`` is its coverage on resamples, for the bounds that follow from the selection.
    """
    searched = found.searched
    tables = optima.tables_of(searched, settings)
    if tables is None:
        costs = optima.bounded(found, at, limits, settings.shares)
        return Solved(optima.bounds(found), optima.as_least(costs), costs)
    solver = optima.solver_of(settings)
    parts = optima.parts_of(tables, searched.weight)
    drawn = [optima.parts_of(tables, _redrawn(found, rng)) for _ in range(settings.resolves)]
    again = [optima.full(each, solver) for each in drawn]
    full = optima.full(parts, solver)
    if not settings.exact:
        costs = optima.bounded(found, at, limits, settings.shares)
        return Solved(full, optima.as_least(costs), costs, again)
    least = [optima.least(each, settings) for each in (*drawn, parts)]
    costs = {
        c: np.array([[v.value for (_, s), v in each.items() if s == c] for each in least]) for c in settings.shares
    }
    return Solved(full, least[-1], costs, again)


def _redrawn(found: Explained, rng: np.random.Generator) -> Longs:
    """Factual rows at each node after drawing as many with replacement, ``(m,)``."""
    at = found.searched.at
    return np.bincount(rng.choice(at, len(at)), minlength=len(found.searched.weight)).astype(np.int64)


def of_full(solved: Solved) -> Iterator[Aggregate]:
    """k0, d0 and d0 at k0; the difference of each from the reference group is tested."""
    for measure in ("k0", "d0", "d0_at_k0"):
        value, reason = getattr(solved.full, measure)
        again = np.array([getattr(each, measure).value for each in solved.again], dtype=np.float64)
        yield Aggregate(0, 0, measure, {}, value, solved.full.n, True, reason=reason, replicates=again)


def of_gap(found: Explained, limits: Limits, settings: FgceSettings) -> Iterator[Aggregate]:
    """What Algorithm 1's greedy choice covers less than the optimum, by k and limit, as a share of coverable rows."""
    tables = optima.tables_of(found.searched, settings)
    n = int(found.feasible.sum())
    if tables is None or not n:
        return
    parts, solver = optima.parts_of(tables, found.searched.weight), optima.solver_of(settings)
    covered = found.selected.covered(found.offers.weight)
    for d, level in zip(limits.of_d.tolist(), limits.at_d, strict=True):
        for k in range(1, covered.shape[1] + 1):
            best = max_cover.max_cover(parts, k, d, solver)
            most = max(int(best.value), int(covered[level, k - 1]))
            stopped = "a bound: a solver was stopped" if best.reason else ""
            at: dict[str, float | str] = {"k": k, "d": as_said(d)}
            yield Aggregate(0, 0, "coverage_optimum", at, most / n, n, reason=stopped)
            gap = (most - int(covered[level, k - 1])) / n
            yield Aggregate(0, 0, "greedy_gap", at, gap, n, reason=stopped)


def of_least(solved: Solved, scale: Scale) -> Iterator[Aggregate]:
    """Least cost by k and share, its area over k, and the k from which on it falls no more."""
    n = solved.full.n
    for c, costs in solved.costs.items():
        for k in range(1, costs.shape[1] + 1):
            value, reason = solved.least[k, c]
            at: dict[str, float | str] = {"k": k, "c": c}
            yield Aggregate(0, 0, "least_cost", at, value, n, reason=reason, replicates=costs[:-1, k - 1])
        own = [v.reason for (_, share), v in solved.least.items() if share == c and np.isfinite(v.value)]
        bound, scaled = next((each for each in own if each), ""), scale.reason.get(c, "")
        for measure, values, why, reason in (
            (
                "cauc",
                optima.cauc(costs, c, scale),
                f"no k at which every group can have {c:g} covered",
                bound or scaled,
            ),
            ("cauc_saturation", optima.cheapest_k(costs), f"no k covers {c:g} of the coverable factuals", bound),
        ):
            value = float(values[-1])
            said = reason if np.isfinite(value) else why
            yield Aggregate(0, 0, measure, {"c": c}, value, n, reason=said, replicates=values[:-1])


def of_curves(at: Resampled, limits: Limits, n: int) -> Iterator[Aggregate]:
    """Where coverage levels off: the limit d for every k, and the k for every limit d; ``n`` factual rows."""
    most = at.coverage.shape[2]
    if len(limits.of_k):
        for k in range(1, most + 1):
            points = curves.saturation(at.coverage[:, limits.at_k, k - 1], limits.of_k)
            yield _saturation("kauc_saturation", {"k": k}, points, n)
    for d, level in zip(limits.of_d.tolist(), limits.at_d, strict=True):
        points = curves.saturation(at.coverage[:, level, :], np.arange(1.0, most + 1))
        yield _saturation("dauc_saturation", {"d": as_said(d)}, points, n)


def _saturation(measure: str, at: dict[str, float | str], points: Floats, n: int) -> Aggregate:
    """``points`` ``(b + 1,)`` of the resamples, the sample's own last."""
    value = float(points[-1])
    reason = "" if np.isfinite(value) else "nothing is covered at any point of the grid"
    return Aggregate(0, 0, measure, at, value, n, reason=reason, replicates=points[:-1])


def of_nobody() -> Iterator[Aggregate]:
    """Aggregates of a group without factuals: refused with that reason."""
    for measure in ("k0", "d0", "d0_at_k0"):
        yield Aggregate(
            0, 0, measure, {}, float("nan"), 0, True, reason="no factual: nobody has anything to be explained"
        )


def of_sizes(found: Explained) -> Iterator[Aggregate]:
    """Nodes of a subgroup, and nodes with a candidate."""
    component = found.searched.reach.component
    inside = component == component[found.searched.at[0]]
    for measure, counted in (
        ("component_nodes", inside),
        ("component_candidates", inside & (found.searched.candidate >= 0)),
    ):
        n = int(counted.sum())
        yield Aggregate(0, 0, measure, {}, float(n), n, compared=False, events=n)
