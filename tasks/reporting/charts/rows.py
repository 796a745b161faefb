"""Charts with a row for each thing that is compared: bars and dots along one scale.

Scope: rows that are no groups, such as attributes, bins, subgroups and lifted rules. Charts with a row for each group,
and curves: ``vega``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from tasks.reporting.charts.panels import Rows
from tasks.reporting.charts.vega import ACCENT, MATCHED, OWN, QUIET, ROWS, colour, names, panel, shape
from tasks.reporting.section import Panel, Span, Swatch

_LABELS = 260
"""Pixels that the name of a row may take."""


def bars(title: str, label: str, rows: Rows, order: Sequence[str]) -> Panel:
    """Shares as bars with their intervals, and the size-matched reference as a mark with its range under each.

    ``rows`` hold ``row``, ``what``, ``value``, ``low``, ``high`` and ``shown``.
    """
    base = _base(order).encode(
        yOffset=alt.YOffset("what:N", scale=alt.Scale(domain=[OWN, MATCHED])),
        color=alt.Color("what:N", legend=None, scale=alt.Scale(domain=[OWN, MATCHED], range=[ACCENT, QUIET])),
        tooltip=[
            alt.Tooltip("row:N", title="attribute"),
            alt.Tooltip("what:N", title="of"),
            alt.Tooltip("shown:N", title="changed"),
        ],
    )
    own, matched = (base.transform_filter(alt.datum.what == what) for what in (OWN, MATCHED))
    share = alt.X("value:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", tickCount=4))
    bar = own.mark_bar(opacity=0.5).encode(x=share)
    mark = matched.mark_point(filled=True, size=40, opacity=1, shape="diamond").encode(x=share)
    return panel(title, label, bar + _whiskers(base) + mark, rows, 45 + 26 * len(order), span="half")


def dots(
    title: str,
    label: str,
    rows: Rows,
    order: Sequence[str],
    kinds: Mapping[str, tuple[str, str]],
) -> Panel:
    """Counts of several kinds as dots on a logarithmic scale; ``kinds`` gives each its colour and shape.

    ``rows`` hold ``row``, ``kind``, ``value`` and ``shown``; 0 has a place on the scale.
    """
    domain, colours, shapes = list(kinds), [c for c, _ in kinds.values()], [s for _, s in kinds.values()]
    scale = alt.Scale(type="symlog", domainMin=0, nice=False)
    axis = alt.Axis(values=[0, *(10**power for power in range(8))], format=",d")
    mark = (
        _base(order)
        .mark_point(filled=True, size=60, opacity=0.9)
        .encode(
            x=alt.X("value:Q", title="number", scale=scale, axis=axis),
            color=alt.Color("kind:N", legend=None, scale=alt.Scale(domain=domain, range=colours)),
            shape=alt.Shape("kind:N", legend=None, scale=alt.Scale(domain=domain, range=shapes)),
            tooltip=[alt.Tooltip("row:N", title="subgroup"), alt.Tooltip("shown:N", title="size")],
        )
    )
    return panel(title, label, mark, rows, 55 + 18 * len(order), span="half")


def against(title: str, label: str, rows: Rows, order: Sequence[str], most: float) -> Panel:
    """Shares as dots with their intervals, and one share, the first row's, as a line through all the rows.

    ``rows`` hold ``row``, ``value``, ``low``, ``high`` and ``shown``; the scale ends at ``most``.
    """
    base = _base(order).encode(
        color=alt.condition(alt.datum.row == order[0], alt.value(QUIET), alt.value(ACCENT)),
        tooltip=[alt.Tooltip("row:N", title="search"), alt.Tooltip("shown:N", title="value")],
    )
    first = alt.Chart(ROWS).transform_filter(alt.datum.row == order[0])
    rule = first.mark_rule(color=QUIET, strokeDash=[4, 3]).encode(x="value:Q")
    scale, axis = alt.Scale(domain=[0, most]), alt.Axis(format="%", tickCount=4)
    dot = base.mark_point(filled=True, size=45, opacity=1).encode(
        x=alt.X("value:Q", title=None, scale=scale, axis=axis)
    )
    return panel(title, label, rule + _whiskers(base) + dot, rows, 45 + 20 * len(order), span="half")


def beside(
    title: str,
    label: str,
    rows: Rows,
    order: alt.Y,
    kinds: Mapping[str, Swatch],
    value: alt.X,
    said: Sequence[alt.Tooltip],
    height: int,
    span: Span = "half",
) -> Panel:
    """Marks with their intervals: a line for each row, and in it the kinds under each other.

    ``rows`` hold ``what`` (one of ``kinds``), ``value``, ``low`` and ``high`` (null: no interval), and the fields of
    ``order`` and of the tooltips ``said``.
    """
    base = beneath(order, kinds).encode(tooltip=said)
    whisker = base.mark_rule(strokeWidth=3, opacity=0.5).encode(x=alt.X("low:Q", title=value["title"]), x2="high:Q")
    mark = base.mark_point(filled=True, size=60, opacity=1).encode(x=value, shape=shape(kinds))
    return panel(title, label, whisker + mark, rows, height, span)


def beneath(order: alt.Y, kinds: Mapping[str, Swatch]) -> alt.Chart:
    """A chart with a line for each row, and in it the kinds under each other, each in its colour."""
    offset = alt.YOffset("what:N", sort=list(kinds), scale=alt.Scale(domain=list(kinds)))
    return alt.Chart(ROWS).encode(y=order, yOffset=offset, color=colour(kinds))


def bins(
    title: str, label: str, rows: Rows, order: Sequence[str], kinds: Mapping[str, Swatch], most: float, of: str
) -> Panel:
    """Shares of people by bins of ``of``, as bars with intervals.

    ``rows`` hold ``bin``, ``kind`` and as a share's; ``order`` gives the bins from top to bottom; the scale ends at
    ``most``.
    """
    share = alt.X("value:Q", title=None, axis=alt.Axis(format="%", tickCount=4), scale=alt.Scale(domain=[0, most]))
    base = alt.Chart(ROWS).encode(
        y=names("bin", order),
        color=colour(kinds, "kind"),
        tooltip=[alt.Tooltip("bin:N", title=of), alt.Tooltip("shown:N", title="share")],
    )
    whisker = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=None), x2="high:Q")
    return panel(title, label, base.mark_bar(opacity=0.5).encode(x=share) + whisker, rows, 45 + 20 * len(order))


def _base(order: Sequence[str]) -> Any:
    rows = alt.Y(
        "row:N", title=None, sort=list(order), scale=alt.Scale(domain=list(order)), axis=alt.Axis(labelLimit=_LABELS)
    )
    return alt.Chart(ROWS).encode(y=rows)


def _whiskers(base: Any) -> Any:
    return base.mark_rule(strokeWidth=2, opacity=0.6).encode(x=alt.X("low:Q", title=None), x2="high:Q")
