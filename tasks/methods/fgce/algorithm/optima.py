"""Coverage curves, least cost, and optima of coverage and cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tasks.methods.fgce.algorithm import costs, covering, recourse
from tasks.methods.fgce.algorithm.covering import (
    Fewest,
    Frontier,
    Optimum,
    Part,
    Pick,
    between,
    cheapest_candidates,
    coverage,
    fewest,
    frontier,
    least_count,
    refusal,
    rows_needed,
    settled,
)
from tasks.methods.fgce.algorithm.recourse import Explained, Searched
from tasks.methods.fgce.algorithm.solver import Solver
from tasks.methods.fgce.settings import FgceSettings
from tasks.numerics.arrays import Bools, Floats, Ints, Longs

# --------------------------------------------------------------------------------------------------------------------
# The least cost at which k counterfactuals cover a share of the factuals: FGCE's coverage-constrained problem.
#
# The objective is the largest cost that any covered factual pays (section IV; the paper's recursion over components
# prints a sum). It is one of the costs in the table and found by bisection: at each cost, do k candidates cover enough?
# For all rows that is a set cover per part, for fewer a maximum cover over all parts. The paper's single programme,
# ``research.fgce.cells``, agrees.
#
# Scope: the bisection. A search that ends without an optimum says so, and never 0.


NONE_COVERABLE = "no row has a feasible counterfactual"


@dataclass(frozen=True)
class Judged:
    """Whether k candidates cover enough rows at one cost; neither where a solver was stopped."""

    possible: bool
    impossible: bool
    picks: tuple[Pick, ...]
    note: str


@dataclass
class Search:
    """One group's table of costs, and all that has been found out about it at the costs tried so far."""

    parts: tuple[Part, ...]
    """Without rows that nothing covers, and without candidates that another one replaces at every cost."""
    columns: tuple[Longs, ...]
    """Where each part's candidates were before."""
    costs: Floats
    """Distinct finite costs, ascending."""
    solver: Solver
    fronts: dict[int, list[Frontier]] = field(default_factory=dict)
    """By place in ``costs``."""
    counts: dict[int, list[Fewest]] = field(default_factory=dict)
    """By place in ``costs``; none where some row has no candidate."""

    @property
    def rows(self) -> int:
        """Coverable rows."""
        return sum(part.rows for part in self.parts)

    def least(self, k: int, need: int, impossible: int = -1, possible: int | None = None) -> Optimum:
        """Least cost at which at most ``k`` candidates cover ``need`` rows.

        Args:
            k: Candidates.
            need: Rows, at least 1.
            impossible: A place in ``costs`` known to be too cheap; -1 if none is.
            possible: A place known to be enough, if any is.
        """
        if not self.rows:
            return refusal(NONE_COVERABLE)
        top = len(self.costs) - 1
        low, high, proven = impossible, top + 1, impossible
        best, note = Judged(False, False, (), ""), ""
        step = top if possible is None else possible
        while high - low > 1:
            verdict = self.judge(step, k, need)
            if verdict.possible:
                high, best = step, verdict
            else:
                low = step
                proven = max(proven, step) if verdict.impossible else proven
                note = note or verdict.note
            step = (low + high) // 2
        if proven == top:
            return refusal(f"k = {k} counterfactuals cannot cover {need} of {self.rows} rows")
        bound = float(self.costs[proven + 1])
        if high > top:
            reason = f"undecided: {note}; whether k = {k} counterfactuals cover {need} of {self.rows} rows is not known"
            return Optimum(float("nan"), bound, False, (), reason)
        return between(float(self.costs[high]), bound, self.original(best.picks), note)

    def judge(self, step: int, k: int, need: int) -> Judged:
        """Whether at most ``k`` candidates cover ``need`` rows at the cost ``costs[step]``."""
        if need >= self.rows:
            return self._judge_all(step, k) if need == self.rows else Judged(False, True, (), "")
        if step not in self.fronts:
            self.fronts[step] = [frontier(part, self.costs[step]) for part in self.parts]
        count_bounds = coverage(self.fronts[step], k, self.solver, lambda low, high: low >= need or high < need)
        return Judged(count_bounds.low >= need, count_bounds.high < need, count_bounds.picks, count_bounds.note)

    def _judge_all(self, step: int, k: int) -> Judged:
        """The same for all rows, by the fewest candidates that cover each part."""
        if step not in self.counts:
            covers = [part.within(self.costs[step]) for part in self.parts]
            served = all(cover.any(axis=1).all() for cover in covers)
            self.counts[step] = [fewest(cover) for cover in covers] if served else []
        counts = self.counts[step]
        if not counts:
            return Judged(False, True, (), "")
        for part, part_count in enumerate(counts):
            spare = k - sum(other.low for other in counts)
            if spare < 0 or sum(len(other.picks) for other in counts) <= k:
                break
            counts[part] = settled(part_count, self.solver, part_count.low + spare)
        picks = tuple((part, column) for part, part_count in enumerate(counts) for column in part_count.picks)
        note = next((part_count.note for part_count in counts if part_count.note), "")
        return Judged(len(picks) <= k, sum(part_count.low for part_count in counts) > k, picks, note)

    def original(self, picks: Sequence[Pick]) -> list[Pick]:
        """Picks by the columns of the parts as they were given."""
        return [(part, int(self.columns[part][column])) for part, column in picks]


def search(parts: Sequence[Part], solver: Solver) -> Search:
    """Make a group's table of costs ready for searching."""
    columns = tuple(cheapest_candidates(part.cost) for part in parts)
    served = [np.isfinite(part.cost).any(axis=1) for part in parts]
    reduced_parts = tuple(
        Part(part.cost[rows][:, part_columns], part.weight[rows])
        for part, rows, part_columns in zip(parts, served, columns, strict=True)
    )
    costs = np.unique(np.concatenate([np.zeros(0), *(part.cost.ravel() for part in reduced_parts)]))
    return Search(reduced_parts, columns, costs[np.isfinite(costs)], solver)


def cost_by_k(
    parts: Sequence[Part], ks: Sequence[int], shares: Sequence[float], solver: Solver
) -> Mapping[tuple[int, float], Optimum]:
    """``least_cost`` for every k and every share of the coverable rows, by (k, share).

    The cost falls with k and rises with the share, so that every search starts between its neighbours; what has been
    found out at a cost is used again.
    """
    table = search(parts, solver)
    optima: dict[tuple[int, float], Optimum] = {}
    for place, k in enumerate(sorted(ks)):
        impossible = -1
        for share in sorted(shares):
            fewer = optima.get((sorted(ks)[place - 1], share)) if place else None
            possible = None if fewer is None or np.isnan(fewer.value) else _place(table.costs, fewer.value)
            optimum = table.least(k, rows_needed(share, table.rows), impossible, possible)
            optima[k, share] = optimum
            # a refusal has no bound: at this k, no cost is enough for a larger share either
            impossible = len(table.costs) - 1 if np.isnan(optimum.bound) else _place(table.costs, optimum.bound) - 1
    return optima


def _place(costs: Floats, value: float) -> int:
    return int(np.searchsorted(costs, value))


def d0_at_k0(parts: Sequence[Part], solver: Solver) -> Optimum:
    """The largest of the parts' least costs at which as few candidates as can cover all of a part do so.

    This is what the authors' code calls d0; the paper's d0, without a limit on the number, is ``problem.d0``.

    Returns:
        In encoded units. Where a part's least count is itself only a bound, so is the cost, and the reason says so.
    """
    picks: list[Pick] = []
    optima, notes = [], []
    for number, part in enumerate(parts):
        if not part.rows:
            continue
        count = least_count([part], solver)
        optimum = _by_one(part) if len(count.picks) == 1 else search([part], solver).least(len(count.picks), part.rows)
        optima.append(optimum)
        picks += [(number, column) for _, column in optimum.picks]
        notes += [note for note in (count.reason, optimum.reason) if note]
    if not optima:
        return refusal(NONE_COVERABLE)
    value, bound = (
        max(part_optimum.value for part_optimum in optima),
        max(part_optimum.bound for part_optimum in optima),
    )
    return Optimum(value, bound, not notes, tuple(picks), "; ".join(notes[:1]))


def _by_one(part: Part) -> Optimum:
    """The least cost at which one candidate covers all of a part, where one can."""
    dearest = part.cost[np.isfinite(part.cost).any(axis=1)].max(axis=0)
    column = int(dearest.argmin())
    value = float(dearest[column])
    return Optimum(value, value, True, ((0, column),))


# --------------------------------------------------------------------------------------------------------------------
# Coverage against cost and against k: areas under the curves and saturation points (FGCE, section IV).
#
# ``kAUC(k)`` is the area of coverage over the limits d, ``dAUC(d)`` the area of coverage over k, each divided by the
# area of full coverage on the same grid. Both are means over factual rows: the functions here return the part of each
# row, which the bootstrap resamples with fixed candidates.
#
# A saturation point is the first point of the grid at which a curve reaches its maximum. It is no mean, so its
# replicates are made here.


LOWEST = 0.1
"""First limit on cost of the paper's grid."""

FROM = 0.7
"""Share of the dearest group's d0 at k0 at which the paper's grid for kAUC begins."""


SLACK = 1e-9
"""Shares are sums of floats and may be off by this much."""

STEPS = 20
"""Equal steps up to the dearest cost in which a least cost is bounded."""


@dataclass(frozen=True)
class Limits:
    """The limits on cost, the same for all groups."""

    of_d: Floats
    """For dAUC and the coverage tables."""
    of_k: Floats
    """For kAUC."""
    of_c: Floats
    """For the least cost of covering a share."""

    @cached_property
    def levels(self) -> Floats:
        """All of them, ascending: what the selection is made for."""
        return np.unique(np.concatenate([self.of_d, self.of_k, self.of_c]))

    @cached_property
    def at_d(self) -> Longs:
        """Place of each limit of ``of_d`` among the levels."""
        return np.searchsorted(self.levels, self.of_d)

    @cached_property
    def at_k(self) -> Longs:
        """Place of each limit of ``of_k`` among the levels."""
        return np.searchsorted(self.levels, self.of_k)


def limits(dearest: float, required: float | None = None) -> Limits:
    """The paper's grids: from 0.1, and for kAUC from 0.7 of what is needed, up to and short of the dearest cost.

    Args:
        dearest: D, the square root of the number of features for the L2 distance.
        required: Largest cost over the groups of covering everyone with as few candidates as can be. If left out, kAUC
            has the same limits as all else: its grid then does not depend on which groups are compared.

    Returns:
        Limits in steps of a tenth of the way from 0.1 to D, rounded to 0.1; in tenths of D where D is that small (sums
        of weights may be). ``of_k`` is empty where 0.7 of what is needed is not below D.
    """
    paper = round((dearest - LOWEST) / 10, 1)
    step = max(paper, 0.1) if dearest > 2 * LOWEST else dearest / 10
    of_d = np.round(np.arange(min(LOWEST, step), dearest, step), 10 if step >= LOWEST else 300)
    of_k = of_d if required is None else np.arange(FROM * required, max(dearest, FROM * required), step)
    return Limits(of_d, of_k, np.arange(1, STEPS + 1) * dearest / STEPS)


def k_area(turn: Ints, grid: Floats, k: int) -> Floats:
    """Each row's part of ``kAUC(k)``: ``(n,)`` from 0 to 1; ``turn`` ``(g, n)`` at the limits ``grid`` ``(g,)``."""
    return _area((turn >= 0) & (turn < k), grid)


def d_area(turn: Ints, most: int) -> Floats:
    """Each row's part of ``dAUC(d)`` over k = 1 ... ``most``: ``(n,)``; ``turn`` ``(n,)`` at the limit d."""
    k = np.arange(1, most + 1)
    return _area((turn >= 0) & (turn < k[:, None]), k.astype(float))


def _area(covered: Bools, grid: Floats) -> Floats:
    """Trapezoids over the first axis, divided by the width; the value itself where the grid is a single point."""
    if len(grid) == 1:
        alone: Floats = covered[0].astype(float)
        return alone
    area: Floats = np.trapezoid(covered.astype(float), grid, axis=0) / (grid[-1] - grid[0])
    return area


def saturation(coverage: Floats, grid: Floats) -> Floats:
    """First point of ``grid`` ``(g,)`` at which coverage ``(..., g)`` is highest; NaN where nothing is ever covered."""
    place = (coverage >= coverage.max(axis=-1, keepdims=True) - SLACK).argmax(axis=-1)
    return np.where(coverage.max(axis=-1) > 0, grid[place], np.nan)


@dataclass(frozen=True)
class Resampled:
    """Coverage on bootstrap samples of the rows with the selection fixed; the last is the sample itself."""

    coverage: Floats
    """``(b + 1, L, k)`` shares of all rows."""
    feasible: Floats
    """``(b + 1,)`` shares of rows with a feasible candidate."""


def resampled(turn: Ints, feasible: Bools, most: int, draws: int, rng: np.random.Generator) -> Resampled:
    """Coverage by level and by k = 1 ... ``most`` on ``draws`` resamples of the rows.

    ``turn`` is ``(L, n)``, ``feasible`` ``(n,)``; all is NaN where there is no row.
    """
    if not len(feasible):
        return Resampled(np.full((draws + 1, len(turn), most), np.nan), np.full(draws + 1, np.nan))
    patterns, counts = np.unique(np.vstack([turn, feasible]), axis=1, return_counts=True)
    n = int(counts.sum())
    weights = np.vstack([rng.multinomial(n, counts / n, size=draws), counts]) / n
    k = np.arange(1, most + 1)
    covered = (patterns[:-1, :, None] >= 0) & (patterns[:-1, :, None] < k)
    shares = np.einsum("bp,lpk->blk", weights, covered.astype(float), optimize=True)
    return Resampled(shares, weights @ patterns[-1])


def least_cost(resamples: Resampled, levels: Floats, free: Floats, share: float) -> Floats:
    """First limit at which the selection covers a share of the coverable rows: a bound on the least cost.

    Args:
        resamples: Coverage at the limits and, last, at none.
        levels: ``(L - 1,)`` the limits.
        free: ``(k,)`` what the selection without limit makes its rows pay at most.
        share: The share c.

    Returns:
        ``(b + 1, k)``; NaN where no limit is enough, or no row is coverable.
    """
    required_coverage = share * resamples.feasible[:, None, None]
    enough = (resamples.coverage >= required_coverage - SLACK) & (required_coverage > 0)
    paid = np.vstack([np.repeat(levels[:, None], len(free), axis=1), free])
    first = enough.argmax(axis=1)
    costs = np.where(enough.any(axis=1), np.take_along_axis(paid, first, axis=0), np.nan)
    return np.fmin.accumulate(costs, axis=1)  # more candidates never make it dearer


# --------------------------------------------------------------------------------------------------------------------
# The fewest candidates that cover all coverable rows, their cost, and the least cost of covering a share with k.
#
# ``k0`` is the smallest number of candidates that covers every coverable row, ``d0`` the smallest cost at which that is
# possible with any number of them (the paper's definition), ``d0_at_k0`` the smallest cost at which ``k0`` of them do
# it (what the authors' code computes). The least cost of k and c is the smallest largest cost at which k candidates
# cover a share c of the coverable rows; ``cauc(c)`` is its area over k, divided by the smallest of any group (FGCE,
# section IV).
#
# For a group of many pairs, the greedy selection gives bounds, which are marked as such. Least costs are bounds too
# unless exact ones are requested, since each takes integer programmes of its own.
#
# Scope: values. Solvers: ``covering``. Replicates: ``aggregates``.


NOBODY = "no row has a feasible counterfactual"
TOO_LARGE = "a bound by the greedy selection: the group is too large to be solved (exact_pairs)"
UNKNOWN_K0 = (
    "not known where k0 is only bounded: the group is too large to be solved (exact_pairs), or a solver stopped"
)
GREEDY = "a bound by the greedy selection at the limits of the grid (exact: true solves it)"


class Value(NamedTuple):
    """A number, NaN where there is none, and why it is not exact or not there."""

    value: float
    reason: str = ""


Tables = list[tuple[Longs, Floats]]
"""By component: its factual nodes ``(f,)`` and their costs ``(f, c)``, ``inf`` where there is no path."""

Least = Mapping[tuple[int, float], Value]
"""The least cost by k and share c."""


@dataclass(frozen=True)
class Full:
    """What covering all coverable rows of a group or subgroup takes."""

    n: int
    """Coverable rows: those that some candidate can serve."""
    k0: Value
    d0: Value
    d0_at_k0: Value


@dataclass(frozen=True)
class Scale:
    """Over which k the area of least costs is taken, and by which cost it is divided: the same for all groups."""

    ks: Mapping[float, tuple[int, ...]]
    """By share c: the k for which every group has a least cost."""
    unit: Mapping[float, float]
    """By share c: the smallest least cost of any group."""
    reason: Mapping[float, str]
    """By share c: why window and unit may be off, where a least cost of some group is a bound; else empty."""


def tables_of(searched: Searched, settings: FgceSettings) -> Tables | None:
    """The costs of a group's components, or None where its pairs are more than ``exact_pairs``."""
    active = searched.reach.active
    if costs.pairs(active) > settings.exact_pairs:
        return None
    return [(component.factuals, costs.feasible(searched.costs, component)) for component in active]


def parts_of(tables: Tables, weight: Longs) -> list[Part]:
    """The components with ``weight`` ``(m,)`` factual rows at each node: the group's own, or those of a resample."""
    part_weights = [weight[factuals] for factuals, _ in tables]
    return [Part(cost[w > 0], w[w > 0]) for (_, cost), w in zip(tables, part_weights, strict=True) if w.any()]


def solver_of(settings: FgceSettings) -> Solver:
    """The solver within the limit of the settings."""
    return Solver(settings.solver_seconds)


def full(parts: Sequence[Part], solver: Solver) -> Full:
    """k0, d0 and d0 at k0, solved."""
    n = sum(part.rows for part in parts)
    if not n:
        return nobody()
    k0 = _value(covering.least_count(parts, solver))
    at_k0 = Value(float("nan"), UNKNOWN_K0) if k0.reason else _value(d0_at_k0(parts, solver))
    return Full(n, k0, Value(covering.d0(parts)), at_k0)


def nobody() -> Full:
    """No row is coverable."""
    none = Value(float("nan"), NOBODY)
    return Full(0, none, none, none)


def bounds(explained: Explained) -> Full:
    """k0 as the greedy selection has it, never less than it is; d0 is exact, and d0 at k0 is not known.

    More candidates than k0 may well cover everyone at less cost than k0 of them, so the selection bounds no cost at k0.
    """
    n = int(explained.feasible.sum())
    if not n:
        return nobody()
    everyone = recourse.cover(explained.offers)
    return Full(
        n, Value(len(everyone), TOO_LARGE), Value(float(np.nanmax(explained.cheapest))), Value(float("nan"), UNKNOWN_K0)
    )


def least(parts: Sequence[Part], settings: FgceSettings) -> Least:
    """The least cost of every k and share, solved."""
    ks = tuple(range(1, settings.k + 1))
    solved = cost_by_k(parts, ks, settings.shares, solver_of(settings))
    return {
        (k, c): _value(optimum)
        if np.isfinite(optimum.value)
        else Value(optimum.value, f"{k} candidates cannot cover {c:g}")
        for (k, c), optimum in solved.items()
    }


def _value(optimum: Optimum) -> Value:
    return Value(optimum.value, optimum.reason)


def most_paid(explained: Explained) -> Floats:
    """``(k,)`` what the first 1, 2, ... k of the candidates selected without limit make their rows pay at most."""
    nearest = [recourse.nearest(explained.paid[:, :k])[0] for k in range(1, explained.paid.shape[1] + 1)]
    return np.array([np.nanmax(paid, initial=-np.inf) for paid in nearest])


def bounded(explained: Explained, at: Resampled, limits: Limits, shares: Sequence[float]) -> dict[float, Floats]:
    """Bounds on least costs by share: ``(b + 1, k)`` on resamples and, last, on the sample (see ``curves``)."""
    free = most_paid(explained)
    return {c: least_cost(at, limits.levels, free, c) for c in shares}


def as_least(bounded: Mapping[float, Floats]) -> Least:
    """The bounds on the sample itself as values with their reason."""
    out = {}
    for c, table in bounded.items():
        for k, value in enumerate(table[-1].tolist(), start=1):
            reason = GREEDY if np.isfinite(value) else f"the greedy selection of {k} covers less than {c:g}; {GREEDY}"
            out[k, c] = Value(value, reason)
    return out


def scale(least: Sequence[Least]) -> Scale:
    """The window and the unit of cAUC over all groups with coverable rows."""
    ks: dict[float, tuple[int, ...]] = {}
    unit: dict[float, float] = {}
    reason: dict[float, str] = {}
    for c in dict.fromkeys(c for table in least for _, c in table):
        tried = [k for k, share in least[0] if share == c]
        ks[c] = tuple(k for k in tried if all(np.isfinite(table[k, c].value) for table in least))
        unit[c] = min((table[k, c].value for table in least for k in ks[c]), default=float("nan"))
        bounds = [table[k, c].reason for table in least for k in ks[c]]
        reason[c] = next((bound for bound in bounds if bound), "")
    return Scale(ks, unit, reason)


def cauc(costs: Floats, c: float, scale: Scale) -> Floats:
    """Area of least costs ``(..., k)``, k = 1, 2, ..., over the k at which every group has one (FGCE, appendix)."""
    ks = np.array(scale.ks.get(c, ()), dtype=np.int64)
    if not len(ks) or not scale.unit[c] > 0:
        return np.full(costs.shape[:-1], np.nan)
    window = costs[..., ks - 1]
    area = np.trapezoid(window, ks, axis=-1) / (ks[-1] - ks[0]) if len(ks) > 1 else window[..., 0]
    return area / scale.unit[c]


def cheapest_k(costs: Floats) -> Floats:
    """Saturation of least costs ``(..., k)``: the smallest k from which on more candidates make it no cheaper."""
    finite = np.where(np.isnan(costs), np.inf, costs)
    k = finite.argmin(axis=-1) + 1.0
    return np.where(np.isfinite(finite.min(axis=-1)), k, np.nan)
