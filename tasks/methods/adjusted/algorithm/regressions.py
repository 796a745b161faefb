"""Least squares, logits of separated decisions (their limit, and Firth's fit) and average marginal effects."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are loaded on first use: a spec is read without them

from tasks.methods.adjusted.algorithm.design import independent
from tasks.numerics.arrays import Bools, Floats, Ints, Longs, Matrix, Packed, some_columns_of, some_rows_of, sums_of
from tasks.numerics.statistics.regression import (
    FLAT,
    Estimate,
    LogitFit,
    estimate,
    has_maximum,
    information,
    inverse,
    log_likelihood,
    logistic,
    solve,
    standard_error,
)

# --------------------------------------------------------------------------------------------------------------------
# Least squares: coefficients with classical, heteroscedasticity-robust (HC1) and clustered (CR1) covariances.
#
# Scope: one fit of arrays in memory. Batches: ``tasks.methods.adjusted.algorithm.streamed``.


COLLINEAR = 1e-10
"""A column whose part beside the others is so small a share of its length is collinear."""


class CollinearError(ValueError):
    """A column of the design is a combination of the others."""


@dataclass(frozen=True)
class LinearFit:
    """A least squares fit of ``p`` columns."""

    coefficients: Floats
    """``(p,)``."""
    classical: Floats
    """``(p, p)`` covariance under equal variances: s^2 (X'X)^-1."""
    hc1: Floats
    """``(p, p)`` sandwich with squared residuals, times n / (n - p)."""
    cr1: Floats | None
    """``(p, p)`` sandwich with scores summed by cluster, times G / (G - 1) and (n - 1) / (n - p); None without."""
    df: int
    """Residual degrees of freedom."""
    clusters: int = 0

    def ordered(self, columns: Longs) -> "LinearFit":
        """The same fit with its columns in another order, ``(p,)`` places in this one."""
        at = np.ix_(columns, columns)
        cr1 = None if self.cr1 is None else self.cr1[at]
        return LinearFit(self.coefficients[columns], self.classical[at], self.hc1[at], cr1, self.df, self.clusters)

    @property
    def robust(self) -> Floats:
        """``(p, p)`` CR1 with clusters, else HC1."""
        return self.hc1 if self.cr1 is None else self.cr1

    @property
    def se(self) -> Floats:
        """``(p,)`` robust standard errors."""
        errors: Floats = np.sqrt(np.diag(self.robust))
        return errors

    @property
    def t(self) -> Floats:
        """``(p,)`` coefficients over classical standard errors, as sensitivity analysis needs them."""
        statistics: Floats = self.coefficients / np.sqrt(np.diag(self.classical))
        return statistics


def fit_linear(y: Floats, x: Floats, cluster: Ints | None = None, absorbed: int = 0) -> LinearFit:
    """Fit ``y`` on the columns of ``x`` by least squares.

    Args:
        y: ``(n,)`` outcome.
        x: ``(n, p)`` design with its intercept; a column of ones is not added.
        cluster: ``(n,)`` cluster of each row, from 0.
        absorbed: Parameters that were taken out beforehand (levels of a fixed effect); they count in the degrees of
            freedom.

    Raises:
        CollinearError: A column is a combination of those before it, or there are no more rows than columns.
    """
    n, p = x.shape
    df = n - p - absorbed
    if df < 1:
        raise CollinearError(f"{n} rows are too few for {p + absorbed} columns")
    q, r = np.linalg.qr(x)
    beside, length = np.abs(np.diag(r)), np.linalg.norm(x, axis=0)
    if np.any(beside <= COLLINEAR * length):
        raise CollinearError(f"column {int(np.argmax(beside <= COLLINEAR * length))} is a combination of those before")
    inverse = np.linalg.inv(r)
    coefficients = inverse @ (q.T @ y)
    residuals = y - x @ coefficients
    bread = inverse @ inverse.T
    scores = x * residuals[:, None]
    cr1, clusters = None, 0
    if cluster is not None:
        sums = cluster_sums(x, residuals, cluster, int(cluster.max()) + 1)
        clusters = len(np.unique(cluster))
        cr1 = sandwich(bread, sums.T @ sums, cr1_factor(n, df, clusters))
    classical = bread * float(residuals @ residuals) / df
    return LinearFit(coefficients, classical, sandwich(bread, scores.T @ scores, n / df), cr1, df, clusters)


def sandwich(bread: Floats, meat: Floats, factor: float = 1.0) -> Floats:
    """Sandwich covariance ``(p, p)`` of estimates from the cross products ``meat`` of their scores."""
    covariance: Floats = factor * (bread @ meat @ bread)
    return covariance


def cr1_factor(n: int, df: int, clusters: int) -> float:
    """The small-sample factor of CR1, as Stata and statsmodels have it; NaN with one cluster."""
    return math.nan if clusters < 2 else clusters / (clusters - 1) * (n - 1) / df


def cluster_sums(x: Matrix, values: Floats, cluster: Ints, clusters: int) -> Floats:
    """``(clusters, p)`` sums over the rows of each cluster of the columns of ``x (n, p)`` times ``values (n,)``."""
    if isinstance(x, Packed):
        return x.sums_by(values, cluster, clusters)
    cells = (values, cluster, np.arange(len(values) + 1))
    sums: Floats = scipy.sparse.csc_matrix(cells, shape=(clusters, len(values))) @ x
    return sums


# --------------------------------------------------------------------------------------------------------------------
# The limit of the maximum likelihood where columns tell some decisions by themselves.
#
# Coefficients then grow without end along a direction of recession, in which no row loses likelihood (Albert and
# Anderson 1984). The rows that gain along it are fitted perfectly at the limit: they leave, with the columns that the
# other rows no longer tell apart, and what is left has a maximum. Average effects are those of the limit: a row that
# left has a probability of 0 or 1 for either group, and adds nothing.


LIMIT_STEPS, LIMIT_SMALL = 200, 1e-8
LONGEST = 5.0
"""No coefficient moves by more in one step (``maxstep`` of the R package logistf)."""
SURE = 1e-6
"""A row leaves once its fitted probability is so near to its decision."""
STEADY = 1e-2
"""A column that moves along a direction by a smaller share of the largest gain has no part in it."""


@dataclass(frozen=True)
class LimitFit:
    """A maximum likelihood fit of the rows and columns that are left at the limit."""

    rows: Longs
    """``(m,)`` rows that stay, ascending."""
    columns: Longs
    """``(q,)`` columns that stay, ascending."""
    steady: Bools
    """``(p,)`` columns that have no part in any direction of recession."""
    fit: LogitFit
    """Of the rows and columns that stay."""


def fit_limit(x: Matrix, y: Floats) -> LimitFit | None:
    """The limit of a logit with a likelihood without maximum; None where there is none, or nothing is left of it.

    Args:
        x: ``(n, p)`` design of full rank, intercept first.
        y: ``(n,)`` 0 or 1.
    """
    rows, columns, steady = np.arange(len(y)), np.arange(x.shape[1]), np.ones(x.shape[1], np.bool_)
    b = np.zeros(x.shape[1])
    for passes in range(1, LIMIT_STEPS + 1):
        p = logistic(x @ b)
        matrix = information(x, p)
        step = solve(matrix, sums_of(x, y - p))
        longest = float(np.abs(step).max())
        if longest <= LIMIT_SMALL:
            fit = LogitFit(b, p, inverse(matrix), "", passes)
            return LimitFit(rows, columns, steady, fit) if has_maximum(x, y, p) else None
        b = b + step * min(1.0, LONGEST / longest)
        if passes % 2:
            continue
        gain = np.where(y > 0, 1.0, -1.0) * (x @ step)
        largest = float(np.abs(gain).max())
        leaves = (gain > FLAT * largest) & (np.abs(y - p) < SURE)
        if gain.min() < -FLAT * largest or not leaves.any() or leaves.all():
            continue
        steady[columns[np.abs(step) > STEADY * largest]] = False
        rows, x, y = rows[~leaves], some_rows_of(x, ~leaves), y[~leaves]
        is_independent = independent(x)
        columns, x, b = columns[is_independent], some_columns_of(x, is_independent), b[is_independent]
        if log_likelihood(x @ b, y) < -len(y) * math.log(2):  # less than at 0
            b = np.zeros(len(b))
    return None


# --------------------------------------------------------------------------------------------------------------------
# Firth's penalised logistic regression, for groups that columns tell the decisions of, so that there is no limit.
#
# The likelihood times the root of the determinant of the information (Jeffreys' prior) has a finite maximum where the
# likelihood has none (Firth 1993; Heinze and Schemper 2002). Intervals are of the profile penalised likelihood: a Wald
# interval of a separated fit is meaningless.


STEPS, HALVINGS = 200, 25
SMALL = 1e-7
"""A fit has converged when no coefficient moves by more."""
FARTHEST = 40.0
"""A profile that has not fallen enough so far from the estimate, and as far beyond zero, has no end."""
MOST_FITS = 25
"""Of one end: one that is not found by then counts as none, which makes the interval wider."""
NEAR = 1e-6
"""Tolerance of the profile to the quantile at an end."""
MEMORY = 6
"""Steps from which the next one is extrapolated."""
SHORT = 1.0
"""A step is extrapolated once no coefficient moves by more."""


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
    passes: int = 0
    """Passes over the rows."""


@dataclass(frozen=True)
class Profile:
    """Interval of one coefficient; the fits at its ends give intervals of what depends on all coefficients."""

    low: Floats | None
    """``(p,)`` coefficients at the lower end, the others at their best there; None where there is no end."""
    high: Floats | None
    passes: int = 0


@dataclass(frozen=True)
class _Point:
    """Coefficients with their penalised likelihood and what a step from them needs."""

    b: Floats
    fitted: Floats
    information: Floats
    likelihood: float


def fit_firth(x: Floats, y: Floats, start: Floats | None = None, fixed_column: int | None = None) -> FirthFit:
    """Maximise log L(b) + log det(X'WX) / 2 (Firth 1993) by steps I^-1 U*, U* = X'(y - p + h (1/2 - p)).

    These steps shrink by a constant share. So the last ones are extrapolated to where they would end (Anderson 1965;
    Walker and Ni 2011), and the result is taken if the penalised likelihood does not fall there.

    Args:
        x: ``(n, p)`` design of full rank; h is the diagonal of its weighted hat matrix.
        y: ``(n,)`` 0 or 1.
        start: ``(p,)`` first coefficients; zeros if left out.
        fixed_column: A column whose coefficient stays at its start (for profiles).
    """
    point = _at(x, y, np.zeros(x.shape[1]) if start is None else start)
    free = np.arange(x.shape[1]) != (-1 if fixed_column is None else fixed_column)
    converged, passes = False, 1
    moves, changes = deque[Floats](maxlen=MEMORY), deque[Floats](maxlen=MEMORY)
    before: tuple[Floats, Floats] | None = None
    for _ in range(STEPS):
        p = point.fitted
        hat = p * (1 - p) * np.einsum("ij,ij->i", x @ inverse(point.information), x)
        score = x.T @ (y - p + hat * (0.5 - p))
        step = np.zeros(len(point.b))
        step[free] = solve(point.information[np.ix_(free, free)], score[free])
        longest = float(np.abs(step).max(initial=0.0))
        converged = longest <= SMALL
        if converged:
            break
        if before is not None:
            moves.append(point.b - before[0])
            changes.append(step - before[1])
        before = (point.b, step)
        reached, tried = _extrapolated(x, y, point, step, moves, changes)
        if reached is None:
            reached, passes_of_step = _ascend(x, y, point, step * min(1.0, LONGEST / longest))
            tried += passes_of_step
        passes += tried
        if reached is point:
            break
        point = reached
    return FirthFit(point.b, point.likelihood, inverse(point.information), converged, passes)


def _extrapolated(
    x: Floats, y: Floats, point: _Point, step: Floats, moves: Sequence[Floats], changes: Sequence[Floats]
) -> tuple[_Point | None, int]:
    """Where the last steps lead to, if the penalised likelihood does not fall there; and passes over the rows."""
    if not changes or np.abs(step).max() >= SHORT:
        return None, 0
    of_steps, of_moves = np.column_stack(list(changes)), np.column_stack(list(moves))
    share = np.linalg.lstsq(of_steps, step, rcond=1e-10)[0]
    move = step - (of_moves + of_steps) @ share
    if np.abs(move).max() >= LONGEST:
        return None, 0
    reached = _at(x, y, point.b + move)
    return (reached if reached.likelihood >= _least(point) else None), 1


def penalised(x: Floats, y: Floats, b: Floats) -> float:
    """Log likelihood plus half the log determinant of the information; minus infinity where that is singular."""
    return _at(x, y, b).likelihood


def profile_interval(x: Floats, y: Floats, fit: FirthFit, column: int, level: float) -> Profile:
    """The coefficients at which twice the fall of the profile penalised likelihood is the chi-square quantile.

    Heinze and Schemper (2002), section 2.3.
    """
    quantile = float(scipy.stats.chi2.ppf(level, 1)) ** 0.5
    (low, first), (high, second) = (_end(x, y, fit, column, quantile, side) for side in (-1, 1))
    return Profile(low, high, first + second)


def _at(x: Floats, y: Floats, b: Floats) -> _Point:
    index = x @ b
    fitted = logistic(index)
    matrix = information(x, fitted)
    sign, determinant = np.linalg.slogdet(matrix)
    likelihood = log_likelihood(index, y) + 0.5 * float(determinant) if sign > 0 else -np.inf
    return _Point(b, fitted, matrix, likelihood)


def _least(point: _Point) -> float:
    """The least likelihood that is no fall beyond rounding."""
    return point.likelihood - 1e-12 * abs(point.likelihood)


def _ascend(x: Floats, y: Floats, point: _Point, step: Floats) -> tuple[_Point, int]:
    """The step, halved until the penalised likelihood does not fall; the point itself if it does. And the passes."""
    for passes in range(1, 1 + HALVINGS):
        reached = _at(x, y, point.b + step)
        if reached.likelihood >= _least(point):
            return reached, passes
        step = step / 2
    return point, HALVINGS


def _end(x: Floats, y: Floats, fit: FirthFit, column: int, quantile: float, side: int) -> tuple[Floats | None, int]:
    """Coefficients at one end of the profile interval, None where the profile does not fall so far; and the passes.

    The signed root of twice the fall is nearly linear in the coefficient: false position on it, within a bracket. A fit
    starts on the line through the two nearest ones.
    """
    direction = fit.inverse[column] / fit.inverse[column, column]
    inner, outer = (0.0, -quantile), (np.inf, np.inf)  # distance from the estimate, root of the fall less the quantile
    away = quantile * float(np.sqrt(fit.inverse[column, column]))
    farthest = max(FARTHEST, 2 * float(abs(fit.coefficients[column])))
    places, passes = [(0.0, fit.coefficients)], 0
    for _ in range(MOST_FITS):
        if away > farthest:
            break
        start = fit.coefficients + side * away * direction
        if len(places) > 1:
            (first, b), (second, other) = sorted(places, key=lambda place: abs(place[0] - away))[:2]
            start = b + (other - b) * ((away - first) / (second - first))
            start[column] = fit.coefficients[column] + side * away
        restricted_fit = fit_firth(x, y, start, fixed_column=column)
        passes += restricted_fit.passes
        excess = max(2 * (fit.likelihood - restricted_fit.likelihood), 0.0) ** 0.5 - quantile
        if abs(excess) <= NEAR:
            return restricted_fit.coefficients, passes
        places.append((away, restricted_fit.coefficients))
        inner, outer = ((away, excess), outer) if excess < 0 else (inner, (away, excess))
        if outer[0] - inner[0] <= 1e-9 * max(1.0, inner[0]):
            return restricted_fit.coefficients, passes
        away = _next(inner, outer, farthest)
    return None, passes


def _next(inner: tuple[float, float], outer: tuple[float, float], farthest: float) -> float:
    """Where the line through two points of the root crosses zero, kept within the bracket; twice as far without one."""
    if not np.isfinite(outer[0]):
        return min(2 * inner[0], farthest) if inner[0] < farthest else np.inf
    width = outer[0] - inner[0]
    share = -inner[1] / (outer[1] - inner[1])
    return inner[0] + width * min(max(share, 0.05), 0.95)


# --------------------------------------------------------------------------------------------------------------------
# Average marginal effects of a group: the mean change of the fitted probability if its indicator is turned on.
#
# A discrete change, not a derivative: each row's probability with the indicator of the group at 1 and all other
# indicators at 0, minus that with all at 0. Standard errors by the delta method with the sandwich: the influence of row
# i is G' H^-1 x_i (y_i - p_i), G the gradient of the effect (Wooldridge 2010, section 15.8.4; Greene 2012, section
# 17.3.2).


@dataclass(frozen=True)
class Change:
    """Mean probability of the rows with the group's indicator on and off."""

    on: float
    off: float
    on_gradient: Floats
    """``(p,)`` derivative of ``on`` by the coefficients."""
    off_gradient: Floats

    @property
    def effect(self) -> float:
        """The average marginal effect."""
        return self.on - self.off

    @property
    def gradient(self) -> Floats:
        """``(p,)`` of the effect."""
        return self.on_gradient - self.off_gradient


def change(coefficients: Floats, x: Matrix, column: int, indicators: slice, weight: Floats | None = None) -> Change:
    """Mean probabilities of the rows ``x`` with the indicator ``column`` at 1 and at 0.

    Args:
        coefficients: ``(p,)`` of a logit.
        x: ``(m, p)`` rows to average over.
        column: Indicator of the group.
        indicators: Columns of all groups, set to 0 first.
        weight: ``(m,)`` how much each row counts; all alike if left out.
    """
    share = np.full(len(x), 1 / len(x)) if weight is None else weight / weight.sum()
    without_groups = coefficients.copy()
    without_groups[indicators] = 0.0
    index = x @ without_groups
    off, on = logistic(index), logistic(index + coefficients[column])
    slope_off, slope_on = share * off * (1 - off), share * on * (1 - on)
    off_gradient, on_gradient = sums_of(x, slope_off), sums_of(x, slope_on)
    off_gradient[indicators], on_gradient[indicators] = 0.0, 0.0
    on_gradient[column] = slope_on.sum()
    return Change(float(share @ on), float(share @ off), on_gradient, off_gradient)


def effect_of(
    denial_change: Change, fit: LogitFit, x: Matrix, y: Floats, level: float, cluster: Ints | None = None
) -> Estimate:
    """The effect with the interval of the delta method; ``x``, ``y``, ``cluster`` are the rows of the fit."""
    influence = (x @ (fit.inverse @ denial_change.gradient)) * (y - fit.fitted)
    return estimate(denial_change.effect, standard_error(influence, cluster), level, cluster)
