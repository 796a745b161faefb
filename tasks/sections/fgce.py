"""FGCE's section: how the graph was built, what recourse costs, and for whom there is none.

Every measure stands beside its size-matched reference, because a small group has a thinner graph and fewer candidates,
and that alone raises its infeasible share and its costs. Sentences that read the figures are in ``_size``.
"""

from collections.abc import Sequence

from tasks.sections import charts
from tasks.sections._material import Material, Measure, Shown, View, anchor, maker_words
from tasks.sections._numbers import n_cell, number_cell, p_cell, significant, value, value_cell
from tasks.sections._section import Cell, Figure, Panel, Row, Section, Swatch, TableView
from tasks.sections._size import reading

MEASURES = {
    "infeasible_share": Shown("infeasible share", "rate"),
    "burden": Shown("burden", "number"),
    "burden_at_k": Shown("burden with k counterfactuals", "number"),
    "coverage": Shown("coverage", "rate"),
    "coverage_at_k": Shown("coverage with k counterfactuals", "rate"),
    "component_nodes": Shown("nodes of the component", "count"),
    "component_candidates": Shown("candidates of the component", "count"),
}
GLOSSARY = {
    "factual": "an applicant with an unfavourable decision, to be explained",
    "candidate": "an applicant with a favourable decision, who may serve as a counterfactual",
    "feasible": "a candidate is feasible for a factual if a path of feasible steps inside the group's graph leads to it",
    "feasibility graph": "distinct applications, joined where one could come to look like the other in one small step that "
    "breaks no constraint",
    "epsilon": "the longest that one feasible step may be, in encoded units",
    "recourse cost": "distance between a factual and a feasible candidate, in encoded units (each feature from 0 to 1)",
    "infeasible share": "share of a group's factuals without any feasible candidate",
    "burden": "mean cost of the cheapest recourse over the factuals that have one; always read with the infeasible share",
    "coverage": "share of factuals that at least one of k selected candidates serves, within a cost limit where one is set",
    "k": "number of candidates selected to serve a whole group",
    "size-matched reference": "the measure on the reference group, subsampled again and again to the size of the group",
    "subgroup": "weakly connected component of a group's graph, numbered from 1 by falling number of factuals",
}
_SHOWN_K = (1, 3, 10)
_MOST_SUBGROUPS = 6


def chapter(material: Material) -> Section:
    """The graph, then the measures for the model, then those for the lender's own decisions."""
    parts = [_graph(material), *(_maker(material, maker) for maker in material.makers("fgce"))]
    words = (
        "For every applicant with an unfavourable decision this method looks for applicants of the same group with a "
        "favourable one, who can be reached by small steps through applications that really occurred. It asks how many "
        "can be served by a few such examples, at what cost, and for whom there is no path at all.",
        "A small group has fewer such examples and a thinner graph, whoever decides. Each measure is therefore printed "
        "beside its size-matched value: the reference group, subsampled to the size of the group. The comparison that "
        "counts is with that range.",
    )
    return Section("Recourse: feasible group counterfactuals (FGCE)", "fgce", words, parts=tuple(parts))


def _graph(material: Material) -> Section:
    points = tuple(f"{str(f['words'])[:1].upper()}{str(f['words'])[1:]}." for f in material.facts)
    return Section("How the graph was built", "fgce-graph", points=points)


def _maker(material: Material, maker: str) -> Section:
    title = maker_words(maker)
    parts = tuple(_attribute(material, view) for view in material.views("fgce", maker))
    return Section(title[0].upper() + title[1:], f"fgce-{maker}", parts=parts)


def _attribute(material: Material, view: View) -> Section:
    swatches = charts.palette(view.groups, view.reference)
    minimum = material.settings.bootstrap.minimum_n
    read = [s for m in ("infeasible_share", "burden") for s in reading(view, m, MEASURES[m], minimum)]
    figures = [*_beside_size(view), *_against_cost(view, swatches), *_against_k(view, swatches)]
    tables = [_headline(view, m) for m in ("infeasible_share", "burden")]
    tables += [_at_k(view, m) for m in ("burden_at_k", "coverage_at_k")]
    tables += [*_cost_table(view), *_subgroups(view)]
    return Section(
        f"By {view.attribute}",
        anchor("fgce", view.maker, view.attribute),
        points=tuple(read),
        figures=tuple(figures),
        tables=tuple(t for t in tables if t.rows),
    )


def _beside_size(view: View) -> list[Figure]:
    panels = []
    for measure in ("infeasible_share", "burden"):
        rows, shown = [], MEASURES[measure]
        for group in view.groups:
            for what, name in (("own", measure), ("matched", f"{measure}_size_matched")):
                m = view.get(group, name)
                if m and m.value is not None:
                    said = value(m, shown.unit) + (f", {view.reference} at this group's size" if what == "matched" else "")
                    rows.append(
                        {"group": group, "what": what, "value": m.value, "low": m.low, "high": m.high, "shown": said}
                    )
        if rows:
            label = f"{shown.words} by {view.attribute}. " + "; ".join(f"{r['group']}: {r['shown']}" for r in rows)
            groups = [g for g in view.groups if any(r["group"] == g for r in rows)]
            title = shown.words.capitalize() + (" (encoded units)" if shown.unit == "number" else "")
            panels.append(charts.intervals(title, label, rows, groups, shown.unit == "rate"))
    caption = (
        f"Above: the group's own value with its interval. Below: {view.reference} applicants subsampled to the size of the "
        "group, mean and range of the subsamples. A group whose own value lies inside the grey range is not "
        "distinguishable from an effect of size."
    )
    legend = (
        Swatch("the group, with interval", charts.ACCENT),
        Swatch(f"{view.reference} at the group's size, with range", charts.QUIET),
    )
    title = f"Who has no recourse, and what it costs the others, by {view.attribute}"
    return [Figure(title, tuple(panels), caption, legend)] if panels else []


def _against_cost(view: View, swatches: dict[str, Swatch]) -> list[Figure]:
    panels: list[Panel] = []
    for k in _ks(view):
        rows = [
            _point(m, d=m.said["d"])
            for m in view.all("coverage")
            if m.said.get("k") == k and m.said.get("denominator") == "all" and m.value is not None
        ]
        if rows:
            few = f"k = {k} counterfactual{'s' * (k > 1)}"
            label = f"Coverage against the cost limit with {few}, one line for each group of {view.attribute}; "
            label += "the numbers are in the table below."
            rows.sort(key=lambda r: (str(r["group"]), float(str(r["d"]))))
            panels.append(charts.curves(few, label, rows, swatches, ("d", "cost limit d (encoded units)")))
    caption = (
        "Share of all the group's factuals for whom one of k selected candidates lies within the cost limit. Measured at "
        "the marked limits, joined by straight lines. A curve that levels off below 100 % leaves factuals without "
        "recourse at any cost. Compare groups of different size with the size-matched values in the tables only."
    )
    title = f"Coverage against cost, by {view.attribute}"
    return [Figure(title, tuple(panels), caption, tuple(swatches.values()))] if panels else []


def _against_k(view: View, swatches: dict[str, Swatch]) -> list[Figure]:
    rows = [_point(m, k=m.said["k"]) for m in view.all("coverage_at_k") if m.value is not None]
    if not rows:
        return []
    rows.sort(key=lambda r: (str(r["group"]), int(str(r["k"]))))
    label = f"Coverage against the number of counterfactuals, one line for each group of {view.attribute}."
    panel = charts.curves("No cost limit", label, rows, swatches, ("k", "selected counterfactuals k"), stepped=True)
    caption = "Share of all the group's factuals that k selected candidates serve, whatever it costs."
    return [Figure(f"Coverage against k, by {view.attribute}", (panel,), caption, tuple(swatches.values()))]


def _point(m: Measure, **at: float) -> dict[str, object]:
    return {"group": m.group, "value": m.value, "shown": value(m, "rate"), **at}


def _ks(view: View) -> list[int]:
    """The k to draw: 1, 3 and 10 where measured, else the smallest, the middle and the largest."""
    found = sorted({int(m.said["k"]) for m in view.all("coverage") if "k" in m.said})
    if set(_SHOWN_K) <= set(found) or len(found) <= len(_SHOWN_K):
        return [k for k in found if k in _SHOWN_K] or found
    return sorted({found[0], found[len(found) // 2], found[-1]})


def _headline(view: View, measure: str, **parameters: float) -> TableView:
    shown, rows = MEASURES[measure], list[Row]()
    for group in view.groups:
        own = view.get(group, measure, **parameters)
        if own is None:
            continue
        rest: tuple[Cell, ...] = tuple(Cell("–", "none") for _ in range(5))
        if group != view.reference:
            matched, difference, against = (
                view.get(group, f"{measure}_{form}", **parameters)
                for form in ("size_matched", "size_matched_difference", "difference")
            )
            best = difference or against
            rest = (
                value_cell(matched, shown.unit),
                value_cell(difference, shown.unit),
                value_cell(against, shown.unit),
                p_cell(difference.p if difference else None),
                p_cell(best.q if best else None),
            )
        name = f"{group} (reference)" if group == view.reference else group
        rows.append((Cell(name), n_cell(own), value_cell(own, shown.unit), *rest))
    said = "".join(f", {k} = {v:g}" for k, v in parameters.items())
    header = (
        "Group",
        "Factuals",
        shown.words.capitalize(),
        f"{view.reference} at this size",
        "Difference from that",
        f"Raw difference from {view.reference}",
        "p (rank)",
        "q",
    )
    note = (
        "In brackets: bootstrap intervals; for the size-matched value the range of the subsamples. p is the rank of the "
        "group's own value among the subsamples, and cannot be smaller than their number allows."
    )
    return TableView(f"{shown.words.capitalize()}{said}, beside the size-matched reference", header, tuple(rows), note)


def _at_k(view: View, measure: str) -> TableView:
    """The headline table of a measure at its largest k."""
    ks = [int(m.said["k"]) for m in view.all(measure) if "k" in m.said]
    return _headline(view, measure, k=max(ks)) if ks else TableView(measure, (), ())


def _cost_table(view: View) -> list[TableView]:
    """The numbers behind the coverage curves, for readers who cannot or will not read charts."""
    limits = sorted({float(m.said["d"]) for m in view.all("coverage") if "d" in m.said})
    rows: list[Row] = []
    for k in _ks(view):
        for d in limits:
            found = [view.get(g, "coverage", d=d, denominator="all", k=k) for g in view.groups]
            if any(found):
                cells = (value_cell(m, "rate", interval=False) for m in found)
                rows.append((number_cell(str(k)), number_cell(significant(d)), *cells))
    title = f"Coverage at each cost limit, by {view.attribute}: the numbers of the figure"
    return [TableView(title, ("k", "Cost limit d", *view.groups), tuple(rows), folded=True)] if rows else []


def _subgroups(view: View) -> list[TableView]:
    rows: list[Row] = []
    left_out = 0
    for group in view.groups:
        numbers = view.subgroups(group)
        left_out += len(numbers[_MOST_SUBGROUPS:])
        rows += [_subgroup(view, group, number) for number in numbers[:_MOST_SUBGROUPS]]
    note = f"The {_MOST_SUBGROUPS} subgroups with the most factuals of each group; {left_out:,} smaller ones are in report.json."
    title = f"Burden by subgroup (weakly connected component), by {view.attribute}"
    header = ("Group", "Subgroup", "Nodes", "Candidates", "Factuals", "Infeasible share", "Burden")
    return [TableView(title, header, tuple(rows), note if left_out else "", folded=len(rows) > 12)] if rows else []


def _subgroup(view: View, group: str, number: int) -> Row:
    share = view.get(group, "infeasible_share", number)
    sizes: Sequence[Measure | None] = [view.get(group, f"component_{x}", number) for x in ("nodes", "candidates")]
    return (
        Cell(group),
        number_cell(str(number)),
        *(value_cell(m, "count", interval=False) for m in sizes),
        n_cell(share),
        value_cell(share, "rate"),
        value_cell(view.get(group, "burden", number), "number"),
    )


