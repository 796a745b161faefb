"""The effect of exchanging a protected attribute in the model itself: what it does to equals, by its own answer.

The mean over the members of a group of [denied as they are] less [denied with the attribute exchanged to the reference
group]: the signed form of the causal discrimination score (Galhotra, Brun and Meliou 2017, Fairness Testing). The model
is held fixed, so that sampling error is that of the members alone; nothing is regressed, and no column is unseen, as
the model sees its own columns only.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tasks.numerics.arrays import Bools, Ints
from tasks.numerics.statistics.paired_difference import Changes, lower, upper


@dataclass(frozen=True)
class Exchange:
    """What the exchange does to one group."""

    group: int
    changes: Changes
    """``raised``: members who are denied and would not be; ``lowered``: those who are approved and would not be."""
    denied: int
    """Members who are denied as they are."""
    low: float
    high: float

    @property
    def value(self) -> float:
        """Share of the first less share of the second."""
        return self.changes.mean


def effects(
    denied: Bools, exchanged: Bools, group: Ints, groups: int, reference: int, level: float
) -> Iterator[Exchange]:
    """The effect on each group other than the reference group that has members.

    Args:
        denied: ``(n,)`` decisions as they are.
        exchanged: ``(n,)`` whether they would be denied with the attribute exchanged.
        group: ``(n,)`` number of each group.
        groups: how many there are.
        reference: number of the reference group.
        level: of the intervals.
    """
    for number in range(groups):
        own = group == number
        n = int(own.sum())
        if number == reference or not n:
            continue
        raised, lowered = (denied & ~exchanged & own).sum(), (~denied & exchanged & own).sum()
        of = Changes(int(raised), int(lowered), n)
        ends = lower(of, (1 - level) / 2), upper(of, (1 - level) / 2)
        yield Exchange(number, of, int(np.sum(denied & own)), *ends)
