"""Mitigations compared with consistency training, cross-validation of loss variants, and the Pareto frontier."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Protocol, Self

import numpy as np
import torch
from fairlearn.adversarial import AdversarialFairnessClassifier
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient, GridSearch
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold
from torch import nn

from schemas.errors import DataQualityError
from tasks.metrics.compare.algorithm import Performance, performance
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.networks.network import TrainingSettings
from tasks.numerics.networks.perceptron import one_thread
from tasks.numerics.networks.training import (
    UNMATCHED,
    DivergedError,
    Keeper,
    Trained,
    TrainingRows,
    build,
    logits,
    train,
)

# --------------------------------------------------------------------------------------------------------------------
# Variants of the loss, the grid of its weights, and the Pareto frontier of models (sections 5.3, 5.5).


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
    finite: Bools = np.all(np.isfinite(points), axis=1)
    as_good: Bools = np.all(points[:, None] <= points[None], axis=2)
    better: Bools = np.any(points[:, None] < points[None], axis=2)
    beaten: Bools = np.any(as_good & better & finite[:, None], axis=0)
    return finite & ~beaten


# --------------------------------------------------------------------------------------------------------------------
# Cross-validation of the variants of a loss, without leaks between training and held-out rows.
#
# The scale of the inputs, the matches and the baselines are fitted to the training rows of a fold alone. The caller
# passes matching and scoring, which belong to the definition of consistency.


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
    """One variant trained on one fold, without its explanations."""

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
    for number, (fitted, test_rows) in enumerate(splitter.split(cell, cell)):
        mean, deviation = scale(population.features, fitted)
        yield Fold(number, fitted, test_rows, (population.features - mean) / deviation)


def evaluate(
    population: Population,
    fold: Fold,
    variants: Sequence[Variant],
    settings: TrainingSettings,
    match: Match,
    score: Score,
    keeper: Keeper | None = None,
) -> Iterator[Outcome]:
    """Train each variant on a fold and evaluate it on the held-out rows; yields each result when ready.

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
    fitted, test_rows = fold.train, fold.test
    rows = TrainingRows(fold.inputs[fitted], population.favourable[fitted], population.protected[fitted], match(fold))
    for variant in variants:
        name = name_of(fold, variant.name)
        checkpoint = (partial(keeper.keep, name), keeper.kept(name)) if keeper else (None, None)
        with keeping_last_good(name, keeper):
            trained = train(rows, variant.of(settings), *checkpoint)
        scores = predict(trained.net, fold.inputs[test_rows])
        measured = performance(population.favourable[test_rows], population.protected[test_rows], scores >= 0, scores)
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
        scores: Floats = logits(net, torch.from_numpy(inputs.astype(np.float32))).double().numpy()
    return scores


def _cell_sizes(population: Population) -> Longs:
    """Rows of the four (label, group) cells."""
    return np.bincount(population.favourable * 2 + population.protected, minlength=4).astype(np.int64)


def scale(features: Floats, fitted: Longs) -> tuple[Floats, Floats]:
    """Mean and standard deviation ``(d,)`` of some rows; a deviation of 1 for what is constant among them."""
    mean, deviation = features[fitted].mean(axis=0), features[fitted].std(axis=0)
    return mean, np.where(deviation > 0, deviation, 1.0)


# --------------------------------------------------------------------------------------------------------------------
# Repairs inputs so that they do not reveal the group (disparate impact remover; Feldman et al. 2015, section 5).
#
# A value becomes its quantile in its own group, and then the median over the groups of that quantile's value. What a
# group had at its 90th percentile, the other group has there afterwards. Ranks within a group are kept; a column that
# is constant in each group, such as the group itself, becomes constant under full repair.
#
# Columns with few values cannot be repaired below their step: values that are tied stay tied.


_Column = tuple[tuple[Floats, Floats], tuple[Floats, Floats]]
"""Of one column, for each of the two groups: its distinct values and their quantiles, in order."""


@dataclass(frozen=True)
class Repair:
    """A repair fitted to training rows of two groups."""

    level: float
    """0: inputs stay as they are, to the bit. 1: full repair."""
    columns: tuple[_Column, ...]

    @classmethod
    def fitted(cls, inputs: Floats, protected: Bools, level: float = 1.0) -> Self:
        """Fits the quantiles of every column to training rows.

        Args:
            inputs: ``(r, d)``.
            protected: ``(r,)`` membership; both groups have a row.
            level: Share of the way to the common distribution.

        Raises:
            ValueError: A group has no row, or the level is outside 0..1.
        """
        if not 0 <= level <= 1:
            raise ValueError(f"the level of repair is {level:g}; it lies between 0 and 1")
        if protected.all() or not protected.any():
            raise ValueError("a repair needs training rows of both groups")
        unprotected_inputs, other = inputs[~protected], inputs[protected]
        return cls(
            level, tuple((_quantiles(a), _quantiles(b)) for a, b in zip(unprotected_inputs.T, other.T, strict=True))
        )

    def of(self, inputs: Floats, protected: Bools) -> Floats:
        """Returns repaired inputs ``(n, d)`` of rows of known group ``(n,)``; outside the training rows, the ends."""
        out = inputs.copy()
        if self.level == 0:
            return out
        for at, column in enumerate(self.columns):
            for group_quantiles, rows in zip(column, (~protected, protected), strict=True):
                values = inputs[rows, at]
                rank = np.interp(values, *group_quantiles)
                common = np.median(
                    [np.interp(rank, quantiles, quantile_values) for quantile_values, quantiles in column], axis=0
                )
                out[rows, at] = values + self.level * (common - values)
        return out


def _quantiles(values: Floats) -> tuple[Floats, Floats]:
    """The distinct values ``(v,)`` and the mean quantile of the rows that have each, between 0 and 1."""
    unique_values, counts = np.unique(values, return_counts=True)
    ends = np.cumsum(counts)
    middle = ends - (counts + 1) / 2
    return unique_values, middle / max(len(values) - 1, 1) if len(values) > 1 else np.full(1, 0.5)


# --------------------------------------------------------------------------------------------------------------------
# Mitigations that consistency training is compared with, all on the same net, and all but one from fairlearn.
#
# Hardt et al. (2016) as ``ThresholdOptimizer``, Agarwal et al. (2018) as ``ExponentiatedGradient``, Zhang et al. (2018)
# as ``AdversarialFairnessClassifier``. The paper does not describe its Lagrangian baseline; ``GridSearch``, which tries
# Lagrange multipliers of the same constraints and keeps one net, stands for it. The disparate impact remover (Feldman
# et al. 2015) is our own, ``repair``: the one kept library that has it needs a second framework of networks to be
# imported.
#
# A mitigation that ends in one net has a logit and can be explained; a randomised one, or a mixture of nets, cannot.


ONE_GROUP: Final = "the training rows are of one group: there is nothing to repair"
_DRAWN: Final = "decisions are drawn from thresholds of each group: there is no logit to explain"
_MIXED: Final = "decisions are drawn from a mixture of nets: there is no one logit to explain"

_DIVERGED: Final = "training diverged: its logits are not finite; a lower learning_rate may help"


@dataclass(frozen=True)
class Split:
    """Training rows ``r`` and test rows ``t``; inputs are on the scale of the training rows."""

    inputs: Floats
    """``(r, d)``."""
    favourable: Bools
    protected: Bools
    test_inputs: Floats
    """``(t, d)``."""
    test_protected: Bools


class Repaired(Protocol):
    """How inputs are changed by group before a net sees them."""

    def of(self, inputs: Floats, protected: Bools) -> Floats:
        """Changed inputs ``(n, d)`` of rows of known group ``(n,)``."""
        ...


@dataclass(frozen=True)
class Mitigated:
    """What a mitigation decides on the test rows."""

    predicted: Bools | None
    """``(t,)``; None where there is no such mitigation, or its training diverged."""
    scores: Floats | None
    """``(t,)`` logits, or the share of a mixture that accepts; None where there is neither."""
    net: nn.Sequential | None
    """The net with the logit that decides."""
    reason: str
    """Why there is no net, and so no consistency; empty where there is one."""
    repair: Repaired | None = None
    """How inputs are changed by group before the net sees them; None where it takes them as they are."""
    expected: Floats | None = None
    """``(t,)`` probability of a favourable decision, where decisions are drawn."""


class NetClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The net, trained for prediction alone, as an estimator of scikit-learn with weights of rows."""

    def __init__(self, settings: TrainingSettings = TrainingSettings()) -> None:  # noqa: B008 frozen
        self.settings = settings

    def fit(self, inputs: Floats, label: Any, sample_weight: Any = None) -> Self:
        """Train on ``(r, d)`` inputs and ``(r,)`` labels 0 and 1; weights are brought to a mean of 1."""
        favourable = np.asarray(label).ravel() > 0
        self.classes_ = np.array([0, 1])
        weight = None if sample_weight is None else np.asarray(sample_weight, np.float64) / np.mean(sample_weight)
        nobody = np.zeros(len(favourable), np.bool_)
        rows = TrainingRows(np.asarray(inputs, np.float64), favourable, nobody, np.full(len(nobody), UNMATCHED), weight)
        self.net_ = train(rows, replace(self.settings, lambda_eo=0.0, lambda_cec=0.0)).net
        return self

    def decision_function(self, inputs: Floats) -> Floats:
        """Logits ``(r,)``."""
        return predict(self.net_, np.asarray(inputs, np.float64))

    def predict_proba(self, inputs: Floats) -> Floats:
        """Probabilities ``(r, 2)`` of the labels 0 and 1."""
        favourable = expit(self.decision_function(inputs))
        return np.column_stack([1 - favourable, favourable])

    def predict(self, inputs: Floats) -> Any:
        """Labels ``(r,)``, 1 where the logit is not negative."""
        return (self.decision_function(inputs) >= 0).astype(np.int64)


def unconstrained(split: Split, settings: TrainingSettings) -> Mitigated:
    """The net without any mitigation."""
    return _decided_by(NetClassifier(settings).fit(split.inputs, split.favourable).net_, split)


def threshold_optimizer(split: Split, settings: TrainingSettings) -> Mitigated:
    """Thresholds by group for equalised odds (Hardt et al. 2016); it needs the group of each applicant."""
    model = ThresholdOptimizer(
        estimator=NetClassifier(settings), constraints="equalized_odds", predict_method="predict_proba"
    )
    model.fit(split.inputs, split.favourable.astype(np.int64), sensitive_features=split.protected)
    predicted = model.predict(split.test_inputs, sensitive_features=split.test_protected, random_state=settings.seed)
    # fairlearn's name for the probabilities that predict() draws from; its test holds them against the draws
    drawn_from = model._pmf_predict(split.test_inputs, sensitive_features=split.test_protected)
    expected = np.asarray(drawn_from, np.float64)[:, 1]
    return Mitigated(np.asarray(predicted) > 0, None, None, _DRAWN, expected=expected)


def exponentiated_gradient(split: Split, settings: TrainingSettings, fits: int = 50) -> Mitigated:
    """Reductions to weighted classification for equalised odds (Agarwal et al. 2018), at most ``fits`` rounds."""
    model = ExponentiatedGradient(NetClassifier(settings), EqualizedOdds(), max_iter=fits)
    model.fit(split.inputs, split.favourable.astype(np.int64), sensitive_features=split.protected)
    predicted = np.asarray(model.predict(split.test_inputs, random_state=settings.seed)) > 0
    weighted = zip(model.weights_, model.predictors_, strict=True)
    accepts = sum(weight * classifier.predict(split.test_inputs) for weight, classifier in weighted if weight > 0)
    accepted = np.asarray(accepts, np.float64)
    return Mitigated(predicted, accepted, None, _MIXED, expected=np.clip(accepted, 0.0, 1.0))


def grid_search(split: Split, settings: TrainingSettings, fits: int = 10) -> Mitigated:
    """The best of ``fits`` nets, each for other Lagrange multipliers of equalised odds (Agarwal et al. 2018, 3.4)."""
    model = GridSearch(NetClassifier(settings), EqualizedOdds(), grid_size=fits)
    model.fit(split.inputs, split.favourable.astype(np.int64), sensitive_features=split.protected)
    chosen = model.predictors_[model.best_idx_]
    if not isinstance(chosen, NetClassifier):
        reason = "the multipliers left labels of one kind only: the best predictor is a constant without a logit"
        return Mitigated(np.asarray(chosen.predict(split.test_inputs)) > 0, None, None, reason)
    return _decided_by(chosen.net_, split)


def adversarial(split: Split, settings: TrainingSettings, weight: float = 1.0) -> Mitigated:
    """The net against an adversary that guesses the group from score and label (Zhang et al. 2018).

    fairlearn's torch backend draws from torch's global generator: its state is put back afterwards. ``weight`` is how
    much the adversary's gradient counts.
    """
    with torch.random.fork_rng(devices=[]), one_thread():
        net = build(split.inputs.shape[1], settings.net, np.random.default_rng(settings.seed))
        model = AdversarialFairnessClassifier(
            backend="torch",
            predictor_model=nn.Sequential(net, nn.Sigmoid()),
            adversary_model=[],
            constraints="equalized_odds",
            learning_rate=settings.learning_rate,
            alpha=weight,
            epochs=settings.epochs,
            batch_size=settings.batch,
            shuffle=True,
            random_state=settings.seed,
        )
        try:
            group = split.protected.astype(np.int64)
            model.fit(split.inputs, split.favourable.astype(np.int64), sensitive_features=group)
        except RuntimeError:  # the library's own loss refuses probabilities that are no numbers
            if np.isfinite(predict(net, split.inputs)).all():
                raise
            return Mitigated(None, None, None, _DIVERGED)
    return _decided_by(net.eval(), split)


def disparate_impact_remover(split: Split, settings: TrainingSettings, level: float = 1.0) -> Mitigated:
    """The net on inputs that are repaired by group (Feldman et al. 2015); it needs the group of each applicant."""
    if split.protected.all() or not split.protected.any():
        return Mitigated(None, None, None, ONE_GROUP)
    repair = Repair.fitted(split.inputs, split.protected, level)
    repaired = replace(
        split,
        inputs=repair.of(split.inputs, split.protected),
        test_inputs=repair.of(split.test_inputs, split.test_protected),
    )
    return replace(unconstrained(repaired, settings), repair=repair)


MITIGATIONS: Final[dict[str, Callable[[Split, TrainingSettings], Mitigated]]] = {
    "unconstrained": unconstrained,
    "disparate_impact_remover": disparate_impact_remover,
    "threshold_optimizer": threshold_optimizer,
    "exponentiated_gradient": exponentiated_gradient,
    "adversarial": adversarial,
    "grid_search": grid_search,
}
"""Each by its name in a table."""


def mitigate(name: str, split: Split, settings: TrainingSettings, fits: int) -> Mitigated:
    """What a mitigation decides, by its name; ``fits`` counts for the reductions alone."""
    if name == "exponentiated_gradient":
        return exponentiated_gradient(split, settings, fits)
    if name == "grid_search":
        return grid_search(split, settings, fits)
    return MITIGATIONS[name](split, settings)


def _decided_by(net: nn.Sequential, split: Split) -> Mitigated:
    """Decisions of a net at a logit of 0; none where its training ended in numbers that are not finite."""
    scores = predict(net, split.test_inputs)
    if not np.isfinite(scores).all():
        return Mitigated(None, None, None, _DIVERGED)
    return Mitigated(scores >= 0, scores, net, "")
