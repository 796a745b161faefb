"""Algorithms 1 and 2 of RAGUEL."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

from schemas.errors import SpecError
from tasks.methods.raguel.algorithm import modification, representation
from tasks.methods.raguel.algorithm.modification import Listed, Rules
from tasks.methods.raguel.algorithm.representation import Bounds, Records, Representation
from tasks.numerics.arrays import Bools, Floats, Longs

# --------------------------------------------------------------------------------------------------------------------
# Defines a re-ranked list: the rank of every record, and the modification of those that rose.


_Scalar = TypeVar("_Scalar", bound=np.generic)


@dataclass(frozen=True)
class Reranked:
    """Of ``n`` records the new order. Arrays are aligned by record, but for ``order``."""

    order: Longs
    """``(n,)`` the record at each rank."""
    rank_before: Longs
    """``(n,)`` from 1."""
    rank: Longs
    """``(n,)`` from 1."""
    cost: Floats
    """``(n,)`` recourse cost after modification."""
    values: Floats
    """``(n, d)`` after modification."""
    failed: Longs
    """Ranks from 1 (Algorithm 1) or blocks from 0 (Algorithm 2) at which representation is left unfair."""
    exit_rank: int | None = None
    """From which rank on the list is copied as it was (failure ``exit``); None where it never came to that."""
    block_before: Longs | None = None
    """``(n,)`` from 0; None without blocks."""
    block: Longs | None = None
    """``(n,)`` from 0, after the exchanges; None without blocks."""

    @property
    def below_predecessor(self) -> int:
        """How often a record costs less than the one ranked just above it."""
        return int((np.diff(self.cost[self.order]) < 0).sum())


def modified(records: Records, reranked: Reranked) -> Bools:
    """``(n,)`` whether some attribute of the record was changed."""
    changed: Bools = (reranked.values != records.values).any(axis=1)
    return changed


def distances(records: Records, reranked: Reranked) -> Floats:
    """``(n,)`` weighted distance between each record and its modification, 0 without one: the modification's cost."""
    squared = (reranked.values - records.values) ** 2
    return np.sqrt(squared @ records.rules.weight)


def by_record(by_place: NDArray[_Scalar], record: Longs) -> NDArray[_Scalar]:
    """``(n, ...)`` what was aligned by place, aligned by the ``(n,)`` record at each place."""
    values = np.empty_like(by_place)
    values[record] = by_place
    return values


def ranks(order: Longs) -> Longs:
    """``(n,)`` rank from 1 of each record, from the record at each rank."""
    return by_record(np.arange(1, len(order) + 1), order)


def movable(worst: int, groups: int, direction: str) -> Bools:
    """``(g,)`` groups with records that may be modified: the worst-off one, or all of them (``both``)."""
    return np.asarray((np.arange(groups) == worst) | (direction == "both"))


# --------------------------------------------------------------------------------------------------------------------
# Algorithm 1 as compiled loops: the list grows record by record, with lower-ranked records where fairness requires.
#
# Scope: the kernel. Settings and the resulting list: ``reranking``. Boundaries and permitted changes:
# ``tasks.counterfactuals.algorithm.recourse``.


NOBODY = -1
STRICTLY = 1e-9
"""A cost is below another if it is by this part of it: rounding makes no difference."""
EQUAL = 1e-12
"""By which ratios may differ and still be equal."""


class Choices(NamedTuple):
    """How Algorithm 1 is to decide. A tuple, because numba takes tuples."""

    movable: Bools
    """``(g,)`` groups with records that may be modified."""
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
    """Put each record in turn into a new list.

    Returns:
        ``(n,)`` record at each new place; ``(n,)`` places up to which representation is unfair all the same; and the
        place from which the rest is copied as it was, or -1.
    """
    n, groups = records.cost.shape[0], bounds.shares.shape[0]
    order, failed, remaining = np.empty(n, np.int64), np.zeros(n, np.bool_), np.ones(n, np.bool_)
    counts, sums = np.zeros(groups, np.int64), np.zeros(groups)
    # queues by group: `(n,)` the next record of the same group, and `(g,)` the first of each group
    following, first = np.full(n, NOBODY), np.full(groups, NOBODY)
    for place in range(n - 1, -1, -1):
        following[place] = first[records.group[place]]
        first[records.group[place]] = place
    head = 0
    for place in range(n):
        while not remaining[head]:
            head += 1
        chosen = head
        unfair = representation.violation_with(bounds, counts, place + 1, records.group[head], NOBODY)
        if unfair > 0.0:
            for group in range(groups):  # every queue begins with a record that is still to be ranked
                while first[group] != NOBODY and not remaining[first[group]]:
                    first[group] = following[first[group]]
            cursors = _candidates(bounds, counts, place + 1, unfair, first, choices.movable)
            chosen = _fetch(records, rules, choices, counts, sums, cursors, following, remaining, head)
            if chosen == NOBODY:
                chosen = head
                if choices.exits:
                    failed[place] = True
                    order[place:] = np.flatnonzero(remaining)
                    return order, failed, place
            # of several groups, the record that is fetched may lessen the violation and not end it
            failed[place] = (
                representation.violation_with(bounds, counts, place + 1, records.group[chosen], NOBODY) > 0.0
            )
        order[place] = chosen
        remaining[chosen] = False
        counts[records.group[chosen]] += 1
        sums[records.group[chosen]] += records.cost[chosen]
    return order, failed, -1


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _candidates(bounds: Bounds, counts: Longs, size: int, unfair: float, first: Longs, movable: Bools) -> Longs:
    """Where to look: the first record of each group that makes the next prefix as fair as any can, and fairer."""
    cursors, best = np.full(first.shape[0], NOBODY), unfair
    for group in range(first.shape[0]):
        if not movable[group] or first[group] == NOBODY:
            continue
        then = representation.violation_with(bounds, counts, size, group, NOBODY)
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
    remaining: Bools,
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
        if remaining[y]:
            probed += 1
            cost = modification.find(rules, records, y, 0.0, limit)
            if cost < np.inf:
                ratio = representation.ratio_with(counts, sums, group, cost)
                accepted = ratio >= choices.enough - EQUAL
                if not accepted and choices.improve:  # no lower than with the record unmodified
                    unmodified = representation.ratio_with(counts, sums, group, records.cost[y])
                    accepted = ratio >= unmodified - EQUAL
                if accepted:
                    modification.accept(records, y, cost)
                    return int(y)
    return NOBODY


# --------------------------------------------------------------------------------------------------------------------
# Algorithm 1 of RAGUEL: a ranking in which every prefix represents the groups fairly, at little modification.
#
# The list grows record by record. Where the next record would make it unfair, a lower-ranked one of another group is
# modified until it costs strictly less, and goes first if the resulting recourse ratio permits.
#
# Scope: settings and the list in memory. Loops: ``appending``.


@dataclass(frozen=True)
class Reranking:
    """What the paper leaves open, and how it is decided."""

    rule: Literal["improve", "strict"] = "improve"
    """Accept a modified record if the ratio is at least 1 - delta (``strict``, the paper's; its own example cannot
    satisfy it), or also if it is no lower than with the record unmodified (``improve``)."""
    direction: Literal["worse_off", "both"] = "worse_off"
    """Modify only the group with the higher mean cost, or any (``both``, the paper's; it lowers many lists' ratio)."""
    failure: Literal["skip", "exit"] = "skip"
    """Where nothing helps, leave the rank unfair and go on, or copy the rest as it is (``exit``, the paper's)."""
    delta: float = 0.1
    """Tolerance of the recourse ratio."""
    probes: int = 200
    """Lower-ranked records that are tried for one rank; without a limit the search is quadratic."""


def rerank(records: Records, limits: Representation, settings: Reranking) -> Reranked:
    """Re-rank a list (Algorithm 1).

    Args:
        records: All with a cost.
        limits: The bounds that every prefix of two records or more is to keep.
        settings: Rules of acceptance, direction and failure.
    """
    before, groups = records.ranked(), len(limits.shares)
    listed = records.listed(before)
    worst = representation.worst_off(records.cost, records.group, groups)
    choices = Choices(
        movable(worst, groups, settings.direction),
        1.0 - settings.delta,
        settings.rule == "improve",
        settings.failure == "exit",
        settings.probes,
    )
    new, failed, exit_place = grow(listed, records.rules, limits.bounds, choices)
    order = before[new]
    return Reranked(
        order,
        ranks(before),
        ranks(order),
        by_record(listed.cost, before),
        by_record(listed.values, before),
        np.flatnonzero(failed) + 1,
        None if exit_place < 0 else int(exit_place) + 1,
    )


# --------------------------------------------------------------------------------------------------------------------
# Algorithm 2 as compiled loops: block after block, records are exchanged with the next block and never further.
#
# A record that has crossed a border does not move again, so the other records of a block keep their order, and sorting
# waits until the end.
#
# Scope: kernels on a window of consecutive blocks. Settings and windows: ``blocks``. Boundaries and permitted changes:
# ``tasks.counterfactuals.algorithm.recourse``.


class Swaps(NamedTuple):
    """How records may be exchanged. A tuple, because numba takes tuples."""

    movable: Bools
    """``(g,)`` groups with records that may be modified and brought up."""
    least_ratio: float
    """Ratio that a block is to have after every swap; 0 where it only must not fall."""


class Window(NamedTuple):
    """Records of consecutive blocks; within a block by cost and number. All but the first two are written over."""

    start: Longs
    """``(b + 1,)`` where each block begins."""
    edge: Floats
    """``(b,)`` cost of the last of the records that each block had at first."""
    crossed: Bools
    """``(n,)`` records that have crossed a border, and stay."""
    block: Longs
    """``(n,)`` block that each record is in now, numbered within the window."""
    records: Listed


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def swap(window: Window, rules: Rules, bounds: Bounds, swaps: Swaps) -> Bools:
    """Exchange records of every block but the last with the one after it, until it is fair or nothing helps.

    Returns:
        ``(b,)`` blocks that were left unfair; the last is not looked at.
    """
    blocks, groups = window.start.shape[0] - 1, bounds.shares.shape[0]
    group, cost = window.records.group, window.records.cost
    unfair_blocks = np.zeros(blocks, np.bool_)
    for b in range(blocks - 1):
        # by group the records and costs that the block kept or received
        counts, sums = np.zeros(groups, np.int64), np.zeros(groups)
        for i in range(window.start[max(b - 1, 0)], window.start[b + 1]):
            if window.block[i] == b:
                counts[group[i]] += 1
                sums[group[i]] += cost[i]
        size = counts.sum()
        unfair = representation.violation(bounds, counts, size)
        first, last = np.full(groups, window.start[b + 1]), np.full(groups, window.start[b + 1] - 1)
        while unfair > 0.0:
            over, under = out_of_bounds(bounds, counts, size)
            z = _leaving(window, b, over, last)
            if z == NOBODY:
                unfair_blocks[b] = True
                break
            floors, limits = representation.intervals(
                bounds,
                counts,
                sums,
                unfair,
                under & swaps.movable,
                group[z],
                cost[z],
                swaps.least_ratio,
                window.edge[b],
            )
            y = _coming(window, b, floors, limits, first, rules)
            if y == NOBODY:
                unfair_blocks[b] = True
                break
            window.block[y], window.block[z] = b, b + 1
            window.crossed[y], window.crossed[z] = True, True
            counts[group[y]] += 1
            sums[group[y]] += cost[y]
            counts[group[z]] -= 1
            sums[group[z]] -= cost[z]
            unfair = representation.violation(bounds, counts, size)
    return unfair_blocks


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def out_of_bounds(bounds: Bounds, counts: Longs, size: int) -> tuple[Bools, Bools]:
    """Which groups are over-represented and which under-represented in a set that is not fair.

    Those beyond their bounds; where no group is beyond them on one side, those on that side of their share.
    """
    groups = counts.shape[0]
    over, under = np.zeros(groups, np.bool_), np.zeros(groups, np.bool_)
    for group in range(groups):
        if bounds.bounded[group]:
            low, high = representation.within(bounds, group, size)
            over[group], under[group] = counts[group] > high, counts[group] < low
    if not over.any():
        for group in range(groups):
            over[group] = not under[group] and counts[group] > bounds.shares[group] * size
    if not under.any():
        for group in range(groups):
            under[group] = not over[group] and counts[group] < bounds.shares[group] * size
    return over, under


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _leaving(window: Window, b: int, over: Bools, last: Longs) -> int:
    """The lowest-ranked record of an over-represented group that is still where it was; or -1.

    Args:
        window: All records.
        b: The block.
        over: ``(g,)`` over-represented groups.
        last: ``(g,)`` where to look for each group from; moved on past those that may not leave.
    """
    leaver, group, begin = NOBODY, window.records.group, window.start[b]
    for g in range(over.shape[0]):
        if over[g]:
            z = last[g]
            while z >= begin and (group[z] != g or window.block[z] != b or window.crossed[z]):
                z -= 1
            last[g] = z
            if z >= begin:
                leaver = max(leaver, z)
    return leaver


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _coming(window: Window, b: int, floors: Floats, limits: Floats, first: Longs, rules: Rules) -> int:
    """The highest-ranked record of the next block that can come at a cost within its group's limits; or -1.

    Args:
        window: All records; the one that comes is modified.
        b: The block it comes to.
        floors: ``(g,)`` least cost.
        limits: ``(g,)`` largest cost.
        first: ``(g,)`` where to look for each group from; moved on past those that are gone.
        rules: Of the modification.
    """
    group, cost, end = window.records.group, window.records.cost, window.start[b + 2]
    begin = end
    for g in range(first.shape[0]):
        if floors[g] <= limits[g]:
            while first[g] < end and (group[first[g]] != g or window.block[first[g]] != b + 1):
                first[g] += 1
            begin = min(begin, first[g])
    for y in range(begin, end):
        floor, limit = floors[group[y]], limits[group[y]]
        if floor > limit or window.block[y] != b + 1:
            continue
        if floor <= cost[y] <= limit:
            return y  # a tie at the border: it may come as it is
        new_cost = modification.find(rules, window.records, y, floor, limit)
        if new_cost < np.inf:
            modification.accept(window.records, y, new_cost)
            return y
    return NOBODY


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def sorted_blocks(block: Longs, cost: Floats, number: Longs, blocks: int) -> Longs:
    """Places of the records by block, cost and number.

    Args:
        block: ``(n,)`` from 0.
        cost: ``(n,)``.
        number: ``(n,)`` of the record, for ties.
        blocks: How many there are.
    """
    ends = np.zeros(blocks + 1, np.int64)
    for i in range(block.shape[0]):
        ends[block[i] + 1] += 1
    ends = np.cumsum(ends)
    places, free = np.empty(block.shape[0], np.int64), ends[:-1].copy()
    for i in range(block.shape[0]):
        places[free[block[i]]] = i
        free[block[i]] += 1
    for b in range(blocks):
        members = places[ends[b] : ends[b + 1]]
        members = members[np.argsort(cost[members], kind="mergesort")]
        first = 0
        while first < members.shape[0]:  # records of equal cost are put in order of their number
            last = first + 1
            while last < members.shape[0] and cost[members[last]] == cost[members[first]]:
                last += 1
            if last - first > 1:
                run = members[first:last].copy()
                members[first:last] = run[np.argsort(number[run], kind="mergesort")]
            first = last
        places[ends[b] : ends[b + 1]] = members
    return places


# --------------------------------------------------------------------------------------------------------------------
# Algorithm 2 of RAGUEL: cuts the sorted list into blocks that each represent the groups fairly.
#
# In an unfair block, the lowest-ranked record of an over-represented group goes to the next block. The highest-ranked
# record of an under-represented group there takes its place, modified at a cost that does not lower the block's
# recourse ratio (Equation 3, with both its ends). Nobody crosses more than one border. Scope: settings, and the list in
# memory.


@dataclass(frozen=True)
class BlockRules:
    """What the paper leaves open, and how it is decided."""

    rule: Literal["improve", "strict"] = "improve"
    """A swap never lets a block's ratio fall; under ``strict`` (the paper's) it has to end at 1 - delta or more too."""
    direction: Literal["worse_off", "both"] = "worse_off"
    """Modify only the group with the higher mean cost, or any (``both``, the paper's)."""
    delta: float = 0.1
    """Tolerance of the recourse ratio."""
    probes: int = 200
    """Records that are tried for one place where they may come from any depth; one border needs no limit."""

    def swaps(self, worst: int, groups: int) -> Swaps:
        """The exchange rules for the kernels, for a list with the worst-off group ``worst``."""
        return Swaps(movable(worst, groups, self.direction), 1.0 - self.delta if self.rule == "strict" else 0.0)


def block_size(records: int, blocks: int) -> int:
    """Records of a block if a list is cut into so many, the last of them with what is left.

    Raises:
        SpecError: If there are more blocks than records, or fewer than one.
    """
    if not 1 <= blocks <= records:
        raise SpecError(f"{records} records cannot be cut into {blocks} blocks; ask for 1 to {records} blocks")
    return -(-records // blocks)


def rerank_blocks(records: Records, limits: Representation, size: int | Longs, settings: BlockRules) -> Reranked:
    """Re-rank a list block by block (Algorithm 2).

    Args:
        records: All with a cost.
        limits: The bounds that every block is to keep.
        size: Records of a block, or ``(b,)`` of each.
        settings: Direction and rule of acceptance.

    Raises:
        SpecError: If a block is to have fewer than one record, or all together not as many as there are.
    """
    start = starts(len(records.cost), size)
    before, groups = records.ranked(), len(limits.shares)
    listed = records.listed(before)
    block = np.repeat(np.arange(len(start) - 1), np.diff(start))
    crossed = np.zeros(len(before), np.bool_)
    window = Window(start, listed.cost[start[1:] - 1], crossed, block.copy(), listed)
    swaps = settings.swaps(representation.worst_off(records.cost, records.group, groups), groups)
    unfair = swap(window, records.rules, limits.bounds, swaps)
    order = before[sorted_blocks(window.block, listed.cost, before, len(unfair))]
    return Reranked(
        order,
        ranks(before),
        ranks(order),
        by_record(listed.cost, before),
        by_record(listed.values, before),
        np.flatnonzero(unfair),
        block_before=by_record(block, before),
        block=by_record(window.block, before),
    )


def starts(records: int, size: int | Longs) -> Longs:
    """Where each block of a list begins and the last one ends, ``(b + 1,)``.

    Raises:
        SpecError: If a block is to have fewer than one record, or all together not as many as there are.
    """
    least = int(np.min(size, initial=records + 1))
    if least < 1:
        raise SpecError(f"a block has {least} records; give at least 1")
    if isinstance(size, int):
        return np.append(np.arange(0, records, size), records)
    if size.sum() != records:
        raise SpecError(f"the blocks hold {size.sum()} records in all, the list {records}")
    return np.append(0, np.cumsum(size))
