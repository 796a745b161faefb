"""What CEC declares of itself: the registry reads nothing else of it."""

from schemas.tables.applications import APPLICANTS, MODELS
from schemas.terms import Theory
from tasks.pipeline.method import Judged, Method

METHOD = Method(
    "cec",
    "Counterfactual explanation consistency (CEC)",
    (APPLICANTS, MODELS),
    (
        *("cec", "cec_floor", "cec_above_floor", "cec_within_group", "cec_above_within_group"),
        "cec_above_own_group",
        *("flip_share", "regime_share", "regime_share_at"),
        *("attribution_divergence", "attribution_share", "match_distance", "match_distance_quantile"),
        *("match_reuse", "match_reuse_largest", "unmatched_share", "no_direction_share"),
        *("incomplete_share", "completeness_error"),
        *("trained_auc", "trained_f1", "trained_balanced_accuracy", "trained_positive_rate"),
        *("trained_eo_gap", "trained_sp_gap", "trained_cec", "trained_cec_floor", "trained_cec_above_floor"),
        *("trained_flip_share", "trained_regime_share", "trained_collapsed", "trained_non_dominated"),
    ),
    {
        "cec": "reasons apart (CEC)",
        "cec_above_floor": "above its floor",
        "cec_above_within_group": "above its own group",
    },
    partitions={
        "regime_share": ("regime",),
        "regime_share_at": ("regime",),
        "trained_regime_share": ("regime",),
    },
    of_reference=False,
    asked="sampled",
    judged=(Judged(Theory.REASONS, "cec_above_own_group", refitted=True),),
    covering=frozenset({"cec_above_own_group"}),
    mitigations=("unconstrained", "dir", "correlation_remover", "hardt", "agarwal", "adversarial", "lagrangian", "cec"),
    grows="with fewer rows the matched applicants are less alike, and the model learns from fewer",
)
