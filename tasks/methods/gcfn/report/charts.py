"""Charts of GCFN's audit: shares with their intervals, distributions of mediators, and how a training went.

Here belongs drawing alone. Nothing is told by colour alone: kinds have shapes or dashes of their own.
"""

from collections.abc import Mapping, Sequence

import altair as alt

from tasks.reporting.charts.panels import Rows
from tasks.reporting.charts.vega import ACCENT, HEIGHT, REFERENCE, ROWS, colour, dash, names, panel, shape
from tasks.reporting.section import Panel, Span, Swatch

ONE, MEAN = "one network", "mean over networks"
TRAINING = {ONE: Swatch(ONE, ACCENT), MEAN: Swatch(MEAN, REFERENCE, "6 3")}
"""The lines of a training."""
_LARGE = 10_000
"""From here on numbers on an axis are written in thousands (k) or millions (M)."""


def shares(
    title: str,
    label: str,
    rows: Rows,
    order: Sequence[str],
    kinds: Mapping[str, Swatch],
    span: Span = "half",
    every: Rows = (),
) -> Panel:
    """Shares as marks with their intervals, a line for each row and under each other the kinds.

    Args:
        title: of the panel.
        label: for a screen reader.
        rows: ``row``, ``what`` (one of ``kinds``), ``value``, ``low`` and ``high`` (null: no interval) and ``shown``.
        order: the rows from top to bottom.
        kinds: how each kind is drawn.
        span: how much of the page's width it takes.
        every: the rows of all panels that have one scale; these alone if there are none.
    """
    domain = list(kinds)
    base = alt.Chart(ROWS).encode(
        y=names("row", order),
        yOffset=alt.YOffset("what:N", sort=domain, scale=alt.Scale(domain=domain)),
        color=colour(kinds),
        tooltip=[alt.Tooltip("row:N", title="of"), alt.Tooltip("what:N", title=" "), alt.Tooltip("shown:N")],
    )
    most = max(max(row["value"], row["high"] or 0.0) for row in every or rows)
    axis = alt.Axis(format="%", tickCount=5)
    x = alt.X("value:Q", title=None, axis=axis, scale=alt.Scale(domain=[0, min(1.0, 1.05 * most) or 1.0]))
    whisker = base.mark_rule(strokeWidth=3, opacity=0.5).encode(x=alt.X("low:Q", title=None), x2="high:Q")
    mark = base.mark_point(filled=True, size=60, opacity=1).encode(x=x, shape=shape(kinds))
    return panel(title, label, whisker + mark, rows, 45 + (12 + 14 * len(kinds)) * len(order), span)


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
    """Shares of people by intervals of one width, a stepped line for each kind, broken where a share is withheld.

    ``rows`` hold, for either end of an interval, ``what``, ``x``, ``place`` (on the line), ``value`` (null: withheld)
    and ``shown``; the scale ends at ``most``.
    """
    form = "~s" if max(abs(row["x"]) for row in rows) >= _LARGE else "~r"
    across = alt.Scale(zero=False, nice=False, padding=4)
    line = (
        alt.Chart(ROWS)
        .mark_line(strokeWidth=2, invalid="break-paths-show-domains")
        .encode(
            x=alt.X("x:Q", title=None, axis=alt.Axis(format=form, tickCount=4), scale=across),
            y=alt.Y("value:Q", title=None, axis=alt.Axis(format="%", tickCount=5), scale=alt.Scale(domain=[0, most])),
            order="place:Q",
            color=colour(kinds),
            strokeDash=dash(kinds),
            tooltip=[alt.Tooltip("what:N", title=" "), alt.Tooltip("x:Q"), alt.Tooltip("shown:N", title="share")],
        )
    )
    return panel(title, label, line, rows, HEIGHT)


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
