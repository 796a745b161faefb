"""Years whose true effects wander: variance between them, what the next year may show, and a trend.

Between-year variance tau2 by the method of moments (DerSimonian and Laird 1986; of residuals about a line Thompson and
Sharp 1999); prediction by Student's t on k - 1 degrees (Higgins, Thompson and Spiegelhalter 2009, with the sampling
variance of the year added, since its estimate and no true effect is held against it). specs/evidence.md, section 2.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit  # scipy.stats would take half a second and 60 MB

from tasks.numerics.arrays import Floats

ENOUGH_YEARS = 4
"""Comparable years before a year from which its change can be judged."""
ENOUGH_FOR_SLOPE = 5
_POWER = 1.96 + 0.84
"""Normal quantiles of a two-sided 5 % test and of 80 % power."""


class Prediction(NamedTuple):
    """A year beside those before it."""

    change: float
    """Its estimate less their mean."""
    low: float
    high: float
    """95 % interval of the change: 0 lies outside iff the year lies outside the prediction interval."""
    predicted_low: float
    predicted_high: float
    minimal: float
    """The smallest change that would have been seen with a power of 80 %."""
    tau2: float
    p: float
    """Two-sided, of no change."""


class Slope(NamedTuple):
    """Change a year with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def speaks(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0


def between_years(estimates: Floats, variances: Floats) -> float:
    """tau2 of ``(k,)`` estimates about their mean; 0 where they differ by no more than sampling."""
    return _moments(np.ones((len(estimates), 1)), estimates, variances)


def mean_of(estimates: Floats, variances: Floats) -> tuple[float, float, float]:
    """Random-effects mean, its variance, and tau2."""
    tau2 = between_years(estimates, variances)
    weights = 1 / (variances + tau2)
    return float(weights @ estimates / weights.sum()), float(1 / weights.sum()), tau2


def prediction(before: Floats, variances: Floats, last: float, variance: float, level: float = 0.95) -> Prediction:
    """The last year against the ``(k,)`` years before it."""
    mean, of_mean, tau2 = mean_of(before, variances)
    se, df = math.sqrt(variance + tau2 + of_mean), len(before) - 1
    half, change = float(stdtrit(df, (1 + level) / 2)) * se, last - mean
    p = float(2 * stdtr(df, -abs(change) / se))
    return Prediction(change, change - half, change + half, mean - half, mean + half, _POWER * se, tau2, p)


def slope(years: Floats, estimates: Floats, variances: Floats, level: float = 0.95) -> Slope:
    """Weighted least squares on the year, weights 1 / (v_t + tau2), t on k - 2 degrees.

    tau2 is that of the residuals about the line: about the mean, a steady trend would count as wandering and so hide.
    """
    design = np.column_stack([np.ones(len(years)), years - years.mean()])
    weights = 1 / (variances + _moments(design, estimates, variances))
    inverse = np.linalg.inv(design.T @ (weights[:, None] * design))
    value = float((inverse @ (design.T @ (weights * estimates)))[1])
    half = float(stdtrit(len(years) - 2, (1 + level) / 2)) * math.sqrt(float(inverse[1, 1]))
    return Slope(value, value - half, value + half)


def _moments(design: Floats, estimates: Floats, variances: Floats) -> float:
    """tau2 = max(0, (Q - (k - p)) / (sum w - tr((X'WX)^-1 X'W^2 X))), w = 1 / v."""
    w = 1 / variances
    inverse = np.linalg.inv(design.T @ (w[:, None] * design))
    residuals = estimates - design @ (inverse @ (design.T @ (w * estimates)))
    excess = float(w @ residuals**2) - (len(estimates) - design.shape[1])
    scale = float(w.sum() - np.trace(inverse @ (design.T @ ((w**2)[:, None] * design))))
    return float(max(0.0, excess / scale))
