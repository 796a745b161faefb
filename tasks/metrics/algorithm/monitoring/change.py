"""Change between two years, and the words for a change.

Applications of two years are different ones, so that variances add. specs/verdicts.md, section 6. Two years cannot tell
a change from wandering: with a gap that wanders by two points from year to year, and no change, each pair of neighbours
differs "significantly" in a third of cases (specs/evidence.md, section 2). Hence such a difference has no state.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from schemas.terms import ChangeState

WANDERING = "two years cannot tell a change from wandering"


class Difference(NamedTuple):
    """Later less earlier year, on the scale of the estimates, with its 95 % interval and two-sided p."""

    value: float
    low: float
    high: float
    p: float


def two_years(
    later: float, variance: float, earlier: float, earlier_variance: float, level: float = 0.95
) -> Difference:
    """The difference of two estimates from different applications."""
    value, se = later - earlier, math.sqrt(variance + earlier_variance)
    half = -float(ndtri((1 - level) / 2)) * se
    return Difference(value, value - half, value + half, float(2 * ndtr(-abs(value) / se)))


def holm(p: Sequence[float]) -> list[float]:
    """p-values after Holm (1979), in the order given."""
    order = np.argsort(p, kind="stable")
    steps = np.asarray(p, dtype=np.float64)[order] * np.arange(len(p), 0, -1)
    out = np.empty(len(p))
    out[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return [float(each) for each in out]


def change_state(low: float, high: float, limit: float) -> ChangeState:
    """State of a change by its interval.

    Args:
        low: lower end of the interval of the change, on the scale of the estimates.
        high: its upper end.
        limit: the limit of the measure on that scale; its half is what counts as no change. NaN: none.
    """
    if low > 0 or high < 0:
        return ChangeState.CHANGED
    half = abs(limit) / 2
    return ChangeState.UNCHANGED if -half <= low and high <= half else ChangeState.UNCLEAR
