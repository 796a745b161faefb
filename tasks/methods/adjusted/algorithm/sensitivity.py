"""Sensitivity to an unobserved confounder."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy  # its part `stats` is loaded on first use: a spec is read without it
from scipy.special import stdtrit

from tasks.numerics.arrays import Floats

# --------------------------------------------------------------------------------------------------------------------
# Robustness values and the bias of a confounder (Cinelli and Hazlett 2020, sections 4.1 and 4.2).
#
# A strength is a partial R^2: the share of what is left of a variable, beside the other columns, that a column
# explains.


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
        half = float(stdtrit(self.df, (1 + level) / 2)) * self.se
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
        f -= float(stdtrit(estimate.df - 1, 1 - alpha / 2)) / math.sqrt(estimate.df - 1)
    return 0.0 if f <= 0 else 2 * f / (f + math.hypot(f, 2))  # the paper's (sqrt(f^4 + 4 f^2) - f^2) / 2 cancels out


def bias(estimate: Estimate, confounder: Confounder) -> float:
    """Largest bias of the estimate from the omitted confounder: sqrt(R2y R2d / (1 - R2d)) se sqrt(df)."""
    odds = confounder.group / (1 - confounder.group)
    return math.sqrt(confounder.outcome * odds * estimate.df) * estimate.se


def adjusted(estimate: Estimate, confounder: Confounder) -> Estimate:
    """The estimate adjusted for the confounder, if the confounder biased it away from zero."""
    value = estimate.value - math.copysign(bias(estimate, confounder), estimate.value)
    inflated = (1 - confounder.outcome) / (1 - confounder.group) * estimate.df / (estimate.df - 1)
    return Estimate(value, estimate.se * math.sqrt(inflated), estimate.df - 1)


# --------------------------------------------------------------------------------------------------------------------
# E-values: the risk ratio that an unseen column would need with group and denial (VanderWeele and Ding 2017).


@dataclass(frozen=True)
class EValue:
    """E-values of an adjusted difference, and the ratio that they are about."""

    ratio: float
    """The group's mean fitted denial over what it would be without the group term."""
    value: float
    near_end: float
    """Of the end of the interval nearest to no difference; 1 where the interval holds it, NaN without that end."""


def e_value(ratio: float) -> float:
    """RR + sqrt(RR (RR - 1)) of a risk ratio RR, or of 1 / RR where it is below 1; infinite of 0."""
    if math.isnan(ratio) or ratio < 0:
        return math.nan
    above = ratio if ratio >= 1 else math.inf if ratio == 0 else 1 / ratio
    return above + math.sqrt(above * (above - 1))


def e_value_of_effect(denial: float, effect: float, low: float, high: float) -> EValue:
    """E-values of an average effect over the group's own members.

    Args:
        denial: Mean fitted probability of denial of the group.
        effect: Mean difference that the group term makes of it.
        low: Lower end of the effect's interval; NaN where it has none.
        high: Upper end.
    """
    end = low if effect > 0 else high
    near = 0.0 if end * effect <= 0 else end
    return EValue(_ratio(denial, effect), e_value(_ratio(denial, effect)), e_value(_ratio(denial, near)))


def _ratio(denial: float, effect: float) -> float:
    """Infinite where nothing would be left without the group term; NaN of an end that is not there."""
    without = denial - effect
    if math.isnan(without):
        return math.nan
    return denial / without if without > 0 else math.inf if denial > 0 else math.nan


# --------------------------------------------------------------------------------------------------------------------
# Matched pairs: how much a hidden difference inside of pairs may change the odds of being a member (Rosenbaum 2002,
# Observational Studies, section 4.3.2: the bound of McNemar's test, whose signs are binomial).


def p_of_pairs(denied: int, other_denied: int, gamma: float = 1.0) -> float:
    """Largest one-sided p of discordant pairs, if a hidden column multiplies the odds in a pair by at most ``gamma``.

    Args:
        denied: pairs of which the member alone was denied.
        other_denied: pairs of which the other one alone was.
        gamma: 1 without a hidden column.
    """
    return float(scipy.stats.binom.sf(denied - 1, denied + other_denied, gamma / (1 + gamma)))


def gamma_of_pairs(denied: int, other_denied: int, alpha: float = 0.05) -> float:
    """The largest gamma at which p is at most ``alpha``; NaN where p is above it without any hidden column.

    P(X >= b) of a binomial X of n = b + c with chance q equals I_q(b, c + 1), which the inverse of that beta
    distribution solves for q = gamma / (1 + gamma). It is finite also without a pair of which the other alone was
    denied.
    """
    if not denied or p_of_pairs(denied, other_denied) > alpha:
        return math.nan
    chance = float(scipy.stats.beta.ppf(alpha, denied, other_denied + 1))
    return chance / (1 - chance)


# --------------------------------------------------------------------------------------------------------------------
# Confounders as strong as a column in the data, or 2 or 3 times so (Cinelli and Hazlett 2020, section 4.4).
#
# A declared column is all its columns of the design together: number and square, or the indicators of its categories.


TIMES = (1, 2, 3)


class Fit(Protocol):
    """What is needed of a least squares fit."""

    @property
    def coefficients(self) -> Floats:
        """``(p,)``."""
        ...

    @property
    def classical(self) -> Floats:
        """``(p, p)`` covariance under equal variances."""
        ...

    @property
    def df(self) -> int:
        """Residual degrees of freedom."""
        ...


@dataclass(frozen=True)
class Benchmark:
    """What a confounder ``times`` as strong as a column would leave of the effect."""

    column: str
    times: int
    confounder: Confounder | None
    """None where no column can be so strong: it would explain more than all of the group."""
    effect: Estimate | None


def strength(fit: Fit, columns: Sequence[int]) -> float:
    """Partial R^2 of columns of the design together, from their Wald statistic W: W / (W + df)."""
    at = np.asarray(columns)
    of = fit.coefficients[at]
    wald = float(of @ np.linalg.solve(fit.classical[np.ix_(at, at)], of))
    return wald / (wald + fit.df)


def strengths(outcome: Fit, membership: Fit, group: int, named: Mapping[str, Sequence[int]]) -> dict[str, Confounder]:
    """What each declared column explains of what is left of the outcome and of membership.

    Args:
        outcome: Fit of the outcome on the whole design.
        membership: Fit of the group's indicator on the other columns of the design, in the same order.
        group: The indicator's place in the design.
        named: Declared column -> places of its columns in the design.
    """
    return {
        name: Confounder(strength(outcome, places), strength(membership, [at - (at > group) for at in places]))
        for name, places in named.items()
        if len(places)
    }


def benchmarks(estimate: Estimate, columns: Mapping[str, Confounder]) -> tuple[Benchmark, ...]:
    """The effect, adjusted for confounders once, twice and three times as strong as each column."""
    rows = []
    for name, column in columns.items():
        for times in TIMES:
            confounder = times_as_strong(column, times)
            effect = None if confounder is None else adjusted(estimate, confounder)
            rows.append(Benchmark(name, times, confounder, effect))
    return tuple(rows)


def times_as_strong(column: Confounder, times: float) -> Confounder | None:
    """A confounder ``times`` as strong as a column, which is partialled out of the group's indicator beforehand.

    It explains ``times`` as much of the group as the column does, and of the outcome, both beside the other columns.
    Its strength with the outcome is bounded by 1, which it reaches beside a column that tells every decision.
    None where its strength with the group would be 1 or more.
    """
    group_remainder = 1 - column.group
    group = times * column.group / group_remainder
    shared = (
        times * column.group**2 / ((1 - times * column.group) * group_remainder) if times * column.group < 1 else 1.0
    )
    if group >= 1 or shared >= 1:
        return None
    eta = (times**0.5 + shared**0.5) / (1 - shared) ** 0.5
    unexplained = 1 - column.outcome
    outcome = eta**2 * column.outcome / unexplained if unexplained > 0 else 1.0
    return Confounder(min(1.0, outcome), group)


# --------------------------------------------------------------------------------------------------------------------
# The sensitivity of one group's linear effect to a column that is not in the data.


@dataclass(frozen=True)
class Sensitivity:
    """How strong an unseen column has to be to explain an effect away."""

    estimate: Estimate
    rv: float
    """Robustness value: strength with denial and group alike that brings the estimate to zero."""
    rv_alpha: float
    """The same for the end of the interval nearest to zero."""
    columns: Mapping[str, Confounder]
    """What each declared column explains."""
    benchmarks: tuple[Benchmark, ...]

    @property
    def strongest(self) -> str:
        """The declared column that explains most of what is left of denial; empty where there is none."""
        return max(self.columns, key=lambda name: self.columns[name].outcome, default="")

    @property
    def adjusted_by_strongest(self) -> Estimate | None:
        """The effect if a column as strong as the strongest one were unseen."""
        return next((benchmark.effect for benchmark in self.benchmarks if benchmark.column == self.strongest), None)


def sensitivity(
    outcome: Fit, membership: Fit, group: int, named: Mapping[str, Sequence[int]], alpha: float = 0.05
) -> Sensitivity:
    """Robustness values and benchmarks of one group's coefficient.

    Args:
        outcome: Fit of the outcome on the whole design.
        membership: Fit of the group's indicator on the other columns of the design, in the same order.
        group: The indicator's place in the design.
        named: Declared column -> places of its columns in the design.
        alpha: One less the level of the interval.
    """
    se = float(np.sqrt(outcome.classical[group, group]))
    estimate = Estimate(float(outcome.coefficients[group]), se, outcome.df)
    columns = strengths(outcome, membership, group, named)
    values = robustness_value(estimate), robustness_value(estimate, alpha)
    return Sensitivity(estimate, *values, columns, benchmarks(estimate, columns))
