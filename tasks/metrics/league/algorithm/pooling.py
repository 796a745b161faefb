"""Partial pooling: a normal-normal model of the partitions' true effects, by restricted maximum likelihood.

y_i ~ N(theta_i, v_i), theta_i ~ N(mu, tau2), on the scale on which the measure is tested: a difference, or the
logarithm of a ratio. tau2 by restricted maximum likelihood; by Paule and Mandel (1982) where that does not end inside
its bounds. mu with the interval of Hartung and Knapp (2001). Estimates of single partitions, shrunk towards mu, with
the variance of Morris (1983, JASA 78:47-65, section 5), which counts that mu and tau2 are estimated. Such an interval
covers in the mean over partitions, and less often for a partition far from all others.
"""

import math
from typing import Final, NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm
from scipy.stats import t as student

from tasks.numerics.arrays import Floats

FEWEST: Final = 4
"""Partitions from which on estimates are pooled: of fewer, Morris's factor (k - 3) / (k - 1) leaves all as they are."""
_GRID: Final = 60
"""Values of tau among which the best is refined."""
_WIDEST: Final = 3.0
"""The largest tau that is tried, in standard deviations of the estimates."""


class Spread(NamedTuple):
    """How true effects lie around their mean."""

    mean: float
    low: float
    """Ends of the interval of the mean."""
    high: float
    tau2: float
    """Variance of true effects between partitions."""
    way: str
    """``reml``, ``paule_mandel``, or ``none`` of fewer than two partitions."""


class Pooled(NamedTuple):
    """Partially pooled estimates, ``(k,)`` each."""

    values: Floats
    low: Floats
    high: Floats
    kept: Floats
    """Share of a partition's own deviation from the mean that is kept: 1 where nothing is pooled."""
    spread: Spread


def pooled(estimates: Floats, variances: Floats, level: float = 0.95) -> Pooled:
    """Partially pooled estimates with intervals, of ``(k,)`` estimates and their sampling variances.

    Raises:
        ValueError: an estimate that is not finite, or a variance that is not above 0.
    """
    if not (np.isfinite(estimates).all() and np.isfinite(variances).all() and (variances > 0).all()):
        raise ValueError("estimates are finite, and their variances above 0")
    spread, k = spread_of(estimates, variances, level), len(estimates)
    z = float(norm.isf((1 - level) / 2))
    if k < FEWEST:
        half = z * np.sqrt(variances)
        return Pooled(estimates, estimates - half, estimates + half, np.ones(k), spread)
    weights = 1 / (variances + spread.tau2)
    own = weights / weights.sum()
    shrunk = (k - 3) / (k - 1) * variances * weights
    apart = estimates - spread.mean
    typical = float(own @ variances)
    of_tau2 = 2 / (k - 3) * shrunk**2 * (typical + spread.tau2) * weights * apart**2
    values = spread.mean + (1 - shrunk) * apart
    half = z * np.sqrt(variances * (1 - (1 - own) * shrunk) + of_tau2)
    return Pooled(values, values - half, values + half, 1 - shrunk, spread)


def spread_of(estimates: Floats, variances: Floats, level: float = 0.95) -> Spread:
    """Mean of true effects with its interval, and their variance; NaN ends where there are fewer than two."""
    k = len(estimates)
    if k < 2:
        mean = float(estimates[0]) if k else math.nan
        return Spread(mean, math.nan, math.nan, 0.0, "none")
    tau2, way = restricted(estimates, variances), "reml"
    if math.isnan(tau2):
        tau2, way = paule_mandel(estimates, variances), "paule_mandel"
    weights = 1 / (variances + tau2)
    mean = float(weights @ estimates / weights.sum())
    # Hartung and Knapp, never narrower than the normal interval of the same weights
    scale = max(float(weights @ (estimates - mean) ** 2) / (k - 1), 1.0)
    half = float(student.isf((1 - level) / 2, k - 1)) * math.sqrt(scale / float(weights.sum()))
    return Spread(mean, mean - half, mean + half, tau2, way)


def restricted(estimates: Floats, variances: Floats) -> float:
    """tau2 by restricted maximum likelihood; NaN where it does not end inside its bounds."""
    widest = _WIDEST * float(estimates.std(ddof=1))
    if widest == 0:
        return 0.0
    grid = np.linspace(0, widest, _GRID)
    losses = np.array([_loss(tau, estimates, variances) for tau in grid])
    best = int(losses.argmin())
    if best == _GRID - 1 or not np.isfinite(losses).all():
        return math.nan
    around = (grid[max(best - 1, 0)], grid[best + 1])
    found = minimize_scalar(
        _loss, bounds=around, args=(estimates, variances), method="bounded", options={"xatol": 1e-6 * widest}
    )
    if not found.success:
        return math.nan
    return 0.0 if losses[0] <= found.fun else float(found.x) ** 2


def _loss(tau: float, estimates: Floats, variances: Floats) -> float:
    """Twice the negative restricted log-likelihood of tau, but for a constant."""
    total = variances + tau**2
    weights = 1 / total
    apart = estimates - weights @ estimates / weights.sum()
    return float(np.log(total).sum() + math.log(weights.sum()) + weights @ apart**2)


def paule_mandel(estimates: Floats, variances: Floats) -> float:
    """tau2 at which the weighted squares about the mean are as many as their degrees of freedom; 0 where fewer."""

    def excess(tau2: float) -> float:
        weights = 1 / (variances + tau2)
        mean = weights @ estimates / weights.sum()
        return float(weights @ (estimates - mean) ** 2) - (len(estimates) - 1)

    if excess(0.0) <= 0:
        return 0.0
    top = float(estimates.var(ddof=1))
    while excess(top) > 0:
        top *= 2
    return float(brentq(excess, 0.0, top))
