"""How many of a group's factuals a few candidates serve: coverage against cost and against k, areas and saturation.

The areas are the paper's kAUC and dAUC (FGCE, Tables III and IV), over all factuals and over those that some candidate
can serve.
"""

from collections.abc import Sequence

from tasks.sections._beside import Axes, Curve, At, RANGES, curves, headline, notes, numbers, setting_cell
from tasks.sections._material import Measure, Shown, View
from tasks.sections._numbers import significant, value_cell
from tasks.sections._section import Cell, Figure, Row, TableView

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


def figures(view: View) -> tuple[Figure, ...]:
    """Coverage against the cost limit for the smallest and the largest k, and against k without a limit."""
    ks = ends(view, "coverage", "k")
    lines = [Curve("coverage", f"k = {k:g}", {**_ALL, "k": k}) for k in ks]
    against_cost = curves(
        view,
        f"Coverage against cost, by {view.attribute}",
        lines,
        Axes("d", "cost limit d (encoded units)", MEASURES["coverage"]),
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
    made = [headline(view, "coverage_at_k", MEASURES["coverage_at_k"], {"k": k}, RANGES) for k in most]
    made += [_areas(view, "kauc", "k", "d"), _areas(view, "dauc", "d", "k")]
    at = {"k": "k", "d": "Cost limit d"}
    title = f"Coverage at each cost limit, {by}: the numbers of the figure"
    made += [
        numbers(view, f"{title}, k = {k:g}", "coverage", MEASURES["coverage"], {"d": at["d"]}, {**_ALL, "k": k})
        for k in ends(view, "coverage", "k")
    ]
    title = f"Coverage at each k without a cost limit, {by}: the numbers of the figure"
    made.append(numbers(view, title, "coverage_at_k", MEASURES["coverage_at_k"], {"k": "k"}))
    return tuple(t for t in made if t.rows)


def ends(view: View, measure: str, parameter: str) -> list[float]:
    """The smallest and the largest setting of a parameter."""
    found = settings(view, measure, parameter)
    return sorted({found[0], found[-1]}) if found else []


def settings(view: View, measure: str, parameter: str) -> list[float]:
    """All settings of a parameter, ascending."""
    return sorted({float(m.said[parameter]) for m in view.all(measure) if parameter in m.said})


def _areas(view: View, measure: str, fixed: str, along: str) -> TableView:
    """An area and its saturation point for every setting of ``fixed`` and every group, as the paper has it."""
    last = ends(view, "coverage", along)[-1:]
    rows, used = list[Row](), list[Measure | None]()
    for setting in settings(view, measure, fixed):
        for group in view.groups:
            found = _area(view, group, measure, {fixed: setting}, {along: x for x in last})
            used += found
            rows.append((setting_cell(setting), Cell(group), *_area_cells(measure, found)))
    ending = f"Coverage at {along} = {significant(last[0]) if along == 'd' else f'{last[0]:g}'}" if last else "Coverage"
    small = f"{view.reference} at this size"
    name = {"kauc": "kAUC", "dauc": "dAUC"}[measure]
    header = (
        *({"k": "k", "d": "Cost limit d"}[fixed], "Group", f"Saturation {along}", small, ending),
        *(name, small, f"{name} of the coverable", small),
    )
    title = f"{name} and saturation points, by {view.attribute}"
    said = (
        "Coverage and the first area are over all factuals; the second, the paper's, is over those that some candidate "
        f"can serve. {RANGES.split('; p is')[0].split(' p is')[0]}"
    )
    return TableView(title, header, tuple(rows), f"{said} {notes(used)}".strip(), folded=True)


def _area(view: View, group: str, measure: str, at: At, end: At) -> list[Measure | None]:
    """Saturation point, coverage at the end of the grid and both areas, each beside its size-matched value."""
    own = view.get(group, f"{measure}_saturation", at)
    matched = view.get(group, f"{measure}_saturation_size_matched", at)
    coverage = view.get(group, "coverage", {**_ALL, **at, **end})
    areas = [
        view.get(group, name, {**at, **over})
        for over in (_ALL, _FEASIBLE)
        for name in (measure, f"{measure}_size_matched")
    ]
    return [own, matched, coverage, *areas]
