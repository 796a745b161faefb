"""FoEiR: the ranking of most utility under equal exposure of two groups (Singh and Joachims 2018), as a baseline.

The paper (sections 3 and 4) solves a linear programme over doubly stochastic matrices ``P``: maximise ``sum_ij u_i P_ij
v_j`` with ``v_j = 1 / log2(1 + j)``, under one equality between the groups. It then splits ``P`` into permutations by
Birkhoff and von Neumann, and draws one of them by its weight.

All three equalities have the form ``sum_ij c_i P_ij v_j = 0``. So at a multiplier ``m`` the best order sorts records by
``u_i + m c_i``, and the optimum mixes the two orders on either side of the multiplier at which the sum changes sign.
That mix is the programme's optimum and its decomposition at once: no matrix of ``n^2`` variables, and no limit of 50
records.
"""

from typing import Final, Literal

import numpy as np

from tasks.baselines.algorithm.rankings.kind import ONE_GROUP, Listed, Orders, alone, refused
from tasks.numerics.arrays import Bools, Floats, Longs

Fairness = Literal["parity", "treatment", "impact"]

NO_UTILITY: Final = "a group has no utility at all, so that exposure per utility is not defined"
NOT_FEASIBLE: Final = "no ranking gives both groups the same: even with one of them on top it has too little exposure"

HALVINGS: Final = 200
DOUBLINGS: Final = 100
EXACT: Final = 1e-12
"""Relative to the exposure of a group: what counts as equal."""


def exposure(n: int) -> Floats:
    """``(n,)`` exposure of each rank: ``1 / log2(1 + rank)``."""
    found: Floats = 1.0 / np.log2(1.0 + np.arange(1, n + 1))
    return found


def parity(listed: Listed) -> Orders:
    """Equal mean exposure of both groups (demographic parity, section 4.1)."""
    return foeir(listed, "parity")


def treatment(listed: Listed) -> Orders:
    """Mean exposure in proportion to mean utility (disparate treatment, section 4.2)."""
    return foeir(listed, "treatment")


def impact(listed: Listed) -> Orders:
    """Mean click-through in proportion to mean utility (disparate impact, section 4.3)."""
    return foeir(listed, "impact")


def foeir(listed: Listed, fairness: Fairness) -> Orders:
    """The two orders of the optimum with their weights; one where it is fair without a lottery.

    Args:
        listed: Records; their utility falls linearly with their cost.
        fairness: What the groups are to have in common.
    """
    if listed.one_group:
        return refused(listed, ONE_GROUP)
    utility = listed.utility
    means = [float(utility[listed.protected == kind].mean()) for kind in (False, True)]
    if fairness != "parity" and min(means) <= 0.0:
        return refused(listed, NO_UTILITY)
    search = _Search(listed, utility, _pull(utility, listed.protected, means, fairness))
    start = search.order(0.0)
    if abs(search.gap(start)) <= EXACT:
        return alone(start)
    return search.mixed(-np.sign(search.gap(start)))


def _pull(utility: Floats, protected: Bools, means: list[float], fairness: Fairness) -> Floats:
    """``(n,)`` what each record adds to the difference of the groups, per unit of exposure (``c``)."""
    of_group: Floats = np.where(protected, 1.0 / protected.sum(), -1.0 / (~protected).sum())
    if fairness == "parity":
        return of_group
    own = np.where(protected, means[True], means[False])
    found: Floats = of_group / own if fairness == "treatment" else of_group * utility / own
    return found


class _Search:
    """The search for the multiplier of one list."""

    def __init__(self, listed: Listed, utility: Floats, pull: Floats) -> None:
        first = listed.by_cost
        self.first, self.utility, self.pull = first, utility[first], pull[first]
        self.seen = exposure(len(first))

    def order(self, multiplier: float) -> Longs:
        """The best order at a multiplier; ties as in the initial order."""
        return self.first[np.argsort(-(self.utility + multiplier * self.pull), kind="stable")]

    def gap(self, order: Longs) -> float:
        """What the protected group has more than the other, on average."""
        pull = np.empty(len(order))
        pull[self.first] = self.pull
        return float(pull[order] @ self.seen)

    def mixed(self, sign: float) -> Orders:
        """The orders on either side of the multiplier at which both groups have the same, with their weights.

        Args:
            sign: 1 where the protected group has too little in the initial order, -1 where it has too much.
        """
        utmost = self.first[np.lexsort((-self.utility, -sign * self.pull))]
        if sign * self.gap(utmost) < -EXACT:
            return Orders(np.zeros((0, len(utmost)), np.int64), np.zeros(0), NOT_FEASIBLE)
        low, high, above = 0.0, 1.0, utmost
        for _ in range(DOUBLINGS):
            if sign * self.gap(self.order(sign * high)) >= 0.0:
                above = self.order(sign * high)
                break
            low, high = high, 2.0 * high
        return self._between(sign, low, high, above)

    def _between(self, sign: float, low: float, high: float, above: Longs) -> Orders:
        below = self.order(sign * low)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            if middle in (low, high):
                break
            order = self.order(sign * middle)
            if sign * self.gap(order) >= 0.0:
                high, above = middle, order
            else:
                low, below = middle, order
        less, more = sign * self.gap(below), sign * self.gap(above)
        if more <= EXACT:
            return alone(above)
        weight = -less / (more - less)
        return Orders(np.stack([below, above]).astype(np.int64), np.array([1.0 - weight, weight]))
