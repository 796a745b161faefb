"""The autoencoder: covariates, category and mediators to noise, and noise, covariates and category to mediators."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from tasks.baselines.algorithm.predictors.variational.settings import VariationalSettings
from tasks.numerics.networks.perceptron import perceptron

_MOST = 4.0
"""Of the logarithm of a posterior deviation, either way."""


class Noise(NamedTuple):
    """Normal posterior of the noise of ``b`` rows."""

    mean: Tensor
    """``(b, q)``."""
    log_deviation: Tensor

    def drawn(self, normal: Tensor) -> Tensor:
        """A sample, from standard normal draws ``(b, q)``."""
        return self.mean + self.log_deviation.exp() * normal

    def divergence(self) -> Tensor:
        """Mean over rows of the Kullback-Leibler divergence from the standard normal prior."""
        variance = (2 * self.log_deviation).exp()
        return 0.5 * (self.mean.square() + variance - 1 - 2 * self.log_deviation).sum(1).mean()


class Autoencoder(nn.Module):
    """Encoder and decoder of mediators; with two parts of noise, those of covariates as well."""

    def __init__(self, shape: tuple[int, int, int], settings: VariationalSettings, rng: np.random.Generator) -> None:
        """Draws weights for ``shape``: inputs of covariates, categories, and inputs of mediators."""
        super().__init__()
        covariates, categories, mediators = shape
        q, width = settings.dimensions, settings.hidden
        self.encoder = perceptron((covariates + categories + mediators, width, 2 * q), None, rng)
        self.decoder = perceptron((covariates + categories + q, width, mediators), None, rng)
        self.spread = nn.Parameter(torch.zeros(mediators))
        two = settings.latent == "two" and covariates > 0
        self.covariate_encoder = perceptron((covariates, width, 2 * q), None, rng) if two else None
        self.covariate_decoder = perceptron((q, width, covariates), None, rng) if two else None
        self.covariate_spread = nn.Parameter(torch.zeros(covariates)) if two else None
        self.floor = float(np.log(settings.least_spread))

    def noise(self, covariates: Tensor, category: Tensor, mediators: Tensor) -> Noise:
        """Posterior of the noise of the mediators."""
        return _noise(self.encoder(torch.cat([covariates, category, mediators], 1)))

    def covariate_noise(self, covariates: Tensor) -> Noise | None:
        """Posterior of the noise of the covariates; None where there is one part of noise only."""
        return None if self.covariate_encoder is None else _noise(self.covariate_encoder(covariates))

    def decoded(self, covariates: Tensor, category: Tensor, noise: Tensor) -> Tensor:
        """Mean of the mediators, ``(b, d)``."""
        found: Tensor = self.decoder(torch.cat([covariates, category, noise], 1))
        return found

    def likelihood(self, mediators: Tensor, decoded: Tensor) -> Tensor:
        """Mean over rows of the log-likelihood of mediators, in nats less a constant."""
        return _log_normal(mediators - decoded, self.spread.clamp(min=self.floor))

    def covariate_likelihood(self, covariates: Tensor, noise: Tensor) -> Tensor:
        """The same of covariates, given their noise.

        Raises:
            ValueError: There is one part of noise only.
        """
        if self.covariate_decoder is None or self.covariate_spread is None:
            raise ValueError("the autoencoder has no noise of covariates; set latent to two")
        return _log_normal(covariates - self.covariate_decoder(noise), self.covariate_spread.clamp(min=self.floor))


def _noise(encoded: Tensor) -> Noise:
    mean, log_deviation = encoded.chunk(2, 1)
    return Noise(mean, log_deviation.clamp(-_MOST, _MOST))


def _log_normal(apart: Tensor, log_deviation: Tensor) -> Tensor:
    return (-0.5 * (apart / log_deviation.exp()).square() - log_deviation).sum(1).mean()
