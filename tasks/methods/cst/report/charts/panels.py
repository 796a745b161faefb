"""Charts of CST: shares beside what permuted labels give, differences, what depends on a setting, and shifts.

Here belongs drawing alone; the causal graph is drawn in ``causal_chart``. Nothing is told by colour alone.
"""

from collections.abc import Mapping, Sequence

import altair as alt

from tasks.reporting.charts.panels import Rows
from tasks.reporting.charts.vega import ACCENT, HEIGHT, QUIET, REFERENCE, ROWS, WARM, colour, dash, names, panel
from tasks.reporting.section import Panel, Swatch

FOUND, CHANCE = "found", "labels permuted"
BEFORE, AFTER = "as they are", "as imagined"


_LARGE = 10_000
"""From here on numbers on an axis are written in thousands (k) or millions (M)."""


def beside_chance(title: str, label: str, rows: Rows, order: Sequence[str], most: float) -> Panel:
    """Shares as dots with their intervals, and under each in grey what permuted labels give, with its range.

    ``rows`` hold ``group``, ``what`` (``FOUND`` or ``CHANCE``), ``value``, ``low``, ``high`` and ``shown``. The scale
    ends at ``most``, and begins at 0.
    """
    kinds = [FOUND, CHANCE]
    base = alt.Chart(ROWS).encode(
        y=names("group", order),
        yOffset=alt.YOffset("what:N", sort=kinds, scale=alt.Scale(domain=kinds)),
        color=alt.Color("what:N", legend=None, scale=alt.Scale(domain=kinds, range=[ACCENT, QUIET])),
        tooltip=[alt.Tooltip("group:N"), alt.Tooltip("what:N", title="of"), alt.Tooltip("shown:N", title="share")],
    )
    share = alt.X("value:Q", title=None, scale=alt.Scale(domain=[0, most]), axis=alt.Axis(format="%", tickCount=5))
    found, chance = (base.transform_filter(alt.datum.what == what) for what in kinds)
    ends = {"x": alt.X("low:Q", title=None), "x2": "high:Q"}
    band = chance.mark_rule(strokeWidth=9, opacity=0.35).encode(**ends)
    shape = alt.Shape("what:N", legend=None, scale=alt.Scale(domain=kinds, range=["circle", "diamond"]))
    dot = base.mark_point(filled=True, size=60, opacity=1).encode(x=share, shape=shape)
    whisker = found.mark_rule(strokeWidth=3, opacity=0.55).encode(**ends)
    return panel(title, label, band + whisker + dot, rows, 45 + 44 * len(order), span="half")


def settings(title: str, label: str, rows: Rows, kinds: Mapping[str, Swatch], x: str, most: float) -> Panel:
    """Shares along a setting, a line with intervals for each kind; ``rows`` hold ``kind``, ``x`` and as a share's."""
    base = alt.Chart(ROWS).encode(
        x=alt.X("x:Q", title=x, axis=alt.Axis(values=sorted({row["x"] for row in rows})), scale=alt.Scale(zero=False)),
        color=colour(kinds, "kind"),
        tooltip=[alt.Tooltip("kind:N"), alt.Tooltip("x:Q", title=x), alt.Tooltip("shown:N", title="share")],
    )
    scale, axis = alt.Scale(domain=[0, most], nice=False), alt.Axis(format="%", tickCount=5)
    y = alt.Y("value:Q", title=None, scale=scale, axis=axis)
    whisker = base.mark_rule(strokeWidth=3, opacity=0.3).encode(y=alt.Y("low:Q", title=None), y2="high:Q")
    line = base.mark_line(strokeWidth=2).encode(y=y, strokeDash=dash(kinds, "kind"))
    return panel(title, label, whisker + line + base.mark_point(filled=True, size=22, opacity=1).encode(y=y), rows, 190)


def shift(title: str, label: str, rows: Rows, order: Sequence[str], reach: tuple[float, float], share: bool) -> Panel:
    """What rows are and what they would be, two points each with a line between them.

    ``rows`` hold ``row``, ``what`` (``BEFORE`` or ``AFTER``), ``value`` and ``shown``. ``reach``: least and greatest
    value on the scale. ``share``: whether values are shares, written as percent.
    """
    kinds = [BEFORE, AFTER]
    axis = alt.Axis(format="%" if share else "~s" if reach[1] >= _LARGE else "~r", tickCount=4)
    base = alt.Chart(ROWS).encode(y=names("row", order))
    x = alt.X("value:Q", title=None, axis=axis, scale=alt.Scale(domain=list(reach), zero=False, nice=False))
    line = base.mark_line(color=QUIET, strokeWidth=2).encode(x=x, detail="row:N")
    point = base.mark_point(filled=True, size=48, opacity=1).encode(
        x=x,
        color=alt.Color("what:N", legend=None, scale=alt.Scale(domain=kinds, range=[REFERENCE, WARM])),
        shape=alt.Shape("what:N", legend=None, scale=alt.Scale(domain=kinds, range=["circle", "triangle"])),
        tooltip=[alt.Tooltip("row:N", title="of"), alt.Tooltip("what:N", title=" "), alt.Tooltip("shown:N")],
    )
    return panel(title, label, line + point, rows, min(HEIGHT + 60, 45 + 18 * len(order)))
