"""The chapter of the years against their limits: the band of the years so far, year by year, and the changes.

What is said is decided in ``monitoring``; here it is written. How it is drawn: ``charts``.
"""

import math
from collections.abc import Sequence
from itertools import groupby

from schemas.tables.verdicts import QUESTIONS
from schemas.terms import ChangeState, Theory
from tasks.metrics.algorithm.monitoring.monitored import Monitored
from tasks.metrics.algorithm.monitoring.years import MonitoringRule, limit_words
from tasks.reporting.declared import Unit, names
from tasks.reporting.material import anchor, capital
from tasks.reporting.numbers import ends, number_cell, p_cell, p_text, significant, state_cell, written
from tasks.reporting.section import Cell, Figure, Row, Section, TableView
from tasks.reporting.trends import charts
from tasks.reporting.trends.fitting import CHARTS, POINTS, fitting, largest, left_out
from tasks.reporting.trends.monitoring import Followed, said_by_theory

RULES = {
    "confidence_sequence": "The years so far are pooled, and their band may be looked at after every year, for ever: "
    "with probability {level} no year of a sequence shows a group beyond its limit that is not, over all groups of a "
    "theory. It takes the true effect as the same in all years; where they differ by more than sampling, the band is "
    "wider.",
    "bonferroni": "Each year is tested alone at an equal part of the error of {years} planned years.",
    "none": "Each year is tested alone, and nothing counts how often one looks: a lender exactly at its limit is "
    "outside it in some year of eight with probability 0.34.",
}
CHANGES = (
    "A year has changed if it lies outside what four or more comparable years before it let expect, which takes into "
    "account that years wander. With fewer, the difference from the year before is printed without a state: two years "
    "cannot tell a change from wandering. What is not measured alike is not compared, and begins another sequence."
)
_CAPTION = (
    "Marks are the pooled estimate of the years so far, bars their band. A state needs the whole bar "
    "on one side of the limit. A cross is a year without an estimate; a line ends there and where years are not "
    "comparable."
)
_HEADER = (
    *("Group", "Year", "Against the limit", "Changed", "Change"),
    *("Smallest seen", "Slope a year", "Since", "q", "Why"),
)
_NOTE = (
    "Change with its 95 % interval; of a ratio, change and slope are ratios too. Smallest seen: with a power of 80 %. "
    "q: p after Benjamini-Hochberg over all groups and measures of the year."
)
_CHANGE_STATES = {
    ChangeState.CHANGED: "changed",
    ChangeState.UNCHANGED: "unchanged",
    ChangeState.UNCLEAR: "unclear",
    ChangeState.NOT_COMPARABLE: "not comparable",
    ChangeState.NONE: "no state",
}


def chapter(followed: Followed, rule: MonitoringRule) -> list[Section]:
    """The chapter; none where no year has verdicts.

    Args:
        followed: in the order of series and years.
        rule: how years were held against the limit.
    """
    if not followed:
        return []
    said = RULES[rule.rule].format(level=f"{1 - rule.alpha:.2f}", years=rule.years)
    ordered = sorted(followed, key=lambda one: (list(Theory).index(Theory(one.of.theory)), _place(one)))
    alike = [list(rows) for _, rows in groupby(ordered, key=_place)]
    drawn = fitting({place: len(rows) for place, rows in enumerate(alike)}, CHARTS, POINTS)
    parts = tuple(_part(rows, place in drawn) for place, rows in enumerate(alike))
    points = tuple(said_by_theory(ordered))
    return [Section("Years against their limits", "monitoring", (said, CHANGES), points, parts=parts)]


def _place(one: Monitored) -> tuple[str, str, str, str]:
    return one.of.theory, one.of.attribute, one.of.measure, one.of.decision_maker


def _part(rows: Sequence[Monitored], drawn: bool) -> Section:
    """One measure of a theory, by one attribute: its chart or else its sequence as a table, and its last changes."""
    theory, attribute, measure, maker = _place(rows[0])
    words, unit = names(measure)
    title = f"{QUESTIONS[Theory(theory)]} {capital(words)} ({maker}), by {attribute}"
    last = {one.of.group: one for one in rows if one.of.usable}
    groups = largest(dict.fromkeys(one.of.group for one in rows), lambda group: _effect(last.get(group)))
    chart = charts.so_far(title, rows, groups) if drawn else None
    limits = list(dict.fromkeys(limit_words(one.of) for one in rows))
    figures = (Figure(chart, _CAPTION + _earlier(limits, rows[-1])),) if chart else ()
    tables = () if chart else (_sequence(title, rows, groups, unit, limits),)
    changes = tuple(_change_row(last[group], unit) for group in groups if group in last)
    more = left_out(len(groups), len({one.of.group for one in rows}))
    return Section(
        title,
        anchor("monitoring", theory, attribute, measure, maker),
        (more,) if more else (),
        figures=figures,
        tables=(*tables, TableView("The last year and its changes", _HEADER, changes, _NOTE)),
    )


def _earlier(limits: Sequence[str], last: Monitored) -> str:
    """The limits of earlier years; the chart shows that of the last one."""
    others = [limit for limit in limits if limit != limit_words(last.of)]
    return f" Limit in earlier years: {', then '.join(others)}." if others else ""


def _effect(one: Monitored | None) -> float:
    """How far the years so far are from no effect; of a ratio in either direction."""
    if one is None or math.isnan(one.pooled):
        return 0.0
    return abs(math.log(one.pooled)) if one.of.scale == "log" and one.pooled > 0 else abs(one.pooled)


def _sequence(
    title: str, rows: Sequence[Monitored], groups: Sequence[str], unit: Unit, limits: Sequence[str]
) -> TableView:
    """The band and state of every group in every year."""
    by = {(one.of.group, one.of.year): one for one in rows}
    years = sorted({one.of.year for one in rows})
    lines = [(Cell(group), *(_cell(by.get((group, year)), unit) for year in years)) for group in groups]
    note = f"Limit: {', then '.join(limits)}. The estimate of the years so far [its band], and the state."
    return TableView(f"{title}: year by year", ("Group", *map(str, years)), tuple(lines), note, folded=True)


def _cell(one: Monitored | None, unit: Unit) -> Cell:
    if one is None or math.isnan(one.pooled):
        return state_cell(one.state) if one else Cell("–", "none")
    return Cell(state_cell(one.state).text, "state", one.state, _band(one, unit))


def _change_row(one: Monitored, unit: Unit) -> Row:
    change, ratio = one.change, one.of.scale == "log"

    def cell(value: float, low: float = math.nan, high: float = math.nan) -> Cell:
        if math.isnan(value):
            return Cell("–", "none")
        return Cell(_moved(value, unit, ratio), "number", detail=_ends(low, high, unit, ratio))

    since = "–" if change.since_year is None else f"{change.since_year} (p {p_text(change.since_p)})"
    return (
        Cell(one.of.group),
        number_cell(str(one.of.year)),
        state_cell(one.state),
        Cell(_CHANGE_STATES[change.state], "state", change.state),
        cell(change.change, change.low, change.high),
        cell(change.minimal),
        cell(change.slope, change.slope_low, change.slope_high),
        Cell(since),
        p_cell(None if math.isnan(change.q) else change.q),
        Cell(one.said),
    )


def _band(one: Monitored, unit: Unit) -> str:
    kind: Unit = "number" if one.of.scale == "log" else unit
    return f"{written(one.pooled, kind)} {ends(one.pooled_low, one.pooled_high, kind)}"


def _moved(value: float, unit: Unit, ratio: bool) -> str:
    """A difference between years: a factor, points, or a signed number."""
    return f"× {significant(value)}" if ratio else written(value, unit, "difference")


def _ends(low: float, high: float, unit: Unit, ratio: bool) -> str:
    if math.isnan(low):
        return ""
    return ends(low, high, "number") if ratio else ends(low, high, unit, "difference")
