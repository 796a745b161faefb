"""Sources of counterfactual points of other papers: AR, MACE, exact and nearest points."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numba
import numpy as np
from numpy.typing import NDArray

from tasks.counterfactuals.algorithm.recourse import (
    NOBODY,
    OUT_OF_REACH,
    Actions,
    Boundary,
    given,
    in_steps,
    nearest_favoured,
    to_boundary,
)
from tasks.numerics.arrays import Bools, Floats, Longs

# --------------------------------------------------------------------------------------------------------------------
# The kind "counterfactual source": applicants below a linear boundary in, accepted points and their costs out.
#
# Scope: the protocol and its arrays. Systems: one file each. Names: ``registry``.


ARRIVED: Final = 1e-9
"""Relative to the distance from the boundary: what counts as having reached it."""


@dataclass(frozen=True)
class SearchSpace:
    """``n`` applicants with ``d`` attributes, and where they may look for a point. Units: standard deviations."""

    values: Floats
    """``(n, d)``."""
    boundary: Boundary
    """Above 0 is accepted."""
    actions: Actions
    """What may be changed, how far, in which direction and steps."""
    observed: Floats
    """``(m, d)`` rows that percentiles are taken from, and whose values may be taken."""

    @property
    def gap(self) -> Floats:
        """``(n,)`` what each applicant's score is short of the boundary; 0 where it is accepted already."""
        return np.maximum(-score(self.values, self.boundary), 0.0)


@dataclass(frozen=True)
class Points:
    """Of ``n`` applicants the accepted points."""

    point: Floats
    """``(n, d)``; the applicant itself where it is refused, or accepted already."""
    cost: Floats
    """``(n,)`` in the source's own measure; NaN where refused."""
    refusal: NDArray[np.str_]
    """``(n,)`` empty, or the reason."""
    proven: Bools
    """``(n,)`` whether the source proved that no cheaper point exists, by its own measure."""

    @property
    def reached(self) -> Bools:
        """``(n,)`` applicants that are not refused."""
        return np.isfinite(self.cost)


class Source(Protocol):
    """A system that finds counterfactual points."""

    def __call__(self, space: SearchSpace) -> Points:
        """The points of all applicants; the same space, the same points."""
        ...


def points(space: SearchSpace, point: Floats, cost: Floats, proven: Bools | None = None) -> Points:
    """Points; those without a cost are refused as out of reach.

    Args:
        space: The applicants.
        point: ``(n, d)``.
        cost: ``(n,)``; NaN where there is no way.
        proven: ``(n,)``; all if None.
    """
    reached = np.isfinite(cost)
    return Points(
        np.where(reached[:, None], point, space.values),
        np.where(reached, cost, np.nan),
        np.where(reached, "", OUT_OF_REACH),
        np.ones(len(cost), np.bool_) if proven is None else proven,
    )


def score(values: Floats, boundary: Boundary) -> Floats:
    """``(n,)`` scores; equal rows have equal ones, which matrix products do not promise."""
    scores: Floats = np.einsum("ij,j->i", values, boundary.slope) + boundary.intercept
    return scores


# --------------------------------------------------------------------------------------------------------------------
# Grids of observed values: what each attribute of an applicant may become, what that gains and what it costs.
#
# A source that searches a grid chooses at most one value for each attribute. For a linear boundary the gains of the
# attributes add up.


MOST: Final = 40
"""Values of an attribute; of more, as many at equal distances in their order."""
CHUNK: Final = 4096
"""Applicants at a time, for the memory."""


@dataclass(frozen=True)
class Options:
    """Values on offer to ``n`` applicants: ``k`` for each of ``d`` attributes, ascending in what they gain."""

    to: Floats
    """``(n, d, k)`` the value."""
    gain: Floats
    """``(n, d, k)`` by how much it raises the score; 0 where it is not on offer."""

    def picked(self, values: Floats, pick: Longs) -> Floats:
        """``(n, d)`` values of applicants after the options of ``(n, d)`` numbers; -1 for no change."""
        chosen_values = np.take_along_axis(self.to, np.maximum(pick, 0)[..., None], axis=2)[..., 0]
        return np.where(pick >= 0, chosen_values, values)


class Grid:
    """The values that attributes may take in one search space, and their percentiles."""

    def __init__(self, space: SearchSpace) -> None:
        self.space = space
        self.columns = [np.sort(column) for column in space.observed.T]
        actions, value_lists = self.space.actions, []
        for column, low, high in zip(self.columns, actions.lower, actions.upper, strict=True):
            distinct = np.unique(column[(column >= low) & (column <= high)])
            if len(distinct) > MOST:
                distinct = distinct[np.rint(np.linspace(0, len(distinct) - 1, MOST)).astype(np.int64)]
            value_lists.append(distinct)
        width = max((len(values) for values in value_lists), default=0)
        self.values = np.array(
            [np.append(values, np.full(width - len(values), np.nan)) for values in value_lists]
        ).reshape(-1, width)

    def chunks(self) -> Iterator[tuple[slice, Options]]:
        """Yields the options of some applicants after the other."""
        for start in range(0, len(self.space.values), CHUNK):
            part = slice(start, start + CHUNK)
            actions, slope = self.space.actions, self.space.boundary.slope
            up = np.where(slope >= 0, 1, -1)[:, None]
            ordered = np.where(up > 0, self.values, self.values[:, ::-1])  # in the direction in which the score rises
            delta = ordered[None] - self.space.values[part][..., None]
            allowed = actions.changeable[None, :, None] & (delta * actions.direction[None, :, None] >= 0)
            gain = np.where(allowed, delta * slope[None, :, None], 0.0)
            options = Options(np.broadcast_to(ordered, gain.shape), np.nan_to_num(np.maximum(gain, 0.0)))
            yield part, options

    def at_most(self, values: Floats) -> Floats:
        """Shares of the observed rows with at most these values; ``(n, d, ...)`` as the values."""
        return self._ranks(values, "right")

    def at_least(self, values: Floats) -> Floats:
        """Shares of the observed rows with at least these values."""
        return 1.0 - self._ranks(values, "left")

    def _ranks(self, values: Floats, side: str) -> Floats:
        ranks = np.empty(values.shape)
        for j, column in enumerate(self.columns):
            ranks[:, j] = np.searchsorted(column, values[:, j], side=side) / max(len(column), 1)  # type: ignore[call-overload]
        return ranks


# --------------------------------------------------------------------------------------------------------------------
# The cheapest choice of at most one option for each attribute that gains enough: exact, by branch and bound.
#
# A multiple-choice knapsack. A price ``p`` of the missing gain turns the cost of an option into its reduced cost,
# ``cost - p gain``. What a branch has spent in reduced costs, with the least of what is open, bounds it from below
# (Lagrange). Branches therefore end early at a good price, which bisection finds once for each case. Attributes with
# one option far better than their others are decided first. The loops are compiled.


BRANCHES: Final = 2_000_000
"""Branches of one case after which the search stops with the best answer it has."""
HALVINGS: Final = 60
ROUNDING: Final = 1e-9
NOTHING: Final = -1


class Case(NamedTuple):
    """One case, attributes in the order in which they are decided. A tuple, because numba takes tuples."""

    gain: Floats
    """``(d, k)`` by rising reduced cost; the first option is no change."""
    cost: Floats
    reduced: Floats
    number: Longs
    """``(d, k)`` number of the option; -1 for no change."""
    attribute: Longs
    """``(d,)``."""
    open_reduced: Floats
    """``(d + 1,)`` the least reduced cost of this and all later attributes."""
    open_gain: Floats
    """``(d + 1,)`` the most that they gain."""


def cheapest(gain: Floats, cost: Floats, need: Floats) -> tuple[Longs, Floats, Bools]:
    """Solves each case.

    Args:
        gain: ``(n, d, k)``, 0 where an option is not on offer.
        cost: ``(n, d, k)``, at least 0; not read where nothing is gained.
        need: ``(n,)`` what all have to gain.

    Returns:
        ``(n, d)`` number of the option of each attribute, -1 for none; ``(n,)`` costs, NaN where nothing is enough;
        ``(n,)`` whether the search was finished.
    """
    solution = _solve(
        np.ascontiguousarray(gain, np.float64),
        np.where(gain > 0, cost, np.inf),
        np.ascontiguousarray(need, np.float64),
    )
    pick, total, proven = solution
    return pick, total, proven


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _solve(gain: Floats, cost: Floats, need: Floats) -> tuple[Longs, Floats, Bools]:
    n, d, _ = gain.shape
    pick, total, proven = np.full((n, d), NOTHING), np.full(n, np.nan), np.ones(n, np.bool_)
    for i in range(n):
        required_gain = need[i] * (1.0 - ROUNDING)
        if required_gain <= 0.0:
            total[i] = 0.0
            continue
        price = _price(gain[i], cost[i], required_gain)
        if price < np.inf:
            case = _case(gain[i], cost[i], price)
            total[i], proven[i] = _search(case, price, required_gain, pick[i])
    return pick, total, proven


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _gained(gain: Floats, cost: Floats, price: float) -> float:
    """What is gained where every attribute takes the option of least reduced cost."""
    total = 0.0
    for j in range(gain.shape[0]):
        best, most = 0.0, 0.0
        for k in range(gain.shape[1]):
            reduced = cost[j, k] - price * gain[j, k]
            if gain[j, k] > 0.0 and (reduced < best or (reduced == best and gain[j, k] > most)):
                best, most = reduced, gain[j, k]
        total += most
    return total


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _price(gain: Floats, cost: Floats, need: float) -> float:
    """The price of gain at which the options of least reduced cost are just enough; ``inf`` where nothing is."""
    total = 0.0
    for j in range(gain.shape[0]):
        total += gain[j].max()
    if total < need:
        return np.inf
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        if _gained(gain, cost, high) >= need:
            break
        low, high = high, 4.0 * high
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if _gained(gain, cost, middle) >= need:
            high = middle
        else:
            low = middle
    return high


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _case(gain: Floats, cost: Floats, price: float) -> Case:
    d, k = gain.shape[0], gain.shape[1] + 1
    gains, costs, reduced = np.zeros((d, k)), np.zeros((d, k)), np.zeros((d, k))
    number, plain = np.full((d, k), NOTHING), np.zeros(d)
    for j in range(d):
        raw = np.zeros(k)
        for option in range(k - 1):
            raw[option + 1] = cost[j, option] - price * gain[j, option] if gain[j, option] > 0.0 else np.inf
        order = np.argsort(raw, kind="mergesort")
        for place in range(k):
            option = order[place] - 1
            reduced[j, place], number[j, place] = raw[order[place]], option
            if option >= 0 and gain[j, option] > 0.0:
                gains[j, place], costs[j, place] = gain[j, option], cost[j, option]
        plain[j] = reduced[j, 1] - reduced[j, 0] if k > 1 else np.inf
    attribute = np.argsort(-np.where(np.isfinite(plain), plain, 1e300), kind="mergesort")
    open_reduced, open_gain = np.zeros(d + 1), np.zeros(d + 1)
    for place in range(d - 1, -1, -1):
        j = attribute[place]
        open_reduced[place] = open_reduced[place + 1] + reduced[j, 0]
        open_gain[place] = open_gain[place + 1] + gains[j].max()
    return Case(
        gains[attribute], costs[attribute], reduced[attribute], number[attribute], attribute, open_reduced, open_gain
    )


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _search(case: Case, price: float, need: float, pick: Longs) -> tuple[float, bool]:
    """Depth first, options by rising reduced cost; writes the best choice into ``pick``."""
    d, k = case.gain.shape
    at, branches, best = np.zeros(d, np.int64), 0, float(np.inf)
    gained, spent, reduced = np.zeros(d + 1), np.zeros(d + 1), np.zeros(d + 1)
    place = 0
    while place >= 0:
        branches += 1
        option = at[place]
        bound = price * need + reduced[place] + case.open_reduced[place + 1]
        if branches >= BRANCHES and best < np.inf:
            return best, False
        if option >= k or bound + case.reduced[place, option] >= best * (1.0 - ROUNDING):
            place -= 1
            if place >= 0:
                at[place] += 1
            continue
        if gained[place] + case.gain[place, option] + case.open_gain[place + 1] < need:
            at[place] += 1
            continue
        gained[place + 1] = gained[place] + case.gain[place, option]
        spent[place + 1] = spent[place] + case.cost[place, option]
        reduced[place + 1] = reduced[place] + case.reduced[place, option]
        if place + 1 < d:
            place += 1
            at[place] = 0
            continue
        if gained[d] >= need and spent[d] < best:
            best = float(spent[d])
            for position in range(d):
                pick[case.attribute[position]] = case.number[position, at[position]]
        at[place] += 1
    return best, True


# --------------------------------------------------------------------------------------------------------------------
# RAGUEL-CF: the exact point of least weighted distance (Haldar et al. 2022, section 3.5.1), beside other sources.


def exact(space: SearchSpace) -> Points:
    """The cheapest permitted point, in whole steps where attributes have steps; costs are weighted distances."""
    proven: Bools = np.ones(len(space.values), np.bool_)
    if (space.actions.step[space.actions.changeable] > 0).any():
        stepped = in_steps(space.values, space.boundary, space.actions)
        targets, proven = stepped.targets, stepped.proven
    else:
        targets = to_boundary(space.values, space.boundary, space.actions)
    accepted = space.gap == 0.0  # these two go to the boundary from either side
    cost: Floats = np.where(accepted, 0.0, targets.cost)
    return points(space, np.where(accepted[:, None], space.values, targets.point), cost, proven)


# --------------------------------------------------------------------------------------------------------------------
# MACE: the nearest accepted point in a normalised distance (Karimi et al. 2020), as a baseline.
#
# The paper (section 3) asks a satisfiability solver for points within ever smaller distances. For a linear boundary the
# optimum that it approaches is a choice of one value for each attribute, which branch and bound finds and proves.
# Values are those observed. The paper's own search leaves the range of the data.


def mace(space: SearchSpace) -> Points:
    """The optimum of MACE's objective (L1): costs are sums of absolute changes, in standard deviations."""
    grid, point, cost = Grid(space), space.values.copy(), np.empty(len(space.values))
    proven = np.ones(len(space.values), np.bool_)
    for part, options in grid.chunks():
        distance = np.abs(options.to - space.values[part][..., None])
        pick, cost[part], proven[part] = cheapest(options.gain, distance, space.gap[part])
        point[part] = options.picked(space.values[part], pick)
    return points(space, point, cost, proven)


# --------------------------------------------------------------------------------------------------------------------
# The place of the nearest accepted row that permitted changes lead to: a counterfactual without any search.


ASKED: Final = 20
"""Nearest rows that are tried: what an applicant cannot change may leave it below the boundary at another's place."""


def nearest(space: SearchSpace) -> Points:
    """The nearest place at which the applicant would be accepted; costs are weighted distances."""
    candidates = space.observed[score(space.observed, space.boundary) >= 0.0]

    def favours(_: Longs, places: Floats) -> Bools:
        return np.asarray(score(places, space.boundary) >= -ARRIVED)

    chosen = nearest_favoured(space.values, candidates, space.actions, ASKED, favours)
    aims = space.values.copy()
    aims[chosen != NOBODY] = candidates[chosen[chosen != NOBODY]]
    targets, accepted = given(space.values, aims, space.actions), space.gap == 0.0
    cost = np.where(accepted, 0.0, np.where(chosen != NOBODY, targets.cost, np.nan))
    return points(space, np.where(accepted[:, None], space.values, targets.point), cost)


# --------------------------------------------------------------------------------------------------------------------
# AR, actionable recourse: the change whose largest percentile shift is smallest (Ustun et al. 2019), as a baseline.
#
# The paper (section 3.1) solves an integer programme over a grid of values. Its cost of a change is the largest shift
# ``|Q_j(x'_j) - Q_j(x_j)|`` in percentiles of any attribute. For a linear boundary no solver is needed: within a shift
# ``m`` each attribute has one best value, and the gains of attributes add up. So the smallest ``m`` at which they add
# up to enough is found by bisection over the shifts that occur. Of the attributes, those that gain most are taken until
# it is enough, which are the fewest.
#
# ``total`` is the paper's other cost, the sum of log percentile shifts (section 3.2, for audits).


def actionable(space: SearchSpace) -> Points:
    """The points of smallest largest percentile shift; costs are these shifts, in [0, 1]."""
    grid, point, cost = Grid(space), space.values.copy(), np.empty(len(space.values))
    for part, options in grid.chunks():
        shift, need = _shifts(grid, options, part), space.gap[part] * (1.0 - ARRIVED)
        # `(n,)` the smallest shift within which the gains are enough; `inf` where none is.
        gain = options.gain
        levels = np.sort(shift.reshape(len(shift), -1), axis=1)
        levels = np.concatenate([np.zeros((len(levels), 1)), levels], axis=1)
        low, high = np.full(len(need), -1), np.full(len(need), levels.shape[1] - 1)
        enough = gain.max(axis=2, initial=0.0).sum(axis=1) >= need
        while (high - low > 1).any():
            middle = (low + high + 1) // 2
            within: Floats = np.where(
                shift <= np.take_along_axis(levels, np.maximum(middle, 0)[:, None], axis=1)[:, 0][:, None, None],
                gain,
                0.0,
            ).max(axis=2, initial=0.0)
            is_enough = within.sum(axis=1) >= need
            low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
        level: Floats = np.where(enough, np.take_along_axis(levels, high[:, None], axis=1)[:, 0], np.inf)
        fewest_within = np.where(shift <= level[:, None, None], options.gain, 0.0)
        best, option = fewest_within.max(axis=2, initial=0.0), fewest_within.argmax(axis=2)
        order = np.argsort(-best, axis=1, kind="stable")
        ranked = np.take_along_axis(best, order, axis=1)
        before = np.cumsum(ranked, axis=1) - ranked
        is_chosen = np.zeros(best.shape, np.bool_)
        np.put_along_axis(is_chosen, order, (before < need[:, None]) & (ranked > 0), axis=1)
        pick = np.where(is_chosen & np.isfinite(level)[:, None], option, -1)
        point[part] = options.picked(space.values[part], pick)
        chosen_shift = np.take_along_axis(shift, np.maximum(pick, 0)[..., None], axis=2)[..., 0]
        cost[part] = np.where(
            np.isfinite(level), np.where(pick >= 0, chosen_shift, 0.0).max(axis=1, initial=0.0), np.nan
        )
    return points(space, point, cost)


def actionable_total(space: SearchSpace) -> Points:
    """The points of smallest sum of ``log((1 - Q(x)) / (1 - Q(x')))``; ``1 - Q`` is the share of rows ahead.

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


# --------------------------------------------------------------------------------------------------------------------
# The counterfactual sources by name, as specs and reproductions write them.


SOURCES: Final[Mapping[str, Source]] = {
    "exact": exact,
    "ar": actionable,
    "ar_total": actionable_total,
    "mace": mace,
    "nearest": nearest,
}
