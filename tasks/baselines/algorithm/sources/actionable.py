"""AR, actionable recourse: the change whose largest percentile shift is smallest (Ustun et al. 2019), as a baseline.

The paper (section 3.1) solves an integer programme over a grid of values. Its cost of a change is the largest shift
``|Q_j(x'_j) - Q_j(x_j)|`` in percentiles of any attribute. For a linear boundary no solver is needed: within a shift
``m`` each attribute has one best value, and the gains of attributes add up. So the smallest ``m`` at which they add up
to enough is found by bisection over the shifts that occur. Of the attributes, those that gain most are taken until it
is enough, which are the fewest.

``total`` is the paper's other cost, the sum of log percentile shifts (section 3.2, for audits).
"""

import numpy as np

from tasks.baselines.algorithm.sources.choice import cheapest
from tasks.baselines.algorithm.sources.grids import Grid, Options
from tasks.baselines.algorithm.sources.kind import ARRIVED, Points, SearchSpace, points
from tasks.numerics.arrays import Floats, Longs


def actionable(space: SearchSpace) -> Points:
    """The points of smallest largest percentile shift; costs are these shifts, in [0, 1]."""
    grid, point, cost = Grid(space), space.values.copy(), np.empty(len(space.values))
    for part, options in grid.chunks():
        shift, need = _shifts(grid, options, part), space.gap[part] * (1.0 - ARRIVED)
        level = _least_level(options.gain, shift, need)
        pick = _fewest(options.gain, shift, need, level)
        point[part] = options.picked(space.values[part], pick)
        taken = np.take_along_axis(shift, np.maximum(pick, 0)[..., None], axis=2)[..., 0]
        cost[part] = np.where(np.isfinite(level), np.where(pick >= 0, taken, 0.0).max(axis=1, initial=0.0), np.nan)
    return points(space, point, cost)


def actionable_total(space: SearchSpace) -> Points:
    """The points of smallest sum of ``log((1 - Q(x)) / (1 - Q(x')))``; ``1 - Q`` counts whom a change leads past.

    Upwards that is the share of rows with at least the value, downwards with at most it, so that no cost is infinite.
    """
    grid, point, cost = Grid(space), space.values.copy(), np.empty(len(space.values))
    proven = np.ones(len(space.values), np.bool_)
    for part, options in grid.chunks():
        pick, cost[part], proven[part] = cheapest(options.gain, _log_shifts(grid, options, part), space.gap[part])
        point[part] = options.picked(space.values[part], pick)
    return points(space, point, cost, proven)


def _shifts(grid: Grid, options: Options, part: slice) -> Floats:
    """``(n, d, k)`` percentile shifts; ``inf`` where an option is not there."""
    now = grid.at_most(grid.space.values[part])[..., None]
    return np.where(options.gain > 0, np.abs(grid.at_most(options.to) - now), np.inf)


def _log_shifts(grid: Grid, options: Options, part: slice) -> Floats:
    values, rises = grid.space.values[part], grid.space.boundary.slope >= 0
    now = np.where(rises, grid.at_least(values), grid.at_most(values))
    then = np.where(rises[:, None], grid.at_least(options.to), grid.at_most(options.to))
    least = 1.0 / max(len(grid.space.observed), 1)
    ratio = np.maximum(now, least)[..., None] / np.maximum(then, least)
    return np.where(options.gain > 0, np.maximum(np.log(ratio), 0.0), np.inf)


def _least_level(gain: Floats, shift: Floats, need: Floats) -> Floats:
    """``(n,)`` the smallest shift within which the gains are enough; ``inf`` where none is."""
    levels = np.sort(shift.reshape(len(shift), -1), axis=1)
    levels = np.concatenate([np.zeros((len(levels), 1)), levels], axis=1)
    low, high = np.full(len(need), -1), np.full(len(need), levels.shape[1] - 1)
    enough = gain.max(axis=2, initial=0.0).sum(axis=1) >= need
    while (high - low > 1).any():
        middle = (low + high + 1) // 2
        within = _best(gain, shift, np.take_along_axis(levels, np.maximum(middle, 0)[:, None], axis=1)[:, 0])
        there = within.sum(axis=1) >= need
        low, high = np.where(there, low, middle), np.where(there, middle, high)
    found: Floats = np.where(enough, np.take_along_axis(levels, high[:, None], axis=1)[:, 0], np.inf)
    return found


def _best(gain: Floats, shift: Floats, level: Floats) -> Floats:
    """``(n, d)`` the best gain of each attribute within a shift."""
    found: Floats = np.where(shift <= level[:, None, None], gain, 0.0).max(axis=2, initial=0.0)
    return found


def _fewest(gain: Floats, shift: Floats, need: Floats, level: Floats) -> Longs:
    """``(n, d)`` the option of each attribute that is taken within a shift; -1 for none."""
    within = np.where(shift <= level[:, None, None], gain, 0.0)
    best, option = within.max(axis=2, initial=0.0), within.argmax(axis=2)
    order = np.argsort(-best, axis=1, kind="stable")
    ranked = np.take_along_axis(best, order, axis=1)
    before = np.cumsum(ranked, axis=1) - ranked
    taken = np.zeros(best.shape, np.bool_)
    np.put_along_axis(taken, order, (before < need[:, None]) & (ranked > 0), axis=1)
    return np.where(taken & np.isfinite(level)[:, None], option, -1)
