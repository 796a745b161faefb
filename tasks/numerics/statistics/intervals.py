"""Shares and means: tests, confidence intervals and comparisons."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from schemas.terms import Note
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.results import Tally

# --------------------------------------------------------------------------------------------------------------------
# Distribution of a statistic over the rows of a group: the ``Tally`` that is printed and resampled.
#
# Methods tally shares, of 0 and 1, and means of any values; rows without a value are NaN.


Parameters = Mapping[str, float | str]


def share(
    measure: str,
    parameters: Parameters,
    yes: Bools,
    of: Bools | None = None,
    *,
    headline: bool = False,
    compared: bool = True,
) -> Tally:
    """The share of the rows ``(n,)``, or of the subset ``of`` on which it is defined."""
    total = len(yes) if of is None else int(of.sum())
    met = int((yes if of is None else yes & of).sum())
    return counted(measure, parameters, total - met, met, len(yes) - total, headline=headline, compared=compared)


def counted(
    measure: str,
    parameters: Parameters,
    no: int,
    yes: int,
    missing: int,
    *,
    headline: bool = False,
    compared: bool = True,
) -> Tally:
    """The same by how many do not, do, and are neither."""
    values, counts = [0.0, 1.0] + [np.nan] * (missing > 0), [no, yes] + [missing] * (missing > 0)
    return Tally(0, 0, measure, parameters, np.array(values), np.array(counts), headline, compared, share=True)


def mean(measure: str, parameters: Parameters, values: Floats, *, headline: bool = False, share: bool = False) -> Tally:
    """The mean of values ``(n,)``: distinct ones, NaN last, and their counts."""
    distinct, counts = np.unique(values, return_counts=True)
    return Tally(0, 0, measure, parameters, distinct, counts.astype(np.int64), headline, share=share)


def alone(tally: Tally) -> Iterator[Tally]:
    """One that is not compared with the reference group's; nothing where no row has a value."""
    if tally.counts[~np.isnan(tally.values)].any():
        yield replace(tally, compared=False)


def as_said(limit: float) -> float:
    """A limit as written in the parameters of a measure: to ten digits, so that the printed value is the value used."""
    return float(f"{limit:.10g}")


# --------------------------------------------------------------------------------------------------------------------
# Two shares and their difference: intervals and one-sided tests, for many complainants at once.
#
# There are three intervals of the difference of two independent shares. Wald's (Alvarez and Ruggieri 2023, Eq. 5, read
# with the sum of the two variances; with the printed minus some published rows would need the root of a negative
# number) has no width when both shares are 0 or 1. Newcombe's hybrid score interval (1998, method 10) and that of
# Agresti and Caffo (2000) do not have that fault.
#
# Each is a lower bound at a normal quantile z, falling in z; at -z the same expression is the upper bound. The p-value
# of 'the difference is at most tau' is the level at which the lower bound is tau, so that p < alpha iff the lower bound
# exceeds tau.


ProportionInterval = Literal["newcombe", "agresti_caffo", "wald"]

MOST_TAILS = 200_000
"""p-values that are kept at a time, some 40 MB."""
_TAILS: dict[tuple[float, ...], float] = {}

FURTHEST = 37.0
"""Normal quantile whose tail is about the smallest that a double holds in full (6e-300)."""


class Pair(NamedTuple):
    """Events in a control and in a test group, counted for each complainant. Of one shape; NaN where not counted."""

    control: Floats
    control_n: Floats
    test: Floats
    test_n: Floats

    @property
    def control_share(self) -> Floats:
        """Share of events in the control group."""
        return self.control / self.control_n

    @property
    def test_share(self) -> Floats:
        """Share of events in the test group."""
        return self.test / self.test_n

    @property
    def delta(self) -> Floats:
        """How much larger the control group's share is.

        Divided once, out of whole numbers: equal shares differ by 0, and 8 of 10 and 6 of 10 by no more than 0.2.
        """
        return (self.control * self.test_n - self.test * self.control_n) / (self.control_n * self.test_n)


def quantile(alpha: float, decimals: int | None = None) -> float:
    """Normal quantile of a one-sided level; published figures rest on one rounded to three digits (1.645)."""
    z = float(scipy.special.ndtri(1 - alpha))
    return z if decimals is None else round(z, decimals)


def wilson(events: int, n: int, z: float) -> tuple[float, float]:
    """Wilson's score interval (1927) of one share at normal quantile ``z``; 0 for no events and 1 for all are ends."""
    low, high = wilsons(np.array([events], dtype=np.float64), np.array([n], dtype=np.float64), z)
    return float(low[0]), float(high[0])


def wilsons(events: Floats, n: Floats, z: float) -> tuple[Floats, Floats]:
    """``wilson`` of each of ``(s,)`` shares; all have units."""
    low, high = (_wilson(np.float64(side), events, n) for side in (z, -z))
    return np.where(events > 0, low, 0.0), np.where(events < n, high, 1.0)


def bounds(pair: Pair, interval: ProportionInterval, z: float) -> tuple[Floats, Floats]:
    """Lower and upper bound of the difference at normal quantile ``z``, each one-sided; of the shape of the pair."""
    if interval == "newcombe":
        return _newcombe(np.float64(z), *pair), _newcombe(np.float64(-z), *pair)
    centre, error = _normal(pair, interval)
    return centre - z * error, centre + z * error


def p_values(pair: Pair, interval: ProportionInterval, tau: float) -> Floats:
    """Smallest level at which the lower bound is above ``tau``, of the shape of the pair; NaN where not counted.

    An interval without width (Wald, both shares 0 or 1) gives 0 or 1.
    """
    if interval == "newcombe":
        # Tail beyond the z at which the lower bound is `tau`, found once for every distinct pair of counts.
        finite = ~np.isnan(pair.delta)
        p = np.full(finite.shape, np.nan)
        if finite.any():
            # Where each distinct pair of counts comes first, and which of them each complainant has.
            distinct_pair = Pair(*(part[finite] for part in pair))
            base = int(max(distinct_pair.control_n.max(), distinct_pair.test_n.max())) + 1
            key = np.zeros(distinct_pair.control.shape, dtype=np.int64)
            for part in distinct_pair:
                key = key * base + part.astype(np.int64)
            _, distinct_first, distinct_back = np.unique(key, return_index=True, return_inverse=True)
            first, back = distinct_first, distinct_back
            p[finite] = _tail(Pair(*(part[finite][first] for part in pair)), tau)[back]
        return p
    centre, error = _normal(pair, interval)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(error > 0, scipy.special.ndtr((tau - centre) / error), np.where(centre > tau, 0.0, 1.0))
    return np.where(np.isnan(centre), np.nan, p)


def _normal(pair: Pair, interval: ProportionInterval) -> tuple[Floats, Floats]:
    """Centre and standard error of an interval that is linear in z."""
    if interval == "agresti_caffo":
        pair = Pair(pair.control + 1, pair.control_n + 2, pair.test + 1, pair.test_n + 2)
    control, test = pair.control_share, pair.test_share
    return pair.delta, np.sqrt(control * (1 - control) / pair.control_n + test * (1 - test) / pair.test_n)


def _newcombe(z: Floats | np.float64, control: Floats, control_n: Floats, test: Floats, test_n: Floats) -> Floats:
    """Newcombe's lower bound; the upper one where ``z`` is negative."""
    down = control / control_n - _wilson(z, control, control_n)
    up = _wilson(-z, test, test_n) - test / test_n
    return Pair(control, control_n, test, test_n).delta - np.copysign(np.hypot(down, up), z)


def _wilson(z: Floats | np.float64, events: Floats, n: Floats) -> Floats:
    """Wilson's lower bound of one share; the upper one where ``z`` is negative."""
    spread = np.sqrt(events * (n - events) / n + z**2 / 4)
    return (events + z**2 / 2 - z * spread) / (n + z**2)


def _tail(pair: Pair, tau: float) -> Floats:
    """The p-values of ``(u,)`` pairs, each solved once in a process: groups and neighbours meet the same few counts."""
    keys = list(zip(*(counts.tolist() for counts in pair), itertools.repeat(tau), strict=False))
    unsolved = [place for place, key in enumerate(keys) if key not in _TAILS]
    solved: list[float] = []
    if unsolved:
        solved = _solved_tail(Pair(*(counts[unsolved] for counts in pair)), tau).tolist()
    new = dict(zip((keys[place] for place in unsolved), solved, strict=True))
    p = np.array([new[key] if key in new else _TAILS[key] for key in keys])
    if len(_TAILS) + len(new) > MOST_TAILS:
        _TAILS.clear()
    _TAILS.update(new)
    return p


def _solved_tail(pair: Pair, tau: float) -> Floats:
    """The p-values of ``(u,)`` pairs; 0 or 1 where the bound is on one side of ``tau`` at every z looked at."""
    above = _newcombe(np.float64(FURTHEST), *pair) >= tau
    below = _newcombe(np.float64(-FURTHEST), *pair) <= tau
    from scipy.optimize import elementwise  # a fifth of a second, and a plan searches for no end

    solution = elementwise.find_root(lambda z, *counts: _newcombe(z, *counts) - tau, (-FURTHEST, FURTHEST), args=pair)
    return np.select([above, below], [0.0, 1.0], scipy.special.ndtr(-solution.x))


# --------------------------------------------------------------------------------------------------------------------
# Intervals: Wilson's score interval of a share, and a bootstrap of a mean (percentile method, Efron 1979).
#
# A statistic is the mean of values over units. A unit without a value (NaN) is resampled with the others but left out
# of the mean. The interval of a share always has a width. If all values of a mean are equal, resamples do not differ;
# that says nothing about sampling error, and there is no interval.
#
# Scope: intervals of one statistic. Comparisons: ``compared_intervals``.


ENOUGH = 0.9
"""Share of the resamples that must have a value for an interval."""

_DRAWN_AT_ONCE = 2**19
"""Units held at a time while resampling."""

_FEW_VALUES = 64
"""Up to this many distinct values resampling their counts is faster than resampling units."""


_SAME = 1e-12
"""Relative distance of two numbers that differ by rounding alone."""


class Interval(NamedTuple):
    """Lower and upper end, NaN where it has none; ``note`` gives the reason if it is known."""

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
    value = mean_interval(values, counts)
    replicates = resample(values, counts, rng, draws)
    defined = int(counts[~np.isnan(values)].sum())
    events = int(counts[values == 1].sum()) if share and is_share(values) else None
    if events is not None and defined:
        low, high = wilson(events, defined, quantile((1 - level) / 2))
        return Estimate(value, low, high, n, defined, events, replicates)
    low, high, note = bootstrap_interval(replicates, level)
    return Estimate(value, low, high, n, defined, events, replicates, note)


def by_refits(estimate: Estimate, shares: Floats, level: float) -> Estimate:
    """A share of a fitted model's decisions: its interval is by fits to resamples ``(refits,)``, not of decisions."""
    low, high = percentile_interval(shares, level)
    low, high, note = with_width(min(low, estimate.value), max(high, estimate.value))
    return replace(estimate, low=low, high=high, resamples=shares, note=note, fitted=True)


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
    finite = np.isfinite(p)
    if finite.any():
        q[finite] = scipy.stats.false_discovery_control(p[finite])
    return q


class Stepped(NamedTuple):
    """Of ``m`` tests in their given order."""

    adjusted: Floats
    """``(m,)`` p times the number of tests that are left, never falling from one rank to the next."""
    level: Floats
    """``(m,)`` one-sided level of each row: alpha / (m - j + 1) for rank j while all before it were rejected; every
    later row keeps the level of the first that was not."""
    rejected: Bools
    """``(m,)``."""


def step_down(p: Floats, alpha: float) -> Stepped:
    """Holm's procedure at familywise level ``alpha``; a p that is NaN counts as 1: its test was made."""
    m = len(p)
    order = np.argsort(np.where(np.isnan(p), 1.0, p), kind="stable")
    ranked = np.where(np.isnan(p), 1.0, p)[order]
    divisors = m - np.arange(m)
    within = ranked <= alpha / divisors
    first = int(np.argmin(within)) if not within.all() else m
    levels = alpha / np.maximum(divisors, divisors[min(first, m - 1)] if m else 1)
    adjusted = np.minimum(np.maximum.accumulate(ranked * divisors), 1.0)
    back = np.empty(m, dtype=np.int64)
    back[order] = np.arange(m)
    return Stepped(adjusted[back], levels[back], (np.arange(m) < first)[back])


def mean_interval(values: Floats, counts: Longs) -> float:
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
    is_known, worth = ~np.isnan(units), np.nan_to_num(units)
    block = max(1, _DRAWN_AT_ONCE // n)
    sizes = [min(block, draws - start) for start in range(0, draws, block)]
    return np.concatenate([_mean_of_drawn(worth, is_known, rng.integers(0, n, (size, n))) for size in sizes])


def _mean_of_drawn(worth: Floats, is_known: Bools, positions: Longs) -> Floats:
    """Means of the ``(r, n)`` drawn units that have a value, NaN where none has."""
    total = worth[positions].sum(axis=1)
    n = np.full(len(positions), positions.shape[1]) if is_known.all() else is_known[positions].sum(axis=1)
    means: Floats = np.divide(total, n, out=np.full(len(positions), np.nan), where=n > 0)
    return means


def _means(values: Floats, counts: NDArray[np.integer]) -> Floats:
    """Means of ``(r, v)`` counts over the values that are defined, NaN where none is."""
    defined = ~np.isnan(values)
    total = counts[:, defined] @ values[defined]
    n = counts[:, defined].sum(axis=1)
    return np.asarray(np.divide(total, n, out=np.full(len(counts), np.nan), where=n > 0), dtype=np.float64)


# --------------------------------------------------------------------------------------------------------------------
# Score interval of the ratio of two independent shares (Koopman 1984; Miettinen and Nurminen 1985), many at once.
#
# A ratio is inside if the score test does not reject it: the distance of the two shares from that ratio, over its
# standard error at the most likely shares with that ratio. Miettinen and Nurminen multiply the variance by N / (N - 1).
# The ends are roots on the logarithm of the ratio, found once for every distinct pair of counts.
#
# A bootstrap of the ratio has no width where a share is 0 and too low a coverage where counts are small.


FURTHEST_RATIO = 60.0
"""Logarithm of the largest ratio that is looked at; counts of persons do not lead there."""


def ratio_bounds(pair: Pair, z: float) -> tuple[Floats, Floats]:
    """Lower and upper end of control share over test share at normal quantile ``z``, each ``(c,)``.

    The lower end is 0 where the control group has no event, the upper end infinite where the test group has none.
    """
    counts, back = np.unique(np.column_stack(pair), axis=0, return_inverse=True)
    distinct, place = Pair(*counts.T), back.reshape(-1)
    low, high = _ends(distinct, z)
    low = np.where(distinct.control > 0, low, 0.0)
    high = np.where(distinct.test > 0, high, np.inf)
    return low[place], high[place]


def score(pair: Pair, ratio: float) -> Floats:
    """The score statistic at a ratio, ``(c,)``: above 0 where the shares speak for a larger one.

    Its normal tail is the p of the test whose intervals ``bounds`` gives.
    """
    counts = Pair(*(np.asarray(counts, dtype=np.float64) for counts in pair))
    distance, error = _distance(np.full(counts.control.shape, ratio), counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(error > 0, distance / error, np.where(distance == 0, 0.0, np.sign(distance) * np.inf))


def _ends(pair: Pair, z: float) -> tuple[Floats, Floats]:
    """The ratios at which the score is ``z`` and ``-z``, in one search, where there are such."""
    from scipy.optimize import elementwise  # a fifth of a second, and a plan searches for no end

    solution = elementwise.find_root(
        lambda log, at, *counts: _beyond(log, Pair(*counts), at),
        (-FURTHEST_RATIO, FURTHEST_RATIO),
        args=(np.array([[z], [-z]]), *pair),
    )
    low, high = np.exp(solution.x)
    return low, high


def _beyond(log: Floats, pair: Pair, z: Floats) -> Floats:
    """The distance of the shares from the ratio, less ``z`` standard errors: above 0 where the score exceeds ``z``."""
    ratio = np.exp(log)
    distance, error = _distance(ratio, pair)
    # where everybody has the event a ratio of 1 leaves neither distance nor error: the score is 0, which is inside
    beyond = np.where((distance == 0) & (error == 0), -z, distance - z * error)
    return np.asarray(beyond / (1 + ratio), dtype=np.float64)


def _distance(ratio: Floats, pair: Pair) -> tuple[Floats, Floats]:
    """The distance of the shares from a ratio, and its standard error at the likeliest shares with that ratio.

    These are the smaller root of a quadratic, in the form that does not cancel.
    """
    n = pair.control_n + pair.test_n
    b = pair.control_n * ratio + pair.control + pair.test_n + pair.test * ratio
    events = pair.control + pair.test
    root = np.sqrt(np.maximum(b * b - 4 * n * ratio * events, 0))
    test = 2 * events / (b + root)
    control = np.minimum(ratio * test, 1)
    variance = control * (1 - control) / pair.control_n + ratio**2 * test * np.maximum(1 - test, 0) / pair.test_n
    error = np.sqrt(variance * n / (n - 1))
    return pair.control_share - ratio * pair.test_share, error


# --------------------------------------------------------------------------------------------------------------------
# Intervals of comparisons of two groups: a difference, a ratio, and a difference from draws.
#
# Two shares have score intervals: Newcombe's of the difference (1998, method 10), Miettinen and Nurminen's of the
# ratio. Newcombe adds the distances from each value to the end of its own interval as squares. That holds for any two
# intervals (Zou and Donner 2008), and so for a share less a mean as well. Two means are resampled independently.
# Without a spread of both groups the comparison has none.


def difference(estimate: Estimate, other: Estimate, level: float) -> Interval:
    """Interval of ``estimate`` less ``other``."""
    if estimate.note or other.note:
        return Interval(note=Note.NO_SPREAD)
    if estimate.fitted or (estimate.events is None and other.events is None):
        return bootstrap_interval(estimate.replicates - other.replicates, level)
    value = estimate.value - other.value
    below = math.hypot(estimate.value - estimate.low, other.high - other.value)
    above = math.hypot(estimate.high - estimate.value, other.value - other.low)
    return Interval(value - below, value + above)


def ratio(estimate: Estimate, other: Estimate, level: float) -> Interval:
    """Interval of ``estimate`` over ``other``, which are not both shares."""
    if estimate.note or other.note:
        return Interval(note=Note.NO_SPREAD)
    with np.errstate(divide="ignore", invalid="ignore"):
        return bootstrap_interval(estimate.replicates / other.replicates, level)


def both_shares(estimate: Estimate, other: Estimate) -> bool:
    """Whether two estimates are both shares of people."""
    if estimate.fitted or None in (estimate.events, other.events):
        return False
    return min(estimate.defined, other.defined) > 0


def ratios_of_shares(pairs: Sequence[tuple[Estimate, Estimate]], level: float) -> list[Interval]:
    """Interval of the first share over the second, for every pair at once.

    A ratio to a share of 0 has a lower end and no upper one.
    """
    if not pairs:
        return []
    pair_counts = [[estimate.events, estimate.defined, other.events, other.defined] for estimate, other in pairs]
    ends = ratio_bounds(Pair(*np.array(pair_counts, dtype=np.float64).T), quantile((1 - level) / 2))
    return [
        Interval(low, high) if math.isfinite(high) else Interval(low, math.nan, Note.NO_UPPER_END)
        for low, high in zip(*(end.tolist() for end in ends), strict=True)
    ]


def from_drawn(estimate: Estimate, against: Floats, mean: float, level: float) -> Interval:
    """Interval of ``estimate`` less the ``mean`` of what was drawn.

    Args:
        estimate: the group's statistic; a share is never surer beside what was drawn than by itself.
        against: ``(draws,)`` its resamples less the draws in turn; empty if there is to be no interval.
        mean: the mean of the draws.
        level: of the interval.
    """
    if estimate.note and len(against):
        return Interval(note=Note.NO_SPREAD)
    low, high = percentile_interval(against, level)
    if math.isfinite(low):
        low, high = min(low, estimate.low - mean), max(high, estimate.high - mean)
    return with_width(low, high)


# --------------------------------------------------------------------------------------------------------------------
# The mean of a paired difference of -1, 0 or 1: one-sided bounds and tests that hold at small counts.
#
# Two decisions on each of n units, such as those of one model on an applicant as they are and with one input exchanged.
# The difference of the two is 1 on ``raised`` units, -1 on ``lowered`` ones and 0 on the others; the counts are
# multinomial. Its mean is the difference of the two shares, and the bound squares and adds the distances of their exact
# limits (Clopper and Pearson 1934), with the correlation of two cells of a multinomial: the recovery of variances of
# Newcombe (1998, Statistics in Medicine 17, p. 2635) and of Zou and Donner (2008, 27, p. 1693). Where nobody changes to
# one side the end away from zero is the exact one; where nobody changes at all it reaches to about 3 / n at 5 %.
#
# Agresti and Min's adjusted interval (2005) and Tango's score interval (1998) are shorter and miss too often on one
# side at few changes; ``tests/material/paired_coverage.py`` prints how often, over all samples.


LEAST = 1e-12
"""The smallest p that is told."""
HALF = 0.5
"""The largest level of a one-sided bound."""


class Changes(NamedTuple):
    """Units with a second value that differs from the first."""

    raised: int
    """Those on which the difference is 1."""
    lowered: int
    """Those on which it is -1."""
    n: int
    """All units; at least 1."""

    @property
    def mean(self) -> float:
        """Mean of the difference."""
        return (self.raised - self.lowered) / self.n

    @property
    def turned(self) -> "Changes":
        """The same of the difference with its sign turned."""
        return Changes(self.lowered, self.raised, self.n)


def lower(of: Changes, level: float) -> float:
    """End below which the mean lies with probability ``level`` (at most 0.5)."""
    up, down = of.raised / of.n, of.lowered / of.n
    least = float(scipy.stats.beta.ppf(level, of.raised, of.n - of.raised + 1)) if of.raised else 0.0
    most = float(scipy.stats.beta.isf(level, of.lowered + 1, of.n - of.lowered)) if of.lowered < of.n else 1.0
    along = math.sqrt(up * down / ((1 - up) * (1 - down))) if up * down else 0.0  # less the correlation
    first, second = up - least, most - down
    return max(up - down - math.sqrt(first**2 + 2 * along * first * second + second**2), -1.0)


def upper(of: Changes, level: float) -> float:
    """End above which the mean lies with probability ``level`` (at most 0.5)."""
    return -lower(of.turned, level)


def above(of: Changes, limit: float) -> float:
    """One-sided p of "the mean is at or below the limit": the level at which the lower end is the limit.

    Where the limit lies inside the ends of level 0.5 the p is 0.5, and beyond the upper one it is more.
    """
    if lower(of, HALF) > limit:
        return _level(of, limit)
    return 1 - _level(of.turned, -limit) if upper(of, HALF) < limit else HALF


def below(of: Changes, limit: float) -> float:
    """One-sided p of "the mean is at or above the limit"."""
    return above(of.turned, -limit)


def error(of: Changes) -> float:
    """A standard error as wide as the two-sided 95 % interval; never 0."""
    return (upper(of, 0.025) - lower(of, 0.025)) / (2 * float(scipy.stats.norm.isf(0.025)))


def _level(of: Changes, limit: float) -> float:
    """The level, at most 0.5, at which the lower end is the limit; never below the smallest level that is reported."""
    if lower(of, LEAST) >= limit:
        return LEAST
    log_level = scipy.optimize.brentq(
        lambda log: lower(of, math.exp(log)) - limit, math.log(LEAST), math.log(HALF), xtol=1e-12
    )
    return math.exp(float(log_level))
