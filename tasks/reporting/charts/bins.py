"""Shares of people along one quantity, as bars."""

from collections.abc import Mapping, Sequence

import altair as alt

from tasks.reporting.charts.panels import Rows
from tasks.reporting.charts.vega import ROWS, colour, names, panel
from tasks.reporting.section import Panel, Swatch


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
