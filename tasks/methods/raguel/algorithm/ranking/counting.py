"""Counts and costs of the groups of a list during re-ranking: fair representation and recourse ratio.

Scope: kernels that run at every record. Finished lists: ``representation`` and ``ratios``.
"""

from typing import NamedTuple

import numba
import numpy as np

from tasks.numerics.arrays import Bools, Floats, Longs

ROUNDING = 1e-9
"""By which a count may lie outside its bounds, and by what part of itself a ratio may fall or a cost exceed an edge."""


class Bounds(NamedTuple):
    """Shares of the groups and how far a list may depart from them. A tuple, because numba takes tuples."""

    shares: Floats
    """``(g,)`` of the whole database."""
    bounded: Bools
    """``(g,)`` groups whose count is bounded: all but the reference group."""
    tolerance: float


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def within(bounds: Bounds, group: int, size: int) -> tuple[float, float]:
    """Least and largest count of a group in a fairly represented set of ``size`` records (Definition 3.1).

    The whole numbers within ``(p +- t p) size``; if there are none, those next to ``p size``.
    """
    middle = bounds.shares[group] * size
    low = np.ceil(middle * (1.0 - bounds.tolerance) - ROUNDING)
    high = np.floor(middle * (1.0 + bounds.tolerance) + ROUNDING)
    if low > high:
        return np.floor(middle), np.ceil(middle)
    return low, high


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def violation(bounds: Bounds, counts: Longs, size: int) -> float:
    """By how many records the groups of a set are out of their bounds together; a singleton never is."""
    total = 0.0
    if size < 2:
        return total
    for group in range(counts.shape[0]):
        if bounds.bounded[group]:
            low, high = within(bounds, group, size)
            total += max(0.0, low - counts[group], counts[group] - high)
    return total


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def violation_with(bounds: Bounds, counts: Longs, size: int, joins: int, leaves: int) -> float:
    """``violation`` after a record of one group has joined and one of another has left (-1: none), of ``size`` then."""
    counts[joins] += 1
    if leaves >= 0:
        counts[leaves] -= 1
    total = float(violation(bounds, counts, size))
    counts[joins] -= 1
    if leaves >= 0:
        counts[leaves] += 1
    return total


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def ratio(counts: Longs, sums: Floats) -> float:
    """``r = min_g C_g / max_g C_g`` over the groups that are present (Equations 1 and 4); 1 if all means are 0."""
    least, most = np.inf, 0.0
    for group in range(counts.shape[0]):
        if counts[group] > 0:
            mean = sums[group] / counts[group]
            least, most = min(least, mean), max(most, mean)
    return least / most if most > 0.0 else 1.0


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def ratio_with(counts: Longs, sums: Floats, joins: int, cost: float) -> float:
    """``ratio`` after a record of a group has joined."""
    counts[joins] += 1
    sums[joins] += cost
    found = float(ratio(counts, sums))
    counts[joins] -= 1
    sums[joins] -= cost
    return found


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def interval(
    counts: Longs, sums: Floats, joins: int, leaves: int, left: float, least_ratio: float
) -> tuple[float, float]:
    """What a record may cost that joins one group while one of another leaves, so that the ratio does not fall.

    Equation 3 with both its ends, and for several groups. With ``m`` and ``M`` the least and the largest mean of the
    other groups after the swap, and ``n`` records of mean ``C`` in the group that is joined,
    ``(n + 1) r M - n C <= c <= (n + 1) m / r - n C``, ``r`` being the ratio before or ``least_ratio`` if that is more.
    Where the ratio before is 0 or not about this group, whatever it is then, only ``least_ratio`` binds.

    Args:
        counts: ``(g,)`` records of each group before the swap.
        sums: ``(g,)`` their costs.
        joins: Group of the record that comes.
        leaves: Group of the record that goes.
        left: Cost of the record that goes.
        least_ratio: Ratio that is asked for in any case; 0 for none.

    Returns:
        Least and largest cost; nothing lies between them where the swap cannot be had.
    """
    least, most = np.inf, 0.0
    others_cost = False
    for group in range(counts.shape[0]):
        n, total = counts[group], sums[group]
        if group == joins:
            continue
        others_cost = others_cost or (n > 0 and total > 0.0)
        if group == leaves:
            n, total = n - 1, total - left
        if n > 0:
            mean = max(total, 0.0) / n
            least, most = min(least, mean), max(most, mean)
    n, total = counts[joins], sums[joins]
    wanted = least_ratio
    if n > 0 and total > 0.0 and others_cost:
        wanted = max(wanted, ratio(counts, sums))
    if wanted == 0.0 or least == np.inf:
        return 0.0, np.inf
    if least < wanted * most * (1.0 - ROUNDING):
        return np.inf, -np.inf
    low, high = (n + 1) * wanted * most * (1.0 - ROUNDING), (n + 1) * least / wanted * (1.0 + ROUNDING)
    return max(0.0, low - total), high - total


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def intervals(
    bounds: Bounds,
    counts: Longs,
    sums: Floats,
    unfair: float,
    may_join: Bools,
    leaves: int,
    left: float,
    least_ratio: float,
    edge: float,
) -> tuple[Floats, Floats]:
    """Of each group what one of its records may cost that joins while another leaves, ``(g,)`` twice.

    Args:
        bounds: Of the counts.
        counts: ``(g,)`` records of each group before.
        sums: ``(g,)`` their costs.
        unfair: The violation before; it has to become less.
        may_join: ``(g,)`` groups that may join at all.
        leaves: Group of the record that goes.
        left: Its cost.
        least_ratio: Ratio that is asked for in any case; 0 for none.
        edge: Largest cost in any case.

    Returns:
        Least and largest cost; the least is larger where no record of the group may come.
    """
    floors, limits = np.full(counts.shape[0], np.inf), np.full(counts.shape[0], -np.inf)
    size = counts.sum()
    for joins in range(counts.shape[0]):
        if may_join[joins] and violation_with(bounds, counts, size, joins, leaves) < unfair:
            floors[joins], limits[joins] = interval(counts, sums, joins, leaves, left, least_ratio)
            limits[joins] = min(limits[joins], edge * (1.0 + ROUNDING))
    return floors, limits
