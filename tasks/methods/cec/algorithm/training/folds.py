"""Cross-validation of the variants of a loss, without leaks between training and held-out rows.

The scale of the inputs, the matches and the baselines are fitted to the training rows of a fold alone. The caller
passes matching and scoring, which belong to the definition of consistency.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from sklearn.model_selection import StratifiedKFold
from torch import nn

from schemas.errors import DataQualityError
from tasks.methods.cec.algorithm.training.frontier import Variant
from tasks.metrics.compare.algorithm.performance import Performance, performance
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.determinism import one_thread
from tasks.numerics.networks.checkpoint import Keeper
from tasks.numerics.networks.net import logits
from tasks.numerics.networks.settings import TrainingSettings
from tasks.numerics.networks.training import DivergedError, Trained, TrainingRows, train


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


@dataclass(frozen=True)
class Run:
    """One variant trained on one fold; what its reasons are has not been asked yet."""

    fold: Fold
    variant: Variant
    trained: Trained
    performance: Performance


def has_cells(population: Population, folds: int) -> bool:
    """Whether every (label, group) cell has a row for each fold."""
    return bool(_cell_sizes(population).min() >= folds)


def split(population: Population, folds: int, seed: int) -> Iterator[Fold]:
    """Folds that keep the shares of the four (label, group) cells.

    Raises:
        DataQualityError: If a cell has fewer rows than there are folds.
    """
    if not has_cells(population, folds):
        fewest = int(_cell_sizes(population).min())
        raise DataQualityError(
            f"a (label, group) cell has {fewest} rows for {folds} folds; take fewer folds or merge groups"
        )
    cell = population.favourable * 2 + population.protected
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
    keeper: Keeper | None = None,
) -> Iterator[Outcome]:
    """Train each variant on a fold and tell of it on the held-out rows, one by one as they are ready.

    Args:
        population: All rows.
        fold: The split.
        variants: Weights of the loss; all else is in ``settings``.
        settings: Of every run, the seed included: variants start from the same weights.
        match: Called once, for the training rows.
        score: Called once per variant.
        keeper: As in ``runs``.
    """
    for run in runs(population, fold, variants, settings, match, keeper):
        consistency = score(run.trained.net, fold)
        yield Outcome(fold.number, run.variant, run.trained, run.performance, consistency)


def runs(
    population: Population,
    fold: Fold,
    variants: Sequence[Variant],
    settings: TrainingSettings,
    match: Match,
    keeper: Keeper | None = None,
) -> Iterator[Run]:
    """As ``evaluate``, without asking for the consistency of a model.

    ``keeper`` is told of every epoch of each run, under the name that ``name_of`` gives it, and a run goes on from what
    it kept; without one every run starts anew.
    """
    fitted, held = fold.train, fold.test
    rows = TrainingRows(fold.inputs[fitted], population.favourable[fitted], population.protected[fitted], match(fold))
    for variant in variants:
        name = name_of(fold, variant.name)
        kept = (partial(keeper.keep, name), keeper.kept(name)) if keeper else (None, None)
        with keeping_last_good(name, keeper):
            trained = train(rows, variant.of(settings), *kept)
        scores = predict(trained.net, fold.inputs[held])
        measured = performance(population.favourable[held], population.protected[held], scores >= 0, scores)
        yield Run(fold, variant, trained, measured)


@contextmanager
def keeping_last_good(run: str, keeper: Keeper | None) -> Iterator[None]:
    """Name a run that diverges, and keep its last good state."""
    try:
        yield
    except DivergedError as error:
        error.run = run
        if keeper is not None:
            keeper.keep(run, error.last_good)
        raise


def name_of(fold: Fold, model: str) -> str:
    """What a training run is called: words that a file can be named by."""
    return f"fold {fold.number + 1} {model}"


def predict(net: nn.Sequential, inputs: Floats) -> Floats:
    """Logits ``(r,)`` of rows ``(r, d)``, nothing dropped."""
    with one_thread(), torch.no_grad():
        found: Floats = logits(net, torch.from_numpy(inputs.astype(np.float32))).double().numpy()
    return found


def _cell_sizes(population: Population) -> Longs:
    """Rows of the four (label, group) cells."""
    return np.bincount(population.favourable * 2 + population.protected, minlength=4).astype(np.int64)


def scale(features: Floats, fitted: Longs) -> tuple[Floats, Floats]:
    """Mean and standard deviation ``(d,)`` of some rows; a deviation of 1 for what is constant among them."""
    mean, deviation = features[fitted].mean(axis=0), features[fitted].std(axis=0)
    return mean, np.where(deviation > 0, deviation, 1.0)


def _standardised(features: Floats, fitted: Longs) -> Floats:
    """All rows by mean and standard deviation of some; what is constant among those is only centred."""
    mean, deviation = scale(features, fitted)
    return (features - mean) / deviation
