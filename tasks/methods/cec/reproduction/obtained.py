"""Trains the CEC paper's models on folds and averages their figures on held-out rows over the folds.

Scope: the settings of the paper and the cells. Matching and scoring:
``tasks.methods.cec.algorithm.training.held_out``.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

import numpy as np

from tasks.methods.cec.algorithm.training import folds
from tasks.methods.cec.algorithm.training.folds import Outcome
from tasks.methods.cec.algorithm.training.frontier import Variant, ablation
from tasks.methods.cec.algorithm.training.held_out import Bridge, Lending
from tasks.methods.cec.reproduction.printed import CEC_MODEL, UNCONSTRAINED
from tasks.metrics.compare.algorithm.performance import Performance
from tasks.numerics.networks.settings import PAPER, TrainingSettings
from tasks.proof.lines import Cell, Value

log = logging.getLogger("evenhand")

FOLDS: Final = 5
"""Of the paper."""

SETTINGS: Final = replace(TrainingSettings(device="cpu"), **PAPER)
"""The paper's; always on the CPU, so that figures do not depend on the machine."""

TABLE_2: Final = {"pred": UNCONSTRAINED, "full": CEC_MODEL}
"""What Table 2 calls two of the variants of Table 4."""


@dataclass(frozen=True)
class Course:
    """How models are trained."""

    folds: int = 1
    """The first so many of the paper's five."""
    settings: TrainingSettings = SETTINGS

    @property
    def sparing(self) -> "Course":
        """The same with attributions by 8 midpoints on half of the pairs, as audits have them by default."""
        audit = TrainingSettings()
        return replace(self, settings=replace(self.settings, steps=audit.steps, pair_share=audit.pair_share))


@dataclass(frozen=True)
class Told:
    """Figures of one model on one fold."""

    performance: Performance
    consistency: Mapping[str, float]
    """Empty where there is no logit to explain."""


ByModel = Mapping[str, Sequence[Told | None]]
"""By the name of a model: its figures on each fold, in order; None where it leaves no model."""


def outcomes(rows: Lending, variants: Sequence[Variant], course: Course) -> list[Outcome]:
    """Trains the variants on the first folds of five."""
    bridge, told, settings = Bridge(rows), list[Outcome](), course.settings
    for fold in islice(folds.split(rows.population, FOLDS, settings.seed), course.folds):
        for outcome in folds.evaluate(rows.population, fold, variants, settings, bridge.match, bridge.score):
            cec = outcome.consistency["cec"]
            log.info("fold %d of %d, %s: CEC %.3f", fold.number + 1, course.folds, outcome.variant.name, cec)
            told.append(outcome)
    return told


def variants(whole: bool) -> tuple[Variant, ...]:
    """Returns all variants of Table 4, or the two of Table 2."""
    every = ablation(SETTINGS)
    return every if whole else tuple(variant for variant in every if variant.name in TABLE_2)


def by_model(told: Iterable[Outcome], suffix: str = "") -> ByModel:
    """Returns the figures by the names of the variants in Table 4 and, with the suffix, in Table 2."""
    of: dict[str, list[Told]] = {}
    for outcome in told:
        variant = outcome.variant.name
        for name in dict.fromkeys((variant, TABLE_2.get(variant, variant))):
            of.setdefault(name + suffix, []).append(Told(outcome.performance, outcome.consistency))
    return of


def cells(told: ByModel) -> Mapping[Cell, Value]:
    """Returns means over folds of models that every fold has."""
    found: dict[Cell, Value] = {}
    for model, several in told.items():
        there = [each for each in several if each is not None]
        found |= {Cell(quantity, model): value for quantity, value in means(there).items()}
    return found


def means(several: Sequence[Told]) -> dict[str, float]:
    """Returns means of the quantities that every fold has, and the number of folds with a collapsed model."""
    by_fold = [{**vars(each.performance), **each.consistency} for each in several]
    common = [name for name in by_fold[0] if all(name in each for each in by_fold)]
    found = {name: float(np.mean([each[name] for each in by_fold])) for name in common}
    return found | {"collapsed_folds": float(sum(each.performance.collapsed for each in several))}
