"""Charts of CEC: scores beside their floor, the plane of scores and decisions, regimes, theta, features, the frontier.

Scope: drawing. Nothing is told by colour alone: pairs, models and regimes bear their number or letter, nets a shape.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt

from tasks.reporting.charts.panels import Rows
from tasks.reporting.charts.rows import beside
from tasks.reporting.charts.vega import ACCENT, QUIET, REFERENCE, ROWS, WARM, colour, dash, names, panel, shape
from tasks.reporting.section import Panel, Swatch

SCORE, OWN_GROUP, FLOOR = "CEC", "within the group", "matching floor"
YARDSTICKS = {
    SCORE: Swatch("CEC, with interval", ACCENT, shape="circle"),
    OWN_GROUP: Swatch(OWN_GROUP, WARM, shape="square"),
    FLOOR: Swatch(FLOOR, QUIET, shape="triangle"),
}
POINT, CORNER, EDGE = "point", "corner", "edge"
"""What a row of the plane is: a pair of groups or a model, the name of a regime, or a line between regimes."""
_FLIPS = "pairs decided on differently"
SHAPES = ("circle", "square", "triangle", "diamond", "cross", "triangle-down")
_LIGHT, _DARK = (0xA9, 0xC7, 0xE6), (0x08, 0x2A, 0x5C)
FRONT = "4 3"
"""Dash of the frontier."""

_LABELS = 215
"""Pixels that the name of a row may take."""
_WIDE = 0.06
"""Share from which on a bar has room for its letter."""


def beside_floor(title: str, label: str, rows: Rows, order: Sequence[str]) -> Panel:
    """Scores with their intervals, under each what the group scores with itself, and its floor.

    ``rows`` hold ``pair``, ``what`` (one of ``YARDSTICKS``), ``value``, ``low``, ``high`` and ``shown``.
    """
    said = [alt.Tooltip("pair:N"), alt.Tooltip("what:N", title="of"), alt.Tooltip("shown:N", title="value")]
    x = alt.X("value:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=5))
    return beside(title, label, rows, names("pair", order, _LABELS), YARDSTICKS, x, said, 45 + 54 * len(order))


def plane(title: str, label: str, rows: Rows) -> Panel:
    """Flips across, scores upwards: each pair of groups, or each model, a numbered point above its floor.

    ``rows`` hold ``part``; of a ``POINT`` ``of`` (the pair or the model), ``number``, ``right`` (on which side the
    number stands), ``flip``, ``cec``, their ends ``flip_low``, ``flip_high``, ``low`` and ``high``, ``floor`` if known,
    and ``shown``; of a ``CORNER`` ``flip``, ``cec``, ``words`` and ``right``, whether its words end there; of an
    ``EDGE`` either ``flip`` or ``cec``.
    """
    unit = alt.Scale(domain=[0, 1])
    x = alt.X("flip:Q", title=_FLIPS, scale=unit, axis=alt.Axis(format="%", tickCount=5))
    y = alt.Y("cec:Q", title=SCORE, scale=unit, axis=alt.Axis(tickCount=5))
    said = [alt.Tooltip("of:N"), alt.Tooltip("shown:N", title="CEC; flips")]
    point = alt.Chart(ROWS).transform_filter(alt.datum.part == POINT).encode(x=x, y=y, tooltip=said)
    edge = alt.Chart(ROWS).transform_filter(alt.datum.part == EDGE).mark_rule(color=QUIET, strokeDash=[4, 3])
    floor, whisker = alt.Y("floor:Q", title=SCORE), {"color": ACCENT, "strokeWidth": 3, "opacity": 0.4}
    layers: list[Any] = [
        edge.transform_filter("isValid(datum.cec)").encode(y=y),
        edge.transform_filter("isValid(datum.flip)").encode(x=x),
        *(_corners(right, x, y) for right in (False, True)),
        point.mark_rule(color=QUIET, strokeWidth=1).encode(y=floor, y2="cec:Q"),
        point.mark_point(filled=True, color=QUIET, shape="triangle", size=50, opacity=1).encode(y=floor),
        point.mark_rule(**whisker).encode(y=alt.Y("low:Q", title=SCORE), y2="high:Q"),
        point.mark_rule(**whisker).encode(x=alt.X("flip_low:Q", title=_FLIPS), x2="flip_high:Q"),
        point.mark_point(filled=True, color=ACCENT, size=60, opacity=1),
        *(_numbers(point, right) for right in (False, True)),
    ]
    return panel(title, label, alt.layer(*layers), rows, 330, span="half")


def _numbers(point: alt.Chart, right: bool) -> Any:
    """The numbers on either side of their points, since both directions of a pair lie close."""
    side = {"dx": 9, "dy": 10} if right else {"dx": -9, "dy": -10}
    return point.transform_filter(alt.datum.right == right).mark_text(**side).encode(text="number:N")


def _corners(right: bool, x: alt.X, y: alt.Y) -> Any:
    here = alt.Chart(ROWS).transform_filter(f"datum.part === '{CORNER}' && datum.right === {str(right).lower()}")
    return here.mark_text(align="right" if right else "left", color="#5b6068").encode(x=x, y=y, text="words:N")


def regimes(title: str, label: str, rows: Rows, order: Sequence[str], kinds: Mapping[str, Swatch]) -> Panel:
    """Shares of the regimes as one bar for each pair of groups, or for each model.

    ``rows`` hold ``of``, ``regime``, ``start``, ``middle``, ``end``, ``value`` and ``shown``.
    """
    base = alt.Chart(ROWS).encode(
        y=names("of", order, _LABELS),
        tooltip=[alt.Tooltip("of:N"), alt.Tooltip("regime:N"), alt.Tooltip("shown:N", title="share")],
    )
    x = alt.X("start:Q", title=None, axis=alt.Axis(format="%", tickCount=5), scale=alt.Scale(domain=[0, 1]))
    bar = base.mark_bar(opacity=0.55).encode(x=x, x2="end:Q", color=colour(kinds, "regime"))
    letter = base.transform_filter(alt.datum.value > _WIDE).mark_text()
    words = letter.encode(x=alt.X("middle:Q", title=None), text="regime:N")
    return panel(title, label, bar + words, rows, 45 + 30 * len(order), span="full")


def along_theta(title: str, label: str, rows: Rows, kinds: Mapping[str, Swatch], theta: float) -> Panel:
    """A line for each regime, and a rule at ``theta``; ``rows`` hold ``regime``, ``x`` (theta) and ``value``."""
    line = (
        alt.Chart(ROWS)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("x:Q", title="theta", axis=alt.Axis(tickCount=5), scale=alt.Scale(domain=[0, 1])),
            y=alt.Y("value:Q", title=None, axis=alt.Axis(format="%", tickCount=5), scale=alt.Scale(domain=[0, 1])),
            color=colour(kinds, "regime"),
            strokeDash=dash(kinds, "regime"),
            tooltip=[
                alt.Tooltip("regime:N"),
                alt.Tooltip("x:Q", title="theta"),
                alt.Tooltip("value:Q", title="share", format=".1%"),
            ],
        )
    )
    chosen = alt.Chart(ROWS).transform_aggregate(regimes="count()").mark_rule(color=QUIET, strokeDash=[4, 3])
    return panel(title, label, line + chosen.encode(x=alt.datum(theta)), rows, 200)


def features(title: str, label: str, rows: Rows, order: Sequence[str], most: float) -> Panel:
    """Shares of features as bars with their intervals.

    ``rows`` hold ``row``, ``financial`` (1 for a feature by which applicants are matched), ``value``, ``low``, ``high``
    and ``shown``. The scale ends at ``most``, and begins at 0.
    """
    colours = alt.Scale(domain=[1, 0], range=[ACCENT, WARM])
    base = alt.Chart(ROWS).encode(
        y=names("row", order, _LABELS),
        color=alt.Color("financial:N", legend=None, scale=colours),
        tooltip=[alt.Tooltip("row:N", title="feature"), alt.Tooltip("shown:N", title="share")],
    )
    x = alt.X("value:Q", title=None, scale=alt.Scale(domain=[0, most]), axis=alt.Axis(format="%", tickCount=4))
    whisker = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=None), x2="high:Q")
    bar = base.mark_bar(opacity=0.5).encode(x=x)
    return panel(title, label, bar + whisker, rows, 45 + 20 * len(order), span="half")


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


def frontier(title: str, label: str, rows: Rows, cec: Mapping[str, Swatch], eo: Mapping[str, Swatch]) -> Panel:
    """Balanced accuracy against CEC, a mark for each net, and a line through those that no other one beats.

    ``rows`` hold ``model``, ``cec``, ``accuracy``, ``lambda_eo`` and ``lambda_cec`` in words, ``collapsed``, ``front``,
    ``name`` to be written beside the mark, if any, and ``shown``. ``cec``: how each lambda of consistency is drawn.
    ``eo``: how each lambda of equal odds is drawn.
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
