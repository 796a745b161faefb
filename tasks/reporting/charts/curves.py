"""Curves: values over a numeric axis, a panel a curve with the others faint behind it, all on the same two axes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.reporting.charts.element import Table
from tasks.reporting.charts.layout.axis import Axis, between
from tasks.reporting.charts.layout.plot import apart
from tasks.reporting.charts.layout.shapes import Drawing, Path, Shape, Sheet, Text, circle, path, segment
from tasks.reporting.charts.layout.words import text_lines
from tasks.reporting.charts.lettering import clean, isolated
from tasks.reporting.charts.numbers import Unit, exact

_HEIGHT, _GUTTER, _DOTS = 110.0, 20.0, 16
"""Of the area of a panel; between two panels; points that are marked one by one."""


@dataclass(frozen=True)
class Curve:
    """A line through its points; a value that is no number is a gap."""

    label: str
    points: tuple[tuple[float, float], ...]

    @property
    def defined(self) -> list[tuple[float, float]]:
        """The points that have a value."""
        return [(x, y) for x, y in self.points if math.isfinite(y)]


@dataclass(frozen=True)
class Curves:
    """Curves over one axis.

    Raises:
        ValueError: no curve has a value.
    """

    title: str
    x: Unit
    y: Unit
    curves: tuple[Curve, ...]

    def __post_init__(self) -> None:
        if not any(curve.defined for curve in self.curves):
            raise ValueError(f"no value: {self.title}")

    def description(self) -> list[str]:
        """A sentence for each curve: where it begins, where it ends, its least and its greatest value."""
        return [f"{self.y.name} over {self.x.name}.", *(self._said(curve) for curve in self.curves)]

    def _said(self, curve: Curve) -> str:
        points = curve.defined
        if not points:
            return f"{isolated(curve.label)}: no value."
        at = [f"{exact(y, self.y)} at {exact(x, self.x)}" for x, y in (points[0], points[-1])]
        low, high = (exact(end(y for _, y in points), self.y) for end in (min, max))
        return f"{isolated(curve.label)}: from {at[0]} to {at[1]}, between {low} and {high}."

    def table(self) -> Table:
        """A row for each point of each curve."""
        rows = [
            (curve.label, exact(x, self.x), exact(y, self.y) if math.isfinite(y) else "no value")
            for curve in self.curves
            for x, y in curve.points
        ]
        return Table(("Curve", self.x.name, self.y.name), tuple(rows))

    def draw(self, sheet: Sheet) -> Drawing:
        """Panels of equal size: two beside each other on a wide sheet, one above the other on a narrow one."""
        columns = 1 if sheet.stacked or len(self.curves) == 1 else 2
        width = (sheet.width - _GUTTER * (columns - 1)) / columns
        shapes, y = list[Shape](), 4.0
        for first in range(0, len(self.curves), columns):
            row = self.curves[first : first + columns]
            panels = [_Panel(self, curve, i * (width + _GUTTER), y, width, sheet) for i, curve in enumerate(row)]
            shapes += [shape for panel in panels for shape in panel.shapes()]
            y = max(panel.bottom for panel in panels) + 12
        words = f"{clean(self.y.name)} over {clean(self.x.name)}"
        caption = text_lines(words, 0, y + sheet.size, sheet.width, sheet, 3, "soft")
        return Drawing(sheet.width, y + len(caption) * sheet.leading + 6, sheet.size, (*shapes, *caption))

    def axes(self) -> tuple[Axis, Axis]:
        """The two axes of all panels; both hold 0."""
        points = [point for curve in self.curves for point in curve.defined]
        across, up = (([point[i] for point in points]) for i in (0, 1))
        return between(min(across), max(across), self.x, most=5), between(min(up), max(up), self.y, most=5)


@dataclass(frozen=True)
class _Panel:
    """One curve among the others."""

    chart: Curves
    curve: Curve
    left: float
    top: float
    width: float
    sheet: Sheet

    @property
    def bottom(self) -> float:
        """Where it ends, with the labels of its axis."""
        return self._floor + self.sheet.leading

    @property
    def _ceiling(self) -> float:
        return self.top + 2 * self.sheet.leading + 4

    @property
    def _floor(self) -> float:
        return self._ceiling + _HEIGHT

    def shapes(self) -> list[Shape]:
        across, up = self.chart.axes()
        labels = up.labels(self.chart.y)
        start, end = self.left + self.sheet.room(labels) + 6, self.left + self.width - 8
        ticks = [up.at(tick, self._floor, self._ceiling) for tick in up.ticks]
        others = [each for each in self.chart.curves if each is not self.curve]
        lines = [self._line(each, across, up, start, end) for each in others]
        return [
            *text_lines(
                self.curve.label, self.left, self.top + self.sheet.size, self.width, self.sheet, 2, "ink", bold=True
            ),
            Path(" ".join(segment(start, y, end, y) for y in ticks), "faint", "line"),
            *(Path(line, "faint", "soft") for line in lines if line),
            *self._own(across, up, start, end),
            *(
                Text(start - 6, y + self.sheet.size * 0.36, label, anchor="end")
                for y, label in zip(ticks, labels, strict=True)
            ),
            *self._places(across, start, end),
        ]

    def _own(self, across: Axis, up: Axis, start: float, end: float) -> list[Path]:
        """The curve, and its points where they are few."""
        line = self._line(self.curve, across, up, start, end)
        points = [self._at(point, across, up, start, end) for point in self.curve.defined]
        found = [Path(line, "bar", "accent")] if line else []
        if len(points) <= _DOTS:
            found += [Path(" ".join(circle(x, y, 4) for x, y in points), "fill", "accent")] if points else []
        return found

    def _at(self, point: tuple[float, float], across: Axis, up: Axis, start: float, end: float) -> tuple[float, float]:
        return across.at(point[0], start, end), up.at(point[1], self._floor, self._ceiling)

    def _line(self, curve: Curve, across: Axis, up: Axis, start: float, end: float) -> str:
        """The path through neighbouring points that have values; empty where no two of them stand together."""
        parts, pen = list[str](), False
        for x, y in curve.points:
            if not math.isfinite(y):
                pen = False
                continue
            parts.append(path("L" if pen else "M", *self._at((x, y), across, up, start, end)))
            pen = True
        return " ".join(parts) if any(part.startswith("L") for part in parts) else ""

    def _places(self, across: Axis, start: float, end: float) -> Sequence[Text]:
        """Labels under the axis; every second where all of them would collide."""
        labels = across.labels(self.chart.x)
        for step in (1, 2, max(1, len(labels) - 1)):
            kept = list(zip(across.ticks, labels, strict=True))[::step]
            found = [
                Text(across.at(tick, start, end), self._floor + self.sheet.leading, label, anchor="middle")
                for tick, label in kept
            ]
            if apart(found, self.sheet):
                return found
        return ()
