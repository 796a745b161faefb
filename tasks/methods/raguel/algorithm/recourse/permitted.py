"""Targets without a decision boundary: the nearest applicants whose values a record may take.

The distance is over all attributes, so that a candidate also resembles the record in what cannot change. The permitted
changes, their directions and ranges decide which candidates are eligible.

Scope: the compiled search and its frame. Use of a candidate: ``targets``.
"""

from typing import NamedTuple

import numba
import numpy as np

from tasks.methods.raguel.algorithm.recourse.actions import Actions
from tasks.methods.raguel.algorithm.recourse.boundary import ROUNDING
from tasks.numerics.arrays import Bools, Floats, Longs

NOBODY = -1


class Permitted(NamedTuple):
    """Which changes count, and how much. A tuple, because numba takes tuples."""

    weight: Floats
    """``(d,)`` recourse weights; 1 for what cannot be changed, which makes two applicants alike all the same."""
    changeable: Bools
    direction: Floats
    lower: Floats
    upper: Floats


def nearest_permitted(values: Floats, candidates: Floats, actions: Actions, count: int) -> Longs:
    """The nearest candidates that permitted changes lead to; of several as near, the first.

    Args:
        values: ``(n, d)`` records.
        candidates: ``(c, d)``.
        actions: Weights, directions and bounds.
        count: Candidates to find for each record.

    Returns:
        ``(n, count)`` numbers of candidates, nearest first; -1 where there are no more.
    """
    weight = np.where(actions.changeable, actions.weight, 1.0)
    permitted = Permitted(weight, actions.changeable, actions.direction, actions.lower, actions.upper)
    here, there = (np.ascontiguousarray(each, np.float64) for each in (values, candidates))
    found: Longs = _search(permitted, here, there, count)
    return found


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _search(permitted: Permitted, values: Floats, candidates: Floats, count: int) -> Longs:
    found, far = np.full((values.shape[0], count), NOBODY), np.empty(count)
    for i in range(values.shape[0]):
        far[:] = np.inf
        for c in range(candidates.shape[0]):
            squared = _squared(permitted, values[i], candidates[c], far[count - 1])
            if squared == np.inf:
                continue
            place = count - 1
            while place > 0 and far[place - 1] > squared:
                far[place], found[i, place] = far[place - 1], found[i, place - 1]
                place -= 1
            far[place], found[i, place] = squared, c
    return found


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _squared(permitted: Permitted, x: Floats, y: Floats, limit: float) -> float:
    """Squared distance of a candidate; ``inf`` where its place may not be taken, or it is not below the limit."""
    squared = 0.0
    for j in range(x.shape[0]):
        delta = y[j] - x[j]
        if delta == 0.0:
            continue
        if permitted.changeable[j]:
            outside = y[j] < permitted.lower[j] - ROUNDING or y[j] > permitted.upper[j] + ROUNDING
            if outside or delta * permitted.direction[j] < 0.0:
                return np.inf
        squared += permitted.weight[j] * delta * delta
        if squared >= limit:
            return np.inf
    return squared if squared < limit else np.inf  # equal to a record as they may be, the first candidate stays
