"""Ranking quality: how far the share of a protected group along a ranking departs from its share overall.

Normalised discounted difference, KL divergence and ratio (rND, rKL, rRD; Yang and Stoyanovich 2017), of one group
against all others, at the cut points 10, 20, ... with weights ``1 / log2(i)``. Each is divided by the largest value of
any ranking with as many records and protected records. 0 is perfectly mixed, 1 as separate as possible.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import rel_entr

from tasks.numerics.arrays import Bools, Floats, Longs

CUT = 10
"""Records between two cut points."""
TOO_SHORT = "the ranking ends at its first cut point, or before it"
ONE_GROUP = "all records, or none, are of the protected group"
MAJORITY = "rRD is defined for a protected minority only"

Term = Callable[[Longs, Longs, int, int], Floats]
"""What a cut point adds, from the protected records before it, the cut points, and protected and all records."""


@dataclass(frozen=True)
class Quality:
    """The metrics of a ranking; NaN where one is not defined, with the reason."""

    rnd: float
    rkl: float
    rrd: float
    reason: str
    """Why a metric has no value; empty if all have one."""


def quality(protected: Bools) -> Quality:
    """The metrics of a ranking.

    Args:
        protected: ``(n,)`` whether the record at each rank is of the protected group.
    """
    n, count = len(protected), int(protected.sum())
    if count in (0, n):
        return Quality(np.nan, np.nan, np.nan, ONE_GROUP)
    if n <= CUT:
        return Quality(np.nan, np.nan, np.nan, TOO_SHORT)
    first, last = np.arange(n) < count, np.arange(n) >= n - count
    one_then_all = (np.arange(n) > 0) & (np.arange(n) <= count)
    rnd = _normalised(protected, _difference, (first, last))
    rkl = _normalised(protected, _divergence, (first, last))
    if 2 * count > n:
        return Quality(rnd, rkl, np.nan, MAJORITY)
    return Quality(rnd, rkl, _normalised(protected, _ratio, (first, last, one_then_all)), "")


def _normalised(protected: Bools, term: Term, worst: tuple[Bools, ...]) -> float:
    """The metric of a ranking, divided by the largest that the ``worst`` rankings have."""
    return _sum(protected, term) / max(_sum(each, term) for each in worst)


def _sum(protected: Bools, term: Term) -> float:
    """The weighted sum of a term over the cut points."""
    cuts = np.arange(CUT, len(protected) + 1, CUT)
    inside: Longs = np.cumsum(protected, dtype=np.int64)[cuts - 1]
    terms = term(inside, cuts, int(protected.sum()), len(protected))
    return float((terms / np.log2(cuts)).sum())


def _difference(inside: Longs, cuts: Longs, count: int, n: int) -> Floats:
    return np.abs(inside / cuts - count / n)


def _divergence(inside: Longs, cuts: Longs, count: int, n: int) -> Floats:
    """KL((p_i, 1 - p_i) || (p, 1 - p)); rounding may bring it a little below 0 where it is 0."""
    found: Floats = np.maximum(rel_entr(inside / cuts, count / n) + rel_entr(1 - inside / cuts, 1 - count / n), 0.0)
    return found


def _ratio(inside: Longs, cuts: Longs, count: int, n: int) -> Floats:
    """The ratio of protected to other records, 0 where there are none of either."""
    others = cuts - inside
    ratio = np.divide(inside, others, out=np.zeros(len(cuts)), where=others > 0)
    found: Floats = np.abs(ratio - count / (n - count))
    return found
