"""Regimes: whether decisions and reasons agree, pair of applicants by pair, and what theta makes of that.

Nobody can say from which score on reasons are different, and the paper does not; so the shares stand beside those that
any other theta would give. Here belong the four regimes; the scores themselves are in ``scores``.
"""

from collections.abc import Iterator
from functools import partial
from itertools import accumulate
from typing import Any

from tasks.methods.cec.report.charts import along_theta, regimes
from tasks.methods.cec.report.lookups import PAIR, REGIME_LINES, Pair, Reasons
from tasks.reporting.charts.panels import Rows, by_group
from tasks.reporting.comparison import along
from tasks.reporting.material import Measure, Shown, listed, undrawn
from tasks.reporting.numbers import missing_words, n_cell, value, value_cell
from tasks.reporting.section import Cell, Figure, Panel, Row, Swatch, TableView

MEASURES = {
    "regime_share": Shown("share of pairs in a regime", "rate"),
    "regime_share_at": Shown("share of pairs in a regime at a theta", "rate"),
}
GLOSSARY = {
    "regime": "what a pair of applicants is, by whether the model's decisions on the two and its reasons agree: "
    "A both, B the decisions only, C the reasons only, D neither",
    "hidden bias": "regime B, as the paper calls it: the same decision for different reasons. A reason to look, and no "
    "proof of anything",
    "theta": "the CEC up to which two explanations count as the same reasons",
}
_DRAWN = 50
"""Steps of theta that are drawn: more would only make the page larger."""
_TOLD = 10
"""Steps of theta that the table tells."""
_MIDDLE = 0.5
"""Largest theta of a reading: not far above it, at 0.71, reasons at right angles count as the same."""


def readings(s: Reasons) -> tuple[str, ...]:
    """For every group how much of regime B hangs on theta."""
    return tuple(_reading(s, group) for group in s.others)


def _reading(s: Reasons, group: str) -> str:
    found = [m for m in _evenly(_along(s, group, "B"), _TOLD) if 0 < m.said["theta"] <= _MIDDLE]
    if not found or all(m.value is None for m in found):
        words = missing_words(found[0]) if found else "not computed"
        return f"{group}: the share in regime B is {words}. Nothing can be said, and that is no pass."
    if any(m.n is not None and m.n < s.minimum for m in found):
        return f"{group}: fewer than {s.minimum} pairs, too few for shares of regimes, and that is no pass."
    said = listed(f"{value(m, 'rate', interval=False)} at theta = {m.said['theta']:g}" for m in found)
    return f"{group}: the share of pairs in regime B is {said}."


def figures(s: Reasons) -> tuple[Figure, ...]:
    """A bar for every pair of groups, and the shares over theta for every group."""
    return _bars(s), _curves(s)


def _bars(s: Reasons) -> Figure:
    rows = {pair: segments([s.get(pair, "regime_share", regime=r) for r in REGIME_LINES]) for pair in s.pairs}
    drawn = [{**row, "of": pair.numbered, "group": pair.group} for pair, parts in rows.items() for row in parts]
    order = [pair.numbered for pair, parts in rows.items() if parts]
    legend = tuple(Swatch(swatch.text, swatch.colour, shape="square") for swatch in REGIME_LINES.values())
    caption = (
        "Pairs of comparable applicants by whether the model decides on both alike, and whether its reasons count as "
        f"the same (CEC up to theta = {s.settings.theta:g}). A model that knows only the financial features would "
        "have pairs in B and D as well."
    )
    caption += s.counted + undrawn(
        (pair.words for pair in s.pairs), {pair.words for pair, parts in rows.items() if parts}
    )
    title = f"Regimes, by {s.view.attribute}"
    label = f"{title}; the numbers are in the table below."
    panels = (regimes(title, label, drawn, order, REGIME_LINES),) if drawn else ()
    return Figure(title, panels, caption, legend)


def segments(found: list[Measure | None]) -> list[dict[str, Any]]:
    """One bar, or nothing where a part of it is withheld: its gap would tell what is."""
    shares = [m.value for m in found if m is not None and m.value is not None]
    if len(shares) < len(REGIME_LINES):
        return []
    ends = list(accumulate(shares))
    starts = [0.0, *ends[:-1]]
    return [
        {
            **{"regime": regime, "value": share, "shown": value(m, "rate")},
            **{"start": start, "end": end, "middle": (start + end) / 2},
        }
        for regime, m, share, start, end in zip(REGIME_LINES, found, shares, starts, ends, strict=True)
    ]


def _curves(s: Reasons) -> Figure:
    caption = (
        f"Share of the pairs with {s.view.reference} in each regime, for every theta from 0 to 1. Dashed and upright: "
        f"theta = {s.settings.theta:g}, as chosen for this audit. A conclusion that holds at this theta alone is one "
        "about theta."
    )

    def panel(group: str, rows: Rows, _: Rows) -> Panel:
        label = f"Shares of the regimes against theta: {group}; the numbers are in the table below."
        return along_theta(group, label, rows, REGIME_LINES, s.settings.theta)

    title = f"Regimes against theta, by {s.view.attribute}"
    rows = partial(_curve, s)
    return by_group(title, s.others, rows, panel, caption + s.counted, REGIME_LINES.values())


def _curve(s: Reasons, group: str) -> Iterator[dict[str, Any]]:
    for regime in REGIME_LINES:
        for m in _evenly(_along(s, group, regime), _DRAWN):
            if m.value is not None:
                yield {"regime": regime, "x": m.said["theta"], "value": m.value}


def _along(s: Reasons, group: str, regime: str) -> list[Measure]:
    return along(s.view, group, "regime_share_at", "theta", {"regime": regime})


def _evenly(found: list[Measure], steps: int) -> list[Measure]:
    """About so many steps of them, the first one included."""
    return found[:: max(1, (len(found) - 1) // steps)]


def tables(s: Reasons) -> tuple[TableView, ...]:
    """The shares at theta of all pairs of groups, and those of the headline's at other thetas."""
    return _at_theta(s), _by_theta(s)


def _at_theta(s: Reasons) -> TableView:
    def pairs(pair: Pair) -> Cell:
        return n_cell(next((m for regime in REGIME_LINES if (m := s.get(pair, "regime_share", regime=regime))), None))

    shares = {regime: s.values("regime_share", "rate", regime=regime) for regime in REGIME_LINES}
    note = f"{'. '.join(swatch.text for swatch in REGIME_LINES.values())}. In brackets: intervals."
    title = f"Regimes at theta = {s.settings.theta:g}, by {s.view.attribute}"
    return TableView.of(title, s.pairs, {**PAIR, "Pairs compared": pairs, **shares}, note)


def _by_theta(s: Reasons) -> TableView:
    thetas = sorted({float(m.said["theta"]) for m in s.view.all("regime_share_at")})
    told = thetas[:: max(1, (len(thetas) - 1) // _TOLD)]
    rows: list[Row] = []
    for group in s.others if told else ():
        for regime in REGIME_LINES:
            found = {float(m.said["theta"]): m for m in _along(s, group, regime)}
            known = next(iter(found.values()), None)
            shares = (value_cell(found.get(theta), "rate") for theta in told)
            rows.append((Cell(group), Cell(regime), n_cell(known), *shares))
    header = ("Group", "Regime", "Pairs compared", *(f"theta = {theta:g}" for theta in told))
    title = f"Regimes by theta, by {s.view.attribute}: the numbers of the figure"
    return TableView(title, header, tuple(rows), folded=True)
