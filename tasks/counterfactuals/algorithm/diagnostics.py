"""Diagnostics of generated mediators: checks, convergence, quality, effects."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from schemas.terms import Kind
from tasks.counterfactuals.algorithm.conditional import fit_mean, fit_quantiles, inputs_of, residuals
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.encoding import Columns, some
from tasks.numerics.problem import LEAKS, Mediation, leaks
from tasks.numerics.statistics.regression import ENOUGH

if TYPE_CHECKING:
    from tasks.numerics.networks.training import Checkpoint  # loads torch, and most audits train no network

# --------------------------------------------------------------------------------------------------------------------
# Distributions of the features of a group, real and counterfactual: quantiles and shares of categories.
#
# Values of single applicants cannot be inferred: the outermost quantiles are the first and the last decile, and
# publication withholds small groups.


QUANTILES = tuple(tenth / 10 for tenth in range(1, 10))


class Effect(NamedTuple):
    """One number of a feature, as it is and as it would be."""

    feature: str
    category: str | None
    quantile: float | None
    factual: float
    imagined: float


def effects(factual: Columns, imagined: NDArray[np.float64], features: tuple[str, ...]) -> Iterator[Effect]:
    """Deciles of numbers and of ordered categories' shares.

    Args:
        factual: ``r`` applicants.
        imagined: ``(r, p)`` the same applicants as members of another group.
        features: Which columns to tell of.
    """
    for name in features:
        place = factual.names.index(name)
        before, after, categories = factual.values[:, place], imagined[:, place], factual.categories[place]
        if not categories:
            pairs = zip(QUANTILES, np.quantile(before, QUANTILES), np.quantile(after, QUANTILES), strict=True)
            yield from (Effect(name, None, at, float(old), float(new)) for at, old, new in pairs)
            continue
        for number, category in enumerate(categories):
            yield Effect(name, category, None, float((before == number).mean()), float((after == number).mean()))


# --------------------------------------------------------------------------------------------------------------------
# Convergence of adversarial training: the discriminator's advantage over a model of the covariates.
#
# At equilibrium the discriminator predicts the category no better than a model of the covariates alone, because
# generated and observed mediators look alike (section 4.1.3). Its excess knowledge, in nats, is its advantage.


SETTLED_ADVANTAGE: Final = 0.02
"""Nats. Above it, on average over the last tenth, mediators still give the category away."""

SETTLED_RECONSTRUCTION: Final = 0.05
"""Squared error per input of a mediator, on its scale of 1. Above it the observed mediators are not found again."""


TERMS: Final = ("reconstruction", "log_loss", "accuracy")
"""Last axis of a history ``(epoch, s, 3)``: squared error of the observed mediators, and how well the discriminator
picks them out, batch normalisation as it is used."""


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


def convergence(checkpoint: "Checkpoint", inputs: int, alone: float) -> Convergence:
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


# --------------------------------------------------------------------------------------------------------------------
# Quality of counterfactual mediators: against the truth where it is known, else among each other.
#
# The normalised errors of the paper's Table 3 are no proof: a regression of the mediator on covariates and category
# passes them too. The informative number is the slope of the generated on the true mediator about the conditional mean:
# 1 for the right person, 0 for the mean of similar people, -1 for the other solution of Lemma 1.
#
# Generated mediators are ``(s, k, n, p)``: networks, categories, applicants and mediators.


WIDE: Final = 0.25
"""Spread, in standard deviations of the mediator, above which a record is flagged as not identified. Our choice."""


@dataclass(frozen=True)
class AgainstTruth:
    """Each network against known counterfactuals, over all categories but a row's own."""

    slope: Floats
    """``(s, p)`` of the generated on the true mediator, both less E[M | x, a']; NaN where the truth does not vary."""
    factual_counterfactual: float
    """Mean of ||M - M_cf||^2: what Table 3 divides by; a normalised error of 1."""
    factual_generated: Floats
    """``(s,)`` mean of ||M - M_gen||^2, normalised."""
    counterfactual_generated: Floats
    """``(s,)`` mean of ||M_cf - M_gen||^2, normalised."""
    counterfactual_mean: float
    """Mean of ||M_cf - E[M | x, a']||^2, normalised: what a regression with endless data would score."""


def against_truth(imagined: Floats, rows: Mediation, potential: Floats, mean: Floats) -> AgainstTruth:
    """Table 3 and the slope.

    Args:
        imagined: ``(s, k, n, p)``.
        rows: The applicants.
        potential: ``(k, n, p)`` their true mediators in every category.
        mean: ``(k, n, p)`` the true E[M | x, a].
    """
    other = others(rows.category, len(rows.categories))
    generated, true, expected = imagined[:, other], potential[other], mean[other]
    observed = np.broadcast_to(rows.mediators.values, potential.shape)[other]
    apart = _squared(observed - true)
    return AgainstTruth(
        slope=_slope(true - expected, generated - expected),
        factual_counterfactual=float(apart),
        factual_generated=_squared(observed - generated) / apart,
        counterfactual_generated=_squared(true - generated) / apart,
        counterfactual_mean=float(_squared(true - expected) / apart),
    )


def kept(imagined: Floats, rows: Mediation, mean: Floats) -> Floats:
    """``(s, q)`` slope of the generated on the observed numeric mediator, each less its conditional mean.

    Needs no truth. Where noise adds to a mediator alike in all categories the right answer is 1; 0 says that nothing
    of the applicant is left but the mean of people alike.

    Args:
        imagined: ``(s, k, n, p)``.
        rows: The applicants.
        mean: ``(k, n, q)`` estimated E[M | x, a] of the numeric mediators.
    """
    other, numeric = others(rows.category, len(rows.categories)), rows.numeric
    deviations = rows.mediators.values[:, numeric] - mean[rows.category, np.arange(len(rows))]
    return _slope(np.broadcast_to(deviations, mean.shape)[other], imagined[:, other][..., numeric] - mean[other])


def spread(imagined: Floats, rows: Mediation, deviation: Floats) -> Floats:
    """How far the networks disagree about each applicant, ``(n,)``: the largest over mediators and categories.

    Of a numeric mediator the standard deviation over networks, in units of ``deviation``; of others the share of
    networks that name another category than most. 0 for a single network, which shows nothing.

    Args:
        imagined: ``(s, k, n, p)``.
        rows: The applicants.
        deviation: ``(p,)`` standard deviation of the mediators in the data; not read of those with categories.
    """
    numeric = rows.numeric
    scale = np.where(deviation > 0, deviation, 1.0)
    apart = np.where(numeric, imagined.std(axis=0) / scale, 0.0)
    for at in np.flatnonzero(~numeric):
        codes = imagined[..., at]
        votes = np.stack([(codes == code).mean(axis=0) for code in range(len(rows.mediators.categories[at]))])
        dissent: Floats = 1.0 - votes.max(axis=0)
        apart[..., at] = dissent
    widest: Floats = apart.max(axis=(0, 2))
    return widest


def others(category: Longs, categories: int) -> Bools:
    """``(k, n)`` every category but each row's own."""
    is_other: Bools = np.arange(categories)[:, None] != category
    return is_other


def _squared(apart: Floats) -> Floats:
    """Mean over rows of the squared length of ``(..., n, p)``."""
    mean_square: Floats = np.square(apart).sum(axis=-1).mean(axis=-1)
    return mean_square


def _slope(true: Floats, generated: Floats) -> Floats:
    """Least-squares slope ``(s, p)`` of ``(s, n, p)`` on ``(n, p)``."""
    centred = true - true.mean(axis=0)
    variance = np.square(centred).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope: Floats = np.where(variance > 0, (centred * generated).sum(axis=1) / variance, np.nan)
    return slope


# --------------------------------------------------------------------------------------------------------------------
# Checks of generated mediators without the truth: how much of a person they keep, and leaks of the category.
#
# A generator that returns the conditional mean passes every check of its distribution and says nothing about the
# person.
# So results are compared with the mean and, for continuous mediators, with the map of conditional quantiles. Scope: the
# numbers, and the limits beyond which they are doubtful.


HALF: Final = 0.5
"""Of what tells a person from people alike: a generator that keeps less is doubted. Our choice."""


LIMITS: Final = {
    "kept": ("least", HALF),
    "beyond_mean": ("least", HALF),
    "apart_from_quantiles": ("most", WIDE),
    "reconstruction": ("most", SETTLED_RECONSTRUCTION),
    "advantage": ("most", SETTLED_ADVANTAGE),
    "converged": ("least", 1.0),
    "leak": ("most", LEAKS),
    "support": ("least", ENOUGH),
}
"""Check -> the limit beyond which it is doubtful; of an advantage, the amount without its sign. Others have none."""


class Check(NamedTuple):
    """One number about generators."""

    check: str
    network: int | None
    column: str | None
    value: float
    n: int
    doubtful: bool


def of_networks(imagined: Floats, rows: Mediation, trained: Longs, seed: int) -> Iterator[Check]:
    """By network and numeric mediator: how much of the person's deviation remains, against mean and quantiles.

    Args:
        imagined: ``(s, k, n, p)``.
        rows: The applicants.
        trained: Those of them that the generators learnt from; regressions learn from the same.
        seed: Of the regressions.
    """
    mean = fit_mean(rows.rows(trained), seed).potential(rows.covariates)
    numeric = [name for name, number in zip(rows.mediators.names, rows.numeric, strict=True) if number]
    for check, measured in (("kept", kept(imagined, rows, mean)), ("beyond_mean", beyond_mean(imagined, rows, mean))):
        yield from _by_network(check, measured, numeric, len(rows), measured < HALF)
    continuous = np.array([kind is Kind.CONTINUOUS for kind in rows.mediators.kinds], dtype=np.bool_)
    if continuous.any():
        apart = apart_from_quantiles(imagined, rows, trained, continuous, seed)
        names = [name for name, number in zip(rows.mediators.names, continuous, strict=True) if number]
        yield from _by_network("apart_from_quantiles", apart, names, len(rows), apart > WIDE)


def of_training(convergence: Convergence, n: int) -> Iterator[Check]:
    """By network, whether its training came to rest; ``n`` rows were learnt from."""
    doubtful = {
        "reconstruction": convergence.reconstruction > SETTLED_RECONSTRUCTION,
        "advantage": np.abs(convergence.advantage) > SETTLED_ADVANTAGE,
        "accuracy": np.zeros(len(convergence.accuracy), np.bool_),
        "converged": ~convergence.converged,
    }
    for check, flags in doubtful.items():
        for network, value in enumerate(getattr(convergence, check).astype(np.float64).tolist()):
            yield Check(check, network, None, value, n, bool(flags[network]))


def of_covariates(rows: Mediation, seed: int) -> Iterator[Check]:
    """Whether covariates give the category away."""
    for leak in leaks(rows, seed):
        yield Check("leak", None, leak.covariate, leak.auc, len(rows), leak.auc > LEAKS)


def beyond_mean(imagined: Floats, rows: Mediation, mean: Floats) -> Floats:
    """``(s, q)`` counterfactual deviation from E[M | x, a'], divided by the observed deviation from E[M | x, a].

    Args:
        imagined: ``(s, k, n, p)``.
        rows: The applicants.
        mean: ``(k, n, q)`` estimated means of the numeric mediators.
    """
    other, numeric = others(rows.category, len(rows.categories)), rows.numeric
    observed_residuals = residuals(mean, rows.category, rows.mediators.values[:, numeric])
    spread_ratio: Floats = (imagined[:, other][..., numeric] - mean[other]).std(axis=1) / observed_residuals.std(axis=0)
    return spread_ratio


def apart_from_quantiles(imagined: Floats, rows: Mediation, trained: Longs, continuous: Bools, seed: int) -> Floats:
    """``(s, c)`` root mean square distance to the quantile map, in deviations of the mediator.

    Args:
        imagined: ``(s, k, n, p)``.
        rows: The applicants.
        trained: Those that quantiles are fitted to.
        continuous: ``(p,)`` the mediators that have quantiles.
        seed: Of the regressions.
    """
    mediation = Mediation(
        rows.covariates, rows.category, rows.categories, some(rows.mediators, np.flatnonzero(continuous).tolist())
    )
    mapped = fit_quantiles(mediation.rows(trained), seed).imagine(mediation)
    other = others(rows.category, len(rows.categories))
    apart = imagined[:, other][..., continuous] - mapped[:, other]
    distance: Floats = np.sqrt(np.square(apart).mean(axis=1)) / mediation.mediators.values.std(axis=0)
    return distance


def typical(imagined: Floats, rows: Mediation, deviation: Floats) -> Longs:
    """``(n,)`` the network with the mediators nearest to those of all networks, for one category.

    Args:
        imagined: ``(s, n, p)``.
        rows: The applicants.
        deviation: ``(p,)`` of the mediators; not read of those with categories, which are 0 or 1 apart.
    """
    scale = np.where(rows.numeric & (deviation > 0), deviation, 1.0)
    apart = [_apart(imagined, network, rows.numeric, scale) for network in imagined]
    network: Longs = np.array(apart).sum(axis=1).argmin(axis=0)
    return network


def _apart(imagined: Floats, network: Floats, numeric: Bools, scale: Floats) -> Floats:
    """``(s, n)`` distance of every network from one."""
    scaled_difference = (imagined - network) / scale
    distance: Floats = np.sqrt(np.where(numeric, np.square(scaled_difference), scaled_difference != 0).sum(axis=-1))
    return distance


def _by_network(check: str, measured: Floats, names: list[str], n: int, doubtful: Bools) -> Iterator[Check]:
    for network, at in np.ndindex(measured.shape):
        value = float(measured[network, at])
        yield Check(check, network, names[at], value, n, bool(doubtful[network, at]) or not np.isfinite(value))
