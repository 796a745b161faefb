"""The smallest modification that brings a record's cost under a limit."""

from typing import NamedTuple

import numba
import numpy as np

from tasks.counterfactuals.algorithm import recourse
from tasks.counterfactuals.algorithm.recourse import ROUNDING, Slope, next_set
from tasks.numerics.arrays import Floats, Ints, Longs

# --------------------------------------------------------------------------------------------------------------------
# Moves of one record towards its target: whole steps, their gain, and the remaining cost.
#
# Scope: the records as kernels read them, and moves of one attribute. Choice of attributes: ``modification``.
# Boundaries and permitted changes: ``tasks.counterfactuals.algorithm.recourse``.


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
        return float(recourse.cost(rules.slope, x))
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
def least_steps(rules: Rules, records: Listed, i: int, j: int, required: float) -> float:
    """Steps of attribute ``j`` that bring so much, in the unit of ``gain``: fewer are useless. At least one."""
    if rules.to_boundary:
        length = required / abs(rules.slope.slope[j])
    else:
        far = abs(records.target[i, j] - records.values[i, j])
        rest = far * far - required / (records.rate[i] ** 2 * rules.weight[j])
        length = far - np.sqrt(max(rest, 0.0))
    return float(max(1.0, np.ceil(length / rules.step[j] - ROUNDING)))


# --------------------------------------------------------------------------------------------------------------------
# The smallest modification that brings a record's cost under a limit: the offered recourse (section 3.5.2).
#
# Attributes are tried in order of their recourse weight, first alone (A, B, C), then in pairs (A&B, A&C, B&C), then in
# threes; all but the last of them go as far as allowed, the last moves the fewest steps. An attribute never passes its
# target, so that immutability, bounds and directions hold; one that does not help is put back.
#
# Passing all records, a tuple of many arrays, takes longer than most work on one of them: kernels that run for every
# record are inlined.
#
# Scope: kernels that modify one record. The callers choose the record and the limit. Boundaries and permitted changes:
# ``tasks.counterfactuals.algorithm.recourse``.


CLOSE = 1e-12
"""Relative to a limit on cost: near enough, where an attribute may go any amount."""


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
    required, allowed, slack = _needed(rules, records, i, floor, limit)
    count = _gains(rules, records, i)
    for size in range(_fewest_attributes(records, count, required - slack), min(rules.together, count) + 1):
        for place in range(size):
            records.picked[place] = place
        while True:
            before = 0.0
            for place in range(size - 1):
                before += records.gain[records.picked[place]]
            last = records.picked[size - 1]
            useful = before + records.gain[last] >= required - slack
            if useful and rules.additive:
                if rules.to_boundary:
                    unit, most = records.unit[last], records.gain[last]
                    useful = not _overshoots(unit, most, before, required, allowed, slack)
                else:
                    useful = not _passes(rules, records, i, last, before, required, allowed, slack)
            if useful:
                cost = _fewest(rules, records, i, limit, size, required - slack - before)
                if floor <= cost <= limit:
                    return float(cost)
            if not next_set(records.picked, size, count):
                break
    return np.inf


@numba.njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def _needed(rules: Rules, records: Listed, i: int, floor: float, limit: float) -> tuple[float, float, float]:
    """What a set of attributes has to bring and what it may, in the unit of ``gain``, and how far rounding may be off.

    Distances to a boundary add up over attributes without regard to bounds, squared distances to a target do anyway.
    Under bounds the way to the boundary is longer than without, so that a set which does not bring this is useless.
    """
    x, target = records.values[i], records.target[i]
    if rules.to_boundary:
        gap = abs(recourse.score(rules.slope, x))
        return gap - limit * rules.length, gap - floor * rules.length, ROUNDING * gap
    squared = cost_of(rules, x, target, records.rate[i]) ** 2
    return squared - limit**2, squared - floor**2, ROUNDING * squared


@numba.njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def _gains(rules: Rules, records: Listed, i: int) -> int:
    """List the attributes of a record that can move, with what each brings; how many they are."""
    x, target, count = records.values[i], records.target[i], 0
    for j in rules.order:
        step, far = rules.step[j], abs(target[j] - x[j])
        length = far if step == 0.0 else min(np.floor(far / step + ROUNDING) * step, far)
        if length > 0.0:
            if rules.to_boundary:
                records.gain[count] = abs(rules.slope.slope[j]) * length
                records.unit[count] = abs(rules.slope.slope[j]) * step
            else:
                records.gain[count] = gain(rules, records, i, j, most_steps(rules, x, target, j))
            records.movable[count] = j
            count += 1
    return count


@numba.njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def _fewest_attributes(records: Listed, count: int, required: float) -> int:
    """How many of the attributes that bring most it takes at the least; ``count + 1`` if all together do not."""
    best = records.changed
    for place in range(count):
        at = place
        while at > 0 and best[at - 1] < records.gain[place]:
            best[at] = best[at - 1]
            at -= 1
        best[at] = records.gain[place]
    total = 0.0
    for place in range(count):
        total += best[place]
        if total >= required:
            return place + 1
    return count + 1


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _overshoots(unit: float, gain: float, before: float, required: float, allowed: float, slack: float) -> bool:
    """Whether attributes bring the cost to a boundary below its floor: without the last, or by its fewest steps.

    Thousands of sets fail here for one that is tried. Handing over all records would take most of that time.

    Args:
        unit: What a step of the last attribute brings; 0 where it may go any amount.
        gain: What it brings if it goes as far as allowed.
        before: What the others bring.
        required: What all have to bring.
        allowed: What they may bring.
        slack: By how much rounding may be off.
    """
    if before > required + slack:
        return True
    if unit == 0.0:
        return False
    steps = max(1.0, np.ceil((required - slack - before) / unit - ROUNDING))
    return bool(before + min(steps * unit, gain) > allowed + slack)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _passes(
    rules: Rules, records: Listed, i: int, place: int, before: float, required: float, allowed: float, slack: float
) -> bool:
    """The same of squared distances to a target, for the last attribute by its place in ``movable``."""
    if before > required + slack:
        return True
    last = records.movable[place]
    if rules.step[last] == 0.0:
        return False
    steps = least_steps(rules, records, i, last, required - slack - before)
    return bool(before + gain(rules, records, i, last, steps) > allowed + slack)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def accept(records: Listed, i: int, cost: float) -> None:
    """Make the modification that was found last that of record ``i``."""
    records.values[i] = records.changed
    records.cost[i] = cost


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _fewest(rules: Rules, records: Listed, i: int, limit: float, size: int, required: float) -> float:
    """Move all picked attributes as far as allowed, and the last the fewest steps that bring the cost to the limit.

    Args:
        rules: Order, steps, costs.
        records: All records.
        i: The record.
        limit: Largest cost.
        size: Attributes that are picked.
        required: What the last one has to bring at the least.
    """
    records.changed[:] = records.values[i]
    for place in range(size - 1):
        j = records.movable[records.picked[place]]
        records.changed[j] = moved(
            rules, records.values[i], records.target[i], j, most_steps(rules, records.values[i], records.target[i], j)
        )
    last = records.movable[records.picked[size - 1]]
    enough = most_steps(rules, records.values[i], records.target[i], last)
    if rules.step[last] > 0.0:
        return float(
            _fewest_steps(rules, records, i, last, limit, least_steps(rules, records, i, last, required), enough)
        )
    dearest = cost_of(rules, records.changed, records.target[i], records.rate[i])
    cheapest = _try(rules, records, i, last, enough)
    if cheapest > limit or dearest <= limit:  # too little, or the last is not needed
        return np.inf
    return float(_least_amount(rules, records, i, last, limit, enough, dearest, cheapest))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _try(rules: Rules, records: Listed, i: int, j: int, steps: float) -> float:
    """Cost of record ``i``, as changed so far, with attribute ``j`` changed by so many steps."""
    records.changed[j] = moved(rules, records.values[i], records.target[i], j, steps)
    return float(cost_of(rules, records.changed, records.target[i], records.rate[i]))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _fewest_steps(rules: Rules, records: Listed, i: int, j: int, limit: float, least: float, most: float) -> float:
    """The least number that could do, or more, by bisection, as the cost falls with every step."""
    if least > most:
        return np.inf
    cost = _try(rules, records, i, j, least)
    if cost <= limit:
        return float(cost)
    if _try(rules, records, i, j, most) > limit:
        return np.inf
    below, enough = least, most
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
    below, above, under, best_cost = 0.0, dearest - limit, cheapest - limit, cheapest
    while best_cost < limit * (1.0 - CLOSE):
        middle = below + (enough - below) * max(above, 0.0) / (above - under)
        middle += 0.25 * CLOSE * enough  # to come out at or below the limit rather than above it
        if not below < middle < enough:
            middle = 0.5 * (below + enough)
            if middle <= below or middle >= enough:
                break
        cost = _try(rules, records, i, j, middle)
        if cost <= limit:
            enough, under, best_cost = middle, cost - limit, cost
            above *= 0.5
        else:
            below, above = middle, cost - limit
            under *= 0.5
    return float(_try(rules, records, i, j, enough))
