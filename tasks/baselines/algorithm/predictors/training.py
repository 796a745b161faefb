"""Trains a perceptron by cross-entropy and, where a system has one, a penalty of the scores of each batch."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from schemas.errors import DataQualityError
from tasks.baselines.algorithm.predictors.kind import FittingSettings
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.determinism import INITIAL, draws, one_thread
from tasks.numerics.networks.perceptron import (
    perceptron,
    require_both_labels,
    require_finite,
    unbound,
)

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
    seen, wanted = torch.from_numpy(inputs).float(), torch.from_numpy(label.astype(np.float32))
    with one_thread():
        for epoch in range(settings.epochs):
            order = torch.from_numpy(draws(settings.seed, epoch).permutation(len(label)))
            for part in torch.split(order, settings.batch):
                optimizer.zero_grad()
                logits = net(seen[part]).squeeze(1)
                loss = functional.binary_cross_entropy_with_logits(logits, wanted[part])
                if penalty is not None:
                    loss = loss + penalty(torch.sigmoid(logits), part)
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            require_finite(net, epoch)
    return unbound(net)
