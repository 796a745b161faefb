"""Least squares: coefficients with classical, heteroscedasticity-robust (HC1) and clustered (CR1) covariances.

Scope: one fit of arrays in memory. Batches: ``tasks.methods.adjusted.algorithm.scale``.
"""

import math
from dataclasses import dataclass

import numpy as np

from tasks.numerics.arrays import Floats, Ints

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

    @property
    def robust(self) -> Floats:
        """``(p, p)`` CR1 with clusters, else HC1."""
        return self.hc1 if self.cr1 is None else self.cr1

    @property
    def se(self) -> Floats:
        """``(p,)`` robust standard errors."""
        found: Floats = np.sqrt(np.diag(self.robust))
        return found

    @property
    def t(self) -> Floats:
        """``(p,)`` coefficients over classical standard errors, as sensitivity analysis needs them."""
        found: Floats = self.coefficients / np.sqrt(np.diag(self.classical))
        return found


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
        sums = cluster_sums(scores, cluster, int(cluster.max()) + 1)
        clusters = len(np.unique(cluster))
        cr1 = sandwich(bread, sums.T @ sums, cr1_factor(n, df, clusters))
    classical = bread * float(residuals @ residuals) / df
    return LinearFit(coefficients, classical, sandwich(bread, scores.T @ scores, n / df), cr1, df, clusters)


def sandwich(bread: Floats, meat: Floats, factor: float = 1.0) -> Floats:
    """``(p, p)`` covariance of estimates whose scores have the cross products ``meat``."""
    found: Floats = factor * (bread @ meat @ bread)
    return found


def cr1_factor(n: int, df: int, clusters: int) -> float:
    """The small-sample factor of CR1, as Stata and statsmodels have it; NaN with one cluster."""
    return math.nan if clusters < 2 else clusters / (clusters - 1) * (n - 1) / df


def cluster_sums(scores: Floats, cluster: Ints, clusters: int) -> Floats:
    """``(clusters, p)`` sums of the rows of each cluster."""
    return np.column_stack([np.bincount(cluster, column, clusters) for column in scores.T])
