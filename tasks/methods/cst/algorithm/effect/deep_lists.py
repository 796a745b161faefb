"""Deep lists of neighbours: searched once among rows of both labels, then filtered for any labels.

A list that runs out before ``k`` rows of a label is searched anew among the rows of that label, never cut short.
"""

import math
from dataclasses import dataclass

import numpy as np

from tasks.methods.cst.algorithm.neighbours.distance import Space
from tasks.methods.cst.algorithm.neighbours.search import in_batches, index, nearest
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Bools, Floats, Longs

DEEPEST = 700
"""Neighbours listed of a row at most; more would cost more to filter than a new search of those that run out."""

SPARE = 2.5
"""Times as many neighbours as hold k of the smaller label on average: in a tail of the columns it is rarer."""


@dataclass(frozen=True)
class DeepLists:
    """The rows of two labels with the nearest of them all around each."""

    space: Space
    """``(q,)`` places of the rows."""
    settings: CstSettings
    near: Longs
    """``(q, depth)`` nearest first, without the row itself; -1 beyond the last within reach."""

    @classmethod
    def of(cls, space: Space, members: int, settings: CstSettings) -> "DeepLists":
        """Search ``q`` rows, so many of them members of the group."""
        many = len(space.numeric)
        depth = min(many - 1, DEEPEST, math.ceil(SPARE * settings.k * many / max(members, 1)))
        rows = np.arange(many)
        near = np.full((many, depth), -1, dtype=np.int64)
        for some, found in in_batches(index(space, rows), space, depth, settings, exclude=rows):
            near[some] = found.rows
        return cls(space, settings, near)

    def shares(self, member: Bools) -> tuple[Bools, Floats, Floats]:
        """Who is tested under these labels, and how often each row serves as control and as test.

        Args:
            member: ``(q,)`` members of the group, whose neighbours are counted.

        Returns:
            ``(q,)`` members with ``k`` neighbours of both labels; ``(q,)`` shares c_j and t_j.
        """
        row = np.flatnonzero(member)
        control, test = (self._nearest(row, label) for label in (member, ~member))
        full = (control[:, -1] >= 0) & (test[:, -1] >= 0)
        tested = np.zeros(len(member), dtype=bool)
        tested[row[full]] = True
        many = max(int(full.sum()), 1) * self.settings.k
        counted = [np.bincount(near[full].ravel(), minlength=len(member)) / many for near in (control, test)]
        return tested, counted[0], counted[1]

    def _nearest(self, row: Longs, label: Bools) -> Longs:
        """``(r, k)`` nearest rows of a label around some rows; -1 where fewer are within reach."""
        k, near = self.settings.k, self.near[row]
        found = np.full((len(row), k), -1, dtype=np.int64)
        hit = label[near] & (near >= 0)
        rank = np.cumsum(hit, axis=1, dtype=np.int16)
        full = rank[:, -1] >= k
        found[full] = near[full][(hit & (rank <= k))[full]].reshape(-1, k)
        short = np.flatnonzero(~full & (near[:, -1] >= 0))
        rows = np.flatnonzero(label)
        if len(short) and len(rows):
            blocks, queries = index(self.space, rows), self.space.rows(row[short])
            found[short] = nearest(blocks, queries, k, self.settings, exclude=row[short]).rows
        return found
