"""Intervals: Wilson's score interval of a share, and a bootstrap of a mean (percentile method, Efron 1979).

A statistic is the mean of values over units. A unit without a value (NaN) is resampled with the others but left out of
the mean. The interval of a share always has a width. If all values of a mean are equal, resamples do not differ; that
says nothing about sampling error, and there is no interval.

Scope: intervals of one statistic. Comparisons: ``compared_intervals``.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from schemas.terms import Note
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.statistics.proportions import quantile, wilson

ENOUGH = 0.9
"""Share of the resamples that must have a value for an interval."""

_DRAWN_AT_ONCE = 2**19
"""Units held at a time while resampling."""

_FEW_VALUES = 64
"""Up to this many distinct values resampling their counts is faster than resampling units."""


_SAME = 1e-12
"""Relative distance of two numbers that differ by rounding alone."""


class Interval(NamedTuple):
    """Lower and upper end, NaN where there is none; ``note`` says why, where it is known."""

    low: float = math.nan
    high: float = math.nan
    note: str = ""


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
    """Units whose value is 1, where the statistic is a share of units."""
    resamples: Floats | Callable[[], Floats]
    """``(draws,)`` means of the resamples, or what draws them: a share has an interval without them."""
    note: str = ""
    """Why there is no interval, where there is a mean."""
    fitted: bool = False
    """Whether replicates come from fitting a model anew: intervals are then theirs, and not those of a given share."""

    @cached_property
    def replicates(self) -> Floats:
        """``(draws,)`` means of the resamples, NaN where a resample has no value."""
        return self.resamples() if callable(self.resamples) else self.resamples


def estimate(
    values: Floats, counts: Longs, rng: np.random.Generator, draws: int, level: float, *, share: bool
) -> Estimate:
    """Mean and interval of a statistic given as distinct values ``(v,)`` and their counts ``(v,)``.

    Values that are all 0 or 1 make a share if they cannot be anything else (``share``): costs that happen to be 0 or 1
    do not, since nothing says that the next one is neither.
    """
    n = int(counts.sum())
    if n == 0:
        return Estimate(np.nan, np.nan, np.nan, 0, 0, None, np.full(draws, np.nan))
    value = mean(values, counts)
    replicates = resample(values, counts, rng, draws)
    defined = int(counts[~np.isnan(values)].sum())
    events = int(counts[values == 1].sum()) if share and is_share(values) else None
    if events is not None and defined:
        low, high = wilson(events, defined, quantile((1 - level) / 2))
        return Estimate(value, low, high, n, defined, events, replicates)
    low, high, note = bootstrap_interval(replicates, level)
    return Estimate(value, low, high, n, defined, events, replicates, note)


def by_refits(own: Estimate, shares: Floats, level: float) -> Estimate:
    """A share of a fitted model's decisions: its interval is by fits to resamples ``(refits,)``, not of decisions."""
    low, high = percentile_interval(shares, level)
    low, high, note = with_width(min(low, own.value), max(high, own.value))
    return replace(own, low=low, high=high, resamples=shares, note=note, fitted=True)


def is_share(values: Floats) -> bool:
    """Whether a statistic is a share: 0 or 1 on every unit on which it is defined."""
    return bool(np.isin(values[~np.isnan(values)], (0.0, 1.0)).all())


def bootstrap_interval(replicates: Floats, level: float) -> Interval:
    """The central interval of resamples; none where they do not differ."""
    return with_width(*percentile_interval(replicates, level))


def with_width(low: float, high: float) -> Interval:
    """The interval between two ends; none where it would have no width, as if there were no sampling error."""
    if math.isclose(low, high, rel_tol=_SAME):
        return Interval(note=Note.NO_SPREAD)
    return Interval(low, high)


def percentile_interval(replicates: Floats, level: float) -> tuple[float, float]:
    """Central quantiles of the finite replicates, of resamples or draws; NaN if fewer than nine in ten are finite."""
    return percentile_intervals([replicates], level)[0]


def percentile_intervals(several: Sequence[Floats], level: float) -> list[tuple[float, float]]:
    """``percentile_interval`` of each, the quantiles of those of one length taken in one array."""
    tail, out = (1 - level) / 2, [(math.nan, math.nan)] * len(several)
    of_length: dict[int, list[tuple[int, Floats]]] = {}
    for place, replicates in enumerate(several):
        finite = replicates[np.isfinite(replicates)]
        if len(finite) and len(finite) >= ENOUGH * len(replicates):
            of_length.setdefault(len(finite), []).append((place, finite))
    for alike in of_length.values():
        ends = np.quantile(np.stack([finite for _, finite in alike]), (tail, 1 - tail), axis=1)
        for (place, _), low, high in zip(alike, *ends.tolist(), strict=True):
            out[place] = low, high
    return out


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
    return float(scipy.stats.fisher_exact(table).pvalue)


def benjamini_hochberg(p: Floats) -> Floats:
    """q-values of the p-values that are finite; NaN elsewhere (Benjamini and Hochberg 1995)."""
    q = np.full(len(p), np.nan)
    known = np.isfinite(p)
    if known.any():
        q[known] = scipy.stats.false_discovery_control(p[known])
    return q


def mean(values: Floats, counts: Longs) -> float:
    """Mean over the units that have a value, NaN where none has."""
    return float(_means(values, counts[None, :])[0])


def resample(values: Floats, counts: Longs, rng: np.random.Generator, draws: int) -> Floats:
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


def _mean_of_drawn(worth: Floats, known: Bools, drawn: Longs) -> Floats:
    """Means of the ``(r, n)`` drawn units that have a value, NaN where none has."""
    total = worth[drawn].sum(axis=1)
    n = np.full(len(drawn), drawn.shape[1]) if known.all() else known[drawn].sum(axis=1)
    means: Floats = np.divide(total, n, out=np.full(len(drawn), np.nan), where=n > 0)
    return means


def _means(values: Floats, counts: NDArray[np.integer]) -> Floats:
    """Means of ``(r, v)`` counts over the values that are defined, NaN where none is."""
    defined = ~np.isnan(values)
    total = counts[:, defined] @ values[defined]
    n = counts[:, defined].sum(axis=1)
    return np.asarray(np.divide(total, n, out=np.full(len(counts), np.nan), where=n > 0), dtype=np.float64)
