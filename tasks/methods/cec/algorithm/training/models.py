"""Trains models for one group and the reference group, and evaluates them on held-out rows (CEC, section 5).

Nets with and without the two added terms, a grid of their weights, and mitigations of a library use the same folds.
Those with a logit are explained in the same way. The nets learn the outcome of applications and are independent of the
audited model. Scope: training. Summaries over the folds: ``figures``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from sklearn.utils import resample
from torch import nn

from tasks.counterfactuals.algorithm.nearest.matching import Matching
from tasks.methods.cec.algorithm.training import folds, mitigations
from tasks.methods.cec.algorithm.training.folds import Fold
from tasks.methods.cec.algorithm.training.frontier import Variant, ablation, lambda_grid
from tasks.methods.cec.algorithm.training.held_out import Bridge, Consistency, Lending
from tasks.methods.cec.algorithm.training.mitigations import Split
from tasks.methods.cec.settings import CecSettings, CecTraining
from tasks.metrics.compare.algorithm.performance import Performance, performance
from tasks.numerics.arrays import Bools, Ints
from tasks.numerics.networks.checkpoint import Keeper
from tasks.numerics.networks.parameters import Network, of_module
from tasks.numerics.networks.settings import NetSettings, TrainingSettings

UNCONSTRAINED: Final = "unconstrained"
_ENDS: Final = (UNCONSTRAINED, "full")
"""The variants that are trained whatever is left out."""


@dataclass(frozen=True)
class Model:
    """A model of the comparison."""

    name: str
    lambdas: tuple[float, float] | None = None
    """Of odds and of consistency; None where it is not trained with the loss."""
    grid: bool = False
    """Whether it is one of the grid of lambdas, and so no candidate for the frontier of models."""


@dataclass(frozen=True)
class Trial:
    """One model on one fold."""

    model: Model
    fold: int
    """From 0."""
    rows: int
    """Held-out rows."""
    performance: Performance | None
    """None where there is no such model."""
    consistency: Consistency | None
    """None where there is no logit to explain."""
    reason: str = ""
    """Why one of the two is missing."""
    net: Network | None = None
    """As it is to be kept: it takes inputs in the user's units. Nets of the grid, and on repaired inputs, are not."""


def models(training: CecTraining) -> tuple[Model, ...]:
    """All models, in the order in which they are trained on a fold."""
    of_loss = [Model(v.name, (v.lambda_eo, v.lambda_cec), grid) for v, grid in _variants(training)]
    return (*of_loss, *(Model(name) for name in training.mitigations))


def settings_of(training: CecTraining, seed: int) -> TrainingSettings:
    """Settings of a training run."""
    return TrainingSettings(
        net=NetSettings(training.hidden, training.activation, training.dropout),
        learning_rate=training.learning_rate,
        batch=training.batch,
        epochs=training.epochs,
        lambda_eo=training.lambda_eo,
        lambda_cec=training.lambda_cec,
        steps=training.steps,
        pair_share=training.pair_share,
        seed=seed,
        device=training.device,
    )


def beside(everyone: Lending, group: Ints, one: int, reference: int) -> Lending:
    """The rows of a group and of the reference group, the first of them as the protected one.

    Args:
        everyone: ``n`` rows of any group.
        group: ``(n,)`` number of the group of each.
        one: Number of the group.
        reference: Number of the reference group.
    """
    chosen = np.flatnonzero((group == one) | (group == reference))
    rows = everyone.rows(chosen)
    return replace(rows, population=replace(rows.population, protected=group[chosen] == one))


def drawn(rows: Lending, most: int | None, seed: int) -> Lending:
    """At most so many of the rows, drawn so that the shares of the (label, group) cells are kept."""
    people = rows.population
    n = len(people.favourable)
    if most is None or most >= n:
        return rows
    cell = people.favourable * 2 + people.protected
    chosen = resample(np.arange(n), replace=False, n_samples=most, stratify=cell, random_state=seed)
    return rows.rows(np.sort(chosen))


def refusal(rows: Lending, parts: int, seed: int) -> str:
    """Why nothing can be trained on rows in so many folds; empty if something can. Tells no number of rows."""
    if not folds.has_cells(rows.population, parts):
        return f"a label of a group has fewer rows than the {parts} folds"
    compared = _comparable(rows, parts, seed)
    if not compared.financial_names:
        return "no financial feature has two values among the training rows of each fold"
    constant = _constant(compared, parts, seed)
    if constant.any():
        name = compared.financial_names[int(np.argmax(constant))]
        return f"the financial feature {name!r} is constant among the training rows of a fold"
    return ""


def trials(rows: Lending, settings: CecSettings, seed: int, keeper: Keeper | None = None) -> Iterator[Trial]:
    """Train every model on every fold and tell of it on the held-out rows, one by one as they are ready.

    Args:
        rows: Of two groups, without a ``refusal``.
        settings: ``training``, how rows are matched, and theta.
        seed: Draws the folds, the first weights, batches and dropout.
        keeper: Told of every epoch of the nets trained with the loss, which go on from what it kept. Mitigations are
            the library's and are trained anew. The last good state of a run that diverged is kept whoever ran it.

    Raises:
        DataQualityError: If a cell has too few rows, or a financial feature is constant in a fold.
        DivergedError: If a loss is no longer finite.
        ValueError: If ``settings`` has no ``training``.
    """
    if settings.training is None:
        raise ValueError("nothing is to be trained: the settings have no `training`")
    compared = _comparable(rows, settings.training.folds, seed)
    bridge = Bridge(compared, Matching.of(settings), settings.theta)
    run_settings = settings_of(settings.training, seed)
    for fold in folds.split(rows.population, settings.training.folds, seed):
        yield from _of_loss(bridge, fold, settings.training, run_settings, keeper)
        for name in settings.training.mitigations:
            yield _mitigated(bridge, fold, name, run_settings, settings.training.fits, keeper)


def _comparable(rows: Lending, parts: int, seed: int) -> Lending:
    """The rows without the indicators of categories that nobody, or everybody, has among a fold's training rows."""
    indicator = np.isin(rows.financial, (0, 1)).all(axis=0)
    kept = np.flatnonzero(~(indicator & _constant(rows, parts, seed)))
    names = tuple(rows.financial_names[at] for at in kept)
    return replace(rows, financial=rows.financial[:, kept], financial_names=names)


def _constant(rows: Lending, parts: int, seed: int) -> Bools:
    """Financial features ``(f,)`` that have one value among the training rows of some fold."""
    of_folds = [np.ptp(rows.financial[fold.train], axis=0) == 0 for fold in folds.split(rows.population, parts, seed)]
    constant: Bools = np.any(of_folds, axis=0)
    return constant


def _variants(training: CecTraining) -> Iterator[tuple[Variant, bool]]:
    """The variants of the loss, and whether each is one of the grid."""
    for variant in ablation(settings_of(training, 0)):
        named = replace(variant, name=UNCONSTRAINED) if variant.name == "pred" else variant
        if training.ablation or named.name in _ENDS:
            yield named, False
    for variant in lambda_grid(training.grid):
        yield variant, True


def _of_loss(
    bridge: Bridge, fold: Fold, training: CecTraining, run_settings: TrainingSettings, keeper: Keeper | None
) -> Iterator[Trial]:
    """The nets trained with the loss."""
    grid = dict(_variants(training))
    for run in folds.runs(bridge.rows.population, fold, tuple(grid), run_settings, bridge.match, keeper):
        variant = run.variant
        model = Model(variant.name, (variant.lambda_eo, variant.lambda_cec), grid[variant])
        yield _explained(bridge, fold, model, run.performance, run.trained.net)


def _mitigated(
    bridge: Bridge, fold: Fold, name: str, run_settings: TrainingSettings, fits: int, keeper: Keeper | None
) -> Trial:
    people, (fitted, held) = bridge.rows.population, (fold.train, fold.test)
    label, group = people.favourable, people.protected
    given = Split(fold.inputs[fitted], label[fitted], group[fitted], fold.inputs[held], group[held])
    with folds.keeping_last_good(folds.name_of(fold, name), keeper):
        found = mitigations.mitigate(name, given, run_settings, fits)
    if found.predicted is None:
        return Trial(Model(name), fold.number, len(held), None, None, found.reason)
    measured = performance(label[held], group[held], found.predicted, found.scores)
    if found.net is None:
        return Trial(Model(name), fold.number, len(held), measured, None, found.reason)
    if found.repair is not None:  # explained by what the net is given, and not kept: it takes no inputs as handed in
        seen = replace(fold, inputs=found.repair.of(fold.inputs, group))
        return Trial(Model(name), fold.number, len(held), measured, bridge.consistency(found.net, seen))
    return _explained(bridge, fold, Model(name), measured, found.net)


def _explained(bridge: Bridge, fold: Fold, model: Model, measured: Performance, net: nn.Sequential) -> Trial:
    """A net with its reasons on the held-out rows."""
    kept = None
    if not model.grid:
        kept = of_module(net).before_scaling(*folds.scale(bridge.rows.population.features, fold.train))
    return Trial(model, fold.number, len(fold.test), measured, bridge.consistency(net, fold), net=kept)
