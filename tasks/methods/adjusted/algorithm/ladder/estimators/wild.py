"""Wild cluster bootstrap of one least squares coefficient, for few clusters.

A clustered error is too small with few clusters. Here the t of the estimate is held against its distribution if the
residuals of whole clusters change sign and size at random while the null holds (Cameron, Gelbach and Miller 2008, with
restricted residuals; six-point weights of Webb 2023). The interval is the set of nulls that are not rejected.
"""

import math
from dataclasses import dataclass

import numpy as np

from tasks.methods.adjusted.algorithm.ladder.linear import LinearFit, cluster_sums
from tasks.numerics.arrays import Floats, Ints

DRAWS = 999
WEBB = np.sqrt(np.array([0.5, 1.0, 1.5]))
"""Sizes of the six-point weights; each has either sign."""
DOUBLINGS = 12
"""An end is looked for up to 2^12 standard errors from the estimate."""
HALVINGS = 30


@dataclass(frozen=True)
class Statistic:
    """The t of one coefficient for any null b0 and weights of clusters; residuals are linear in b0.

    ``outcome`` and ``own`` are ``(G, p)`` cluster sums of x times what the other columns leave of y and of the
    coefficient's own column; ``row`` is its row of (X'X)^-1, ``slopes (G, p)`` that row times each cluster's X'X.
    """

    outcome: Floats
    own: Floats
    row: Floats
    slopes: Floats
    bread: Floats

    def t(self, null: float, weights: Floats) -> Floats:
        """``(draws,)`` of the weights ``(draws, G)``, without small-sample factor; weights of 1: the estimate's own."""
        sums = self.outcome - null * self.own
        moved = weights * (sums @ self.row)
        left = moved - (weights @ sums @ self.bread) @ self.slopes.T
        error = np.sqrt((left**2).sum(axis=1))
        found: Floats = np.divide(moved.sum(axis=1), error, out=np.zeros(len(weights)), where=error > 0)
        return found

    def p(self, null: float, weights: Floats) -> float:
        """Two-sided p of the null: share of the draws, and the estimate itself, that are as far out."""
        own = abs(float(self.t(null, np.ones((1, weights.shape[1])))[0]))
        return float((1 + (np.abs(self.t(null, weights)) >= own * (1 - 1e-12)).sum()) / (1 + len(weights)))


def wild_interval(
    x: Floats, y: Floats, fit: LinearFit, column: int, cluster: Ints, level: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Interval of a coefficient by 999 draws; NaN at an end that they do not bound.

    Args:
        x: ``(n, p)`` design of the fit.
        y: ``(n,)`` outcome.
        fit: Least squares fit, for the estimate and the first stride.
        column: Whose coefficient.
        cluster: ``(n,)`` from 0 without gaps.
        level: Of the interval.
        rng: Draws the weights.
    """
    clusters = int(cluster.max()) + 1
    stride = float(np.sqrt(fit.classical[column, column]))
    if clusters < 2 or not stride > 0:
        return math.nan, math.nan
    statistic = wild_statistic(x, y, column, cluster, clusters)
    weights = rng.choice(np.concatenate([-WEBB, WEBB]), (DRAWS, clusters)).astype(np.float64)
    value = float(fit.coefficients[column])
    low, high = (_end(statistic, weights, value, side * stride, 1 - level) for side in (-1, 1))
    return low, high


def wild_statistic(x: Floats, y: Floats, column: int, cluster: Ints, clusters: int) -> Statistic:
    """The pieces of the statistic that do not depend on the null or the draws."""
    others = np.delete(x, column, axis=1)
    q = np.linalg.qr(others)[0]
    bread: Floats = np.linalg.inv(x.T @ x).astype(np.float64)
    outcome, own = (values - q @ (q.T @ values) for values in (y, x[:, column]))
    row = bread[column]
    return Statistic(
        outcome=cluster_sums(x * outcome[:, None], cluster, clusters),
        own=cluster_sums(x * own[:, None], cluster, clusters),
        row=row,
        slopes=cluster_sums(x * (x @ row)[:, None], cluster, clusters),
        bread=bread,
    )


def _end(statistic: Statistic, weights: Floats, value: float, stride: float, alpha: float) -> float:
    """The null farthest from the estimate on one side that is not rejected, by bisection."""
    inner, outer = value, value + stride
    for _ in range(DOUBLINGS):
        if statistic.p(outer, weights) < alpha:
            break
        inner, stride = outer, 2 * stride
        outer = value + stride
    else:
        return math.nan
    for _ in range(HALVINGS):
        middle = (inner + outer) / 2
        if statistic.p(middle, weights) < alpha:
            outer = middle
        else:
            inner = middle
    return inner
