"""Evenhand: audits of lending decisions for counterfactual unfairness, from Python.

Names are loaded when they are first used, so that the import itself takes a few milliseconds.
"""

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand import datasets, errors
    from evenhand.audits import AuditResult, audit
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
    "AuditResult",
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
    "AuditResult": "evenhand.audits",
    "CausalGraph": "evenhand.causal_graph",
    "CounterfactualFairClassifier": "evenhand.fair_classifier",
    "CounterfactualSituationTesting": "evenhand.methods",
    "ExplanationConsistency": "evenhand.methods",
    "GroupCounterfactuals": "evenhand.methods",
    "RecourseAwareRanking": "evenhand.methods",
}
"""Name -> the module that defines it; all other names are modules of the package."""


_ROOT = str(Path(__file__).parents[1])
"""Folder of this package, and of those that it is built on."""


def _take_own(name: str) -> None:
    """Load a package from the folder of this one, although the path may have another of the same name before it.

    Raises:
        ImportError: Another package of that name is loaded already.
    """
    loaded = sys.modules.get(name)
    place = str(Path(_ROOT, name))
    if loaded is not None:
        places = [str(Path(path).resolve()) for path in getattr(loaded, "__path__", ())]
        if str(Path(place).resolve()) not in places:
            folder = places[0] if places else getattr(loaded, "__file__", "another place")
            raise ImportError(
                f"evenhand needs its own package {name!r}, and {folder} is loaded under that name: import evenhand "
                "first, or rename that folder"
            )
        return
    spec = PathFinder.find_spec(name, [_ROOT])
    if spec is None or spec.loader is None:
        raise ImportError(f"evenhand is not installed whole: {place} is missing; install it again")
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


for _name in ("schemas", "tasks", "flows", "research"):
    _take_own(_name)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'evenhand' has no attribute {name!r}")
    if name not in _HOMES:
        return import_module(f"evenhand.{name}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
