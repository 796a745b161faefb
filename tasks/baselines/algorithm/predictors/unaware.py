"""Counterfactual fairness by unawareness (CFUA, Kusner et al. 2017, level 1): covariates are seen and nothing else.

The category influences no covariate, so that the score is the same in every category. What the mediators say of the
label is lost.
"""

from dataclasses import dataclass

from torch import nn

from tasks.baselines.algorithm.predictors.kind import FittingSettings
from tasks.baselines.algorithm.predictors.training import Scale, fit
from tasks.counterfactuals.algorithm.conditional.moments import inputs_of
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.mediation import Mediation, require_seen
from tasks.numerics.networks.perceptron import probabilities


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
