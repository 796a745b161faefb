"""FA*IR: the top of a ranking with enough protected records at every prefix (Zehlike et al. 2017), as a baseline.

A prefix of ``k`` records needs at least the ``alpha`` quantile of a binomial of ``k`` draws with probability ``p``
(section 3.2, the m-table). As many prefixes are tested, ``alpha`` is lowered until a random ranking fails one of them
with the requested probability (section 4). Records change places and are not modified.

Of the authors' package, fairsearchcore 1.0.4, the unadjusted m-table equals ours; its adjusted one raises an error.
"""

from functools import lru_cache
from typing import Final

import numpy as np
from scipy.stats import binom

from tasks.baselines.algorithm.rankings.kind import ONE_GROUP, Listed, Orders, alone, refused
from tasks.numerics.arrays import Floats, Longs

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
    wanted = needed(len(order) if top is None else min(top, len(order)), listed.share, alpha)
    queues = {kind: [int(i) for i in order[protected[order] == kind][::-1]] for kind in (True, False)}
    found: list[int] = []
    held = 0
    for least in wanted:
        kind = bool(queues[True]) and (held < least or not queues[False] or _better(queues, cost))
        found.append(queues[kind].pop())
        held += kind
    rest = np.setdiff1d(order, found)
    return alone(np.append(np.array(found, np.int64), rest[np.argsort(cost[rest], kind="stable")]))


def _better(queues: dict[bool, list[int]], cost: Floats) -> bool:
    """Whether the best protected record is at least as good as the best other one; ties go to the lower number."""
    mine, other = queues[True][-1], queues[False][-1]
    return bool((cost[mine], mine) < (cost[other], other))


@lru_cache(maxsize=64)
def needed(top: int, share: float, alpha: float) -> Longs:
    """``(k,)`` protected records that each prefix needs, with ``alpha`` corrected for the number of prefixes.

    Kept, because many lists of one length and share ask for the same; not to be written over.
    """
    low, high = 0.0, alpha
    if failing(unadjusted(top, share, alpha), share) <= alpha:
        return unadjusted(top, share, alpha)
    for _ in range(ROUNDS):
        middle = 0.5 * (low + high)
        if failing(unadjusted(top, share, middle), share) <= alpha:
            low = middle
        else:
            high = middle
    return unadjusted(top, share, low)


def unadjusted(top: int, share: float, alpha: float) -> Longs:
    """``(k,)`` protected records that each prefix needs if it alone were tested (the m-table without correction)."""
    counts = np.maximum(binom.ppf(alpha, np.arange(1, top + 1), share), 0)
    return np.asarray(counts, np.int64)


def failing(wanted: Longs, share: float) -> float:
    """Probability that a ranking which draws every record at random has too few protected ones in some prefix.

    Args:
        wanted: ``(k,)`` protected records that each prefix needs.
        share: Probability that a record is protected.
    """
    chance = np.zeros(len(wanted) + 1)
    chance[0] = 1.0
    for least in wanted:
        chance[1:] = chance[1:] * (1.0 - share) + chance[:-1] * share
        chance[0] *= 1.0 - share
        chance[:least] = 0.0
    return float(1.0 - chance.sum())
