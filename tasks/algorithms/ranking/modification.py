"""The smallest modification that brings a record's cost under a limit: the recourse that is offered (section 3.5.2).

Attributes are tried in order of their recourse weight, first alone (A, B, C), then in pairs (A&B, A&C, B&C), then in
threes; all but the last of them go as far as allowed, the last moves the fewest steps. An attribute never passes its
target, so that nothing immutable changes and no bound or direction is broken; one that does not help is put back.

Here belong the kernels that modify one record. Which record, and under which limit, is for the algorithms to say.
"""

from typing import NamedTuple

import numba
import numpy as np

from tasks.algorithms.detector import Floats, Ints, Longs
from tasks.algorithms.ranking import boundary
from tasks.algorithms.ranking.boundary import ROUNDING, Slope
from tasks.algorithms.ranking.combinations import next_set

CLOSE = 1e-12
"""Relative to a limit on cost: near enough, where an attribute may go any amount."""


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
    picked: Longs
    """``(d,)`` room for places in ``movable``."""


def listed(cost: Floats, group: Ints, values: Floats, target: Floats, rate: Floats) -> Listed:
    """Records by rank, ``(n,)`` and ``(n, d)``; ``cost`` and ``values`` will be written over."""
    attributes = values.shape[1]
    floats, ints = np.empty((2, attributes)), np.empty((2, attributes), np.int64)
    return Listed(cost, group, values, target, rate, floats[0], ints[0], floats[1], ints[1])


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
def find(rules: Rules, records: Listed, i: int, floor: float, limit: float) -> float:
    """The first modification, in the order of the attributes, that costs at most ``limit`` and at least ``floor``.

    Args:
        rules: Order, steps, costs.
        records: All records; the modified one is put into ``changed``, to be accepted or not.
        i: The record that is to be modified.
        floor: Least cost.
        limit: Largest cost; the last attribute moves no further than it takes to come down to it.

    Returns:
        The cost of the modified record, ``inf`` if there is none.
    """
    if floor > limit:
        return np.inf
    needed = _needed(rules, records, i, limit)
    count = _gains(rules, records, i)
    for size in range(1, min(rules.together, count) + 1):
        for place in range(size):
            records.picked[place] = place
        while True:
            gained = 0.0
            for place in range(size):
                gained += records.gain[records.picked[place]]
            if gained >= needed:
                found = _fewest(rules, records, i, limit, size)
                if floor <= found <= limit:
                    return float(found)
            if not next_set(records.picked, size, count):
                break
    return np.inf


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _needed(rules: Rules, records: Listed, i: int, limit: float) -> float:
    """What a set of attributes has to bring at the least, in the unit of ``_gains``, a little below for rounding.

    Distances to a boundary add up over attributes without regard to bounds, squared distances to a target do anyway.
    Under bounds the way to the boundary is longer than without, so that a set which does not bring this is useless.
    """
    x, target = records.values[i], records.target[i]
    if rules.to_boundary:
        gap = abs(boundary.score(rules.slope, x))
        return float(gap - limit * rules.length - ROUNDING * gap)
    squared = cost_of(rules, x, target, records.rate[i]) ** 2
    return float(squared - limit**2 - ROUNDING * squared)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _gains(rules: Rules, records: Listed, i: int) -> int:
    """List the attributes of a record that can move, with what each brings; how many they are."""
    x, target, count = records.values[i], records.target[i], 0
    for j in rules.order:
        steps = most_steps(rules, x, target, j)
        if steps > 0.0:
            after = moved(rules, x, target, j, steps)
            if rules.to_boundary:
                records.gain[count] = abs(rules.slope.slope[j] * (after - x[j]))
            else:
                nearer = (x[j] - target[j]) ** 2 - (after - target[j]) ** 2
                records.gain[count] = records.rate[i] ** 2 * rules.weight[j] * nearer
            records.movable[count] = j
            count += 1
    return count


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def accept(records: Listed, i: int, cost: float) -> None:
    """Make the modification that was found last that of record ``i``."""
    records.values[i] = records.changed
    records.cost[i] = cost


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _fewest(rules: Rules, records: Listed, i: int, limit: float, size: int) -> float:
    """Move all picked attributes as far as allowed, and the last the fewest steps that bring the cost to the limit."""
    records.changed[:] = records.values[i]
    for place in range(size - 1):
        j = records.movable[records.picked[place]]
        _try(rules, records, i, j, most_steps(rules, records.values[i], records.target[i], j))
    last = records.movable[records.picked[size - 1]]
    dearest = cost_of(rules, records.changed, records.target[i], records.rate[i])
    enough = most_steps(rules, records.values[i], records.target[i], last)
    cheapest = _try(rules, records, i, last, enough)
    if cheapest > limit or dearest <= limit:  # too little, or the last is not needed
        return np.inf
    if rules.step[last] > 0.0:
        return float(_fewest_steps(rules, records, i, last, limit, enough))
    return float(_least_amount(rules, records, i, last, limit, enough, dearest, cheapest))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _try(rules: Rules, records: Listed, i: int, j: int, steps: float) -> float:
    """What record ``i`` as changed so far costs with attribute ``j`` moved by so many steps."""
    records.changed[j] = moved(rules, records.values[i], records.target[i], j, steps)
    return float(cost_of(rules, records.changed, records.target[i], records.rate[i]))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _fewest_steps(rules: Rules, records: Listed, i: int, j: int, limit: float, enough: float) -> float:
    """By bisection, as the cost falls with every step."""
    below = 0.0
    while enough - below > 1.0:
        middle = np.floor(0.5 * (below + enough))
        if _try(rules, records, i, j, middle) <= limit:
            enough = middle
        else:
            below = middle
    return float(_try(rules, records, i, j, enough))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _least_amount(
    rules: Rules, records: Listed, i: int, j: int, limit: float, enough: float, dearest: float, cheapest: float
) -> float:
    """By false position (Illinois), down to a cost that is the limit but for ``CLOSE``.

    Args:
        rules: Order, steps, costs.
        records: All records.
        i: The record.
        j: The attribute that may go any amount.
        limit: Largest cost.
        enough: An amount that brings the cost to or below the limit.
        dearest: Cost if the attribute stays, above the limit.
        cheapest: Cost after ``enough``.
    """
    below, above, under, found = 0.0, dearest - limit, cheapest - limit, cheapest
    while found < limit * (1.0 - CLOSE):
        middle = below + (enough - below) * max(above, 0.0) / (above - under)
        middle += 0.25 * CLOSE * enough  # to come out at or below the limit rather than above it
        if not below < middle < enough:
            middle = 0.5 * (below + enough)
            if middle <= below or middle >= enough:
                break
        cost = _try(rules, records, i, j, middle)
        if cost <= limit:
            enough, under, found = middle, cost - limit, cost
            above *= 0.5
        else:
            below, above = middle, cost - limit
            under *= 0.5
    return float(_try(rules, records, i, j, enough))
