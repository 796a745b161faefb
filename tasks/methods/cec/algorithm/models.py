"""Nets trained for a group and the reference group, their figures on held-out rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np
from sklearn.utils import resample
from torch import nn

from tasks.counterfactuals.algorithm import nearest
from tasks.counterfactuals.algorithm.nearest import Matching
from tasks.methods.cec.algorithm import mitigations
from tasks.methods.cec.algorithm import pairs as cec_pairs
from tasks.methods.cec.algorithm.mitigations import (
    Fold,
    Population,
    Split,
    Variant,
    ablation,
    lambda_grid,
    non_dominated,
)
from tasks.methods.cec.algorithm.pairs import REGIMES, Scored
from tasks.methods.cec.settings import CecSettings, CecTraining
from tasks.metrics.compare.algorithm import Performance, performance
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.attributions import of_network
from tasks.numerics.networks.network import NetSettings, Network, TrainingSettings, of_module
from tasks.numerics.networks.training import UNMATCHED, Keeper
from tasks.numerics.problem import ModelView
from tasks.numerics.results import Aggregate
from tasks.numerics.statistics.intervals import Parameters

# --------------------------------------------------------------------------------------------------------------------
# Nets trained on a fold, and the consistency of their explanations on held-out rows (CEC, section 5.2).
#
# Every held-out row is matched with the nearest training row of the other group with the same label. Attributions are
# exact, where the paper sums 32 steps. Scope: joins training with matching and the score.


THETA = 0.3
"""CEC up to which reasons count as the same; the paper states none, and its tables fit this one."""

GROUPS = (0, 1)

AS_IN_THE_PAPER = Matching(winsorise=None)


@dataclass(frozen=True)
class Lending:
    """``n`` rows to train on and to explain, with ``d`` inputs."""

    population: Population
    feature_of_input: Ints
    """``(d,)`` index into ``features``."""
    features: tuple[str, ...]
    financial: Floats
    """``(n, f)`` what applicants are comparable by, in the user's units."""
    financial_names: tuple[str, ...]

    def rows(self, chosen: Longs) -> "Lending":
        """The same of some rows, ``(r,)``."""
        people = self.population
        some = Population(people.features[chosen], people.favourable[chosen], people.protected[chosen])
        return replace(self, population=some, financial=self.financial[chosen])


@dataclass(frozen=True)
class Consistency:
    """Figures of a model's pairs from the paper, and in addition the floor and the rows without a score."""

    pairs: int
    """Rows with a score."""
    unscored: int
    """Rows without a score: no match, or no direction."""
    cec: float
    """Mean over the pairs, as the two that follow; NaN where there are none."""
    cec_floor: float
    cec_above_floor: float
    flips: int
    """Pairs with different predictions."""
    regimes: tuple[int, ...]
    """Pairs in each of ``algorithm.score.REGIMES``."""


@dataclass(frozen=True)
class Bridge:
    """Matching and scoring of some rows, as the cross-validation wants them handed in."""

    rows: Lending
    matching: Matching = AS_IN_THE_PAPER
    theta: float = THETA

    def match(self, fold: Fold) -> Longs:
        """For each training row the place of its match among the training rows, ``UNMATCHED`` without."""
        pool, group, rows = self._pool(fold), self._group, self.rows
        at = nearest.standardise(rows.financial, rows.financial_names, pool, self.matching.winsorise)
        index = nearest.index(at, rows.population.favourable, group, pool, self.matching)
        place = np.full(len(fold.train), UNMATCHED, np.int64)
        for to in GROUPS:
            query_rows = np.flatnonzero(group[fold.train] != to)
            matches = nearest.match_nearest(index, fold.train[query_rows], to)
            place[query_rows[matches.matched]] = np.searchsorted(fold.train, matches.match[matches.matched])
        return place

    def score(self, net: nn.Sequential, fold: Fold) -> Mapping[str, float]:
        """Means over the held-out pairs of both groups; shares in percent."""
        return summary(self.scored(net, fold, fold.test), self.theta)

    def consistency(self, net: nn.Sequential, fold: Fold) -> Consistency:
        """The same as numbers of pairs."""
        return consistency(self.scored(net, fold, fold.test), self.theta)

    def scored(self, net: nn.Sequential, fold: Fold, query_rows: Longs) -> tuple[Scored, ...]:
        """Rows ``(r,)`` matched with training rows of the other group and scored, one group after the other."""
        n, rows = len(fold.inputs), self.rows
        explained = ModelView(
            x=fold.inputs,
            feature_of_column=rows.feature_of_input,
            features=rows.features,
            label=rows.population.favourable,
            financial=rows.financial,
            financial_names=rows.financial_names,
            explainer=np.zeros(n, np.int32),
            models=(of_network(of_module(net)),),
            pools=(self._pool(fold),),
        )
        views = cec_pairs.views(explained, self._group, self.matching)
        return tuple(
            cec_pairs.score_pairs(explained, views, query_rows[self._group[query_rows] != to], to) for to in GROUPS
        )

    @property
    def _group(self) -> "np.ndarray[tuple[int], np.dtype[np.int32]]":
        return self.rows.population.protected.astype(np.int32)

    def _pool(self, fold: Fold) -> Bools:
        pool = np.zeros(len(fold.inputs), np.bool_)
        pool[fold.train] = True
        return pool


def consistency(scored: tuple[Scored, ...], theta: float = THETA) -> Consistency:
    """Consistency over the pairs of several groups together."""
    cec, floor, above, flip = (
        np.concatenate(parts)
        for parts in zip(
            *((s.compared.cec, s.compared.floor, s.above_floor, s.compared.flip) for s in scored), strict=True
        )
    )
    regime = cec_pairs.regimes(cec, flip, theta)
    has_regime = regime != cec_pairs.NO_REGIME
    return Consistency(
        pairs=int(has_regime.sum()),
        unscored=int((~has_regime).sum()),
        cec=_mean(cec[has_regime]),
        cec_floor=_mean(floor[has_regime]),
        cec_above_floor=_mean(above[has_regime]),
        flips=int(flip[has_regime].sum()),
        regimes=tuple(np.bincount(regime[has_regime], minlength=len(cec_pairs.REGIMES)).tolist()),
    )


def summary(scored: tuple[Scored, ...], theta: float = THETA) -> dict[str, float]:
    """The same as a mapping, shares in percent of the pairs; those without a score in percent of the rows."""
    measured = consistency(scored, theta)
    pairs = measured.pairs or np.nan
    return {
        "cec": measured.cec,
        "cec_floor": measured.cec_floor,
        "cec_above_floor": measured.cec_above_floor,
        "flip_percent": 100 * measured.flips / pairs,
        "unscored_percent": 100 * measured.unscored / max(measured.pairs + measured.unscored, 1),
        **{
            f"regime_{name.lower()}_percent": 100 * count / pairs
            for name, count in zip(cec_pairs.REGIMES, measured.regimes, strict=True)
        },
    }


def _mean(values: Floats) -> float:
    """Over those that have a value; NaN if none has."""
    finite_values = values[~np.isnan(values)]
    return float(finite_values.mean()) if len(finite_values) else np.nan


# --------------------------------------------------------------------------------------------------------------------
# Trains models for one group and the reference group, and evaluates them on held-out rows (CEC, section 5).
#
# Nets with and without the two added terms, a grid of their weights, and mitigations of a library use the same folds.
# Those with a logit are explained in the same way. The nets learn the outcome of applications and are independent of
# the audited model. Scope: training. Summaries over the folds: ``figures``.


UNCONSTRAINED: Final = "unconstrained"
_ENDS: Final = (UNCONSTRAINED, "full")
"""The variants that are always trained."""


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


def training_settings(training: CecTraining, seed: int) -> TrainingSettings:
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


def beside(everyone: Lending, group: Ints, group_code: int, reference: int) -> Lending:
    """The rows of a group and of the reference group, the first of them as the protected one.

    Args:
        everyone: ``n`` rows of any group.
        group: ``(n,)`` number of the group of each.
        group_code: Number of the group.
        reference: Number of the reference group.
    """
    chosen = np.flatnonzero((group == group_code) | (group == reference))
    rows = everyone.rows(chosen)
    return replace(rows, population=replace(rows.population, protected=group[chosen] == group_code))


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
    """Reason why no model can be trained on the rows in this number of folds; empty if one can. Gives no row counts."""
    if not mitigations.has_cells(rows.population, parts):
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
    """Train every model on every fold and evaluate it on the held-out rows; yields each result when ready.

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
    run_settings = training_settings(settings.training, seed)
    for fold in mitigations.split(rows.population, settings.training.folds, seed):
        grid = dict(_variants(settings.training))
        for run in mitigations.runs(bridge.rows.population, fold, tuple(grid), run_settings, bridge.match, keeper):
            variant = run.variant
            model = Model(variant.name, (variant.lambda_eo, variant.lambda_cec), grid[variant])
            yield _explained(bridge, fold, model, run.performance, run.trained.net)
        for name in settings.training.mitigations:
            yield _mitigated(bridge, fold, name, run_settings, settings.training.fits, keeper)


def _comparable(rows: Lending, parts: int, seed: int) -> Lending:
    """The rows without category indicators that are constant in the training rows of a fold."""
    indicator = np.isin(rows.financial, (0, 1)).all(axis=0)
    column_numbers = np.flatnonzero(~(indicator & _constant(rows, parts, seed)))
    names = tuple(rows.financial_names[at] for at in column_numbers)
    return replace(rows, financial=rows.financial[:, column_numbers], financial_names=names)


def _constant(rows: Lending, parts: int, seed: int) -> Bools:
    """Financial features ``(f,)`` that have one value among the training rows of some fold."""
    of_folds = [
        np.ptp(rows.financial[fold.train], axis=0) == 0 for fold in mitigations.split(rows.population, parts, seed)
    ]
    constant: Bools = np.any(of_folds, axis=0)
    return constant


def _variants(training: CecTraining) -> Iterator[tuple[Variant, bool]]:
    """The variants of the loss, and whether each is one of the grid."""
    for variant in ablation(training_settings(training, 0)):
        named = replace(variant, name=UNCONSTRAINED) if variant.name == "pred" else variant
        if training.ablation or named.name in _ENDS:
            yield named, False
    for variant in lambda_grid(training.grid):
        yield variant, True


def _mitigated(
    bridge: Bridge, fold: Fold, name: str, run_settings: TrainingSettings, fits: int, keeper: Keeper | None
) -> Trial:
    people, (fitted, test_rows) = bridge.rows.population, (fold.train, fold.test)
    label, group = people.favourable, people.protected
    split_rows = Split(fold.inputs[fitted], label[fitted], group[fitted], fold.inputs[test_rows], group[test_rows])
    with mitigations.keeping_last_good(mitigations.name_of(fold, name), keeper):
        mitigated = mitigations.mitigate(name, split_rows, run_settings, fits)
    if mitigated.predicted is None:
        return Trial(Model(name), fold.number, len(test_rows), None, None, mitigated.reason)
    measured = performance(label[test_rows], group[test_rows], mitigated.predicted, mitigated.scores)
    if mitigated.net is None:
        return Trial(Model(name), fold.number, len(test_rows), measured, None, mitigated.reason)
    if (
        mitigated.repair is not None
    ):  # explained by what the net is given, and not kept: it takes no inputs as handed in
        repaired_fold = replace(fold, inputs=mitigated.repair.of(fold.inputs, group))
        return Trial(
            Model(name), fold.number, len(test_rows), measured, bridge.consistency(mitigated.net, repaired_fold)
        )
    return _explained(bridge, fold, Model(name), measured, mitigated.net)


def _explained(bridge: Bridge, fold: Fold, model: Model, measured: Performance, net: nn.Sequential) -> Trial:
    """A net with its reasons on the held-out rows."""
    network = None
    if not model.grid:
        network = of_module(net).before_scaling(*mitigations.scale(bridge.rows.population.features, fold.train))
    return Trial(model, fold.number, len(fold.test), measured, bridge.consistency(net, fold), net=network)


# --------------------------------------------------------------------------------------------------------------------
# Figures of trained models over the folds: mean and standard deviation of each, as aggregates.
#
# If a fold lacks a figure, such as the AUC of a model without scores, its mean is null with the reason: a mean over
# fewer folds is not comparable with the others.


Name = tuple[str, str]
"""A measure, and the regime that it is of, if any."""

OF_DECISIONS = tuple(field.name for field in fields(Performance))
OF_REASONS = ("cec", "cec_floor", "cec_above_floor")

NO_SCORES = "the model gives decisions without scores"
NO_ROWS = "a group, or a label, has no held-out row in a fold"
NO_PAIRS = "no held-out row of a fold has a pair whose reasons could be compared"


@dataclass(frozen=True)
class Figure:
    """One number of one model on one fold."""

    value: float
    """NaN where it has none."""
    n: int
    """Held-out rows, or pairs, that it is about."""
    events: int | None = None
    """Those that it counts, where it is a share of them."""
    reason: str = ""
    """Why there is no value."""


def aggregates(trials: Sequence[Trial], group: int) -> Iterator[Aggregate]:
    """Every figure of every model: its mean over the folds and the standard deviation, with n of all folds.

    ``trained_collapsed`` and ``trained_non_dominated`` are shares of the folds, and have no deviation. The latter is
    said of models that are no part of the grid, against each other.

    Args:
        trials: Of all models on all folds.
        group: Number of the group that is held against the reference group.
    """
    best = _non_dominated(trials)
    trials_of_model: dict[Model, list[Trial]] = {}
    for trial in trials:
        trials_of_model.setdefault(trial.model, []).append(trial)
    for model, model_trials in trials_of_model.items():
        figures_of_measure = {
            name: [_figures(trial)[name] for trial in model_trials] for name in _figures(model_trials[0])
        }
        for (measure, regime), figures in figures_of_measure.items():
            of: Parameters = {"regime": regime} if regime else {}
            yield _over_folds(group, measure, {**_parameters(model), **of}, figures, "mean")
            yield _over_folds(group, measure, {**_parameters(model), **of}, figures, "sd")
        yield _over_folds(
            group, "trained_collapsed", _parameters(model), [_collapsed(trial) for trial in model_trials], "mean"
        )
        if not model.grid:
            on_frontier = [best[trial.fold, model] for trial in model_trials]
            yield _over_folds(group, "trained_non_dominated", _parameters(model), on_frontier, "mean")


def refused(models: Iterable[Model], group: int, rows: int, reason: str) -> Iterator[Aggregate]:
    """Models that cannot be trained on this number of rows, reference group included, with the reason."""
    for model in models:
        if not model.grid:
            yield _over_folds(group, "trained_cec", _parameters(model), [Figure(np.nan, rows, reason=reason)], "mean")


def _parameters(model: Model) -> Parameters:
    if model.lambdas is None:
        return {"model": model.name}
    return {"model": model.name, "lambda_eo": model.lambdas[0], "lambda_cec": model.lambdas[1]}


def _over_folds(group: int, measure: str, of: Parameters, figures: Sequence[Figure], over: str) -> Aggregate:
    values = np.array([figure.value for figure in figures])
    value = values.mean() if over == "mean" else values.std(ddof=1)
    event_counts = [figure.events for figure in figures if figure.events is not None]
    return Aggregate(
        group,
        0,
        measure,
        {**of, "over_folds": over},
        float(value),
        n=sum(figure.n for figure in figures),
        compared=False,
        events=sum(event_counts) if len(event_counts) == len(figures) else None,
        reason=next((figure.reason for figure in figures if figure.reason), ""),
    )


def _figures(trial: Trial) -> dict[Name, Figure]:
    out: dict[Name, Figure] = {}
    for name in OF_DECISIONS:
        value = np.nan if trial.performance is None else float(getattr(trial.performance, name))
        missing = NO_SCORES if name == "auc" else NO_ROWS
        reason = "" if not np.isnan(value) else trial.reason if trial.performance is None else missing
        events = round(value * trial.rows) if name == "positive_rate" and not reason else None
        out[f"trained_{name}", ""] = Figure(value, trial.rows, events, reason)
    return {**out, **_of_reasons(trial)}


def _of_reasons(trial: Trial) -> dict[Name, Figure]:
    consistency = trial.consistency
    shares = [("trained_flip_share", ""), *(("trained_regime_share", r) for r in REGIMES)]
    if consistency is None or not consistency.pairs:
        names = [*((f"trained_{name}", "") for name in OF_REASONS), *shares]
        missing = Figure(np.nan, trial.rows, reason=trial.reason if consistency is None else NO_PAIRS)
        return dict.fromkeys(names, missing)
    means = {}
    for name in OF_REASONS:  # the floor is not defined where the reference has no direction for any pair
        value = getattr(consistency, name)
        means[f"trained_{name}", ""] = Figure(value, consistency.pairs, reason=NO_PAIRS if np.isnan(value) else "")
    counts = zip(shares, (consistency.flips, *consistency.regimes), strict=True)
    return means | {name: Figure(count / consistency.pairs, consistency.pairs, count) for name, count in counts}


def _collapsed(trial: Trial) -> Figure:
    if trial.performance is None:
        return Figure(np.nan, trial.rows, reason=trial.reason)
    return Figure(float(trial.performance.collapsed), trial.rows)


def _non_dominated(trials: Sequence[Trial]) -> dict[tuple[int, Model], Figure]:
    """Whether no other model beats it on its fold in F1, odds gap and CEC at once; of models that have all three."""
    out: dict[tuple[int, Model], Figure] = {}
    for fold in sorted({trial.fold for trial in trials}):
        fold_trials = [trial for trial in trials if trial.fold == fold and not trial.model.grid]
        figures = [_figures(trial) for trial in fold_trials]
        names = ("trained_f1", "trained_eo_gap", "trained_cec")
        f1, eo_gap, cec = ([trial_figures[name, ""] for trial_figures in figures] for name in names)
        best = non_dominated(*(np.array([figure.value for figure in column]) for column in (f1, eo_gap, cec)))
        for trial, on_frontier, *three in zip(fold_trials, best.tolist(), f1, eo_gap, cec, strict=True):
            reason = next((figure.reason for figure in three if figure.reason), "")
            out[fold, trial.model] = Figure(np.nan if reason else float(on_frontier), trial.rows, reason=reason)
    return out
