"""The fewest candidates that cover all coverable rows, their cost, and the least cost of covering a share with k.

``k0`` is the smallest number of candidates that covers every coverable row, ``d0`` the smallest cost at which that is
possible with any number of them (the paper's definition), ``d0_at_k0`` the smallest cost at which ``k0`` of them do it
(what the authors' code computes). The least cost of k and c is the smallest largest cost at which k candidates cover a
share c of the coverable rows; ``cauc(c)`` is its area over k, divided by the smallest of any group (FGCE, section IV).

For a group of many pairs, the greedy selection gives bounds, which are marked as such. Least costs are bounds too
unless exact ones are requested, since each takes integer programmes of its own.

Scope: values. Solvers: ``covering``. Replicates: ``aggregates``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tasks.methods.fgce.algorithm import curves, pairs, selection
from tasks.methods.fgce.algorithm.costs import distances as costs
from tasks.methods.fgce.algorithm.covering import least_cost, problem, set_cover
from tasks.methods.fgce.algorithm.covering.problem import Optimum, Part
from tasks.methods.fgce.algorithm.covering.solver import Solver
from tasks.methods.fgce.algorithm.curves import Limits
from tasks.methods.fgce.algorithm.recourse import Explained, Searched
from tasks.methods.fgce.settings import FgceSettings
from tasks.numerics.arrays import Floats, Longs

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
    here = [weight[factuals] for factuals, _ in tables]
    return [Part(cost[w > 0], w[w > 0]) for (_, cost), w in zip(tables, here, strict=True) if w.any()]


def solver_of(settings: FgceSettings) -> Solver:
    """The solver within the limit of the settings."""
    return Solver(settings.solver_seconds)


def full(parts: Sequence[Part], solver: Solver) -> Full:
    """k0, d0 and d0 at k0, solved."""
    n = sum(part.rows for part in parts)
    if not n:
        return nobody()
    k0 = _value(set_cover.least_count(parts, solver))
    at_k0 = Value(float("nan"), UNKNOWN_K0) if k0.reason else _value(least_cost.d0_at_k0(parts, solver))
    return Full(n, k0, Value(problem.d0(parts)), at_k0)


def nobody() -> Full:
    """No row is coverable."""
    none = Value(float("nan"), NOBODY)
    return Full(0, none, none, none)


def bounds(found: Explained) -> Full:
    """k0 as the greedy selection has it, never less than it is; d0 is exact, and d0 at k0 is not known.

    More candidates than k0 may well cover everyone at less cost than k0 of them, so the selection bounds no cost at k0.
    """
    n = int(found.feasible.sum())
    if not n:
        return nobody()
    everyone = selection.cover(found.offers)
    return Full(
        n, Value(len(everyone), TOO_LARGE), Value(float(np.nanmax(found.cheapest))), Value(float("nan"), UNKNOWN_K0)
    )


def least(parts: Sequence[Part], settings: FgceSettings) -> Least:
    """The least cost of every k and share, solved."""
    ks = tuple(range(1, settings.k + 1))
    solved = least_cost.cost_by_k(parts, ks, settings.shares, solver_of(settings))
    return {
        (k, c): _value(found) if np.isfinite(found.value) else Value(found.value, f"{k} candidates cannot cover {c:g}")
        for (k, c), found in solved.items()
    }


def _value(found: Optimum) -> Value:
    return Value(found.value, found.reason)


def most_paid(found: Explained) -> Floats:
    """``(k,)`` what the first 1, 2, ... k of the candidates selected without limit make their rows pay at most."""
    nearest = [pairs.nearest(found.paid[:, :k])[0] for k in range(1, found.paid.shape[1] + 1)]
    return np.array([np.nanmax(paid, initial=-np.inf) for paid in nearest])


def bounded(found: Explained, at: curves.Resampled, limits: Limits, shares: Sequence[float]) -> dict[float, Floats]:
    """Bounds on least costs by share: ``(b + 1, k)`` on resamples and, last, on the sample (see ``curves``)."""
    free = most_paid(found)
    return {c: curves.least_cost(at, limits.levels, free, c) for c in shares}


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
        reason[c] = next((each for each in bounds if each), "")
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
