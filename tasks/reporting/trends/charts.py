"""Figures over years: a dot with its interval for every year, lines between years that are alike, marks in the gaps.

A range of draws is no interval and is not drawn. A line ends where a year has no value to draw and at a break, after
which data are collected in another way. The shape of a dot tells the edition of the year's data.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from schemas.tables.trends import Told
from tasks.reporting.charts import vega
from tasks.reporting.material import Measure, Unit
from tasks.reporting.numbers import value
from tasks.reporting.section import Panel, Swatch
from tasks.reporting.trends.trend import Series, YearResult, found, told

SHAPES = ("circle", "square", "triangle", "diamond", "triangle-down", "cross")
_VEGA = {"triangle": "triangle-up"}
"""Where Vega calls a shape by another name."""
_GAP = "M-1,-1L1,1M-1,1L1,-1"
"""A saltire, as the path of a shape."""
_STEP = 0.14
"""Years between the dots of two groups, so that intervals do not hide each other."""


def drawn(
    years: Sequence[YearResult], series: Sequence[Series], unit: Unit, broken: Mapping[int, str]
) -> list[dict[str, Any]]:
    """The rows of a figure: a dot for every value and a mark for every gap; one series a group."""
    rows = []
    for place, one in enumerate(series):
        aside, segment = beside(place, len(series)), 0
        for year in years:
            m = found(year, one)
            what = told(m, year.minimum_n)
            segment += what is not Told.VALUE or year.year in broken
            rows.append(_row(year, one[3], m, what, unit) | {"x": year.year + aside, "segment": f"{place}-{segment}"})
            segment += what is not Told.VALUE
    return rows


def beside(place: int, groups: int) -> float:
    """How far beside its year a group is drawn, in years."""
    return (place - (groups - 1) / 2) * min(_STEP, 0.7 / groups)


def _row(year: YearResult, group: str, m: Measure | None, what: Told, unit: Unit) -> dict[str, Any]:
    shown = value(m, unit) if what is Told.VALUE else f"{what.value}: {year.why}" if year.why else what.value
    row: dict[str, Any] = {"group": group, "year": year.year, "edition": year.edition, "shown": shown}
    if m is None or what is not Told.VALUE:
        return row | {"what": "gap"}
    ends = (None, None) if m.of_draws else (m.low, m.high)  # a range of draws would be taken for an interval
    return row | {"what": "dot", "value": m.value, "low": ends[0], "high": ends[1]}


def editions(years: Sequence[YearResult]) -> dict[str, str]:
    """Edition -> shape of its dots, in order of the years."""
    names = list(dict.fromkeys(year.edition for year in years if year.run))
    return {name: SHAPES[i % len(SHAPES)] for i, name in enumerate(names)}


def panel(
    title: str,
    rows: Sequence[Mapping[str, Any]],
    swatches: Mapping[str, Swatch],
    shapes: Mapping[str, str],
    broken: Mapping[int, str],
    share: bool,
    limits: Sequence[float] = (),
) -> Panel:
    """One measure over the years, one line a group.

    ``rows`` are as ``drawn`` gives them. ``swatches``: group -> its colour and dash. ``shapes``: edition -> shape of
    its dots. ``broken``: first year after a break -> what is another thing from then on. ``share``: whether values are
    shares, written as percent. ``limits``: values at which a line is drawn across.
    """
    data = [*rows, *({"what": "limit", "value": limit, "shown": f"limit {limit:g}"} for limit in limits)]
    data += [*({"what": "break", "x": year - 0.5, "shown": words} for year, words in broken.items())]
    ticks = sorted({row["year"] for row in rows})
    axis = alt.Axis(values=ticks, format="d", grid=False)
    scale = alt.Scale(domain=[ticks[0] - 0.6, ticks[-1] + 0.6], nice=False, zero=False)
    base = alt.Chart(vega.ROWS).encode(
        x=alt.X("x:Q", title="year of the decisions", axis=axis, scale=scale),
        tooltip=[alt.Tooltip(f"{name}:N") for name in ("group", "year", "shown", "edition")],
    )
    coloured = base.encode(color=vega.colour(swatches, "group"))
    dots = coloured.transform_filter(alt.datum.what == "dot")
    y_axis = alt.Axis(format="%", tickCount=5) if share else alt.Axis(tickCount=5)
    low, high = _reach(rows, limits)
    y_scale = alt.Scale(domain=[low - 0.1 * (high - low), high + 0.05 * (high - low)], nice=False, zero=False)
    y = alt.Y("value:Q", title=None, axis=y_axis, scale=y_scale)
    shape = alt.Scale(domain=list(shapes), range=[_VEGA.get(name, name) for name in shapes.values()])
    layers = (
        base.transform_filter(alt.datum.what == "break").mark_rule(color=vega.QUIET, strokeDash=[4, 3])
        + dots.mark_rule(opacity=0.45, strokeWidth=2).encode(y=alt.Y("low:Q", title=None, scale=y_scale), y2="high:Q")
        + dots.mark_line(strokeWidth=2).encode(y=y, detail="segment:N", strokeDash=vega.dash(swatches, "group"))
        + dots.mark_point(filled=True, size=55, opacity=1).encode(
            y=y, shape=alt.Shape("edition:N", legend=None, scale=shape)
        )
        + coloured.transform_filter(alt.datum.what == "gap")
        .mark_point(shape=_GAP, filled=False, size=22, strokeWidth=2, opacity=1)
        .encode(y=alt.YDatum(low - 0.06 * (high - low), scale=y_scale))
    )
    if limits:
        line = alt.Chart(vega.ROWS).transform_filter(alt.datum.what == "limit")
        layers += line.mark_rule(color=vega.REFERENCE, strokeDash=[8, 4], strokeWidth=1.5).encode(y=y)
    label = f"{title}: {len(swatches)} groups from {ticks[0]} to {ticks[-1]}; the table below holds the numbers"
    return vega.panel(title, label, layers, data, vega.HEIGHT, span="full")


def _reach(rows: Sequence[Mapping[str, Any]], limits: Sequence[float]) -> tuple[float, float]:
    """Least and greatest end of an interval, value without one, or limit; a little apart where they are the same."""
    ends = [row[name] for row in rows for name in ("low", "value", "high") if row.get(name) is not None] + [*limits]
    low, high = min(ends), max(ends)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def legend(
    swatches: Mapping[str, Swatch], shapes: Mapping[str, str], rows: Sequence[Mapping[str, Any]]
) -> tuple[Swatch, ...]:
    """Groups, editions and, where there are any, gaps."""
    of_editions = [Swatch(f"data: {name}", vega.QUIET, shape=shape) for name, shape in shapes.items()]
    gap = [Swatch("× no value to draw", vega.QUIET, "0 34")] if any(row["what"] == "gap" for row in rows) else []
    return (*swatches.values(), *of_editions, *gap)
