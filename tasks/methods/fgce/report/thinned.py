"""What is measured on a graph, beside the reference group at the size of each group: the charts of rules and of joins.

A small group has a thinner graph whatever the rule, so that each mark of a group has a grey one: of the reference
group's graph, thinned to as many rows. Here belong what the two parts share, and their charts, since shares of lifted
rules need a scale of their own and counts of components a logarithmic one. The other charts are in
``reporting.charts.rows`` and ``tasks.reporting.charts.vega``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import altair as alt

from tasks.metrics.algorithm.measures import base_name
from tasks.reporting.charts.vega import ACCENT, DASHES, HEIGHT, MATCHED, OWN, QUIET, REFERENCE, ROWS, panel
from tasks.reporting.comparison import beside_words
from tasks.reporting.material import View
from tasks.reporting.section import Panel

_LABELS = 215
"""Pixels that the name of a row may take."""
_COLOUR = alt.Color("what:N", legend=None, scale=alt.Scale(domain=[OWN, MATCHED], range=[ACCENT, QUIET]))


def only(view: View, measures: Iterable[str]) -> View:
    """A view of some measures alone: whether they have a size-matched reference is no matter of the others."""
    wanted = frozenset(measures)
    return replace(view, rows=tuple(m for m in view.rows if base_name(m.measure) in wanted), everyone=view.groups)


def size_words(view: View) -> str:
    """How to read the grey of a figure, or why there is none."""
    if not view.is_matched:
        return "The reference group was not subsampled for this: an effect of size cannot be told from any other."
    draws = max(m.n or 0 for m in view.rows if m.measure.endswith("_size_matched"))
    few = f" The range is that of at most {draws} subsamples, and another one may well lie outside it." * (draws < 20)
    return f"A small group has a thinner graph, whatever the rules. {beside_words(view)}{few}"


def lifted(title: str, label: str, rows: Sequence[Mapping[str, Any]], order: Sequence[str], most: float) -> Panel:
    """Shares as dots with their intervals, the size-matched reference under each, and the first share as a line.

    ``rows`` hold ``row``, ``what`` (``OWN`` or ``MATCHED``), ``value``, ``low``, ``high`` and ``shown``. The scale ends
    at ``most``.
    """
    names = alt.Y("row:N", title=None, sort=list(order), scale=alt.Scale(domain=list(order)))
    base = alt.Chart(ROWS).encode(
        y=names.axis(labelLimit=_LABELS),
        yOffset=alt.YOffset("what:N", scale=alt.Scale(domain=[OWN, MATCHED])),
        color=_COLOUR,
        tooltip=[
            alt.Tooltip("row:N", title="search"),
            alt.Tooltip("what:N", title="of"),
            alt.Tooltip("shown:N", title="value"),
        ],
    )
    share = alt.X("value:Q", title=None, scale=alt.Scale(domain=[0, most]), axis=alt.Axis(format="%", tickCount=4))
    shape = alt.Shape("what:N", legend=None, scale=alt.Scale(domain=[OWN, MATCHED], range=["circle", "diamond"]))
    kept = alt.Chart(ROWS).transform_filter((alt.datum.row == order[0]) & (alt.datum.what == OWN))
    line = kept.mark_rule(color=REFERENCE, strokeDash=[4, 3]).encode(x="value:Q")
    whisker = base.mark_rule(strokeWidth=2, opacity=0.6).encode(x=alt.X("low:Q", title=None), x2="high:Q")
    dot = base.mark_point(filled=True, size=45, opacity=1).encode(x=share, shape=shape)
    return panel(title, label, line + whisker + dot, rows, 45 + 26 * len(order), span="half")


def counts(title: str, label: str, rows: Sequence[Mapping[str, Any]], x: str, most: float) -> Panel:
    """One group's counts as lines, and in grey those of the size-matched reference with their range.

    ``rows`` hold ``line`` (at most as many as there are dashes), ``what``, ``x`` and ``value``; for the own ``shown``,
    the value in words, and for the matched ``low`` and ``high``. ``x``: title of the axis. ``most``: where the scale
    ends, which is logarithmic and has a place for 0.
    """
    lines = list(dict.fromkeys(row["line"] for row in rows))
    dash = alt.Scale(domain=lines, range=[list(dash) for dash in DASHES[: len(lines)]])
    base = alt.Chart(ROWS).encode(
        x=alt.X("x:Q", title=x, axis=alt.Axis(tickCount=5), scale=alt.Scale(zero=False)),
        color=_COLOUR,
        tooltip=[
            alt.Tooltip("line:N"),
            alt.Tooltip("what:N", title="of"),
            alt.Tooltip("x:Q", title=x),
            alt.Tooltip("shown:N", title="value"),
        ],
    )
    ticks = alt.Axis(values=[0, *(10**power for power in range(8))], format=",d")
    y = alt.Y("value:Q", title=None, axis=ticks, scale=alt.Scale(type="symlog", domain=[0, most], nice=False))
    own, matched = (base.transform_filter(alt.datum.what == what) for what in (OWN, MATCHED))
    band = matched.mark_area(opacity=0.16).encode(y=alt.Y("low:Q", title=None), y2="high:Q", detail="line:N")
    line = base.mark_line(strokeWidth=2).encode(y=y, strokeDash=alt.StrokeDash("line:N", legend=None, scale=dash))
    drawn = line + own.mark_point(filled=True, size=16, opacity=1).encode(y=y)
    if any(row["what"] == MATCHED for row in rows):  # a layer without rows has no extent, and browsers complain
        drawn = band + drawn
    return panel(title, label, drawn, rows, HEIGHT)
