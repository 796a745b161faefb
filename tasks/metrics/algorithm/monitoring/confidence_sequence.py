"""Years against a limit: a band that may be looked at after every year, for ever.

Estimates e_t with variances v_t are pooled by precision: I_t = sum 1 / v_t, pooled = sum(e_t / v_t) / I_t. The normal
mixture gives the radius sqrt((I_t + r) log((I_t + r) / (r a^2))) / I_t (Robbins 1970; Howard, Ramdas, McAuliffe and
Sekhon 2021): with probability 1 - a no band of any year misses a true effect that stays the same.
specs/verdicts.md, section 6.

A band is two-sided and each verdict is about one side, so that a = 2 alpha / m keeps alpha over the m groups of a
theory. Where years differ by more than sampling, their variance between years is added to each v_t first.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from tasks.metrics.algorithm.monitoring.random_effects import ENOUGH_YEARS, between_years
from tasks.numerics.arrays import Floats

MIXTURE = 0.35
"""r over the information of the first year: the band is 2.8 standard errors wide to each side, all along."""


class Band(NamedTuple):
    """A pooled estimate with its band, on the scale of the estimates."""

    pooled: float
    low: float
    high: float
    tau2: float = 0.0
    """Variance between years that was added to each year's."""

    def widened(self, bias: float) -> "Band":
        """The band with a bias of unknown sign on both sides."""
        return self._replace(low=self.low - bias, high=self.high + bias)


def radius(information: float, first: float, a: float) -> float:
    """Half the width of the band.

    Args:
        information: I_t, of all years so far.
        first: information of the first year.
        a: probability that the band of any year misses the truth.
    """
    r = MIXTURE * first
    return math.sqrt((information + r) * math.log((information + r) / (r * a * a))) / information


def confidence_sequence(estimates: Floats, variances: Floats, biases: Floats, a: float) -> Band:
    """The band after the last of these years; those of earlier years are the same function of fewer years.

    Args:
        estimates: ``(t,)`` in order of years.
        variances: ``(t,)``.
        biases: ``(t,)`` how far each may lie off for a reason that more years do not cure; 0 where for none.
        a: as in ``radius``.
    """
    tau2 = between_years(estimates, variances) if len(estimates) >= ENOUGH_YEARS else 0.0
    weights = 1 / (variances + tau2)
    information = float(weights.sum())
    pooled, bias = float(weights @ estimates) / information, float(weights @ biases) / information
    half = radius(information, float(weights[0]), a)
    return Band(pooled, pooled - half, pooled + half, tau2).widened(bias)


def single_year(estimate: float, variance: float, bias: float, alpha: float) -> Band:
    """The band of one year by itself, each side at ``alpha``."""
    half = -float(ndtri(alpha)) * math.sqrt(variance)
    return Band(estimate, estimate - half, estimate + half).widened(bias)


def bonferroni(estimate: float, variance: float, bias: float, alpha: float, years: int) -> Band:
    """The band of one year of a plan of so many: each spends an equal part of ``alpha``."""
    return single_year(estimate, variance, bias, alpha / years)


def false_breach(alpha: float, years: int) -> float:
    """Probability that an honest lender at its limit is in breach in some year, each tested alone."""
    return float(1 - np.power(1 - alpha, years))
