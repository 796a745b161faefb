"""How the graph of each group hangs together as one step may be longer or shorter (FGCE, Figures 1 and 5).

It is a matter of the applications and not of who decides on them, and so stands once, where the graph is described.
Counts grow with the size of a group, and a small group's graph falls apart sooner: each group is drawn in a panel of
its own, beside the reference group at its size.
"""

from collections.abc import Iterator
from typing import Any

from tasks.methods.fgce.report.thinned import counts, only, size_words
from tasks.reporting.charts import vega
from tasks.reporting.comparison import Axes, Curve, capital, curves, matched_cell, notes, points
from tasks.reporting.material import Measure, Shown, View, listed, undrawn
from tasks.reporting.numbers import n_cell, number_cell, significant, value_cell
from tasks.reporting.section import Cell, Figure, Panel, Row, Swatch, TableView

MEASURES = {
    "components": Shown("weakly connected components", "count"),
    "strong_components": Shown("strongly connected components", "count"),
    "singletons": Shown("applications without any feasible step", "count"),
    "density": Shown("density (share of ordered pairs joined)", "number"),
}
GLOSSARY = {"density": "share of the ordered pairs of a group's applications that one feasible step joins"}

_COUNTS = {measure: shown for measure, shown in MEASURES.items() if shown.unit == "count"}
_X = "epsilon (encoded units)"
_RANGE = "In brackets: the range of the subsamples."


def figures(view: View) -> tuple[Figure, ...]:
    """Counts, and density, against epsilon: one panel for each group, and in grey the size-matched reference."""
    view = only(view, MEASURES)
    density = MEASURES["density"]
    caption = "A longer step joins more. Unlike counts, density need not fall with the size of a group."
    title = f"{capital(density.words)} against epsilon, by {view.attribute}"
    line = [Curve("density", density.words, {})]
    return (*_counts(view), *curves(view, title, line, Axes("epsilon", _X, density), caption))


def _counts(view: View) -> Iterator[Figure]:
    rows = {group: [row for m in _COUNTS for row in _points(view, group, m)] for group in view.groups}
    drawn = {group: found for group, found in rows.items() if any(row["what"] == vega.OWN for row in found)}
    if not drawn:
        return
    most = max(row.get("high") or row["value"] for found in drawn.values() for row in found)
    panels = tuple(_panel(view, group, found, most) for group, found in drawn.items())
    caption = (
        "Counts are over applications: equal ones are joined both ways. A longer step joins more. Counts are drawn on "
        "a logarithmic scale and grow with the size of the group; measured at the marked lengths, joined by straight "
        f"lines. {size_words(view)}"
    )
    title = f"How applications are joined, against the length of one step, by {view.attribute}"
    yield Figure(title, panels, caption + undrawn(view.groups, set(drawn)), tuple(_legend(view)))


def _points(view: View, group: str, measure: str) -> Iterator[dict[str, Any]]:
    shown = _COUNTS[measure]
    return points(view, group, Curve(measure, shown.words, {}), Axes("epsilon", _X, shown))


def _panel(view: View, group: str, rows: list[dict[str, Any]], most: float) -> Panel:
    words = listed(shown.words for shown in _COUNTS.values())
    label = f"{capital(words)} of {group} against epsilon, and of {view.reference} at its size; numbers in the table."
    return counts(view.named(group), label, rows, _X, most)


def _legend(view: View) -> Iterator[Swatch]:
    kinds = [("", vega.ACCENT), (f", {view.reference} at the group's size", vega.QUIET)]
    for said, colour in kinds[: 1 + view.is_matched]:
        for shown, dash in zip(_COUNTS.values(), vega.DASHES, strict=False):
            yield Swatch(f"{shown.words}{said}", colour, " ".join(map(str, dash)))


def tables(view: View) -> tuple[TableView, ...]:
    """The numbers of the figures: a row for each group and epsilon."""
    view = only(view, MEASURES)
    found = {(m.group, float(m.said["epsilon"]), m.measure): m for m in view.rows}
    rows = [_row(view, found, *at) for at in _settings(view, found)]
    title = f"Connectivity against epsilon, by {view.attribute}: the numbers of the figures"
    size = (f"{view.reference} at this size",) * view.is_matched
    named = (name for shown in MEASURES.values() for name in (capital(shown.words), *size))
    note = " ".join(part for part in (_RANGE * view.is_matched, notes(found.values())) if part)
    return (TableView(title, ("Group", "Epsilon", "Applications", *named), tuple(rows), note, folded=True),)


def _settings(view: View, found: dict[tuple[str, float, str], Measure]) -> list[tuple[str, float]]:
    epsilons = sorted({epsilon for _, epsilon, _ in found})
    return [(group, epsilon) for group in view.groups for epsilon in epsilons]


def _row(view: View, found: dict[tuple[str, float, str], Measure], group: str, epsilon: float) -> Row:
    cells = [Cell(group), number_cell(significant(epsilon)), n_cell(found.get((group, epsilon, "components")))]
    for measure, shown in MEASURES.items():
        cells.append(value_cell(found.get((group, epsilon, measure)), shown.unit))
        matched = found.get((group, epsilon, f"{measure}_size_matched"))
        cells += [matched_cell(view, group, matched, shown)] * view.is_matched
    return tuple(cells)
