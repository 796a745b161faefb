"""Tallies of FGCE for one group: the values of each statistic over the group's factual rows.

The mean over the rows is the measure; the bootstrap resamples rows with the selection of candidates fixed. Coverage and
its areas are over all factuals (``denominator`` ``all``) and over those that some candidate can serve (``feasible``,
the paper's). Groups, subgroups and size-matched subsamples share these functions.

Scope: means over rows. Optima and saturation points: ``optima``. Tallies from values:
``tasks.numerics.statistics.distributions``.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from tasks.methods.fgce.algorithm import curves
from tasks.methods.fgce.algorithm.curves import Limits
from tasks.methods.fgce.algorithm.pairs import nearest
from tasks.methods.fgce.algorithm.recourse import Explained
from tasks.numerics.arrays import Bools, Floats, Ints
from tasks.numerics.problem import Problem
from tasks.numerics.results import Tally
from tasks.numerics.statistics.distributions import as_said, mean, share


def costs(cheapest: Floats) -> Iterator[Tally]:
    """Share of factual rows without a feasible counterfactual, and the cost of the cheapest one of the others."""
    yield share("infeasible_share", {}, np.isnan(cheapest), headline=True)
    yield mean("burden", {}, cheapest, headline=True)


def selection(found: Explained) -> Iterator[Tally]:
    """What the selected candidates cost and whom they serve, whatever the cost."""
    most = found.paid.shape[1]
    yield mean("burden_at_k", {"k": most}, nearest(found.paid)[0], headline=True)
    free = found.turn[-1]
    for k in range(1, most + 1):
        yield share("coverage_at_k", {"k": k}, _within(free, k), headline=k == most)


def coverage(found: Explained, limits: Limits) -> Iterator[Tally]:
    """Coverage by k and limit on cost: the numbers behind the curves."""
    for k in range(1, found.paid.shape[1] + 1):
        for d, level in zip(limits.of_d.tolist(), limits.at_d, strict=True):
            covered = _within(found.turn[level], k)
            at = {"k": k, "d": as_said(d)}
            yield share("coverage", at | {"denominator": "all"}, covered, compared=False)
            yield share("coverage", at | {"denominator": "feasible"}, covered, found.feasible, compared=False)


def areas(found: Explained, limits: Limits) -> Iterator[Tally]:
    """Areas under the curves: kAUC for every k and dAUC for every limit on cost, by both denominators."""
    most = found.paid.shape[1]
    if len(limits.of_k):
        for k in range(1, most + 1):
            yield from _area("kauc", {"k": k}, found, curves.k_area(found.turn[limits.at_k], limits.of_k, k), k == most)
    for d, level in zip(limits.of_d.tolist(), limits.at_d, strict=True):
        yield from _area("dauc", {"d": as_said(d)}, found, curves.d_area(found.turn[level], most), False)


def changes(found: Explained, problem: Problem) -> Iterator[Tally]:
    """Attribute change frequency: share of served rows whose attribute differs from their counterfactual's (ACF).

    A row's counterfactual is the cheapest of the selected candidates; a one-hot set is one attribute.
    """
    rank = nearest(found.paid)[1]
    served = rank >= 0
    here = found.searched.points[found.searched.at]
    there = found.searched.points[np.append(found.picks, 0)[rank]]
    differs = here != there
    for number, name in enumerate(problem.features):
        columns = problem.feature_of_column == number
        yield share("acf", {"attribute": name}, differs[:, columns].any(axis=1) & served, served)


def face(cost: str, paid: Floats, optimum: Floats) -> Iterator[Tally]:
    """How much more the selection costs a row than its own optimum would (FACE), by k.

    Args:
        cost: Which cost is compared.
        paid: ``(n, k)`` by row and selected candidate, NaN where it is not feasible.
        optimum: ``(n,)`` the cheapest feasible candidate's; a row whose optimum is free and whose assigned candidate
            is not has no ratio.
    """
    for k in range(1, paid.shape[1] + 1):
        assigned = nearest(paid[:, :k])[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where((assigned == 0) & (optimum == 0), 1.0, assigned / optimum)
        yield mean("cost_over_face", {"cost": cost, "k": k}, np.where(np.isfinite(ratio), ratio, np.nan))


def _within(turn: Ints, k: int) -> Bools:
    return (turn >= 0) & (turn < k)


def _area(
    measure: str, at: Mapping[str, float | str], found: Explained, values: Floats, headline: bool
) -> Iterator[Tally]:
    yield mean(measure, {**at, "denominator": "all"}, values, headline=headline, share=True)
    yield mean(measure, {**at, "denominator": "feasible"}, np.where(found.feasible, values, np.nan), share=True)
