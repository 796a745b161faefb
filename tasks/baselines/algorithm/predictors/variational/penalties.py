"""Penalties of noise that tells of the category: discrepancy of means, total correlation, and an adversary.

The last two train a net of their own on each batch, before the autoencoder learns from it.
"""

from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tasks.baselines.algorithm.predictors.variational.settings import VariationalSettings
from tasks.numerics.networks.perceptron import perceptron

WIDTHS = (0.5, 1.0, 2.0)
"""Of the Gaussian kernels, summed, by which samples of noise are compared; the prior has deviation 1."""


class Penalty(Protocol):
    """Computes the penalty of a batch."""

    def __call__(self, noise: Tensor, other: Tensor, category: Tensor, order: Tensor) -> Tensor:
        """Penalty of noise ``(b, q)``.

        Args:
            noise: Samples of the noise of mediators.
            other: ``(b, r)`` samples of the noise of covariates; no column where there is none.
            category: ``(b, k)`` one-hot.
            order: ``(b,)`` a permutation of the batch.
        """
        ...


class Discrepancy:
    """Maximum mean discrepancy between the noise of each category and that of all."""

    def __call__(self, noise: Tensor, other: Tensor, category: Tensor, order: Tensor) -> Tensor:  # noqa: ARG002
        """As ``Penalty``; only noise and category count."""
        share = category.mean(0)
        present = share > 0
        weights = category[:, present] / category[:, present].sum(0)
        return share[present] @ discrepancies(noise, weights)


class TotalCorrelation:
    """How well a net tells noise, category and other noise of the same row from those of different rows."""

    def __init__(self, width: int, settings: VariationalSettings, rng: np.random.Generator) -> None:
        """``width``: columns of noise, other noise and category together."""
        self._critic = perceptron((width, settings.hidden, 1), None, rng)
        self._optimizer = torch.optim.Adam(self._critic.parameters(), settings.learning_rate)

    def __call__(self, noise: Tensor, other: Tensor, category: Tensor, order: Tensor) -> Tensor:
        """As ``Penalty``: the mean log-ratio of the joint to the product of the marginals."""
        beside = torch.cat([other, category], 1).detach()
        with torch.enable_grad():
            fixed = noise.detach()
            joint = self._critic(torch.cat([fixed, beside], 1))
            apart = self._critic(torch.cat([fixed[order], beside], 1))
            loss = functional.softplus(-joint).mean() + functional.softplus(apart).mean()
            self._optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self._optimizer.step()
        ratio: Tensor = self._critic(torch.cat([noise, beside], 1)).mean()
        return ratio


class Adversary:
    """How much better than by the shares of a batch a net guesses the category from the noise, in nats."""

    def __init__(self, categories: int, settings: VariationalSettings, rng: np.random.Generator) -> None:
        self._guess = perceptron((settings.dimensions, settings.hidden, categories), None, rng)
        self._optimizer = torch.optim.Adam(self._guess.parameters(), settings.learning_rate)

    def __call__(self, noise: Tensor, other: Tensor, category: Tensor, order: Tensor) -> Tensor:  # noqa: ARG002
        """As ``Penalty``; only noise and category count."""
        with torch.enable_grad():
            loss = functional.cross_entropy(self._guess(noise.detach()), category)
            self._optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self._optimizer.step()
        return -functional.cross_entropy(self._guess(noise), category)


def discrepancies(noise: Tensor, weights: Tensor) -> Tensor:
    """Squared maximum mean discrepancy between weighted samples and all of them.

    Args:
        noise: ``(b, q)`` samples.
        weights: ``(b, k)`` that sum to 1 over the batch in each of ``k`` columns.

    Returns:
        ``(k,)``, each at least 0.
    """
    apart = (noise[:, None, :] - noise[None, :, :]).square().sum(2)
    kernel = sum((torch.exp(-apart / (2 * width**2)) for width in WIDTHS), torch.zeros_like(apart))
    less = weights - 1 / len(noise)
    return (less * (kernel @ less)).sum(0)


def penalty_of(settings: VariationalSettings, categories: int, other: int, rng: np.random.Generator) -> Penalty:
    """The penalty that the settings name; ``other``: columns of the noise of covariates."""
    if settings.penalty == "mmd":
        return Discrepancy()
    if settings.penalty == "adversary":
        return Adversary(categories, settings, rng)
    return TotalCorrelation(settings.dimensions + other + categories, settings, rng)
