"""Charts of the ladder: differences with their intervals by rung, and robustness beside what the controls explain."""

from collections.abc import Mapping, Sequence

import altair as alt

from tasks.reporting.charts.panels import Rows
from tasks.reporting.charts.vega import ROWS, colour, names, panel, shape
from tasks.reporting.section import Panel, Swatch


def ladder(title: str, label: str, rows: Rows, order: Sequence[str], kinds: Mapping[str, Swatch], every: Rows) -> Panel:
    """Differences as marks with their intervals, a line for each rung and under each other the estimators.

    Args:
        title: of the panel.
        label: for a screen reader.
        rows: ``row`` (the rung), ``what`` (one of ``kinds``), ``value``, ``low``, ``high`` (null: none) and ``shown``.
        order: the rungs from top to bottom.
        kinds: how each estimator is drawn.
        every: the rows of all panels, which have one scale.
    """
    domain = list(kinds)
    ends = [end for row in every for end in (row["value"], row["low"], row["high"]) if end is not None]
    # a linear coefficient far outside of a difference of probabilities would hide all others: it stands in the table
    reach = [max(-1.0, min(0.0, *ends)) - 0.01, min(1.0, max(0.0, *ends)) + 0.01]
    base = alt.Chart(ROWS).encode(
        y=names("row", order),
        yOffset=alt.YOffset("what:N", sort=domain, scale=alt.Scale(domain=domain)),
        color=colour(kinds),
        tooltip=[alt.Tooltip("row:N", title="rung"), alt.Tooltip("what:N", title=" "), alt.Tooltip("shown:N")],
    )
    axis = alt.Axis(format="+%", tickCount=5)
    x = alt.X("value:Q", title=None, axis=axis, scale=alt.Scale(domain=reach))
    whisker = base.mark_rule(strokeWidth=3, opacity=0.5, clip=True).encode(x=alt.X("low:Q", title=None), x2="high:Q")
    mark = base.mark_point(filled=True, size=60, opacity=1, clip=True).encode(x=x, shape=shape(kinds))
    zero = alt.Chart(ROWS).mark_rule(color="#8a8f98", strokeDash=[4, 3]).encode(x=alt.datum(0))
    return panel(title, label, zero + whisker + mark, rows, 45 + (10 + 12 * len(kinds)) * len(order), "half")


def robustness(title: str, label: str, rows: Rows, order: Sequence[str], kinds: Mapping[str, Swatch]) -> Panel:
    """What each control explains of denial and of membership, and as lines what would be needed of both.

    ``rows`` hold ``row`` (the control), ``what`` (one of ``kinds``), ``value``, ``need`` (the robustness value) and
    ``shown``.
    """
    most = max(row["value"] for row in rows)
    need = max(row["need"] for row in rows)
    scale = alt.Scale(domain=[0, min(1.0, 1.1 * max(most, need)) or 1.0])
    base = alt.Chart(ROWS).encode(
        y=names("row", order, 220),
        color=colour(kinds),
        tooltip=[alt.Tooltip("row:N", title="control"), alt.Tooltip("what:N", title=" "), alt.Tooltip("shown:N")],
    )
    x = alt.X("value:Q", title="share explained of what is left", axis=alt.Axis(format="%", tickCount=5), scale=scale)
    mark = base.mark_point(filled=True, size=60, opacity=0.9).encode(x=x, shape=shape(kinds))
    line = alt.Chart(ROWS).mark_rule(color="#c2571a", strokeDash=[6, 3], strokeWidth=2).encode(x="need:Q")
    return panel(title, label, line + mark, rows, 60 + 20 * len(order), "half")
