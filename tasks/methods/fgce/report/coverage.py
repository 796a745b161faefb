"""How many of a group's factuals a few candidates serve: coverage against cost and against k, areas and saturation.

The areas are the paper's kAUC and dAUC (FGCE, Tables III and IV), over all factuals and over those that some candidate
can serve.
"""

from tasks.methods.fgce.report.recourse import cost_unit
from tasks.reporting.comparison import (
    BRACKETS,
    At,
    Axes,
    Curve,
    curves,
    ends,
    headline,
    notes,
    numbers,
    setting_cell,
    settings,
)
from tasks.reporting.material import Measure, Shown, View
from tasks.reporting.numbers import value_cell
from tasks.reporting.section import Cell, Figure, Row, TableView

MEASURES = {
    "coverage": Shown("coverage", "rate"),
    "coverage_at_k": Shown("coverage with k counterfactuals", "rate"),
    "kauc": Shown("kAUC (area of coverage over the cost limit)", "number"),
    "dauc": Shown("dAUC (area of coverage over k)", "number"),
    "kauc_saturation": Shown("saturation cost", "number"),
    "dauc_saturation": Shown("saturation k", "count"),
}
GLOSSARY = {
    "kAUC": "area under coverage against the cost limit d, with k candidates, divided by the area of full coverage: "
    "1 means that everyone is served at the smallest limit",
    "dAUC": "area under coverage against k, within the cost limit d, divided by the area of full coverage: 1 means "
    "that one candidate serves everyone",
    "saturation point": "first point of the grid at which a curve reaches its best value: beyond it, a higher limit or "
    "a further candidate changes nothing",
}
_ALL, _FEASIBLE = {"denominator": "all"}, {"denominator": "feasible"}
_NAMES = {"k": "k", "d": "Cost limit d"}
_NONE = Cell("–", "none")
_MATCHED = (1, 4, 6)
"""Places of size-matched values among the cells of an area: the reference group has none."""


def figures(view: View) -> tuple[Figure, ...]:
    """Coverage against the cost limit for the smallest and the largest k, and against k without a limit."""
    ks = ends(view, "coverage", "k")
    lines = [Curve("coverage", f"k = {k:g}", {**_ALL, "k": k}) for k in ks]
    against_cost = curves(
        view,
        f"Coverage against cost, by {view.attribute}",
        lines,
        Axes("d", f"cost limit d ({cost_unit(view)})", MEASURES["coverage"]),
        "Share of all the group's factuals for whom one of k selected candidates lies within the cost limit, measured "
        "at the marked limits. A curve that levels off below 100 % leaves factuals without recourse.",
    )
    against_k = curves(
        view,
        f"Coverage against k, by {view.attribute}",
        [Curve("coverage_at_k", "no cost limit", {})],
        Axes("k", "selected counterfactuals k", MEASURES["coverage_at_k"]),
        "Share of all the group's factuals that k selected candidates serve, whatever it costs.",
    )
    return (*against_cost, *against_k)


def tables(view: View) -> tuple[TableView, ...]:
    """Coverage at the largest k, the areas with their saturation points, and the numbers of the figures."""
    by = f"by {view.attribute}"
    most = ends(view, "coverage_at_k", "k")[-1:]
    made = [headline(view, "coverage_at_k", MEASURES["coverage_at_k"], {"k": k}, BRACKETS) for k in most]
    made += [_areas(view, "kauc", "k", "d"), _areas(view, "dauc", "d", "k")]
    title = f"Coverage at each cost limit, {by}: the numbers of the figure"
    made += [
        numbers(view, f"{title}, k = {k:g}", "coverage", MEASURES["coverage"], {"d": _NAMES["d"]}, {**_ALL, "k": k})
        for k in ends(view, "coverage", "k")
    ]
    title = f"Coverage at each k without a cost limit, {by}: the numbers of the figure"
    made.append(numbers(view, title, "coverage_at_k", MEASURES["coverage_at_k"], {"k": "k"}))
    return tuple(made)


def _areas(view: View, measure: str, fixed: str, along: str) -> TableView:
    """An area and its saturation point for every setting of ``fixed`` and every group, as the paper has it."""
    end = dict(zip((along,), ends(view, "coverage", along)[-1:], strict=False))
    rows, used = list[Row](), list[Measure | None]()
    for setting in settings(view, measure, fixed):
        for group in view.groups:
            found = _area(view, group, measure, {fixed: setting}, end)
            used += [m for m, _ in found]
            cells = [value_cell(m, shown.unit) for m, shown in found]
            if group == view.reference:
                cells = [_NONE if place in _MATCHED else cell for place, cell in enumerate(cells)]
            rows.append((setting_cell(setting), Cell(group), *cells))
    name, small = {"kauc": "kAUC", "dauc": "dAUC"}[measure], f"{view.reference} at this size"
    last = f"Coverage at {along} = {setting_cell(end[along]).text}" if end else "Coverage at the end"
    header = (
        _NAMES[fixed],
        "Group",
        f"Saturation {along}",
        small,
        last,
        name,
        small,
        f"{name} of the coverable",
        small,
    )
    note = (
        "Coverage and the first area are over all factuals; the second area, the paper's, is over those that some "
        f"candidate can serve. {BRACKETS} {notes(used)}"
    )
    title = f"{name} and saturation points, by {view.attribute}"
    return TableView(title, header, tuple(rows), note.strip(), folded=True)


def _area(view: View, group: str, measure: str, at: At, end: At) -> list[tuple[Measure | None, Shown]]:
    """Saturation point, coverage at the end of the grid and both areas, with their size-matched values."""
    point, over = f"{measure}_saturation", (_ALL, _FEASIBLE)
    areas = [(name, {**at, **each}) for each in over for name in (measure, f"{measure}_size_matched")]
    return [
        (view.get(group, point, at), MEASURES[point]),
        (view.get(group, f"{point}_size_matched", at), MEASURES[point]),
        (view.get(group, "coverage", {**_ALL, **at, **end}), MEASURES["coverage"]),
        *((view.get(group, name, where), MEASURES[measure]) for name, where in areas),
    ]
