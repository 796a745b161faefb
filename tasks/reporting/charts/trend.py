"""Trend charts: one measure over the years, a panel per group."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, pairwise

from tasks.reporting.charts import layout
from tasks.reporting.charts.rows import OUTSIDE
from tasks.reporting.charts.values import (
    VERDICTS,
    Estimate,
    Side,
    State,
    Tone,
    Unit,
    clean,
    ends_text,
    exact,
    isolated,
    people,
    said,
    state_of,
    value_text,
    width,
)

# --------------------------------------------------------------------------------------------------------------------
# A panel of a trend: years from left to right, values upwards, one group and the reference groups behind it.


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
    axis: layout.Axis
    unit: Unit
    limit: float | None
    side: Side
    x: float
    top: float
    width: float
    values: float
    """Room of a number right of the last year; the same in all panels."""
    sheet: layout.Sheet

    @cached_property
    def _title(self) -> list[layout.Text]:
        colour: layout.Colour = "soft" if self.reference else "ink"
        baseline = self.top + self.sheet.size
        return layout.text_lines(self.label, self.x, baseline, self.width, self.sheet, 2, colour, bold=True)

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
        # No number stands right of the last year where all are withheld; half of the year itself does.
        right = max(self.values, width(str(self.years[-1]), self.sheet.size) / 2 - _INSET)
        return self.x + labels + 6, self.x + self.width - right - 4

    @cached_property
    def _notes(self) -> list[layout.Text]:
        """Why years have no mark, under the years."""
        estimates = {year: estimate for year, estimate, _ in self.points}
        gaps = [
            (year, "No data." if year not in estimates else estimates[year].sentence)
            for year in self.years
            if year not in estimates or estimates[year].point is None
        ]
        notes = [
            f"{', '.join(str(year) for year, _ in same)}: {why}" for why, same in groupby(gaps, lambda gap: gap[1])
        ]
        baseline = self._lower + 2 * self.sheet.leading + 4
        return layout.text_lines(" ".join(notes), self.x, baseline, self.width, self.sheet, 4, "soft")

    @property
    def bottom(self) -> float:
        """Where the panel ends."""
        return self._lower + (1 + len(self._notes)) * self.sheet.leading + 8

    def shapes(self) -> Iterator[layout.Shape]:
        """From back to front."""
        yield from self._title
        yield from self._ground()
        label_width = max(width(str(year), self.sheet.size) for year in self.years) + 8
        gap = self._x(self.years[0] + 1) - self._x(self.years[0]) if len(self.years) > 1 else label_width
        step = int(-(-label_width // gap))
        for year_labels_year in self.years[::-1][::step]:
            yield layout.Text(
                self._x(year_labels_year), self._lower + self.sheet.leading + 2, str(year_labels_year), anchor="middle"
            )
        for yearly in self.behind:
            yield from self._line(yearly, "soft")
            yield from (
                layout.marker(self._x(year), self._y(estimate.point), None, reference=True)
                for year, estimate in yearly
                if estimate.point is not None
            )
        colour: Tone = "soft" if self.reference else "accent"
        yield from self._line([(year, estimate) for year, estimate, _ in self.points], colour)
        for year, estimate, state in self.points:
            yield from self._mark(self._x(year), estimate, state)
        years_with_value = {year for year, estimate, _ in self.points if estimate.point is not None}
        y = self._lower - 9
        crosses = [
            f"{layout.segment(x - 3, y - 3, x + 3, y + 3)} {layout.segment(x - 3, y + 3, x + 3, y - 3)}"
            for x in (self._x(year) for year in self.years if year not in years_with_value)
        ]
        if crosses:
            yield layout.PathShape(" ".join(crosses), "thin", "soft")
        estimates = [(year, estimate) for year, estimate, _ in self.points if estimate.point is not None]
        if estimates:  # the number of the last mark, next to it
            year, estimate = max(estimates, key=lambda pair: pair[0])
            y = self._y(estimate.point or 0.0) + self.sheet.size * 0.36
            yield layout.Text(self._x(year) + 10, y, value_text(estimate, self.unit), bold=True)
        yield from self._notes

    def _x(self, year: float) -> float:
        left_side, right = self._sides
        first, last = self.years[0], self.years[-1]
        if first == last:
            return (left_side + right) / 2
        return left_side + _INSET + (right - left_side - 2 * _INSET) * (year - first) / (last - first)

    def _y(self, value: float) -> float:
        return self.axis.at(value, self._lower, self._upper)

    def _ground(self) -> Iterator[layout.Shape]:
        """Shade, grid with its labels, the line of 0, limit and breaks."""
        left_side, right = self._sides
        if self.limit is not None and (edge := self._lower if self.side == "at_least" else self._upper):
            y = self._y(self.limit)
            yield layout.PathShape(layout.box(left_side, min(y, edge), right, max(y, edge)), "fill", "shade")
        ticks = [(self._y(tick), tick) for tick in self.axis.ticks]
        yield layout.PathShape(
            " ".join(layout.segment(left_side, y, right, y) for y, tick in ticks if tick), "faint", "line"
        )
        yield layout.PathShape(layout.segment(left_side, self._y(0), right, self._y(0)), "thin", "ink")
        for (y, _), label in zip(ticks, self.axis.labels(self.unit), strict=True):
            yield layout.Text(left_side - 6, y + self.sheet.size * 0.36, label, "soft", anchor="end")
        if self.limit is not None:
            yield layout.PathShape(
                layout.segment(left_side, self._y(self.limit), right, self._y(self.limit)), "dashed", "breach"
            )
        breaks = [self._x(year - 0.5) for year in self.breaks if self.years[0] < year <= self.years[-1]]
        if breaks:
            yield layout.PathShape(
                " ".join(layout.segment(x, self._upper, x, self._lower) for x in breaks), "dotted", "ink"
            )

    def _line(self, yearly: Yearly, colour: Tone) -> Iterator[layout.PathShape]:
        """From year to year, but not across a gap or a break."""
        points = sorted((year, estimate.point) for year, estimate in yearly if estimate.point is not None)
        parts = [
            layout.segment(self._x(a), self._y(start), self._x(b), self._y(end))
            for (a, start), (b, end) in pairwise(points)
            if b == a + 1 and b not in self.breaks
        ]
        if parts:
            yield layout.PathShape(" ".join(parts), "thin", colour)

    def _mark(self, x: float, estimate: Estimate, state: State | None) -> Iterator[layout.PathShape]:
        """Interval with caps or arrows, and the mark of the value."""
        if estimate.point is None:
            return
        (low, high), colour = estimate.ends, layout.tone_of(state, reference=self.reference)
        down, up = low < self.axis.low, high > self.axis.high
        lower, upper = self._y(low), self._y(high)
        caps = [layout.segment(x - 3.5, y, x + 3.5, y) for y, out in ((lower, down), (upper, up)) if not out]
        yield layout.PathShape(
            " ".join([layout.segment(x, lower - 5 * down, x, upper + 5 * up), *caps]), "thin", colour
        )
        if down:
            yield layout.PathShape(layout.path("M", x, lower, "L", x - 4, lower - 7, "H", x + 4, "Z"), "fill", colour)
        if up:
            yield layout.PathShape(layout.path("M", x, upper, "L", x - 4, upper + 7, "H", x + 4, "Z"), "fill", colour)
        yield layout.marker(x, self._y(estimate.point), state, reference=self.reference)


# --------------------------------------------------------------------------------------------------------------------
# Trend: one measure over the years, a panel a group on the same axis, with breaks, gaps and the limit.


@dataclass(frozen=True, kw_only=True)
class Point(Estimate):
    """The estimate of a year."""

    year: int


@dataclass(frozen=True, kw_only=True)
class Series:
    """A group over the years. A year without a point is a gap."""

    label: str
    points: tuple[Point, ...]
    reference: bool = False


@dataclass(frozen=True, kw_only=True)
class Trend:
    """Groups over the years.

    Raises:
        ValueError: no point, an infinite limit, two points of one year, or a state that is not in ``states``.
    """

    title: str
    unit: Unit
    series: tuple[Series, ...]
    years: tuple[int, int] | None = None
    """First and last year; None: those of the points."""
    breaks: tuple[tuple[int, str], ...] = ()
    """First year after a break, and what changed: no line is drawn across."""
    limit: float | None = None
    side: Side = "at_least"
    interval: str = "95 % interval"
    states: Mapping[str, State] = field(default_factory=lambda: VERDICTS)
    head: str = "Group"

    def __post_init__(self) -> None:
        if not any(series.points for series in self.series):
            raise ValueError(f"no point: {self.title}")
        if self.limit is not None and not math.isfinite(self.limit):
            raise ValueError(f"a limit is finite: {self.title}")
        for series in self.series:
            years = [point.year for point in series.points]
            if len(set(years)) < len(years):
                raise ValueError(f"two points of one year: {series.label}")
            for point in series.points:
                state_of(point, self.states)

    @property
    def _span(self) -> tuple[int, ...]:
        """All years from the first to the last, those without data too."""
        all_years = [*(self.years or ()), *(point.year for series in self.series for point in series.points)]
        return tuple(range(min(all_years), max(all_years) + 1))

    def description(self) -> list[str]:
        """A sentence for each group and year, then breaks and limit."""
        first = f"Unit: {self.unit.name}. Years {self._span[0]} to {self._span[-1]}."
        sentences = []
        for series in self.series:
            name = f"{isolated(series.label)}{', reference' if series.reference else ''}"
            for year, point in self._points(series).items():
                text = "no data."
                if point:
                    text = said(point, self.unit, self.interval, state_of(point, self.states), _note(point))
                sentences.append(f"{name}, {year}: {text}")
        sentences += [f"Break from {year}: {words}." for year, words in self.breaks]
        if self.limit is not None:
            limit = exact(self.limit, self.unit)
            sentences.append(f"Dashed line: limit {limit}; {OUTSIDE[self.side]} it: outside the limit.")
        return [first, *sentences]

    def _points(self, series: Series) -> dict[int, Point | None]:
        points_by_year = {point.year: point for point in series.points}
        return {year: points_by_year.get(year) for year in self._span}

    def table(self) -> layout.Table:
        """A row for each group and year, then one for each break and the limit."""
        header = (self.head, "Year", self.unit.name, self.interval, "n", "State", "Note")
        blank, rows = ("",) * 4, []
        for series in self.series:
            label = series.label + " (reference)" * series.reference
            for year, point in self._points(series).items():
                if point is None:
                    rows.append((label, str(year), *blank, "No data."))
                    continue
                ends, state = ends_text(point, self.unit), state_of(point, self.states)
                interval, word = f"{ends[0]} to {ends[1]}" if ends else "", state.word if state else ""
                numbers = value_text(point, self.unit), interval, people(point.n)
                rows.append((label, str(year), *numbers, word, _note(point)))
        rows += [("Break", str(year), *blank, words) for year, words in self.breaks]
        rows += [("Limit", "", exact(self.limit, self.unit), *blank)] if self.limit is not None else []
        return layout.Table(header, tuple(rows))

    def draw(self, sheet: layout.Sheet) -> layout.Drawing:
        """Panels of equal size: two in a row on a wide sheet, one above the other on a narrow one."""
        columns = 1 if sheet.stacked or len(self.series) == 1 else 2
        gutter = 20.0
        width = (sheet.width - gutter * (columns - 1)) / columns
        y, shapes = 4.0, list[layout.Shape]()
        points = [point for series in self.series for point in series.points]
        drawn = [point for point in points if point.point is not None]
        values = sheet.room((value_text(point, self.unit) for point in drawn), bold=True)
        axis = layout.axis_of(points, [] if self.limit is None else [self.limit], self.unit, most=6)
        for first in range(0, len(self.series), columns):
            row = self.series[first : first + columns]
            panels = [
                Panel(
                    values=values,
                    label=series.label + " (reference)" * series.reference,
                    years=self._span,
                    points=[(point.year, point, state_of(point, self.states)) for point in series.points],
                    behind=[
                        [(point.year, point) for point in other.points]
                        for other in self.series
                        if other.reference and other is not series
                    ],
                    breaks=[year for year, _ in self.breaks],
                    reference=series.reference,
                    axis=axis,
                    unit=self.unit,
                    limit=self.limit,
                    side=self.side,
                    x=i * (width + gutter),
                    top=y,
                    width=width,
                    sheet=sheet,
                )
                for i, series in enumerate(row)
            ]
            shapes += [shape for panel in panels for shape in panel.shapes()]
            y = max(panel.bottom for panel in panels) + 12
        used = {point.state for point in drawn}
        entries = [layout.marker_entry(state) for name, state in self.states.items() if name in used]
        entries += [layout.reference_entry(isolated(series.label)) for series in self.series if series.reference]
        entries += [layout.limit_entry(f"limit {exact(self.limit, self.unit)}")] if self.limit is not None else []
        entries += [layout.break_entry(year, clean(words)) for year, words in self.breaks]
        legend_shapes, bottom = layout.legend(entries, y, sheet)
        return layout.Drawing(sheet.width, bottom + 4, sheet.size, (*shapes, *legend_shapes))


def _note(point: Point) -> str:
    return point.note if point.point is not None else point.sentence
