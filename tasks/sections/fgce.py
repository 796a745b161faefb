"""FGCE's section: how the graph was built, what recourse costs, and for whom there is none.

Every measure stands beside its size-matched reference, because a small group has a thinner graph and fewer candidates,
and that alone raises its infeasible share and its costs. Sentences that read the figures are in ``_size``, tables in
``_recourse``.
"""

from tasks.sections import charts
from tasks.sections._material import Material, Measure, View, anchor, maker_words, undrawn
from tasks.sections._numbers import value
from tasks.sections._recourse import MEASURES, selected_ks, tables
from tasks.sections._section import Figure, Panel, Section, Swatch
from tasks.sections._size import reading

__all__ = ["GLOSSARY", "MEASURES", "chapter"]

GLOSSARY = {
    "factual": "an applicant with an unfavourable decision, to be explained",
    "candidate": "an applicant with a favourable decision, who may serve as a counterfactual",
    "feasible": "a candidate is feasible for a factual if feasible steps inside the group's graph lead to it",
    "feasibility graph": "distinct applications, joined where one could come to look like the other in one small step "
    "that breaks no constraint",
    "epsilon": "the longest that one feasible step may be, in encoded units",
    "recourse cost": "distance between a factual and a feasible candidate, in encoded units (each feature from 0 to 1)",
    "infeasible share": "share of a group's factuals without any feasible candidate",
    "burden": "mean cost of the cheapest recourse of the factuals that have one; read it with the infeasible share",
    "coverage": "share of factuals served by at least one of k selected candidates, within a cost limit if set",
    "k": "number of candidates selected to serve a whole group",
    "size-matched reference": "the measure on the reference group, subsampled again and again to the size of the group",
    "subgroup": "weakly connected component of a group's graph, numbered from 1 by falling number of factuals",
}


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
    return Section(
        f"By {view.attribute}",
        anchor("fgce", view.maker, view.attribute),
        points=tuple(read),
        figures=tuple(figures),
        tables=tables(view),
    )


def _beside_size(view: View) -> list[Figure]:
    panels = []
    for measure in ("infeasible_share", "burden"):
        rows, shown = [], MEASURES[measure]
        for group in view.groups:
            for what, name in (("own", measure), ("matched", f"{measure}_size_matched")):
                m = view.get(group, name)
                if m and m.value is not None:
                    said = value(m, shown.unit) + (
                        f", {view.reference} at this group's size" if what == "matched" else ""
                    )
                    rows.append(
                        {"group": group, "what": what, "value": m.value, "low": m.low, "high": m.high, "shown": said}
                    )
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
    drawn = {m.group for m in view.rows if m.measure == "infeasible_share" and m.subgroup == 0 and m.value is not None}
    return [Figure(title, tuple(panels), caption + undrawn(view.groups, drawn), legend)] if panels else []


def _against_cost(view: View, swatches: dict[str, Swatch]) -> list[Figure]:
    panels: list[Panel] = []
    for k in selected_ks(view):
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
        "Share of all the group's factuals for whom one of k selected candidates lies within the cost limit. "
        "Measured at the marked limits, joined by straight lines. A curve that levels off below 100 % leaves "
        "factuals without recourse at any cost. Compare groups of different size with the size-matched values in "
        "the tables only."
    )
    title = f"Coverage against cost, by {view.attribute}"
    drawn = {m.group for m in view.all("coverage") if m.value is not None}
    return (
        [Figure(title, tuple(panels), caption + undrawn(swatches, drawn), _legend(swatches, drawn))] if panels else []
    )


def _against_k(view: View, swatches: dict[str, Swatch]) -> list[Figure]:
    rows = [_point(m, k=m.said["k"]) for m in view.all("coverage_at_k") if m.value is not None]
    if not rows:
        return []
    rows.sort(key=lambda r: (str(r["group"]), int(str(r["k"]))))
    label = f"Coverage against the number of counterfactuals, one line for each group of {view.attribute}."
    panel = charts.curves("No cost limit", label, rows, swatches, ("k", "selected counterfactuals k"), stepped=True)
    caption = "Share of all the group's factuals that k selected candidates serve, whatever it costs."
    drawn = {str(row["group"]) for row in rows}
    title = f"Coverage against k, by {view.attribute}"
    return [Figure(title, (panel,), caption + undrawn(swatches, drawn), _legend(swatches, drawn))]


def _legend(swatches: dict[str, Swatch], drawn: set[str]) -> tuple[Swatch, ...]:
    return tuple(swatch for group, swatch in swatches.items() if group in drawn)


def _point(m: Measure, **at: float) -> dict[str, object]:
    return {"group": m.group, "value": m.value, "shown": value(m, "rate"), **at}
