"""What a served factual would have to change: attribute change frequency (ACF; FGCE, section VI).

It is a share of those served, counted on the candidates that were selected, and other candidates might have changed
other attributes.
"""

from collections.abc import Iterator
from typing import Any

from tasks.reporting.charts import vega
from tasks.reporting.charts.panels import Rows, by_group, marks
from tasks.reporting.charts.rows import bars
from tasks.reporting.comparison import beside_words, capital, dots_legend, notes, pair_header
from tasks.reporting.material import Measure, Shown, View, listed
from tasks.reporting.numbers import value_cell
from tasks.reporting.section import Cell, Figure, Panel, Row, TableView

MEASURES = {"acf": Shown("attribute change frequency", "rate")}
GLOSSARY = {
    "ACF": "attribute change frequency: share of a group's served factuals whose attribute differs from that of the "
    "nearest selected candidate",
}


def figures(view: View) -> tuple[Figure, ...]:
    """One panel for every group, with the attributes in the same order."""
    order = changed(view)
    names = [capital(view.label(attribute)) for attribute in order]

    def rows(group: str) -> list[dict[str, Any]]:
        found = [row for attribute in order for row in _points(view, group, attribute)]
        return found if any(row["what"] == vega.OWN for row in found) else []

    def panel(group: str, rows: Rows, _: Rows) -> Panel:
        label = f"Attribute change frequency of {group}; the numbers are in the table below."
        return bars(view.named(group), label, rows, names)

    caption = (
        "Share of the served factuals whose attribute differs from that of their nearest selected candidate. It says "
        f"what differs, and neither by how much nor that the change brings approval about. {beside_words(view)}"
    )
    title = f"What would have to change, by {view.attribute}"
    return (by_group(title, view.groups, rows, panel, caption, dots_legend(view)),)


def changed(view: View) -> list[str]:
    """The attributes that change in any group, those that change most often first."""
    most: dict[str, float] = {}
    for m in view.all("acf"):
        most[str(m.said["attribute"])] = max(most.get(str(m.said["attribute"]), 0.0), m.value or 0.0)
    return sorted((a for a, share in most.items() if share > 0), key=lambda a: (-most[a], a))


def _points(view: View, group: str, attribute: str) -> Iterator[dict[str, Any]]:
    for what, m in zip((vega.OWN, vega.MATCHED), _pair(view, group, attribute), strict=True):
        yield from marks(m, "rate", row=capital(view.label(attribute)), group=group, what=what)


def _pair(view: View, group: str, attribute: str) -> tuple[Measure | None, Measure | None]:
    at = {"attribute": attribute}
    return view.get(group, "acf", at), view.get(group, "acf_size_matched", at)


def tables(view: View) -> tuple[TableView, ...]:
    """The numbers of the figure, and which attributes never change."""
    rows, used = list[Row](), list[Measure | None]()
    order = changed(view)
    for attribute in order:
        cells: list[Cell] = []
        for group in view.groups:
            own, matched = _pair(view, group, attribute)
            used += [own, matched]
            cells += [value_cell(m, "rate") for m in ((own,) if group == view.reference else (own, matched))]
        rows.append((Cell(capital(view.label(attribute))), *cells))
    header = ("Attribute", *(h for group in view.groups for h in pair_header(view, group)))
    never = sorted({str(m.said["attribute"]) for m in view.all("acf")} - set(order))
    note = f"Changed in no group: {listed(view.label(a) for a in never)}. " * bool(never) + notes(used)
    title = f"Attribute change frequency, by {view.attribute}: the numbers of the figure"
    return (TableView(title, header, tuple(rows), note.strip(), folded=True),)
