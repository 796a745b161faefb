"""Trains the autoencoder: evidence lower bound less the weighted penalty, by Adam."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tasks.baselines.algorithm.predictors.variational.networks import Autoencoder
from tasks.baselines.algorithm.predictors.variational.penalties import Penalty, penalty_of
from tasks.baselines.algorithm.predictors.variational.settings import VariationalSettings
from tasks.numerics.arrays import Floats
from tasks.numerics.determinism import INITIAL, draws, one_thread
from tasks.numerics.networks.perceptron import require_finite

_NORMAL = 1
"""Follows seed and epoch where normal draws are made."""
_LAST = 5
"""Epochs whose mean is compared with that of as many before."""


@dataclass(frozen=True)
class EncodedRows:
    """``n`` rows as inputs of the networks, standardised."""

    covariates: Tensor
    """``(n, c)``."""
    category: Tensor
    """``(n, k)`` one-hot."""
    mediators: Tensor
    """``(n, d)``."""

    def rows(self, chosen: Tensor) -> "EncodedRows":
        """The same of some rows."""
        return EncodedRows(self.covariates[chosen], self.category[chosen], self.mediators[chosen])


def train(rows: EncodedRows, settings: VariationalSettings) -> tuple[Autoencoder, Floats]:
    """Trains an autoencoder.

    Returns:
        It, and ``(epochs,)`` the mean evidence lower bound of each epoch, in nats less a constant.

    Raises:
        DataQualityError: A weight is no longer finite.
    """
    rng = draws(settings.seed, INITIAL)
    shape = rows.covariates.shape[1], rows.category.shape[1], rows.mediators.shape[1]
    model = Autoencoder(shape, settings, rng)
    other = 0 if model.covariate_encoder is None else settings.dimensions
    penalty = penalty_of(settings, shape[1], other, rng)
    optimizer = torch.optim.Adam(model.parameters(), settings.learning_rate)
    history = []
    with one_thread():
        for epoch in range(settings.epochs):
            for group in optimizer.param_groups:
                group["lr"] = settings.learning_rate * _decay(epoch, settings)
            history.append(_epoch(model, rows, penalty, optimizer, (epoch, settings)))
            require_finite(model, epoch)
    return model.eval(), np.array(history)


def change_over_last_epochs(history: Floats) -> float:
    """How far the bound moved over the last ten epochs, as a share of it: the last five against the five before."""
    last, before = history[-_LAST:].mean(), history[-2 * _LAST : -_LAST].mean()
    return float(abs(last - before) / abs(last))


def _epoch(
    model: Autoencoder, rows: EncodedRows, penalty: Penalty, optimizer: torch.optim.Adam,
    at: tuple[int, VariationalSettings],
) -> float:  # fmt: skip
    """One pass over the rows; the mean bound of its batches."""
    epoch, settings = at
    n, q = len(rows.category), settings.dimensions
    order = torch.from_numpy(draws(settings.seed, epoch).permutation(n))
    normal = torch.from_numpy(draws(settings.seed, epoch, _NORMAL).standard_normal((n, 2 * q), dtype=np.float32))
    bounds = []
    for part, drawn in zip(torch.split(order, settings.batch), torch.split(normal, settings.batch), strict=True):
        batch = rows.rows(part)
        bound, noise, other = _bound(model, batch, drawn)
        shifted = torch.arange(len(part)).roll(1)
        loss = settings.weight * penalty(noise, other, batch.category, shifted) - bound
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        bounds.append(float(bound.detach()))
    return float(np.mean(bounds))


def _bound(model: Autoencoder, batch: EncodedRows, normal: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Evidence lower bound of a batch, and samples of its noise: of mediators, and of covariates."""
    posterior = model.noise(batch.covariates, batch.category, batch.mediators)
    q = posterior.mean.shape[1]
    noise = posterior.drawn(normal[:, :q])
    bound = model.likelihood(batch.mediators, model.decoded(batch.covariates, batch.category, noise))
    bound = bound - posterior.divergence()
    beside = model.covariate_noise(batch.covariates)
    if beside is None:
        return bound, noise, noise[:, :0]
    other = beside.drawn(normal[:, q:])
    return bound + model.covariate_likelihood(batch.covariates, other) - beside.divergence(), noise, other


def _decay(epoch: int, settings: VariationalSettings) -> float:
    """Factor of the learning rate."""
    left = (settings.epochs - epoch) / max(1.0, settings.epochs * (1 - settings.decay_from))
    return min(1.0, left)
