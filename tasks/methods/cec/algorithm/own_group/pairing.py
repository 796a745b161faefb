"""CEC across groups less CEC within the group under any labels: what a relabelling is scored by.

Matches, and the baselines that are means of labelled rows, follow the labels; the model is held.

Scope: one set of labels. Labels: ``relabelled``. The search: ``neighbours``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tasks.counterfactuals.algorithm.nearest.matching import UNMATCHED
from tasks.methods.cec.algorithm import score
from tasks.methods.cec.algorithm.own_group.neighbours import DEPTH, Lists, lists
from tasks.methods.cec.algorithm.pairs import BATCH, View
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.explanation import ModelView


@dataclass(frozen=True)
class Ground:
    """What stays the same under every relabelling of a group and the reference group."""

    explained: ModelView
    among: Bools
    """``(n,)`` the rows of both groups."""
    lists: tuple[Lists, ...]

    @classmethod
    def lay(cls, explained: ModelView, seen: tuple[View, ...], among: Bools, depth: int = DEPTH) -> "Ground":
        """Lists the neighbours of the rows of two groups.

        Args:
            explained: Models and their inputs.
            seen: Its views.
            among: ``(n,)`` the rows of both groups.
            depth: Neighbours listed of each row.
        """
        return cls(explained, among, lists(explained, tuple(view.index for view in seen), among, depth))

    def above(self, member: Bools) -> float:
        """Mean of CEC across less CEC within, over members with both; NaN where there is none.

        Args:
            member: ``(n,)`` who is of the group; the others of both groups are the reference group.
        """
        parts = [np.zeros(0), *self._parts(member)]
        known = np.concatenate(parts)
        known = known[~np.isnan(known)]
        return float(known.mean()) if len(known) else np.nan

    def _parts(self, member: Bools) -> Iterator[Floats]:
        for own in self.lists:
            at = np.flatnonzero(member[own.rows])
            cell = own.pool[member[own.pool]]
            if not len(at) or not len(cell):
                continue
            across, within = own.match(at, self.among & ~member), own.match(at, member)
            both = (across != UNMATCHED) & (within != UNMATCHED)
            three = np.stack([own.rows[at], across, within])[:, both]
            baseline = self.explained.x[cell].mean(axis=0)
            for start in range(0, three.shape[1], BATCH):
                yield self._compared(own.model, three[:, start : start + BATCH], baseline)

    def _compared(self, model: int, three: Longs, baseline: Floats) -> Floats:
        """``(b,)`` of members and their two matches, ``(3, b)``, explained from one baseline."""
        x = self.explained.x[three.ravel()]
        attributions = self.explained.models[model].attribute(x, np.tile(baseline, (len(x), 1)))
        own, across, within = np.split(score.directions(attributions), 3)
        return score.apart(own, across) - score.apart(own, within)
