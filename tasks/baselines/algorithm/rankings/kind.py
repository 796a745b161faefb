"""The kind "fair ranking": a list of records with costs and two groups in, one order or a lottery over orders out.

Scope: the protocol and its arrays. Systems: one file each. Names: ``registry``.
"""

from dataclasses import dataclass
from typing import Final, Protocol, Self

import numpy as np

from tasks.numerics.arrays import Bools, Floats, Longs

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
        """Whether there is nobody to compare with."""
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
        found: Longs = self.order[int(rng.choice(len(self.weight), p=self.weight))]
        return found


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
