"""Charts: Vega-Lite specs built with Altair, and their static SVG, which needs no script, font or network.

Every chart is one panel of a third, a half or all of the page, so that panels flow beside or under each other on any
screen. It takes the title of its panel, the label that a screen reader says, and rows. Where there are rows of a list
or kinds of marks, ``order`` names those from top to bottom, and ``kinds`` say how each is drawn. Legends are HTML.
Group names enter as data only. The reference group is dark grey, and no line is told by colour alone.
"""

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import Any

import altair as alt
import vl_convert

from tasks.reporting.section import Panel, Span, Swatch

ACCENT, QUIET, WARM, REFERENCE = "#0b5394", "#8a8f98", "#c2571a", "#33373d"
OWN, MATCHED = "own", "size-matched"
"""What a mark stands for: the group itself, or the size-matched reference."""
_PALETTE = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7a5195", "#5c7f00")
DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (12, 4), (4, 2, 1, 2))
ROWS = alt.NamedData(name="rows")
"""What every chart draws, by name: Altair would copy the values themselves, mark by mark."""
HEIGHT = 225
WIDTHS: Mapping[Span, int] = {"third": 285, "half": 430, "full": 880}
"""Of a panel, in pixels."""
_TAG = re.compile(r"<[^>]+>")
_UNSEEN = re.compile(r'<path class="(background|foreground)"[^>]*/>')
_SAID = re.compile(
    r' (aria-hidden|aria-roledescription|role|pointer-events|font-family)="[^"]*"| (opacity|stroke-width)="1"'
)
_LETTERS = re.compile(r' (font-size|font-weight|fill)="[^"]*"')
"""Of all text in a chart alike, and so in the style of the page."""
_FINE = re.compile(r"(\d\.\d\d)\d+")
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


def colour(kinds: Mapping[str, Swatch], field: str = "what") -> alt.Color:
    """Colour by kind."""
    scale = alt.Scale(domain=list(kinds), range=[swatch.colour for swatch in kinds.values()])
    return alt.Color(f"{field}:N", legend=None, scale=scale)


def dash(kinds: Mapping[str, Swatch], field: str = "what") -> alt.StrokeDash:
    """Dash by kind."""
    dashes = [[float(d) for d in swatch.dash.split()] or [1, 0] for swatch in kinds.values()]
    return alt.StrokeDash(f"{field}:N", legend=None, scale=alt.Scale(domain=list(kinds), range=dashes))


def shape(kinds: Mapping[str, Swatch], field: str = "what") -> alt.Shape:
    """Shape by kind."""
    scale = alt.Scale(domain=list(kinds), range=[swatch.shape for swatch in kinds.values()])
    return alt.Shape(f"{field}:N", legend=None, scale=scale)


def names(field: str, order: Sequence[str], most: int = 150) -> alt.Y:
    """A row for each name from top to bottom, which may take so many pixels."""
    scale = alt.Scale(domain=list(order), padding=0.3)
    return alt.Y(f"{field}:N", title=None, sort=list(order), scale=scale, axis=alt.Axis(labelLimit=most))


def palette(groups: Sequence[str], reference: str) -> dict[str, Swatch]:
    """Colour and dash of every group, the same in all charts of a section."""
    out, place = {}, count()
    for group in groups:
        if group == reference:
            out[group] = Swatch(f"{group} (reference)", REFERENCE)
            continue
        i = next(place)
        dash = DASHES[(i + 1 + i // len(_PALETTE)) % len(DASHES)]
        out[group] = Swatch(group, _PALETTE[i % len(_PALETTE)], " ".join(map(str, dash)))
    return out


def curves(
    title: str, label: str, rows: Sequence[Mapping[str, Any]], x: str, reach: tuple[float, float], share: bool
) -> Panel:
    """One group's curves, and in grey those of the size-matched reference with its range.

    ``rows`` hold ``line`` (at most as many as there are dashes), ``what`` (``OWN`` or ``MATCHED``), ``x`` and
    ``value``; for the own ``shown``, the value in words, and for the matched ``low`` and ``high``. ``x``: title of the
    axis. ``reach``: least and greatest value on the scale. ``share``: whether values are shares, written as percent.
    """
    span = [end(row["x"] for row in rows) for end in (min, max)]
    lines = list(dict.fromkeys(row["line"] for row in rows if row["what"] == OWN))
    axis = alt.Axis(format="%", tickCount=5) if share else alt.Axis(tickCount=5)
    scale = alt.Scale(domain=list(reach), zero=False, nice=not share)
    dashes = alt.Scale(domain=lines, range=[list(each) for each in DASHES[: len(lines)]])
    base = alt.Chart(ROWS).encode(
        x=alt.X("x:Q", title=x, axis=alt.Axis(tickCount=6), scale=alt.Scale(domain=span, nice=False)),
        color=alt.Color("what:N", legend=None, scale=alt.Scale(domain=[OWN, MATCHED], range=[ACCENT, QUIET])),
        tooltip=[
            alt.Tooltip("line:N"),
            alt.Tooltip("what:N", title="of"),
            alt.Tooltip("x:Q", title=x),
            alt.Tooltip("shown:N", title="value"),
        ],
    )
    y = alt.Y("value:Q", title=None, scale=scale, axis=axis)
    band = base.mark_area(opacity=0.16).encode(y=alt.Y("low:Q", title=None), y2="high:Q", detail="line:N")
    line = base.mark_line(strokeWidth=2).encode(y=y, strokeDash=alt.StrokeDash("line:N", legend=None, scale=dashes))
    own = base.transform_filter(alt.datum.what == OWN)
    layers = band.transform_filter(alt.datum.what == MATCHED) + line + own.mark_point(filled=True, size=16).encode(y=y)
    return panel(title, label, layers, rows, HEIGHT)


def intervals(title: str, label: str, rows: Sequence[Mapping[str, Any]], groups: Sequence[str], share: bool) -> Panel:
    """Dots with intervals, one line a group, and under each the size-matched reference where there is one.

    ``rows`` hold ``group``, ``what`` (``OWN`` or ``MATCHED``), ``value``, ``low``, ``high`` and ``shown``. ``groups``:
    order of the lines. ``share``: whether values are shares, written as percent.
    """
    axis = alt.Axis(format="%", tickCount=4) if share else alt.Axis(tickCount=5)
    base = alt.Chart(ROWS).encode(
        y=alt.Y("group:N", title=None, sort=list(groups), scale=alt.Scale(domain=list(groups), padding=0.35)),
        yOffset=alt.YOffset("what:N", sort=[OWN, MATCHED], scale=alt.Scale(domain=[OWN, MATCHED])),
        color=alt.Color("what:N", legend=None, scale=alt.Scale(domain=[OWN, MATCHED], range=[ACCENT, QUIET])),
        tooltip=[alt.Tooltip("group:N", title="group"), alt.Tooltip("shown:N", title="value")],
    )
    rule = base.mark_rule(strokeWidth=3, opacity=0.55).encode(
        x=alt.X("low:Q", title=None, axis=axis, scale=alt.Scale(zero=True)), x2="high:Q"
    )
    dot = base.mark_point(filled=True, size=70, opacity=1).encode(
        x="value:Q",
        shape=alt.Shape("what:N", legend=None, scale=alt.Scale(domain=[OWN, MATCHED], range=["circle", "diamond"])),
    )
    return panel(title, label, rule + dot, rows, 60 + 44 * len(groups), span="half")


def panel(
    title: str, label: str, chart: Any, rows: Sequence[Mapping[str, Any]], height: int, span: Span = "third"
) -> Panel:
    """A chart of ``rows`` as a panel of the page: its spec, and its SVG for readers without scripts."""
    fit = alt.AutoSizeParams(type="fit", contains="padding")
    sized = chart.properties(width=WIDTHS[span], height=height, autosize=fit)
    spec = sized.to_dict(validate=False) | {"config": _CONFIG}
    spec.pop("$schema", None)
    spec["datasets"] = {ROWS.name: [_rounded(row) for row in rows]}
    return Panel(title, label, spec, _TAG.sub(_slim, vl_convert.vegalite_to_svg(spec)), span)


def _slim(tag: re.Match[str]) -> str:
    """A tag of the SVG without what the page says once or nobody sees: a report holds a hundred figures and more."""
    if _UNSEEN.fullmatch(tag[0]):
        return ""
    said = _SAID.sub("", tag[0])
    return _FINE.sub(r"\1", _LETTERS.sub("", said) if said.startswith("<text") else said)


def _rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as it is drawn: what it says was written before, and no eye sees the fifth decimal."""
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}


def with_unique_ids(svg: str, prefix: str) -> str:
    """The SVG with its ids counted from 1 and prefixed: several on one page would else take each other's clip paths.

    The library counts the ids of a process, so that they depend on what it drew before.
    """
    numbers: dict[str, int] = {}

    def own(found: re.Match[str]) -> str:
        return f"{found[1]}{prefix}-{numbers.setdefault(found[2], len(numbers) + 1)}"

    return re.sub(r'(\bid="|url\(#)([^")]+)', own, svg)


@lru_cache(maxsize=1)
def bundle() -> str:
    """Vega, Vega-Lite and their embedding as one script, to be inlined once.

    A child process makes it: the library holds the interpreter's lock for the two seconds that this takes, and would
    keep the command from ending on Ctrl-C.

    Raises:
        CalledProcessError: the child process failed or was killed.
    """
    program = "import sys, vl_convert; sys.stdout.buffer.write(vl_convert.javascript_bundle().encode())"
    return subprocess.run([sys.executable, "-P", "-c", program], check=True, capture_output=True).stdout.decode()  # noqa: S603 our own words
