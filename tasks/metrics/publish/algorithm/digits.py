"""Digits of published numbers that are no counts: shares, means, distances, p-values, and values of single persons.

Source: rule 5 of the disclosure pass. Under ``internal`` nothing is rounded.
"""

import math
from enum import StrEnum

import numpy as np

from tasks.metrics.publish.algorithm.profiles import Policy
from tasks.numerics.arrays import Floats

SIGNIFICANT = 3
"""Digits of means, distances and facts of the graph."""
P_DIGITS, LEAST_P = 2, 0.001
EXTREMES = 0.05
"""Quantile that stands for a smallest value; 1 less this for a largest."""
ENOUGH = 60
"""People that such a quantile is taken over, at least."""


class End(StrEnum):
    """Which end of the values one person's value is."""

    SMALLEST = "smallest"
    LARGEST = "largest"


def share(events: int, n: int) -> float:
    """A share as published, of counts as they are printed: as many decimals as ``n``, one or more, has digits."""
    return round(min(events / n, 1.0), decimals(n))


def decimals(n: int) -> int:
    """Decimals of a share of ``n``: as many as ``n`` has digits."""
    return len(str(max(n, 1)))


def blunt(n: int) -> int:
    """Decimals with which a share is one of every number near ``n``: a step of the last is one person or more."""
    return math.floor(math.log10(n))


def significant(policy: Policy, value: float, digits: int = SIGNIFICANT) -> float:
    """A mean, a distance or a fact of the graph as published: three significant digits."""
    return float(f"{value:.{digits}g}") if policy.protects and math.isfinite(value) else value


def p_value(policy: Policy, p: float) -> float:
    """A p-value as published: two digits, and below 0.001 no more than that."""
    if math.isnan(p) or not policy.protects:
        return p
    return LEAST_P if p < LEAST_P else significant(policy, p, P_DIGITS)


def extreme(policy: Policy, values: Floats, end: End) -> float:
    """What stands for the smallest or largest of ``(n,)`` values, which belongs to one person.

    The 5 % or 95 % quantile to three digits where n is 60 or more; NaN, that is withheld, below.
    """
    if values.size == 0:
        return math.nan
    if not policy.protects:
        return float(values.min() if end is End.SMALLEST else values.max())
    if values.size < ENOUGH:
        return math.nan
    quantile = float(np.quantile(values, EXTREMES if end is End.SMALLEST else 1 - EXTREMES))
    return significant(policy, quantile)
