"""Declaration of GCFN, the only part of the method that the registry reads."""

from schemas.tables.applications import APPLICANTS
from schemas.tables.counterfactuals import GENERATOR_CHECKS, GENERATOR_REFITS, MEDIATED, MEDIATED_DECISIONS
from schemas.terms import Theory
from tasks.pipeline.method import Judged, Method

METHOD = Method(
    name="gcfn",
    title="Generative counterfactual fairness network (GCFN)",
    reads=(APPLICANTS, MEDIATED, MEDIATED_DECISIONS, GENERATOR_REFITS, GENERATOR_CHECKS),
    measures=(
        "share_changed",
        "mediator_support",
        "relative_change",
        "decision_flip_share",
        "flip_direction_share",
        "score_change",
        "score_change_absolute",
        "score_change_squared",
        "score_change_quantile",
        "not_identified_share",
        "mediator_spread",
        "mediator_spread_share",
        "unmediated_share",
        "flip_share_by_band",
        "large_change_share_by_band",
        "mediator_share",
        "imagined_mediator_share",
        "fair_accuracy",
        "fair_ppv",
        "fair_fpr",
        "fair_fnr",
        "fair_unfairness",
        "fair_utility",
        "fair_score_change",
        "fair_score_share",
        "noise_abducted_share",
        "treated_differently_share",
        "treated_differently_by_band",
    ),
    headline={"decision_flip_share": "decision changes (GCFN)", "not_identified_share": "not identified"},
    partitions={
        "flip_direction_share": ("direction",),
        "mediator_spread_share": ("from", "to"),
        "fair_score_share": ("from", "to"),
        "mediator_share": ("from", "to"),
        "imagined_mediator_share": ("from", "to"),
        "flip_share_by_band": ("from", "to", "category"),
        "large_change_share_by_band": ("from", "to", "category"),
        "treated_differently_by_band": ("from", "to", "category"),
    },
    sampling="sampled",
    verdict_measures=(Judged(Theory.CAUSAL_MODEL, "share_changed", "beside"),),
    mitigations=("gcfn", "cfua", "cfan", "hscic", "mcevae", "dcevae", "advae"),
    grows="with fewer rows the generators learn less, and are more often not sure",
)
