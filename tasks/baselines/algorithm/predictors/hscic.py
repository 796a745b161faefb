"""Conditional independence of score and category by kernels (HSCIC, Quinzan et al. 2022; Park and Muandet 2020).

The penalty is the Hilbert-Schmidt conditional independence criterion of score and category given covariates. Each batch
estimates it by kernel ridge regression. It is 0 where, among people with the same covariates, the score says nothing of
the category. No generator of counterfactuals is needed. The net sees covariates and mediators, never the category.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn

from tasks.baselines.algorithm.predictors.kind import FittingSettings
from tasks.baselines.algorithm.predictors.training import Penalty, Scale, fit
from tasks.counterfactuals.algorithm.conditional.moments import inputs_of
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.mediation import Mediation, require_seen
from tasks.numerics.networks.perceptron import probabilities

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
    found: Tensor = torch.linalg.solve(kernel + rows * RIDGE * torch.eye(rows), kernel)
    return found


def gaussian(values: Tensor, width: float) -> Tensor:
    """``(b, b)`` Gaussian kernel of values ``(b, d)``."""
    apart = (values[:, None, :] - values[None, :, :]).square().sum(2)
    return torch.exp(-apart / (2 * width**2))


def _penalty(rows: Mediation, weight: float) -> Penalty:
    covariates = inputs_of(rows.covariates)
    given = torch.from_numpy(Scale.of(covariates).apply(covariates)).float()
    category = torch.from_numpy(rows.category)

    def penalty(scores: Tensor, part: Tensor) -> Tensor:
        alike = (category[part][:, None] == category[part][None, :]).float()
        return weight * criterion(gaussian(scores[:, None], SCORE_WIDTH), alike, ridge_weights(given[part]))

    return penalty


def _seen(rows: Mediation) -> Floats:
    return np.hstack([inputs_of(rows.covariates), inputs_of(rows.mediators)])
