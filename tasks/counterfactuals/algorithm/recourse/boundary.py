"""The cheapest way to a linear boundary under bounds and directions, for one record at a time, compiled.

Minimise ``sum_j w_j d_j^2`` subject to ``sum_j |a_j| d_j = |a.x + b|`` and ``0 <= d_j <= room_j``: the optimum is ``d_j
= min(m |a_j| / w_j, room_j)`` for one multiplier ``m`` (section 3.5.1: inverse classification with bounds). The
multiplier is exact after at most ``d`` rounds, because an attribute that uses up its room stays so as ``m`` grows.
Without bounds one round gives the closed form.

Scope: the kernels. Their use: ``targets``.
"""

from typing import NamedTuple

import numba
import numpy as np

from tasks.numerics.arrays import Bools, Floats

ROUNDING = 1e-9
"""Relative to the distance from the boundary: what counts as having arrived."""


class Slope(NamedTuple):
    """A boundary ``slope.x + intercept = 0`` and what may be done to reach it. A tuple, because numba takes tuples."""

    slope: Floats
    """``(d,)``."""
    intercept: float
    changeable: Bools
    weight: Floats
    """``(d,)`` positive where changeable."""
    direction: Floats
    lower: Floats
    upper: Floats


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def score(slope: Slope, x: Floats) -> float:
    """``a.x + b`` of one record ``(d,)``."""
    total = slope.intercept
    for j in range(x.shape[0]):
        total += slope.slope[j] * x[j]
    return total


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def scores(slope: Slope, values: Floats) -> Floats:
    """``a.x + b`` of every record, ``(n,)``: the same to the last bit for equal ones, which BLAS does not promise."""
    found = np.empty(values.shape[0])
    for i in range(values.shape[0]):
        found[i] = score(slope, values[i])
    return found


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def room(slope: Slope, x: Floats, j: int, falls: bool) -> float:
    """How far attribute ``j`` may go in the direction in which the score falls, or rises."""
    if not slope.changeable[j] or slope.slope[j] == 0.0:
        return 0.0
    if (slope.slope[j] > 0.0) != falls:
        return 0.0 if slope.direction[j] < 0.0 else max(0.0, slope.upper[j] - x[j])
    return 0.0 if slope.direction[j] > 0.0 else max(0.0, x[j] - slope.lower[j])


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def multiplier(slope: Slope, x: Floats, gap: float) -> float:
    """The multiplier of the boundary constraint; ``inf`` where no permitted change reaches the boundary.

    Args:
        slope: The boundary.
        x: ``(d,)`` one record.
        gap: Its score.
    """
    found, needed = 0.0, abs(gap)
    if needed == 0.0:
        return found
    while True:
        left, free = needed, 0.0
        for j in range(x.shape[0]):
            space = room(slope, x, j, gap > 0.0)
            if space == 0.0:
                continue
            pull = abs(slope.slope[j])
            if found * pull >= space * slope.weight[j]:
                left -= pull * space
            else:
                free += pull * pull / slope.weight[j]
        if free == 0.0:
            return found if left <= ROUNDING * needed else np.inf
        if left / free <= found:
            return found
        found = left / free


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def cost(slope: Slope, x: Floats) -> float:
    """Recourse cost of one record ``(d,)``; ``inf`` where the boundary is out of reach."""
    gap = score(slope, x)
    found = multiplier(slope, x, gap)
    if found == np.inf:
        return np.inf
    squared = 0.0
    for j in range(x.shape[0]):
        space = room(slope, x, j, gap > 0.0)
        if space > 0.0:
            move = min(found * abs(slope.slope[j]) / slope.weight[j], space)
            squared += slope.weight[j] * move * move
    return float(np.sqrt(squared))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def costs_and_points(slope: Slope, values: Floats) -> tuple[Floats, Floats]:
    """Recourse cost and counterfactual point of every record.

    Returns:
        ``(n,)`` costs, NaN where the boundary is out of reach; ``(n, d)`` points, the record itself where it is.
    """
    costs, points = np.empty(values.shape[0]), values.copy()
    for i in range(values.shape[0]):
        x = values[i]
        gap = score(slope, x)
        found, squared = multiplier(slope, x, gap), 0.0
        if found == np.inf:
            costs[i] = np.nan
            continue
        for j in range(x.shape[0]):
            space = room(slope, x, j, gap > 0.0)
            if space > 0.0:
                move = min(found * abs(slope.slope[j]) / slope.weight[j], space)
                squared += slope.weight[j] * move * move
                points[i, j] += move if (slope.slope[j] > 0.0) != (gap > 0.0) else -move
        costs[i] = np.sqrt(squared)
    return costs, points
