"""CEC across groups less CEC within the group under any labels: what a relabelling is scored by.

Matches, and the baselines that are means of labelled rows, follow the labels; the model is held.

Scope: one set of labels. Labels: ``relabelled``. The search: ``neighbours``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numba
import numpy as np

from tasks.counterfactuals.algorithm.nearest.matching import UNMATCHED
from tasks.methods.cec.algorithm import score
from tasks.methods.cec.algorithm.own_group.neighbours import DEPTH, Lists, lists
from tasks.methods.cec.algorithm.pairs import BATCH, View
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.attributions.linear import Linear
from tasks.numerics.explanation import ModelView


@dataclass(frozen=True)
class Ground:
    """What stays the same under every relabelling of a group and the reference group."""

    explained: ModelView
    among: Bools
    """``(n,)`` the rows of both groups."""
    lists: tuple[Lists, ...]
    asked: Bools | None = None
    """``(n,)`` the rows that are asked if they are members; None: all."""

    @classmethod
    def lay(cls, explained: ModelView, seen: tuple[View, ...], among: Bools, depth: int = DEPTH) -> "Ground":
        """Lists the neighbours of the rows of two groups.

        Args:
            explained: Models and their inputs.
            seen: Its views.
            among: ``(n,)`` the rows of both groups.
            depth: Neighbours listed of each row.
        """
        return cls(explained, among, listed(explained, seen, among, depth))

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
        members, others = np.flatnonzero(member), self.among & ~member
        asked = members if self.asked is None else members[self.asked[members]]
        for own in self.lists:
            at, cell = own.place[asked], members[own.in_pool[members]]
            at = at[at >= 0]
            if not len(at) or not len(cell):
                continue
            across, within = own.match(at, others), own.match(at, member)
            both = (across != UNMATCHED) & (within != UNMATCHED)
            three = np.vstack([own.rows[at][both], across[both], within[both]])
            baseline = _mean(self.explained.x, cell)
            for start in range(0, three.shape[1], BATCH):
                yield self._compared(own.model, three[:, start : start + BATCH], baseline)

    def _compared(self, model: int, three: Longs, baseline: Floats) -> Floats:
        """``(b,)`` of members and their two matches, ``(3, b)``, explained from one baseline."""
        explains = self.explained.models[model]
        if isinstance(explains, Linear):
            found: Floats = _of_linear(self.explained.x, explains.coefficients, baseline, three)
            return found
        return compared(self.explained, model, three, baseline)


def listed(
    explained: ModelView, seen: tuple[View, ...], among: Bools, depth: int = DEPTH, of: Bools | None = None
) -> tuple[Lists, ...]:
    """The neighbours among some rows ``(n,)``, ``of`` some of them: listed once for several pairs of groups."""
    return lists(explained, tuple(view.index for view in seen), among, depth, of)


def compared(explained: ModelView, model: int, three: Longs, baseline: Floats) -> Floats:
    """CEC of members with their first match less that with their second, ``(b,)``; NaN where one has no direction.

    Args:
        explained: Models and their inputs.
        model: Which of them explains.
        three: ``(3, b)`` members, and their matches.
        baseline: ``(p,)`` of all explanations.
    """
    x = explained.x[three.ravel()]
    attributions = explained.models[model].attribute(x, np.tile(baseline, (len(x), 1)))
    own, across, within = np.split(score.directions(attributions), 3)
    return score.apart(own, across) - score.apart(own, within)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _of_linear(x: Floats, weights: Floats, baseline: Floats, three: Longs) -> Floats:
    """The same as ``compared`` of a linear model, whose attributions are ``weights * (x - baseline)``."""
    size, width = three.shape[1], x.shape[1]
    found, g, length = np.full(size, np.nan), np.empty((3, width)), np.empty(3)
    for i in range(size):
        for k in range(3):
            squared = 0.0
            for j in range(width):
                g[k, j] = (x[three[k, i], j] - baseline[j]) * weights[j]
                squared += g[k, j] * g[k, j]
            length[k] = np.sqrt(squared)
        if min(length[0], length[1], length[2]) <= score.EPSILON:
            continue
        across = within = 0.0
        for j in range(width):
            own = g[0, j] / (length[0] + score.EPSILON)
            across += (own - g[1, j] / (length[1] + score.EPSILON)) ** 2
            within += (own - g[2, j] / (length[2] + score.EPSILON)) ** 2
        found[i] = min(np.sqrt(across) / 2, 1.0) - min(np.sqrt(within) / 2, 1.0)
    return found


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _mean(x: Floats, rows: Longs) -> Floats:
    """``(p,)`` mean of some rows, which are added up one after the other and not copied first."""
    total = np.zeros(x.shape[1])
    for row in rows:
        for j in range(x.shape[1]):
            total[j] += x[row, j]
    found: Floats = total / rows.shape[0]
    return found
