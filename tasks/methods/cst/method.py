"""Declaration of CST, the only part of the method that the registry reads."""

from schemas.tables.applications import APPLICANTS, MODELS
from schemas.tables.counterfactuals import COUNTERFACTUAL_DECISIONS, COUNTERFACTUALS, MEDIATED, MEDIATED_DECISIONS
from schemas.terms import DecisionMaker, Theory
from tasks.pipeline.method import Judged, Method

METHOD = Method(
    name="cst",
    title="Counterfactual situation testing (CST)",
    reads=(APPLICANTS, MODELS),
    measures=(
        "share_significant",
        "share_detected",
        "share_positive",
        "delta",
        "delta_share",
        "share_detected_at",
        "share_detected_without",
        "share_significant_without",
        "share_multiple",
        "share_multiple_significant",
        "clipped_share",
        "no_width_share",
        "cst_effect",
        "st_effect",
        "mediated_effect",
        "saturated_effect",
        "saturated_shift",
        "st_effect_p",
        "support",
        "excess_share_of_denials",
        "share_significant_p",
    ),
    headline={"cst_effect": "CST effect on approval (total)", "st_effect": "ST effect on approval (direct)"},
    partitions={"delta_share": ("from", "to")},
    curves={
        **dict.fromkeys(("share_significant", "share_detected"), ("k", "variant")),
        "delta": ("k",),
        **dict.fromkeys(("share_multiple", "share_multiple_significant"), ("k",)),
        **dict.fromkeys(("share_positive", "share_detected_at", "delta_share", "clipped_share"), ()),
    },
    generators={
        "scm": (COUNTERFACTUALS, COUNTERFACTUAL_DECISIONS),
        "nearest": (COUNTERFACTUALS, COUNTERFACTUAL_DECISIONS),
        "gan": (MEDIATED, MEDIATED_DECISIONS),
        "quantile": (MEDIATED, MEDIATED_DECISIONS),
    },
    of_reference=False,
    sampling="pool",
    verdict_measures=(
        Judged(Theory.CAUSAL_MODEL, "cst_effect"),
        Judged(Theory.SIMILAR_APPLICANTS, "st_effect", "beside", maker=DecisionMaker.LENDER),
    ),
    covering=frozenset({"cst_effect", "st_effect", "mediated_effect"}),
    grows="with fewer rows the nearest applicants are less alike, so that small partitions are compared less closely",
)
