"""Evenhand: audits of lending decisions for counterfactual unfairness, from Python.

Names are loaded when they are first used, so that the import itself takes a few milliseconds.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand import datasets, errors
    from evenhand.audits import audit
    from evenhand.causal_graph import CausalGraph
    from evenhand.fair_classifier import CounterfactualFairClassifier
    from evenhand.lakes import open  # noqa: A004 read as `evenhand.open`
    from evenhand.methods import (
        AdjustedDisparity,
        CounterfactualSituationTesting,
        ExplanationConsistency,
        GroupCounterfactuals,
        RecourseAwareRanking,
    )

__all__ = [
    "AdjustedDisparity",
    "CausalGraph",
    "CounterfactualFairClassifier",
    "CounterfactualSituationTesting",
    "ExplanationConsistency",
    "GroupCounterfactuals",
    "RecourseAwareRanking",
    "audit",
    "datasets",
    "errors",
    "open",
]

_HOMES = {
    "audit": "evenhand.audits",
    "open": "evenhand.lakes",
    "AdjustedDisparity": "evenhand.methods",
    "CausalGraph": "evenhand.causal_graph",
    "CounterfactualFairClassifier": "evenhand.fair_classifier",
    "CounterfactualSituationTesting": "evenhand.methods",
    "ExplanationConsistency": "evenhand.methods",
    "GroupCounterfactuals": "evenhand.methods",
    "RecourseAwareRanking": "evenhand.methods",
}
"""Name -> the module that defines it; all other names are modules of the package."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'evenhand' has no attribute {name!r}")
    if name not in _HOMES:
        return import_module(f"evenhand.{name}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
