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
from tasks.methods.cec.algorithm.training.performance import Performance
from tasks.methods.cec.reproduction.printed import CEC_MODEL, UNCONSTRAINED
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
class Told:
    """Figures of one model on one fold."""

    performance: Performance
    consistency: Mapping[str, float]
    """Empty where there is no logit to explain."""


def outcomes(rows: Lending, variants: Sequence[Variant], number: int) -> list[Outcome]:
    """Trains the variants on the first ``number`` of five folds."""
    bridge, told = Bridge(rows), list[Outcome]()
    for fold in islice(folds.split(rows.population, FOLDS, SETTINGS.seed), number):
        for outcome in folds.evaluate(rows.population, fold, variants, SETTINGS, bridge.match, bridge.score):
            cec = outcome.consistency["cec"]
            log.info("fold %d of %d, %s: CEC %.3f", fold.number + 1, number, outcome.variant.name, cec)
            told.append(outcome)
    return told


def variants(whole: bool) -> tuple[Variant, ...]:
    """Returns all variants of Table 4, or the two of Table 2."""
    every = ablation(SETTINGS)
    return every if whole else tuple(variant for variant in every if variant.name in TABLE_2)


def cells(told: Iterable[Outcome], suffix: str = "") -> Mapping[Cell, Value]:
    """Returns means over folds, by the names of the variants in Table 4 and, with the suffix, in Table 2."""
    of: dict[str, list[Outcome]] = {}
    for outcome in told:
        of.setdefault(outcome.variant.name, []).append(outcome)
    found: dict[Cell, Value] = {}
    for variant, several in of.items():
        for name in {variant, TABLE_2.get(variant, variant)}:
            told_of = [Told(each.performance, each.consistency) for each in several]
            found |= {Cell(quantity, name + suffix): value for quantity, value in means(told_of).items()}
    return found


def means(several: Sequence[Told]) -> dict[str, float]:
    """Returns means of the quantities that every fold has, and the number of folds with a collapsed model."""
    by_fold = [{**vars(each.performance), **each.consistency} for each in several]
    common = [name for name in by_fold[0] if all(name in each for each in by_fold)]
    found = {name: float(np.mean([each[name] for each in by_fold])) for name in common}
    return found | {"collapsed_folds": float(sum(each.performance.collapsed for each in several))}
