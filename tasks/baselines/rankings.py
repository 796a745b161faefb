"""Fair rankings of other papers: FA*IR and FoEiR."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, Protocol, Self

import numba
import numpy as np
from scipy.stats import binom

from tasks.numerics.arrays import Bools, Floats, Longs

# --------------------------------------------------------------------------------------------------------------------
# The kind "fair ranking": a list of records with costs and two groups in, one order or a lottery over orders out.
#
# Scope: the protocol and its arrays. Systems: one file each. Names: ``registry``.


ONE_GROUP: Final = "all records, or none, are of the protected group"


@dataclass(frozen=True)
class Listed:
    """``n`` records to be ranked. Among equal costs, the record that comes first here is the better one."""

    cost: Floats
    """``(n,)``; the cheapest record is the best."""
    protected: Bools
    """``(n,)``."""
    share: float
    """Share of protected records that the order is held against."""

    @classmethod
    def of(cls, cost: Floats, protected: Bools) -> Self:
        """A list that is held against its own share of protected records."""
        return cls(cost, protected, float(protected.mean()) if len(protected) else 0.0)

    @property
    def one_group(self) -> bool:
        """Whether all records are of one group, so that there is no comparison."""
        return int(self.protected.sum()) in (0, len(self.protected))

    @property
    def by_cost(self) -> Longs:
        """``(n,)`` the record at each rank of the initial order."""
        return np.argsort(self.cost, kind="stable")

    @property
    def utility(self) -> Floats:
        """``(n,)`` relevance from 0, the dearest record, to 1, the cheapest; 1 where all cost the same."""
        most, least = self.cost.max(initial=-np.inf), self.cost.min(initial=np.inf)
        return (most - self.cost) / (most - least) if most > least else np.ones(len(self.cost))


@dataclass(frozen=True)
class Orders:
    """A lottery over ``k`` orders of ``n`` records; of a system without chance one order, of a refusal none."""

    order: Longs
    """``(k, n)`` the record at each rank."""
    weight: Floats
    """``(k,)`` probability of each order; sum 1."""
    reason: str = ""
    """Why there is no order; empty where there is one."""

    def drawn(self, rng: np.random.Generator) -> Longs:
        """Draws one order ``(n,)`` by the weights.

        Raises:
            ValueError: There is no order.
        """
        if self.reason:
            raise ValueError(self.reason)
        order: Longs = self.order[int(rng.choice(len(self.weight), p=self.weight))]
        return order


class Ranking(Protocol):
    """A system that ranks."""

    def __call__(self, listed: Listed) -> Orders:
        """The orders of a list; the same list, the same orders."""
        ...


def alone(order: Longs) -> Orders:
    """One order ``(n,)`` without chance."""
    return Orders(order[None, :].astype(np.int64), np.ones(1))


def refused(listed: Listed, reason: str) -> Orders:
    """No order, and why."""
    return Orders(np.zeros((0, len(listed.cost)), np.int64), np.zeros(0), reason)


# --------------------------------------------------------------------------------------------------------------------
# FA*IR: the top of a ranking with enough protected records at every prefix (Zehlike et al. 2017), as a baseline.
#
# A prefix of ``k`` records needs at least the ``alpha`` quantile of a binomial of ``k`` draws with probability ``p``
# (section 3.2, the m-table). As many prefixes are tested, ``alpha`` is lowered until a random ranking fails one of them
# with the requested probability (section 4). Records change places and are not modified.
#
# Of the authors' package, fairsearchcore 1.0.4, the unadjusted m-table equals ours; its adjusted one raises an error.


ROUNDS: Final = 60
"""Halvings of the interval of alpha."""
ALPHA: Final = 0.15


def fair_star(listed: Listed, alpha: float = ALPHA, top: int | None = None) -> Orders:
    """The best of both groups, and a protected record wherever a prefix needs it.

    Args:
        listed: Records; prefixes need the list's share of protected ones, which lies in (0, 1).
        alpha: Probability with which a ranking at random fails.
        top: Ranks that are tested; all if None. The rest keeps its order.
    """
    if listed.one_group:
        return refused(listed, ONE_GROUP)
    cost, protected, order = listed.cost, listed.protected, listed.by_cost
    least_counts = needed(len(order) if top is None else min(top, len(order)), listed.share, alpha)
    queues = {kind: [int(i) for i in order[protected[order] == kind][::-1]] for kind in (True, False)}
    ranking: list[int] = []
    protected_count = 0
    for least in least_counts:
        kind = bool(queues[True]) and (protected_count < least or not queues[False] or _better(queues, cost))
        ranking.append(queues[kind].pop())
        protected_count += kind
    rest = np.setdiff1d(order, ranking)
    return alone(np.append(np.array(ranking, np.int64), rest[np.argsort(cost[rest], kind="stable")]))


def _better(queues: dict[bool, list[int]], cost: Floats) -> bool:
    """Whether the best protected record is at least as good as the best other one; ties go to the lower number."""
    best_protected, other = queues[True][-1], queues[False][-1]
    return bool((cost[best_protected], best_protected) < (cost[other], other))


@lru_cache(maxsize=64)
def needed(top: int, share: float, alpha: float) -> Longs:
    """``(k,)`` protected records that each prefix needs, with ``alpha`` corrected for the number of prefixes.

    Kept, because many lists of one length and share ask for the same; not to be written over.
    """
    low, high = 0.0, alpha
    low_counts, high_counts = unadjusted(top, share, low), unadjusted(top, share, high)
    if failing(high_counts, share) <= alpha:
        return high_counts
    for _ in range(ROUNDS):
        if (high_counts - low_counts).sum() <= 1:
            break  # no alpha between the two needs other counts
        middle = 0.5 * (low + high)
        counts = unadjusted(top, share, middle)
        if failing(counts, share) <= alpha:
            low, low_counts = middle, counts
        else:
            high, high_counts = middle, counts
    return low_counts


def unadjusted(top: int, share: float, alpha: float) -> Longs:
    """``(k,)`` protected records that each prefix needs if it alone were tested (the m-table without correction)."""
    counts = np.maximum(binom.ppf(alpha, np.arange(1, top + 1), share), 0)
    return np.asarray(counts, np.int64)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def failing(least_counts: Longs, share: float) -> float:
    """Probability that a ranking which draws every record at random has too few protected ones in some prefix.

    Args:
        least_counts: ``(k,)`` protected records that each prefix needs, ascending.
        share: Probability that a record is protected.
    """
    chance = np.zeros(least_counts[-1] + 1)  # of each count where no shorter prefix fails; larger ones never fail
    chance[0] = 1.0
    failed = 0.0
    for least in least_counts:
        for count in range(len(chance) - 1, 0, -1):
            chance[count] = chance[count] * (1.0 - share) + chance[count - 1] * share
        chance[0] *= 1.0 - share
        failed += chance[:least].sum()
        chance[:least] = 0.0
    return failed


# --------------------------------------------------------------------------------------------------------------------
# FoEiR: the ranking of most utility under equal exposure of two groups (Singh and Joachims 2018), as a baseline.
#
# The paper (sections 3 and 4) solves a linear programme over doubly stochastic matrices ``P``: maximise ``sum_ij u_i
# P_ij v_j`` with ``v_j = 1 / log2(1 + j)``, under one equality between the groups. It then splits ``P`` into
# permutations by Birkhoff and von Neumann, and draws one of them by its weight.
#
# All three equalities have the form ``sum_ij c_i P_ij v_j = 0``. So at a multiplier ``m`` the best order sorts records
# by ``u_i + m c_i``, and the optimum mixes the two orders on either side of the multiplier at which the sum changes
# sign. That mix is the programme's optimum and its decomposition at once: no matrix of ``n^2`` variables, and no limit
# of 50 records.


Fairness = Literal["parity", "treatment", "impact"]

NO_UTILITY: Final = "a group has no utility at all, so that exposure per utility is not defined"
NOT_FEASIBLE: Final = "no ranking gives both groups the same: even with one of them on top it has too little exposure"

HALVINGS: Final = 200
DOUBLINGS: Final = 100
EXACT: Final = 1e-12
"""Relative to the exposure of a group: what counts as equal."""


def exposure(n: int) -> Floats:
    """``(n,)`` exposure of each rank: ``1 / log2(1 + rank)``."""
    exposures: Floats = 1.0 / np.log2(1.0 + np.arange(1, n + 1))
    return exposures


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
    group_means = np.where(protected, means[True], means[False])
    pull: Floats = of_group / group_means if fairness == "treatment" else of_group * utility / group_means
    return pull


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
        less, upper_gap = sign * self.gap(below), sign * self.gap(above)
        if upper_gap <= EXACT:
            return alone(above)
        weight = -less / (upper_gap - less)
        return Orders(np.stack([below, above]).astype(np.int64), np.array([1.0 - weight, weight]))


# --------------------------------------------------------------------------------------------------------------------
# The fair rankings by name, as specs and reproductions write them.


def initial(listed: Listed) -> Orders:
    """The order by cost, which knows no groups."""
    return alone(listed.by_cost)


RANKINGS: Final[Mapping[str, Ranking]] = {
    "initial": initial,
    "fair_star": fair_star,
    "foeir": parity,
    "foeir_treatment": treatment,
    "foeir_impact": impact,
}
"""``foeir`` is the variant with demographic parity, which every list of two groups has."""
