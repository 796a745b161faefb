"""Charts of CEC: scores beside their floor, the plane of scores and decisions, regimes, theta, and features.

Here belongs drawing alone. Nothing is told by colour alone: pairs, models and regimes bear their number or letter.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from tasks.reporting.charts.panels import Rows
from tasks.reporting.charts.vega import ACCENT, QUIET, ROWS, WARM, colour, dash, names, panel
from tasks.reporting.section import Panel, Swatch

SCORE, OWN_GROUP, FLOOR = "CEC", "within the group", "matching floor"
POINT, CORNER, EDGE = "point", "corner", "edge"
"""What a row of the plane is: a pair of groups or a model, the name of a regime, or a line between regimes."""
_FLIPS = "pairs decided on differently"
_LABELS = 215
"""Pixels that the name of a row may take."""
_WIDE = 0.06
"""Share from which on a bar has room for its letter."""


def beside_floor(title: str, label: str, rows: Rows, order: Sequence[str]) -> Panel:
    """Scores as dots with their intervals, and under each what the group scores with itself, and in grey its floor.

    Args:
        title: of the panel.
        label: for a screen reader.
        rows: ``pair``, ``what`` (``SCORE``, ``OWN_GROUP`` or ``FLOOR``), ``value``, ``low``, ``high`` and ``shown``.
        order: the pairs from top to bottom.
    """
    kinds = [SCORE, OWN_GROUP, FLOOR]
    base = alt.Chart(ROWS).encode(
        y=names("pair", order, _LABELS),
        yOffset=alt.YOffset("what:N", sort=kinds, scale=alt.Scale(domain=kinds)),
        color=alt.Color("what:N", legend=None, scale=alt.Scale(domain=kinds, range=[ACCENT, WARM, QUIET])),
        tooltip=[alt.Tooltip("pair:N"), alt.Tooltip("what:N", title="of"), alt.Tooltip("shown:N", title="value")],
    )
    whisker = base.mark_rule(strokeWidth=3, opacity=0.5).encode(x=alt.X("low:Q", title=None), x2="high:Q")
    shape = alt.Shape("what:N", legend=None, scale=alt.Scale(domain=kinds, range=["circle", "square", "triangle"]))
    x = alt.X("value:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=5))
    dot = base.mark_point(filled=True, size=60, opacity=1).encode(x=x, shape=shape)
    return panel(title, label, whisker + dot, rows, 45 + 54 * len(order), span="half")


def plane(title: str, label: str, rows: Rows) -> Panel:
    """Flips across, scores upwards: each pair of groups, or each model, a numbered point above its floor.

    Args:
        title: of the panel.
        label: for a screen reader.
        rows: ``part``; of a ``POINT`` ``of`` (the pair or the model), ``number``, ``right`` (on which side the number
            stands), ``flip``, ``cec``, their ends ``flip_low``, ``flip_high``, ``low`` and ``high``, ``floor`` if
            known, and ``shown``; of a ``CORNER`` ``flip``, ``cec``, ``words`` and ``right``, whether its words end
            there; of an ``EDGE`` either ``flip`` or ``cec``.
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

    Args:
        title: of the panel.
        label: for a screen reader.
        rows: ``row``, ``financial`` (1 for a feature by which applicants are matched), ``value``, ``low``, ``high`` and
            ``shown``.
        order: the features from top to bottom.
        most: where the scale ends, which begins at 0.
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
