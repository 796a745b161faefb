"""Networks of the GAN, its settings, and the encoding of mixed mediators."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from schemas.terms import Kind
from tasks.counterfactuals.algorithm.conditional import Moments, fit_moments, inputs_of, own
from tasks.numerics.arrays import Floats, Longs
from tasks.numerics.networks.perceptron import INITIAL, Device, draws
from tasks.numerics.problem import Mediation, require_seen

# --------------------------------------------------------------------------------------------------------------------
# Settings of the training of generators, frozen.
#
# The defaults depart from the paper in three points; with the paper's own, ``PAPER``, the networks return little more
# than the conditional mean on its synthetic data. Numeric mediators are standardised by mean and spread given
# covariates and category, so that the individual part is as visible to the discriminator as the rest. The generators'
# loss does not saturate. The learning rate falls in the last third of the epochs, so that the result depends less on
# when training stops.


Adversarial = Literal["non_saturating", "equation_8", "algorithm_1"]
"""What a generator minimises of the discriminator D at the true category A: -log(1 - D_A); log D_A; or, as Algorithm 1
prints it, log D_A + log(1 - D_A'), which is twice log D_A where there are two categories."""


@dataclass(frozen=True)
class GanSettings:
    """Section 5.1 and appendix 14.1, except where a field documents a difference."""

    networks: int = 10
    """Generators, and as many discriminators."""
    first: int = 0
    """Number of the first of them. Draws follow seed and number: ten are the same alone or together."""
    hidden: int = 64
    epochs: int = 300
    batch: int = 256
    learning_rate: float = 5e-4
    decay_from: float = 2 / 3
    """Share of the epochs after which the learning rate falls, linearly and nearly to 0. Ours; 1 for never."""
    alpha: float = 10.0
    """Weight of the reconstruction of the observed mediators. The paper gives no value."""
    adversarial: Adversarial = "non_saturating"
    among_alike: bool = True
    """Whether numeric mediators are standardised given covariates and category, and not among all. Ours."""
    seed: int = 0
    device: Device = "auto"
    """``auto`` takes CUDA where there is a device. What is drawn does not depend on it; the last digits do."""


PAPER: Final[dict[str, Any]] = {"alpha": 1.0, "adversarial": "algorithm_1", "among_alike": False, "decay_from": 1.0}
"""What the paper's networks do and the defaults do not: ``replace(settings, **PAPER)``."""

LOOKED_AT: Final = 2_048
"""Rows, new ones in each epoch, from which a history is taken."""

SLOPE: Final = 0.2
"""Of LeakyReLU below 0. The paper gives none."""
MOMENTUM: Final = 0.1
"""With which batch normalisation follows mean and variance; torch's own."""


# --------------------------------------------------------------------------------------------------------------------
# Generators and discriminators with one hidden layer each (appendix 14.1), all of an ensemble in one set of tensors.
#
# The first axis of every weight is the network, so that one batched product serves all; features come before rows.
# Networks do not depend on each other. Weights are drawn from NumPy generators that the caller passes; torch's global
# state is neither read nor changed.


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
        outputs = torch.baddbmm(self.bias, self.last, functional.leaky_relu(normal, SLOPE))
        return outputs.view(len(outputs), self.shape.categories, self.shape.mediators, -1)


class Discriminators(nn.Module):
    """D(x, G~): logits of the categories; they say which of the k mediators is the observed one."""

    def __init__(self, shape: Shape, rngs: Draws) -> None:
        """Draw first weights."""
        super().__init__()
        self.first = _weights(rngs, shape.hidden, shape.covariates + shape.categories * shape.mediators)
        self.first_bias = nn.Parameter(torch.zeros(len(rngs), shape.hidden, 1))
        self.last = _weights(rngs, shape.categories, shape.hidden)
        self.last_bias = nn.Parameter(torch.zeros(len(rngs), shape.categories, 1))

    def forward(self, covariates: Tensor, mediators: Tensor) -> Tensor:
        """Logits ``(s, k, r)`` of covariates ``(s, c, r)`` and mediators by category ``(s, k, d, r)``."""
        inputs = torch.cat([covariates, mediators.flatten(1, 2)], dim=1)
        hidden = functional.leaky_relu(torch.baddbmm(self.first_bias, self.first, inputs), SLOPE)
        return torch.baddbmm(self.last_bias, self.last, hidden)


def softened(outputs: Tensor, heads: tuple[tuple[int, int], ...]) -> Tensor:
    """``(s, k, d, r)`` with logits of heads turned into shares."""
    if not heads:
        return outputs
    return torch.cat([outputs[:, :, : heads[0][0]], *(outputs[:, :, a:b].softmax(2) for a, b in heads)], dim=2)


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
    weights = np.stack([rng.uniform(-bound, bound, (outputs, inputs)) for rng in rngs])
    return nn.Parameter(torch.from_numpy(weights.astype(np.float32)))


# --------------------------------------------------------------------------------------------------------------------
# Encodes mediators of mixed types as numbers for networks, and decodes them.
#
# Numbers and ordered categories come first, on a scale of 1. Each of the other mediators follows as a head: one input
# per category.


@dataclass(frozen=True)
class Encoded:
    """``n`` applicants as networks see them."""

    covariates: Floats
    """``(n, c)`` standardised, categories one input each."""
    category: Longs
    """``(n,)``."""
    mediators: Floats
    """``(n, d)`` numbers on a scale of 1, then a head for each mediator with categories."""


@dataclass(frozen=True)
class Encoder:
    """Scales fitted to training rows."""

    template: Mediation
    """The training rows, without any."""
    covariate_mean: Floats
    covariate_scale: Floats
    moments: Moments | None
    """Mean and spread among people alike, by which numeric mediators are standardised; plain ones if None."""
    location: Floats
    """``(q,)`` mean of the numeric mediators, or of what their moments leave."""
    scale: Floats
    """``(q,)`` standard deviation of the same."""

    @property
    def heads(self) -> tuple[tuple[int, int], ...]:
        """First and behind-last input of each mediator with categories."""
        sizes = [len(names) for names in self._labels()]
        ends = len(self.scale) + np.cumsum(sizes, dtype=np.int64)
        return tuple((int(end - size), int(end)) for size, end in zip(sizes, ends, strict=True))

    @property
    def width(self) -> int:
        """Inputs ``d`` of all mediators."""
        return len(self.scale) + sum(len(names) for names in self._labels())

    def encode(self, rows: Mediation) -> Encoded:
        """Lay rows out.

        Raises:
            DataQualityError: If categories or columns are not those of the training.
        """
        require_seen(rows, self.template)
        covariates = (inputs_of(rows.covariates) - self.covariate_mean) / self.covariate_scale
        location, scale = self._location_scale(rows)
        values = rows.mediators.values[:, rows.numeric]
        numbers = (values - own(location, rows.category)) / own(scale, rows.category)
        codes = rows.mediators.values[:, ~rows.numeric].T
        hot = [code[:, None] == np.arange(len(names)) for names, code in zip(self._labels(), codes, strict=True)]
        return Encoded(covariates, rows.category, np.hstack([numbers, *hot]))

    def decode(self, generated: Floats, rows: Mediation) -> Floats:
        """Mediators in the user's units, what was observed in the place of each row's own category.

        Args:
            generated: ``(s, k, d, n)`` what networks made of the rows.
            rows: The rows.

        Returns:
            ``(s, k, n, p)`` laid out as ``Columns.values``.
        """
        values = np.empty((*generated.shape[:2], len(rows), len(rows.numeric)))
        numbers = np.moveaxis(generated[:, :, : len(self.scale)], 2, 3)
        location, scale = self._location_scale(rows)
        values[..., rows.numeric] = location + scale * numbers
        for at in np.flatnonzero(rows.numeric):
            if rows.mediators.kinds[at] is Kind.ORDINAL:
                values[..., at] = np.clip(np.round(values[..., at]), 0, len(rows.mediators.categories[at]) - 1)
        for at, (first, end) in zip(np.flatnonzero(~rows.numeric), self.heads, strict=True):
            values[..., at] = generated[:, :, first:end].argmax(axis=2)
        values[:, rows.category, np.arange(len(rows))] = rows.mediators.values
        return values

    def _location_scale(self, rows: Mediation) -> tuple[Floats, Floats]:
        """``(k, n, q)`` each: what is taken off numeric mediators, and what the rest is divided by."""
        if self.moments is None:
            shape = (len(rows.categories), len(rows), len(self.location))
            return np.broadcast_to(self.location, shape), np.broadcast_to(self.scale, shape)
        mean, spread = self.moments.potential(rows.covariates)
        return mean + spread * self.location, spread * self.scale

    def _labels(self) -> list[tuple[str, ...]]:
        """The categories of the mediators that are no numbers."""
        columns = zip(self.template.mediators.categories, self.template.numeric, strict=True)
        return [names for names, numeric in columns if not numeric]


def fit_encoder(rows: Mediation, among_alike: bool, seed: int) -> Encoder:
    """The scales of training rows.

    Args:
        rows: Training rows.
        among_alike: Whether numeric mediators are standardised among people alike, and not among all.
        seed: Of the regressions.
    """
    inputs, numbers = inputs_of(rows.covariates), rows.mediators.values[:, rows.numeric]
    moments = fit_moments(rows, seed) if among_alike and rows.numeric.any() else None
    if moments is not None:
        mean, spread = moments.potential(rows.covariates)
        numbers = (numbers - own(mean, rows.category)) / own(spread, rows.category)
    return Encoder(
        rows.template, inputs.mean(axis=0), _above_zero(inputs.std(axis=0)), moments, numbers.mean(axis=0),
        _above_zero(numbers.std(axis=0)),
    )  # fmt: skip


def _above_zero(deviation: Floats) -> Floats:
    """What is constant is only centred."""
    return np.where(deviation > 0, deviation, 1.0)
