"""The mean of a paired difference of -1, 0 or 1: one-sided bounds and tests that hold at small counts.

Two decisions on each of n units, such as those of one model on an applicant as they are and with one input exchanged.
The difference of the two is 1 on ``raised`` units, -1 on ``lowered`` ones and 0 on the others; the counts are
multinomial. Its mean is the difference of the two shares, and the bound squares and adds the distances of their exact
limits (Clopper and Pearson 1934), with the correlation of two cells of a multinomial: the recovery of variances of
Newcombe (1998, Statistics in Medicine 17, p. 2635) and of Zou and Donner (2008, 27, p. 1693). Where nobody changes to
one side the end away from zero is the exact one; where nobody changes at all it reaches to about 3 / n at 5 %.

Agresti and Min's adjusted interval (2005) and Tango's score interval (1998) are shorter and miss too often on one side
at few changes; ``tests/material/paired_coverage.py`` prints how often, over all samples.
"""

import math
from typing import NamedTuple

import scipy

LEAST = 1e-12
"""The smallest p that is told."""
HALF = 0.5
"""The largest level of a one-sided bound."""


class Changes(NamedTuple):
    """Units whose second value differs from the first."""

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
    """The level, at most 0.5, at which the lower end is the limit; the smallest that is told where it is smaller."""
    if lower(of, LEAST) >= limit:
        return LEAST
    found = scipy.optimize.brentq(
        lambda log: lower(of, math.exp(log)) - limit, math.log(LEAST), math.log(HALF), xtol=1e-12
    )
    return math.exp(float(found))
