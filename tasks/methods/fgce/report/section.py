"""FGCE's section: how the graph was built, what recourse costs, and for whom there is none.

Here belongs the order of the chapter, what matters first: who has no recourse and what it costs the others. Each part
is a module of its own; how a measure is set beside its size-matched reference, because a small group has a thinner
graph, is in ``reporting.comparison``.
"""

from tasks.methods.fgce.report import (
    ablation,
    attributes,
    connectivity,
    coverage,
    optima,
    recourse,
    relabelled,
    sharing,
    subgroups,
)
from tasks.methods.fgce.report.limits import limits
from tasks.reporting.chapters.builder import by_maker, glossary, measures, part
from tasks.reporting.comparison import capital
from tasks.reporting.material import Material, anchor
from tasks.reporting.section import Section

__all__ = ["GLOSSARY", "MEASURES", "QUESTION", "chapter", "limits"]

_BELOW = {
    "Coverage: whom a few counterfactuals serve": (coverage,),
    "Least cost: how few would do, and at what cost": (optima,),
    "Sharing: what a common counterfactual costs": (sharing,),
    "Attributes: what would have to change": (attributes,),
    "Subgroups: where the graph falls apart": (subgroups,),
    "Rules: what depends on which": (ablation,),
}
"""The parts below the first results, in their order."""

QUESTION = (
    "What would applicants with an unfavourable decision have needed to look like, within their own group, to receive "
    "a favourable one?"
)
MEASURES = measures(recourse, relabelled, coverage, optima, sharing, attributes, subgroups, ablation, connectivity)
GLOSSARY = {
    "factual": "an applicant with an unfavourable decision, to be explained",
    "candidate": "an applicant with a favourable decision, who may serve as a counterfactual",
    "feasible": "a candidate is feasible for a factual if feasible steps inside the group's graph lead to it",
    "feasibility graph": "distinct applications, joined where one could come to look like the other in one small step "
    "that breaks no constraint",
    "epsilon": "the longest that one feasible step may be, in encoded units",
    "encoded units": "units of distance when each feature runs from 0 to 1",
    "recourse cost": "what a factual pays to become like a feasible candidate: their distance in encoded units, the "
    "weighted length of the path between them, or its number of steps, as the audit was told",
    "infeasible share": "share of a group's factuals without any feasible candidate",
    "burden": "mean cost of the cheapest recourse of the factuals that have one; read it with the infeasible share",
    "coverage": "share of factuals served by at least one of k selected candidates, within a cost limit if set",
    "k": "number of candidates selected to serve a whole group",
    "size-matched reference": "the measure on the reference group, subsampled again and again to the size of the group",
    "subgroup": "weakly connected component of a group's graph, numbered from 1 by falling number of factuals",
    **glossary(relabelled, coverage, optima, sharing, attributes, ablation, connectivity),
}


def chapter(material: Material) -> Section:
    """The graph, then the measures for the model, then those for the lender's own decisions."""
    makers = by_maker(material, "fgce", lambda _, view: view, (recourse, relabelled), _BELOW)
    words = (
        "For every applicant with an unfavourable decision this method looks for applicants of the same group with a "
        "favourable one, who can be reached by small steps through applications that really occurred. It asks how many "
        "can be served by a few such examples, at what cost, and for whom there is no path at all.",
        "A small group has fewer such examples and a thinner graph, whoever decides. Each measure is therefore printed "
        "beside its size-matched value: the reference group, subsampled to the size of the group. The comparison that "
        "counts is with that range.",
    )
    return Section("Recourse: feasible group counterfactuals (FGCE)", "fgce", words, parts=(_graph(material), *makers))


def _graph(material: Material) -> Section:
    """The facts of the graph, and its connectivity, which is stored with the lender whose applications they are."""
    points = tuple(f"{capital(str(f['words']))}." for f in material.facts)
    name = "fgce-graph"
    parts = tuple(
        part(f"Connectivity by {view.attribute}", anchor(name, view.attribute), (connectivity,), view)
        for view in material.views("fgce", "lender")
    )
    return Section("How the graph was built", name, points=points, parts=tuple(each for each in parts if each.tables))
