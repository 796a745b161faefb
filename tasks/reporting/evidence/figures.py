"""Charts of evidence pages: groups with their intervals, or groups by settings, of the rows that the table prints."""

import math
from collections.abc import Sequence
from typing import Any

from tasks.reporting.charts.forest import Forest
from tasks.reporting.charts.marks import Mark
from tasks.reporting.charts.matrix import Cell, Matrix, Row
from tasks.reporting.charts.numbers import WITHHELD, Unit
from tasks.reporting.charts.steps import Steps
from tasks.reporting.declared import Form
from tasks.reporting.declared import Unit as Written
from tasks.reporting.evidence.budget import Line, evenly
from tasks.reporting.evidence.groups import ByGroup
from tasks.reporting.evidence.settings import BySetting, BySettingOfGroup
from tasks.reporting.evidence.words import header, plain
from tasks.reporting.material import Measure
from tasks.reporting.numbers import covers
from tasks.reporting.section import Figure

_MOST_SETTINGS = 10
"""Columns of a matrix."""
_JUDGED = ("breach", "within", "insufficient_evidence")
"""States that are drawn: others say that there is no verdict."""


def drawn(
    found: ByGroup | BySetting | BySettingOfGroup, kept: Sequence[Line], *, title: str, level: float
) -> Figure | None:
    """The chart of a block; None where there is no number, and of settings of each group.

    Args:
        found: the measures of the block.
        kept: rows of the table.
        title: whom it is about.
        level: of the intervals.
    """
    if isinstance(found, ByGroup):
        return of_groups(found, kept, title, level)
    return of_settings(found, kept, f"{found.block.title}, {title}") if isinstance(found, BySetting) else None


def of_groups(found: ByGroup, kept: Sequence[Line], title: str, level: float) -> Figure | None:
    """The first measure by group; as bars from zero where none of its rows has an interval that may be printed.

    Args:
        found: the measures of the block.
        kept: rows of the table; parts of groups are not drawn.
        title: what the chart shows.
        level: of the intervals.
    """
    shown, at = found.columns[0]
    unit = found.said.measures[shown.measure].unit
    rows = [(line.key, found.get(line.key, shown, at)) for line in kept if line.key[1] == 0]
    there = [(key[0], m) for key, m in rows if m is not None]
    if not any(m.value is not None for _, m in there):
        return None
    drawn_values = [value for _, m in there for value in (m.value, *((m.low, m.high) if _ends(m) else ()))]
    factor, drawn = _drawn(unit, shown.form, header(found.said, shown), drawn_values)
    marks = tuple(_mark(group, m, factor, group == found.view.reference) for group, m in there)
    words, some = header(found.said, shown), any(mark.low is not None for mark in marks)
    ranges = any(m.of_draws for _, m in there)
    kind = Forest if some else Steps
    more: dict[str, Any] = {} if some else {"bars": True}
    interval = "range of draws" if ranges else f"{100 * level:g} % interval"
    chart = kind(title=f"{words}, {title}", unit=drawn, rows=marks, head="Group", interval=interval, **more)
    return Figure(chart, _caption(marks, interval))


def _caption(marks: Sequence[Mark], interval: str) -> str:
    """Which intervals are drawn, where readers could take them for others."""
    if all(mark.low is None for mark in marks):
        return "Bars without intervals: none here is known to cover as often as it says."
    judged = any(mark.state for mark in marks) and interval.endswith("interval")
    return f"Two-sided {interval}s; a state is that of the verdict interval, on the page of the question." * judged


def of_settings(found: BySetting, kept: Sequence[Line], title: str) -> Figure | None:
    """A row for each group, a column for each setting, of the measure itself."""
    form = found.block.forms[0]
    unit = found.said.measures[found.block.measure].unit
    keys = [line.key for line in kept]
    if len(keys) > _MOST_SETTINGS:
        keys = [keys[i] for i in evenly(len(keys), _MOST_SETTINGS)]
    cells = {group: [found.found.get((form, group, key)) for key in keys] for group in found.groups}
    values = [m.value for row in cells.values() for m in row if m is not None]
    if all(value is None for value in values):
        return None
    factor, drawn = _drawn(unit, form, found.said.measures[found.block.measure].words, values)
    columns = tuple(", ".join(found.setting(v) for v in key if v is not None) for key in keys)
    rows = tuple(
        Row(label=group, cells=tuple(_cell(m, factor) for m in row), reference=group == found.view.reference)
        for group, row in cells.items()
    )
    return Figure(Matrix(title=title, columns=columns, rows=rows, unit=drawn))


def _drawn(unit: Written, form: Form, words: str, values: Sequence[float | None]) -> tuple[float, Unit]:
    """By how much values are multiplied, and the unit of the axis with decimals for three significant digits."""
    share, compared = unit in ("rate", "points") and form != "ratio", form.endswith("difference") or unit == "points"
    factor = 100.0 if share else 1.0
    largest = max((abs(value) * factor for value in values if value is not None), default=0.0)
    places = 0 if unit == "count" and not form else _places(largest)
    if share:
        return factor, Unit("percentage points", signed=True, places=places) if compared else Unit(
            "percent", False, places
        )
    return factor, Unit("ratio to the reference" if form == "ratio" else words, signed=compared, places=places)


def _places(largest: float) -> int:
    return 1 if largest <= 0 else min(4, max(0, 2 - math.floor(math.log10(largest))))


def _ends(m: Measure) -> bool:
    return m.value is not None and m.low is not None and m.high is not None and (m.of_draws or covers(m.measure))


def _mark(group: str, m: Measure, factor: float, reference: bool) -> Mark:
    low, high = (m.low, m.high) if _ends(m) else (None, None)
    return Mark(
        label=group,
        reference=reference,
        value=_value(m, factor),
        low=None if low is None else low * factor,
        high=None if high is None else high * factor,
        n=WITHHELD if m.n is None and m.withheld else m.n,
        state=m.state if m.state in _JUDGED and m.value is not None else "",
        note="" if m.value is not None or m.withheld else f"Undefined: {_reason(m)}",
    )


def _reason(m: Measure) -> str:
    """Why a value is undefined, as the table says it."""
    said = plain(m.bound or m.reason) if m.bound or m.reason else "no reason was recorded."
    return said[:1].lower() + said[1:]


def _cell(m: Measure | None, factor: float) -> Cell | None:
    return None if m is None else Cell(value=_value(m, factor), note="" if m.value is not None else "undefined")


def _value(m: Measure, factor: float) -> Any:
    """As drawn; the word where it is withheld, nothing where it is undefined."""
    if m.value is None:
        return WITHHELD if m.withheld else None
    return m.value * factor
