"""Multiplicity over partitions: false discovery rates, who is screened, and how many of those are likely false.

For screening alone: which partitions to look at. A verdict is that of a partition's own run and never follows from q.
"""

from typing import Final, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import false_discovery_control, norm
from scipy.stats import t as student

from tasks.numerics.arrays import Bools, Floats

RATE: Final = 0.05
"""False discovery rate at which partitions are screened."""
_MOST_DF: Final = 1000.0
"""Degrees of freedom from which on the normal distribution stands for Student's t."""
_LEAST_T, _MOST_T = (float(student.ppf(0.975, df)) for df in (_MOST_DF, 1.0))
"""Its quantiles there, and on one degree."""


class Screened(NamedTuple):
    """What the tests of all partitions say together."""

    q: Floats
    """``(k,)`` by Benjamini and Hochberg (1995); NaN where there is no p."""
    q_dependent: Floats
    """``(k,)`` by Benjamini and Yekutieli (2001), which holds under any dependence."""
    screened: Bools
    """``(k,)``: q at most ``RATE``, and the interval beyond the limit."""
    by_chance: float
    """Partitions that tests at 5 % would call beyond a limit that they all just keep."""
    false: float
    """Of the screened ones, how many are expected to be false at most: their largest q times their number."""


def screened(p: Floats, beyond: Bools) -> Screened:
    """Screen ``(k,)`` partitions by their p and by whether their interval lies beyond the limit. NaN: no test."""
    tested = np.isfinite(p)
    q, dependent = np.full(len(p), np.nan), np.full(len(p), np.nan)
    if tested.any():
        q[tested] = false_discovery_control(p[tested], method="bh")
        dependent[tested] = false_discovery_control(p[tested], method="by")
    found = tested & beyond & (np.nan_to_num(q, nan=1.0) <= RATE)
    false = float(q[found].max() * found.sum()) if found.any() else 0.0
    return Screened(q, dependent, found, 0.05 * float(tested.sum()), false)


def one_sided(distance: Floats, errors: Floats, halves: Floats) -> Floats:
    """``(k,)`` p of an effect at or inside the limit.

    Args:
        distance: by how far an estimate lies beyond its limit, on the scale on which it is tested; negative inside.
        errors: standard errors.
        halves: half the width of the 95 % interval, which tells the degrees of freedom of the error.
    """
    pairs = zip(distance / errors, halves / errors, strict=True)
    return np.array([_tail(z, degrees(wide)) for z, wide in pairs], dtype=np.float64)


def _tail(z: float, df: float) -> float:
    return float(norm.sf(z) if np.isinf(df) else student.sf(z, df))


def degrees(quantile: float) -> float:
    """Degrees of freedom of the 0.975 quantile of Student's t; infinite where it is that of the normal."""
    if not np.isfinite(quantile) or quantile <= _LEAST_T:
        return np.inf
    if quantile >= _MOST_T:
        return 1.0
    return float(brentq(lambda df: student.ppf(0.975, df) - quantile, 1.0, _MOST_DF))
