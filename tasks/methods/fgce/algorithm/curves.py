"""Coverage against cost and against k: areas under the curves and saturation points (FGCE, section IV).

``kAUC(k)`` is the area of coverage over the limits d, ``dAUC(d)`` the area of coverage over k, each divided by the area
of full coverage on the same grid. Both are means over factual rows: the functions here return the part of each row,
which the bootstrap resamples with fixed candidates.

A saturation point is the first point of the grid at which a curve reaches its maximum. It is no mean, so its replicates
are made here.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tasks.numerics.arrays import Bools, Floats, Ints, Longs

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


def limits(dearest: float, needed: float | None = None) -> Limits:
    """The paper's grids: from 0.1, and for kAUC from 0.7 of what is needed, up to and short of the dearest cost.

    Args:
        dearest: D, the square root of the number of features for the L2 distance.
        needed: Largest cost over the groups of covering everyone with as few candidates as can be. If left out, kAUC
            has the same limits as all else: its grid then does not depend on which groups are compared.

    Returns:
        Limits in steps of a tenth of the way from 0.1 to D, rounded to 0.1; in tenths of D where D is that small (sums
        of weights may be). ``of_k`` is empty where 0.7 of what is needed is not below D.
    """
    paper = round((dearest - LOWEST) / 10, 1)
    step = max(paper, 0.1) if dearest > 2 * LOWEST else dearest / 10
    of_d = np.round(np.arange(min(LOWEST, step), dearest, step), 10 if step >= LOWEST else 300)
    of_k = of_d if needed is None else np.arange(FROM * needed, max(dearest, FROM * needed), step)
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


def least_cost(found: Resampled, levels: Floats, free: Floats, share: float) -> Floats:
    """First limit at which the selection covers a share of the coverable rows: a bound on the least cost.

    Args:
        found: Coverage at the limits and, last, at none.
        levels: ``(L - 1,)`` the limits.
        free: ``(k,)`` what the selection without limit makes its rows pay at most.
        share: The share c.

    Returns:
        ``(b + 1, k)``; NaN where no limit is enough, or no row is coverable.
    """
    needed = share * found.feasible[:, None, None]
    enough = (found.coverage >= needed - SLACK) & (needed > 0)
    paid = np.vstack([np.repeat(levels[:, None], len(free), axis=1), free])
    first = enough.argmax(axis=1)
    costs = np.where(enough.any(axis=1), np.take_along_axis(paid, first, axis=0), np.nan)
    return np.fmin.accumulate(costs, axis=1)  # more candidates never make it dearer
