"""How the graph of each group hangs together as one step may be longer or shorter (FGCE, Figures 1 and 5).

It is a matter of the applications and not of who decides on them, and so stands once, where the graph is described.
"""

from tasks.sections import charts
from tasks.sections._beside import capital, notes
from tasks.sections._material import Shown, View, undrawn
from tasks.sections._numbers import n_cell, number_cell, significant, value, value_cell
from tasks.sections._section import Cell, Figure, Row, TableView

MEASURES = {
    "components": Shown("weakly connected components", "count"),
    "strong_components": Shown("strongly connected components", "count"),
    "singletons": Shown("applications without any feasible step", "count"),
    "density": Shown("density (share of ordered pairs joined)", "number"),
}
GLOSSARY = {"density": "share of the ordered pairs of a group's applications that one feasible step joins"}


def figures(view: View) -> tuple[Figure, ...]:
    """One panel for each measure of connectivity, one line a group."""
    swatches = charts.palette(view.groups, view.reference)
    panels, drawn = [], set[str]()
    for measure, shown in MEASURES.items():
        rows = [
            {"group": m.group, "x": m.said["epsilon"], "value": m.value, "shown": value(m, shown.unit)}
            for m in view.all(measure)
            if m.value is not None
        ]
        if rows:
            drawn |= {str(row["group"]) for row in rows}
            label = f"{shown.words} against epsilon, one line for each group of {view.attribute}; numbers in the table."
            logarithmic = shown.unit == "count"
            title = capital(shown.words)
            panels.append(charts.lines(title, label, rows, swatches, "epsilon (encoded units)", logarithmic))
    caption = (
        "Counts are over applications: equal ones are joined both ways. A longer step joins more. Counts are drawn on "
        "a logarithmic scale and grow with the size of the group; measured at the marked lengths, joined by straight "
        "lines."
    )
    legend = tuple(swatch for group, swatch in swatches.items() if group in drawn)
    title = f"How applications are joined, against the length of one step, by {view.attribute}"
    return (Figure(title, tuple(panels), caption + undrawn(view.groups, drawn), legend),) if panels else ()


def tables(view: View) -> tuple[TableView, ...]:
    """The numbers of the figure."""
    found = {(m.group, float(m.said["epsilon"]), m.measure): m for name in MEASURES for m in view.all(name)}
    epsilons = sorted({epsilon for _, epsilon, _ in found})
    rows: list[Row] = []
    for group in view.groups:
        for epsilon in epsilons:
            each = [found.get((group, epsilon, name)) for name in MEASURES]
            cells = (value_cell(m, MEASURES[name].unit) for name, m in zip(MEASURES, each, strict=True))
            rows.append((Cell(group), number_cell(significant(epsilon)), n_cell(each[0]), *cells))
    title = f"Connectivity against epsilon, by {view.attribute}: the numbers of the figure"
    header = ("Group", "Epsilon", "Applications", *(capital(shown.words) for shown in MEASURES.values()))
    return (TableView(title, header, tuple(rows), notes(found.values()), folded=True),) if found else ()
