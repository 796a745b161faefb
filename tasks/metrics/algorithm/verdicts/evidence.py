"""What is known of a measure: tests of both sides of a limit, and one-sided bounds at any level.

Each kind of evidence answers the same three questions. ``above(limit)``: p of "the truth is at or below the limit".
``below(limit)``: p of "at or above". ``bound(level, upper)``: the end of a one-sided interval that misses the truth
with probability ``level``. A bound at level a lies beyond a limit if and only if the p is below a, so that state and
interval never differ.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
import scipy

from tasks.numerics.statistics import paired_difference, share_ratio
from tasks.numerics.statistics.paired_difference import Changes
from tasks.numerics.statistics.proportions import Pair

OF_REFERENCE = 0.001
"""Share of the level of an exact test that goes to the reference group's own error (Berger and Boos 1994)."""


class Evidence(Protocol):
    """What is known of a measure."""

    def above(self, limit: float) -> float:
        """One-sided p of "the truth is at or below the limit"; small where it lies above."""

    def below(self, limit: float) -> float:
        """One-sided p of "the truth is at or above the limit"."""

    def bound(self, level: float, upper: bool) -> float:
        """End of the one-sided interval that misses the truth with probability ``level``."""

    @property
    def error(self) -> float:
        """Standard error on the scale on which the measure is tested; NaN where there is none."""

    @property
    def logarithmic(self) -> bool:
        """Whether that scale is the logarithm."""


@dataclass(frozen=True)
class Estimated:
    """An estimate with its standard error, on its own scale or on the logarithm, normal or Student's t.

    ``bias`` is how far a column that is not in the table may have moved it: it widens on both sides.
    """

    value: float
    se: float
    logarithmic: bool = False
    df: float = math.inf
    bias: float = 0.0
    robustness: float = math.nan
    """Robustness value: told beside the interval, and in no test."""
    se_above: float = math.nan
    """Standard error towards larger values, where the interval is wider on one side; NaN: as ``se``."""

    @property
    def error(self) -> float:
        """Its standard error."""
        return self.se

    def above(self, limit: float) -> float:
        """By the distance from the limit plus the bias."""
        return self._tail((self._at(limit) + self.bias - self._at(self.value)) / self.se)

    def below(self, limit: float) -> float:
        """By the distance from the limit less the bias."""
        return self._tail((self._at(self.value) - self._at(limit) + self.bias) / self._above)

    def bound(self, level: float, upper: bool) -> float:
        """The estimate plus or minus the quantile of its errors, and the bias."""
        half = self._quantile(level) * (self._above if upper else self.se) + self.bias
        end = self._at(self.value) + (half if upper else -half)
        return math.exp(end) if self.logarithmic else end

    @property
    def _above(self) -> float:
        return self.se if math.isnan(self.se_above) else self.se_above

    def _at(self, value: float) -> float:
        return math.log(value) if self.logarithmic else value

    def _tail(self, z: float) -> float:
        """Probability of an error below ``z``: small where the estimate is far beyond the limit."""
        return float(scipy.stats.norm.cdf(z) if math.isinf(self.df) else scipy.stats.t.cdf(z, self.df))

    def _quantile(self, level: float) -> float:
        return float(scipy.stats.norm.isf(level) if math.isinf(self.df) else scipy.stats.t.isf(level, self.df))


@dataclass(frozen=True)
class RatioOfShares:
    """The ratio of two shares by its score test (Miettinen and Nurminen 1985).

    With few people that test is too ready: at the limit, one application breaches with probability 0.24 where 95 %
    of the reference group are approved. ``few`` asks the exact binomial test as well, at the lower end of what the
    reference group's share may be, whose own error counts in full (Berger and Boos 1994).
    """

    events: int
    n: int
    reference_events: int
    reference_n: int
    few: bool = False
    logarithmic: bool = True

    @property
    def _pair(self) -> Pair:
        counts = (self.events, self.n, self.reference_events, self.reference_n)
        return Pair(*(np.array([each], dtype=np.float64) for each in counts))

    def _ends(self, level: float) -> tuple[float, float]:
        return _score_ends((self.events, self.n, self.reference_events, self.reference_n), level)

    @property
    def error(self) -> float:
        """Of the logarithm, as wide as the score interval; NaN where that is open on a side."""
        low, high = self._ends(0.025)
        if not (low > 0 and math.isfinite(high)):
            return math.nan
        return (math.log(high) - math.log(low)) / (2 * float(scipy.stats.norm.isf(0.025)))

    def above(self, limit: float) -> float:
        """By the score at the limit."""
        return float(scipy.stats.norm.sf(share_ratio.score(self._pair, limit)[0]))

    def below(self, limit: float) -> float:
        """By the score at the limit; with few people no smaller than the exact p."""
        by_score = float(scipy.stats.norm.cdf(share_ratio.score(self._pair, limit)[0]))
        if not self.few:
            return by_score
        exact = scipy.stats.binom.cdf(self.events, self.n, min(limit * self._least_reference, 1.0))
        return max(by_score, min(float(exact) + OF_REFERENCE, 1.0))

    def bound(self, level: float, upper: bool) -> float:
        """The ratio that the score test of that level just keeps."""
        end = self._ends(level)[upper]
        return max(end, self._most(level)) if self.few and upper else end

    def _most(self, level: float) -> float:
        """The largest ratio that the exact test of that level keeps."""
        if level <= OF_REFERENCE or self.events == self.n or not self.reference_events:
            return math.inf
        share = scipy.stats.beta.isf(level - OF_REFERENCE, self.events + 1, self.n - self.events)
        return float(share / self._least_reference)

    @property
    def _least_reference(self) -> float:
        """Lower end of the reference group's share (Clopper and Pearson 1934)."""
        missed = self.reference_n - self.reference_events
        return (
            float(scipy.stats.beta.ppf(OF_REFERENCE, self.reference_events, missed + 1))
            if self.reference_events
            else 0.0
        )


@lru_cache(maxsize=256)
def _score_ends(counts: tuple[int, int, int, int], level: float) -> tuple[float, float]:
    """Both ends at a level; an error, a state and a printed interval ask for the same ones, and each is a search."""
    pair = Pair(*(np.array([each], dtype=np.float64) for each in counts))
    low, high = share_ratio.bounds(pair, float(scipy.stats.norm.isf(level)))
    return float(low[0]), float(high[0])


@dataclass(frozen=True)
class PairedDifference:
    """The mean of a difference of -1, 0 or 1 of each member, by the counts of both changes."""

    changes: Changes
    logarithmic: bool = False

    @property
    def error(self) -> float:
        """As wide as the two-sided 95 % interval."""
        return paired_difference.error(self.changes)

    def above(self, limit: float) -> float:
        """By the lower bounds of all levels."""
        return paired_difference.above(self.changes, limit)

    def below(self, limit: float) -> float:
        """By the upper ones."""
        return paired_difference.below(self.changes, limit)

    def bound(self, level: float, upper: bool) -> float:
        """By squaring and adding exact limits of both shares."""
        return (paired_difference.upper if upper else paired_difference.lower)(self.changes, level)


@dataclass(frozen=True)
class Ended:
    """A value with both ends of an interval of ``level``, whose two halves are taken as normal each.

    For measures that a spec's own thresholds name: their intervals were made once, and not at every level of Holm.
    """

    value: float
    low: float
    high: float
    level: float
    logarithmic: bool = False

    @property
    def error(self) -> float:
        """Half the width, in quantiles of the normal."""
        return abs(self._at(self.high) - self._at(self.low)) / (2 * self._z)

    @property
    def _z(self) -> float:
        return float(scipy.stats.norm.isf((1 - self.level) / 2))

    def above(self, limit: float) -> float:
        """By the lower half."""
        return float(scipy.stats.norm.cdf((self._at(limit) - self._at(self.value)) / self._half(upper=False)))

    def below(self, limit: float) -> float:
        """By the upper half."""
        return float(scipy.stats.norm.cdf((self._at(self.value) - self._at(limit)) / self._half(upper=True)))

    def bound(self, level: float, upper: bool) -> float:
        """The value plus or minus the quantile times the half's width in standard errors."""
        half = float(scipy.stats.norm.isf(level)) * self._half(upper)
        end = self._at(self.value) + (half if upper else -half)
        return math.exp(end) if self.logarithmic else end

    def _half(self, upper: bool) -> float:
        end = self.high if upper else self.low
        width = abs(self._at(end) - self._at(self.value)) / self._z
        return float(max(width, np.finfo(float).tiny))  # a quotient too large is inf, which has a probability

    def _at(self, value: float) -> float:
        return math.log(max(value, np.finfo(float).tiny)) if self.logarithmic else value
