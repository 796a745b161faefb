"""Targets without a decision boundary: the nearest applicants whose values a record may take.

The distance is over all attributes, so that a candidate also resembles the record in what cannot change. The permitted
changes, their directions and ranges decide which candidates are eligible.

Scope: the compiled search and its frame. Use of a candidate: ``targets``.
"""

from collections.abc import Callable
from typing import NamedTuple

import numba
import numpy as np

from tasks.counterfactuals.algorithm.recourse.actions import Actions
from tasks.counterfactuals.algorithm.recourse.boundary import ROUNDING
from tasks.numerics.arrays import Bools, Floats, Longs

NOBODY = -1

Favours = Callable[[Longs, Floats], Bools]
"""From rows and the points that they are moved to, to the model's decisions."""


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


def nearest_favoured(
    values: Floats, candidates: Floats, actions: Actions, asked: int = 1, favours: Favours | None = None
) -> Longs:
    """The nearest candidate of each record at whose place the model favours the record, ``(n,)``; -1 for nobody.

    Args:
        values: ``(n, d)`` records.
        candidates: ``(c, d)``.
        actions: What may be done.
        asked: Candidates that are tried for each record.
        favours: The model; None where nobody can be asked, and the nearest candidate has to do.
    """
    nearest = nearest_permitted(values, candidates, actions, asked if favours else 1)
    chosen, open_ = np.full(len(values), NOBODY), np.arange(len(values))
    for each in nearest.T:
        open_ = open_[each[open_] != NOBODY]
        if not len(open_):
            break
        points = np.where(actions.changeable, candidates[each[open_]], values[open_])
        good = favours(open_, points) if favours else np.ones(len(open_), np.bool_)
        chosen[open_[good]] = each[open_[good]]
        open_ = open_[~good]
    return chosen


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
