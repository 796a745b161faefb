"""Declaration of FGCE, the only part of the method that the registry reads."""

from schemas.tables.counterfactuals import FEASIBILITY_EDGES, FEASIBILITY_NODES
from schemas.terms import Theory
from tasks.pipeline.method import Judged, Method

METHOD = Method(
    name="fgce",
    title="Feasible group counterfactual explanations (FGCE)",
    reads=(FEASIBILITY_NODES, FEASIBILITY_EDGES),
    measures=(
        "infeasible_share",
        "burden",
        "burden_at_k",
        "coverage",
        "coverage_at_k",
        "kauc",
        "dauc",
        "acf",
        "cost_over_face",
        "k0",
        "d0",
        "d0_at_k0",
        "least_cost",
        "cauc",
        "coverage_optimum",
        "greedy_gap",
        "kauc_saturation",
        "dauc_saturation",
        "cauc_saturation",
        "component_nodes",
        "component_candidates",
        "components",
        "strong_components",
        "singletons",
        "density",
        "infeasible_share_without",
        "burden_without",
        "infeasible_share_relabelled",
        "infeasible_share_under_relabelling",
    ),
    headline={
        "infeasible_share": "no feasible path",
        "infeasible_share_size_matched": "reference at its size",
        "burden": "burden",
    },
    sampling="graph",
    curves={
        "coverage_at_k": ("k",),
        **dict.fromkeys(("coverage", "kauc", "dauc", "cauc", "least_cost", "cost_over_face", "acf"), ()),
        **dict.fromkeys(
            ("kauc_saturation", "dauc_saturation", "cauc_saturation", "coverage_optimum", "greedy_gap"), ()
        ),
        **dict.fromkeys(("infeasible_share_without", "burden_without"), ()),
        **dict.fromkeys(("components", "strong_components", "singletons", "density"), ()),
    },
    verdict_measures=(Judged(Theory.PATH_TO_APPROVAL, "infeasible_share_relabelled", "adds"),),
    grows="with more rows more paths are feasible, so that large partitions look better for being large",
)
