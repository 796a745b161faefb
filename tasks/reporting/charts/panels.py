"""What the figures of all chapters have in common: the mark of a measure, and a panel for each group that has one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tasks.reporting.material import Measure, Unit, undrawn
from tasks.reporting.numbers import value
from tasks.reporting.section import Figure, Panel, Swatch

Rows = Sequence[Mapping[str, Any]]


def marks(m: Measure | None, unit: Unit, closed: bool = False, **named: object) -> tuple[dict[str, Any], ...]:
    """A measure as a row of a chart, with its interval and in words; nothing where it has no value.

    Args:
        m: the measure.
        unit: in which it is written.
        closed: whether an end that is missing is the value itself.
        named: by what the row is told from others.
    """
    if m is None or m.value is None:
        return ()
    low, high = (m.value if closed and end is None else end for end in (m.low, m.high))
    return ({**named, "value": m.value, "low": low, "high": high, "shown": value(m, unit)},)


def told(rows: Rows, *names: str) -> str:
    """Rows as a screen reader says them: what each is, and its value in words."""
    return "; ".join(f"{', '.join(row[name] for name in names)}: {row['shown']}" for row in rows)


def most(rows: Rows) -> float:
    """Where a scale ends that begins at 0: a little beyond the highest end of an interval."""
    return max((row["high"] for row in rows), default=0.0) * 1.05 or 0.01


def by_group(
    title: str,
    groups: Sequence[str],
    rows_of: Callable[[str], Iterable[Mapping[str, Any]]],
    draw: Callable[[str, Rows, Rows], Panel],
    caption: str,
    legend: Iterable[Swatch] = (),
) -> Figure:
    """A panel for each group that has rows; the caption names the others.

    Args:
        title: of the figure.
        groups: in their order.
        rows_of: what is drawn of a group.
        draw: makes a panel of a group, its rows, and the rows of all groups, which have one scale.
        caption: what the figure shows.
        legend: of all panels.
    """
    found = {group: rows for group in groups if (rows := list(rows_of(group)))}
    every = [row for rows in found.values() for row in rows]
    panels = tuple(draw(group, rows, every) for group, rows in found.items())
    return Figure(title, panels, caption + undrawn(groups, set(found)), tuple(legend))
