"""Robustness values and the bias of a confounder (Cinelli and Hazlett 2020, sections 4.1 and 4.2).

A strength is a partial R^2: the share of what is left of a variable, beside the other columns, that a column explains.
"""

import math
from dataclasses import dataclass

import scipy  # its part `stats` is loaded on first use: a spec is read without it


@dataclass(frozen=True)
class Estimate:
    """A coefficient of a linear fit with its classical standard error."""

    value: float
    se: float
    df: int
    """Residual degrees of freedom."""

    @property
    def f(self) -> float:
        """Cohen's f of the coefficient: |t| / sqrt(df)."""
        return abs(self.value / self.se) / math.sqrt(self.df)

    def interval(self, level: float) -> tuple[float, float]:
        """Its interval by Student's t."""
        half = float(scipy.stats.t.ppf((1 + level) / 2, self.df)) * self.se
        return self.value - half, self.value + half


@dataclass(frozen=True)
class Confounder:
    """A column that is not in the fit."""

    outcome: float
    """Partial R^2 with the outcome, given group and columns."""
    group: float
    """Partial R^2 with membership of the group, given the columns."""


def robustness_value(estimate: Estimate, alpha: float | None = None) -> float:
    """The least strength, with outcome and group alike, that brings the estimate to zero.

    Args:
        estimate: What is to be brought to zero.
        alpha: If given, what is brought to zero is the end of the interval of level 1 - alpha nearest to it.
    """
    f = estimate.f
    if alpha is not None:
        f -= float(scipy.stats.t.ppf(1 - alpha / 2, estimate.df - 1)) / math.sqrt(estimate.df - 1)
    return 0.0 if f <= 0 else (math.sqrt(f**4 + 4 * f**2) - f**2) / 2


def bias(estimate: Estimate, confounder: Confounder) -> float:
    """How far at most the confounder's absence has moved the estimate: sqrt(R2y R2d / (1 - R2d)) se sqrt(df)."""
    odds = confounder.group / (1 - confounder.group)
    return math.sqrt(confounder.outcome * odds * estimate.df) * estimate.se


def adjusted(estimate: Estimate, confounder: Confounder) -> Estimate:
    """The estimate as it would be with the confounder in the fit, if it had moved it away from zero."""
    value = estimate.value - math.copysign(bias(estimate, confounder), estimate.value)
    inflated = (1 - confounder.outcome) / (1 - confounder.group) * estimate.df / (estimate.df - 1)
    return Estimate(value, estimate.se * math.sqrt(inflated), estimate.df - 1)
