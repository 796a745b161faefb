"""Dominance: removes candidates that another one replaces, and factuals that are covered along with another.

The optimum stays, and most programmes become so small that they need no solver: on COMPAS and on Adult the reductions
alone solve every set cover tried.
"""

import numba
import numpy as np

from tasks.feasibility_graph.algorithm.reachability import Words
from tasks.numerics.arrays import Bools, Floats, Longs


def undominated(sets: Bools) -> Longs:
    """Places of the sets, ``(m, n)``, that are contained in no other one; of equal sets the first."""
    order = np.argsort(-sets.sum(axis=1), kind="stable")
    return np.flatnonzero(_maximal(packed(sets), order))


def cheapest_candidates(cost: Floats) -> Longs:
    """Columns of ``(f, c)`` than which no other one is as cheap for every factual; of equal ones the first.

    An optimal selection, at whatever limit on cost, can be made of these.
    """
    offers = np.ascontiguousarray(cost.T)
    refused = np.isinf(offers)
    # a candidate comes after all that could replace it: those feasible for more factuals, then the cheaper ones
    order = np.lexsort((np.where(refused, 0.0, offers).sum(axis=1), refused.sum(axis=1)))
    return np.flatnonzero(_minimal(offers, order))


def packed(sets: Bools) -> Words:
    """The sets as bits, ``(m, ceil(n / 64))``."""
    packed = np.packbits(sets, axis=1, bitorder="little")
    padded = np.zeros((len(sets), -(-packed.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(np.uint64)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _maximal(bits: Words, order: Longs) -> Bools:
    """Which sets are no subset of one kept before them."""
    kept = np.zeros(bits.shape[0], dtype=np.bool_)
    keepers = np.empty(bits.shape[0], dtype=np.int64)
    count = 0
    for one in order:
        for place in range(count):
            if _inside(bits[one], bits[keepers[place]]):
                break
        else:
            kept[one] = True
            keepers[count] = one
            count += 1
    return kept


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _inside(one: Words, other: Words) -> bool:
    """Whether the first set is a subset of the second."""
    for word in range(one.shape[0]):  # noqa: SIM110 numba knows no generators
        if one[word] & ~other[word]:
            return False
    return True


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _minimal(offers: Floats, order: Longs) -> Bools:
    """Which candidates, ``(c, f)``, are dearer for some factual than each of those kept before them."""
    kept = np.zeros(offers.shape[0], dtype=np.bool_)
    keepers = np.empty(offers.shape[0], dtype=np.int64)
    count = 0
    for one in order:
        for place in range(count):
            if not _dearer(offers[keepers[place]], offers[one]):
                break
        else:
            kept[one] = True
            keepers[count] = one
            count += 1
    return kept


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _dearer(one: Floats, other: Floats) -> bool:
    """Whether the first candidate costs some factual more than the second does."""
    for i in range(one.shape[0]):  # noqa: SIM110 numba knows no generators
        if one[i] > other[i]:
            return True
    return False
