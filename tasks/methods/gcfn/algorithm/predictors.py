"""Counterfactually fair predictors: inputs, training, tallies."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Final, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from schemas.errors import DataQualityError
from tasks.counterfactuals.algorithm.conditional import fit_mean, inputs_of, residuals
from tasks.counterfactuals.algorithm.gan.training import drawn
from tasks.methods.gcfn.settings import GcfnPrediction
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.networks.perceptron import (
    INITIAL,
    Device,
    chosen_device,
    draws,
    one_thread,
    perceptron,
    probabilities,
    require_both_labels,
    require_finite,
    unbound,
)
from tasks.numerics.problem import Mediation
from tasks.numerics.results import Aggregate, Tally
from tasks.numerics.statistics.intervals import Parameters, alone, share

# --------------------------------------------------------------------------------------------------------------------
# Settings of the training of a predictor, and of the models that are compared, frozen.


SWEEP: Final = (0.0, 0.1, 0.5, 1.0, 1.5, 2.0)
"""Values of lambda along the trade-off (appendix 15.4)."""

Worst = Literal["batch", "row"]
Sees = Literal["mediators", "covariates", "noise"]


@dataclass(frozen=True)
class PredictorSettings:
    """Section 5.1 and appendix 14.1 of the paper; what it leaves open is our choice."""

    hidden: tuple[int, ...] = (64,)
    """Widths of the hidden layers, ReLU between them. Not in the paper."""
    epochs: int = 30
    batch: int = 256
    learning_rate: float = 5e-3
    fairness: float = 0.5
    """lambda, the weight of the worst generator's regularisation term; 0 leaves the term out."""
    worst: Worst = "batch"
    """Whether the worst generator is that of a batch, near equation 10, or of each row by itself."""
    lipschitz: float | None = None
    """How fast the logit may change by standardised inputs, kept by spectral normalisation; None for no bound."""
    seed: int = 0
    device: Device = "auto"


@dataclass(frozen=True)
class Variant:
    """A model of a comparison."""

    name: str
    sees: Sees
    """Besides covariates: mediators, nothing, or the noise behind the mediators."""
    fairness: float


UNCONSTRAINED: Final = Variant("unconstrained", "mediators", 0.0)
CFUA: Final = Variant("CFUA", "covariates", 0.0)
"""Counterfactual fairness by leaving out what the category influences (Kusner et al. 2017)."""
CFAN: Final = Variant("CFAN", "noise", 0.0)
"""The same, with the additive noise abducted from the mediators (Kusner et al. 2017)."""


def sweep(values: tuple[float, ...] = SWEEP) -> tuple[Variant, ...]:
    """A model for each weight of the regularisation."""
    return tuple(Variant(f"GCFN, lambda {value:g}", "mediators", value) for value in values)


# --------------------------------------------------------------------------------------------------------------------
# Inputs of a predictor: applicants and their counterfactuals, standardised, one input for each category.
#
# Counterfactual inputs are laid out once, before training. A row's own category is no part of them.


@dataclass(frozen=True)
class Applicants:
    """``n`` applicants. Inputs of counterfactual mediators are float32, because they are many."""

    covariates: Floats
    """``(n, c)``."""
    mediators: Floats
    """``(n, d)``, or the other inputs of a predictor besides covariates."""
    imagined: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]"
    """``(s, k - 1, n, d)`` the same in the other categories, ascending, by each generator."""
    label: Bools
    """``(n,)`` what is predicted."""

    def without_mediators(self) -> "Applicants":
        """The same with covariates alone."""
        return replace(self, mediators=self.mediators[:, :0], imagined=self.imagined[..., :0])

    def by_noise(self, noise: Floats) -> "Applicants":
        """The same with noise ``(n, r)`` in the place of mediators: it stays the same in every category."""
        shape = (*self.imagined.shape[:2], *noise.shape)
        return replace(self, mediators=noise, imagined=np.broadcast_to(noise.astype(np.float32), shape))


@dataclass(frozen=True)
class Scales:
    """Means and deviations of training rows."""

    covariates: tuple[Floats, Floats]
    mediators: tuple[Floats, Floats]

    @classmethod
    def of(cls, rows: Mediation) -> "Scales":
        """Fit to training rows; what is constant is only centred."""
        return cls(_moments(inputs_of(rows.covariates)), _moments(inputs_of(rows.mediators)))

    def applicants(self, rows: Mediation, imagined: Floats, label: Bools) -> Applicants:
        """Lay out rows, their counterfactual mediators ``(s, k, n, p)``, and labels ``(n,)``."""
        scaled_worlds = [
            [self._mediators(rows, values).astype(np.float32) for values in network]
            for network in in_other_categories(imagined, rows.category)
        ]
        mediators = self._mediators(rows, rows.mediators.values)
        shape = (len(imagined), len(rows.categories) - 1, *mediators.shape)
        counterfactuals = np.array(scaled_worlds, dtype=np.float32).reshape(shape)
        return Applicants(_scaled(inputs_of(rows.covariates), self.covariates), mediators, counterfactuals, label)

    def _mediators(self, rows: Mediation, values: Floats) -> Floats:
        return _scaled(inputs_of(replace(rows.mediators, values=values)), self.mediators)


def in_other_categories(imagined: Floats, category: Longs) -> Floats:
    """``(s, k - 1, n, p)`` out of ``(s, k, n, p)``: all categories but each row's own, ascending."""
    steps = np.arange(imagined.shape[1] - 1)[:, None]
    other = steps + (steps >= category)
    return imagined[:, other, np.arange(len(category))]


def seen_by(sees: Sees, applicants: Applicants, noise: Floats | None = None) -> Applicants:
    """What a model of a comparison sees.

    Args:
        sees: Of the variant.
        applicants: With mediators.
        noise: ``(n, r)`` standardised noise behind their mediators, as a causal model abducted it.

    Raises:
        ValueError: If noise is asked for and not given.
    """
    if sees == "noise":
        if noise is None:
            raise ValueError("CFAN needs the noise behind the mediators; give what a causal model abducted")
        return applicants.by_noise(noise)
    return applicants if sees == "mediators" else applicants.without_mediators()


def _moments(values: Floats) -> tuple[Floats, Floats]:
    deviation = values.std(axis=0)
    return values.mean(axis=0), np.where(deviation > 0, deviation, 1.0)


def _scaled(values: Floats, moments: tuple[Floats, Floats]) -> Floats:
    mean, deviation = moments
    return (values - mean) / deviation


# --------------------------------------------------------------------------------------------------------------------
# Training by cross-entropy and the worst of the generators (equation 10; Algorithm 1, lines 20 to 26).
#
# Algorithm 1 prints the likelihood with the sign of an ascent and descends; the loss here is its negative.


@dataclass(frozen=True)
class Predictor:
    """A trained net on the CPU, and how its training went."""

    net: nn.Sequential
    """Linear layers and ReLU, one logit."""
    history: Floats
    """``(epochs, 2)`` mean over the batches of cross-entropy and of the worst generator's term, NaN if left out."""

    def scores(self, applicants: Applicants) -> Floats:
        """Probability of the label, ``(n,)``."""
        return probabilities(self.net, np.hstack([applicants.covariates, applicants.mediators]))

    def imagined_scores(self, applicants: Applicants) -> Floats:
        """The same in the other categories, ``(s, k - 1, n)``."""
        s, groups, n, _ = applicants.imagined.shape
        scores = [
            probabilities(self.net, np.hstack([applicants.covariates, values]))
            for network in applicants.imagined
            for values in network
        ]
        return np.array(scores).reshape(s, groups, n)


def train(applicants: Applicants, settings: PredictorSettings) -> Predictor:
    """Minimise cross-entropy + lambda max_j E (h(x, m) - h(x, m_j))^2 by Adam.

    Args:
        applicants: Training rows.
        settings: Of the run.

    Raises:
        DataQualityError: If labels are of one kind only, no counterfactual mediators are there to be regularised by, or
            the loss is no longer finite.
    """
    require_both_labels(applicants.label)
    if settings.fairness > 0 and not applicants.imagined.shape[0]:
        raise DataQualityError("no counterfactual mediators are given to be fair by; train generators, or set lambda 0")
    device = chosen_device(settings.device)
    widths = (applicants.covariates.shape[1] + applicants.mediators.shape[1], *settings.hidden, 1)
    net = perceptron(widths, settings.lipschitz, draws(settings.seed, INITIAL)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), settings.learning_rate, fused=True)
    table = _Table.of(applicants, settings.fairness > 0, device)
    history = []
    with one_thread():
        for epoch in range(settings.epochs):
            order = torch.from_numpy(draws(settings.seed, epoch).permutation(len(applicants.label))).to(device)
            terms = [_step(net, optimizer, table.part(part), settings) for part in torch.split(order, settings.batch)]
            history.append(torch.stack(terms).mean(0).double().cpu().numpy())
            require_finite(net, epoch)
    return Predictor(unbound(net), np.array(history).reshape(-1, 2))


def regularisation(scores: Tensor, imagined: Tensor, worst: Worst) -> Tensor:
    """The term of the worst of the generators (equations 9 and 70).

    Args:
        scores: ``(r,)`` probabilities.
        imagined: ``(s, k - 1, r)`` those in the other categories, over which the mean is taken.
        worst: Whether the worst generator is that of all rows, or of each row by itself.
    """
    squared_change = (scores - imagined).square().mean(1)
    return squared_change.mean(1).max() if worst == "batch" else squared_change.max(0).values.mean()


@dataclass(frozen=True)
class _Table:
    """Rows on the device."""

    covariates: Tensor
    mediators: Tensor
    imagined: Tensor | None
    """``(s, k - 1, n, d)``; None where they play no part."""
    label: Tensor

    @classmethod
    def of(cls, applicants: Applicants, regularised: bool, device: torch.device) -> "_Table":
        covariates, mediators, label = (
            torch.from_numpy(part).float().to(device)
            for part in (applicants.covariates, applicants.mediators, applicants.label.astype(np.float32))
        )
        return cls(
            covariates, mediators, torch.from_numpy(applicants.imagined).to(device) if regularised else None, label
        )

    def part(self, rows: Tensor) -> "_Table":
        imagined = None if self.imagined is None else self.imagined[:, :, rows]
        return _Table(self.covariates[rows], self.mediators[rows], imagined, self.label[rows])


def _step(net: nn.Sequential, optimizer: torch.optim.Adam, rows: _Table, settings: PredictorSettings) -> Tensor:
    """One step; cross-entropy and regularisation of the batch, ``(2,)``."""
    optimizer.zero_grad()
    logits = net(torch.cat([rows.covariates, rows.mediators], 1)).squeeze(1)
    loss = predicted = functional.binary_cross_entropy_with_logits(logits, rows.label)
    penalty = torch.full_like(predicted, torch.nan)
    if rows.imagined is not None:
        covariates = rows.covariates.expand(*rows.imagined.shape[:2], -1, -1)
        imagined = net(torch.cat([covariates, rows.imagined], 3)).squeeze(3)
        penalty = regularisation(torch.sigmoid(logits), torch.sigmoid(imagined), settings.worst)
        loss = predicted + settings.fairness * penalty
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return torch.stack([predicted.detach(), penalty.detach()])


# --------------------------------------------------------------------------------------------------------------------
# Tallies of predictors by group: performance on held-out rows, and how far scores depend on the group.
#
# The worst network over everybody counts for a predictor (equation 10), so that the numbers of the groups add up.
# Scope:
# shares and means. Predictors: ``predictors``.


CUT = 0.5
"""Score from which a predictor's decision is favourable."""

_AT_ONCE = 2_000_000
"""Rows drawn at a time."""


@dataclass(frozen=True)
class Predicted:
    """A predictor on ``n`` held-out rows."""

    model: str
    fairness: float
    """lambda; 0 where nothing is regularised."""
    scores: Floats
    """``(n,)`` probability of the favourable outcome."""
    imagined: Floats
    """``(s, k - 1, n)`` the same in the other categories, by network."""

    @property
    def favourable(self) -> Bools:
        """``(n,)`` its decisions."""
        return self.scores >= CUT

    @property
    def named(self) -> Parameters:
        """Parameters that identify this predictor."""
        return {"model": self.model, "lambda": self.fairness}

    @property
    def moved(self) -> Floats:
        """``(n,)`` mean square of the change of the score, under the network that is worst over all rows."""
        squared = np.square(self.imagined - self.scores).mean(axis=1)
        largest: Floats = squared[squared.mean(axis=1).argmax()]
        return largest


def rates(decided: Bools, label: Bools, of: Parameters) -> Iterator[Tally]:
    """Of decisions ``(n,)`` on rows of a group: accuracy, PPV, FPR and FNR; favourable is positive."""
    yield from alone(share("fair_accuracy", of, decided == label))
    yield from alone(share("fair_ppv", of, label, decided))
    yield from alone(share("fair_fpr", of, decided, ~label))
    yield from alone(share("fair_fnr", of, ~decided, label))


def tallies(
    prediction: Predicted, rows: Longs, label: Bools, audited: Bools | None, settings: GcfnPrediction
) -> Iterator[Tally]:
    """Of one predictor and the rows of one group: rates, scores, and who is decided on otherwise.

    Args:
        prediction: The predictor.
        rows: ``(r,)`` the group among the held-out rows.
        label: ``(n,)`` outcomes of all held-out rows.
        audited: ``(n,)`` decisions of the audited model, where there is one.
        settings: ``bins``.
    """
    of, decided, scores = prediction.named, prediction.favourable[rows], prediction.scores[rows]
    yield from rates(decided, label[rows], of)
    ends = np.arange(settings.bins + 1) / settings.bins
    place = np.minimum((scores * settings.bins).astype(np.int64), settings.bins - 1)
    for number, (low, high) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)):
        yield from alone(share("fair_score_share", {**of, "from": low, "to": high}, place == number))
    if audited is not None:
        yield from alone(share("treated_differently_share", of, decided != audited[rows]))


def aggregates(
    predictions: Sequence[Predicted],
    rows: Longs,
    label: Bools,
    gammas: Sequence[float],
    resamples: int,
    rng: np.random.Generator,
) -> Iterator[Aggregate]:
    """CF, its root on the scale of the score, and utility of every predictor on the rows of one group, resampled alike.

    Args:
        predictions: The predictors.
        rows: ``(r,)`` the group among the held-out rows.
        label: ``(n,)`` outcomes of all held-out rows.
        gammas: Weights of CF in the utility.
        resamples: Replicates.
        rng: Draws rows.
    """
    parts = [
        column
        for prediction in predictions
        for column in (prediction.favourable[rows] == label[rows], prediction.moved[rows])
    ]
    values = np.column_stack(parts).astype(np.float64)
    again = np.vstack([_resampled(values, resamples, rng), values.mean(axis=0)])
    for number, prediction in enumerate(predictions):
        accuracy, squared_change = again[:, 2 * number], again[:, 2 * number + 1]
        yield _aggregate("fair_unfairness", prediction.named, squared_change, len(rows))
        yield _aggregate("fair_score_change", prediction.named, np.sqrt(squared_change), len(rows))
        for gamma in gammas:
            yield _aggregate(
                "fair_utility", {**prediction.named, "gamma": gamma}, accuracy - gamma * squared_change, len(rows)
            )


def refused(models: Sequence[tuple[str, float]], n: int, reason: str) -> Iterator[Aggregate]:
    """A group of ``n`` that nothing could be trained for: a row with the reason for each model, by name and lambda."""
    for name, fairness in models:
        of: Parameters = {"model": name, "lambda": fairness}
        yield Aggregate(0, 0, "fair_unfairness", of, np.nan, n, compared=False, reason=reason)


def _aggregate(measure: str, of: Parameters, values: Floats, n: int) -> Aggregate:
    """``values`` of the resamples, the sample's own last."""
    return Aggregate(0, 0, measure, of, float(values[-1]), n, compared=False, replicates=values[:-1])


def _resampled(values: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """``(resamples, q)`` means of ``(r, q)`` over as many rows drawn with replacement."""
    n = len(values)
    parts, remaining = [np.zeros((0, values.shape[1]))], resamples
    while remaining > 0:
        size = min(remaining, max(1, _AT_ONCE // n))
        draws = rng.integers(0, n, (size, n)) + n * np.arange(size)[:, None]
        counts = np.bincount(draws.ravel(), minlength=size * n).reshape(size, n)
        parts.append(counts @ values / n)
        remaining -= size
    return np.concatenate(parts)


# --------------------------------------------------------------------------------------------------------------------
# Trains counterfactually fair predictors of the outcome and compares them with others on held-out rows.
#
# All learn from the same rows: one without a fairness term, one from covariates alone (CFUA), one from covariates and
# the noise behind the mediators (CFAN), and GCFN for each weight lambda. The mediators come from generators that never
# saw an outcome. The noise comes from abduction by a causal model, else it is the residual from the mediator's
# conditional mean.
#
# Scope: the predictors and the split. Statistics of each: ``predictor_tallies``.


GCFN = "GCFN"


@dataclass(frozen=True)
class Lending:
    """Applicants, who they would have been, and what became of them."""

    rows: Mediation
    imagined: Floats
    """``(s, k, n, p)``."""
    label: Bools
    """``(n,)`` whether the outcome was favourable."""
    abducted: Mapping[str, Floats] = field(default_factory=dict)
    """Mediator -> the noise behind it by a causal model, ``(n, d)``; NaN of rows without abducted noise."""


def variants(rows: Mediation, settings: GcfnPrediction, abducted: Collection[str] = ()) -> tuple[Variant, ...]:
    """The models of the comparison; those that would see nothing of an applicant are left out.

    Args:
        rows: The applicants.
        settings: ``lambdas``.
        abducted: Mediators whose noise a causal model abducted.
    """
    some = [UNCONSTRAINED, *([CFUA] if rows.covariates.names else []), *([CFAN] if noisy(rows, abducted) else [])]
    return (*some, *(Variant(GCFN, "mediators", value) for value in settings.lambdas if value > 0))


def noisy(rows: Mediation, abducted: Collection[str]) -> tuple[str, ...]:
    """The mediators with noise that CFAN sees: those with abducted noise, and all others that are numbers."""
    numeric_flags = zip(rows.mediators.names, rows.numeric, strict=True)
    return tuple(name for name, number in numeric_flags if number or name in abducted)


def split(rows: Mediation, label: Bools, share: float, seed: int) -> tuple[Longs, Longs]:
    """Training rows and held-out rows, ascending: a share of each outcome of each category is held out."""
    rng = np.random.default_rng(seed)
    test = drawn(2 * rows.category + label, round(share * len(rows)), 1, rng)
    return np.setdiff1d(np.arange(len(rows)), test), test


def predicted(lending: Lending, settings: GcfnPrediction, device: Device, seed: int) -> Iterator[Predicted]:
    """Every model, trained, on the held-out rows.

    Raises:
        DataQualityError: The training rows have outcomes of one kind only, or a weight is no longer finite.
    """
    for variant in variants(lending.rows, settings, lending.abducted):
        of = fitted(lending, variant, settings, device, seed)
        yield Predicted(
            variant.name, variant.fairness, of.predictor.scores(of.test), of.predictor.imagined_scores(of.test)
        )


@dataclass(frozen=True)
class Fitted:
    """A trained model of a comparison."""

    predictor: Predictor
    scales: Scales
    """Of its training rows."""
    test: Applicants
    """The held-out rows as it sees them."""


def fitted(lending: Lending, variant: Variant, settings: GcfnPrediction, device: Device, seed: int) -> Fitted:
    """One model, trained on all rows that are not held out.

    Raises:
        DataQualityError: As ``predicted``.
    """
    parts = split(lending.rows, lending.label, settings.test, seed)
    scales = Scales.of(lending.rows.rows(parts[0]))
    noise = noise_of(lending, parts[0], seed) if variant.sees == "noise" else None
    learnt, test = (
        seen_by(
            variant.sees,
            scales.applicants(lending.rows.rows(part), lending.imagined[:, :, part], lending.label[part]),
            None if noise is None else noise[part],
        )
        for part in parts
    )
    names = {field.name for field in fields(PredictorSettings)} & set(type(settings).model_fields)
    training_settings = PredictorSettings(**{name: getattr(settings, name) for name in names})
    training = replace(training_settings, fairness=variant.fairness, device=device, seed=seed)
    return Fitted(train(learnt, training), scales, test)


def noise_of(lending: Lending, learnt: Longs, seed: int) -> Floats | None:
    """What CFAN sees of the mediators, ``(n, q)``, standardised over the training rows ``(r,)``; None where nothing.

    Whose noise could not be abducted is given the mean one, so that nobody is left out of a comparison.
    """
    rows, names = lending.rows, noisy(lending.rows, lending.abducted)
    by_mediator = _residuals(rows, learnt, seed) if set(names) - set(lending.abducted) else {}
    parts = [lending.abducted[name] if name in lending.abducted else by_mediator[name] for name in names]
    if not parts:
        return None
    noise = np.ma.masked_invalid(np.hstack(parts))
    centre, deviation = (of(noise[learnt], axis=0).filled(0.0) for of in (np.ma.mean, np.ma.std))
    standardised: Floats = ((noise - centre) / np.where(deviation > 0, deviation, 1.0)).filled(0.0)
    return standardised


def abducted_shares(lending: Lending, chosen: Longs) -> Iterator[Aggregate]:
    """Which noise CFAN sees: by mediator, of what share of some rows ``(r,)`` a causal model abducted it.

    0 says that it is a residual about the mean of people alike.
    """
    for name in noisy(lending.rows, lending.abducted):
        noise = lending.abducted.get(name, np.full((len(lending.rows), 1), np.nan))[chosen]
        value = float(np.isfinite(noise).all(axis=1).mean())
        yield Aggregate(0, 0, "noise_abducted_share", {"mediator": name}, value, len(chosen), compared=False)


def _residuals(rows: Mediation, learnt: Longs, seed: int) -> dict[str, Floats]:
    """``(n, 1)`` of every numeric mediator about its mean given covariates and category."""
    mean = fit_mean(rows.rows(learnt), seed).potential(rows.covariates)
    differences = residuals(mean, rows.category, rows.mediators.values[:, rows.numeric])
    names = [name for name, number in zip(rows.mediators.names, rows.numeric, strict=True) if number]
    return {name: differences[:, [at]] for at, name in enumerate(names)}
