"""Intervals of comparisons of two groups: a difference, a ratio, and a difference from draws.

Two shares have score intervals: Newcombe's of the difference (1998, method 10), Miettinen and Nurminen's of the ratio.
Newcombe adds the distances from each value to the end of its own interval as squares. That holds for any two intervals
(Zou and Donner 2008), and so for a share less a mean as well. Two means are resampled independently. Without a spread
of both groups the comparison has none.
"""

import math
from collections.abc import Sequence

import numpy as np

from schemas.terms import Note
from tasks.numerics.arrays import Floats
from tasks.numerics.statistics import share_ratio
from tasks.numerics.statistics.intervals import Estimate, Interval, bootstrap_interval, percentile_interval, with_width
from tasks.numerics.statistics.proportions import Pair, quantile


def difference(own: Estimate, other: Estimate, level: float) -> Interval:
    """Interval of ``own`` less ``other``."""
    if own.note or other.note:
        return Interval(note=Note.NO_SPREAD)
    if own.fitted or (own.events is None and other.events is None):
        return bootstrap_interval(own.replicates - other.replicates, level)
    value = own.value - other.value
    below = math.hypot(own.value - own.low, other.high - other.value)
    above = math.hypot(own.high - own.value, other.value - other.low)
    return Interval(value - below, value + above)


def ratio(own: Estimate, other: Estimate, level: float) -> Interval:
    """Interval of ``own`` over ``other``, which are not both shares."""
    if own.note or other.note:
        return Interval(note=Note.NO_SPREAD)
    with np.errstate(divide="ignore", invalid="ignore"):
        return bootstrap_interval(own.replicates / other.replicates, level)


def both_shares(own: Estimate, other: Estimate) -> bool:
    """Whether two estimates are shares of somebody."""
    if own.fitted or None in (own.events, other.events):
        return False
    return min(own.defined, other.defined) > 0


def ratios_of_shares(pairs: Sequence[tuple[Estimate, Estimate]], level: float) -> list[Interval]:
    """Interval of the first share over the second, for every pair at once.

    A ratio to a share of 0 has a lower end and no upper one.
    """
    if not pairs:
        return []
    counted = [[own.events, own.defined, other.events, other.defined] for own, other in pairs]
    ends = share_ratio.bounds(Pair(*np.array(counted, dtype=np.float64).T), quantile((1 - level) / 2))
    return [_of_share(*both) for both in zip(*(end.tolist() for end in ends), strict=True)]


def _of_share(low: float, high: float) -> Interval:
    return Interval(low, high) if math.isfinite(high) else Interval(low, math.nan, Note.NO_UPPER_END)


def from_drawn(own: Estimate, against: Floats, mean: float, level: float) -> Interval:
    """Interval of ``own`` less the ``mean`` of what was drawn.

    Args:
        own: the group's statistic; a share is never surer beside what was drawn than by itself.
        against: ``(draws,)`` its resamples less the draws in turn; empty if there is to be no interval.
        mean: the mean of the draws.
        level: of the interval.
    """
    if own.note and len(against):
        return Interval(note=Note.NO_SPREAD)
    low, high = percentile_interval(against, level)
    if math.isfinite(low):
        low, high = min(low, own.low - mean), max(high, own.high - mean)
    return with_width(low, high)
