"""Who has no recourse and what it costs the others: what a reader of FGCE's chapter meets first.

Every group has its row, with the size-matched reference and the difference from it.
"""

from tasks.sections import charts
from tasks.sections._beside import RANGES, headline
from tasks.sections._material import Shown, View, undrawn
from tasks.sections._numbers import value
from tasks.sections._section import Figure, Swatch, TableView

MEASURES = {
    "infeasible_share": Shown("infeasible share", "rate"),
    "burden": Shown("burden", "number"),
}


def figures(view: View) -> tuple[Figure, ...]:
    """Infeasible share and burden of every group, each above the size-matched reference."""
    panels = []
    for measure, shown in MEASURES.items():
        rows = [row for group in view.groups for row in _rows(view, group, measure, shown)]
        if rows:
            label = f"{shown.words} by {view.attribute}. " + "; ".join(f"{r['group']}: {r['shown']}" for r in rows)
            groups = [g for g in view.groups if any(r["group"] == g for r in rows)]
            title = shown.words.capitalize() + (" (encoded units)" if shown.unit == "number" else "")
            panels.append(charts.intervals(title, label, rows, groups, shown.unit == "rate"))
    caption = (
        f"Above: the group's own value with its interval. Below: {view.reference} applicants subsampled to the size "
        "of the group, mean and range of the subsamples. A group whose own value lies inside the grey range is not "
        "distinguishable from an effect of size."
    )
    legend = (
        Swatch("the group, with interval", charts.ACCENT),
        Swatch(f"{view.reference} at the group's size, with range", charts.QUIET),
    )
    title = f"Who has no recourse, and what it costs the others, by {view.attribute}"
    drawn = {m.group for m in view.all("infeasible_share") if m.value is not None}
    return (Figure(title, tuple(panels), caption + undrawn(view.groups, drawn), legend),) if panels else ()


def _rows(view: View, group: str, measure: str, shown: Shown) -> list[dict[str, object]]:
    rows = []
    for what, name in ((charts.OWN, measure), (charts.MATCHED, f"{measure}_size_matched")):
        m = view.get(group, name)
        if m and m.value is not None:
            said = value(m, shown.unit) + (f", {view.reference} at this group's size" if what == charts.MATCHED else "")
            rows.append({"group": group, "what": what, "value": m.value, "low": m.low, "high": m.high, "shown": said})
    return rows


def tables(view: View) -> tuple[TableView, ...]:
    """The same as tables, with differences."""
    made = [headline(view, measure, shown, note=note) for (measure, shown), note in zip(MEASURES.items(), (RANGES, ""), strict=True)]
    return tuple(t for t in made if t.rows)
