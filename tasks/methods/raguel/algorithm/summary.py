"""Summary of a re-ranked list: the arrays that all statistics of it are made of.

Scope: the arrays, and their rows of a group, or of a group and the reference group.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tasks.methods.raguel.algorithm.lists import Cell, Order, Ranked
from tasks.methods.raguel.algorithm.offers import Offers
from tasks.numerics.arrays import Bools, Floats, Ints, Longs


@dataclass(frozen=True)
class Thresholded:
    """The list that other decisions would have made: those of thresholds by group (demographic parity, ...)."""

    name: str
    stays: Bools
    """``(n,)`` applicants of the list who would be on it still."""
    changed: Longs
    """``(g,)`` applicants of each group, listed or not, with another decision; empty where there are none."""
    reason: str = ""
    """Why there are no such decisions."""


@dataclass(frozen=True)
class ListSummary:
    """A list, its orders and what was offered in them. ``n`` applicants, ``g`` groups."""

    ranked: Ranked
    initial: Order
    orders: tuple[Order, ...]
    offers: Mapping[str, Offers]
    """By order."""
    columns: tuple[str, ...]
    """Names of what offers change, by number."""
    confirmed: Floats
    """``(n,)`` whether the model favours the counterfactual point: 1 or 0; NaN where it was not asked."""
    offers_confirmed: Mapping[str, Floats]
    """By order ``(n,)``."""
    cells: tuple[Cell, ...] = ()
    thresholded: tuple[Thresholded, ...] = ()
    note: str = ""
    """What qualifies costs that are not those of a boundary."""

    @property
    def group(self) -> Ints:
        """``(n,)``."""
        return self.ranked.records.group

    def of(self, group: int) -> Bools:
        """``(n,)`` the rows of a group."""
        return np.equal(self.group, group)

    def compared(self, group: int) -> Bools:
        """``(n,)`` the rows of a group and of the reference group; of the reference group, all."""
        if group == self.ranked.reference:
            return np.ones(len(self.group), np.bool_)
        return self.of(group) | self.of(self.ranked.reference)
