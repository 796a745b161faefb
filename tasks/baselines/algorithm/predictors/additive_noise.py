"""Counterfactual fairness by additive noise (CFAN, Kusner et al. 2017, level 3): covariates and noise are seen.

The noise of a mediator is what is left once its mean given covariates and category is taken away. Where mechanisms are
additive it is the same in every category. Elsewhere it moves with the category, and the score with it.
"""

from dataclasses import dataclass

import numpy as np
from torch import nn

from schemas.errors import DataQualityError
from tasks.baselines.algorithm.predictors.kind import FittingSettings
from tasks.baselines.algorithm.predictors.training import Scale, fit
from tasks.counterfactuals.algorithm.conditional.moments import ConditionalMean, fit_mean, inputs_of, residuals
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.mediation import Mediation, require_seen
from tasks.numerics.networks.perceptron import probabilities


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
