"""The cheapest choice of at most one option for each attribute that gains enough: exact, by branch and bound.

A multiple-choice knapsack. A price ``p`` of the missing gain turns the cost of an option into its reduced cost,
``cost - p gain``. What a branch has spent in reduced costs, with the least of what is open, bounds it from below
(Lagrange). Branches therefore end early at a good price, which bisection finds once for each case. Attributes with one
option far better than their others are decided first. The loops are compiled.
"""

from typing import Final, NamedTuple

import numba
import numpy as np

from tasks.numerics.arrays import Bools, Floats, Longs

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
    found = _solve(
        np.ascontiguousarray(gain, np.float64),
        np.where(gain > 0, cost, np.inf),
        np.ascontiguousarray(need, np.float64),
    )
    pick, total, proven = found
    return pick, total, proven


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _solve(gain: Floats, cost: Floats, need: Floats) -> tuple[Longs, Floats, Bools]:
    n, d, _ = gain.shape
    pick, total, proven = np.full((n, d), NOTHING), np.full(n, np.nan), np.ones(n, np.bool_)
    for i in range(n):
        wanted = need[i] * (1.0 - ROUNDING)
        if wanted <= 0.0:
            total[i] = 0.0
            continue
        price = _price(gain[i], cost[i], wanted)
        if price < np.inf:
            case = _case(gain[i], cost[i], price)
            total[i], proven[i] = _search(case, price, wanted, pick[i])
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
    held, spent, reduced = np.zeros(d + 1), np.zeros(d + 1), np.zeros(d + 1)
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
        if held[place] + case.gain[place, option] + case.open_gain[place + 1] < need:
            at[place] += 1
            continue
        held[place + 1] = held[place] + case.gain[place, option]
        spent[place + 1] = spent[place] + case.cost[place, option]
        reduced[place + 1] = reduced[place] + case.reduced[place, option]
        if place + 1 < d:
            place += 1
            at[place] = 0
            continue
        if held[d] >= need and spent[d] < best:
            best = float(spent[d])
            for each in range(d):
                pick[case.attribute[each]] = case.number[each, at[each]]
        at[place] += 1
    return best, True
