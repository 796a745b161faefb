"""Recourse: permitted actions, exact counterfactual points in whole steps, targets and costs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike

from schemas.errors import SpecError
from tasks.numerics import encoding
from tasks.numerics.arrays import Bools, Floats, Longs

# --------------------------------------------------------------------------------------------------------------------
# Permitted changes of an applicant: direction, range, steps, and the weight of each.
#
# Scope: the actions. Their costs: ``targets``.


@dataclass(frozen=True)
class Actions:
    """For each of ``d`` attributes what may be done about it. ``make_actions`` checks and completes it."""

    weight: Floats
    """``(d,)`` recourse weights, the largest among the changeable is 1; 0 where an attribute cannot be changed."""
    changeable: Bools
    """``(d,)`` the set J: an immutable attribute is outside it, and not merely expensive."""
    step: Floats
    """``(d,)`` size of one whole step, in the units of the values; 0 where any amount will do."""
    direction: Floats
    """``(d,)`` 1 only up, -1 only down, 0 either way."""
    lower: Floats
    """``(d,)`` smallest value that may be moved to, or ``-inf``."""
    upper: Floats
    """``(d,)`` largest value that may be moved to, or ``inf``."""

    @property
    def unbounded(self) -> bool:
        """Whether every changeable attribute may go either way and any distance."""
        free = (self.direction == 0) & np.isneginf(self.lower) & np.isposinf(self.upper)
        return bool(free[self.changeable].all())


def make_actions(
    weight: ArrayLike,
    changeable: ArrayLike = True,
    step: ArrayLike = 0.0,
    direction: ArrayLike = 0.0,
    lower: ArrayLike = -np.inf,
    upper: ArrayLike = np.inf,
) -> Actions:
    """Actions with weights divided by the largest of a changeable attribute (section 3.5.1: they are normalised).

    Args:
        weight: ``(d,)`` how hard each attribute is to change; not read where it cannot be changed.
        changeable: ``(d,)`` the set J. This and what follows may be one value for all.
        step: ``(d,)`` size of one step; 0 for any amount.
        direction: ``(d,)`` 1, -1 or 0.
        lower: ``(d,)`` bounds on what is moved to.
        upper: ``(d,)`` likewise.

    Raises:
        SpecError: If the weight of a changeable attribute is not a positive number, a step is negative, or a lower
            bound lies above the upper one.
    """
    base_weights = np.atleast_1d(np.asarray(weight, np.float64))
    free = np.broadcast_to(np.asarray(changeable, np.bool_), base_weights.shape)
    steps, ways, low, high = (
        np.broadcast_to(np.asarray(setting, np.float64), base_weights.shape).copy()
        for setting in (step, direction, lower, upper)
    )
    if not (np.isfinite(base_weights[free]) & (base_weights[free] > 0)).all():
        raise SpecError("a recourse weight is not a positive number; an attribute that cannot change is immutable")
    if not (np.isfinite(steps) & (steps >= 0)).all():
        raise SpecError("a step is negative or no number; give its size, or 0 for any amount")
    if not (low <= high).all():
        raise SpecError("a lower bound lies above the upper bound of the same attribute; exchange them")
    weights = np.where(free, base_weights, 0.0)
    return Actions(weights / weights.max(initial=0.0) if free.any() else weights, free.copy(), steps, ways, low, high)


# --------------------------------------------------------------------------------------------------------------------
# The cheapest way to a linear boundary under bounds and directions, for one record at a time, compiled.
#
# Minimise ``sum_j w_j d_j^2`` subject to ``sum_j |a_j| d_j = |a.x + b|`` and ``0 <= d_j <= room_j``: the optimum is
# ``d_j = min(m |a_j| / w_j, room_j)`` for one multiplier ``m`` (section 3.5.1: inverse classification with bounds). The
# multiplier is exact after at most ``d`` rounds, because an attribute that uses up its room stays so as ``m`` grows.
# Without bounds one round gives the closed form.
#
# Scope: the kernels. Their use: ``targets``.


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
    row_scores = np.empty(values.shape[0])
    for i in range(values.shape[0]):
        row_scores[i] = score(slope, values[i])
    return row_scores


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
    factor, needed_gap = 0.0, abs(gap)
    if needed_gap == 0.0:
        return factor
    while True:
        remaining, free = needed_gap, 0.0
        for j in range(x.shape[0]):
            space = room(slope, x, j, gap > 0.0)
            if space == 0.0:
                continue
            pull = abs(slope.slope[j])
            if factor * pull >= space * slope.weight[j]:
                remaining -= pull * space
            else:
                free += pull * pull / slope.weight[j]
        if free == 0.0:
            return factor if remaining <= ROUNDING * needed_gap else np.inf
        if remaining / free <= factor:
            return factor
        factor = remaining / free


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def cost(slope: Slope, x: Floats) -> float:
    """Recourse cost of one record ``(d,)``; ``inf`` where the boundary is out of reach."""
    gap = score(slope, x)
    factor = multiplier(slope, x, gap)
    if factor == np.inf:
        return np.inf
    squared = 0.0
    for j in range(x.shape[0]):
        space = room(slope, x, j, gap > 0.0)
        if space > 0.0:
            move = min(factor * abs(slope.slope[j]) / slope.weight[j], space)
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
        factor, squared = multiplier(slope, x, gap), 0.0
        if factor == np.inf:
            costs[i] = np.nan
            continue
        for j in range(x.shape[0]):
            space = room(slope, x, j, gap > 0.0)
            if space > 0.0:
                move = min(factor * abs(slope.slope[j]) / slope.weight[j], space)
                squared += slope.weight[j] * move * move
                points[i, j] += move if (slope.slope[j] > 0.0) != (gap > 0.0) else -move
        costs[i] = np.sqrt(squared)
    return costs, points


# --------------------------------------------------------------------------------------------------------------------
# Sets of attributes in lexical order, compiled: the next set for offers and for the search in steps.


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def next_set(picked: Longs, size: int, count: int) -> bool:
    """Turn the first ``size`` of ``picked``, ascending places out of ``count``, into the next set; False at the end."""
    place = size - 1
    while place >= 0 and picked[place] == count - size + place:
        place -= 1
    if place < 0:
        return False
    picked[place] += 1
    for later in range(place + 1, size):
        picked[later] = picked[later - 1] + 1
    return True


# --------------------------------------------------------------------------------------------------------------------
# The exact search behind ``stepped``, one record at a time, compiled.
#
# Sets of attributes are tried in order of their gain per cost. Within a set, each attribute in turn is given a number
# of steps, from the best number outwards. The least cost of the rest is convex in it, so that each side ends at the
# first number that cannot beat the incumbent. Attributes without steps come last and have a closed form.


BRANCHES = 200_000
"""Branches of one case after which the search stops with the best answer it has."""

FUTILE, SOLVED = -1.0, -2.0
DOWN, DONE, UP = -1.0, 0.0, 1.0


class Case(NamedTuple):
    """The problem of one record; attributes by falling ``pull^2 / weight``. A tuple, because numba takes tuples."""

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
        gap = score(slope, values[i])
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
        rooms[j] = room(slope, x, j, falls)
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
    remaining, spent = np.full(stepped + 1, gap), np.zeros(stepped + 1)
    ideal, steps, side = np.zeros(stepped + 1), np.zeros(stepped + 1), np.zeros(stepped + 1)
    place, fresh = 0, True
    while place >= 0:
        if fresh:
            ideal[place] = _look(case, answer, ordered, stepped, place, remaining[place], spent[place], ROUNDING * gap)
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
            remaining[place + 1] = remaining[place] - case.pull[k] * move
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
    case: Case, answer: Answer, ordered: Longs, stepped: int, place: int, remaining: float, spent: float, arrived: float
) -> float:
    """What to do about the attributes from ``place`` on, which have to bring ``remaining``, after ``spent``.

    Returns:
        The best number of steps of the attribute at ``place``, rounded down; ``FUTILE`` if neither this branch nor one
        further out is of use; ``SOLVED`` if nothing is left to decide.
    """
    answer.branches[0] += 1
    if answer.branches[0] >= BRANCHES:
        return FUTILE
    if remaining <= arrived:
        if spent < answer.squared[0]:
            answer.squared[0] = spent
            answer.moves[:] = answer.trying
        return FUTILE
    factor = _multiplier(case, ordered, place, remaining, arrived)
    if factor == np.inf:
        return FUTILE
    bound = spent
    for k in ordered[place:]:
        bound += case.weight[k] * _share(case, k, factor) ** 2
    if bound >= answer.squared[0] * (1.0 - ROUNDING):
        return FUTILE
    if place < stepped:
        return float(np.floor(_share(case, ordered[place], factor) / case.step[ordered[place]]))
    answer.squared[0] = bound
    answer.moves[:] = answer.trying
    for k in ordered[place:]:
        answer.moves[k] = _share(case, k, factor)
    return SOLVED


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _share(case: Case, k: int, multiplier: float) -> float:
    """How far attribute ``k`` would go without steps."""
    return float(min(multiplier * case.pull[k] / case.weight[k], case.room[k]))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _multiplier(case: Case, ordered: Longs, place: int, needed_gap: float, arrived: float) -> float:
    """As ``boundary.multiplier``, for the attributes from ``place`` on and without steps."""
    factor = 0.0
    while True:
        remaining, free = needed_gap, 0.0
        for at in range(place, ordered.shape[0]):
            k = ordered[at]
            if factor * case.pull[k] >= case.room[k] * case.weight[k]:
                remaining -= case.pull[k] * case.room[k]
            else:
                free += case.pull[k] ** 2 / case.weight[k]
        if free == 0.0:
            return factor if remaining <= arrived else np.inf
        if remaining / free <= factor:
            return factor
        factor = remaining / free


# --------------------------------------------------------------------------------------------------------------------
# Targets without a decision boundary: the nearest applicants whose values a record may take.
#
# The distance is over all attributes, so that a candidate also resembles the record in what cannot change. The
# permitted changes, their directions and ranges decide which candidates are eligible.
#
# Scope: the compiled search and its frame. Use of a candidate: ``targets``.


NOBODY = -1

Favours = Callable[[Longs, Floats], Bools]
"""From rows and the points that they are moved to, to the model's decisions."""


class Permitted(NamedTuple):
    """Which changes count, and how much. A tuple, because numba takes tuples."""

    weight: Floats
    """``(d,)`` recourse weights; 1 for what cannot be changed, which makes two applicants alike all the same."""
    changeable: Bools
    direction: Floats
    lower: Floats
    upper: Floats


def nearest_permitted(values: Floats, candidates: Floats, actions: Actions, count: int) -> Longs:
    """The nearest candidates that permitted changes lead to; of several as near, the first.

    Args:
        values: ``(n, d)`` records.
        candidates: ``(c, d)``.
        actions: Weights, directions and bounds.
        count: Candidates to find for each record.

    Returns:
        ``(n, count)`` numbers of candidates, nearest first; -1 where there are no more.
    """
    weight = np.where(actions.changeable, actions.weight, 1.0)
    permitted = Permitted(weight, actions.changeable, actions.direction, actions.lower, actions.upper)
    starts, targets = (np.ascontiguousarray(points, np.float64) for points in (values, candidates))
    if not len(targets):
        return np.full((len(starts), count), NOBODY)
    column = int(np.argmax(weight * targets.var(axis=0)))
    number = np.argsort(targets[:, column], kind="stable")
    neighbours: Longs = _search_permitted(permitted, starts, targets[number], number, column, count)
    return neighbours


def nearest_favoured(
    values: Floats, candidates: Floats, actions: Actions, count: int = 1, favours: Favours | None = None
) -> Longs:
    """The nearest candidate of each record with values that the model favours, ``(n,)``; -1 for none.

    Args:
        values: ``(n, d)`` records.
        candidates: ``(c, d)``.
        actions: What may be done.
        count: Candidates that are tried for each record.
        favours: The model; None where nobody can be asked, and the nearest candidate has to do.
    """
    nearest = nearest_permitted(values, candidates, actions, count if favours else 1)
    chosen, open_ = np.full(len(values), NOBODY), np.arange(len(values))
    for neighbours in nearest.T:
        open_ = open_[neighbours[open_] != NOBODY]
        if not len(open_):
            break
        points = np.where(actions.changeable, candidates[neighbours[open_]], values[open_])
        good = favours(open_, points) if favours else np.ones(len(open_), np.bool_)
        chosen[open_[good]] = neighbours[open_[good]]
        open_ = open_[~good]
    return chosen


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _search_permitted(
    permitted: Permitted, values: Floats, candidates: Floats, number: Longs, column: int, count: int
) -> Longs:
    """The search, outwards from a record's place among candidates in the order of one column.

    It ends where the difference in that column alone is larger than the distance of the last one found.
    """
    neighbours, far = np.full((values.shape[0], count), NOBODY), np.empty(count)
    order = candidates[:, column].copy()
    for i in range(values.shape[0]):
        far[:] = np.inf
        x = values[i, column]
        after = np.searchsorted(order, x)
        before = after - 1
        while before >= 0 or after < order.shape[0]:
            if after == order.shape[0] or (before >= 0 and x - order[before] <= order[after] - x):
                c, before = before, before - 1
            else:
                c, after = after, after + 1
            gap = order[c] - x
            if permitted.weight[column] * gap * gap > far[count - 1]:
                break
            squared = _squared(permitted, values[i], candidates[c], far[count - 1])
            place = count
            while place > 0 and _precedes(squared, number[c], far[place - 1], neighbours[i, place - 1]):
                place -= 1
            if squared < np.inf and place < count:
                for at in range(count - 1, place, -1):
                    far[at], neighbours[i, at] = far[at - 1], neighbours[i, at - 1]
                far[place], neighbours[i, place] = squared, number[c]
    return neighbours


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _precedes(squared: float, number: int, other_squared: float, other: int) -> bool:
    """Whether a candidate is nearer than another; of two as near the one with the lower number comes first."""
    return squared < other_squared or (squared == other_squared and number < other)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _squared(permitted: Permitted, x: Floats, y: Floats, limit: float) -> float:
    """Squared distance of a candidate; ``inf`` where its place may not be taken, or it is above the limit."""
    squared = 0.0
    for j in range(x.shape[0]):
        delta = y[j] - x[j]
        if delta == 0.0:
            continue
        if permitted.changeable[j]:
            outside = y[j] < permitted.lower[j] - ROUNDING or y[j] > permitted.upper[j] + ROUNDING
            if outside or delta * permitted.direction[j] < 0.0:
                return np.inf
        squared += permitted.weight[j] * delta * delta
        if squared > limit:
            return np.inf
    return squared


# --------------------------------------------------------------------------------------------------------------------
# Counterfactual points and recourse costs: the target of each record and its cost (RAGUEL, step 1).
#
# The cost is a weighted Euclidean distance, ``c(x) = sqrt(sum_j w_j (x_j - cp_j)^2)`` over the attributes that may
# change. A record that cannot reach its target by permitted changes is refused: no cost, and itself for a point.
#
# Scope: targets in closed form. Targets in whole steps or with few changes: ``stepped``.


OUT_OF_REACH = "out_of_reach"
"""Why a record has no cost: no permitted change leads to its target."""


@dataclass(frozen=True)
class Boundary:
    """A linear decision boundary ``slope.x + intercept = 0``."""

    slope: Floats
    """``(d,)``."""
    intercept: float

    def under(self, actions: Actions) -> Slope:
        """As the kernels read it."""
        return Slope(
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
        cost, point = costs_and_points(boundary.under(actions), np.ascontiguousarray(values, np.float64))
        return Targets(point, cost, np.ones(len(values)))
    pull = boundary.pull(actions)
    length = float(pull @ boundary.slope)
    score = scores(boundary.under(actions), np.ascontiguousarray(values, np.float64))
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
    score = scores(boundary.under(actions), np.ascontiguousarray(values, np.float64))
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
        (delta == 0) | ((aim >= actions.lower - ROUNDING) & (aim <= actions.upper + ROUNDING))
    )
    distance = np.sqrt(np.einsum("ij,ij,j->i", delta, delta, actions.weight))  # equal rows, equal sums: no BLAS
    costs = np.where(allowed.all(axis=1), distance if cost is None else cost, np.nan)
    rate = np.ones(len(values))  # cost per unit of distance, 1 where there is no way to go or no cost
    if cost is not None:
        np.divide(costs, distance, out=rate, where=(distance > 0) & np.isfinite(costs))
    return Targets(np.where(np.isfinite(costs)[:, None], aim, values), costs, rate)


# --------------------------------------------------------------------------------------------------------------------
# Counterfactual points in whole steps and with few changed attributes: exact, by branch and bound.
#
# Minimise ``sum_j w_j d_j^2`` subject to ``sum_j |a_j| d_j >= |a.x + b|``, where ``d_j`` is a whole number of steps
# within its room, and only a limited number of them differ from 0 (section 3.5.1). The point lies on the boundary or
# beyond it. The cost is separable, so that the same problem without steps bounds every branch. Equal records are solved
# once.
#
# Scope: the frame. The search: ``stepping``.


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
    places = encoding.gather(values[:, boundary.slope != 0])
    first = np.ascontiguousarray(values[places.first], np.float64)
    limit = len(actions.weight) if most is None else most
    moves, proven = solve(slope, actions.step, first, limit)
    case = np.empty(len(values), np.int64)
    case[places.order] = np.repeat(np.arange(len(first)), places.count)
    reached = np.isfinite(moves).all(axis=1)
    cost = np.where(reached, np.sqrt(np.where(reached[:, None], moves, 0.0) ** 2 @ actions.weight), np.nan)
    point = values + np.where(reached[case][:, None], moves[case], 0.0)
    return Stepped(Targets(point, cost[case], np.ones(len(values))), proven[case], len(first))
