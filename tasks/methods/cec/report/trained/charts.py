"""The chart of the lambda frontier: what accuracy each consistency was had for.

Here belongs drawing alone. A shade is a lambda of consistency and a shape one of equal odds; the tooltip and the table
say both in words.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt

from tasks.reporting.charts.vega import QUIET, REFERENCE, ROWS, colour, panel, shape
from tasks.reporting.section import Panel, Swatch

SHAPES = ("circle", "square", "triangle", "diamond", "cross", "triangle-down")
_LIGHT, _DARK = (0xA9, 0xC7, 0xE6), (0x08, 0x2A, 0x5C)
FRONT = "4 3"
"""Dash of the frontier."""


def shades(values: Iterable[str]) -> dict[str, Swatch]:
    """A square for each lambda of consistency, from light to dark."""
    found = list(values)
    steps = max(1, len(found) - 1)
    colours = [_between(place / steps) for place in range(len(found))]
    return {v: Swatch(f"lambda CEC {v}", c, shape="square") for v, c in zip(found, colours, strict=True)}


def _between(part: float) -> str:
    mixed = (round(a + part * (b - a)) for a, b in zip(_LIGHT, _DARK, strict=True))
    return "#" + "".join(f"{level:02x}" for level in mixed)


def shapes(values: Iterable[str]) -> dict[str, Swatch]:
    """A shape for each lambda of equal odds; beyond six they come again."""
    return {v: Swatch(f"lambda EO {v}", QUIET, shape=SHAPES[i % len(SHAPES)]) for i, v in enumerate(values)}


def frontier(
    title: str, label: str, rows: Sequence[Mapping[str, Any]], cec: Mapping[str, Swatch], eo: Mapping[str, Swatch]
) -> Panel:
    """Balanced accuracy against CEC, a mark for each net, and a line through those that no other one beats.

    Args:
        title: of the panel.
        label: for a screen reader.
        rows: ``model``, ``cec``, ``accuracy``, ``lambda_eo`` and ``lambda_cec`` in words, ``collapsed``, ``front``,
            ``name`` to be written beside the mark, if any, and ``shown``.
        cec: how each lambda of consistency is drawn.
        eo: how each lambda of equal odds is drawn.
    """
    x = alt.X("cec:Q", title="CEC", scale=alt.Scale(zero=False, padding=24), axis=alt.Axis(tickCount=6))
    y = alt.Y("accuracy:Q", title="balanced accuracy", scale=alt.Scale(zero=False, padding=18))
    base = alt.Chart(ROWS).encode(x=x, y=y)
    front = base.transform_filter("datum.front").mark_line(
        interpolate="step-after", color=REFERENCE, strokeDash=[4, 3], strokeWidth=1.5
    )
    point = base.encode(
        color=colour(cec, "lambda_cec"),
        shape=shape(eo, "lambda_eo"),
        tooltip=[
            alt.Tooltip("model:N"),
            alt.Tooltip("lambda_eo:N", title="lambda EO"),
            alt.Tooltip("lambda_cec:N", title="lambda CEC"),
            alt.Tooltip("shown:N", title="balanced accuracy; CEC"),
        ],
    )
    full = point.transform_filter("!datum.collapsed").mark_point(filled=True, size=75, opacity=1)
    hollow = point.transform_filter("datum.collapsed").mark_point(filled=False, size=75, opacity=1, strokeWidth=1.6)
    names = base.transform_filter("datum.name").mark_text(dy=16).encode(text="name:N")
    return panel(title, label, front + hollow + full + names, rows, 330, span="full")
