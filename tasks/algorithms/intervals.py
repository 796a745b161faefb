"""Intervals: a bootstrap that resamples the very statistic that is printed (percentile method, Efron 1979).

A statistic is the mean of values over units, where a unit may have none (NaN) and is then resampled with the others
but left out of the mean. Shares whose sample is all 0 or all 1 would get an interval of no width; they take the exact
binomial one (Clopper and Pearson 1934) instead.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, false_discovery_control, fisher_exact

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

ENOUGH = 0.9
"""Share of the resamples that must have a value for an interval."""

_DRAWN_AT_ONCE = 2**19
"""Units held at a time while resampling."""

_FEW_VALUES = 64
"""Up to this many distinct values resampling their counts is faster than resampling units."""


@dataclass(frozen=True)
class Estimate:
    """A mean over units with its interval. Fields are NaN where the mean is not defined."""

    value: float
    low: float
    high: float
    n: int
    """Units, those without a value included."""
    defined: int
    """Units with a value: those that the mean is of."""
    events: int | None
    """Units whose value is 1, where all values are 0 or 1."""
    replicates: Floats
    """``(draws,)`` means of the resamples, NaN where a resample has no value."""


def estimate(values: Floats, counts: Longs, rng: np.random.Generator, draws: int, level: float) -> Estimate:
    """Mean and interval of a statistic given as distinct values ``(v,)`` and their counts ``(v,)``."""
    n = int(counts.sum())
    if n == 0:
        return Estimate(np.nan, np.nan, np.nan, 0, 0, None, np.full(draws, np.nan))
    value = float(_means(values, counts[None, :])[0])
    replicates = _resample(values, counts, rng, draws)
    low, high = percentile_interval(replicates, level)
    known = ~np.isnan(values)
    defined = int(counts[known].sum())
    events = int(counts[values == 1].sum()) if is_share(values) else None
    if events is not None and defined and events in (0, defined):
        exact = binomtest(events, defined).proportion_ci(level)
        low, high = float(exact.low), float(exact.high)
    return Estimate(value, low, high, n, defined, events, replicates)


def is_share(values: Floats) -> bool:
    """Whether a statistic is a share: 0 or 1 on every unit on which it is defined."""
    return bool(np.isin(values[~np.isnan(values)], (0.0, 1.0)).all())


def percentile_interval(replicates: Floats, level: float) -> tuple[float, float]:
    """Central interval of the finite replicates; NaN if fewer than nine in ten are finite."""
    finite = replicates[np.isfinite(replicates)]
    if len(finite) < ENOUGH * len(replicates) or len(finite) == 0:
        return np.nan, np.nan
    tail = (1 - level) / 2
    low, high = np.quantile(finite, (tail, 1 - tail))
    return float(low), float(high)


def two_sided_p(differences: Floats) -> float:
    """Two-sided p that a difference is 0, from its resamples: (1 + those on the rarer side of 0) / (1 + resamples)."""
    finite = differences[np.isfinite(differences)]
    if len(finite) == 0:
        return np.nan
    beyond = min(int((finite >= 0).sum()), int((finite <= 0).sum()))
    return float(min(2 * (1 + beyond) / (1 + len(finite)), 1.0))


def fisher_p(events: tuple[int, int], n: tuple[int, int]) -> float:
    """Two-sided exact p that two shares are equal (Fisher)."""
    table = [[events[0], n[0] - events[0]], [events[1], n[1] - events[1]]]
    return float(fisher_exact(table).pvalue)


def benjamini_hochberg(p: Floats) -> Floats:
    """q-values of the p-values that are finite; NaN elsewhere (Benjamini and Hochberg 1995)."""
    q = np.full(len(p), np.nan)
    known = np.isfinite(p)
    if known.any():
        q[known] = false_discovery_control(p[known])
    return q


def _resample(values: Floats, counts: Longs, rng: np.random.Generator, draws: int) -> Floats:
    """``(draws,)`` means of as many units drawn with replacement."""
    n = int(counts.sum())
    if len(values) == 2:
        second = rng.binomial(n, counts[1] / n, size=draws)
        return _means(values, np.column_stack([n - second, second]))
    if len(values) <= _FEW_VALUES:
        return _means(values, rng.multinomial(n, counts / n, size=draws))
    units = np.repeat(values, counts)
    known, worth = ~np.isnan(units), np.nan_to_num(units)
    block = max(1, _DRAWN_AT_ONCE // n)
    sizes = [min(block, draws - start) for start in range(0, draws, block)]
    return np.concatenate([_mean_of_drawn(worth, known, rng.integers(0, n, (size, n))) for size in sizes])


def _mean_of_drawn(worth: Floats, known: NDArray[np.bool_], drawn: Longs) -> Floats:
    """Means of the ``(r, n)`` drawn units that have a value, NaN where none has."""
    total, n = worth[drawn].sum(axis=1), known[drawn].sum(axis=1)
    means: Floats = np.divide(total, n, out=np.full(len(drawn), np.nan), where=n > 0)
    return means


def _means(values: Floats, counts: NDArray[np.integer]) -> Floats:
    """Means of ``(r, v)`` counts over the values that are defined, NaN where none is."""
    defined = ~np.isnan(values)
    total = counts[:, defined] @ values[defined]
    n = counts[:, defined].sum(axis=1)
    return np.asarray(np.divide(total, n, out=np.full(len(counts), np.nan), where=n > 0), dtype=np.float64)
