"""Years whose truth is known: simulated gaps of a lender that stays, wanders or changes.

``python -m benches years`` prints the figures of docs/monitoring.md.
"""

from collections.abc import Iterator

import numpy as np

from research.benchmark import Bench, Room, Row, against, at_most, row
from tasks.metrics.algorithm.monitoring import (
    bonferroni,
    confidence_sequence,
    prediction,
    radius,
    single_year,
    slope,
    two_years,
)

N, N_REFERENCE, RATE, RATE_REFERENCE = 2_000, 20_000, 0.65, 0.76
YEARS, SERIES = 8, 4_000
FALSE, FALSE_ALARMS = 0.05, 0.06
"""Most honest lenders in breach in some year; most series without a change that alarm."""
POWERS = {0.0: (0.92, 0.45), 0.01: (0.71, 0.31), 0.02: (None, None)}
"""Wander -> share in which a rise of 5 and of 3 points was found in a trial before this code."""


def gaps(rng, series, *, wander=0.0, rise=0.0, trend=0.0, years=YEARS, n=N, n_reference=N_REFERENCE):
    """Estimated gaps of approval and their variances, ``(series, years)``.

    ``wander``: standard deviation of the true gap from year to year. ``rise``: of the last year. ``trend``: a year.
    """
    moved = rng.normal(0, wander, (series, years)) + trend * np.arange(years) + rise * (np.arange(years) == years - 1)
    mine = rng.binomial(n, np.clip(RATE - moved, 0, 1)) / n
    theirs = rng.binomial(n_reference, RATE_REFERENCE, (series, years)) / n_reference
    return theirs - mine, mine * (1 - mine) / n + theirs * (1 - theirs) / n_reference


def alarms(e, v):
    """Share of series whose last year is told as changed against those before it."""
    found = [prediction(x[:-1], s[:-1], x[-1], s[-1]) for x, s in zip(e, v, strict=True)]
    return np.mean([p.low > 0 or p.high < 0 for p in found])


def neighbours(e, v):
    """Share of series whose last year differs from the one before it by the two-year interval."""
    found = [two_years(x[-1], s[-1], x[-2], s[-2]) for x, s in zip(e, v, strict=True)]
    return np.mean([d.low > 0 or d.high < 0 for d in found])


def normal_years(rng, series, *, beyond=0.0, wander=0.0, years=YEARS):
    """Estimates with standard error 1 of effects so far beyond a limit of 0, ``(series, years)``."""
    return beyond + rng.normal(0, 1, (series, years)) + rng.normal(0, wander, (series, years))


def found_by(e, a=0.10):
    """Share of series in breach in some year up to each, ``(years,)``, by the confidence sequence."""
    years = e.shape[1]
    one, zero = np.ones(years), np.zeros(years)
    lows = [[confidence_sequence(x[:t], one[:t], zero[:t], a).low for t in range(1, years + 1)] for x in e]
    return (np.maximum.accumulate(np.array(lows) > 0, axis=1)).mean(axis=0)


def found_by_constant(e, a=0.10):
    """The same by the band that takes the effect as constant, with all years of weight 1: a clear loop."""
    found = np.zeros(e.shape, dtype=bool)
    for t in range(1, e.shape[1] + 1):
        found[:, t - 1] = e[:, :t].mean(axis=1) - radius(t, 1, a) > 0
    return np.maximum.accumulate(found, axis=1).mean(axis=0)


def alone(e, alpha=0.05, plan=None):
    """Share of series in breach in some year, each year by itself, or by a plan of so many."""
    low = single_year(0, 1, 0, alpha).low if plan is None else bonferroni(0, 1, 0, alpha, plan).low
    return (e + low > 0).any(axis=1).mean()


def slopes(e, v):
    """Share of series whose slope leaves out 0."""
    t = np.arange(e.shape[1], dtype=float)
    return np.mean([slope(t, x, s).speaks for x, s in zip(e, v, strict=True)])


def _any_group(rng, series, by, a):
    """Share of lenders of eight honest groups of which some is in breach in some year."""
    honest = normal_years(rng, series).reshape(-1, 8, YEARS)
    return np.mean([by(groups, a)[-1] > 0 for groups in honest])


def _lines(room: Room) -> Iterator[Row]:
    series = room.reps or SERIES

    def rng():
        return np.random.default_rng(20)

    def line(what, value, target=None, words=""):
        return row("honest lender at its limit", series, what, ratio=float(value), found=words, **(target or {}))

    def wandering(what, wander, value, target=None, words=""):
        return {**line(what, value, target, words), "data": f"wander of {wander * 100:g} points"}

    honest = normal_years(rng(), series)
    yield line("each year alone", alone(honest))
    yield line("bonferroni, 8 years", found := alone(honest, plan=8), at_most(found, FALSE))
    constant = f"effect as constant {found_by_constant(honest)[-1]:.4f}"
    yield line("confidence sequence", found := found_by(honest)[-1], at_most(found, FALSE), constant)
    for words, a in (("a = 2 alpha / 8", 0.10 / 8), ("a = 2 alpha", 0.10)):
        found, other = (_any_group(rng(), series * 2, by, a) for by in (found_by, found_by_constant))
        target = at_most(found, FALSE) if a < 0.10 else None
        yield line(f"some of 8 groups, {words}", found, target, f"{series // 4} lenders; constant {other:.4f}")
    beyond = normal_years(rng(), series, beyond=1.5)
    found, other = (by(beyond)[[2, 4, 7]] for by in (found_by, found_by_constant))
    for year, share, by_constant in zip((3, 5, 8), found, other, strict=True):
        words = f"effect as constant {by_constant:.3f}"
        yield {**line(f"found by year {year}", share, words=words), "data": "1.5 standard errors beyond its limit"}
    for wander, powers in POWERS.items():
        e, v = gaps(rng(), series, wander=wander)
        yield wandering("false alarms, last year", wander, found := alarms(e, v), at_most(found, FALSE_ALARMS))
        yield wandering("false alarms, neighbouring years", wander, neighbours(e, v))
        yield wandering("false alarms, slope", wander, found := slopes(e, v), at_most(found, FALSE_ALARMS))
        for rise, power in zip((0.05, 0.03), powers, strict=True):
            found = alarms(*gaps(rng(), series, wander=wander, rise=rise))
            target = None if power is None else against(f"within 5 points of {power}", abs(found - power) <= 0.05)
            yield wandering(f"rise of {rise * 100:g} points", wander, found, target)
        found = found_by(normal_years(rng(), series, wander=wander / 0.011))
        yield wandering("honest on average, in breach by year 8", wander, found[7], words=f"by year 3 {found[2]:.3f}")
    for wander in POWERS:
        found = alarms(*gaps(rng(), series, wander=wander, years=5))
        yield wandering("four years before: false alarms", wander, found, at_most(found, FALSE_ALARMS))
        found = alarms(*gaps(rng(), series, wander=wander, rise=0.05, years=5))
        yield wandering("four years before: rise of 5 points", wander, found)
    for years in (5, 8):
        for wander in (0.0, 0.01):
            found = slopes(*gaps(rng(), series, trend=0.01, wander=wander, years=years))
            yield wandering(f"slope of a point a year over {years} years", wander, found)
    for n in (200, 2_000, 20_000):
        e, v = gaps(rng(), min(series, 200), n=n, n_reference=10 * n)
        minimal = np.median([prediction(x[:-1], s[:-1], x[-1], s[-1]).minimal for x, s in zip(e, v, strict=True)])
        yield {**line("smallest change found in 80 %", minimal), "data": f"group of {n:,}"}


BENCH = Bench("years", _lines, repeats=True)
