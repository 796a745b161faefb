"""Holds what a figure of a paper shows, where the paper prints no number: the points of its curves.

Scope: the values. How they are drawn: ``tasks.reporting.charts.curves``. Which figure of which paper it is for:
``[[figure]]`` in ``data/published``, whose ``drawn_by`` is the drawing's name.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

MOST_POINTS = 200
"""Of a curve: a drawing is looked at, and no table of applicants."""


@dataclass(frozen=True)
class Curve:
    """One line of a drawing; of a grid, one row of it."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    """NaN where there is no value."""


@dataclass(frozen=True)
class Drawing:
    """The curves of one figure on one data set.

    Raises:
        ValueError: A curve has no point, more than ``MOST_POINTS``, or not as many values as places.
    """

    name: str
    """In small letters with hyphens, as ``drawn_by`` of the figure says it: ``acf-density-by-epsilon``."""
    figure: str
    """The paper's own number: ``Figure 4``. One drawing can be for two figures with the same content."""
    title: str
    x: str
    """Title of the axis, with its unit."""
    y: str
    curves: tuple[Curve, ...]

    def __post_init__(self) -> None:
        for curve in self.curves:
            if not 1 <= len(curve.x) <= MOST_POINTS or len(curve.x) != len(curve.y):
                raise ValueError(f"{self.name}, {curve.name}: {len(curve.x)} places and {len(curve.y)} values")

    def plain(self) -> dict[str, Any]:
        """Returns it as plain values, for JSON; null stands where there is no value."""
        return {
            "name": self.name,
            "figure": self.figure,
            "title": self.title,
            "x": self.x,
            "y": self.y,
            "curves": [{"name": c.name, "x": list(c.x), "y": list(map(_finite, c.y))} for c in self.curves],
        }


def curves(x: Sequence[float], series: Mapping[str, Sequence[float]]) -> tuple[Curve, ...]:
    """Returns curves over the same places."""
    return tuple(_curves(x, series))


def _curves(x: Sequence[float], series: Mapping[str, Sequence[float]]) -> Iterator[Curve]:
    for name, y in series.items():
        yield Curve(name, tuple(map(float, x)), tuple(map(float, y)))


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
