"""Trend: one measure over the years, a panel a group on the same axis, with breaks, gaps and the limit."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from tasks.reporting.charts.element import Table
from tasks.reporting.charts.forest import OUTSIDE
from tasks.reporting.charts.layout.axis import Axis, axis_of
from tasks.reporting.charts.layout.legend import (
    Entry,
    break_entry,
    legend,
    limit_entry,
    marker_entry,
    reference_entry,
)
from tasks.reporting.charts.layout.panel import Panel
from tasks.reporting.charts.layout.shapes import Drawing, Shape, Sheet
from tasks.reporting.charts.lettering import clean, isolated
from tasks.reporting.charts.marks import VERDICTS, Estimate, Side, State, ends_text, said, state_of, value_text
from tasks.reporting.charts.numbers import Unit, exact, people


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
        found = [*(self.years or ()), *(point.year for series in self.series for point in series.points)]
        return tuple(range(min(found), max(found) + 1))

    def description(self) -> list[str]:
        """A sentence for each group and year, then breaks and limit."""
        first = f"Unit: {self.unit.name}. Years {self._span[0]} to {self._span[-1]}."
        sentences = [
            f"{isolated(series.label)}{', reference' if series.reference else ''}, {year}: "
            + (self._said(point) if point else "no data.")
            for series in self.series
            for year, point in self._points(series).items()
        ]
        breaks = [f"Break from {year}: {words}." for year, words in self.breaks]
        return [first, *sentences, *breaks, *self._limit()]

    def _points(self, series: Series) -> dict[int, Point | None]:
        found = {point.year: point for point in series.points}
        return {year: found.get(year) for year in self._span}

    def _said(self, point: Point) -> str:
        return said(point, self.unit, self.interval, state_of(point, self.states), _note(point))

    def _limit(self) -> list[str]:
        if self.limit is None:
            return []
        return [f"Dashed line: limit {exact(self.limit, self.unit)}; {OUTSIDE[self.side]} it: outside limit."]

    def table(self) -> Table:
        """A row for each group and year, then one for each break and the limit."""
        header = (self.head, "Year", self.unit.name, self.interval, "n", "State", "Note")
        rows = [
            self._cells(series, year, point) for series in self.series for year, point in self._points(series).items()
        ]
        blank = ("",) * 4
        rows += [("Break", str(year), *blank, words) for year, words in self.breaks]
        rows += [("Limit", "", exact(self.limit, self.unit), *blank)] if self.limit is not None else []
        return Table(header, tuple(rows))

    def _cells(self, series: Series, year: int, point: Point | None) -> tuple[str, ...]:
        label = series.label + " (reference)" * series.reference
        if point is None:
            return (label, str(year), "", "", "", "", "No data.")
        ends, state = ends_text(point, self.unit), state_of(point, self.states)
        return (
            label,
            str(year),
            value_text(point, self.unit),
            f"{ends[0]} to {ends[1]}" if ends else "",
            people(point.n),
            state.word if state else "",
            _note(point),
        )

    def draw(self, sheet: Sheet) -> Drawing:
        """Panels of equal size: two beside each other on a wide sheet, one above the other on a narrow one."""
        columns = 1 if sheet.stacked or len(self.series) == 1 else 2
        gutter = 20.0
        width = (sheet.width - gutter * (columns - 1)) / columns
        y, shapes = 4.0, list[Shape]()
        axis = self._axis()
        for first in range(0, len(self.series), columns):
            row = self.series[first : first + columns]
            drawn = [self._panel(series, axis, i * (width + gutter), y, width, sheet) for i, series in enumerate(row)]
            shapes += [shape for panel in drawn for shape in panel.shapes()]
            y = max(panel.bottom for panel in drawn) + 12
        found, bottom = legend(self._legend(), y, sheet)
        return Drawing(sheet.width, bottom + 4, sheet.size, (*shapes, *found))

    def _axis(self) -> Axis:
        points = [point for series in self.series for point in series.points]
        return axis_of(points, [] if self.limit is None else [self.limit], self.unit, most=6)

    def _panel(self, series: Series, axis: Axis, left: float, top: float, width: float, sheet: Sheet) -> Panel:
        others = [each for each in self.series if each.reference and each is not series]
        drawn = [point for each in self.series for point in each.points if point.point is not None]
        return Panel(
            values=sheet.room((value_text(point, self.unit) for point in drawn), bold=True),
            label=series.label + " (reference)" * series.reference,
            years=self._span,
            points=[(point.year, point, state_of(point, self.states)) for point in series.points],
            behind=[[(point.year, point) for point in each.points] for each in others],
            breaks=[year for year, _ in self.breaks],
            reference=series.reference,
            axis=axis,
            unit=self.unit,
            limit=self.limit,
            side=self.side,
            left=left,
            top=top,
            width=width,
            sheet=sheet,
        )

    def _legend(self) -> list[Entry]:
        """What lines and marks mean; only what is drawn."""
        used = {point.state for series in self.series for point in series.points if point.point is not None}
        entries = [marker_entry(state) for name, state in self.states.items() if name in used]
        entries += [reference_entry(isolated(series.label)) for series in self.series if series.reference]
        entries += [limit_entry(f"limit {exact(self.limit, self.unit)}")] if self.limit is not None else []
        return entries + [break_entry(year, clean(words)) for year, words in self.breaks]


def _note(point: Point) -> str:
    return point.note if point.point is not None else point.sentence
