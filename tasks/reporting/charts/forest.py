"""Forest: values with their intervals under each other, the limit as a dashed line and the side beyond it shaded."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tasks.reporting.charts.element import Table
from tasks.reporting.charts.layout.axis import axis_of
from tasks.reporting.charts.layout.rows import Rows
from tasks.reporting.charts.layout.shapes import Drawing, Sheet
from tasks.reporting.charts.lettering import isolated
from tasks.reporting.charts.marks import VERDICTS, Mark, Side, State, ends_text, said, state_of, value_text
from tasks.reporting.charts.numbers import Unit, exact, people

OUTSIDE: Mapping[Side, str] = {"at_least": "below", "at_most": "above"}
"""Allowed side of a limit -> where the other side lies."""


@dataclass(frozen=True, kw_only=True)
class Forest:
    """Comparisons or groups with value, interval and number of people.

    Raises:
        ValueError: no row, an infinite limit, or a state that is not in ``states``.
    """

    title: str
    unit: Unit
    rows: tuple[Mark, ...]
    limit: float | None = None
    """Limit of all rows that have none of their own."""
    side: Side = "at_least"
    """Allowed side of the limits."""
    limit_name: str = "limit"
    """What the dashed line is."""
    beyond: str = "outside limit"
    """What the shaded side means."""
    interval: str = "95 % interval"
    """What the intervals are."""
    head: str = "Comparison"
    """What a row is, as the table says it."""
    axis: tuple[float, float] | None = None
    """Values that the axis reaches at least, so that several charts can have the same."""
    states: Mapping[str, State] = field(default_factory=lambda: VERDICTS)

    def __post_init__(self) -> None:
        if not self.rows:
            raise ValueError(f"no row: {self.title}")
        for row in self.rows:
            state_of(row, self.states)
        if not all(math.isfinite(mark.limit) for mark in self.marks if mark.limit is not None):
            raise ValueError(f"a limit is finite: {self.title}")

    @property
    def marks(self) -> tuple[Mark, ...]:
        """Rows, each with the limit that holds for it."""
        return tuple(replace(row, limit=self.limit if row.limit is None else row.limit) for row in self.rows)

    def description(self) -> list[str]:
        """A sentence for each row, then the axis and the limits."""
        sentences = [f"{isolated(mark.label)}{_aside(mark)}: {self._said(mark)}" for mark in self.marks]
        first = f"{len(self.rows)} rows; unit: {self.unit.name}."
        return [first, *sentences, *self._limits()]

    def _said(self, mark: Mark) -> str:
        text = said(mark, self.unit, self.interval, state_of(mark, self.states), self._note(mark))
        own = mark.limit is not None and mark.limit != self.limit
        return (
            f"{text} {self.limit_name.capitalize()} of this row: {exact(mark.limit or 0.0, self.unit)}."
            if own
            else text
        )

    def _note(self, mark: Mark) -> str:
        """What the table says beside a row: why there is no mark, or its note."""
        return mark.note if mark.point is not None else mark.sentence

    def _limits(self) -> list[str]:
        limits = dict.fromkeys(mark.limit for mark in self.marks if mark.limit is not None)
        where = OUTSIDE[self.side]
        return [
            f"Dashed line: {self.limit_name} {exact(limit, self.unit)}; {where} it: {self.beyond}." for limit in limits
        ]

    def table(self) -> Table:
        """A row for each mark: what, value, interval, number of people, limit, state, note."""
        header = (
            self.head,
            "Detail",
            self.unit.name,
            self.interval,
            "n",
            self.limit_name.capitalize(),
            "State",
            "Note",
        )
        return Table(header, tuple(self._cells(mark) for mark in self.marks))

    def _cells(self, mark: Mark) -> tuple[str, ...]:
        ends, state = ends_text(mark, self.unit), state_of(mark, self.states)
        return (
            mark.label,
            ", ".join(part for part in (mark.detail, "reference" if mark.reference else "") if part),
            value_text(mark, self.unit),
            f"{ends[0]} to {ends[1]}" if ends else "",
            people(mark.n),
            "" if mark.limit is None else exact(mark.limit, self.unit),
            state.word if state else "",
            self._note(mark),
        )

    def draw(self, sheet: Sheet) -> Drawing:
        """Rows under each other on one axis."""
        return self._rows().draw(sheet)

    def _rows(self) -> Rows:
        limits = [mark.limit for mark in self.marks if mark.limit is not None]
        axis = axis_of(self.rows, [*limits, *(self.axis or ())], self.unit)
        return Rows(self.marks, self.unit, axis, self.side, self.states, limit_name=self.limit_name, beyond=self.beyond)


def _aside(mark: Mark) -> str:
    """What is said of a row behind its name."""
    parts = [part for part in (mark.detail, "reference" if mark.reference else "") if part]
    return f" ({isolated(', '.join(parts))})" if parts else ""
