"""Shares of people along one quantity, as bars."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from tasks.reporting.charts.vega import ROWS, panel
from tasks.reporting.section import Panel, Swatch

_LABELS = 150
"""Pixels that the name of a row may take."""


Rows = Sequence[Mapping[str, Any]]


def bins(
    title: str, label: str, rows: Rows, order: Sequence[str], kinds: Mapping[str, Swatch], most: float, of: str
) -> Panel:
    """Shares of people by bins of ``of``, as bars with intervals.

    ``rows`` hold ``bin``, ``kind`` and as a share's; ``order`` gives the bins from top to bottom; the scale ends at
    ``most``.
    """
    colours = alt.Scale(domain=list(kinds), range=[swatch.colour for swatch in kinds.values()])
    share = alt.X("value:Q", title=None, axis=alt.Axis(format="%", tickCount=4), scale=alt.Scale(domain=[0, most]))
    base = alt.Chart(ROWS).encode(
        y=_named("bin", order),
        color=alt.Color("kind:N", legend=None, scale=colours),
        tooltip=[alt.Tooltip("bin:N", title=of), alt.Tooltip("shown:N", title="share")],
    )
    whisker = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=None), x2="high:Q")
    return panel(title, label, base.mark_bar(opacity=0.5).encode(x=share) + whisker, rows, 45 + 20 * len(order))


def _named(field: str, order: Sequence[str]) -> Any:
    scale = alt.Scale(domain=list(order), padding=0.3)
    return alt.Y(f"{field}:N", title=None, sort=list(order), scale=scale, axis=alt.Axis(labelLimit=_LABELS))
