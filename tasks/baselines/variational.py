"""Predictors on noise abducted by a variational autoencoder, and all predictors by name."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from schemas.errors import DataQualityError
from schemas.terms import Kind
from tasks.baselines.predictors import FairSystem, FittingSettings, Scale, additive_noise, fit, hscic, unaware
from tasks.counterfactuals.algorithm.conditional import inputs_of
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.encoding import Columns
from tasks.numerics.networks.perceptron import INITIAL, draws, one_thread, perceptron, probabilities, require_finite
from tasks.numerics.problem import Mediation, require_seen

# --------------------------------------------------------------------------------------------------------------------
# Settings of the autoencoder. Only the kind of the penalty is from the three papers; sizes and weights are ours.


Latent = Literal["one", "two"]
"""Whether the noise is that of the mediators alone, or of the covariates as well, in a part of its own (DCEVAE)."""

Independence = Literal["mmd", "total_correlation", "adversary"]
"""What keeps the noise of the mediators independent of the category: the maximum mean discrepancy between categories
(mCEVAE), the total correlation of noise, category and the other noise (DCEVAE), or a net that guesses the category from
the noise (ADVAE)."""


@dataclass(frozen=True)
class VariationalSettings:
    """One autoencoder."""

    latent: Latent
    penalty: Independence
    weight: float
    """Of the penalty, beside the evidence lower bound in nats."""
    hidden: int = 64
    dimensions: int = 2
    """Of each part of the noise."""
    epochs: int = 60
    batch: int = 256
    learning_rate: float = 2e-3
    decay_from: float = 0.3
    """Share of the epochs after which the learning rate falls, linearly and nearly to 0."""
    least_spread: float = 0.02
    """Of what is decoded, in deviations: without a floor its likelihood grows without end."""
    seed: int = 0


# --------------------------------------------------------------------------------------------------------------------
# The autoencoder: covariates, category and mediators to noise, and noise, covariates and category to mediators.


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
        decoded: Tensor = self.decoder(torch.cat([covariates, category, noise], 1))
        return decoded

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


# --------------------------------------------------------------------------------------------------------------------
# Penalties of noise that tells of the category: discrepancy of means, total correlation, and an adversary.
#
# The last two train a net of their own on each batch, before the autoencoder learns from it.


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
    """How well a net separates noise, category and other noise of the same row from those of different rows."""

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


# --------------------------------------------------------------------------------------------------------------------
# Trains the autoencoder: evidence lower bound less the weighted penalty, by Adam.


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
                share_left = (settings.epochs - epoch) / max(1.0, settings.epochs * (1 - settings.decay_from))
                decay = min(1.0, share_left)
                group["lr"] = settings.learning_rate * decay
            history.append(_epoch(model, rows, penalty, optimizer, (epoch, settings)))
            require_finite(model, epoch)
    return model.eval(), np.array(history)


def change_over_last_epochs(history: Floats) -> float:
    """Relative change of the bound over the last ten epochs: the last five against the five before."""
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
    for part, noise_draws in zip(torch.split(order, settings.batch), torch.split(normal, settings.batch), strict=True):
        batch = rows.rows(part)
        bound, noise, other = _bound(model, batch, noise_draws)
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


# --------------------------------------------------------------------------------------------------------------------
# A predictor of covariates and abducted noise, and the mediators that the autoencoder imagines.
#
# The noise of an applicant is the mean of the encoder's posterior. The decoder gives the mediators of another category,
# with the noise kept. Categories are decoded as one number each, of which the largest counts.


MCEVAE: Final = VariationalSettings("one", "mmd", 10.0)
DCEVAE: Final = VariationalSettings("two", "total_correlation", 1.0)
ADVAE: Final = VariationalSettings("one", "adversary", 1.0)


@dataclass(frozen=True)
class Abducting:
    """An autoencoder, and a net of covariates and noise."""

    template: Mediation
    scales: tuple[Scale, Scale]
    """Of covariates and of mediators."""
    autoencoder: Autoencoder
    history: Floats
    """``(epochs,)`` evidence lower bound."""
    net: nn.Sequential

    def scores(self, rows: Mediation) -> Floats:
        """Probability of the label, ``(n,)``.

        Raises:
            DataQualityError: Columns or categories are not those of the training.
        """
        require_seen(rows, self.template)
        return probabilities(self.net, _seen(self.autoencoder, _encoded(rows, self.scales)))

    def imagine(self, rows: Mediation) -> Floats:
        """Mediators ``(1, k, n, p)`` in the user's units, what was observed in a row's own category.

        Raises:
            DataQualityError: Columns or categories are not those of the training.
        """
        require_seen(rows, self.template)
        encoded, k = _encoded(rows, self.scales), len(rows.categories)
        with torch.no_grad():
            noise = self.autoencoder.noise(encoded.covariates, encoded.category, encoded.mediators).mean
            n = len(rows)
            everybody = [torch.eye(k)[to].expand(n, -1) for to in range(k)]
            decoded = [self.autoencoder.decoded(encoded.covariates, to, noise) for to in everybody]
        imagined = np.stack([_columns(self.scales[1].undo(values.double().numpy()), rows) for values in decoded])
        imagined[rows.category, np.arange(len(rows))] = rows.mediators.values
        return imagined[None]


def variational(kind: VariationalSettings) -> FairSystem:
    """The system of an autoencoder; ``fairness`` of its fitting sets the weight of the penalty."""

    def system(rows: Mediation, label: Bools, settings: FittingSettings) -> Abducting:
        """Trains autoencoder and net."""
        if not rows.mediators.names:
            raise DataQualityError("an autoencoder needs a mediator; give the role to what the category may influence")
        weight = kind.weight if settings.fairness is None else settings.fairness
        training_settings = replace(
            kind, weight=weight, seed=settings.seed, batch=settings.batch, epochs=2 * settings.epochs
        )
        scales = Scale.of(inputs_of(rows.covariates)), Scale.of(inputs_of(rows.mediators))
        encoded = _encoded(rows, scales)
        autoencoder, history = train(encoded, training_settings)
        net = fit(_seen(autoencoder, encoded), label, settings)
        return Abducting(rows.template, scales, autoencoder, history, net)

    return system


def _encoded(rows: Mediation, scales: tuple[Scale, Scale]) -> EncodedRows:
    parts = zip(scales, (rows.covariates, rows.mediators), strict=True)
    covariates, mediators = (torch.from_numpy(scale.apply(inputs_of(part))).float() for scale, part in parts)
    category = torch.from_numpy(np.eye(len(rows.categories), dtype=np.float32)[rows.category])
    return EncodedRows(covariates, category, mediators)


def _seen(autoencoder: Autoencoder, rows: EncodedRows) -> Floats:
    """``(n, c + q)`` covariates and the mean of the mediators' noise: what the net sees."""
    with torch.no_grad():
        noise = autoencoder.noise(rows.covariates, rows.category, rows.mediators).mean
        return torch.cat([rows.covariates, noise], 1).double().numpy()


def _columns(inputs: Floats, rows: Mediation) -> Floats:
    """``(n, p)`` mediators from decoded inputs ``(n, d)``: of a column with categories that of the largest input."""
    columns, at = [], 0
    for categories in rows.mediators.categories:
        width = max(1, len(categories))
        part = inputs[:, at : at + width]
        columns.append(part.argmax(1).astype(np.float64) if categories else part[:, 0])
        at += width
    return np.column_stack(columns)


# --------------------------------------------------------------------------------------------------------------------
# The counterfactually fair predictors by name, and those of the GCFN paper that are not built.


PREDICTORS: Final[Mapping[str, FairSystem]] = {
    "cfua": unaware,
    "cfan": additive_noise,
    "hscic": hscic,
    "mcevae": variational(MCEVAE),
    "dcevae": variational(DCEVAE),
    "advae": variational(ADVAE),
}
"""In the order in which they are compared."""

NOT_BUILT: Final[Mapping[str, str]] = {
    "cfgan": "CFGAN makes data and no predictions; its use in two stages is the GCFN authors' own and is not described",
}
"""System -> the reason."""


# --------------------------------------------------------------------------------------------------------------------
# Runs a system on inputs that are encoded already: what a comparison of models on the same folds has.
#
# Scope: training and test inputs of a fold, and which of the inputs are covariates. All else that is seen counts as a
# mediator, which the category may influence.


_GROUPS = ("others", "protected")


@dataclass(frozen=True)
class EncodedFold:
    """Training rows ``r`` and test rows ``t``."""

    inputs: Floats
    """``(r, d)``, without the protected attribute itself."""
    label: Bools
    """``(r,)``."""
    protected: Bools
    """``(r,)`` who is in the protected group."""
    test_inputs: Floats
    """``(t, d)``."""
    test_protected: Bools
    """``(t,)``."""
    covariate: Bools
    """``(d,)`` which inputs the protected attribute does not influence."""


def fold_scores(name: str, fold: EncodedFold, settings: FittingSettings) -> Floats:
    """Trains the system of a name and returns probabilities of the label on the test rows, ``(t,)``.

    Raises:
        KeyError: The registry has no such system.
        DataQualityError: The system cannot learn from these rows; CFUA, for one, needs a covariate.
    """
    model = PREDICTORS[name](mediation(fold, fold.inputs, fold.protected), fold.label, settings)
    return model.scores(mediation(fold, fold.test_inputs, fold.test_protected))


def mediation(fold: EncodedFold, inputs: Floats, protected: Bools) -> Mediation:
    """Rows with the covariates and the mediators of the fold, ``inputs`` ``(n, d)`` and ``protected`` ``(n,)``."""
    covariates, mediators = (_encoded_columns(inputs, chosen) for chosen in (fold.covariate, ~fold.covariate))
    return Mediation(covariates, protected.astype(np.int64), _GROUPS, mediators)


def _encoded_columns(inputs: Floats, chosen: Bools) -> Columns:
    names = tuple(f"input{at}" for at in np.flatnonzero(chosen))
    return Columns(names, (Kind.CONTINUOUS,) * len(names), ((),) * len(names), inputs[:, chosen])
