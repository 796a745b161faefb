"""Variants of the loss, the grid of its weights, and the Pareto frontier of models (sections 5.3, 5.5)."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.networks.settings import TrainingSettings

GRID: Final = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Values of each lambda (Figure 6)."""


@dataclass(frozen=True)
class Variant:
    """A model of a comparison: its name and the weights of the two added terms."""

    name: str
    lambda_eo: float
    lambda_cec: float

    def of(self, settings: TrainingSettings) -> TrainingSettings:
        """The settings with these weights."""
        return replace(settings, lambda_eo=self.lambda_eo, lambda_cec=self.lambda_cec)


def ablation(settings: TrainingSettings) -> tuple[Variant, ...]:
    """Prediction alone, with either term, and with both (Table 4), weighted as the settings say."""
    eo, cec = settings.lambda_eo, settings.lambda_cec
    return Variant("pred", 0, 0), Variant("pred+EO", eo, 0), Variant("pred+CEC", 0, cec), Variant("full", eo, cec)


def lambda_grid(values: tuple[float, ...] = GRID) -> tuple[Variant, ...]:
    """Every pair of weights."""
    return tuple(Variant(f"EO {eo:g}, CEC {cec:g}", eo, cec) for eo in values for cec in values)


def non_dominated(f1: Floats, eo_gap: Floats, cec: Floats) -> Bools:
    """Models ``(m,)`` that no other one matches in all of F1 up, EO down, CEC down and beats in one of them.

    A model on which one of the three is not defined (NaN) neither dominates nor is on the frontier.
    """
    points = np.column_stack([-f1, eo_gap, cec])
    known: Bools = np.all(np.isfinite(points), axis=1)
    as_good: Bools = np.all(points[:, None] <= points[None], axis=2)
    better: Bools = np.any(points[:, None] < points[None], axis=2)
    beaten: Bools = np.any(as_good & better & known[:, None], axis=0)
    return known & ~beaten
