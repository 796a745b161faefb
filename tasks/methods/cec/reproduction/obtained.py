"""What our code obtains of the CEC paper's models: trained on folds, told of on held-out rows, means over the folds.

Here belong the settings of the paper and the cells. Matching and scoring are in
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
"""The paper's; always on the CPU, so that figures do not hang on the machine."""

TABLE_2: Final = {"pred": UNCONSTRAINED, "full": CEC_MODEL}
"""What Table 2 calls two of the variants of Table 4."""


@dataclass(frozen=True)
class Told:
    """What is told of one model on one fold."""

    performance: Performance
    consistency: Mapping[str, float]
    """Empty where there is no logit to explain."""


def outcomes(rows: Lending, variants: Sequence[Variant], number: int) -> list[Outcome]:
    """The variants trained on the first ``number`` of five folds."""
    bridge, told = Bridge(rows), list[Outcome]()
    for fold in islice(folds.split(rows.population, FOLDS, SETTINGS.seed), number):
        for outcome in folds.evaluate(rows.population, fold, variants, SETTINGS, bridge.match, bridge.score):
            log.info("fold %d of %d, %s: CEC %.3f", fold.number + 1, number, outcome.variant.name, _cec(outcome))
            told.append(outcome)
    return told


def variants(whole: bool) -> tuple[Variant, ...]:
    """All variants of Table 4, or the two of Table 2."""
    every = ablation(SETTINGS)
    return every if whole else tuple(variant for variant in every if variant.name in TABLE_2)


def cells(told: Iterable[Outcome], suffix: str = "") -> Mapping[Cell, Value]:
    """Means over folds, by the names of the variants and, where it has them, by those of Table 2 with a suffix."""
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
    """Means over folds, by the name of the quantity, of what every fold has; and in how many the model collapsed."""
    by_fold = [{**vars(each.performance), **each.consistency} for each in several]
    common = [name for name in by_fold[0] if all(name in each for each in by_fold)]
    found = {name: float(np.mean([each[name] for each in by_fold])) for name in common}
    return found | {"collapsed_folds": float(sum(each.performance.collapsed for each in several))}


def _cec(outcome: Outcome) -> float:
    return outcome.consistency["cec"]
