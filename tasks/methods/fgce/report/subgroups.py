"""The parts into which a group's graph falls: their sizes, and what recourse costs within each.

Subgroups are weakly connected components, numbered from 1 by falling number of factuals. Nobody in one can reach a
candidate of another.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tasks.reporting.charts import vega
from tasks.reporting.charts.rows import dots
from tasks.reporting.comparison import notes
from tasks.reporting.material import Measure, Shown, View, undrawn
from tasks.reporting.numbers import count, n_cell, number_cell, value_cell
from tasks.reporting.section import Cell, Figure, Row, Swatch, TableView

MEASURES = {
    "component_nodes": Shown("nodes of the component", "count"),
    "component_candidates": Shown("candidates of the component", "count"),
}
_KINDS: Mapping[str, tuple[str, str]] = {
    "nodes": (vega.QUIET, "circle"),
    "candidates": (vega.ACCENT, "triangle"),
    "factuals": (vega.WARM, "square"),
}


def figures(view: View) -> tuple[Figure, ...]:
    """Nodes, candidates and factuals of each subgroup."""
    rows = [row for group in view.groups for number in view.subgroups(group) for row in _points(view, group, number)]
    if not rows:
        return ()
    drawn = {str(row["group"]) for row in rows}
    order = list(dict.fromkeys(str(row["row"]) for row in rows))
    caption = (
        "The subgroups with most factuals of each group, on a logarithmic scale. Nodes and candidates are distinct "
        "applications; equal factuals count each. A subgroup with factuals and no "
        "candidate leaves them without recourse. Numbers below the limit of disclosure are left out."
    )
    legend = tuple(Swatch(kind, colour, shape=shape) for kind, (colour, shape) in _KINDS.items())
    title = f"Sizes of the subgroups, by {view.attribute}"
    panel = dots(title, f"{title}; the numbers are in the table below.", rows, order, _KINDS)
    return (Figure(title, (panel,), caption + undrawn(view.groups, drawn), legend),)


def _points(view: View, group: str, number: int) -> Iterator[dict[str, Any]]:
    nodes, candidates = (view.get(group, name, subgroup=number) for name in MEASURES)
    share = view.get(group, "infeasible_share", subgroup=number)
    sizes = (nodes.value if nodes else None, candidates.value if candidates else None, share.n if share else None)
    for kind, size in zip(_KINDS, sizes, strict=True):
        if size is not None:
            named = {"group": group, "row": f"{group}, {number}", "kind": kind}
            yield {**named, "value": size, "shown": f"{count(size)} {kind}"}


def tables(view: View) -> tuple[TableView, ...]:
    """Sizes, infeasible share, burden, k0 and d0 of every subgroup that was looked at."""
    rows, used = list[Row](), list[Measure | None]()
    for group in view.groups:
        for number in view.subgroups(group):
            optima = [view.get(group, name, subgroup=number) for name in ("k0", "d0")]
            used += optima
            rows.append((*_subgroup(view, group, number), *(value_cell(m, "count") for m in optima)))
        if not view.subgroups(group):
            rows.append((Cell(group), *(Cell("none", "none"),) * 8))
    title = f"Recourse by subgroup (weakly connected component), by {view.attribute}"
    header = ("Group", "Subgroup", "Nodes", "Candidates", "Factuals", "Infeasible share", "Burden", "k0", "d0")
    note = f"The subgroups with most factuals of each group; others are counted in the group only. {notes(used)}"
    found = any(view.subgroups(group) for group in view.groups)
    return (TableView(title, header, tuple(rows) if found else (), note.strip(), folded=True),)


def _subgroup(view: View, group: str, number: int) -> Row:
    share = view.get(group, "infeasible_share", subgroup=number)
    sizes = [view.get(group, name, subgroup=number) for name in MEASURES]
    return (
        Cell(group),
        number_cell(str(number)),
        *(value_cell(m, "count", interval=False) for m in sizes),
        n_cell(share),
        value_cell(share, "rate"),
        value_cell(view.get(group, "burden", subgroup=number), "number"),
    )
