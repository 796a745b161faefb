"""Shares of people treated differently, by bands and groups."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from tasks.methods.gcfn.settings import GcfnSettings
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.encoding import Columns
from tasks.numerics.results import Aggregate, Tally
from tasks.numerics.statistics.intervals import Parameters, alone, as_said, mean, share

# --------------------------------------------------------------------------------------------------------------------
# Bands of a quantity, for counts of people: intervals with round ends, or categories.
#
# No end reveals a value: ends are multiples of 1, 2, 2.5 or 5 times a power of ten, and the outermost intervals are
# open.
# Scope: bands, and which hold enough people to be printed.


OTHERS: Final = "(others)"
"""Categories that are reported together, because each alone has few people."""

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
        """Whether each value of an array of any shape lies in the interval."""
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
        """Whether each value of an array of any shape belongs to the category."""
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
    frequent_bands = tuple(band for band in bands if count[band] and band not in few)
    codes = tuple(code for band in bands if band in few for code in band.codes)
    rest = (Category(OTHERS, codes),) if sum(count[band] for band in few) >= fewest else ()
    return (*frequent_bands, *rest)


def _step(width: float, values: Floats) -> float:
    """The least round number that is no smaller than a width; a whole one among whole numbers."""
    is_whole = bool((values == np.round(values)).all())
    width = max(width, 1.0) if is_whole else width
    power = 10.0 ** np.floor(np.log10(width))
    digits = _WHOLE_DIGITS if is_whole else _DIGITS
    return float(next((digit for digit in digits if digit * power >= width * (1 - 1e-9)), 10.0) * power)


def _between(ends: Floats) -> tuple[Interval, ...]:
    """The intervals that ascending ends part the line into."""
    edges = [-np.inf, *(as_said(end) for end in ends.tolist()), np.inf]
    return tuple(Interval(low, high) for low, high in pairwise(edges))


# --------------------------------------------------------------------------------------------------------------------
# Distribution of a continuous mediator over people, real and generated: shares of even intervals.
#
# Intervals have equal width, so that a share is a density up to a constant. A person counts once: with the share of the
# networks whose value falls into an interval.


DENSITIES_PEOPLE: Final = 50
"""Fewest people of a density: with fewer it is too ragged. Our choice."""

_INTERVALS = 25


def intervals(values: Floats) -> tuple[Interval, ...]:
    """The intervals of a mediator, by the values ``(n,)`` of everybody; none where all are alike."""
    return even(values, _INTERVALS)


def factual(mediator: str, values: Floats, among: Sequence[Interval]) -> Iterator[Tally]:
    """Shares of values ``(n,)`` as they are; nothing of few people."""
    return _shares("mediator_share", mediator, values[None], among)


def imagined(mediator: str, values: Floats, among: Sequence[Interval]) -> Iterator[Tally]:
    """Shares of values ``(s, n)`` by network as members of the reference group; nothing of few people."""
    return _shares("imagined_mediator_share", mediator, values, among)


def _shares(measure: str, mediator: str, values: Floats, among: Sequence[Interval]) -> Iterator[Tally]:
    if values.shape[1] >= DENSITIES_PEOPLE:
        for interval in among:
            inside = np.mean(interval.holds(values), axis=0)
            yield from alone(mean(measure, {"mediator": mediator, **interval.said}, inside, share=True))


# --------------------------------------------------------------------------------------------------------------------
# Tallies of GCFN for one group: decisions and scores under the mediators of another group.
#
# Every number is the worst of the networks or their mean: no single one is the truth (section 4.2.2). A member of the
# reference group has a counterfactual in every other group, and counts with their mean. A row without one is NaN.
#
# Scope: means over rows, and one quantile.


SPREADS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.5, 1.0)
"""Lower ends of the intervals by which spreads are counted; each holds its lower end, and the last has no upper one."""


@dataclass(frozen=True)
class Moved:
    """``n`` rows of a group; NaN where no counterfactual was generated."""

    favourable: Bools
    """``(n,)`` the decision as it is."""
    flips: Floats
    """``(s, n)`` share of the other groups in which the decision is another one: 0 or 1 where there is one."""
    change: Floats
    """``(s, n)`` mean change of the score."""
    absolute: Floats
    """``(s, n)`` mean size of the change."""
    squared: Floats
    """``(s, n)`` mean square of the change."""
    spread: Floats
    """``(n,)`` mean spread of the networks."""
    unidentified: Floats
    """``(n,)`` share of the other groups in which the row is not identified."""

    @property
    def imagined(self) -> Bools:
        """``(n,)``."""
        mask: Bools = ~np.isnan(self.flips[0])
        return mask


def tallies(reassigned: Moved) -> Iterator[Tally]:
    """Shares and means over the rows of a group."""
    worst = reassigned.flips[worst_network(reassigned.flips)]
    yield mean("decision_flip_share", {}, worst, headline=True, share=True)
    yield from _alone("decision_flip_share", {"over": "networks"}, reassigned.flips.mean(axis=0), share=True)
    for direction, starting in (("to_favourable", ~reassigned.favourable), ("to_unfavourable", reassigned.favourable)):
        yield from _alone("flip_direction_share", {"direction": direction}, worst * starting, share=True)
    yield from _alone("score_change", {}, reassigned.change.mean(axis=0))
    yield from _alone("score_change_absolute", {}, reassigned.absolute[worst_network(reassigned.absolute)])
    yield from _alone("score_change_squared", {}, reassigned.squared[worst_network(reassigned.squared)])
    yield from alone(share("unmediated_share", {}, ~reassigned.imagined))
    if len(reassigned.flips) > 1:
        yield from _alone("not_identified_share", {}, reassigned.unidentified, share=True)
        spread = reassigned.spread
        yield from _alone("mediator_spread", {}, spread)
        mask = ~np.isnan(spread)
        for low, high in zip(SPREADS, (*SPREADS[1:], np.inf), strict=True):
            ends: Parameters = {"from": low, "to": high} if np.isfinite(high) else {"from": low}
            yield from alone(share("mediator_spread_share", ends, (spread >= low) & (spread < high), mask))


def aggregates(
    reassigned: Moved, settings: GcfnSettings, resamples: int, rng: np.random.Generator
) -> Iterator[Aggregate]:
    """The quantile of the size of the change, with ``resamples`` of the rows that have counterfactuals."""
    sizes = reassigned.absolute[worst_network(reassigned.absolute)][reassigned.imagined]
    if len(sizes):
        quantiles = [np.quantile(rng.choice(sizes, len(sizes)), settings.quantile) for _ in range(resamples)]
        value, at = float(np.quantile(sizes, settings.quantile)), {"quantile": settings.quantile}
        replicates = np.array(quantiles, dtype=np.float64)
        yield Aggregate(0, 0, "score_change_quantile", at, value, len(sizes), compared=False, replicates=replicates)


def net_change(flips: Floats, favourable: Bools) -> Floats:
    """``(s, n)`` or ``(n,)``: 1 where a decision would turn favourable, -1 where it would turn unfavourable, else 0.

    Args:
        flips: Whether the decision is another one, as 0 and 1.
        favourable: ``(n,)`` the decision as it is.
    """
    return np.where(favourable, -flips, flips)


def worst_network(values: Floats) -> int:
    """The network with the largest mean of ``(s, n)``, the first of several; 0 where no row has a counterfactual."""
    mask = ~np.isnan(values[0])
    return int(values[:, mask].mean(axis=1).argmax()) if mask.any() else 0


def _alone(measure: str, parameters: Parameters, values: Floats, share: bool = False) -> Iterator[Tally]:
    return alone(mean(measure, parameters, values, share=share))


# --------------------------------------------------------------------------------------------------------------------
# Shares of people treated differently, by bands of the model's score and of the mediators (Figures 6 and 18).
#
# All groups share the same bands, joined where a group has few people in them. A band is of factual values only.
#
# Scope: shares by band. Flips by network: ``tallies``.


PEOPLE: Final = 30
"""Fewest people of a group in a band: a share of fewer is not read. Our choice."""

LARGE: Final = 0.95
"""Share of all counterfactual applicants without a large change of score. Our choice."""


@dataclass(frozen=True)
class Sorting:
    """Applicants by something that is known of each."""

    by: Parameters
    """What it is."""
    values: Floats
    """``(n,)`` numbers, or numbers of categories."""
    bands: tuple[Band, ...]

    def rows(self, chosen: Longs) -> "Sorting":
        """The same of some rows, ``(r,)``, in the same bands."""
        return replace(self, values=self.values[chosen])


def sortings(mediators: Columns, score: Floats) -> tuple[Sorting, ...]:
    """By the score ``(n,)`` of the audited model, then by each mediator of the same rows."""
    result = [Sorting({"by": "score"}, score, fifths(score))]
    for name, labels, values in zip(mediators.names, mediators.categories, mediators.values.T, strict=True):
        bands: tuple[Band, ...] = categories(labels) if labels else fifths(values)
        result.append(Sorting({"by": "mediator", "mediator": name}, values, bands))
    return tuple(result)


def large_change(several: Sequence[Moved]) -> float:
    """The size of a change of the score that one in twenty of all applicants exceeds, to two significant digits.

    Args:
        several: Every group.
    """
    sizes = np.concatenate([_sizes(reassigned)[reassigned.imagined] for reassigned in several])
    return float(f"{np.quantile(sizes, LARGE):.2g}")


def band_tallies(reassigned: Moved, by: Sequence[Sorting], above: float) -> Iterator[Tally]:
    """Of one group, by band: share with another decision, and share with a large change of the score.

    Both are under the network under which they are largest for the whole group, so that bands add up to the group.

    Args:
        reassigned: ``n`` rows of the group.
        by: The same rows, sorted.
        above: Size from which a change of the score is a large one.
    """
    positions = np.flatnonzero(reassigned.imagined)
    flips, sizes = reassigned.flips[worst_network(reassigned.flips)][positions], _sizes(reassigned)[positions]
    group_sortings = [sorting.rows(positions) for sorting in by]
    yield from by_band("flip_share_by_band", {}, flips, group_sortings)
    yield from by_band(
        "large_change_share_by_band", {"above": above}, (sizes > above).astype(np.float64), group_sortings
    )


def by_band(measure: str, of: Parameters, values: Floats, by: Sequence[Sorting]) -> Iterator[Tally]:
    """Means of shares ``(n,)`` in every band of every sorting of the same rows; nothing of a single band."""
    for sorting in by:
        bands = filled(sorting.bands, sorting.values, PEOPLE)
        for band in bands if len(bands) > 1 else ():
            parameters = {**of, **sorting.by, **band.said}
            yield from alone(mean(measure, parameters, values[band.holds(sorting.values)], share=True))


def _sizes(reassigned: Moved) -> Floats:
    """``(n,)`` sizes of the change under the network under which they are largest."""
    sizes: Floats = reassigned.absolute[worst_network(reassigned.absolute)]
    return sizes
