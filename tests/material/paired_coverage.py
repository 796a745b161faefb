"""How often bounds of a paired difference miss, added up over all samples with their probabilities: no simulation.

``python tests/material/paired_coverage.py`` prints the figures of docs/methods/adjusted.md.
"""

import sys
from typing import NamedTuple

import numpy as np
from scipy.stats import binom, norm

from tasks.numerics.statistics.intervals import Changes, lower, upper

SHARES = (0.0, 0.01, 0.05, 0.2)
"""Of units on which the two decisions differ."""
SIDES = (1.0, 0.75, 0.5)
"""Share of these that changes to the harm of the unit."""
TINY = 1e-10


class Missed(NamedTuple):
    """Probabilities over all samples."""

    covered: float
    """The mean lies inside the two-sided 95 % interval."""
    too_low: float
    """The upper one-sided 95 % bound lies below it: a pass that is none, were the limit there."""
    too_high: float
    """The lower one lies above it: a breach that is none."""


def square_and_add(raised, lowered, n, level):
    """The bounds that are shipped."""
    of = Changes(raised, lowered, n)
    return lower(of, level), upper(of, level)


def agresti_min(raised, lowered, n, level):
    """Half a unit added to each of the four cells."""
    up, down, of = raised + 0.5, lowered + 0.5, n + 2
    half = norm.isf(level) * np.sqrt(up + down - (up - down) ** 2 / of) / of
    return (up - down) / of - half, (up - down) / of + half


def score(raised, lowered, n, mean):
    """Tango's z: the difference less its mean, by the error at the likeliest shares with that mean."""
    b = -raised - lowered + (2 * n - raised + lowered) * mean
    share = (np.sqrt(max(b * b + 8 * n * lowered * mean * (1 - mean), 0)) - b) / (4 * n)
    variance = n * (2 * share + mean * (1 - mean))
    return (raised - lowered - n * mean) / np.sqrt(variance) if variance > 0 else 0.0


def tango(raised, lowered, n, mean, level):
    """Whether the lower and the upper bound miss the mean, by the score."""
    z, most = score(raised, lowered, n, mean), norm.isf(level)
    return z > most, z < -most


def samples(n, up, down):
    """Every pair of counts that is not out of reach, with its probability."""
    raised = np.arange(int(binom.isf(TINY, n, up)) + 1 if up else 1)
    lowered = np.arange(int(binom.isf(TINY, n, down)) + 1 if down else 1)
    for first, chance in zip(raised, binom.pmf(raised, n, up), strict=True):
        for second, more in zip(lowered, binom.pmf(lowered, n - first, down / (1 - up)), strict=True):
            if chance * more > TINY:
                yield int(first), int(second), chance * more


def missed(bounds, n, share, side):
    """What a way to make bounds does where so many units change, of which so many to their harm."""
    up, down = share * side, share * (1 - side)
    mean, found = up - down, np.zeros(3)
    for raised, lowered, chance in samples(n, up, down):
        ends = [_beyond(bounds, raised, lowered, n, mean, level) for level in (0.025, 0.05)]
        found += chance * np.array([not any(ends[0]), ends[1][1], ends[1][0]])
    return Missed(*found)


def _beyond(bounds, raised, lowered, n, mean, level):
    """Whether the lower end lies above the mean, and whether the upper one lies below it."""
    if bounds is tango:
        return tango(raised, lowered, n, mean, level)
    low, high = bounds(raised, lowered, n, level)
    return low > mean + 1e-12, high < mean - 1e-12


WAYS = {"square and add": square_and_add, "Agresti-Min": agresti_min, "Tango": tango}


def lines():
    """The figures, line by line."""
    for name, bounds in WAYS.items():
        yield f"{name}: units, share that changes, of it to their harm; coverage, missed above, missed below"
        for n in (30, 100, 1000):
            for share in SHARES:
                for side in SIDES if share else (1.0,):
                    told = (f"{each:.3f}" for each in missed(bounds, n, share, side))
                    yield f"{n:6} {share:.2f} {side:.2f}  {' '.join(told)}"
    yield "the worst of 30 to 300 units, and 25 shares from 0.002 to 0.2, all or four fifths of them to their harm"
    for name, bounds in WAYS.items():
        worst = extremes(bounds)
        yield f"{name}: coverage {worst.covered:.3f}, missed above {worst.too_low:.3f}, below {worst.too_high:.3f}"


def extremes(bounds, sizes=(30, 50, 100, 150, 200, 300), steps=25):
    """The least coverage and the largest one-sided errors."""
    shares = np.geomspace(0.002, 0.2, steps)
    every = np.array([missed(bounds, n, share, side) for n in sizes for share in shares for side in (1.0, 0.8)])
    return Missed(every[:, 0].min(), *every[:, 1:].max(axis=0))


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in lines())
