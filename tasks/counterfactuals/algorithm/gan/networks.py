"""Generators and discriminators with one hidden layer each (appendix 14.1), all of an ensemble in one set of tensors.

The first axis of every weight is the network, so that one batched product serves all; features come before rows.
Networks do not depend on each other. Weights are drawn from NumPy generators that the caller passes; torch's global
state is neither read nor changed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tasks.counterfactuals.algorithm.gan.settings import MOMENTUM, SLOPE, GanSettings
from tasks.numerics.determinism import INITIAL, draws

Draws = Sequence[np.random.Generator]
"""One for each network."""

Epoch = Callable[[int, float], Tensor]
"""Passes over the rows once, by the number of the epoch and the learning rate; ``(1, s, 3)`` the terms of the history
after it."""


@dataclass(frozen=True)
class Shape:
    """Sizes of the networks of an ensemble."""

    covariates: int
    categories: int
    mediators: int
    """Inputs of all mediators."""
    heads: tuple[tuple[int, int], ...]
    """First and behind-last input of each mediator with categories."""
    hidden: int


class Generators(nn.Module):
    """G(x, a, m): for every category what the mediators would be. Batch normalisation before LeakyReLU."""

    def __init__(self, shape: Shape, rngs: Draws) -> None:
        """Draw first weights for as many networks as there are generators of numbers."""
        super().__init__()
        inputs, outputs = shape.covariates + shape.categories + shape.mediators, shape.categories * shape.mediators
        units = len(rngs) * shape.hidden
        self.shape = shape
        self.first = _weights(rngs, shape.hidden, inputs)
        self.gain, self.shift = nn.Parameter(torch.ones(units)), nn.Parameter(torch.zeros(units))
        self.last = _weights(rngs, outputs, shape.hidden)
        self.bias = nn.Parameter(torch.zeros(len(rngs), outputs, 1))
        self.register_buffer("mean", torch.zeros(units))
        self.register_buffer("variance", torch.ones(units))
        self.mean: Tensor
        self.variance: Tensor

    def forward(self, covariates: Tensor, member: Tensor, mediators: Tensor) -> Tensor:
        """What is made of ``r`` rows, before categories are chosen.

        Args:
            covariates: ``(s, c, r)``.
            member: ``(s, k, r)`` one-hot category.
            mediators: ``(s, d, r)``.

        Returns:
            ``(s, k, d, r)``: numbers, and logits in the heads.
        """
        hidden = torch.bmm(self.first, torch.cat([covariates, member, mediators], dim=1))
        flat = hidden.view(1, -1, hidden.shape[2])
        normal = functional.batch_norm(
            flat, self.mean, self.variance, self.gain, self.shift, self.training, MOMENTUM
        ).view_as(hidden)
        made = torch.baddbmm(self.bias, self.last, functional.leaky_relu(normal, SLOPE))
        return made.view(len(made), self.shape.categories, self.shape.mediators, -1)


class Discriminators(nn.Module):
    """D(x, G~): logits of the categories, of which of the k mediators is the observed one."""

    def __init__(self, shape: Shape, rngs: Draws) -> None:
        """Draw first weights."""
        super().__init__()
        self.first = _weights(rngs, shape.hidden, shape.covariates + shape.categories * shape.mediators)
        self.first_bias = nn.Parameter(torch.zeros(len(rngs), shape.hidden, 1))
        self.last = _weights(rngs, shape.categories, shape.hidden)
        self.last_bias = nn.Parameter(torch.zeros(len(rngs), shape.categories, 1))

    def forward(self, covariates: Tensor, shown: Tensor) -> Tensor:
        """Logits ``(s, k, r)`` of covariates ``(s, c, r)`` and mediators by category ``(s, k, d, r)``."""
        inputs = torch.cat([covariates, shown.flatten(1, 2)], dim=1)
        hidden = functional.leaky_relu(torch.baddbmm(self.first_bias, self.first, inputs), SLOPE)
        return torch.baddbmm(self.last_bias, self.last, hidden)


def softened(made: Tensor, heads: tuple[tuple[int, int], ...]) -> Tensor:
    """``(s, k, d, r)`` with logits of heads turned into shares."""
    if not heads:
        return made
    return torch.cat([made[:, :, : heads[0][0]], *(made[:, :, a:b].softmax(2) for a, b in heads)], dim=2)


def chosen(soft: Tensor, heads: tuple[tuple[int, int], ...]) -> Tensor:
    """One category of each head, with the derivative of its shares (straight-through).

    Shares would tell the discriminator at a glance what was generated, since what was observed is 0 or 1.
    """
    if not heads:
        return soft
    hard = [torch.zeros_like(soft[:, :, a:b]).scatter_(2, soft[:, :, a:b].argmax(2, True), 1.0) for a, b in heads]
    shares = soft[:, :, heads[0][0] :]
    return torch.cat([soft[:, :, : heads[0][0]], torch.cat(hard, 2) + (shares - shares.detach())], dim=2)


def fresh(shape: Shape, settings: GanSettings) -> tuple[Generators, Discriminators]:
    """Both sides of an ensemble with first weights, by the seed and the number of each network."""
    numbers = range(settings.first, settings.first + settings.networks)
    rngs = [draws(settings.seed, number, INITIAL) for number in numbers]
    return Generators(shape, rngs), Discriminators(shape, rngs)


def _weights(rngs: Draws, outputs: int, inputs: int) -> nn.Parameter:
    """``(s, outputs, inputs)`` uniform within 1 / sqrt(inputs), which is torch's own default."""
    bound = inputs**-0.5
    drawn = np.stack([rng.uniform(-bound, bound, (outputs, inputs)) for rng in rngs])
    return nn.Parameter(torch.from_numpy(drawn.astype(np.float32)))
