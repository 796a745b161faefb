"""Algorithm 1 as compiled loops: the list grows record by record, with lower-ranked records where fairness requires.

Scope: the kernel. Settings and the resulting list: ``reranking``. Boundaries and permitted changes:
``tasks.counterfactuals.algorithm.recourse``.
"""

from typing import NamedTuple

import numba
import numpy as np

from tasks.methods.raguel.algorithm.ranking import counting
from tasks.methods.raguel.algorithm.ranking.counting import Bounds
from tasks.methods.raguel.algorithm.recourse import modification
from tasks.methods.raguel.algorithm.recourse.moves import Listed, Rules
from tasks.numerics.arrays import Bools, Floats, Ints, Longs

NOBODY = -1
STRICTLY = 1e-9
"""A cost is below another if it is by this part of it: rounding makes no difference."""
EQUAL = 1e-12
"""By which ratios may differ and still be equal."""


class Choices(NamedTuple):
    """How Algorithm 1 is to decide. A tuple, because numba takes tuples."""

    movable: Bools
    """``(g,)`` groups whose records may be modified."""
    enough: float
    """Ratio with which a modified record is accepted in any case: 1 - delta."""
    improve: bool
    """Whether it is also accepted where the ratio is no lower than with the record as it was."""
    exits: bool
    """Whether the first failure ends the re-ranking."""
    probes: int
    """Records that are looked at for one rank."""


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def grow(records: Listed, rules: Rules, bounds: Bounds, choices: Choices) -> tuple[Longs, Bools, int]:
    """Put the records into a new list, one by one.

    Returns:
        ``(n,)`` record at each new place; ``(n,)`` places up to which representation is unfair all the same; and the
        place from which the rest is copied as it was, or -1.
    """
    n, groups = records.cost.shape[0], bounds.shares.shape[0]
    order, failed, left = np.empty(n, np.int64), np.zeros(n, np.bool_), np.ones(n, np.bool_)
    counts, sums = np.zeros(groups, np.int64), np.zeros(groups)
    following, first = _queues(records.group, groups)
    head = 0
    for place in range(n):
        while not left[head]:
            head += 1
        chosen = head
        unfair = counting.violation_with(bounds, counts, place + 1, records.group[head], NOBODY)
        if unfair > 0.0:
            _drop_taken(first, following, left)
            cursors = _candidates(bounds, counts, place + 1, unfair, first, choices.movable)
            chosen = _fetch(records, rules, choices, counts, sums, cursors, following, left, head)
            if chosen == NOBODY:
                chosen = head
                if choices.exits:
                    failed[place] = True
                    order[place:] = np.flatnonzero(left)
                    return order, failed, place
            # of several groups, the record that is fetched may lessen the violation and not end it
            failed[place] = counting.violation_with(bounds, counts, place + 1, records.group[chosen], NOBODY) > 0.0
        order[place] = chosen
        left[chosen] = False
        counts[records.group[chosen]] += 1
        sums[records.group[chosen]] += records.cost[chosen]
    return order, failed, -1


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _drop_taken(first: Longs, following: Longs, left: Bools) -> None:
    """Let every queue begin with a record that is still to be ranked."""
    for group in range(first.shape[0]):
        while first[group] != NOBODY and not left[first[group]]:
            first[group] = following[first[group]]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _queues(group: Ints, groups: int) -> tuple[Longs, Longs]:
    """The next record of the same group, ``(n,)``, and the first of each group, ``(g,)``."""
    following, first = np.full(group.shape[0], NOBODY), np.full(groups, NOBODY)
    for place in range(group.shape[0] - 1, -1, -1):
        following[place] = first[group[place]]
        first[group[place]] = place
    return following, first


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _candidates(bounds: Bounds, counts: Longs, size: int, unfair: float, first: Longs, movable: Bools) -> Longs:
    """Where to look: the first record of each group that makes the next prefix as fair as any can, and fairer."""
    cursors, best = np.full(first.shape[0], NOBODY), unfair
    for group in range(first.shape[0]):
        if not movable[group] or first[group] == NOBODY:
            continue
        then = counting.violation_with(bounds, counts, size, group, NOBODY)
        if then < best:
            cursors[:] = NOBODY
            best = then
        if then == best and best < unfair:
            cursors[group] = first[group]
    return cursors


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _fetch(
    records: Listed,
    rules: Rules,
    choices: Choices,
    counts: Longs,
    sums: Floats,
    cursors: Longs,
    following: Longs,
    left: Bools,
    head: int,
) -> int:
    """The next record that can be brought strictly below the cost of ``head``, modified; or -1."""
    limit, probed = records.cost[head] * (1.0 - STRICTLY), 0
    while probed < choices.probes and records.cost[head] > 0.0:
        group = NOBODY
        for g in range(cursors.shape[0]):
            if cursors[g] != NOBODY and (group == NOBODY or cursors[g] < cursors[group]):
                group = g
        if group == NOBODY:
            break
        y = cursors[group]
        cursors[group] = following[y]
        if left[y]:
            probed += 1
            cost = modification.find(rules, records, y, 0.0, limit)
            if cost < np.inf and _accepted(choices, counts, sums, group, records.cost[y], cost):
                modification.accept(records, y, cost)
                return int(y)
    return NOBODY


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _accepted(choices: Choices, counts: Longs, sums: Floats, group: int, before: float, after: float) -> bool:
    """Whether the ratio of the list with the modified record is high enough, or no lower than with it unmodified."""
    then = counting.ratio_with(counts, sums, group, after)
    if then >= choices.enough - EQUAL:
        return True
    return choices.improve and then >= counting.ratio_with(counts, sums, group, before) - EQUAL
