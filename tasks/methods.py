"""The registry of methods: for each, the module that detects and the module that writes its section of the report.

Names only, so that importing this module imports no method.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType

from schemas.applications import APPLICANTS, MODELS
from schemas.counterfactuals import COUNTERFACTUAL_DECISIONS, COUNTERFACTUALS, MEDIATED, MEDIATED_DECISIONS
from schemas.graph import FEASIBILITY_EDGES, FEASIBILITY_NODES
from schemas.reranking import RERANKED
from schemas.settings import AuditSpec, StageSettings
from schemas.table import Table
from tasks._stage import Stage
from tasks.planned.form import Form


@dataclass(frozen=True)
class Method:
    """One method: where it is implemented, and what it is called where people read."""

    name: str
    title: str
    algorithm: str
    section: str
    reads: tuple[Table, ...]
    """The tables that it needs beside features, decisions and groups: the stages that write them are then run."""
    planned: str
    """The module that tells from the spec which measures will be made: it has ``measures(spec)``."""
    measures: tuple[str, ...]
    """The measures that it makes, without those that compare them."""
    headline: Mapping[str, str]
    """Measures that the command prints at its end, with a short title for each."""
    partitions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Measures whose shares add up to one over some parameters, and these parameters."""
    generators: Mapping[str, tuple[Table, ...]] = field(default_factory=dict)
    """What can make its counterfactuals, by the setting ``generator``, and the tables that these then are in."""
    stages: tuple[str, ...] = ()
    """Modules of stages of its own: each has a stage of its name, and ``settings_of(spec)``, None if not asked for."""
    of_reference: bool = True
    """Whether it has something to say of a reference group alone; else its measures are of the other groups."""

    def load(self) -> ModuleType:
        """The module with ``detect(problem, settings, rng)`` and ``units(problem)``."""
        return import_module(self.algorithm)

    def plan(self, spec: AuditSpec) -> Iterator[Form]:
        """The measures that it will make in an audit, with their parameters and ranges."""
        forms: Iterator[Form] = import_module(self.planned).measures(spec)
        return forms

    def own_stages(self) -> list[tuple[Stage, Callable[[AuditSpec], StageSettings | None]]]:
        """The stages that it alone needs, each with what makes its settings."""
        modules = [import_module(name) for name in self.stages]
        return [(getattr(module, module.__name__.rpartition(".")[2]), module.settings_of) for module in modules]


METHODS = {
    m.name: m
    for m in (
        Method(
            "fgce",
            "Feasible group counterfactual explanations (FGCE)",
            "tasks.algorithms.fgce",
            "tasks.sections.fgce",
            (FEASIBILITY_NODES, FEASIBILITY_EDGES),
            "tasks.planned.fgce",
            (
                *("infeasible_share", "burden", "burden_at_k", "coverage", "coverage_at_k", "kauc", "dauc", "acf"),
                *("cost_over_face", "k0", "d0", "d0_at_k0", "least_cost", "cauc", "coverage_optimum", "greedy_gap"),
                *("kauc_saturation", "dauc_saturation", "cauc_saturation"),
                *("component_nodes", "component_candidates"),
                *("components", "strong_components", "singletons", "density"),
                *("infeasible_share_without", "burden_without"),
            ),
            {
                "infeasible_share": "no feasible path",
                "infeasible_share_size_matched": "reference at its size",
                "burden": "burden",
            },
            stages=("tasks.ablate",),
        ),
        Method(
            "cst",
            "Counterfactual situation testing (CST)",
            "tasks.algorithms.cst",
            "tasks.sections.cst",
            (APPLICANTS, MODELS),
            "tasks.planned.cst",
            (
                *("share_significant", "share_detected", "share_positive", "delta", "delta_share", "share_detected_at"),
                *(
                    "share_detected_without",
                    "share_significant_without",
                    "share_multiple",
                    "share_multiple_significant",
                ),
                *("clipped_share", "no_width_share"),
            ),
            {
                "share_significant": "significant (situation tests)",
                "share_significant_null": "with labels permuted",
            },
            partitions={"delta_share": ("from", "to")},
            generators={
                **dict.fromkeys(("scm", "nearest"), (COUNTERFACTUALS, COUNTERFACTUAL_DECISIONS)),
                **dict.fromkeys(("gan", "quantile"), (MEDIATED, MEDIATED_DECISIONS)),
            },
            of_reference=False,
        ),
        Method(
            "cec",
            "Counterfactual explanation consistency (CEC)",
            "tasks.algorithms.cec",
            "tasks.sections.cec",
            (APPLICANTS, MODELS),
            "tasks.planned.cec",
            (
                *("cec", "cec_floor", "cec_above_floor", "cec_within_group", "cec_above_within_group"),
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
            stages=("tasks.train",),
            of_reference=False,
        ),
        Method(
            "gcfn",
            "Generative counterfactual fairness network (GCFN)",
            "tasks.algorithms.gcfn",
            "tasks.sections.gcfn",
            (APPLICANTS, MEDIATED, MEDIATED_DECISIONS),
            "tasks.planned.gcfn",
            (
                *("decision_flip_share", "flip_direction_share"),
                *("score_change", "score_change_absolute", "score_change_squared", "score_change_quantile"),
                *("not_identified_share", "mediator_spread", "mediator_spread_share", "unmediated_share"),
                *("flip_share_by_band", "large_change_share_by_band", "mediator_share", "imagined_mediator_share"),
                *("fair_accuracy", "fair_ppv", "fair_fpr", "fair_fnr", "fair_unfairness", "fair_utility"),
                *("fair_score_change", "fair_score_share", "noise_abducted_share"),
                *("treated_differently_share", "treated_differently_by_band"),
            ),
            {
                "decision_flip_share": "decision changes (GCFN)",
                "not_identified_share": "not identified",
            },
            partitions={
                "flip_direction_share": ("direction",),
                "mediator_spread_share": ("from", "to"),
                "fair_score_share": ("from", "to"),
                **dict.fromkeys(("mediator_share", "imagined_mediator_share"), ("from", "to")),
                **dict.fromkeys(
                    ("flip_share_by_band", "large_change_share_by_band", "treated_differently_by_band"),
                    ("from", "to", "category"),
                ),
            },
            stages=("tasks.mediate", "tasks.predict_fairly"),
        ),
        Method(
            "raguel",
            "Recourse-aware re-ranking (RAGUEL)",
            "tasks.algorithms.raguel",
            "tasks.sections.raguel",
            (RERANKED,),
            "tasks.planned.raguel",
            (
                *("recourse_cost", "recourse_cost_quantile", "unreached_share", "recourse_not_confirmed_share"),
                *("ratio_of_costs", "ratio_of_costs_at", "list_share", "block_band", "block_share", "unfair_blocks"),
                *("points_changed", "ranks_changed", "total_cost", "mean_offer_cost"),
                *("offer_share", "offer_size", "offer_not_confirmed_share"),
                *("rnd", "rkl", "rrd", "below_predecessor_share", "exit_rank"),
            ),
            {
                "recourse_cost": "recourse cost (RAGUEL)",
                "unreached_share": "no recourse in reach",
            },
            partitions={"block_share": ("block",)},
            stages=("tasks.rerank",),
        ),
    )
}


OUTCOMES_METHOD = "outcomes"
"""What stands for a method in the rows of the measures made without any."""

OUTCOMES = ("approval_rate", "denial_rate")
"""The measures of the decisions themselves, made without any method."""


def measures_known() -> tuple[str, ...]:
    """Every measure that an audit can make, without those that compare them."""
    return (*OUTCOMES, *(name for method in METHODS.values() for name in method.measures))


def partitions() -> dict[str, tuple[str, ...]]:
    """Measures whose shares add up to one, and over which parameters."""
    return {name: over for method in METHODS.values() for name, over in method.partitions.items()}


def of_other_groups() -> frozenset[str]:
    """The measures that say nothing of a reference group."""
    return frozenset(name for method in METHODS.values() if not method.of_reference for name in method.measures)


def generator_of(spec: AuditSpec, method: Method) -> str | None:
    """What makes the counterfactuals of a method that is given some, as the audit spec asks for it."""
    return str(getattr(spec.methods, method.name).generator) if method.generators else None


def tables_of(spec: AuditSpec, method: Method) -> tuple[Table, ...]:
    """All tables that a method needs in this audit."""
    return (*method.reads, *method.generators.get(generator_of(spec, method) or "", ()))


def asked_for(spec: AuditSpec) -> list[Method]:
    """The methods of an audit, in the order of the registry."""
    return [method for name, method in METHODS.items() if getattr(spec.methods, name) is not None]
