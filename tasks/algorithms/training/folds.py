"""Cross-validation of the variants of a loss: trained on some rows, told of on the others, with no leak between them.

What is fitted, the scale of the inputs, the matches and the baselines, is fitted to the training rows of a fold alone.
Matching and scoring are handed in: they belong to whoever defines consistency.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.model_selection import StratifiedKFold
from torch import nn

from schemas.errors import DataQualityError
from tasks.algorithms.detector import Bools, Floats, Longs
from tasks.algorithms.training.frontier import Variant
from tasks.algorithms.training.loop import Trained, TrainingRows, train
from tasks.algorithms.training.net import logits
from tasks.algorithms.training.performance import Performance, performance
from tasks.algorithms.training.settings import TrainingSettings


@dataclass(frozen=True)
class Population:
    """All rows: encoded features, labels and groups, before any scale is fitted."""

    features: Floats
    """``(n, d)``."""
    favourable: Bools
    protected: Bools


@dataclass(frozen=True)
class Fold:
    """One split. ``inputs`` are all rows on the scale of the training rows."""

    number: int
    """From 0."""
    train: Longs
    test: Longs
    inputs: Floats
    """``(n, d)``."""


Match = Callable[[Fold], Longs]
"""For each training row, ``(r,)``, the place of its counterfactual among the training rows, ``UNMATCHED`` without."""

Score = Callable[[nn.Sequential, Fold], Mapping[str, float]]
"""Consistency of a trained model on a fold's test rows: CEC, floor, PFR, regimes, by name."""


@dataclass(frozen=True)
class Outcome:
    """One variant on one fold."""

    fold: int
    variant: Variant
    trained: Trained
    performance: Performance
    consistency: Mapping[str, float]


def split(population: Population, folds: int, seed: int) -> Iterator[Fold]:
    """Folds that keep the shares of the four (label, group) cells.

    Raises:
        DataQualityError: If a cell has fewer rows than there are folds.
    """
    cell = population.favourable * 2 + population.protected
    fewest = int(np.bincount(cell, minlength=4).min())
    if fewest < folds:
        raise DataQualityError(
            f"a (label, group) cell has {fewest} rows for {folds} folds; take fewer folds or merge groups"
        )
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    for number, (fitted, held) in enumerate(splitter.split(cell, cell)):
        yield Fold(number, fitted, held, _standardised(population.features, fitted))


def evaluate(
    population: Population,
    fold: Fold,
    variants: Sequence[Variant],
    settings: TrainingSettings,
    match: Match,
    score: Score,
) -> Iterator[Outcome]:
    """Train each variant on a fold and tell of it on the held-out rows, one by one as they are ready.

    Args:
        population: All rows.
        fold: The split.
        variants: Weights of the loss; all else is in ``settings``.
        settings: Of every run, the seed included: variants start from the same weights.
        match: Called once, for the training rows.
        score: Called once per variant.
    """
    fitted, held = fold.train, fold.test
    rows = TrainingRows(fold.inputs[fitted], population.favourable[fitted], population.protected[fitted], match(fold))
    for variant in variants:
        trained = train(rows, variant.of(settings))
        scores = predict(trained.net, fold.inputs[held])
        measured = performance(population.favourable[held], population.protected[held], scores >= 0, scores)
        yield Outcome(fold.number, variant, trained, measured, score(trained.net, fold))


def predict(net: nn.Sequential, inputs: Floats) -> Floats:
    """Logits ``(r,)`` of rows ``(r, d)``, nothing dropped."""
    with torch.no_grad():
        found: Floats = logits(net, torch.from_numpy(inputs.astype(np.float32))).double().numpy()
    return found


def _standardised(features: Floats, fitted: Longs) -> Floats:
    """All rows by mean and standard deviation of some; what is constant among those is only centred."""
    mean, deviation = features[fitted].mean(axis=0), features[fitted].std(axis=0)
    scaled: Floats = (features - mean) / np.where(deviation > 0, deviation, 1.0)
    return scaled
