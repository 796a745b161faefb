"""Counts the folds on which no other model is better than a model (Table 3).

The paper's count is on F1, EO gap and CEC together, where whoever has the lowest CEC of a fold cannot lose. Two more
stand beside it: on F1 and EO gap alone, of models without a logit, too, and on all three without collapsed models.
Scope: the counts, in percent of the folds. The frontier of one fold: ``algorithm.training.frontier``.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np

from tasks.methods.cec.algorithm.training.frontier import non_dominated
from tasks.methods.cec.reproduction.obtained import ByModel, Told
from tasks.proof.lines import Cell, Value

ON_ALL_THREE: Final = "non_dominated_percent"
ON_DECISIONS: Final = "non_dominated_f1_eo_percent"
UNCOLLAPSED: Final = "non_dominated_uncollapsed_percent"

NO_LOGIT: Final = "no logit"
"""Stands in the counts with CEC for models that have none."""

Point = tuple[float, float, float]
"""F1, EO gap and CEC; NaN keeps a model out of a fold's comparison."""


def cells(told: ByModel) -> Mapping[Cell, Value]:
    """Returns the three counts of every model; models that some fold lacks have none and compete with nobody."""
    whole = {model: [each for each in several if each] for model, several in told.items() if all(several)}
    found: dict[Cell, Value] = {}
    for name, of in ((ON_ALL_THREE, _three), (ON_DECISIONS, _decisions), (UNCOLLAPSED, _uncollapsed)):
        found |= {Cell(name, model): value for model, value in _percent(whole, of)}
    return found


def _three(told: Told) -> Point:
    return told.performance.f1, told.performance.eo_gap, told.consistency.get("cec", np.nan)


def _decisions(told: Told) -> Point:
    return told.performance.f1, told.performance.eo_gap, 0.0


def _uncollapsed(told: Told) -> Point:
    return (np.nan, np.nan, np.nan) if told.performance.collapsed else _three(told)


def _percent(whole: Mapping[str, list[Told]], of: Callable[[Told], Point]) -> Iterator[tuple[str, Value]]:
    points = np.array([[of(each) for each in several] for several in whole.values()]).reshape(len(whole), -1, 3)
    best = np.column_stack([non_dominated(*points[:, fold].T) for fold in range(points.shape[1])])
    for (model, several), folds in zip(whole.items(), best, strict=True):
        explained = of is _decisions or all("cec" in each.consistency for each in several)
        yield model, float(100 * folds.mean()) if explained else NO_LOGIT
