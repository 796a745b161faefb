"""Groups and rows that generators of mediators learn from, and the target groups of each applicant.

A group with fewer rows than a batch, or with a constant mediator, is no category of a generator: its members are
refused, with the reason. Scope: choices of rows, groups and columns. Generation: ``imaginer``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from schemas.terms import Refusal
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.columns import Columns


@dataclass(frozen=True)
class Categories:
    """The groups of one protected attribute, as a generator takes them."""

    group: Ints
    """``(n,)`` number of each row's group."""
    reference: int
    reasons: tuple[str, ...]
    """Of each group: why it is no category; empty where it is one."""

    @property
    def groups(self) -> Longs:
        """``(k,)`` groups that are categories; none if the reference group is not, or there is nobody to compare."""
        kept = np.flatnonzero([not reason for reason in self.reasons])
        return kept if len(kept) > 1 and self.reference in kept else kept[:0]

    @property
    def rows(self) -> Longs:
        """``(r,)`` the rows of the categories."""
        return np.flatnonzero(np.isin(self.group, self.groups))

    @property
    def refused(self) -> tuple[Longs, list[str]]:
        """Rows outside the reference group that cannot be imagined in it, and why."""
        known: Bools = np.isin(self.group, self.groups) | (self.group == self.reference)
        rows = np.flatnonzero(~known)
        there = self.reasons[self.reference]
        return rows, [self.reasons[number] or there for number in self.group[rows]]

    def asked(self, to: int) -> Bools:
        """``(n,)`` whom to imagine as a member of a category: all others of the reference group, or its members."""
        there: Bools = self.group == self.reference
        others: Bools = np.isin(self.group, self.groups) & ~there
        return others if to == self.reference else there


def categories(group: Ints, groups: int, reference: int, mediators: Floats, learnt: Longs, fewest: int) -> Categories:
    """Tell categories from groups that are none.

    Args:
        group: ``(n,)`` number of each row's group.
        groups: Number of groups.
        reference: The reference group.
        mediators: ``(n, p)``.
        learnt: ``(r,)`` the rows that generators are to learn from.
        fewest: Of them, those that a category has to have.
    """
    own = (mediators[learnt[group[learnt] == number]] for number in range(groups))
    return Categories(group, reference, tuple(_reason(values, fewest) for values in own))


def _reason(mediators: Floats, fewest: int) -> str:
    if len(mediators) < fewest:
        return Refusal.TOO_FEW_IN_CATEGORY
    return Refusal.CONSTANT_MEDIATOR if (mediators == mediators[:1]).all(axis=0).any() else ""


def drawn(category: Ints | Longs, most: int | None, fewest: int, rng: np.random.Generator) -> Longs:
    """Rows to learn from, ascending: at most so many, by the sizes of the categories.

    Args:
        category: ``(n,)``.
        most: Rows wanted; all if None.
        fewest: Of each category, even where that makes more than ``most``.
        rng: Draws them.
    """
    if most is None or most >= len(category):
        return np.arange(len(category))
    chosen = []
    for number in np.unique(category):
        rows = np.flatnonzero(category == number)
        size = max(fewest, round(most * len(rows) / len(category)))
        chosen.append(rng.permutation(rows)[:size])
    return np.sort(np.concatenate(chosen))


def some(columns: Columns, places: Sequence[int]) -> Columns:
    """Some of the columns, by their places."""
    return Columns(
        tuple(columns.names[at] for at in places),
        tuple(columns.kinds[at] for at in places),
        tuple(columns.categories[at] for at in places),
        columns.values[:, list(places)],
    )
