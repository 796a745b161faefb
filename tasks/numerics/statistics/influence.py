"""Standard errors from influence functions: sums of squares over rows, or over clusters of rows.

An estimate moves by the influence of a row if the row is given a little more weight; its variance is the sum of
squared influences (Huber 1967; Liang and Zeger 1986 with clusters).
"""

import math
from typing import NamedTuple

import numpy as np
import scipy  # its part `stats` is loaded on first use: a spec is read without it

from tasks.numerics.arrays import Floats, Ints

FEW_CLUSTERS = 20
"""With fewer a clustered error is too small on average (Cameron and Miller 2015)."""


class Estimate(NamedTuple):
    """An estimate with its standard error and interval; NaN where there is none, and ``reason`` says why."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    se: float = math.nan
    reason: str = ""


def standard_error(influence: Floats, cluster: Ints | None = None) -> float:
    """Root of the sum of squared influences ``(n,)``; of their cluster sums, times G / (G - 1), with clusters.

    NaN with a single cluster.
    """
    if cluster is None:
        return float(np.sqrt(influence @ influence))
    sums = np.bincount(cluster, influence)
    count = len(np.unique(cluster))
    return float(np.sqrt(sums @ sums * count / (count - 1))) if count > 1 else math.nan


def critical_value(level: float, cluster: Ints | None = None) -> float:
    """Half width of an interval in standard errors: normal, or Student's t with G - 1 degrees of freedom."""
    if cluster is None:
        return float(scipy.stats.norm.ppf((1 + level) / 2))
    count = len(np.unique(cluster))
    return float(scipy.stats.t.ppf((1 + level) / 2, count - 1)) if count > 1 else math.nan


def estimate(value: float, se: float, level: float, cluster: Ints | None = None, reason: str = "") -> Estimate:
    """The symmetric interval around an estimate."""
    half = critical_value(level, cluster) * se
    return Estimate(value, value - half, value + half, se, reason)
