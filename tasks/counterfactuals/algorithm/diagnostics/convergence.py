"""Convergence of adversarial training: the discriminator's advantage over a model of the covariates.

At equilibrium the discriminator predicts the category no better than a model of the covariates alone, because generated
and observed mediators look alike (section 4.1.3). Its excess knowledge, in nats, is its advantage.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tasks.counterfactuals.algorithm.conditional.moments import inputs_of
from tasks.counterfactuals.algorithm.gan.training import TERMS
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.mediation import Mediation
from tasks.numerics.networks.checkpoint import Checkpoint

SETTLED_ADVANTAGE: Final = 0.02
"""Nats. Above it, on average over the last tenth, mediators still give the category away."""

SETTLED_RECONSTRUCTION: Final = 0.05
"""Squared error per input of a mediator, on its scale of 1. Above it the observed mediators are not found again."""


@dataclass(frozen=True)
class Convergence:
    """Of each network over the last tenth of its epochs, ``(s,)``."""

    reconstruction: Floats
    """Mean squared error per input of the mediators."""
    advantage: Floats
    """Log loss of the category by covariates alone, less that of the discriminator, in nats."""
    accuracy: Floats
    """Share of rows in which the discriminator picks the observed mediators."""
    converged: Bools


def convergence(checkpoint: Checkpoint, inputs: int, alone: float) -> Convergence:
    """Judge a training by the end of its history.

    Args:
        checkpoint: After at least one epoch.
        inputs: Inputs of all mediators, ``Encoder.width``.
        alone: ``log_loss_alone`` of the training rows.
    """
    history = checkpoint.history.double().numpy()
    missed, loss, accuracy = history[-max(1, len(history) // 10) :].mean(axis=0).T[: len(TERMS)]
    settled = (missed / inputs <= SETTLED_RECONSTRUCTION) & (np.abs(alone - loss) <= SETTLED_ADVANTAGE)
    return Convergence(missed / inputs, alone - loss, accuracy, settled)


def log_loss_alone(rows: Mediation, seed: int) -> float:
    """Log loss in nats of the category foretold from covariates alone, by a logistic regression in two folds."""
    inputs = inputs_of(rows.covariates)
    if not inputs.shape[1]:
        inputs = np.zeros((len(rows), 1))
    folds = StratifiedKFold(2, shuffle=True, random_state=seed)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    foretold = cross_val_predict(model, inputs, rows.category, cv=folds, method="predict_proba")
    return float(log_loss(rows.category, foretold))
