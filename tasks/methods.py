"""The registry of methods: for each, the module that detects and the module that writes its section of the report.

Names only, so that importing this module imports no method.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType

from schemas.applications import APPLICANTS, MODELS
from schemas.counterfactuals import COUNTERFACTUAL_DECISIONS, COUNTERFACTUALS
from schemas.graph import FEASIBILITY_EDGES, FEASIBILITY_NODES
from schemas.settings import AuditSpec
from schemas.table import Table


@dataclass(frozen=True)
class Method:
    """One method: where it is implemented, and what it is called where people read."""

    name: str
    title: str
    algorithm: str
    section: str
    reads: tuple[Table, ...]
    """The tables that it needs beside features, decisions and groups: the stages that write them are then run."""
    measures: tuple[str, ...]
    """The measures that it makes, without those that compare them."""
    headline: Mapping[str, str]
    """Measures that the command prints at its end, with a short title for each."""
    partitions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Measures whose shares add up to one over some parameters, and these parameters."""
    of_reference: bool = True
    """Whether it has something to say of a reference group alone; else its measures are of the other groups."""

    def load(self) -> ModuleType:
        """The module with ``detect(problem, settings, rng)`` and ``units(problem)``."""
        return import_module(self.algorithm)


METHODS = {
    m.name: m
    for m in (
        Method(
            "fgce",
            "Feasible group counterfactual explanations (FGCE)",
            "tasks.algorithms.fgce",
            "tasks.sections.fgce",
            (FEASIBILITY_NODES, FEASIBILITY_EDGES),
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
        ),
        Method(
            "cst",
            "Counterfactual situation testing (CST)",
            "tasks.algorithms.cst",
            "tasks.sections.cst",
            (APPLICANTS, MODELS, COUNTERFACTUALS, COUNTERFACTUAL_DECISIONS),
            (
                *("share_significant", "share_detected", "share_positive", "delta", "delta_share", "share_detected_at"),
                *(
                    "share_detected_without",
                    "share_significant_without",
                    "share_multiple",
                    "share_multiple_significant",
                ),
            ),
            {
                "share_significant": "significant (situation tests)",
                "share_significant_null": "with labels permuted",
            },
            partitions={"delta_share": ("from", "to")},
            of_reference=False,
        ),
        Method(
            "cec",
            "Counterfactual explanation consistency (CEC)",
            "tasks.algorithms.cec",
            "tasks.sections.cec",
            (APPLICANTS, MODELS),
            (
                *("cec", "cec_floor", "cec_above_floor", "cec_within_group", "cec_above_within_group"),
                *("flip_share", "regime_share", "regime_share_at"),
                *("attribution_divergence", "attribution_share", "match_distance", "match_distance_quantile"),
                *("match_reuse", "match_reuse_largest", "unmatched_share", "no_direction_share"),
                *("incomplete_share", "completeness_error"),
            ),
            {
                "cec": "reasons apart (CEC)",
                "cec_above_floor": "above its floor",
                "cec_above_within_group": "above its own group",
            },
            partitions={"regime_share": ("regime",), "regime_share_at": ("regime",)},
            of_reference=False,
        ),
    )
}


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


def asked_for(spec: AuditSpec) -> list[Method]:
    """The methods of an audit, in the order of the registry."""
    return [method for name, method in METHODS.items() if getattr(spec.methods, name) is not None]
