"""A re-ranked list: the rank of every record, and the modification of those that moved up."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tasks.methods.raguel.algorithm.ranking.records import Records
from tasks.numerics.arrays import Bools, Floats, Longs

_Scalar = TypeVar("_Scalar", bound=np.generic)


@dataclass(frozen=True)
class Reranked:
    """Of ``n`` records the new order. Arrays are aligned by record, but for ``order``."""

    order: Longs
    """``(n,)`` the record at each rank."""
    rank_before: Longs
    """``(n,)`` from 1."""
    rank: Longs
    """``(n,)`` from 1."""
    cost: Floats
    """``(n,)`` recourse cost after modification."""
    values: Floats
    """``(n, d)`` after modification."""
    failed: Longs
    """Ranks from 1 (Algorithm 1) or blocks from 0 (Algorithm 2) at which representation is left unfair."""
    exit_rank: int | None = None
    """From which rank on the list is copied as it was (failure ``exit``); None where it never came to that."""
    block_before: Longs | None = None
    """``(n,)`` from 0; None without blocks."""
    block: Longs | None = None
    """``(n,)`` likewise, after."""

    @property
    def below_predecessor(self) -> int:
        """How often a record costs less than the one ranked just above it."""
        return int((np.diff(self.cost[self.order]) < 0).sum())


def modified(records: Records, reranked: Reranked) -> Bools:
    """``(n,)`` records of which some attribute was changed."""
    changed: Bools = (reranked.values != records.values).any(axis=1)
    return changed


def distances(records: Records, reranked: Reranked) -> Floats:
    """``(n,)`` weighted distance that each record was moved, 0 where it was not: what its modification costs."""
    squared = (reranked.values - records.values) ** 2
    return np.sqrt(squared @ records.rules.weight)


def by_record(by_place: NDArray[_Scalar], record: Longs) -> NDArray[_Scalar]:
    """``(n, ...)`` what was aligned by place, aligned by the ``(n,)`` record at each place."""
    found = np.empty_like(by_place)
    found[record] = by_place
    return found


def ranks(order: Longs) -> Longs:
    """``(n,)`` rank from 1 of each record, from the record at each rank."""
    return by_record(np.arange(1, len(order) + 1), order)


def movable(worst: int, groups: int, direction: str) -> Bools:
    """``(g,)`` groups whose records may be modified: the worst-off one, or ``both``, which is all."""
    return np.asarray((np.arange(groups) == worst) | (direction == "both"))
