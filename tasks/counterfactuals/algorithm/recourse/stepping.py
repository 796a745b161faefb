"""The exact search behind ``stepped``, one record at a time, compiled.

Sets of attributes are tried in order of their gain per cost. Within a set, each attribute in turn is given a number of
steps, from the best number outwards. The least cost of the rest is convex in it, so that each side ends at the first
number that cannot beat the incumbent. Attributes without steps come last and have a closed form.
"""

from typing import NamedTuple

import numba
import numpy as np

from tasks.counterfactuals.algorithm.recourse import boundary
from tasks.counterfactuals.algorithm.recourse.boundary import ROUNDING, Slope
from tasks.counterfactuals.algorithm.recourse.combinations import next_set
from tasks.numerics.arrays import Bools, Floats, Longs

BRANCHES = 200_000
"""Branches of one case after which the search stops with the best answer it has."""

FUTILE, SOLVED = -1.0, -2.0
DOWN, DONE, UP = -1.0, 0.0, 1.0


class Case(NamedTuple):
    """What one record asks; attributes by falling ``pull^2 / weight``. A tuple, because numba takes tuples."""

    column: Longs
    """``(k,)`` attributes that can help at all."""
    pull: Floats
    """``(k,)`` by how much the score comes nearer to the boundary per unit."""
    weight: Floats
    step: Floats
    room: Floats
    """``(k,)`` how far each may go: whole steps, where it has a step."""


class Answer(NamedTuple):
    """The best answer so far, and the one that is being tried."""

    squared: Floats
    """``(1,)`` its squared cost."""
    branches: Longs
    """``(1,)`` how many have been looked at."""
    moves: Floats
    """``(k,)`` how far each attribute goes."""
    trying: Floats
    """``(k,)``."""


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def solve(slope: Slope, step: Floats, values: Floats, most: int) -> tuple[Floats, Bools]:
    """The cheapest way to the boundary or beyond for each of ``m`` records ``(m, d)``, at most ``most`` attributes.

    Returns:
        ``(m, d)`` signed moves, NaN where the boundary is out of reach; ``(m,)`` whether the search was finished.
    """
    moves, proven = np.full(values.shape, np.nan), np.ones(values.shape[0], np.bool_)
    for i in range(values.shape[0]):
        gap = boundary.score(slope, values[i])
        case = _case(slope, step, values[i], gap > 0.0)
        answer = _search(case, abs(gap), most)
        proven[i] = answer.branches[0] < BRANCHES
        if answer.squared[0] < np.inf:
            moves[i] = 0.0
            for k in range(case.column.shape[0]):
                falls = (slope.slope[case.column[k]] > 0.0) == (gap > 0.0)
                moves[i, case.column[k]] = -answer.moves[k] if falls else answer.moves[k]
    return moves, proven


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _case(slope: Slope, step: Floats, x: Floats, falls: bool) -> Case:
    rooms, worth = np.zeros(x.shape[0]), np.zeros(x.shape[0])
    for j in range(x.shape[0]):
        rooms[j] = boundary.room(slope, x, j, falls)
        if step[j] > 0.0:
            rooms[j] = np.floor(rooms[j] / step[j] + ROUNDING) * step[j]
        if rooms[j] > 0.0:
            worth[j] = slope.slope[j] ** 2 / slope.weight[j]
    order = np.argsort(-worth, kind="mergesort")
    column = order[: np.count_nonzero(worth)]
    return Case(column, np.abs(slope.slope[column]), slope.weight[column], step[column], rooms[column])


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _search(case: Case, gap: float, most: int) -> Answer:
    """Try every set of as many attributes as may change: fewer are among them."""
    count = case.column.shape[0]
    answer = Answer(np.full(1, np.inf), np.zeros(1, np.int64), np.zeros(count), np.zeros(count))
    size = min(most, count)
    picked, ordered = np.arange(size), np.empty(size, np.int64)
    while True:
        stepped = 0
        for place in range(size):  # those with steps first
            if case.step[picked[place]] > 0.0:
                ordered[stepped] = picked[place]
                stepped += 1
        place = stepped
        for k in picked:
            if case.step[k] == 0.0:
                ordered[place] = k
                place += 1
        answer.trying[:] = 0.0
        _descend(case, answer, ordered, stepped, gap)
        if not next_set(picked, size, count) or answer.branches[0] >= BRANCHES:
            return answer


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _descend(case: Case, answer: Answer, ordered: Longs, stepped: int, gap: float) -> None:
    """Give one attribute after the other a number of steps, and make the answer better where that is possible.

    A loop with a stack of its own: compiled recursion cannot be kept on disk.

    Args:
        case: What is asked.
        answer: The best so far.
        ordered: Attributes that may change.
        stepped: How many of them have steps; they come first.
        gap: What they have to bring.
    """
    left, spent = np.full(stepped + 1, gap), np.zeros(stepped + 1)
    ideal, steps, side = np.zeros(stepped + 1), np.zeros(stepped + 1), np.zeros(stepped + 1)
    place, fresh = 0, True
    while place >= 0:
        if fresh:
            ideal[place] = _look(case, answer, ordered, stepped, place, left[place], spent[place], ROUNDING * gap)
            fresh = False
            if ideal[place] < 0.0:
                place -= 1
                if place >= 0:
                    _go_on(ideal, steps, side, place, ideal[place + 1] == FUTILE)
                continue
            steps[place], side[place] = ideal[place], DOWN
        k = ordered[place]
        move = steps[place] * case.step[k]
        if side[place] != DONE and 0.0 <= move <= case.room[k] * (1.0 + ROUNDING):
            answer.trying[k] = move
            left[place + 1] = left[place] - case.pull[k] * move
            spent[place + 1] = spent[place] + case.weight[k] * move * move
            place, fresh = place + 1, True
        elif side[place] != DONE:
            _go_on(ideal, steps, side, place, True)
        else:
            answer.trying[k] = 0.0
            place -= 1
            if place >= 0:
                _go_on(ideal, steps, side, place, False)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _go_on(ideal: Floats, steps: Floats, side: Floats, place: int, turn: bool) -> None:
    """The next number of steps of the attribute at ``place``: further out, or on the other side."""
    if not turn:
        steps[place] += side[place]
    elif side[place] == DOWN:
        steps[place], side[place] = ideal[place] + 1.0, UP
    else:
        side[place] = DONE


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _look(
    case: Case, answer: Answer, ordered: Longs, stepped: int, place: int, left: float, spent: float, arrived: float
) -> float:
    """What to do about the attributes from ``place`` on, which have to bring ``left``, after ``spent``.

    Returns:
        The best number of steps of the attribute at ``place``, rounded down; ``FUTILE`` if neither this branch nor one
        further out is of use; ``SOLVED`` if nothing is left to decide.
    """
    answer.branches[0] += 1
    if answer.branches[0] >= BRANCHES:
        return FUTILE
    if left <= arrived:
        if spent < answer.squared[0]:
            answer.squared[0] = spent
            answer.moves[:] = answer.trying
        return FUTILE
    found = _multiplier(case, ordered, place, left, arrived)
    if found == np.inf:
        return FUTILE
    bound = spent
    for k in ordered[place:]:
        bound += case.weight[k] * _share(case, k, found) ** 2
    if bound >= answer.squared[0] * (1.0 - ROUNDING):
        return FUTILE
    if place < stepped:
        return float(np.floor(_share(case, ordered[place], found) / case.step[ordered[place]]))
    answer.squared[0] = bound
    answer.moves[:] = answer.trying
    for k in ordered[place:]:
        answer.moves[k] = _share(case, k, found)
    return SOLVED


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _share(case: Case, k: int, multiplier: float) -> float:
    """How far attribute ``k`` would go without steps."""
    return float(min(multiplier * case.pull[k] / case.weight[k], case.room[k]))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _multiplier(case: Case, ordered: Longs, place: int, needed: float, arrived: float) -> float:
    """As ``boundary.multiplier``, for the attributes from ``place`` on and without steps."""
    found = 0.0
    while True:
        left, free = needed, 0.0
        for at in range(place, ordered.shape[0]):
            k = ordered[at]
            if found * case.pull[k] >= case.room[k] * case.weight[k]:
                left -= case.pull[k] * case.room[k]
            else:
                free += case.pull[k] ** 2 / case.weight[k]
        if free == 0.0:
            return found if left <= arrived else np.inf
        if left / free <= found:
            return found
        found = left / free
