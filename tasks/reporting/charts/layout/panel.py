"""A panel of a trend: years from left to right, values upwards, one group and the reference groups behind it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise

from tasks.reporting.charts.layout.axis import Axis
from tasks.reporting.charts.layout.shapes import (
    Colour,
    Path,
    Shape,
    Sheet,
    Text,
    box,
    marker,
    path,
    segment,
    tone_of,
)
from tasks.reporting.charts.layout.words import text_lines
from tasks.reporting.charts.lettering import width
from tasks.reporting.charts.marks import Estimate, Side, State, Tone, value_text
from tasks.reporting.charts.numbers import Unit

_HEIGHT = 120.0
"""Of the area between the axes."""
_INSET = 10.0
"""Between the first or last year and the edge."""
Yearly = Sequence[tuple[int, Estimate]]


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One group over the years, at its place in the drawing."""

    label: str
    years: Sequence[int]
    points: Sequence[tuple[int, Estimate, State | None]]
    behind: Sequence[Yearly]
    """Reference groups, drawn grey and without intervals."""
    breaks: Sequence[int]
    """First years after a break."""
    reference: bool
    axis: Axis
    unit: Unit
    limit: float | None
    side: Side
    left: float
    top: float
    width: float
    values: float
    """Room of a number right of the last year; the same in all panels."""
    sheet: Sheet

    @cached_property
    def _title(self) -> list[Text]:
        colour: Colour = "soft" if self.reference else "ink"
        baseline = self.top + self.sheet.size
        return text_lines(self.label, self.left, baseline, self.width, self.sheet, 2, colour, bold=True)

    @property
    def _upper(self) -> float:
        return self.top + len(self._title) * self.sheet.leading + 10

    @property
    def _lower(self) -> float:
        return self._upper + _HEIGHT

    @cached_property
    def _sides(self) -> tuple[float, float]:
        """Left and right edge of the area between the axes."""
        labels = self.sheet.room(self.axis.labels(self.unit))
        return self.left + labels + 6, self.left + self.width - self.values - 4

    @cached_property
    def _notes(self) -> list[Text]:
        """Why years have no mark, under the years."""
        there = {year: estimate for year, estimate, _ in self.points}
        gaps = [
            (year, "No data." if year not in there else there[year].sentence)
            for year in self.years
            if year not in there or there[year].point is None
        ]
        said = [f"{', '.join(str(year) for year, _ in same)}: {why}" for why, same in groupby(gaps, lambda gap: gap[1])]
        baseline = self._lower + 2 * self.sheet.leading + 4
        return text_lines(" ".join(said), self.left, baseline, self.width, self.sheet, 4, "soft")

    @property
    def bottom(self) -> float:
        """Where the panel ends."""
        return self._lower + (1 + len(self._notes)) * self.sheet.leading + 8

    def shapes(self) -> Iterator[Shape]:
        """From back to front."""
        yield from self._title
        yield from self._ground()
        yield from self._year_labels()
        for yearly in self.behind:
            yield from self._line(yearly, "soft")
            yield from (
                marker(self._x(year), self._y(each.point), None, reference=True)
                for year, each in yearly
                if each.point is not None
            )
        yield from self._line([(year, each) for year, each, _ in self.points], self._colour)
        for year, estimate, state in self.points:
            yield from self._mark(self._x(year), estimate, state)
        yield from self._gaps()
        yield from self._last()
        yield from self._notes

    @property
    def _colour(self) -> Tone:
        return "soft" if self.reference else "accent"

    def _x(self, year: float) -> float:
        left, right = self._sides
        first, last = self.years[0], self.years[-1]
        if first == last:
            return (left + right) / 2
        return left + _INSET + (right - left - 2 * _INSET) * (year - first) / (last - first)

    def _y(self, value: float) -> float:
        return self.axis.at(value, self._lower, self._upper)

    def _ground(self) -> Iterator[Shape]:
        """Shade, grid with its labels, the line of 0, limit and breaks."""
        left, right = self._sides
        if self.limit is not None and (edge := self._lower if self.side == "at_least" else self._upper):
            y = self._y(self.limit)
            yield Path(box(left, min(y, edge), right, max(y, edge)), "fill", "shade")
        ticks = [(self._y(tick), tick) for tick in self.axis.ticks]
        yield Path(" ".join(segment(left, y, right, y) for y, tick in ticks if tick), "faint", "line")
        yield Path(segment(left, self._y(0), right, self._y(0)), "thin", "ink")
        for (y, _), label in zip(ticks, self.axis.labels(self.unit), strict=True):
            yield Text(left - 6, y + self.sheet.size * 0.36, label, "soft", anchor="end")
        if self.limit is not None:
            yield Path(segment(left, self._y(self.limit), right, self._y(self.limit)), "dashed", "breach")
        breaks = [self._x(year - 0.5) for year in self.breaks if self.years[0] < year <= self.years[-1]]
        if breaks:
            yield Path(" ".join(segment(x, self._upper, x, self._lower) for x in breaks), "dotted", "ink")

    def _year_labels(self) -> Iterator[Text]:
        """Years under the axis, counted back from the last one: as many as fit."""
        needed = max(width(str(year), self.sheet.size) for year in self.years) + 8
        gap = self._x(self.years[0] + 1) - self._x(self.years[0]) if len(self.years) > 1 else needed
        step = int(-(-needed // gap))
        for year in self.years[::-1][::step]:
            yield Text(self._x(year), self._lower + self.sheet.leading + 2, str(year), anchor="middle")

    def _line(self, yearly: Yearly, colour: Tone) -> Iterator[Path]:
        """From year to year, but not across a gap or a break."""
        drawn = sorted((year, each.point) for year, each in yearly if each.point is not None)
        parts = [
            segment(self._x(a), self._y(start), self._x(b), self._y(end))
            for (a, start), (b, end) in pairwise(drawn)
            if b == a + 1 and b not in self.breaks
        ]
        if parts:
            yield Path(" ".join(parts), "thin", colour)

    def _mark(self, x: float, estimate: Estimate, state: State | None) -> Iterator[Path]:
        """Interval with caps or arrows, and the mark of the value."""
        if estimate.point is None:
            return
        (low, high), colour = estimate.ends, tone_of(state, reference=self.reference)
        down, up = low < self.axis.low, high > self.axis.high
        lower, upper = self._y(low), self._y(high)
        caps = [segment(x - 3.5, y, x + 3.5, y) for y, out in ((lower, down), (upper, up)) if not out]
        yield Path(" ".join([segment(x, lower - 5 * down, x, upper + 5 * up), *caps]), "thin", colour)
        if down:
            yield Path(path("M", x, lower, "L", x - 4, lower - 7, "H", x + 4, "Z"), "fill", colour)
        if up:
            yield Path(path("M", x, upper, "L", x - 4, upper + 7, "H", x + 4, "Z"), "fill", colour)
        yield marker(x, self._y(estimate.point), state, reference=self.reference)

    def _gaps(self) -> Iterator[Path]:
        """A small cross in a year without a mark."""
        drawn = {year for year, each, _ in self.points if each.point is not None}
        y = self._lower - 9
        crosses = [
            f"{segment(x - 3, y - 3, x + 3, y + 3)} {segment(x - 3, y + 3, x + 3, y - 3)}"
            for x in (self._x(year) for year in self.years if year not in drawn)
        ]
        if crosses:
            yield Path(" ".join(crosses), "thin", "soft")

    def _last(self) -> Iterator[Text]:
        """The number of the last mark, beside it."""
        drawn = [(year, each) for year, each, _ in self.points if each.point is not None]
        if drawn:
            year, each = max(drawn, key=lambda one: one[0])
            y = self._y(each.point or 0.0) + self.sheet.size * 0.36
            yield Text(self._x(year) + 10, y, value_text(each, self.unit), bold=True)
