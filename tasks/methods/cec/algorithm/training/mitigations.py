"""Mitigations that consistency training is compared with, all on the same net, and all but one from fairlearn.

Hardt et al. (2016) as ``ThresholdOptimizer``, Agarwal et al. (2018) as ``ExponentiatedGradient``, Zhang et al. (2018)
as ``AdversarialFairnessClassifier``. The paper does not describe its Lagrangian baseline; ``GridSearch``, which tries
Lagrange multipliers of the same constraints and keeps one net, stands for it. The disparate impact remover (Feldman et
al. 2015) is our own, ``repair``: the one kept library that has it needs a second framework of networks to be imported.

A mitigation that ends in one net has a logit and can be explained; a randomised one, or a mixture of nets, cannot.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
import torch
from fairlearn.adversarial import AdversarialFairnessClassifier
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient, GridSearch
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from torch import nn

from tasks.methods.cec.algorithm.training.folds import predict
from tasks.methods.cec.algorithm.training.repair import Repair
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.determinism import one_thread
from tasks.numerics.networks.net import build
from tasks.numerics.networks.settings import TrainingSettings
from tasks.numerics.networks.training import UNMATCHED, TrainingRows, train

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


@dataclass(frozen=True)
class Mitigated:
    """What a mitigation decides on the test rows."""

    predicted: Bools | None
    """``(t,)``; None where there is no such mitigation, or its training diverged."""
    scores: Floats | None
    """``(t,)`` logits, or the share of a mixture that accepts; None where there is neither."""
    net: nn.Sequential | None
    """The net whose logit decides."""
    reason: str
    """Why there is no net, and so no consistency; empty where there is one."""
    repair: Repair | None = None
    """How inputs are changed by group before the net sees them; None where it takes them as they are."""


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
    """Thresholds by group for equalised odds (Hardt et al. 2016); it must be told the group of whom it decides on."""
    model = ThresholdOptimizer(
        estimator=NetClassifier(settings), constraints="equalized_odds", predict_method="predict_proba"
    )
    model.fit(split.inputs, split.favourable.astype(np.int64), sensitive_features=split.protected)
    predicted = model.predict(split.test_inputs, sensitive_features=split.test_protected, random_state=settings.seed)
    return Mitigated(np.asarray(predicted) > 0, None, None, _DRAWN)


def exponentiated_gradient(split: Split, settings: TrainingSettings, fits: int = 50) -> Mitigated:
    """Reductions to weighted classification for equalised odds (Agarwal et al. 2018), at most ``fits`` rounds."""
    model = ExponentiatedGradient(NetClassifier(settings), EqualizedOdds(), max_iter=fits)
    model.fit(split.inputs, split.favourable.astype(np.int64), sensitive_features=split.protected)
    predicted = np.asarray(model.predict(split.test_inputs, random_state=settings.seed)) > 0
    weighted = zip(model.weights_, model.predictors_, strict=True)
    accepts = sum(weight * one.predict(split.test_inputs) for weight, one in weighted if weight > 0)
    return Mitigated(predicted, np.asarray(accepts, np.float64), None, _MIXED)


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
    """The net on inputs that are repaired by group (Feldman et al. 2015); it must be told whose inputs it is given."""
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
