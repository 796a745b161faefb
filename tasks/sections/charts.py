"""Charts: Vega-Lite specs built with Altair, and their static SVG, which needs no script, font or network.

Every chart is one panel of a third or a half of the page, so that panels flow beside or under each other on any screen.
Legends are HTML. Group names enter as data only. The reference group is dark grey, and no line is told by colour alone.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import Any

import altair as alt
import vl_convert

from tasks.sections._section import Panel, Swatch

ACCENT, QUIET, REFERENCE = "#0b5394", "#8a8f98", "#33373d"
_PALETTE = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7a5195", "#5c7f00")
_DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (12, 4), (4, 2, 1, 2))
NARROW, WIDE, HEIGHT = 285, 430, 225
_CONFIG = {
    "font": "Arial, Helvetica, sans-serif",
    "background": "transparent",
    "aria": False,  # the panel around it has one label; a label on every mark would only be noise
    "view": {"stroke": None},
    "axis": {
        "labelFontSize": 11.5,
        "titleFontSize": 11.5,
        "titleFontWeight": "normal",
        "labelColor": "#33373d",
        "titleColor": "#33373d",
        "gridColor": "#e6e8eb",
        "domainColor": "#b6bac0",
        "tickColor": "#b6bac0",
        "labelLimit": 150,
    },
}


def palette(groups: Sequence[str], reference: str) -> dict[str, Swatch]:
    """Colour and dash of every group, the same in all charts of a section."""
    out, place = {}, count()
    for group in groups:
        if group == reference:
            out[group] = Swatch(f"{group} (reference)", REFERENCE)
            continue
        i = next(place)
        dash = _DASHES[(i + 1 + i // len(_PALETTE)) % len(_DASHES)]
        out[group] = Swatch(group, _PALETTE[i % len(_PALETTE)], " ".join(map(str, dash)))
    return out


def curves(
    title: str,
    label: str,
    rows: Sequence[Mapping[str, Any]],
    swatches: Mapping[str, Swatch],
    x: tuple[str, str],
    stepped: bool = False,
) -> Panel:
    """Shares between 0 and 1 against ``x`` (field, title), one line a group.

    Args:
        title: of the panel.
        label: for a screen reader.
        rows: ``group``, the field of x, ``value``, ``low``, ``high`` and ``shown`` (the value in words).
        swatches: colours by group.
        x: field and axis title.
        stepped: whether x is a whole number, so that points are drawn.
    """
    domain = list(swatches)
    axis = alt.Axis(tickMinStep=1, format="d") if stepped else alt.Axis(tickCount=6)
    base = alt.Chart(alt.Data(values=[dict(row) for row in rows])).encode(
        x=alt.X(f"{x[0]}:Q", title=x[1], axis=axis, scale=alt.Scale(nice=not stepped, zero=not stepped)),
        y=alt.Y("value:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", tickCount=5)),
        color=alt.Color(
            "group:N", legend=None, scale=alt.Scale(domain=domain, range=[s.colour for s in swatches.values()])
        ),
        tooltip=[
            alt.Tooltip("group:N", title="group"),
            alt.Tooltip(f"{x[0]}:Q", title=x[1]),
            alt.Tooltip("shown:N", title="coverage"),
        ],
    )
    dashes = [[float(d) for d in s.dash.split()] or [1, 0] for s in swatches.values()]
    line = base.mark_line(strokeWidth=2).encode(
        strokeDash=alt.StrokeDash("group:N", legend=None, scale=alt.Scale(domain=domain, range=dashes))
    )
    mark = base.mark_point(filled=True, size=28 if stepped else 14, opacity=1)
    return _panel(title, label, line + mark, HEIGHT, wide=stepped)


def intervals(title: str, label: str, rows: Sequence[Mapping[str, Any]], groups: Sequence[str], share: bool) -> Panel:
    """Dots with intervals, one line a group, and under each the size-matched reference where there is one.

    Args:
        title: of the panel.
        label: for a screen reader.
        rows: ``group``, ``what`` (``own`` or ``matched``), ``value``, ``low``, ``high`` and ``shown``.
        groups: order of the lines.
        share: whether values are shares, written as percent.
    """
    axis = alt.Axis(format="%", tickCount=4) if share else alt.Axis(tickCount=5)
    base = alt.Chart(alt.Data(values=[dict(row) for row in rows])).encode(
        y=alt.Y("group:N", title=None, sort=list(groups), scale=alt.Scale(domain=list(groups), padding=0.35)),
        yOffset=alt.YOffset("what:N", sort=["own", "matched"], scale=alt.Scale(domain=["own", "matched"])),
        color=alt.Color("what:N", legend=None, scale=alt.Scale(domain=["own", "matched"], range=[ACCENT, QUIET])),
        tooltip=[alt.Tooltip("group:N", title="group"), alt.Tooltip("shown:N", title="value")],
    )
    rule = base.mark_rule(strokeWidth=3, opacity=0.55).encode(
        x=alt.X("low:Q", title=None, axis=axis, scale=alt.Scale(zero=True)), x2="high:Q"
    )
    dot = base.mark_point(filled=True, size=70, opacity=1).encode(
        x="value:Q",
        shape=alt.Shape("what:N", legend=None, scale=alt.Scale(domain=["own", "matched"], range=["circle", "diamond"])),
    )
    return _panel(title, label, rule + dot, 60 + 44 * len(groups), wide=True)


def _panel(title: str, label: str, chart: Any, height: int, wide: bool = False) -> Panel:
    width = WIDE if wide else NARROW
    sized = chart.properties(width=width, height=height, autosize=alt.AutoSizeParams(type="fit", contains="padding"))
    spec = sized.configure(**_CONFIG).to_dict(validate=False)
    spec.pop("$schema", None)
    svg: str = vl_convert.vegalite_to_svg(spec)
    return Panel(title, label, spec, svg, wide)


def with_unique_ids(svg: str, prefix: str) -> str:
    """The SVG with its ids prefixed: several on one page would else take each other's clip paths."""
    return re.sub(r'(\bid="|url\(#)', rf"\g<1>{prefix}-", svg)


@lru_cache(maxsize=1)
def bundle() -> str:
    """Vega, Vega-Lite and their embedding as one script, to be inlined once."""
    return str(vl_convert.javascript_bundle())  # type: ignore[call-arg]  # its stub forgets the default
