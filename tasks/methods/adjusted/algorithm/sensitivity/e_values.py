"""E-values: the risk ratio that an unseen column would need with group and denial (VanderWeele and Ding 2017)."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class EValue:
    """E-values of an adjusted difference, and the ratio that they are about."""

    ratio: float
    """The group's mean fitted denial over what it would be without the group term."""
    value: float
    near_end: float
    """Of the end of the interval nearest to no difference; 1 where the interval holds it, NaN without that end."""


def e_value(ratio: float) -> float:
    """RR + sqrt(RR (RR - 1)) of a risk ratio RR, or of 1 / RR where it is below 1; infinite of 0."""
    if math.isnan(ratio) or ratio < 0:
        return math.nan
    above = ratio if ratio >= 1 else math.inf if ratio == 0 else 1 / ratio
    return above + math.sqrt(above * (above - 1))


def e_value_of_effect(denial: float, effect: float, low: float, high: float) -> EValue:
    """E-values of an average effect over the group's own members.

    Args:
        denial: Mean fitted probability of denial of the group.
        effect: Mean difference that the group term makes of it.
        low: Lower end of the effect's interval; NaN where it has none.
        high: Upper end.
    """
    end = low if effect > 0 else high
    near = 0.0 if end * effect <= 0 else end
    return EValue(_ratio(denial, effect), e_value(_ratio(denial, effect)), e_value(_ratio(denial, near)))


def _ratio(denial: float, effect: float) -> float:
    """Infinite where nothing would be left without the group term; NaN of an end that is not there."""
    without = denial - effect
    if math.isnan(without):
        return math.nan
    return denial / without if without > 0 else math.inf if denial > 0 else math.nan
