"""Search for the k window of the printed cAUC (FGCE, Tables V and XI): the paper does not say over which k it is taken.

Every window of k = 1 to 10 is tried, with three divisors: the smallest cost of any group at the share, the smallest of
any group at any share, and the smallest of the group itself at any share. A cell agrees if it is within 0.02.

Scope: the search. The measure itself: ``tasks.methods.fgce.algorithm.optima``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from tasks.proof.lines import ALL, Cell, Figure, Value

CLOSE = 0.02
"""The printed areas have two decimals."""

DIVISORS = ("at the share", "at any share", "of the group")

Key = tuple[str, Value]
"""Group and share."""


@dataclass(frozen=True)
class Window:
    """A window of k and a divisor, with the cells that agree."""

    first: int
    last: int
    divisor: str
    agree: int
    total: float
    """Sum of the distances from the printed areas, infinite where one cannot be had."""

    def __str__(self) -> str:
        return f"k {self.first} to {self.last}, divided by the smallest {self.divisor}: {self.agree}"


def cells(figures: Sequence[Figure], found: Mapping[Cell, Value]) -> Iterator[tuple[Cell, Value]]:
    """Yields the window that agrees with most of the printed areas, and with how many of how many."""
    printed = {(f.cell.group, f.cell.at[0]): float(f.value) for f in figures if f.cell.quantity == "cauc"}
    if not printed:
        return
    costs = {
        key: [float(found.get(Cell("least_cost", key[0], (key[1], float(k))), np.nan)) for k in range(1, 11)]
        for key in printed
    }
    best = min(_windows(printed, costs), key=lambda each: (-each.agree, each.total))
    yield Cell("areas_agreeing_in_the_best_window", ALL), float(best.agree)
    yield Cell("best_window", ALL), f"{best} of {len(printed)}"


def _windows(printed: Mapping[Key, float], costs: Mapping[Key, Sequence[float]]) -> Iterator[Window]:
    for first, last in combinations_with_replacement(range(1, 11), 2):
        for divisor in DIVISORS:
            off = np.array([abs(_area(key, costs, first, last, divisor) - area) for key, area in printed.items()])
            total = float(np.where(np.isnan(off), np.inf, off).sum())
            yield Window(first, last, divisor, int((off <= CLOSE).sum()), total)


def _area(key: Key, costs: Mapping[Key, Sequence[float]], first: int, last: int, divisor: str) -> float:
    """The mean height of the curve of least costs over the window, in units of the divisor."""
    window = np.array(costs[key][first - 1 : last])
    height = np.trapezoid(window) / (last - first) if last > first else window[0]
    known = {
        "at the share": [c for other, values in costs.items() if other[1] == key[1] for c in values],
        "at any share": [c for values in costs.values() for c in values],
        "of the group": [c for other, values in costs.items() if other[0] == key[0] for c in values],
    }[divisor]
    finite = [cost for cost in known if np.isfinite(cost) and cost > 0]
    return float(height / min(finite)) if finite else float("nan")
