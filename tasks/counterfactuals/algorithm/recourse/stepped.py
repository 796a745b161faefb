"""Counterfactual points in whole steps and with few changed attributes: exact, by branch and bound.

Minimise ``sum_j w_j d_j^2`` subject to ``sum_j |a_j| d_j >= |a.x + b|``, where ``d_j`` is a whole number of steps
within its room, and only a limited number of them differ from 0 (section 3.5.1). The point lies on the boundary or
beyond it. The cost is separable, so that the same problem without steps bounds every branch. Equal records are solved
once.

Scope: the frame. The search: ``stepping``.
"""

from dataclasses import dataclass

import numpy as np

from tasks.counterfactuals.algorithm.recourse import stepping
from tasks.counterfactuals.algorithm.recourse.actions import Actions
from tasks.counterfactuals.algorithm.recourse.targets import Boundary, Targets
from tasks.numerics import distinct
from tasks.numerics.arrays import Bools, Floats


@dataclass(frozen=True)
class Stepped:
    """Targets in whole steps."""

    targets: Targets
    """Their cost is the distance to the point; a modified record is to pay what is left to it."""
    proven: Bools
    """``(n,)`` False where the search was stopped: the point is permitted, but a cheaper one may exist."""
    cases: int
    """Distinct cases that were solved."""


def in_steps(values: Floats, boundary: Boundary, actions: Actions, most: int | None = None) -> Stepped:
    """The cheapest permitted point on the boundary or beyond it.

    Args:
        values: ``(n, d)``.
        boundary: Of a linear classifier.
        actions: Weights, steps, bounds and directions; attributes without a step go any amount.
        most: Attributes that may be changed; any number if None.
    """
    slope = boundary.under(actions)
    places = distinct.gather(values[:, boundary.slope != 0])
    first = np.ascontiguousarray(values[places.first], np.float64)
    limit = len(actions.weight) if most is None else most
    moves, proven = stepping.solve(slope, actions.step, first, limit)
    case = np.empty(len(values), np.int64)
    case[places.order] = np.repeat(np.arange(len(first)), places.count)
    reached = np.isfinite(moves).all(axis=1)
    cost = np.where(reached, np.sqrt(np.where(reached[:, None], moves, 0.0) ** 2 @ actions.weight), np.nan)
    point = values + np.where(reached[case][:, None], moves[case], 0.0)
    return Stepped(Targets(point, cost[case], np.ones(len(values))), proven[case], len(first))
