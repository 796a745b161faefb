"""What FGCE says of one group that is no mean over its rows: k0, d0 and the least cost of covering a share of it.

``k0`` is the smallest number of candidates that covers every coverable row, ``d0`` the smallest cost at which that is
possible with any number of them (the paper's definition), ``d0_at_k0`` the smallest cost at which ``k0`` of them do it
(what the authors' code computes). ``least_cost`` is the smallest largest cost at which k candidates cover a share c of
the coverable rows, ``cauc(c)`` its area over k, divided by the smallest least cost of any group (FGCE, section IV).

Small groups are solved to the optimum. Of large ones the greedy selection gives bounds, which say that they are bounds.

Here belong the values. Solving is in ``covering`` and its neighbours, intervals are in ``aggregates``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from schemas.methods import FgceSettings
from tasks.algorithms import costs, covering, least_cost, selection, set_cover
from tasks.algorithms.covering import Optimum, Part
from tasks.algorithms.curves import Limits
from tasks.algorithms.detector import Floats, Longs
from tasks.algorithms.recourse import Explained, Searched
from tasks.algorithms.solver import Solver


class Value(NamedTuple):
    """A number, NaN where there is none, and why it is not exact or not there."""

    value: float
    reason: str = ""


@dataclass(frozen=True)
class Solved:
    """The optima of one group or subgroup."""

    n: int
    """Coverable rows: those that some candidate can serve."""
    k0: Value
    d0: Value
    d0_at_k0: Value
    least_cost: Mapping[tuple[int, float], Value]
    """By k and share c."""


@dataclass(frozen=True)
class Scale:
    """Over which k the area of least costs is taken, and by which cost it is divided: the same for all groups."""

    ks: Mapping[float, tuple[int, ...]]
    """By share c: the k for which every group has a least cost."""
    unit: Mapping[float, float]
    """By share c: the smallest least cost of any group."""


NOBODY = "no row has a feasible counterfactual"
TOO_LARGE = "a bound by the greedy selection: the group is too large to be solved (exact_pairs)"


def solve(searched: Searched, weight: Longs, settings: FgceSettings) -> Solved | None:
    """The optima of a group, or None where it is too large for them.

    Args:
        searched: Its feasible pairs.
        weight: ``(m,)`` factual rows at each node: the group's own, or those of a resample.
        settings: ``exact_pairs`` says what is too large.
    """
    active = searched.reach.active
    if costs.pairs(active) > settings.exact_pairs:
        return None
    parts = [_part(searched, at, weight) for at in range(len(active))]
    parts = [part for part in parts if len(part.weight)]
    n = sum(part.rows for part in parts)
    ks = tuple(range(1, settings.k + 1))
    if not n:
        none = Value(float("nan"), NOBODY)
        return Solved(0, none, none, none, {(k, c): none for k in ks for c in settings.shares})
    solver = Solver(settings.solver, settings.solver_seconds)
    return Solved(
        n,
        _value(set_cover.least_count(parts, solver)),
        Value(covering.d0(parts)),
        _value(least_cost.d0_at_k0(parts, solver)),
        {at: _value(found) for at, found in least_cost.cost_by_k(parts, ks, settings.shares, solver).items()},
    )


def _part(searched: Searched, at: int, weight: Longs) -> Part:
    """One component with the factuals that weigh anything."""
    component = searched.reach.active[at]
    here = weight[component.factuals]
    return Part(costs.feasible(searched.costs, component)[here > 0], here[here > 0])


def _value(found: Optimum) -> Value:
    return Value(found.value, found.reason)


def bounds(found: Explained, limits: Limits, shares: Sequence[float]) -> Solved:
    """What the greedy selection says of the optima of a large group: never less than they are, and d0 exactly.

    Args:
        found: The group, selected for at the levels of ``limits``.
        limits: A least cost is bounded by the first level at which the selection covers enough.
        shares: The shares c.
    """
    n = int(found.feasible.sum())
    if not n:
        none = Value(float("nan"), NOBODY)
        return Solved(0, none, none, none, {(k + 1, c): none for k in range(found.paid.shape[1]) for c in shares})
    everyone = selection.cover(found.offers)
    covered = found.selected.covered(found.offers.weight)
    return Solved(
        n,
        Value(len(everyone), TOO_LARGE),
        Value(float(np.nanmax(found.cheapest))),
        Value(float(np.nanmax(found.pays(everyone))), TOO_LARGE),
        {
            (k, c): _bound(found, covered[:, k - 1], limits.levels, k, covering.rows_needed(c, n))
            for k in range(1, covered.shape[1] + 1)
            for c in shares
        },
    )


def _bound(found: Explained, covered: Longs, levels: Floats, k: int, need: int) -> Value:
    """First level at which ``covered`` ``(L,)`` rows are enough, or what the selection without limit makes them pay."""
    enough = np.flatnonzero(covered >= need)
    if not len(enough):
        return Value(float("nan"), f"the greedy selection of {k} covers {covered[-1]} of {need} rows; {TOO_LARGE}")
    if enough[0] < len(levels):
        return Value(float(levels[enough[0]]), TOO_LARGE)
    return Value(float(np.nanmax(found.pays(found.picks[:k]))), TOO_LARGE)


def scale(solved: Sequence[Solved]) -> Scale:
    """The window and the unit of cAUC over all groups with coverable rows."""
    ks: dict[float, tuple[int, ...]] = {}
    unit: dict[float, float] = {}
    for c in dict.fromkeys(c for s in solved for _, c in s.least_cost):
        common = [k for k, share in solved[0].least_cost if share == c]
        common = [k for k in common if all(np.isfinite(s.least_cost[k, c].value) for s in solved)]
        ks[c] = tuple(common)
        unit[c] = min((s.least_cost[k, c].value for s in solved for k in common), default=float("nan"))
    return Scale(ks, unit)


def cauc(solved: Solved, c: float, scale: Scale) -> Value:
    """Area of the least cost of covering a share c, over the k at which every group has one (FGCE, appendix)."""
    ks = scale.ks.get(c, ())
    least = [solved.least_cost[k, c] for k in ks]
    if not ks or not all(np.isfinite(v.value) for v in least):
        return Value(float("nan"), f"no k at which every group can have {c:g} of its coverable factuals covered")
    if not scale.unit[c] > 0:
        return Value(float("nan"), "the smallest least cost is 0, by which nothing can be divided")
    reason = next((v.reason for v in least if v.reason), "")
    costs = np.array([v.value for v in least])
    area = float(np.trapezoid(costs, ks) / (ks[-1] - ks[0])) if len(ks) > 1 else float(costs[0])
    return Value(area / scale.unit[c], reason)


def cheapest_k(solved: Solved, c: float) -> Value:
    """Saturation of least cost: the smallest k from which on more candidates make covering a share c no cheaper."""
    least = {k: v for (k, share), v in solved.least_cost.items() if share == c and np.isfinite(v.value)}
    if not least:
        return Value(float("nan"), f"no k covers {c:g} of the coverable factuals")
    k = min(least, key=lambda k: (least[k].value, k))
    return Value(k, least[k].reason)
