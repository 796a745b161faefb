"""Measures and verdicts over years."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby, pairwise
from typing import Any, Final, TypeVar

import pyarrow as pa

from schemas.questions import QUESTIONS
from schemas.sentences import filled
from schemas.tables.verdicts import MONITORING, TREND, Told, in_approval
from schemas.terms import ChangeState, State, Theory
from tasks.metrics.algorithm.monitoring import Conditions, Monitored, MonitoringRule, YearEstimate, limit_words, monitor
from tasks.reporting import declared
from tasks.reporting.charts.layout import Chart
from tasks.reporting.charts.trend import Point, Trend
from tasks.reporting.charts.trend import Series as Line
from tasks.reporting.charts.values import MOST_PLACES, PERCENT, WITHHELD, Unit
from tasks.reporting.declared import Unit as DeclaredUnit
from tasks.reporting.declared import names
from tasks.reporting.material import Measure, anchor, capital
from tasks.reporting.text import (
    Cell,
    Figure,
    Row,
    Section,
    TableView,
    covers,
    ends,
    number_cell,
    p_cell,
    p_text,
    significant,
    state_cell,
    written,
)

# --------------------------------------------------------------------------------------------------------------------
# Selects what fits on a page over years: about 1.7 MB. The page's JSON file holds every row of every measure.


CHARTS = 40
"""On a page; the years against their limits come first."""
POINTS = 1_000
"""Of all charts of a page, a group in a year each: 1.2 kB a point, drawn twice, described and in a table."""
TABLES = 40
"""Of measures without a chart."""
CELLS = 4_000
"""Of all these tables, a group in a year each: 0.1 kB."""
ROWS = 25
"""Of a table, and panels of a chart."""

T = TypeVar("T")
_said = partial(filled, "years")


def fitting(sizes: Mapping[T, int], most: int, room: int) -> list[T]:
    """At most so many, the first of them as long as there is room; a too large one leaves its room to others."""
    selection: list[T] = []
    for name, size in sizes.items():
        if len(selection) < most and size <= room:
            selection.append(name)
            room -= size
    return selection


def largest(items: Iterable[T], size: Callable[[T], float]) -> list[T]:
    """As many items as fit, those with the largest size, in the order in which they came."""
    candidates = list(items)
    indices = sorted(range(len(candidates)), key=lambda i: -size(candidates[i]))[:ROWS]
    return [candidates[i] for i in sorted(indices)]


def left_out(number_shown: int, total: int, what: str = "groups", where: str = "") -> str:
    """A sentence on what did not fit; empty where all did."""
    if number_shown >= total:
        return ""
    return _said("left_out", n=number_shown, what=what, of=total, where=where or _said("left_out_where"))


# --------------------------------------------------------------------------------------------------------------------
# Trend: compares the measures of every year, as their reports print them.
#
# Nothing is computed from measures, and nothing is said of a year that its report does not say: what is withheld there
# is withheld here. A year without a run, and a measure that rests on too few people, are rows too, so that a gap is
# seen.


RANGES = _said("ranges")
"""What a page with ranges of draws says of them."""
HMDA_BREAK = (2018, _said("hmda_break"))
"""The year from which its public data are collected under other rules (Regulation C as of 2018), and in words."""

Series = tuple[str, str, str, str, str]
"""Method, decision maker, protected attribute, group and measure."""


@dataclass(frozen=True)
class YearResult:
    """One year of an audit, by its run; without a run, the reason."""

    year: int
    run: str = ""
    vintage: str = ""
    edition: str = "none"
    """What kind of data the vintage is, such as snapshot; what marks it in a figure."""
    state: str = "missing"
    why: str = ""
    rows: int | None = None
    lacking: tuple[str, ...] = ()
    minimum_n: int = 30
    """Fewer units than this give no verdict."""
    measures: tuple[Measure, ...] = ()

    @cached_property
    def by_series(self) -> dict[Series, Measure]:
        """What it measures, by what that is of."""
        return {series_of(m): m for m in self.measures}


def trend(audit: str, years: Sequence[YearResult]) -> pa.Table:
    """Every measure of every year, in the shape of ``TREND``; ``(measures * years,)`` rows."""
    rows = []
    for series in all_series(years):
        method, maker, attribute, group, measure = series
        for year in years:
            m = found(year, series)
            row = {
                "audit": audit,
                "year": year.year,
                "method": method,
                "decision_maker": maker,
                "protected_attribute": attribute,
                "group": group,
                "measure": measure,
                "run": year.run,
                "vintage": year.vintage,
                "value": m.value if m else None,
                "low": m.low if m else None,
                "high": m.high if m else None,
                "n": m.n if m else None,
                "note": m.note if m else "",
                "state": m.state if m else State.NOT_RUN,
                "told": told(m, year.minimum_n),
                "reason": m.reason if m else year.why or _said("not_made"),
            }
            rows.append(row)
    return TREND.build(**{column.name: [row[column.name] for row in rows] for column in TREND.columns})


def title_of(measure_words: str, maker: str, attribute: str) -> str:
    """A measure of a decision maker by a protected attribute, as a heading."""
    return _said("title", measure=capital(measure_words), maker=maker, attribute=attribute)


def all_series(years: Iterable[YearResult]) -> list[Series]:
    """What any of the years measures: decisions first, then method by method; the groups of a measure together."""
    distinct_series = dict.fromkeys(series_of(m) for year in years for m in year.measures)
    return sorted(distinct_series, key=lambda s: (s[0] != "outcomes", s[0], s[2], s[4], s[1]))


def series_of(m: Measure) -> Series:
    """What a measure is of."""
    return m.method, m.decision_maker, m.protected_attribute, m.group, m.measure


def found(year: YearResult, series: Series) -> Measure | None:
    """The measure of a year, if it has it."""
    return year.by_series.get(series)


def told(m: Measure | None, minimum_n: int) -> Told:
    """What a year has to say of a measure."""
    if m is None:
        return Told.NOT_MADE
    if m.value is None:
        if m.of_few:
            return Told.TOO_FEW
        return Told.WITHHELD if m.withheld else Told.UNDEFINED
    return Told.TOO_FEW if m.n is not None and m.n < minimum_n else Told.VALUE


def breaks(years: Sequence[YearResult], hmda: bool) -> dict[int, str]:
    """First year after a break -> what is another thing from then on.

    No line is drawn over a break: that of HMDA, and any year that lacks other columns than the audited one before it.
    """
    out: dict[int, str] = {}
    audited = [year for year in years if year.run]
    for before, after in pairwise(audited):
        gained, lost = (_columns(a) - _columns(b) for a, b in ((before, after), (after, before)))
        words = [_said("break_with", columns=", ".join(sorted(gained)))] if gained else []
        words += [_said("break_without", columns=", ".join(sorted(lost)))] if lost else []
        if words:
            out[after.year] = _said("break_from", year=after.year, words=" and ".join(words))
    first, words_of_hmda = HMDA_BREAK
    if hmda and years and years[0].year < first <= years[-1].year:
        out[first] = "; ".join(word for word in (words_of_hmda, out.get(first, "")) if word)
    return dict(sorted(out.items()))


def _columns(year: YearResult) -> set[str]:
    """What a year does not have, without its empty groups: those do not change the measures of others."""
    return {name for name in year.lacking if ": " not in name}


# --------------------------------------------------------------------------------------------------------------------
# Charts over years: one measure, a panel a group.
#
# A line ends where a year has no value to draw, and at a break, after which data are collected in another way. Only an
# interval that covers as often as it says is drawn: other measures have a table and no chart.


CHECKED = (State.OUTSIDE, State.WITHIN, State.INCONCLUSIVE)
_POINTS = Unit("percentage points", signed=True)
_GAPS = {
    Told.TOO_FEW: _said("gaps.too_few"),
    Told.UNDEFINED: _said("gaps.undefined"),
    Told.NOT_MADE: _said("gaps.not_made"),
}


def by_year(
    title: str, years: Sequence[YearResult], series: Sequence[Series], reference: str, broken: Mapping[int, str]
) -> Trend | None:
    """One measure as its reports print it; None where no year has an interval to draw.

    Args:
        title: of the chart.
        years: in order.
        series: of one measure, one a group.
        reference: the reference group.
        broken: first year after a break -> what is another thing from then on.
    """
    measure = series[0][4]
    if not covers(measure):
        return None
    values = (
        m.value for year in years for one_series in series if (m := found(year, one_series)) and m.value is not None
    )
    unit, factor = scale(declared.names(measure)[1], values, measure)
    lines = []
    for one_series in series:
        values_of_years = []
        for year in years:
            m = found(year, one_series)
            what = told(m, year.minimum_n)
            if what is Told.WITHHELD:
                values_of_years.append(Point(year=year.year, value=WITHHELD))
            elif m is None or m.value is None or what is not Told.VALUE:
                values_of_years.append(Point(year=year.year, note=f"{capital(year.why)}." if year.why else _GAPS[what]))
            else:
                low, high = None, None
                if not m.of_draws and m.low is not None and m.high is not None:
                    low, high = m.low * factor, m.high * factor
                state = m.state if m.state in CHECKED else ""
                values_of_years.append(
                    Point(year=year.year, value=m.value * factor, low=low, high=high, n=m.n, state=state)
                )
        lines.append(Line(label=one_series[3], reference=one_series[3] == reference, points=tuple(values_of_years)))
    return _drawn(Trend(title=title, unit=unit, series=tuple(lines), breaks=tuple(broken.items())))


def so_far(title: str, rows: Sequence[Monitored], groups: Sequence[str]) -> Trend | None:
    """The years so far against their limit; None where no year has an estimate.

    Args:
        title: of the chart.
        rows: of one measure of one theory, attribute and decision maker.
        groups: those to draw.
    """
    of = rows[0].of
    ratio = "_ratio" if of.scale == "log" else ""
    unit, factor = scale(declared.names(of.measure)[1], (estimate.pooled for estimate in rows), of.measure + ratio)
    limits = [estimate.of.limit for estimate in rows if not math.isnan(estimate.of.limit)]
    apart = {
        estimate.of.year: estimate.change.reason
        for estimate in rows
        if estimate.change.state is ChangeState.NOT_COMPARABLE
    }
    values: dict[str, list[Point]] = {group: [] for group in groups}
    for estimate in rows:
        if estimate.of.group not in values:
            continue
        # The pooled estimate of the years so far with its band, or why it is missing.
        band = (estimate.pooled, estimate.pooled_low, estimate.pooled_high)
        if any(map(math.isnan, band)):
            note = f"{capital(estimate.reason or _said('no_estimate'))}."
            point = Point(year=estimate.of.year, note=note, state=str(estimate.state))
        else:
            value, low, high = (bound * factor for bound in band)
            point = Point(year=estimate.of.year, value=value, low=low, high=high, state=str(estimate.state))
        values[estimate.of.group].append(point)
    lines = [Line(label=group, points=tuple(values[group])) for group in groups]
    return _drawn(
        Trend(
            title=title,
            unit=unit,
            series=tuple(lines),
            breaks=tuple(sorted(apart.items())),
            limit=limits[-1] * factor if limits else None,
            side=of.side,
            interval=_said("limits.band"),
        )
    )


def points(chart: Chart) -> int:
    """How many groups and years a chart shows, gaps among them."""
    return sum(len(line.points) for line in chart.series) if isinstance(chart, Trend) else 0


def scale(unit: declared.Unit, values: Iterable[float], measure: str) -> tuple[Unit, float]:
    """How a chart counts a measure, and what its values are multiplied by.

    Args:
        unit: of the measure, or of what it compares.
        values: of which the largest decides the decimals of a plain number: three significant digits.
        measure: its name, which tells a difference and a ratio.
    """
    if measure.endswith("_ratio"):
        return Unit("ratio", places=2, low=0.0), 1.0
    if unit in ("rate", "points"):
        return (_POINTS if unit == "points" or measure.endswith("_difference") else PERCENT), 100.0
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    places = 0 if unit == "count" or not largest else 2 - math.floor(math.log10(largest))
    return Unit("value", signed=measure.endswith("_difference"), places=min(max(places, 0), MOST_PLACES)), 1.0


def _drawn(chart: Trend) -> Trend | None:
    return chart if any(point.point is not None for line in chart.series for point in line.points) else None


# --------------------------------------------------------------------------------------------------------------------
# From verdicts of years to the table of what they say together.
#
# Computed from verdicts as they are published: what a year withholds is a gap here, and nothing can be had from this
# table that could not be had from the verdicts of the years.


Followed = Sequence[Monitored]
ALIKE = Conditions()
"""Conditions of a year that any other year may share."""


@dataclass(frozen=True)
class YearVerdicts:
    """The verdicts of one year; without a run, the reason."""

    year: int
    rows: tuple[Mapping[str, Any], ...] = ()
    """As the table of verdicts has them, the theory as a whole included."""
    conditions: Conditions = ALIKE
    """Without the definition of groups, which differs by attribute and group."""
    groups: Mapping[tuple[str, str], str] | None = None
    """Protected attribute and group -> their definition and that of the reference group; of unlisted
    groups under the empty name."""
    minimum_n: int = 30
    minimum_events: int = 10
    why: str = ""


def era(year: int, hmda: bool) -> str:
    """The rules by which the data of a year were collected."""
    return HMDA_BREAK[1] if hmda and year >= HMDA_BREAK[0] else ""


def follow(years: Sequence[YearVerdicts], rule: MonitoringRule) -> Followed:
    """What the years say together, in the order of series and years.

    Args:
        years: of one audit; a year that comes twice counts as it came last.
        rule: how years are held against the limit.
    """
    estimates = [estimate for year in years for estimate in year_estimates(year)]
    places = {(estimate.series, estimate.year) for estimate in estimates}
    last = {estimate.series: estimate for estimate in sorted(estimates, key=lambda estimate: estimate.year)}
    nan = math.nan
    for year in years:
        why = year.why or _said("not_judged")
        for series, estimate in last.items():
            if (series, year.year) not in places:
                missing = replace(estimate, year=year.year, value=nan, se=nan, low=nan, high=nan, bias=0.0)
                estimates.append(replace(missing, gap=why, ran=False))
    return monitor(estimates, rule)


def year_estimates(year: YearVerdicts) -> list[YearEstimate]:
    """The estimates of the judged groups of one year, in the sign of the pages: only of rows that decide a verdict."""
    defined, estimates = year.groups or {}, []
    for row in map(in_approval, year.rows):
        if row["role"] != "primary":
            continue
        attribute, group = row["protected_attribute"], row["group"]
        definition = defined.get((attribute, group), defined.get((attribute, ""), ""))
        estimate = YearEstimate(
            year=year.year,
            theory=row["theory"],
            attribute=attribute,
            group=group,
            decision_maker=row["decision_maker"],
            measure=row["measure"],
            value=_number(row["value"]),
            se=_number(row["se"]),
            scale="log" if row["scale"] == "log" else "linear",
            bias=row["bias"] or 0.0,
            limit=_number(row["limit"]),
            side="at_least" if row["side"] == "at_least" else "at_most",
            conditions=replace(year.conditions, groups=definition),
            reference=row["reference_group"] or "",
            low=_number(row["low"]),
            high=_number(row["high"]),
            gap=_gap(year, row),
        )
        estimates.append(estimate)
    return estimates


def table(audit: str, followed: Followed, rule: MonitoringRule) -> pa.Table:
    """One row for each series and year, in the shape of ``MONITORING``."""
    rows: list[dict[str, object]] = []
    for monitored in followed:
        of, change = monitored.of, monitored.change
        numbers = {
            "value": of.value,
            "low": of.low,
            "high": of.high,
            "limit": of.limit,
            "pooled": monitored.pooled,
            "pooled_low": monitored.pooled_low,
            "pooled_high": monitored.pooled_high,
            "change": change.change,
            "change_low": change.low,
            "change_high": change.high,
            "tau2": change.tau2,
            "predicted_low": change.predicted_low,
            "predicted_high": change.predicted_high,
            "minimal_change": change.minimal,
            "slope": change.slope,
            "slope_low": change.slope_low,
            "slope_high": change.slope_high,
            "since_p": change.since_p,
            "q": change.q,
        }
        row = {
            "audit": audit,
            "year": of.year,
            "theory": of.theory,
            "decision_maker": of.decision_maker,
            "protected_attribute": of.attribute,
            "group": of.group,
            "reference_group": of.reference,
            "measure": of.measure,
            "scale": of.scale,
            "side": of.side,
            "rule": rule.rule,
            "state": monitored.state,
            "change_state": change.state,
            "years_used": change.years_used,
            "since_year": change.since_year,
            "reason": monitored.said,
        }
        rows.append(row | {name: float(n) if math.isfinite(n) else None for name, n in numbers.items()})
    return MONITORING.build(**{column.name: [row[column.name] for row in rows] for column in MONITORING.columns})


def _gap(year: YearVerdicts, row: Mapping[str, Any]) -> str:
    """Why a row has no estimate that could be pooled; empty where it has one."""
    if row["value"] is None:
        return row["reason"] or _said("no_value")
    for n, events in (("n", "events"), ("n_reference", "events_reference")):
        if row[n] is not None and row[n] < year.minimum_n:
            return _said("few_people", n=year.minimum_n)
        if row[n] is not None and row[events] is not None:
            rarer = min(row[events], row[n] - row[events])
            if rarer < year.minimum_events:
                return _said("few_events", n=year.minimum_events)
    return ""


def breaches(followed: Followed) -> dict[tuple[str, str], int]:
    """Theory and group -> first year in which their present sequence lay beyond the limit."""
    last = {monitored.of.series: monitored for monitored in followed if monitored.of.usable}
    first_years: dict[tuple[str, str], int] = {}
    for monitored in last.values():
        if monitored.first_breach is not None:
            place = monitored.of.theory, monitored.of.group
            first_years[place] = min(monitored.first_breach, first_years.get(place, monitored.first_breach))
    return first_years


def changed(followed: Followed) -> list[Monitored]:
    """The series with a change in their last year with an estimate."""
    last = {monitored.of.series: monitored for monitored in followed if monitored.of.usable}
    return [monitored for monitored in last.values() if monitored.change.state is ChangeState.CHANGED]


AT_ONCE: Final = 0.01
"""q of a change below which a schedule does not wait for a second year."""


def to_announce(followed: Followed) -> list[Monitored]:
    """Series that a schedule announces: changed against the group, for two years in a row or with q below 0.01."""
    usable: dict[object, list[Monitored]] = {}
    for monitored in followed:
        if monitored.of.usable:
            usable.setdefault(monitored.of.series, []).append(monitored)

    def is_against(monitored: Monitored) -> bool:
        change = monitored.change
        above = change.change > (1 if monitored.of.scale == "log" else 0)
        return change.state is ChangeState.CHANGED and above == (monitored.of.side == "at_most")

    return [
        years[-1]
        for years in usable.values()
        if is_against(years[-1]) and (years[-1].change.q < AT_ONCE or (len(years) > 1 and is_against(years[-2])))
    ]


def said_by_theory(followed: Followed) -> list[str]:
    """One sentence a theory: whether its sequence has breached, and since when for which groups."""
    gone = breaches(followed)
    out = []
    for theory in dict.fromkeys(monitored.of.theory for monitored in followed):
        name = QUESTIONS[Theory(theory)].short
        group_texts = [
            _said("limits.since", group=group, year=year) for (of, group), year in gone.items() if of == theory
        ]
        if group_texts:
            out.append(_said("limits.outside", question=name, groups=", ".join(group_texts)))
        elif all(
            monitored.state in (State.NO_LIMIT, State.NOT_RUN)
            for monitored in followed
            if monitored.of.theory == theory
        ):
            out.append(_said("limits.no_limit", question=name))
        else:
            out.append(_said("limits.not_outside", question=name))
    return out


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


# --------------------------------------------------------------------------------------------------------------------
# The chapter of the years against their limits: the band of the years so far, year by year, and the changes.
#
# What is said is decided in ``monitoring``; here it is written. How it is drawn: ``charts``.


_HEADER = (
    *("Group", "Year", "Against the limit", "Changed", "Change"),
    *("Smallest seen", "Slope a year", "Since", "q", "Why"),
)


def chapter(followed: Followed, rule: MonitoringRule) -> list[Section]:
    """The chapter; none where no year has verdicts.

    Args:
        followed: in the order of series and years.
        rule: how years were held against the limit.
    """
    if not followed:
        return []
    rule_words = _said(f"limits.rules.{rule.rule}", level=f"{1 - rule.alpha:.2f}", years=rule.years)
    ordered = sorted(
        followed, key=lambda monitored: (list(Theory).index(Theory(monitored.of.theory)), _place(monitored))
    )
    alike = [list(rows) for _, rows in groupby(ordered, key=_place)]
    charted_places = fitting({place: len(rows) for place, rows in enumerate(alike)}, CHARTS, POINTS)
    parts = tuple(_part(rows, place in charted_places) for place, rows in enumerate(alike))
    points = tuple(said_by_theory(ordered))
    words = (rule_words, _said("limits.changes"))
    return [Section(_said("limits.title"), "monitoring", words, points, parts=parts)]


def _place(monitored: Monitored) -> tuple[str, str, str, str]:
    return monitored.of.theory, monitored.of.attribute, monitored.of.measure, monitored.of.decision_maker


def _part(rows: Sequence[Monitored], has_chart: bool) -> Section:
    """One measure of a theory, by one attribute: its chart or else its sequence as a table, and its last changes."""
    theory, attribute, measure, maker = _place(rows[0])
    words, unit = names(measure)
    title = f"{QUESTIONS[Theory(theory)].words} {title_of(words, maker, attribute)}"
    last = {monitored.of.group: monitored for monitored in rows if monitored.of.usable}
    groups = largest(dict.fromkeys(monitored.of.group for monitored in rows), lambda group: _effect(last.get(group)))
    chart = so_far(title, rows, groups) if has_chart else None
    limits = list(dict.fromkeys(limit_words(monitored.of) for monitored in rows))
    figures, tables = [], []
    if chart:
        # The chart shows the limit of the last year only.
        earlier = [limit for limit in limits if limit != limit_words(rows[-1].of)]
        caption = [_said("limits.caption")]
        if earlier:
            caption.append(_said("limits.caption_earlier", limits=", then ".join(earlier)))
        figures.append(Figure(chart, " ".join(caption)))
    else:
        tables.append(_sequence(title, rows, groups, unit, limits))
    changes = tuple(_change_row(last[group], unit) for group in groups if group in last)
    tables.append(TableView(_said("limits.changes_table"), _HEADER, changes, _said("limits.changes_note")))
    remark = left_out(len(groups), len({monitored.of.group for monitored in rows}))
    return Section(
        title,
        anchor("monitoring", theory, attribute, measure, maker),
        (remark,) if remark else (),
        figures=tuple(figures),
        tables=tuple(tables),
    )


def _sequence(
    title: str, rows: Sequence[Monitored], groups: Sequence[str], unit: DeclaredUnit, limits: Sequence[str]
) -> TableView:
    """The band and state of every group in every year."""
    by_place = {(monitored.of.group, monitored.of.year): monitored for monitored in rows}
    years = sorted({monitored.of.year for monitored in rows})
    lines = []
    for group in groups:
        cells = [Cell(group)]
        for year in years:
            monitored = by_place.get((group, year))
            if monitored is None:
                cells.append(Cell("–", "none"))
            elif math.isnan(monitored.pooled):
                cells.append(state_cell(monitored.state))
            else:
                kind: DeclaredUnit = "number" if monitored.of.scale == "log" else unit
                band = ends(monitored.pooled_low, monitored.pooled_high, kind)
                detail = f"{written(monitored.pooled, kind)} {band}"
                cells.append(Cell(state_cell(monitored.state).text, "state", monitored.state, detail))
        lines.append(tuple(cells))
    note = _said("limits.year_by_year_note", limits=", then ".join(limits))
    return TableView(
        _said("limits.year_by_year", title=title), ("Group", *map(str, years)), tuple(lines), note, folded=True
    )


def _effect(monitored: Monitored | None) -> float:
    """How far the years so far are from no effect; of a ratio in either direction."""
    if monitored is None or math.isnan(monitored.pooled):
        return 0.0
    return (
        abs(math.log(monitored.pooled))
        if monitored.of.scale == "log" and monitored.pooled > 0
        else abs(monitored.pooled)
    )


def _change_row(monitored: Monitored, unit: DeclaredUnit) -> Row:
    change, ratio = monitored.change, monitored.of.scale == "log"

    def cell(value: float, low: float = math.nan, high: float = math.nan) -> Cell:
        if math.isnan(value):
            return Cell("–", "none")
        if ratio:
            text, interval = f"× {significant(value)}", "" if math.isnan(low) else ends(low, high, "number")
        else:
            text = written(value, unit, "difference")
            interval = "" if math.isnan(low) else ends(low, high, unit, "difference")
        return Cell(text, "number", detail=interval)

    since = "–" if change.since_year is None else f"{change.since_year} (p {p_text(change.since_p)})"
    return (
        Cell(monitored.of.group),
        number_cell(str(monitored.of.year)),
        state_cell(monitored.state),
        Cell(_said(f"limits.change_states.{change.state}"), "state", change.state),
        cell(change.change, change.low, change.high),
        cell(change.minimal),
        cell(change.slope, change.slope_low, change.slope_high),
        Cell(since),
        p_cell(None if math.isnan(change.q) else change.q),
        Cell(monitored.said),
    )
