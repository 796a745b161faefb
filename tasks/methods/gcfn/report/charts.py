"""Charts of GCFN: shares with their intervals, distributions, the course of a training, and fair predictors.

Scope: drawing. Nothing is told by colour alone: kinds have shapes or dashes of their own.
"""

from collections.abc import Mapping, Sequence

import altair as alt

from tasks.reporting.charts.panels import Rows
from tasks.reporting.charts.rows import beside
from tasks.reporting.charts.vega import ACCENT, HEIGHT, REFERENCE, ROWS, colour, dash, names, panel, shape
from tasks.reporting.section import Panel, Span, Swatch

ONE, MEAN = "one network", "mean over networks"
TRAINING = {ONE: Swatch(ONE, ACCENT), MEAN: Swatch(MEAN, REFERENCE, "6 3")}
"""The lines of a training."""
_LARGE = 10_000
"""From here on numbers on an axis are written in thousands (k) or millions (M)."""


def shares(
    title: str, label: str, rows: Rows, kinds: Mapping[str, Swatch], span: Span = "half", every: Rows = ()
) -> Panel:
    """Shares as marks with their intervals, on the scale of the rows ``every``, else of these alone.

    ``rows`` hold ``row``, ``what`` (one of ``kinds``), ``value``, ``low`` and ``high`` (null: no interval), ``shown``.
    """
    order = list(dict.fromkeys(row["row"] for row in rows))
    most = max(max(row["value"], row["high"] or 0.0) for row in every or rows)
    scale = alt.Scale(domain=[0, min(1.0, 1.05 * most) or 1.0])
    x = alt.X("value:Q", title=None, axis=alt.Axis(format="%", tickCount=5), scale=scale)
    said = [alt.Tooltip("row:N", title="of"), alt.Tooltip("what:N", title=" "), alt.Tooltip("shown:N")]
    height = 45 + (12 + 14 * len(kinds)) * len(order)
    return beside(title, label, rows, names("row", order), kinds, x, said, height, span)


def below(title: str, label: str, rows: Rows, kinds: Mapping[str, Swatch], reach: tuple[float, float]) -> Panel:
    """Which share lies below which value, a line for each kind.

    ``rows`` hold ``what``, ``value``, ``share`` and ``shown``; values are drawn from one end of ``reach`` to the other.
    """
    form = "~s" if max(map(abs, reach)) >= _LARGE else "~r"
    scale = alt.Scale(domain=list(reach), zero=False, nice=False, padding=6)
    base = alt.Chart(ROWS).encode(
        x=alt.X("value:Q", title=None, axis=alt.Axis(format=form, tickCount=4), scale=scale),
        y=alt.Y("share:Q", title="lie below", axis=alt.Axis(format="%", tickCount=5), scale=alt.Scale(domain=[0, 1])),
        order="share:Q",
        color=colour(kinds),
        tooltip=[alt.Tooltip("what:N", title=" "), alt.Tooltip("share:Q", format=".0%"), alt.Tooltip("shown:N")],
    )
    line = base.mark_line(strokeWidth=2).encode(strokeDash=dash(kinds))
    return panel(title, label, line + base.mark_point(filled=True, size=16, opacity=1), rows, HEIGHT)


def densities(title: str, label: str, rows: Rows, kinds: Mapping[str, Swatch], most: float) -> Panel:
    """Shares of people by intervals of one width, as ``stepped``; the scale ends at ``most``."""
    form = "~s" if max(abs(row["x"]) for row in rows) >= _LARGE else "~r"
    across = alt.Scale(zero=False, nice=False, padding=4)
    x = alt.X("x:Q", title=None, axis=alt.Axis(format=form, tickCount=4), scale=across)
    said = [alt.Tooltip("what:N", title=" "), alt.Tooltip("x:Q"), alt.Tooltip("shown:N", title="share")]
    return stepped(title, label, rows, kinds, x, most, said)


def scores(title: str, label: str, rows: Rows, kinds: Mapping[str, Swatch], every: Rows) -> Panel:
    """Shares of applicants by their score, as ``stepped``, on the scale of the rows ``every``."""
    x = alt.X("x:Q", title="score", axis=alt.Axis(tickCount=5), scale=alt.Scale(domain=[0, 1]))
    said = [alt.Tooltip("what:N", title="model"), alt.Tooltip("x:Q", title="score"), alt.Tooltip("shown:N")]
    return stepped(title, label, rows, kinds, x, _reach(every, "value")[1], said)


def stepped(
    title: str,
    label: str,
    rows: Rows,
    kinds: Mapping[str, Swatch],
    x: alt.X,
    most: float,
    said: Sequence[alt.Tooltip],
) -> Panel:
    """A stepped line for each kind, broken where a share is withheld.

    ``rows`` hold, for either end of an interval, ``what``, ``x``, ``place`` (on the line), ``value`` (null: withheld)
    and ``shown``.
    """
    y = alt.Y("value:Q", title=None, axis=alt.Axis(format="%", tickCount=5), scale=alt.Scale(domain=[0, most]))
    line = alt.Chart(ROWS).mark_line(strokeWidth=2, invalid="break-paths-show-domains")
    drawn = line.encode(x=x, y=y, order="place:Q", color=colour(kinds), strokeDash=dash(kinds), tooltip=said)
    return panel(title, label, drawn, rows, HEIGHT)


def epochs(title: str, label: str, rows: Rows) -> Panel:
    """How one term went over the epochs: a thin line for each network and a broad one for their mean.

    ``rows`` hold ``what`` (``ONE`` or ``MEAN``), ``network`` (in words), ``epoch`` and ``value``.
    """
    base = alt.Chart(ROWS).encode(
        x=alt.X("epoch:Q", title="epoch", axis=alt.Axis(tickCount=5), scale=alt.Scale(zero=False, nice=False)),
        y=alt.Y("value:Q", title=None, axis=alt.Axis(tickCount=5), scale=alt.Scale(zero=False)),
        detail="network:N",
        tooltip=[alt.Tooltip("network:N"), alt.Tooltip("epoch:Q"), alt.Tooltip("value:Q", format=".3~r")],
    )
    one, mean = (base.transform_filter(alt.datum.what == what) for what in (ONE, MEAN))
    thin = one.mark_line(color=ACCENT, strokeWidth=1, opacity=0.45)
    broad = mean.mark_line(color=REFERENCE, strokeWidth=2.5, strokeDash=[6, 3])
    return panel(title, label, thin + broad, rows, HEIGHT)


def trade_off(title: str, label: str, rows: Rows, kinds: Mapping[str, Swatch], every: Rows) -> Panel:
    """Accuracy against the change of scores, a mark for each predictor, and a line through those of the curve.

    ``rows`` hold ``model``, ``kind`` (one of ``kinds``), ``moved``, ``accuracy``, ``curve`` (whether on the line),
    ``place`` (where on it), ``name`` to be written beside the mark and ``shown``. ``every``: the rows of all panels.
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


def _reach(rows: Rows, field: str) -> list[float]:
    """The least and the greatest value."""
    values = [row[field] for row in rows if row[field] is not None]
    return [min(values), max(values)]
