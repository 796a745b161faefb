"""Counterfactually fair predictors of other papers (CFUA, CFAN, HSCIC)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from schemas.errors import DataQualityError
from tasks.counterfactuals.algorithm.conditional import ConditionalMean, fit_mean, inputs_of, residuals
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.networks.perceptron import (
    INITIAL,
    draws,
    one_thread,
    perceptron,
    probabilities,
    require_both_labels,
    require_finite,
    unbound,
)
from tasks.numerics.problem import Mediation, require_seen

# --------------------------------------------------------------------------------------------------------------------
# Counterfactually fair predictors of other papers: what each is given, and what it gives back.
#
# A system learns from rows of the standard fairness model and their labels. It gives back a predictor, which scores
# rows.
# A row is scored by what can be seen of it. Moved to another category, with the mediators that it would have there, it
# should be scored as before.


@dataclass(frozen=True)
class FittingSettings:
    """Size of the net and its training; by default that of GCFN's predictor (Ma et al., section 5.1)."""

    hidden: tuple[int, ...] = (64,)
    """Widths of the hidden layers, ReLU between them."""
    epochs: int = 30
    batch: int = 256
    learning_rate: float = 5e-3
    fairness: float | None = None
    """lambda, the weight of the system's penalty; None for its own default. Systems without a penalty ignore it."""
    seed: int = 0


class FairPredictor(Protocol):
    """A trained predictor of the label."""

    def scores(self, rows: Mediation) -> Floats:
        """Probability of the label, ``(n,)``.

        Raises:
            DataQualityError: Columns or categories are not those of the training.
        """
        ...


class FairSystem(Protocol):
    """Trains a predictor on rows ``n`` and labels ``(n,)``.

    Raises:
        DataQualityError: The labels are of one kind only, there is nothing to learn from, or the training diverged.
    """

    def __call__(self, rows: Mediation, label: Bools, settings: FittingSettings) -> FairPredictor:
        """The predictor; equal for equal settings."""
        ...


def moved_scores(predictor: FairPredictor, rows: Mediation, imagined: Floats) -> Floats:
    """Scores of rows in their other categories, ascending, ``(s, k - 1, n)``.

    Args:
        predictor: Of the label.
        rows: As they are.
        imagined: ``(s, k, n, p)`` their mediators in every category, by each of ``s`` generators, in the user's units.
    """
    steps, everybody = range(1, len(rows.categories)), np.arange(len(rows))
    scores = np.empty((len(imagined), len(steps), len(rows)))
    for at in range(len(steps)):
        category = at + (at >= rows.category)
        for number, network in enumerate(imagined):
            mediators = replace(rows.mediators, values=network[category, everybody])
            scores[number, at] = predictor.scores(
                replace(rows, category=category.astype(np.int64), mediators=mediators)
            )
    return scores


# --------------------------------------------------------------------------------------------------------------------
# Trains a perceptron by cross-entropy and, where a system has one, a penalty of the scores of each batch.


Penalty = Callable[[Tensor, Tensor], Tensor]
"""Of the scores ``(b,)`` of a batch and the numbers ``(b,)`` of its rows; its weight is already in it."""


@dataclass(frozen=True)
class Scale:
    """Means and deviations of training rows, by which inputs are standardised; what is constant is only centred."""

    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, values: Floats) -> "Scale":
        """Fits to training rows ``(n, d)``."""
        deviation = values.std(axis=0)
        return cls(values.mean(axis=0), np.where(deviation > 0, deviation, 1.0))

    def apply(self, values: Floats) -> Floats:
        """Standardises rows ``(n, d)``."""
        return (values - self.mean) / self.deviation

    def undo(self, values: Floats) -> Floats:
        """Brings standardised rows ``(n, d)`` back to the user's units."""
        return values * self.deviation + self.mean


def fit(inputs: Floats, label: Bools, settings: FittingSettings, penalty: Penalty | None = None) -> nn.Sequential:
    """Trains a net on inputs ``(n, d)``, standardised, and labels ``(n,)`` by Adam.

    Raises:
        DataQualityError: The labels are of one kind only, there is no input, or a weight is no longer finite.
    """
    require_both_labels(label)
    if not inputs.shape[1]:
        raise DataQualityError("the predictor would see nothing of an applicant; give a column the role of a covariate")
    net = perceptron((inputs.shape[1], *settings.hidden, 1), None, draws(settings.seed, INITIAL))
    optimizer = torch.optim.Adam(net.parameters(), settings.learning_rate, fused=True)
    features, target = torch.from_numpy(inputs).float(), torch.from_numpy(label.astype(np.float32))
    with one_thread():
        for epoch in range(settings.epochs):
            order = torch.from_numpy(draws(settings.seed, epoch).permutation(len(label)))
            for part in torch.split(order, settings.batch):
                optimizer.zero_grad()
                logits = net(features[part]).squeeze(1)
                loss = functional.binary_cross_entropy_with_logits(logits, target[part])
                if penalty is not None:
                    loss = loss + penalty(torch.sigmoid(logits), part)
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            require_finite(net, epoch)
    return unbound(net)


# --------------------------------------------------------------------------------------------------------------------
# Counterfactual fairness by unawareness (CFUA, Kusner et al. 2017, level 1): covariates are seen and nothing else.
#
# The category influences no covariate, so that the score is the same in every category. What the mediators say of the
# label is lost.


@dataclass(frozen=True)
class Unaware:
    """A net of the covariates."""

    template: Mediation
    scale: Scale
    net: nn.Sequential

    def scores(self, rows: Mediation) -> Floats:
        """Probability of the label, ``(n,)``.

        Raises:
            DataQualityError: Columns or categories are not those of the training.
        """
        require_seen(rows, self.template)
        return probabilities(self.net, self.scale.apply(inputs_of(rows.covariates)))


def unaware(rows: Mediation, label: Bools, settings: FittingSettings) -> Unaware:
    """Trains on covariates and labels ``(n,)``.

    Raises:
        DataQualityError: The labels are of one kind only, there is no covariate, or the training diverged.
    """
    inputs = inputs_of(rows.covariates)
    scale = Scale.of(inputs)
    return Unaware(rows.template, scale, fit(scale.apply(inputs), label, settings))


# --------------------------------------------------------------------------------------------------------------------
# Counterfactual fairness by additive noise (CFAN, Kusner et al. 2017, level 3): covariates and noise are seen.
#
# The noise of a mediator is what is left once its mean given covariates and category is taken away. Where mechanisms
# are additive it is the same in every category. Elsewhere it moves with the category, and the score with it.


@dataclass(frozen=True)
class AdditiveNoise:
    """A net of covariates and residuals of the numeric mediators."""

    template: Mediation
    mean: ConditionalMean
    scale: Scale
    spread: Floats
    """``(q,)`` deviation of each residual among the training rows."""
    net: nn.Sequential

    def scores(self, rows: Mediation) -> Floats:
        """Probability of the label, ``(n,)``.

        Raises:
            DataQualityError: Columns or categories are not those of the training.
        """
        require_seen(rows, self.template)
        return probabilities(self.net, _inputs(rows, self.mean, self.scale, self.spread))


def additive_noise(rows: Mediation, label: Bools, settings: FittingSettings) -> AdditiveNoise:
    """Regresses the numeric mediators and trains on covariates, residuals and labels ``(n,)``.

    Raises:
        DataQualityError: The labels are of one kind only, no mediator is a number, or the training diverged.
    """
    if not rows.numeric.any():
        raise DataQualityError("CFAN needs a mediator that is a number; categories have no residual")
    mean, scale = fit_mean(rows, settings.seed), Scale.of(inputs_of(rows.covariates))
    spread = _noise(rows, mean).std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    net = fit(_inputs(rows, mean, scale, spread), label, settings)
    return AdditiveNoise(rows.template, mean, scale, spread, net)


def _inputs(rows: Mediation, mean: ConditionalMean, scale: Scale, spread: Floats) -> Floats:
    return np.hstack([scale.apply(inputs_of(rows.covariates)), _noise(rows, mean) / spread])


def _noise(rows: Mediation, mean: ConditionalMean) -> Floats:
    """``(n, q)`` residuals of the numeric mediators, each in the row's own category."""
    return residuals(mean.potential(rows.covariates), rows.category, rows.mediators.values[:, rows.numeric])


# --------------------------------------------------------------------------------------------------------------------
# Conditional independence of score and category by kernels (HSCIC, Quinzan et al. 2022; Park and Muandet 2020).
#
# The penalty is the Hilbert-Schmidt conditional independence criterion of score and category given covariates. Each
# batch estimates it by kernel ridge regression. It is 0 where, among people with the same covariates, the score says
# nothing of the category. No generator of counterfactuals is needed. The net sees covariates and mediators, never the
# category.


WEIGHT: Final = 5.0
"""Default of lambda; the GCFN paper tries 0.1 to 20."""

SCORE_WIDTH: Final = 0.5
"""Of the Gaussian kernel of scores, which lie between 0 and 1."""
COVARIATE_WIDTH: Final = 1.0
"""Of the Gaussian kernel of standardised covariates."""
RIDGE: Final = 0.01
"""Of the kernel regression on covariates, times the rows of the batch."""


@dataclass(frozen=True)
class Independent:
    """A net of covariates and mediators, trained with the penalty."""

    template: Mediation
    scale: Scale
    net: nn.Sequential

    def scores(self, rows: Mediation) -> Floats:
        """Probability of the label, ``(n,)``.

        Raises:
            DataQualityError: Columns or categories are not those of the training.
        """
        require_seen(rows, self.template)
        return probabilities(self.net, self.scale.apply(_seen(rows)))


def hscic(rows: Mediation, label: Bools, settings: FittingSettings) -> Independent:
    """Trains on covariates, mediators and labels ``(n,)``; ``settings.fairness`` weighs the penalty.

    Raises:
        DataQualityError: The labels are of one kind only, or the training diverged.
    """
    inputs = _seen(rows)
    scale = Scale.of(inputs)
    weight = WEIGHT if settings.fairness is None else settings.fairness
    penalty = _penalty(rows, weight) if weight > 0 else None
    return Independent(rows.template, scale, fit(scale.apply(inputs), label, settings, penalty))


def criterion(score: Tensor, category: Tensor, weights: Tensor) -> Tensor:
    """Mean over rows of the squared distance of the joint from the product of the conditional embeddings.

    Args:
        score: ``(b, b)`` kernel matrix of scores.
        category: ``(b, b)`` kernel matrix of categories.
        weights: ``(b, b)`` one column a row: the kernel ridge weights of its covariates.
    """
    by_score, by_category = score @ weights, category @ weights
    joint = (weights * ((score * category) @ weights)).sum(0)
    crossed = (weights * by_score * by_category).sum(0)
    product = (weights * by_score).sum(0) * (weights * by_category).sum(0)
    return (joint - 2 * crossed + product).mean()


def ridge_weights(covariates: Tensor) -> Tensor:
    """``(b, b)`` weights (K + b RIDGE 1)^-1 K of standardised covariates ``(b, c)``; even ones without covariates."""
    rows = len(covariates)
    kernel = gaussian(covariates, COVARIATE_WIDTH)
    weights: Tensor = torch.linalg.solve(kernel + rows * RIDGE * torch.eye(rows), kernel)
    return weights


def gaussian(values: Tensor, width: float) -> Tensor:
    """``(b, b)`` Gaussian kernel of values ``(b, d)``."""
    apart = (values[:, None, :] - values[None, :, :]).square().sum(2)
    return torch.exp(-apart / (2 * width**2))


def _penalty(rows: Mediation, weight: float) -> Penalty:
    covariates = inputs_of(rows.covariates)
    scaled_covariates = torch.from_numpy(Scale.of(covariates).apply(covariates)).float()
    category = torch.from_numpy(rows.category)

    def penalty(scores: Tensor, part: Tensor) -> Tensor:
        alike = (category[part][:, None] == category[part][None, :]).float()
        return weight * criterion(gaussian(scores[:, None], SCORE_WIDTH), alike, ridge_weights(scaled_covariates[part]))

    return penalty


def _seen(rows: Mediation) -> Floats:
    return np.hstack([inputs_of(rows.covariates), inputs_of(rows.mediators)])
