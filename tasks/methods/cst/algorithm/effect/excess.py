"""Excess share of denials: the part of a group's denials that its reference group would not have met.

One less the share denied among test groups over that among control groups, of all complainants together; never the
mean of clipped values, which turns noise into harm. Both shares are linear in the decisions and rest on different rows.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from tasks.methods.cst.algorithm.effect.contrast import Contrast
from tasks.numerics.arrays import Floats, Longs

NO_DENIALS = "no_denials"
"""Reason of a refusal: nobody in the control groups was denied."""

RAW, ADJUSTED = "raw", "adjusted"
"""Both shares as counted among neighbours, or regression-adjusted for what neighbours still differ in."""


class ExcessShare(NamedTuple):
    """The share, at most 1; below 0 where the group is denied less often."""

    value: float = np.nan
    interval: tuple[float, float] | None = None
    """None where it does not cover as often as it says, or where it is not defined."""
    reason: str = ""
    """Why there is no share."""


def excess_share(
    found: Contrast, own: Longs, denied: Floats, variance: Floats, numerator: str, level: float
) -> ExcessShare:
    """The share with its interval; as counted it has none, since it carries the group's finances.

    Args:
        found: An effect's weights.
        own: Rows of the group, whose weights are the control side's; all other weights are the test side's.
        denied: ``(n,)`` 1 for an unfavourable decision.
        variance: ``(n,)`` noise of each decision.
        numerator: ``raw`` or ``adjusted``.
        level: Of the interval, 0.95 for 95 %.

    The interval is that of the logarithm of a ratio (delta method). It is not symmetric, and ends below 1.
    """
    control = np.zeros(len(denied))
    control[own] = found.weights[own]
    test = control - found.weights
    if numerator == RAW:
        control, test = found.control, found.control - found.raw
    expected, met = float(control @ denied), float(test @ denied)
    if expected <= 0:
        return ExcessShare(reason=NO_DENIALS)
    ratio = met / expected
    if numerator == RAW or ratio <= 0:
        return ExcessShare(1 - ratio)
    relative = float(control**2 @ variance) / expected**2
    relative += (float(test**2 @ variance) + found.structural) / met**2
    relative += 0.0 if found.design is None else found.design.variance(-1 / expected, 1 / met)
    if relative <= 0:
        return ExcessShare(1 - ratio)
    factor = math.exp(float(norm.ppf((1 + level) / 2)) * math.sqrt(relative))
    return ExcessShare(1 - ratio, (1 - ratio * factor, 1 - ratio / factor))
