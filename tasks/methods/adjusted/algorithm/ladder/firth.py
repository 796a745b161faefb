"""Firth's penalised logistic regression, for groups or categories without a denial or without an approval.

The likelihood times the root of the determinant of the information (Jeffreys' prior) has a finite maximum where the
likelihood has none (Firth 1993; Heinze and Schemper 2002). Intervals are of the profile penalised likelihood: a Wald
interval of a separated fit is meaningless.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from scipy.stats import chi2

from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.statistics.logit import information, inverse, log_likelihood, solve

STEPS = 200
SMALL = 1e-7
"""A fit has converged when no coefficient moves by more."""
LONGEST = 5.0
"""No coefficient moves by more in one step (``maxstep`` of the R package logistf)."""
FARTHEST = 40.0
"""A profile that has not fallen enough so far from the estimate, and as far beyond zero, has no end."""
MOST_FITS = 25
"""Of one end: one that is not found by then counts as none, which makes the interval wider."""
NEAR = 1e-6
"""How near the profile comes to the quantile at an end."""


@dataclass(frozen=True)
class FirthFit:
    """Maximum of the penalised likelihood."""

    coefficients: Floats
    """``(p,)``."""
    likelihood: float
    """Penalised log likelihood."""
    inverse: Floats
    """``(p, p)`` inverse information."""
    converged: bool


@dataclass(frozen=True)
class Profile:
    """Interval of one coefficient; the fits at its ends give intervals of what depends on all coefficients."""

    low: Floats | None
    """``(p,)`` coefficients at the lower end, the others at their best there; None where there is no end."""
    high: Floats | None


@dataclass(frozen=True)
class _Point:
    """Coefficients with their penalised likelihood and what a step from them needs."""

    b: Floats
    fitted: Floats
    information: Floats
    likelihood: float


def fit_firth(x: Floats, y: Floats, start: Floats | None = None, held: int | None = None) -> FirthFit:
    """Maximise log L(b) + log det(X'WX) / 2 (Firth 1993) by steps I^-1 U*, U* = X'(y - p + h (1/2 - p)).

    Args:
        x: ``(n, p)`` design of full rank; h is the diagonal of its weighted hat matrix.
        y: ``(n,)`` 0 or 1.
        start: ``(p,)`` first coefficients; zeros if left out.
        held: A column whose coefficient stays at its start (for profiles).
    """
    point = _at(x, y, np.zeros(x.shape[1]) if start is None else start)
    free = np.arange(x.shape[1]) != (-1 if held is None else held)
    converged = False
    for _ in range(STEPS):
        step = _step(x, y, point, free)
        longest = float(np.abs(step).max(initial=0.0))
        converged = longest <= SMALL
        if converged:
            break
        reached = _ascend(x, y, point, step * min(1.0, LONGEST / longest))
        if reached is point:
            break
        point = reached
    return FirthFit(point.b, point.likelihood, inverse(point.information), converged)


def penalised(x: Floats, y: Floats, b: Floats) -> float:
    """Log likelihood plus half the log determinant of the information; minus infinity where that is singular."""
    return _at(x, y, b).likelihood


def profile_interval(x: Floats, y: Floats, fit: FirthFit, column: int, level: float) -> Profile:
    """The coefficients at which twice the fall of the profile penalised likelihood is the chi-square quantile.

    Heinze and Schemper (2002), section 2.3.
    """
    quantile = float(chi2.ppf(level, 1)) ** 0.5
    low, high = (_end(x, y, fit, column, quantile, side) for side in (-1, 1))
    return Profile(low, high)


def _at(x: Floats, y: Floats, b: Floats) -> _Point:
    index = x @ b
    fitted = expit(index)
    matrix = information(x, fitted)
    sign, determinant = np.linalg.slogdet(matrix)
    likelihood = log_likelihood(index, y) + 0.5 * float(determinant) if sign > 0 else -np.inf
    return _Point(b, fitted, matrix, likelihood)


def _step(x: Floats, y: Floats, point: _Point, free: Bools) -> Floats:
    """Scoring step of the free coefficients, 0 for the one that is held."""
    p = point.fitted
    hat = p * (1 - p) * np.einsum("ij,ij->i", x @ inverse(point.information), x)
    score = x.T @ (y - p + hat * (0.5 - p))
    step = np.zeros(len(point.b))
    step[free] = solve(point.information[np.ix_(free, free)], score[free])
    return step


def _ascend(x: Floats, y: Floats, point: _Point, step: Floats) -> _Point:
    """The step, halved until the penalised likelihood does not fall beyond rounding; the point itself if it does."""
    least = point.likelihood - 1e-12 * abs(point.likelihood)
    for _ in range(25):
        reached = _at(x, y, point.b + step)
        if reached.likelihood >= least:
            return reached
        step = step / 2
    return point


def _end(x: Floats, y: Floats, fit: FirthFit, column: int, quantile: float, side: int) -> Floats | None:
    """Coefficients at one end of the profile interval, None where the profile does not fall so far.

    The signed root of twice the fall is nearly linear in the coefficient: false position on it, within a bracket.
    """
    direction = fit.inverse[column] / fit.inverse[column, column]
    inner, outer = (0.0, -quantile), (np.inf, np.inf)  # distance from the estimate, root of the fall less the quantile
    away = quantile * float(np.sqrt(fit.inverse[column, column]))
    farthest = max(FARTHEST, 2 * float(abs(fit.coefficients[column])))
    for _ in range(MOST_FITS):
        if away > farthest:
            break
        found = fit_firth(x, y, fit.coefficients + side * away * direction, held=column)
        excess = max(2 * (fit.likelihood - found.likelihood), 0.0) ** 0.5 - quantile
        if abs(excess) <= NEAR:
            return found.coefficients
        inner, outer = ((away, excess), outer) if excess < 0 else (inner, (away, excess))
        if outer[0] - inner[0] <= 1e-9 * max(1.0, inner[0]):
            return found.coefficients
        away = _next(inner, outer, farthest)
    return None


def _next(inner: tuple[float, float], outer: tuple[float, float], farthest: float) -> float:
    """Where the line through two points of the root crosses zero, kept within the bracket; twice as far without one."""
    if not np.isfinite(outer[0]):
        return min(2 * inner[0], farthest) if inner[0] < farthest else np.inf
    width = outer[0] - inner[0]
    share = -inner[1] / (outer[1] - inner[1])
    return inner[0] + width * min(max(share, 0.05), 0.95)
