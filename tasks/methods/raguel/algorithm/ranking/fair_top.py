"""FA*IR: the top of a ranking with enough protected records at every prefix (Zehlike et al. 2017), as a baseline.

A prefix of ``k`` records needs at least the ``alpha`` quantile of a binomial of ``k`` draws with probability ``p``. As
many prefixes are tested, ``alpha`` is lowered until a random ranking fails one of them with the requested probability.
Records change places and are not modified.

The authors' package fairsearchcore does not run on current versions of Python; this is our own code.
"""

import numpy as np
from scipy.stats import binom

from tasks.numerics.arrays import Bools, Floats, Longs

ROUNDS = 60
"""Halvings of the interval of alpha."""


def fair_top(cost: Floats, protected: Bools, share: float, alpha: float = 0.15, top: int | None = None) -> Longs:
    """Records in their new order: the best of both groups, and a protected one wherever a prefix needs it.

    Args:
        cost: ``(n,)``; the cheapest record is the best.
        protected: ``(n,)``.
        share: ``p``, the least share of protected records, in (0, 1).
        alpha: Probability with which a ranking at random fails.
        top: Ranks that are tested; all if None. The rest keeps its order.

    Returns:
        ``(n,)`` the record at each rank.
    """
    order = np.argsort(cost, kind="stable")
    wanted = needed(len(order) if top is None else min(top, len(order)), share, alpha)
    queues = {kind: [int(i) for i in order[protected[order] == kind][::-1]] for kind in (True, False)}
    found: list[int] = []
    held = 0
    for least in wanted:
        kind = bool(queues[True]) and (held < least or not queues[False] or _better(queues, cost))
        found.append(queues[kind].pop())
        held += kind
    rest = np.setdiff1d(order, found)
    return np.append(np.array(found, np.int64), rest[np.argsort(cost[rest], kind="stable")])


def _better(queues: dict[bool, list[int]], cost: Floats) -> bool:
    """Whether the best protected record is at least as good as the best other one; ties go to the lower number."""
    mine, other = queues[True][-1], queues[False][-1]
    return bool((cost[mine], mine) < (cost[other], other))


def needed(top: int, share: float, alpha: float) -> Longs:
    """``(k,)`` protected records that each prefix needs, with ``alpha`` corrected for the number of prefixes."""
    low, high = 0.0, alpha
    if failing(_quantiles(top, share, alpha), share) <= alpha:
        return _quantiles(top, share, alpha)
    for _ in range(ROUNDS):
        middle = 0.5 * (low + high)
        if failing(_quantiles(top, share, middle), share) <= alpha:
            low = middle
        else:
            high = middle
    return _quantiles(top, share, low)


def _quantiles(top: int, share: float, alpha: float) -> Longs:
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
