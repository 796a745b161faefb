"""Bands of a quantity, for counts of people: intervals with round ends, or categories.

No end reveals a value: ends are multiples of 1, 2, 2.5 or 5 times a power of ten, and the outermost intervals are open.
Scope: bands, and which hold enough people to be printed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.statistics.distributions import as_said

OTHERS: Final = "(others)"
"""Categories that are told together, since each by itself has few people."""

_DIGITS, _WHOLE_DIGITS = (1.0, 2.0, 2.5, 5.0, 10.0), (1.0, 2.0, 5.0, 10.0)
_FIFTHS = (0.2, 0.4, 0.6, 0.8)
_PER_RANGE = 20
"""Steps in the range of most values to which the ends of fifths are rounded."""


@dataclass(frozen=True)
class Interval:
    """From ``low`` on and below ``high``; infinite ends are open."""

    low: float
    high: float

    @property
    def said(self) -> Mapping[str, float | str]:
        """As parameters of a measure say it."""
        ends = {"from": self.low, "to": self.high}
        return {name: end for name, end in ends.items() if np.isfinite(end)}

    def holds(self, values: Floats) -> Bools:
        """Whether each of the values, of whatever shape, lies in it."""
        return (values >= self.low) & (values < self.high)


@dataclass(frozen=True)
class Category:
    """One category by its number, or several under one name."""

    name: str
    codes: tuple[int, ...]

    @property
    def said(self) -> Mapping[str, float | str]:
        """As parameters of a measure say it."""
        return {"category": self.name}

    def holds(self, values: Floats) -> Bools:
        """Whether each of the values, of whatever shape, is of it."""
        return np.isin(values, self.codes)


Band = Interval | Category


def even(values: Floats, most: int) -> tuple[Interval, ...]:
    """Intervals of one width, at most about so many, over all but the outermost hundredths; the outer two are open.

    Args:
        values: ``(n,)`` finite, ``n > 0``.
        most: Intervals wanted, the open ones not counted.

    Returns:
        None where all values are alike.
    """
    low, high = np.quantile(values, (0.01, 0.99)).tolist()
    if low == high:
        low, high = float(values.min()), float(values.max())
    if low == high:
        return ()
    step = _step((high - low) / most, values)
    return _between(step * np.arange(np.floor(low / step), np.floor(high / step) + 2))


def fifths(values: Floats) -> tuple[Interval, ...]:
    """Intervals with about a fifth of the values each; fewer where many values are alike."""
    low, high = np.quantile(values, (0.05, 0.95)).tolist()
    if low == high:
        return _between(np.zeros(0))
    step = _step((high - low) / _PER_RANGE, values)
    ends = np.unique(np.round(np.quantile(values, _FIFTHS) / step)) * step
    return _between(ends[(ends > values.min()) & (ends <= values.max())])


def categories(names: Sequence[str]) -> tuple[Category, ...]:
    """A band for each category."""
    return tuple(Category(name, (code,)) for code, name in enumerate(names))


def filled(bands: Sequence[Band], values: Floats, fewest: int) -> tuple[Band, ...]:
    """The bands with at least so many values each: neighbours are joined, and so are rare categories.

    No band with few people is left, so that none has to be withheld, and none can be had by subtraction. A single band
    says nothing of where people are.
    """
    intervals = [band for band in bands if isinstance(band, Interval)]
    if intervals:
        return _joined(intervals, values, fewest)
    return _with_others([band for band in bands if isinstance(band, Category)], values, fewest)


def _joined(bands: Sequence[Interval], values: Floats, fewest: int) -> tuple[Interval, ...]:
    out, low, high = list[Interval](), bands[0].low, bands[-1].high
    for band in bands:
        if Interval(low, band.high).holds(values).sum() >= fewest:
            out.append(Interval(low, band.high))
            low = band.high
    if out and low < high:  # what is left over is too little for a band of its own
        low = out.pop().low
        out.append(Interval(low, high))
    return tuple(out)


def _with_others(bands: Sequence[Category], values: Floats, fewest: int) -> tuple[Category, ...]:
    """Categories by themselves, the rarest as one."""
    count = {band: int(band.holds(values).sum()) for band in bands}
    rare = sorted((band for band in bands if count[band]), key=lambda band: count[band])
    few = [band for band in rare if count[band] < fewest]
    while few and sum(count[band] for band in few) < fewest and len(few) < len(rare):
        few = rare[: len(few) + 1]
    kept = tuple(band for band in bands if count[band] and band not in few)
    codes = tuple(code for band in bands if band in few for code in band.codes)
    others = (Category(OTHERS, codes),) if sum(count[band] for band in few) >= fewest else ()
    return (*kept, *others)


def _step(width: float, values: Floats) -> float:
    """The least round number that is no smaller than a width; a whole one among whole numbers."""
    whole = bool((values == np.round(values)).all())
    width = max(width, 1.0) if whole else width
    power = 10.0 ** np.floor(np.log10(width))
    digits = _WHOLE_DIGITS if whole else _DIGITS
    return float(next((digit for digit in digits if digit * power >= width * (1 - 1e-9)), 10.0) * power)


def _between(ends: Floats) -> tuple[Interval, ...]:
    """The intervals that ascending ends part the line into."""
    said = [-np.inf, *(as_said(end) for end in ends.tolist()), np.inf]
    return tuple(Interval(low, high) for low, high in pairwise(said))
