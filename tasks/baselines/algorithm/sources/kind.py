"""The kind "counterfactual source": applicants below a linear boundary in, accepted points and their costs out.

Scope: the protocol and its arrays. Systems: one file each. Names: ``registry``.
"""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from tasks.counterfactuals.algorithm.recourse.actions import Actions
from tasks.counterfactuals.algorithm.recourse.targets import OUT_OF_REACH, Boundary
from tasks.numerics.arrays import Bools, Floats

ARRIVED: Final = 1e-9
"""Relative to the distance from the boundary: what counts as having reached it."""


@dataclass(frozen=True)
class SearchSpace:
    """``n`` applicants with ``d`` attributes, and where they may look for a point. Units: standard deviations."""

    values: Floats
    """``(n, d)``."""
    boundary: Boundary
    """Above 0 is accepted."""
    actions: Actions
    """What may be changed, how far, in which direction and steps."""
    observed: Floats
    """``(m, d)`` rows that percentiles are taken from, and whose values may be taken."""

    @property
    def gap(self) -> Floats:
        """``(n,)`` what each applicant's score is short of the boundary; 0 where it is accepted already."""
        return np.maximum(-score(self.values, self.boundary), 0.0)


@dataclass(frozen=True)
class Points:
    """Of ``n`` applicants the accepted points."""

    point: Floats
    """``(n, d)``; the applicant itself where it is refused, or accepted already."""
    cost: Floats
    """``(n,)`` in the source's own measure; NaN where refused."""
    refusal: NDArray[np.str_]
    """``(n,)`` empty, or the reason."""
    proven: Bools
    """``(n,)`` whether the source proved that no cheaper point exists, by its own measure."""

    @property
    def reached(self) -> Bools:
        """``(n,)`` applicants that are not refused."""
        return np.isfinite(self.cost)


class Source(Protocol):
    """A system that finds counterfactual points."""

    def __call__(self, space: SearchSpace) -> Points:
        """The points of all applicants; the same space, the same points."""
        ...


def points(space: SearchSpace, point: Floats, cost: Floats, proven: Bools | None = None) -> Points:
    """Points of which those without a cost are refused as out of reach.

    Args:
        space: The applicants.
        point: ``(n, d)``.
        cost: ``(n,)``; NaN where there is no way.
        proven: ``(n,)``; all if None.
    """
    reached = np.isfinite(cost)
    return Points(
        np.where(reached[:, None], point, space.values),
        np.where(reached, cost, np.nan),
        np.where(reached, "", OUT_OF_REACH),
        np.ones(len(cost), np.bool_) if proven is None else proven,
    )


def score(values: Floats, boundary: Boundary) -> Floats:
    """``(n,)`` scores; equal rows have equal ones, which matrix products do not promise."""
    found: Floats = np.einsum("ij,j->i", values, boundary.slope) + boundary.intercept
    return found
