"""Charts of fair predictors: accuracy against unfairness, utility against its weight, and scores as densities.

Here belongs drawing alone. Nothing is told by colour alone: kinds have shapes, and lines have dashes. The groups of a
figure have one scale, and so every chart is told the rows of all of them.
"""

from collections.abc import Mapping

import altair as alt

from tasks.reporting.charts.panels import Rows
from tasks.reporting.charts.vega import ACCENT, HEIGHT, ROWS, colour, dash, panel, shape
from tasks.reporting.section import Panel, Swatch


def trade_off(title: str, label: str, rows: Rows, kinds: Mapping[str, Swatch], every: Rows) -> Panel:
    """Accuracy against the change of scores, a mark for each predictor, and a line through those of the curve.

    Args:
        title: of the panel.
        label: for a screen reader.
        rows: ``model``, ``kind`` (one of ``kinds``), ``moved``, ``accuracy``, ``curve`` (whether on the line),
            ``place`` (where on it), ``name`` to be written beside the mark and ``shown``.
        kinds: how each kind is drawn.
        every: the rows of all panels.
    """
    across = alt.Scale(domain=[0, _reach(every, "moved")[1]], padding=14)
    upwards = alt.Scale(domain=_reach(every, "accuracy"), padding=18)
    x = alt.X("moved:Q", title="change of the score (root of CF)", scale=across, axis=alt.Axis(tickCount=5))
    y = alt.Y("accuracy:Q", title="accuracy", scale=upwards, axis=alt.Axis(format="%", tickCount=5))
    base = alt.Chart(ROWS).encode(x=x, y=y)
    line = base.transform_filter("datum.curve").mark_line(color=ACCENT, strokeWidth=1.5, opacity=0.6)
    mark = base.mark_point(filled=True, size=70, opacity=1).encode(
        color=colour(kinds, "kind"),
        shape=shape(kinds, "kind"),
        tooltip=[alt.Tooltip("model:N"), alt.Tooltip("shown:N", title="accuracy; change of the score")],
    )
    names = base.transform_filter("datum.name").mark_text(dy=-11).encode(text="name:N")
    return panel(title, label, line.encode(order="place:Q") + mark + names, rows, 260, span="half")


def utilities(title: str, label: str, rows: Rows, kinds: Mapping[str, Swatch], every: Rows) -> Panel:
    """A line for each predictor; ``rows`` hold ``what`` (one of ``kinds``), ``x`` (gamma), ``value`` and ``shown``."""
    base = alt.Chart(ROWS).encode(
        color=colour(kinds),
        strokeDash=dash(kinds),
        x=alt.X("x:Q", title="gamma", axis=alt.Axis(tickCount=5), scale=alt.Scale(zero=False, nice=False)),
        y=alt.Y("value:Q", title=None, axis=alt.Axis(tickCount=5), scale=alt.Scale(domain=_reach(every, "value"))),
        tooltip=[alt.Tooltip("what:N", title="model"), alt.Tooltip("x:Q", title="gamma"), alt.Tooltip("shown:N")],
    )
    return panel(title, label, base.mark_line(strokeWidth=2), rows, HEIGHT)


def scores(title: str, label: str, rows: Rows, kinds: Mapping[str, Swatch], every: Rows) -> Panel:
    """Shares of applicants by their score, a stepped line for each kind, broken where a bin is withheld.

    ``rows`` hold, for either end of a bin, ``what``, ``x``, ``place`` (on the line), ``value`` (null: withheld) and
    ``shown``.
    """
    upwards = alt.Scale(domain=[0, _reach(every, "value")[1]])
    base = alt.Chart(ROWS).encode(
        color=colour(kinds),
        strokeDash=dash(kinds),
        x=alt.X("x:Q", title="score", axis=alt.Axis(tickCount=5), scale=alt.Scale(domain=[0, 1])),
        y=alt.Y("value:Q", title=None, axis=alt.Axis(format="%", tickCount=5), scale=upwards),
        tooltip=[alt.Tooltip("what:N", title="model"), alt.Tooltip("x:Q", title="score"), alt.Tooltip("shown:N")],
    )
    line = base.mark_line(strokeWidth=2, invalid="break-paths-show-domains")
    return panel(title, label, line.encode(order="place:Q"), rows, HEIGHT)


def _reach(rows: Rows, field: str) -> list[float]:
    """The least and the greatest value."""
    values = [row[field] for row in rows if row[field] is not None]
    return [min(values), max(values)]
