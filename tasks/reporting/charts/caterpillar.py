"""Caterpillar: many intervals in one order on one axis, too many for a label each; the table names them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from tasks.reporting.charts.element import Table
from tasks.reporting.charts.forest import OUTSIDE
from tasks.reporting.charts.layout.axis import axis_of
from tasks.reporting.charts.layout.legend import Entry, legend, limit_entry, marker_entry
from tasks.reporting.charts.layout.plot import Plot
from tasks.reporting.charts.layout.shapes import Drawing, Path, Shape, Sheet, circle, diamond, segment, tone_of
from tasks.reporting.charts.lettering import isolated
from tasks.reporting.charts.marks import VERDICTS, Mark, Side, State, Tone, ends_text, said, state_of, value_text
from tasks.reporting.charts.numbers import Unit, exact, people

_TALL, _LEAST, _MOST = 900.0, 3.0, 12.0
"""Height that all rows share, and the least and the most of a row."""


@dataclass(frozen=True, kw_only=True)
class Caterpillar:
    """Intervals in the order in which they are given.

    Raises:
        ValueError: no row with an interval, an infinite limit, or a state that is not in ``states``.
    """

    title: str
    unit: Unit
    rows: tuple[Mark, ...]
    limit: float | None = None
    side: Side = "at_least"
    """Allowed side of the limit."""
    interval: str = "95 % interval"
    head: str = "Partition"
    """What a row is, as the table says it."""
    states: Mapping[str, State] = field(default_factory=lambda: VERDICTS)

    def __post_init__(self) -> None:
        if not self.rows or any(row.point is None for row in self.rows):
            raise ValueError(f"every row has an interval, and there is one: {self.title}")
        if self.limit is not None and not math.isfinite(self.limit):
            raise ValueError(f"a limit is finite: {self.title}")
        for row in self.rows:
            state_of(row, self.states)

    def description(self) -> list[str]:
        """A sentence for each row, then the limit."""
        first = f"{len(self.rows)} rows from top to bottom; unit: {self.unit.name}."
        return [first, *(f"{isolated(row.label)}: {self._said(row)}" for row in self.rows), *self._limit()]

    def _said(self, row: Mark) -> str:
        return said(row, self.unit, self.interval, state_of(row, self.states), row.note)

    def _limit(self) -> list[str]:
        if self.limit is None:
            return []
        return [f"Dashed line: limit {exact(self.limit, self.unit)}; {OUTSIDE[self.side]} it: outside limit."]

    def table(self) -> Table:
        """A row for each interval: what, value, interval, number of people, state, note."""
        header = (self.head, self.unit.name, self.interval, "n", "State", "Note")
        return Table(header, tuple(self._cells(row) for row in self.rows))

    def _cells(self, row: Mark) -> tuple[str, ...]:
        ends, state = ends_text(row, self.unit), state_of(row, self.states)
        words = f"{ends[0]} to {ends[1]}" if ends else ""
        return (
            *(row.label, value_text(row, self.unit), words, people(row.n)),
            *(state.word if state else "", row.note),
        )

    def draw(self, sheet: Sheet) -> Drawing:
        """Rows close under each other, on an axis that has its labels above and below."""
        limits = [] if self.limit is None else [self.limit]
        plot = Plot(axis_of(self.rows, limits, self.unit), self.unit, self.side, 10, sheet.width - 10)
        pitch = min(_MOST, max(_LEAST, _TALL / len(self.rows)))
        first = 4 + sheet.size
        top = first + 6
        bottom = top + pitch * len(self.rows)
        strip = [(top, bottom)]
        shapes: list[Shape] = [*plot.ticks(first, sheet)]
        shapes += [*(plot.limit(self.limit, strip) if self.limit is not None else ()), *plot.grid(strip)]
        shapes += self._intervals(plot, top, pitch)
        baseline = bottom + sheet.leading + 2
        below = (*plot.ticks(baseline, sheet), *plot.caption(self.unit.name, baseline + sheet.leading + 2, sheet))
        found, end = legend(self._legend(), max(text.y for text in below) + 8, sheet)
        return Drawing(sheet.width, end + 4, sheet.size, (*shapes, *below, *found))

    def _intervals(self, plot: Plot, top: float, pitch: float) -> list[Shape]:
        """One path of lines and one of marks for each tone; a diamond is outside the limit."""
        lines: dict[Tone, list[str]] = {}
        marks: dict[Tone, list[str]] = {}
        size = max(1.5, pitch / 3)
        for number, row in enumerate(self.rows):
            y, state = top + pitch * (number + 0.5), state_of(row, self.states)
            tone, (low, high) = tone_of(state), row.ends
            lines.setdefault(tone, []).append(segment(plot.x(low), y, plot.x(high), y))
            shape = diamond if state and state.icon == "cross" else circle
            marks.setdefault(tone, []).append(shape(plot.x(row.point or 0.0), y, size))
        drawn: list[Shape] = [Path(" ".join(parts), "thin", tone) for tone, parts in lines.items()]
        return drawn + [Path(" ".join(parts), "fill", tone) for tone, parts in marks.items()]

    def _legend(self) -> list[Entry]:
        used = {row.state for row in self.rows}
        entries = [marker_entry(state) for name, state in self.states.items() if name in used]
        return entries + ([limit_entry(f"limit {exact(self.limit, self.unit)}")] if self.limit is not None else [])
