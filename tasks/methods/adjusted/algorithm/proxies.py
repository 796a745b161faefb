"""What probabilities of race say of denials: three estimates of a gap, each with its own bias, and what they rule out.

Nobody's race is known, so an estimate rests on an assumption that these data cannot test. The regression on the
probabilities is right if denial does not depend on surname and place among people of one race; weighted means are right
if it does not depend on race among people of one probability (Chen, Kallus, Mao, Svacha and Udell 2019). The bounds
need neither: they only need that the probabilities are right.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from scipy.special import ndtri

from tasks.numerics.arrays import Bools, Floats

RACES: Final = ("white", "black", "api", "native", "multiple", "hispanic")
"""Non-Hispanic but for the last; api: Asian or Pacific Islander."""
OTHER: Final = "other"
"""Races with too few expected members to stand alone."""
Estimator = Literal["regression", "weighted", "threshold"]
CUT: Final = 0.8
"""Probability from which ``threshold`` takes an applicant for a member (Baines and Courchane 2014)."""
_UNKNOWN: Final = (math.nan, math.nan, math.nan, math.nan)
CELLS: Final = 20
"""Cells of equal size, by probability, within which the bounds hold."""


@dataclass(frozen=True)
class ProxyGap:
    """Denial of one race less that of the reference race, by one estimator."""

    race: str
    estimator: Estimator
    value: float
    low: float
    high: float
    se: float
    bound_low: float
    bound_high: float
    """What the gap can be at all if the probabilities are right; the same for every estimator of a race."""
    expected: float
    """Members: the sum of their probabilities, or those above the cut."""
    reason: str = ""


def gaps(denied: Bools, probabilities: Floats, reference: str, minimum: int, level: float) -> Iterator[ProxyGap]:
    """Each race by each estimator.

    Standard errors hold that race is drawn by its probability: that of the regression by residuals (HC1), of weighted
    means by their influence function.

    Args:
        denied: ``(n,)``.
        probabilities: ``(n, 6)`` by ``RACES``, each row adds up to 1.
        reference: one of ``RACES``.
        minimum: fewest expected members of a race; races below are pooled into ``other``.
        level: of the intervals.
    """
    y, names, p = denied.astype(np.float64), *_pooled(probabilities, reference, minimum)
    z = float(ndtri((1 + level) / 2))
    sizes = p.sum(axis=0)
    if reference not in names or len(names) < 2:
        for race in [race for race in names if race != reference] or [OTHER]:
            yield _none(race, float(sizes[names.index(race)]) if race in names else 0.0, minimum)
        return
    at = names.index(reference)
    means, covariance = means_by_regression(y, p)
    bounds = [frechet_bounds(y, p[:, k]) for k in range(len(names))]
    weighted = p.T @ y / sizes
    influence = p * (y[:, None] - weighted) * (len(y) / sizes)
    for k, race in enumerate(names):
        if k == at:
            continue
        if sizes[k] < minimum or sizes[at] < minimum:
            yield _none(race, float(sizes[k]), minimum)
            continue
        lowest, highest = bounds[k][0] - bounds[at][1], bounds[k][1] - bounds[at][0]
        beside = (max(lowest, -1.0), min(highest, 1.0), float(sizes[k]))
        se = math.sqrt(max(covariance[k, k] + covariance[at, at] - 2 * covariance[k, at], 0.0))
        yield _gap(race, "regression", float(means[k] - means[at]), se, z, beside)
        se = float((influence[:, k] - influence[:, at]).std(ddof=1) / math.sqrt(len(y)))
        yield _gap(race, "weighted", float(weighted[k] - weighted[at]), se, z, beside)
        inside, outside = y[p[:, k] > CUT], y[p[:, at] > CUT]
        if min(len(inside), len(outside)) < minimum:
            few = f"too_few: fewer than {minimum} applicants with a probability above {CUT:g}, or of {reference}"
            yield ProxyGap(race, "threshold", *_UNKNOWN, beside[0], beside[1], float(len(inside)), few)
            continue
        se = math.sqrt(inside.var(ddof=1) / len(inside) + outside.var(ddof=1) / len(outside))
        value = float(inside.mean() - outside.mean())
        yield _gap(race, "threshold", value, se, z, (*beside[:2], float(len(inside))))


def _pooled(probabilities: Floats, reference: str, minimum: int) -> tuple[list[str], Floats]:
    """Races with enough expected members, the others as one; without any applicant none."""
    sizes = probabilities.sum(axis=0)
    alone = [k for k, race in enumerate(RACES) if race == reference or sizes[k] >= minimum]
    rest = [k for k in range(len(RACES)) if k not in alone]
    names, p = [RACES[k] for k in alone], probabilities[:, alone]
    if sizes[rest].sum() > 0:
        names, p = [*names, OTHER], np.column_stack([p, probabilities[:, rest].sum(axis=1)])
    return names, p


def means_by_regression(y: Floats, p: Floats) -> tuple[Floats, Floats]:
    """Mean of y by race, as the regression on the probabilities without an intercept has it; and HC1."""
    bread = np.linalg.pinv(p.T @ p)
    means: Floats = bread @ (p.T @ y)
    scores = p * (y - p @ means)[:, None]
    n, k = p.shape
    covariance: Floats = bread @ (scores.T @ scores) @ bread * (n / max(n - k, 1))
    return means, covariance


def frechet_bounds(y: Floats, p: Floats) -> tuple[float, float]:
    """Least and largest mean of y among members: Fréchet's bounds in each cell (Kallus, Mao and Zhou 2022)."""
    order = np.argsort(p, kind="stable")
    cells = np.array_split(order, min(CELLS, len(order)))
    share = np.array([len(cell) for cell in cells]) / len(y)
    mean, rate = (np.array([values[cell].mean() for cell in cells]) for values in (p, y))
    members = float(share @ mean)
    low, high = (float(share @ joint) / members for joint in (np.maximum(mean + rate - 1, 0), np.minimum(mean, rate)))
    return low, high


def _gap(
    race: str, estimator: Estimator, value: float, se: float, z: float, beside: tuple[float, float, float]
) -> ProxyGap:
    return ProxyGap(race, estimator, value, value - z * se, value + z * se, se, *beside)


def _none(race: str, expected: float, minimum: int) -> ProxyGap:
    reason = f"too_few: fewer than {minimum} expected members of this race, or of the reference"
    return ProxyGap(race, "regression", *_UNKNOWN, math.nan, math.nan, expected, reason)
