"""Excess share of denials: the part of a group's denials that its reference group would not have met.

The sum of control less test over all complainants, over the sum of control; never the mean of clipped values, which
turns noise into harm. Both sums are linear in the decisions, so that the delta method has every covariance.
"""

import math

import numpy as np

from tasks.methods.cst.algorithm.effect.contrast import Contrast
from tasks.methods.cst.algorithm.effect.effects import EffectOf
from tasks.numerics.arrays import Floats

NO_DENIALS = "no_denials"
"""Reason of a refusal: nobody in the control groups was denied."""

RAW, ADJUSTED = "raw", "adjusted"
"""Numerators: the plain difference of the neighbours' shares, or the regression-adjusted effect."""


def excess_share(found: Contrast, denied: Floats, variance: Floats, numerator: str) -> EffectOf:
    """The share with its standard error.

    Args:
        found: An effect's weights.
        denied: ``(n,)`` 1 for an unfavourable decision.
        variance: ``(n,)`` noise of each decision.
        numerator: ``raw`` or ``adjusted``.
    """
    above = found.raw if numerator == RAW else found.weights
    denials = float(found.control @ denied)
    if denials <= 0:
        return EffectOf.refused(found.complainants, NO_DENIALS)
    share = float(above @ denied) / denials
    moves = (above - share * found.control) / denials
    se = math.sqrt(float(moves**2 @ variance) + found.structural / denials**2)
    return EffectOf(share, se if se > 0 else np.nan, found.complainants, found)
