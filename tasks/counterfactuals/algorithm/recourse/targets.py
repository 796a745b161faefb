"""Counterfactual points and recourse costs: the target of each record and its cost (RAGUEL, step 1).

The cost is a weighted Euclidean distance, ``c(x) = sqrt(sum_j w_j (x_j - cp_j)^2)`` over the attributes that may
change. A record that cannot reach its target by permitted changes is refused: no cost, and itself for a point.

Scope: targets in closed form. Targets in whole steps or with few changes: ``stepped``.
"""

from dataclasses import dataclass

import numpy as np

from tasks.counterfactuals.algorithm.recourse import boundary as kernel
from tasks.counterfactuals.algorithm.recourse.actions import Actions
from tasks.numerics.arrays import Bools, Floats

OUT_OF_REACH = "out_of_reach"
"""Why a record has no cost: no permitted change leads to its target."""


@dataclass(frozen=True)
class Boundary:
    """A linear decision boundary ``slope.x + intercept = 0``."""

    slope: Floats
    """``(d,)``."""
    intercept: float

    def under(self, actions: Actions) -> kernel.Slope:
        """As the kernels read it."""
        return kernel.Slope(
            np.ascontiguousarray(self.slope, np.float64),
            float(self.intercept),
            actions.changeable,
            actions.weight,
            actions.direction,
            actions.lower,
            actions.upper,
        )

    def pull(self, actions: Actions) -> Floats:
        """``a_j / w_j`` on the attributes that may be changed, 0 on the others, ``(d,)``."""
        pull = np.zeros(len(self.slope))
        np.divide(self.slope, actions.weight, out=pull, where=actions.changeable)
        return pull


@dataclass(frozen=True)
class Targets:
    """Of ``n`` records the counterfactual points and what it costs to reach them."""

    point: Floats
    """``(n, d)``; the record itself where it is refused."""
    cost: Floats
    """``(n,)`` recourse cost; NaN where refused (``OUT_OF_REACH``)."""
    rate: Floats
    """``(n,)`` cost per unit of weighted distance to the point: 1 but for costs that come from elsewhere."""

    @property
    def reached(self) -> Bools:
        """``(n,)`` records that are not refused."""
        return np.isfinite(self.cost)


def to_boundary(values: Floats, boundary: Boundary, actions: Actions) -> Targets:
    """The nearest point of a linear boundary, from whichever side; steps do not bind (section 3.5.1, Equation 2).

    Without bounds and directions in closed form: with ``S = sum_{j in J} a_j^2 / w_j``, ``c = |a.x + b| / sqrt(S)`` and
    ``cp_j = x_j - (a_j / w_j) (a.x + b) / S``.

    Args:
        values: ``(n, d)``.
        boundary: Of a linear classifier.
        actions: Weights, bounds and directions.
    """
    if not actions.unbounded:
        cost, point = kernel.costs_and_points(boundary.under(actions), np.ascontiguousarray(values, np.float64))
        return Targets(point, cost, np.ones(len(values)))
    pull = boundary.pull(actions)
    length = float(pull @ boundary.slope)
    score = kernel.scores(boundary.under(actions), np.ascontiguousarray(values, np.float64))
    if length == 0.0:
        return Targets(values.copy(), np.where(score == 0, 0.0, np.nan), np.ones(len(values)))
    point = np.multiply.outer(score, -pull / length)
    point += values
    return Targets(point, np.abs(score) / np.sqrt(length), np.ones(len(values)))


def costs_to_boundary(values: Floats, boundary: Boundary, actions: Actions) -> Floats:
    """The costs of ``to_boundary`` alone, ``(n,)``: no points are written where the closed form holds."""
    length = float(boundary.pull(actions) @ boundary.slope)
    if not actions.unbounded or length == 0.0:
        return to_boundary(values, boundary, actions).cost
    score = kernel.scores(boundary.under(actions), np.ascontiguousarray(values, np.float64))
    cost: Floats = np.abs(score) / np.sqrt(length)
    return cost


def given(values: Floats, points: Floats, actions: Actions, cost: Floats | None = None) -> Targets:
    """Targets that something else has found, such as the counterfactuals of a model that is not linear (section 3.6).

    Args:
        values: ``(n, d)``.
        points: ``(n, d)``; NaN where there is none.
        actions: A record that a bound or a direction keeps from its point is refused.
        cost: ``(n,)`` costs in any unit, NaN where there is none; weighted distances if None. Of a record that goes
            part of the way, the cost falls as the distance does.
    """
    aim = np.where(actions.changeable, points, values)
    delta = aim - values
    allowed = (delta * actions.direction >= 0) & (
        (delta == 0) | ((aim >= actions.lower - kernel.ROUNDING) & (aim <= actions.upper + kernel.ROUNDING))
    )
    distance = np.sqrt(np.einsum("ij,ij,j->i", delta, delta, actions.weight))  # equal rows, equal sums: no BLAS
    known = np.where(allowed.all(axis=1), distance if cost is None else cost, np.nan)
    rate = np.ones(len(values)) if cost is None else _rate(known, distance)
    return Targets(np.where(np.isfinite(known)[:, None], aim, values), known, rate)


def _rate(cost: Floats, distance: Floats) -> Floats:
    """Cost per unit of distance, 1 where there is no way to go or no cost."""
    rate = np.ones(len(cost))
    np.divide(cost, distance, out=rate, where=(distance > 0) & np.isfinite(cost))
    return rate
