"""Support: share of a group that has comparable applicants in the reference group.

By the propensity of membership on the columns in which a method calls applicants comparable: a logit of both groups.
Its odds are those of groups of equal size, as the propensity of a small group is low for its size alone. An applicant
near 1 has nobody like it in the reference group.

Scope: arrays. What a method compares by, and what follows from poor support, is the method's.
"""

import math
from typing import Final

import numpy as np

from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.statistics.regression import RIDGE, fit_logit

INSIDE: Final = (0.05, 0.95)
"""Propensities with comparable applicants on both sides (Crump and others 2009 advise 0.1 and 0.9)."""
ENOUGH: Final = 0.8
"""Share of a group that must have them for its comparison to be judged."""
ROWS_A_COLUMN: Final = 10
"""With fewer rows of a group for each column, a logit separates groups that do overlap."""


def share_inside(e: Floats, members: int, others: int) -> float:
    """Share of propensities ``(m,)`` inside, had both groups as many rows; NaN of nobody."""
    bounded = np.clip(e, 1e-12, 1 - 1e-12)
    odds = bounded / (1 - bounded) * others / members
    equal = odds / (1 + odds)
    return float(((equal >= INSIDE[0]) & (equal <= INSIDE[1])).mean()) if len(e) else math.nan


def support(design: Floats, member: Bools, moved: Floats | None = None) -> float:
    """Share of a group with comparable applicants in the reference group; NaN where a group has too few rows to tell.

    Args:
        design: ``(n, d)`` design rows of both groups, intercept first.
        member: ``(n,)`` members of the group; all others are of the reference group.
        moved: ``(r, d)`` whom to ask about in place of the members: counterfactuals, who are to be like the reference
            group and so may be anywhere below the upper end.
    """
    members, others = int(member.sum()), int((~member).sum())
    if min(members, others) < ROWS_A_COLUMN * design.shape[1]:
        return math.nan
    if design.shape[1] == 1:
        return 1.0
    fit = fit_logit(design, member.astype(np.float64), ridge=RIDGE)
    if moved is None:
        return share_inside(fit.fitted[member], members, others)
    index = moved @ fit.coefficients + math.log(others / members)
    upper = math.log(INSIDE[1] / (1 - INSIDE[1]))
    return float((index <= upper).mean()) if len(moved) else math.nan


def is_poor(share: float) -> bool:
    """Whether too few of a group have comparable applicants; not where that is not known."""
    return share < ENOUGH
