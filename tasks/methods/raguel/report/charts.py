"""Charts of RAGUEL: costs and their quantiles, shares by block inside a band, ratios, and the heat map of ratios.

Scope: drawing. Nothing is told by colour alone: orders have shapes and dashes, and cells bear their number.
"""

from collections.abc import Mapping, Sequence

import altair as alt

from tasks.reporting.charts.panels import Rows
from tasks.reporting.charts.rows import beneath, beside
from tasks.reporting.charts.vega import HEIGHT, QUIET, ROWS, colour, dash, names, panel, shape
from tasks.reporting.section import Panel, Swatch

BEFORE = "before"
"""The row of a heat map that has no tolerance: nobody has an offer."""
_SAID = [alt.Tooltip("row:N", title="of"), alt.Tooltip("what:N", title=" "), alt.Tooltip("shown:N", title="value")]
_LABELS = 170
"""Pixels that the name of a row may take."""
_LIGHT, _DARK = "#f3f6fa", "#86aedb"
"""Ends of the heat map's scale; the darker one is light enough for the letters of the page."""


def dots(title: str, label: str, rows: Rows, kinds: Mapping[str, Swatch], x: str, most: float | None) -> Panel:
    """Values as marks with their intervals, for each row the kinds under each other.

    ``rows`` are those of ``beside``, with ``row`` and ``shown``; the scale begins at 0 and ends at ``most`` if given.
    """
    order = _order(rows)
    scale = alt.Scale(zero=True) if most is None else alt.Scale(domain=[0, most])
    across = alt.X("value:Q", title=x, scale=scale, axis=alt.Axis(tickCount=5))
    return beside(title, label, rows, names("row", order, _LABELS), kinds, across, _SAID, _height(order, kinds))


def quantiles(title: str, label: str, rows: Rows, kinds: Mapping[str, Swatch], x: str) -> Panel:
    """How a value is spread: a thin line over four fifths of a group, a broad one over half, a mark at the median.

    ``rows`` hold ``row``, ``what`` (one of ``kinds``), ``lowest``, ``lower``, ``median``, ``upper``, ``highest`` and
    ``shown``.
    """
    order = _order(rows)
    base = beneath(names("row", order, _LABELS), kinds).encode(tooltip=_SAID)
    thin = base.mark_rule(strokeWidth=1.5).encode(
        x=alt.X("lowest:Q", title=x, axis=alt.Axis(tickCount=5)), x2="highest:Q"
    )
    broad = base.mark_rule(strokeWidth=7, opacity=0.4).encode(x=alt.X("lower:Q", title=x), x2="upper:Q")
    mark = base.mark_point(filled=True, size=50, opacity=1).encode(x=alt.X("median:Q", title=x), shape=shape(kinds))
    return panel(title, label, thin + broad + mark, rows, _height(order, kinds), span="half")


def blocks(title: str, label: str, rows: Rows, kinds: Mapping[str, Swatch], most: float) -> Panel:
    """Share of a group by block, a line for each order, and behind them the band that counts as fair, if any.

    ``rows`` hold ``what`` (one of ``kinds``), ``block``, ``value`` (null: withheld, and the line breaks) and ``shown``;
    and for the band ``what`` null, ``block``, ``low`` and ``high``. The scale ends at ``most``, and begins at 0.
    """
    x = alt.X("block:Q", title="block, least cost first", axis=alt.Axis(tickCount=6, format="d", tickMinStep=1))
    y = alt.Y("value:Q", title=None, axis=alt.Axis(format="%", tickCount=5), scale=alt.Scale(domain=[0, most]))
    base = alt.Chart(ROWS).encode(x=x)
    band = base.transform_filter("isValid(datum.low)").mark_area(color=QUIET, opacity=0.22)
    said = [alt.Tooltip("what:N", title="order"), alt.Tooltip("block:Q"), alt.Tooltip("shown:N", title="share")]
    own = base.transform_filter("isValid(datum.what)").encode(y=y, color=colour(kinds), tooltip=said)
    line = own.mark_line(strokeWidth=2, invalid="break-paths-show-domains").encode(strokeDash=dash(kinds))
    mark = own.mark_point(filled=True, size=26, opacity=1).encode(shape=shape(kinds))
    shaded = band.encode(y=alt.Y("low:Q", title=None), y2="high:Q")
    layers = [line, mark] if all(row.get("low") is None for row in rows) else [shaded, line, mark]
    return panel(title, label, alt.layer(*layers), rows, HEIGHT)


def heat(title: str, label: str, rows: Rows, numbers: Sequence[str], tolerances: Sequence[str], least: float) -> Panel:
    """Ratios by number of blocks and tolerance, each with its number in the cell.

    ``rows`` hold ``blocks`` and ``tolerance`` in words, ``value`` (null where there is none) and ``shown``.
    ``numbers``: the numbers of blocks from left to right. ``tolerances``: from top to bottom. ``least``: the ratio that
    is lightest; 1 is darkest.
    """
    base = alt.Chart(ROWS).encode(
        x=alt.X(
            "blocks:N",
            title="blocks",
            sort=list(numbers),
            scale=alt.Scale(domain=list(numbers)),
            axis=alt.Axis(labelAngle=0),
        ),
        y=alt.Y("tolerance:N", title="tolerance", sort=list(tolerances), scale=alt.Scale(domain=list(tolerances))),
        tooltip=[alt.Tooltip("blocks:N"), alt.Tooltip("tolerance:N"), alt.Tooltip("shown:N", title="ratio")],
    )
    scale = alt.Scale(domain=[least, 1], range=[_LIGHT, _DARK], clamp=True)
    known = base.transform_filter("isValid(datum.value)")
    cell = known.mark_rect().encode(color=alt.Color("value:Q", legend=None, scale=scale))
    text = base.mark_text(fontSize=10.5).encode(text="shown:N")
    return panel(title, label, cell + text, rows, 60 + 26 * len(tolerances), span="half")


def _order(rows: Rows) -> list[str]:
    return list(dict.fromkeys(row["row"] for row in rows))


def _height(order: Sequence[str], kinds: Mapping[str, Swatch]) -> int:
    return 55 + (12 + 14 * len(kinds)) * len(order)
