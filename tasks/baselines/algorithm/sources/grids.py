"""Grids of observed values: what each attribute of an applicant may become, what that gains and what it costs.

A source that searches a grid chooses at most one value for each attribute. For a linear boundary the gains of the
attributes add up.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from tasks.baselines.algorithm.sources.kind import SearchSpace
from tasks.numerics.arrays import Floats, Longs

MOST: Final = 40
"""Values of an attribute; of more, as many at equal distances in their order."""
CHUNK: Final = 4096
"""Applicants at a time, for the memory."""


@dataclass(frozen=True)
class Options:
    """Values on offer to ``n`` applicants: ``k`` for each of ``d`` attributes, ascending in what they gain."""

    to: Floats
    """``(n, d, k)`` the value."""
    gain: Floats
    """``(n, d, k)`` by how much it raises the score; 0 where it is not on offer."""

    def picked(self, values: Floats, pick: Longs) -> Floats:
        """``(n, d)`` where applicants stand with the options of ``(n, d)`` numbers; -1 for no change."""
        taken = np.take_along_axis(self.to, np.maximum(pick, 0)[..., None], axis=2)[..., 0]
        return np.where(pick >= 0, taken, values)


class Grid:
    """The values that attributes may take in one search space, and their percentiles."""

    def __init__(self, space: SearchSpace) -> None:
        self.space = space
        self.columns = [np.sort(column) for column in space.observed.T]
        self.values = self._values()

    def chunks(self) -> Iterator[tuple[slice, Options]]:
        """Yields the options of some applicants after the other."""
        for start in range(0, len(self.space.values), CHUNK):
            part = slice(start, start + CHUNK)
            yield part, self._options(self.space.values[part])

    def _values(self) -> Floats:
        """``(d, k)`` values of each attribute within its bounds; filled up with NaN."""
        actions, found = self.space.actions, []
        for column, low, high in zip(self.columns, actions.lower, actions.upper, strict=True):
            distinct = np.unique(column[(column >= low) & (column <= high)])
            if len(distinct) > MOST:
                distinct = distinct[np.rint(np.linspace(0, len(distinct) - 1, MOST)).astype(np.int64)]
            found.append(distinct)
        width = max((len(each) for each in found), default=0)
        return np.array([np.append(each, np.full(width - len(each), np.nan)) for each in found]).reshape(-1, width)

    def _options(self, values: Floats) -> Options:
        actions, slope = self.space.actions, self.space.boundary.slope
        up = np.where(slope >= 0, 1, -1)[:, None]
        ordered = np.where(up > 0, self.values, self.values[:, ::-1])  # in the direction in which the score rises
        delta = ordered[None] - values[..., None]
        allowed = actions.changeable[None, :, None] & (delta * actions.direction[None, :, None] >= 0)
        gain = np.where(allowed, delta * slope[None, :, None], 0.0)
        return Options(np.broadcast_to(ordered, gain.shape), np.nan_to_num(np.maximum(gain, 0.0)))

    def at_most(self, values: Floats) -> Floats:
        """Shares of the observed rows with at most these values; ``(n, d, ...)`` as the values."""
        return self._ranks(values, "right")

    def at_least(self, values: Floats) -> Floats:
        """Shares of the observed rows with at least these values."""
        return 1.0 - self._ranks(values, "left")

    def _ranks(self, values: Floats, side: str) -> Floats:
        found = np.empty(values.shape)
        for j, column in enumerate(self.columns):
            found[:, j] = np.searchsorted(column, values[:, j], side=side) / max(len(column), 1)  # type: ignore[call-overload]
        return found
