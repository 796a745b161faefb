"""Charts over years: one measure, a panel a group.

A line ends where a year has no value to draw, and at a break, after which data are collected in another way. Only an
interval that covers as often as it says is drawn: of other measures there is no chart, and their table holds them.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from schemas.tables.trends import Told
from schemas.terms import ChangeState, State
from tasks.metrics.algorithm.monitoring.monitored import Monitored
from tasks.reporting import declared
from tasks.reporting.charts.element import Chart
from tasks.reporting.charts.numbers import MOST_PLACES, PERCENT, WITHHELD, Unit
from tasks.reporting.charts.trend import Point, Trend
from tasks.reporting.charts.trend import Series as Line
from tasks.reporting.material import capital
from tasks.reporting.numbers import covers
from tasks.reporting.trends.trend import Series, YearResult, found, told

BAND = "band of the years so far"
CHECKED = (State.BREACH, State.WITHIN, State.INSUFFICIENT_EVIDENCE)
_POINTS = Unit("percentage points", signed=True)
_GAPS = {
    Told.TOO_FEW: "Too few people for a value.",
    Told.UNDEFINED: "Undefined.",
    Told.NOT_MADE: "The run of this year does not make it.",
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
    values = (m.value for year in years for one in series if (m := found(year, one)) and m.value is not None)
    unit, factor = scale(declared.names(measure)[1], values, measure)
    lines = [
        Line(label=one[3], reference=one[3] == reference, points=tuple(_point(year, one, factor) for year in years))
        for one in series
    ]
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
    unit, factor = scale(declared.names(of.measure)[1], (one.pooled for one in rows), of.measure + ratio)
    limits = [one.of.limit for one in rows if not math.isnan(one.of.limit)]
    apart = {one.of.year: one.change.reason for one in rows if one.change.state is ChangeState.NOT_COMPARABLE}
    lines = [
        Line(label=group, points=tuple(_band(one, factor) for one in rows if one.of.group == group)) for group in groups
    ]
    return _drawn(
        Trend(
            title=title,
            unit=unit,
            series=tuple(lines),
            breaks=tuple(sorted(apart.items())),
            limit=limits[-1] * factor if limits else None,
            side=of.side,
            interval=BAND,
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


def _point(year: YearResult, series: Series, factor: float) -> Point:
    """A value with its interval, or why there is none."""
    m = found(year, series)
    what = told(m, year.minimum_n)
    if what is Told.WITHHELD:
        return Point(year=year.year, value=WITHHELD)
    if m is None or m.value is None or what is not Told.VALUE:
        return Point(year=year.year, note=f"{capital(year.why)}." if year.why else _GAPS[what])
    ends = (None, None) if m.of_draws or m.low is None or m.high is None else (m.low * factor, m.high * factor)
    state = m.state if m.state in CHECKED else ""
    return Point(year=year.year, value=m.value * factor, low=ends[0], high=ends[1], n=m.n, state=state)


def _band(one: Monitored, factor: float) -> Point:
    """The pooled estimate of the years so far with its band, or why there is none."""
    if any(map(math.isnan, (one.pooled, one.pooled_low, one.pooled_high))):
        said = one.reason or "no estimate"
        return Point(year=one.of.year, note=f"{capital(said)}.", state=str(one.state))
    value, low, high = (each * factor for each in (one.pooled, one.pooled_low, one.pooled_high))
    return Point(year=one.of.year, value=value, low=low, high=high, state=str(one.state))


def _drawn(chart: Trend) -> Trend | None:
    return chart if any(point.point is not None for line in chart.series for point in line.points) else None
