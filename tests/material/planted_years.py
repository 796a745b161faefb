"""Years whose truth is known: simulated gaps of a lender that stays, wanders or changes.

``python tests/material/planted_years.py`` prints the figures of docs/monitoring.md.
"""

import sys

import numpy as np

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
YEARS = 8


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


def lines(series):
    """The figures, line by line."""

    def rng():
        return np.random.default_rng(20)

    yield f"{series} series a figure; simulation error of 0.05 is {np.sqrt(0.05 * 0.95 / series):.4f}"
    honest = normal_years(rng(), series)
    yield "any false breach in 8 years, honest lender at the limit, one group"
    yield f"  sequence {found_by(honest)[-1]:.4f}, taking the effect as constant {found_by_constant(honest)[-1]:.4f}"
    yield f"  each year alone {alone(honest):.3f}, plan of 8 {alone(honest, plan=8):.4f}"
    eight = normal_years(rng(), series * 2).reshape(-1, 8, YEARS)
    for words, a in (("a = 2 alpha / 8", 0.10 / 8), ("a = 2 alpha", 0.10)):
        some = [np.mean([found(groups, a)[-1] > 0 for groups in eight]) for found in (found_by, found_by_constant)]
        yield f"  some of 8 groups, {words}: {some[0]:.4f}, constant {some[1]:.4f} of {len(eight)}"
    beyond = normal_years(rng(), series, beyond=1.5)
    found = [by(beyond)[[2, 4, 7]].round(3) for by in (found_by, found_by_constant)]
    yield f"1.5 standard errors beyond, found by year 3, 5, 8: {found[0]}, constant {found[1]}"
    yield "wander: alarms of prediction, neighbours, slope; power, rise of 5, 3; false breach by year 3, 8, constant"
    for wander in (0.0, 0.01, 0.02):
        e, v = gaps(rng(), series, wander=wander)
        powers = [float(alarms(*gaps(rng(), series, wander=wander, rise=r))) for r in (0.05, 0.03)]
        wandering = normal_years(rng(), series, wander=wander / 0.011)
        breach = [by(wandering)[[2, 7]].round(3) for by in (found_by, found_by_constant)]
        yield f"  {wander:.2f}: {alarms(e, v):.4f} {neighbours(e, v):.3f} {slopes(e, v):.4f}; {powers}; {breach}"
    for years in (5, 8):
        seen = [float(slopes(*gaps(rng(), series, trend=0.01, wander=w, years=years))) for w in (0.0, 0.01)]
        yield f"slope of a point a year over {years} years is seen (wander 0, 1 point): {seen}"
    for n in (200, 2_000, 20_000):
        e, v = gaps(rng(), 200, n=n, n_reference=10 * n)
        minimal = np.median([prediction(x[:-1], s[:-1], x[-1], s[-1]).minimal for x, s in zip(e, v, strict=True)])
        yield f"minimal change, n {n}: {minimal:.4f}"


if __name__ == "__main__":
    for line in lines(4_000):
        sys.stdout.write(f"{line}\n")
