"""What the years of an audit say together: each against its limit, and against the years before it.

A function of the list of years and of nothing else: a restated year replaces its own, and all is computed anew. A year
that is not like the one before it begins another sequence.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from schemas.terms import ChangeState
from tasks.metrics.algorithm.monitoring import against_limit
from tasks.metrics.algorithm.monitoring.change import WANDERING, change_state, holm, two_years
from tasks.metrics.algorithm.monitoring.change_point import change_point
from tasks.metrics.algorithm.monitoring.monitored import NO_CHANGE, Change, Monitored
from tasks.metrics.algorithm.monitoring.random_effects import ENOUGH_FOR_SLOPE, ENOUGH_YEARS, prediction, slope
from tasks.metrics.algorithm.monitoring.years import (
    MonitoringRule,
    YearEstimate,
    last_editions,
    shown,
    stretches,
    worked,
)
from tasks.numerics.arrays import Floats
from tasks.numerics.statistics.intervals import benjamini_hochberg


def monitor(estimates: Sequence[YearEstimate], rule: MonitoringRule) -> list[Monitored]:
    """One row for each series and year, in the order of series and years.

    Args:
        estimates: of judged groups alone; a series without a limit is followed and has no verdict. A year that comes
            twice counts as it came last.
        rule: how years are held against the limit.
    """
    known = last_editions(estimates)
    groups = Counter(theory for theory, *_ in {one.series for one in known})
    by_series: dict[object, list[YearEstimate]] = defaultdict(list)
    for one in known:
        by_series[one.series].append(one)
    rows = [row for years in by_series.values() for row in _followed(years, rule, groups[years[0].theory])]
    return _told_together(rows)


def _followed(years: Sequence[YearEstimate], rule: MonitoringRule, groups: int) -> list[Monitored]:
    """The rows of one series."""
    rows: dict[int, Monitored] = {one.year: against_limit.gap(one) for one in years if not one.usable}
    parts = stretches(years)
    for number, part in enumerate(parts):
        first_breach = None
        for place, one in enumerate(part):
            row = against_limit.held(part[: place + 1], rule, groups, first_breach)
            first_breach = first_breach or (one.year if row.breach else None)
            begun = _begun(one, parts[number - 1][-1]) if number else NO_CHANGE
            rows[one.year] = replace(row, change=_change(part[: place + 1], rule.seed) if place else begun)
    return [rows[year] for year in sorted(rows)]


def _begun(one: YearEstimate, earlier: YearEstimate) -> Change:
    """The change of a year that is not like the one before it."""
    why = f"not comparable with {earlier.year}: {'; '.join(one.unlike(earlier))}"
    return Change(state=ChangeState.NOT_COMPARABLE, reason=f"{why}; another sequence begins")


def _change(years: Sequence[YearEstimate], seed: int) -> Change:
    """The last of these comparable years beside those before it."""
    found = _beside_many(years) if len(years) > ENOUGH_YEARS else _beside_one(years)
    if len(years) < ENOUGH_FOR_SLOPE:
        return found
    e, v, scale = *_arrays(years), years[0].scale
    line = slope(np.array([one.year for one in years], dtype=np.float64), e, v)
    ends = [shown(each, scale) for each in line]
    found = replace(found, slope=ends[0], slope_low=ends[1], slope_high=ends[2])
    if not line.speaks and found.state is not ChangeState.CHANGED:
        return found
    place, p = change_point(e, v, np.random.default_rng(seed))
    return replace(found, since_year=years[place].year, since_p=p)


def _beside_one(years: Sequence[YearEstimate]) -> Change:
    """Too few years before: the difference from the year before, without a state."""
    earlier, one = years[-2:]
    found = two_years(one.estimate, one.variance, earlier.estimate, earlier.variance)
    value, low, high = (shown(each, one.scale) for each in found[:3])
    reason = f"against {earlier.year} alone; {WANDERING}"
    return Change(value, low, high, ChangeState.NONE, reason, years_used=1, two_year_p=found.p)


def _beside_many(years: Sequence[YearEstimate]) -> Change:
    """The last year against what those before it let expect."""
    *before, one = years
    e, v = _arrays(before)
    found, scale = prediction(e, v, one.estimate, one.variance), one.scale
    state = change_state(found.low, found.high, worked(one.limit, scale))
    change, low, high, predicted_low, predicted_high, minimal = (shown(each, scale) for each in found[:6])
    return Change(
        change=change,
        low=low,
        high=high,
        state=state,
        reason=_words(state, len(before), minimal, scale == "log"),
        years_used=len(before),
        tau2=found.tau2,
        predicted_low=predicted_low,
        predicted_high=predicted_high,
        minimal=minimal,
        p=found.p,
    )


def _words(state: ChangeState, before: int, minimal: float, ratio: bool) -> str:
    size = f"by a factor below {minimal:.3g}" if ratio else f"below {minimal:.3g}"
    unseen = f"a change {size} would not have been seen"
    said = {
        ChangeState.CHANGED: f"outside what the {before} comparable years before it let expect",
        ChangeState.UNCHANGED: f"within half the limit of the mean of {before} years before it",
    }
    return f"{said.get(state, f'inside what the {before} comparable years before it let expect')}; {unseen}"


def _arrays(years: Sequence[YearEstimate]) -> tuple[Floats, Floats]:
    return np.array([one.estimate for one in years]), np.array([one.variance for one in years])


def _told_together(rows: Sequence[Monitored]) -> list[Monitored]:
    """Rows with what takes several into account: q over all series of a year, and Holm over those of a theory."""
    of_year: dict[int, list[int]] = defaultdict(list)
    of_theory: dict[tuple[int, str], list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        if not math.isnan(row.change.p):
            of_year[row.of.year].append(place)
        if not math.isnan(row.change.two_year_p):
            of_theory[row.of.year, row.of.theory].append(place)
    out = list(rows)
    for places in of_year.values():
        for place, q in zip(places, benjamini_hochberg(np.array([rows[i].change.p for i in places])), strict=True):
            out[place] = out[place].with_change(q=float(q))
    for places in of_theory.values():
        for place, p in zip(places, holm([rows[i].change.two_year_p for i in places]), strict=True):
            words = f"{out[place].change.reason} (p {p:.2g} after Holm over {len(places)})"
            out[place] = out[place].with_change(reason=words)
    return out
