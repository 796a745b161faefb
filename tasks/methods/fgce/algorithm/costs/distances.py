"""Cost of recourse: the distance of factual and candidate, or the length of the path between them.

``vector`` is the L2 distance in encoded units (the paper's choice). It may exceed epsilon, since it is not the length
of the path. ``path`` is the least sum of edge weights along feasible steps, and ``hops`` counts those steps (FGCE,
section III; the authors' code counts nodes instead, one more).

Scope: the interface between costs and their users. Sums along paths: ``paths``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numba
import numpy as np

from tasks.feasibility_graph.algorithm.reachability import Component
from tasks.numerics.arrays import Floats


class Costs(Protocol):
    """Costs of the pairs of a component. A cost means nothing where the pair is not feasible."""

    def rows(self, part: Component, rows: slice) -> Floats:
        """``(r, c)`` costs of some factuals to every candidate."""

    def column(self, part: Component, candidate: int) -> Floats:
        """``(f,)`` costs of every factual to one candidate, given by its place."""


@dataclass(frozen=True)
class Vector:
    """L2 distances, computed on demand."""

    points: Floats
    """``(m, p)`` encoded features of the nodes of the induced graph."""
    _varying: dict[int, tuple[Floats, Floats]] = field(default_factory=dict, repr=False)

    def rows(self, part: Component, rows: slice) -> Floats:
        """``(r, c)`` distances."""
        near, far = self._ends(part)
        distances: Floats = _distances(near[rows], far)
        return distances

    def column(self, part: Component, candidate: int) -> Floats:
        """``(f,)`` distances."""
        near, far = self._ends(part)
        distances: Floats = _distances(near, far[candidate : candidate + 1])[:, 0]
        return distances

    def _ends(self, part: Component) -> tuple[Floats, Floats]:
        """Factuals and candidates without the columns that do not vary: those add exactly nothing to a distance."""
        if part.label not in self._varying:
            ends = self.points[np.concatenate([part.factuals, part.candidates])]
            ends = np.ascontiguousarray(ends[:, (ends != ends[:1]).any(axis=0)])
            self._varying[part.label] = ends[: len(part.factuals)], ends[len(part.factuals) :]
        return self._varying[part.label]


@dataclass(frozen=True)
class Tabled:
    """Costs that were computed for all pairs beforehand."""

    table: Mapping[int, Floats]
    """By the component's label, ``(f, c)``."""

    def rows(self, part: Component, rows: slice) -> Floats:
        """``(r, c)`` costs."""
        return self.table[part.label][rows]

    def column(self, part: Component, candidate: int) -> Floats:
        """``(f,)`` costs."""
        return self.table[part.label][:, candidate]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _distances(near: Floats, far: Floats) -> Floats:
    """L2 distances ``(f, c)``, summed column by column."""
    out = np.empty((near.shape[0], far.shape[0]))
    for i in range(near.shape[0]):
        for j in range(far.shape[0]):
            total = 0.0
            for column in range(near.shape[1]):
                total += (near[i, column] - far[j, column]) ** 2
            out[i, j] = np.sqrt(total)
    return out


def feasible(costs: Costs, part: Component) -> Floats:
    """``(f, c)`` costs of a component's pairs, ``inf`` where there is no path: for exact optima of small groups."""
    return np.where(part.reach(), costs.rows(part, slice(None)), np.inf)


def pairs(parts: tuple[Component, ...]) -> int:
    """Number of pairs of factual and candidate in some components: what exact optima have to look at."""
    return sum(len(part.factuals) * len(part.candidates) for part in parts)
