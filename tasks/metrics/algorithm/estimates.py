"""Estimates of all statistics of a run in arrays: each the one of ``intervals.estimate``, equal to the last bit.

Shares are counted, and their intervals are by a formula: their resamples are drawn only where a comparison asks for
them. Means are resampled one by one, each by a random stream of its own, so that no number depends on what else is
measured; quantiles of their resamples are taken together.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.statistics.intervals import Estimate, Interval, mean, percentile_intervals, with_width
from tasks.numerics.statistics.proportions import quantile, wilsons


class Sample(NamedTuple):
    """A statistic over the units of a group, and how it is resampled."""

    values: Floats
    """``(v,)`` distinct values; NaN of units that have none."""
    counts: Longs
    """``(v,)`` units that have them."""
    share: bool
    """Whether no value can be below 0 or above 1."""
    resamples: Callable[[], Floats]
    """Draws ``(draws,)`` means of resamples, always the same ones."""


class Whole(NamedTuple):
    """A measure of a group as a whole, which has no units without a value."""

    value: float
    n: int
    events: int | None
    """Units that the value counts, where it counts units."""
    replicates: Floats
    """``(draws,)`` the measure on resampled units, or none."""
    ends: Interval | None
    """Its interval by a formula; None where the replicates make it."""


def estimates(samples: Sequence[Sample], draws: int, level: float) -> list[Estimate]:
    """Mean and interval of every sample.

    Args:
        samples: any number of them.
        draws: resamples of each.
        level: of the intervals.
    """
    found = _counted(samples)
    shares = np.flatnonzero(found.is_share & (found.defined > 0))
    out: list[Estimate | None] = [None] * len(samples)
    lows, highs = wilsons(found.events[shares], found.defined[shares], quantile((1 - level) / 2))
    values = found.events[shares] / found.defined[shares]
    for i, value, low, high in zip(*(a.tolist() for a in (shares, values, lows, highs)), strict=True):
        n, defined, events = found.at(i)
        out[i] = Estimate(value, low, high, n, defined, events, samples[i].resamples)
    means = np.flatnonzero(~found.is_share & (found.defined > 0)).tolist()
    replicates = [samples[i].resamples() for i in means]
    for i, drawn, ends in zip(means, replicates, percentile_intervals(replicates, level), strict=True):
        n, defined, _ = found.at(i)
        low, high, note = with_width(*ends)
        out[i] = Estimate(mean(samples[i].values, samples[i].counts), low, high, n, defined, None, drawn, note)
    return [each or _nothing(*found.at(i), draws) for i, each in enumerate(out)]


def estimates_given(wholes: Sequence[Whole], level: float) -> list[Estimate]:
    """Value and interval of every measure of a whole group.

    Resamples hold fewer distinct rows than the sample, which moves an extreme one way only; the interval then reaches
    to the value itself. An interval by a formula is taken as it is.
    """
    out = []
    for g, (low, high) in zip(wholes, percentile_intervals([g.replicates for g in wholes], level), strict=True):
        # a value of NaN stays: there is no interval
        ends = with_width(min(low, g.value), max(high, g.value)) if g.ends is None else with_width(*g.ends[:2])
        defined = g.n if math.isfinite(g.value) else 0
        out.append(Estimate(g.value, ends.low, ends.high, g.n, defined, g.events, g.replicates, ends.note))
    return out


class _Counted(NamedTuple):
    """Units of ``(s,)`` samples; whole numbers, which a double holds exactly."""

    n: Floats
    defined: Floats
    """Units with a value."""
    events: Floats
    """Units whose value is 1."""
    is_share: Bools
    """Whether every unit with a value is 0 or 1, and none could be anything else."""

    def at(self, i: int) -> tuple[int, int, int | None]:
        """Units, those with a value, and events where the sample is a share of somebody."""
        n, is_share = int(self.n[i]), bool(self.is_share[i])
        return n, int(self.defined[i]), int(self.events[i]) if is_share and n else None


def _counted(samples: Sequence[Sample]) -> _Counted:
    owner = np.repeat(np.arange(len(samples)), [len(s.values) for s in samples])
    values = np.concatenate([np.zeros(0), *(s.values for s in samples)])
    counts = np.concatenate([np.zeros(0), *(s.counts for s in samples)])
    known, one = ~np.isnan(values), values == 1

    def units(which: Bools) -> Floats:
        found: Floats = np.bincount(owner, np.where(which, counts, 0.0), len(samples))  # type: ignore[assignment]
        return found

    other = np.bincount(owner, known & ~one & (values != 0), len(samples)) > 0
    could_be = np.array([s.share for s in samples], dtype=bool)
    return _Counted(units(np.ones(len(owner), dtype=bool)), units(known), units(one), could_be & ~other)


def _nothing(n: int, defined: int, events: int | None, draws: int) -> Estimate:
    """Of a sample in which no unit has a value."""
    nan = np.nan
    return Estimate(nan, nan, nan, n, defined, events, np.full(draws, nan))
