"""Fair representation: is the count of every group in a set within its bounds (Definitions 3.1 and 3.2)?

A set of ``m`` records represents a protected group of share ``p`` fairly if its count lies within ``(p +- t p) m``. A
ranking does if every prefix of two records or more does. Scope: bounds, and checks of finished lists.
"""

from dataclasses import dataclass

import numba
import numpy as np

from schemas.errors import SpecError
from tasks.methods.raguel.algorithm.ranking import counting
from tasks.methods.raguel.algorithm.ranking.counting import Bounds
from tasks.numerics.arrays import Bools, Floats, Ints, Longs


@dataclass(frozen=True)
class Representation:
    """What a list is held against."""

    shares: Floats
    """``(g,)`` share of each group in the whole database."""
    bounded: Bools
    """``(g,)`` the groups whose count is bounded: all but the reference group."""
    tolerance: float
    """``t``: the count of a group may depart by this share of what it should be."""

    @property
    def bounds(self) -> Bounds:
        """As the kernels read it."""
        return Bounds(self.shares, self.bounded, self.tolerance)


def representation(group: Ints, groups: int, reference: int, tolerance: float = 1 / 3) -> Representation:
    """Bounds from the shares of the groups.

    Args:
        group: ``(n,)`` group of each record.
        groups: Number of groups.
        reference: The group whose count is not bounded.
        tolerance: ``t`` in (0, 1].

    Raises:
        SpecError: If the tolerance is outside (0, 1].
    """
    if not 0 < tolerance <= 1:
        raise SpecError(f"the tolerance is {tolerance:g}; it has to be above 0 and at most 1, such as 1/3")
    shares = np.bincount(group, minlength=groups) / max(len(group), 1)
    return Representation(shares, np.arange(groups) != reference, float(tolerance))


def fair_blocks(held: Representation, group: Ints, block: Longs) -> Bools:
    """Whether each block is fairly represented.

    Args:
        held: The bounds.
        group: ``(n,)`` group of each record.
        block: ``(n,)`` block of each record, from 0.
    """
    groups = len(held.shares)
    counts = np.bincount(block * groups + group, minlength=(int(block.max(initial=-1)) + 1) * groups)
    fair: Bools = _fair_counts(held.bounds, counts.reshape(-1, groups).astype(np.int64))
    return fair


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _fair_counts(bounds: Bounds, counts: Longs) -> Bools:
    fair = np.ones(counts.shape[0], np.bool_)
    for block in range(counts.shape[0]):
        fair[block] = counting.violation(bounds, counts[block], counts[block].sum()) == 0.0
    return fair
