"""How few candidates do, and at what least cost: k0, d0, the least cost of covering a share, and the greedy's gap.

An optimum that was not solved is a bound and is marked as one, in tables, in figures and in words.
"""

from tasks.methods.fgce.report.recourse import cost_unit
from tasks.reporting.comparison import (
    BRACKETS,
    RANK,
    Axes,
    Curve,
    capital,
    compared,
    curves,
    ends,
    matched_cell,
    notes,
    numbers,
    setting_cell,
    settings,
)
from tasks.reporting.material import Measure, Shown, View
from tasks.reporting.numbers import n_cell, value_cell
from tasks.reporting.section import Cell, Figure, Row, TableView

MEASURES = {
    "k0": Shown("fewest counterfactuals that serve everyone (k0)", "count"),
    "d0": Shown("least cost at which everyone can be served (d0)", "number"),
    "d0_at_k0": Shown("least cost of serving everyone with k0 (d0 at k0)", "number"),
    "least_cost": Shown("least cost of serving a share c with k", "number"),
    "cauc": Shown("cAUC (area of least costs over k)", "number"),
    "cauc_saturation": Shown("saturation k", "count"),
    "coverage_optimum": Shown("best coverage that k candidates can have", "rate"),
    "greedy_gap": Shown("coverage that the greedy selection misses", "rate"),
}
GLOSSARY = {
    "k0": "fewest candidates that serve every factual that can be served at all",
    "d0": "smallest cost limit at which every factual that can be served at all is served, with any number of "
    "candidates; d0 at k0 allows no more than k0 of them, and is the figure of the paper's tables",
    "coverable": "factuals that at least one candidate can serve: all of them but those without recourse",
    "cAUC": "area, over k, of the least cost at which k candidates serve a share c of the coverable factuals, divided "
    "by the smallest such cost of any group: higher is dearer",
    "bound": "a value that a search found and that the optimum may improve on: the optimum costs no more and takes no "
    "more candidates than a bound of this report, and areas and saturation points made of bounds are no optima either",
}
_FULL = {"k0": "k0", "d0": "d0", "d0_at_k0": "d0 at k0"}


def figures(view: View) -> tuple[Figure, ...]:
    """Least cost against k, for two of the shares."""
    shares = settings(view, "least_cost", "c")
    drawn = sorted({*shares[1:2], *shares[-1:]})
    bound = any(m.bound and m.value is not None for m in view.all("least_cost"))
    caption = (
        f"Smallest cost limit ({cost_unit(view)}) at which k candidates serve a share c of the group's coverable "
        "factuals. A line begins at the first k that serves that share; the grey is of those subsamples in which it "
        "is. The other shares are in the table."
    )
    caption += " The values are bounds: the optimum is no higher, and may be lower." * bound
    axes = Axes("k", "counterfactuals k", MEASURES["least_cost"])
    lines = [Curve("least_cost", f"c = {100 * c:g} %", {"c": c}) for c in drawn]
    return tuple(curves(view, f"Cost against k, by {view.attribute}", lines, axes, caption))


def tables(view: View) -> tuple[TableView, ...]:
    """k0 and d0; the areas of least costs; the numbers of the figure; and the gap, where it was computed."""
    title = f"Least cost of serving a share c with k counterfactuals, by {view.attribute}: the numbers of the figure"
    names = {"c": "Share c", "k": "k"}
    least = numbers(view, title, "least_cost", MEASURES["least_cost"], names)
    return _full(view), _areas(view), least, _gap(view)


def _full(view: View) -> TableView:
    rows, found = list[Row](), list[Measure]()
    for measure in _FULL:
        shown = MEASURES[measure]
        found += view.all(measure)
        for group in view.groups:
            own = view.get(group, measure)
            cells = n_cell(own), value_cell(own, shown.unit), *compared(view, group, measure, shown, {})
            rows.append((Cell(view.named(group)), Cell(_FULL[measure]), *cells, Cell(_qualified(own))))
    header = (
        *("Group", "Measure", "Coverable", "Value", f"{view.reference} at this size", "Difference from that"),
        *("p", "q", "Note"),
    )
    note = (
        "k0: fewest candidates that serve everyone who can be served. d0: least cost at which everyone who can be "
        "served has a candidate; d0 at k0: the same with no more than k0 of them. "
        f"{BRACKETS} {RANK} The interval is of solutions on rows drawn again, and falls more easily than it rises: "
        "drawing again can only leave rows out, never add dearer ones. Where a group is too large to be solved there "
        "is none."
    )
    title = f"How few would do, at what cost, by {view.attribute}"
    return TableView(title, header, tuple(rows) if found else (), note)


def _qualified(m: Measure | None) -> str:
    if m is None:
        return "no factuals"
    return capital(m.bound) if m.bound else "–"


def _areas(view: View) -> TableView:
    """CAUC and its saturation point for every share and group."""
    rows, used = list[Row](), list[Measure | None]()
    for share in settings(view, "cauc", "c"):
        for group in view.groups:
            cells: list[Cell] = []
            for measure in ("cauc_saturation", "cauc"):
                own, matched = (view.get(group, measure + form, {"c": share}) for form in ("", "_size_matched"))
                used += [own, matched]
                shown = MEASURES[measure]
                cells += [value_cell(own, shown.unit), matched_cell(view, group, matched, shown)]
            rows.append((setting_cell(share, share=True), Cell(group), *cells))
    small = f"{view.reference} at this size"
    header = ("Share c", "Group", "Saturation k", small, "cAUC", small)
    note = (
        "cAUC is over those k at which every group has a least cost, and undefined where there is no such k. "
        f"{BRACKETS} {notes(used)}"
    )
    return TableView(f"cAUC and saturation points, by {view.attribute}", header, tuple(rows), note.strip(), folded=True)


def _gap(view: View) -> TableView:
    """What the greedy selection covers less than the optimum, a row for every k, limit and group."""
    rows, used = list[Row](), list[Measure | None]()
    ks, limits = settings(view, "greedy_gap", "k"), settings(view, "greedy_gap", "d")
    for k in ks:
        for d in limits:
            for group in view.groups:
                each = [view.get(group, name, {"k": k, "d": d}) for name in ("coverage_optimum", "greedy_gap")]
                used += each
                cells = (value_cell(m, "rate") for m in each)
                rows.append((setting_cell(k), setting_cell(d), Cell(group), *cells))
    largest = ends(view, "greedy_gap", "k")[-1:]
    note = f"Both as shares of the coverable factuals, up to k = {largest[0]:g}. {notes(used)}" if largest else ""
    title = f"What the greedy selection misses, by {view.attribute}"
    header = ("k", "Cost limit d", "Group", "Best coverage", "Gap of the greedy selection")
    return TableView(title, header, tuple(rows), note.strip(), folded=True)
