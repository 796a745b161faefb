"""The chapter of the years against their limits: the band of the years so far, year by year, and the changes.

What is said is decided in ``monitoring``; here it is written and drawn.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from schemas.tables.verdicts import STATES
from schemas.terms import ChangeState, State
from tasks.metrics.algorithm.monitoring.monitored import Monitored
from tasks.metrics.algorithm.monitoring.years import MonitoringRule, limit_words
from tasks.reporting.chapters.measure_names import names
from tasks.reporting.charts import vega
from tasks.reporting.material import Shown, Unit, anchor
from tasks.reporting.numbers import interval_of, number_cell, p_cell, significant, written
from tasks.reporting.section import Cell, Figure, Row, Section, Swatch, TableView
from tasks.reporting.trends import charts as trend_charts
from tasks.reporting.trends.monitoring import Followed, said_by_theory

RULES = {
    "confidence_sequence": "The years so far are pooled, and their band may be looked at after every year, for ever: "
    "with probability {level} no year of a sequence shows a group beyond its limit that is not, over all groups of a "
    "theory. It takes the true effect as the same in all years; where they differ by more than sampling, the band is "
    "wider.",
    "bonferroni": "Each year is tested alone at an equal part of the error of {years} planned years.",
    "none": "Each year is tested alone, and nothing counts how often one looks: an honest lender is in breach in some "
    "year of eight with probability 0.34.",
}
CHANGES = (
    "A year has changed if it lies outside what four or more comparable years before it let expect, which takes into "
    "account that years wander. With fewer, the difference from the year before is printed without a state: two years "
    "cannot tell a change from wandering. What is not measured alike is not compared, and begins another sequence."
)
_CAPTION = (
    "Dots are the pooled estimate of the years so far, bars their band, the dashed line across the limit. A verdict "
    "needs the whole bar on one side. × is a year without an estimate; a line ends there and where years are not "
    "comparable."
)
_CHANGE_STATES = {
    ChangeState.CHANGED: "changed",
    ChangeState.UNCHANGED: "unchanged",
    ChangeState.UNCLEAR: "unclear",
    ChangeState.NOT_COMPARABLE: "not comparable",
    ChangeState.NONE: "no state",
}


def chapter(
    followed: Followed, rule: MonitoringRule, references: Mapping[str, str], known: Mapping[str, Shown]
) -> list[Section]:
    """The chapter; none where no year has verdicts.

    Args:
        followed: in the order of series and years.
        rule: how years were held against the limit.
        references: protected attribute -> its reference group.
        known: how measures are written.
    """
    if not followed:
        return []
    said = RULES[rule.rule].format(level=f"{1 - rule.alpha:.2f}", years=rule.years)
    parts = [_part(list(rows), references, known) for _, rows in groupby(sorted(followed, key=_place), key=_place)]
    points = tuple(said_by_theory(followed))
    return [Section("Years against their limits", "monitoring", (said, CHANGES), points, parts=tuple(parts))]


def _place(one: Monitored) -> tuple[str, str, str, str]:
    return one.of.theory, one.of.attribute, one.of.measure, one.of.decision_maker


def _part(rows: Sequence[Monitored], references: Mapping[str, str], known: Mapping[str, Shown]) -> Section:
    """One measure of a theory, by one attribute: its figure, its sequence and its last changes."""
    theory, attribute, measure, maker = _place(rows[0])
    words, shown = names(measure, known)
    groups = list(dict.fromkeys(one.of.group for one in rows))
    title = f"{theory}: {words} ({maker}), by {attribute}"
    drawn = _drawn(rows, groups, shown.unit)
    figures: tuple[Figure, ...] = ()
    if any(row["what"] == "dot" for row in drawn):
        swatches = vega.palette(groups, references.get(attribute, ""))
        limits = [one.of.limit for one in rows if not math.isnan(one.of.limit)]
        broken = {one.of.year: one.change.reason for one in rows if one.change.state is ChangeState.NOT_COMPARABLE}
        share = rows[0].of.scale == "linear" and shown.unit in ("rate", "points")
        panel = trend_charts.panel(title, drawn, swatches, {_SO_FAR: "circle"}, broken, share, limits[-1:])
        figures = (Figure(title, (panel,), _CAPTION, _legend(swatches, drawn, limits)),)
    tables = (_sequence(title, rows, groups, shown.unit), _changes(rows, groups, shown.unit))
    return Section(title, anchor("monitoring", theory, attribute, measure, maker), figures=figures, tables=tables)


_SO_FAR = "years so far"


def _legend(
    swatches: Mapping[str, Swatch], drawn: Sequence[Mapping[str, Any]], limits: Sequence[float]
) -> tuple[Swatch, ...]:
    known = trend_charts.legend(swatches, {}, drawn)
    return (*known, *(Swatch(f"limit {limit:g}", vega.REFERENCE, "8 4") for limit in limits[-1:]))


def _drawn(rows: Sequence[Monitored], groups: Sequence[str], unit: Unit) -> list[dict[str, Any]]:
    """A dot with its band for every year that has one, a mark for every other; a line ends at either break."""
    out, segment = [], 0
    for place, group in enumerate(groups):
        segment += 1
        for one in (each for each in rows if each.of.group == group):
            gap = math.isnan(one.pooled)
            segment += gap or one.change.state is ChangeState.NOT_COMPARABLE
            row = {"group": group, "year": one.of.year, "edition": _SO_FAR, "segment": str(segment)}
            row["x"] = one.of.year + trend_charts.beside(place, len(groups))
            if gap:
                out.append(row | {"what": "gap", "shown": one.reason})
            else:
                ends = {"value": one.pooled, "low": one.pooled_low, "high": one.pooled_high}
                out.append(row | {"what": "dot", "shown": f"{_band(one, unit)}, {_state(one)}"} | ends)
            segment += gap
    return out


def _sequence(title: str, rows: Sequence[Monitored], groups: Sequence[str], unit: Unit) -> TableView:
    """The band and state of every group in every year."""
    by = {(one.of.group, one.of.year): one for one in rows}
    years = sorted({one.of.year for one in rows})
    lines = tuple((Cell(group), *(_cell(by.get((group, year)), unit) for year in years)) for group in groups)
    limits = dict.fromkeys(limit_words(one.of) for one in rows)
    note = f"Limit: {', then '.join(limits)}. The estimate of the years so far [its band], and the state."
    return TableView(f"{title}: year by year", ("Group", *map(str, years)), lines, note, folded=True)


def _cell(one: Monitored | None, unit: Unit) -> Cell:
    if one is None or math.isnan(one.pooled):
        return Cell(_state(one) if one else "–", "none")
    return Cell(f"{_state(one)}: {_band(one, unit)}", "state", one.state)


def _changes(rows: Sequence[Monitored], groups: Sequence[str], unit: Unit) -> TableView:
    """The last year of every group beside those before it."""
    last = {one.of.group: one for one in rows if one.of.usable}
    lines = tuple(_change_row(last[group], unit) for group in groups if group in last)
    header = (
        "Group",
        "Year",
        "Against the limit",
        "Changed",
        "Change",
        "Smallest seen",
        "Slope a year",
        "Since",
        "q",
        "Why",
    )
    note = (
        "Change with its 95 % interval; of a ratio, change and slope are ratios too. Smallest seen: with a power of "
        "80 %. q: p after Benjamini-Hochberg over all groups and measures of the year."
    )
    return TableView("The last year and its changes", header, lines, note)


def _change_row(one: Monitored, unit: Unit) -> Row:
    change, ratio = one.change, one.of.scale == "log"

    def cell(value: float, low: float = math.nan, high: float = math.nan) -> Cell:
        if math.isnan(value):
            return Cell("–", "none")
        return Cell(_moved(value, unit, ratio), "number", detail=_ends(low, high, unit, ratio))

    since = "–" if change.since_year is None else f"{change.since_year} (p {change.since_p:.3f})"
    return (
        Cell(one.of.group),
        number_cell(str(one.of.year)),
        Cell(_state(one), "state", one.state),
        Cell(_CHANGE_STATES[change.state], "state", change.state),
        cell(change.change, change.low, change.high),
        cell(change.minimal),
        cell(change.slope, change.slope_low, change.slope_high),
        Cell(since),
        p_cell(None if math.isnan(change.q) else change.q),
        Cell(one.said),
    )


def _state(one: Monitored) -> str:
    state = State(one.state)
    return STATES.get(state, state.value.replace("_", " "))


def _band(one: Monitored, unit: Unit) -> str:
    kind: Unit = "number" if one.of.scale == "log" else unit
    value, low, high = (written(x, kind) for x in (one.pooled, one.pooled_low, one.pooled_high))
    return f"{value} [{low}, {high}]"


def _moved(value: float, unit: Unit, ratio: bool) -> str:
    """A difference between years: a factor, points, or a signed number."""
    return f"× {significant(value)}" if ratio else written(value, unit, "_difference")


def _ends(low: float, high: float, unit: Unit, ratio: bool) -> str:
    if math.isnan(low):
        return ""
    if not ratio and unit in ("rate", "points"):
        return interval_of(low, high)
    return f"[{significant(low)}, {significant(high)}]"
