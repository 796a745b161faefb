"""Moves of one record towards its target: whole steps, their gain, and the remaining cost.

Scope: the records as kernels read them, and moves of one attribute. Choice of attributes: ``modification``. Boundaries
and permitted changes: ``tasks.counterfactuals.algorithm.recourse``.
"""

from typing import NamedTuple

import numba
import numpy as np

from tasks.counterfactuals.algorithm.recourse import boundary
from tasks.counterfactuals.algorithm.recourse.boundary import ROUNDING, Slope
from tasks.numerics.arrays import Floats, Ints, Longs


class Rules(NamedTuple):
    """How records are modified and what they cost then. A tuple, because numba takes tuples."""

    order: Longs
    """``(k,)`` attributes that may be changed, by ascending recourse weight, then as in the data."""
    step: Floats
    """``(d,)`` size of a step; 0 for any amount."""
    weight: Floats
    """``(d,)`` recourse weights, 0 where an attribute cannot be changed."""
    slope: Slope
    to_boundary: bool
    """Whether a modified record costs its cheapest way to ``slope``, and not what is left to its own target."""
    additive: bool
    """Whether what attributes bring adds up exactly, as it does but under bounds on the way to a boundary."""
    length: float
    """By which a score is divided to give the cost where nothing is bounded: sqrt(S)."""
    together: int
    """Most attributes that one offer changes."""


class Listed(NamedTuple):
    """Records that are being re-ranked, by their rank before. What is modified is written over."""

    cost: Floats
    group: Ints
    values: Floats
    target: Floats
    rate: Floats
    changed: Floats
    """``(d,)`` the modified record that was found last."""
    movable: Longs
    """``(d,)`` room for attributes of one record that can move at all."""
    gain: Floats
    """``(d,)`` room for what each of them brings if it goes as far as allowed."""
    unit: Floats
    """``(d,)`` room for what one step of each of them brings on the way to a boundary; 0 for any amount."""
    picked: Longs
    """``(d,)`` room for places in ``movable``."""


def listed(cost: Floats, group: Ints, values: Floats, target: Floats, rate: Floats) -> Listed:
    """Records by rank, ``(n,)`` and ``(n, d)``; ``cost`` and ``values`` will be written over."""
    attributes = values.shape[1]
    floats, ints = np.empty((3, attributes)), np.empty((2, attributes), np.int64)
    return Listed(cost, group, values, target, rate, floats[0], ints[0], floats[1], floats[2], ints[1])


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def cost_of(rules: Rules, x: Floats, target: Floats, rate: float) -> float:
    """What a record ``(d,)`` costs, modified or not."""
    if rules.to_boundary:
        return float(boundary.cost(rules.slope, x))
    squared = 0.0
    for j in range(x.shape[0]):
        squared += rules.weight[j] * (x[j] - target[j]) ** 2
    return float(rate * np.sqrt(squared))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def most_steps(rules: Rules, x: Floats, target: Floats, j: int) -> float:
    """How far attribute ``j`` may move towards its target: whole steps, or an amount where there are none."""
    far = abs(target[j] - x[j])
    if rules.step[j] == 0.0:
        return float(far)
    return float(np.floor(far / rules.step[j] + ROUNDING))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def moved(rules: Rules, x: Floats, target: Floats, j: int, steps: float) -> float:
    """Attribute ``j`` after so many steps towards its target, never past it."""
    length = steps if rules.step[j] == 0.0 else steps * rules.step[j]
    if target[j] > x[j]:
        return float(min(x[j] + length, target[j]))
    return float(max(x[j] - length, target[j]))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def gain(rules: Rules, records: Listed, i: int, j: int, steps: float) -> float:
    """By what so many steps of attribute ``j`` lower the distance to the boundary, or the squared one to the target."""
    before, target = records.values[i, j], records.target[i, j]
    after = moved(rules, records.values[i], records.target[i], j, steps)
    if rules.to_boundary:
        return float(abs(rules.slope.slope[j] * (after - before)))
    nearer = (before - target) ** 2 - (after - target) ** 2
    return float(records.rate[i] ** 2 * rules.weight[j] * nearer)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def least_steps(rules: Rules, records: Listed, i: int, j: int, wanted: float) -> float:
    """Steps of attribute ``j`` that bring so much, in the unit of ``gain``: fewer are useless. At least one."""
    if rules.to_boundary:
        length = wanted / abs(rules.slope.slope[j])
    else:
        far = abs(records.target[i, j] - records.values[i, j])
        rest = far * far - wanted / (records.rate[i] ** 2 * rules.weight[j])
        length = far - np.sqrt(max(rest, 0.0))
    return float(max(1.0, np.ceil(length / rules.step[j] - ROUNDING)))
