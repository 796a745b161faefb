"""Legends: samples of lines and marks, each with its words, flowing in lines under a drawing."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tasks.reporting.charts.layout.shapes import Path, Shape, Sheet, Text, icon, marker, segment
from tasks.reporting.charts.lettering import lines, width
from tasks.reporting.charts.marks import State

_SAMPLE, _GAP = 26.0, 18.0
"""Room of a sample before its words, and between two entries."""


@dataclass(frozen=True)
class Entry:
    """A sample and what it means."""

    words: str
    sample: Callable[[float, float], Iterable[Path]]
    """Draws the sample around a point."""


def icon_entry(state: State) -> Entry:
    """A state by the symbol of its badge."""
    return Entry(state.word, lambda x, y: icon(state.icon, x, y, state.tone))


def marker_entry(state: State) -> Entry:
    """A state by the mark of a value."""
    return Entry(state.word, lambda x, y: (marker(x, y, state),))


def reference_entry(name: str) -> Entry:
    """The reference group: a grey line with squares."""
    return Entry(
        f"{name} (reference)",
        lambda x, y: (Path(segment(x - 9, y, x + 9, y), "thin", "soft"), marker(x, y, None, reference=True)),
    )


def limit_entry(words: str) -> Entry:
    """The limit: a dashed line."""
    return Entry(
        f"{words}; shaded: outside limit", lambda x, y: (Path(segment(x - 9, y, x + 9, y), "dashed", "breach"),)
    )


def break_entry(year: int, words: str) -> Entry:
    """A break: a dotted line."""
    return Entry(f"break from {year}: {words}", lambda x, y: (Path(segment(x, y - 8, x, y + 8), "dotted", "ink"),))


def legend(entries: Sequence[Entry], top: float, sheet: Sheet) -> tuple[list[Shape], float]:
    """Entries side by side as long as they fit, then on the next line.

    Returns:
        Shapes, and where they end.
    """
    shapes: list[Shape] = []
    x, y, tallest = 0.0, top, 0
    for entry in entries:
        found = lines(entry.words, sheet.width - _SAMPLE, sheet.size, most=4)
        needed = _SAMPLE + max(width(line, sheet.size) for line in found)
        if x and x + needed > sheet.width:
            x, y, tallest = 0.0, y + tallest * (sheet.leading + 2), 0
        baseline = y + sheet.size
        shapes += entry.sample(x + 10, baseline - sheet.size * 0.36)
        shapes += [Text(x + _SAMPLE, baseline + i * sheet.leading, line, "soft") for i, line in enumerate(found)]
        x, tallest = x + needed + _GAP, max(tallest, len(found))
    return shapes, y + tallest * (sheet.leading + 2)
