"""Permitted changes of an applicant: direction, range, steps, and the weight of each.

Scope: the actions. Their costs: ``targets``.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from schemas.errors import SpecError
from tasks.numerics.arrays import Bools, Floats


@dataclass(frozen=True)
class Actions:
    """For each of ``d`` attributes what may be done about it. ``make_actions`` checks and completes it."""

    weight: Floats
    """``(d,)`` recourse weights, the largest among the changeable is 1; 0 where an attribute cannot be changed."""
    changeable: Bools
    """``(d,)`` the set J: an immutable attribute is outside it, and not merely expensive."""
    step: Floats
    """``(d,)`` size of one whole step, in the units of the values; 0 where any amount will do."""
    direction: Floats
    """``(d,)`` 1 only up, -1 only down, 0 either way."""
    lower: Floats
    """``(d,)`` smallest value that may be moved to, or ``-inf``."""
    upper: Floats
    """``(d,)`` largest value that may be moved to, or ``inf``."""

    @property
    def unbounded(self) -> bool:
        """Whether every changeable attribute may go either way and any distance."""
        free = (self.direction == 0) & np.isneginf(self.lower) & np.isposinf(self.upper)
        return bool(free[self.changeable].all())


def make_actions(
    weight: ArrayLike,
    changeable: ArrayLike = True,
    step: ArrayLike = 0.0,
    direction: ArrayLike = 0.0,
    lower: ArrayLike = -np.inf,
    upper: ArrayLike = np.inf,
) -> Actions:
    """Actions with weights divided by the largest of a changeable attribute (section 3.5.1: they are normalised).

    Args:
        weight: ``(d,)`` how hard each attribute is to change; not read where it cannot be changed.
        changeable: ``(d,)`` the set J. This and what follows may be one value for all.
        step: ``(d,)`` size of one step; 0 for any amount.
        direction: ``(d,)`` 1, -1 or 0.
        lower: ``(d,)`` bounds on what is moved to.
        upper: ``(d,)`` likewise.

    Raises:
        SpecError: If the weight of a changeable attribute is not a positive number, a step is negative, or a lower
            bound lies above the upper one.
    """
    given = np.atleast_1d(np.asarray(weight, np.float64))
    free = np.broadcast_to(np.asarray(changeable, np.bool_), given.shape)
    steps, ways, low, high = (
        np.broadcast_to(np.asarray(each, np.float64), given.shape).copy() for each in (step, direction, lower, upper)
    )
    if not (np.isfinite(given[free]) & (given[free] > 0)).all():
        raise SpecError("a recourse weight is not a positive number; an attribute nobody can change is immutable")
    if not (np.isfinite(steps) & (steps >= 0)).all():
        raise SpecError("a step is negative or no number; give its size, or 0 for any amount")
    if not (low <= high).all():
        raise SpecError("a lower bound lies above the upper bound of the same attribute; exchange them")
    weights = np.where(free, given, 0.0)
    return Actions(weights / weights.max(initial=0.0) if free.any() else weights, free.copy(), steps, ways, low, high)
