"""Declaration of RAGUEL, the only part of the method that the registry reads."""

from schemas.terms import Theory
from tasks.methods.raguel.tables import RERANKED
from tasks.pipeline.method import Judged, Method

METHOD = Method(
    name="raguel",
    title="Recourse-aware re-ranking (RAGUEL)",
    reads=(RERANKED,),
    measures=(
        "recourse_cost",
        "recourse_cost_quantile",
        "unreached_share",
        "recourse_not_confirmed_share",
        "recourse_cost_reference_over_group",
        "ratio_of_costs",
        "ratio_of_costs_at",
        "list_share",
        "block_band",
        "block_share",
        "unfair_blocks",
        "points_changed",
        "ranks_changed",
        "total_cost",
        "mean_offer_cost",
        "offer_share",
        "offer_size",
        "offer_not_confirmed_share",
        "rnd",
        "rkl",
        "rrd",
        "below_predecessor_share",
        "exit_rank",
    ),
    headline={"recourse_cost": "recourse cost (RAGUEL)", "unreached_share": "no recourse in reach"},
    partitions={"block_share": ("block",)},
    curves={
        "ratio_of_costs": ("over",),
        **dict.fromkeys(("ratio_of_costs_at", "block_share", "recourse_cost_quantile"), ()),
    },
    verdict_measures=(Judged(Theory.PATH_TO_APPROVAL, "recourse_cost_reference_over_group", refitted=True),),
    covering=frozenset(("recourse_cost_reference_over_group",)),
    grows="what it takes to gain ranks depends on how many others are in the list",
)
