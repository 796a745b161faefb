"""Trains counterfactually fair predictors of the outcome and compares them with others on held-out rows.

All learn from the same rows: one without a fairness term, one from covariates alone (CFUA), one from covariates and the
noise behind the mediators (CFAN), and GCFN for each weight lambda. The mediators come from generators that never saw an
outcome. The noise comes from abduction by a causal model, else it is the residual from the mediator's conditional mean.

Scope: the predictors and the split. Statistics of each: ``predictor_tallies``.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace

import numpy as np

from tasks.counterfactuals.algorithm.conditional.moments import fit_mean, residuals
from tasks.counterfactuals.algorithm.gan.groups import drawn
from tasks.methods.gcfn.algorithm.fair_prediction.inputs import Scales, seen_by
from tasks.methods.gcfn.algorithm.fair_prediction.settings import CFAN, CFUA, UNCONSTRAINED, PredictorSettings, Variant
from tasks.methods.gcfn.algorithm.fair_prediction.training import train
from tasks.methods.gcfn.algorithm.predictor_tallies import Predicted
from tasks.methods.gcfn.settings import GcfnPrediction
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.determinism import Device
from tasks.numerics.mediation import Mediation
from tasks.numerics.results import Aggregate

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
    """Mediator -> the noise behind it by a causal model, ``(n, d)``; NaN of whom it could not be found."""


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
    """The mediators of which CFAN sees the noise: those whose noise was abducted, and all others that are numbers."""
    known = zip(rows.mediators.names, rows.numeric, strict=True)
    return tuple(name for name, number in known if number or name in abducted)


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
    parts = split(lending.rows, lending.label, settings.test, seed)
    scales, noise = Scales.of(lending.rows.rows(parts[0])), noise_of(lending, parts[0], seed)
    laid_out = [
        scales.applicants(lending.rows.rows(part), lending.imagined[:, :, part], lending.label[part]) for part in parts
    ]
    for variant in variants(lending.rows, settings, lending.abducted):
        told = replace(_training_settings(settings), fairness=variant.fairness, device=device, seed=seed)
        learnt, test = (
            seen_by(variant.sees, applicants, None if noise is None else noise[part])
            for applicants, part in zip(laid_out, parts, strict=True)
        )
        net = train(learnt, told)
        yield Predicted(variant.name, variant.fairness, net.scores(test), net.imagined_scores(test))


def noise_of(lending: Lending, learnt: Longs, seed: int) -> Floats | None:
    """What CFAN sees of the mediators, ``(n, q)``, standardised over the training rows ``(r,)``; None where nothing.

    Whose noise could not be abducted is given the mean one, so that nobody is left out of a comparison.
    """
    rows, names = lending.rows, noisy(lending.rows, lending.abducted)
    left = _residuals(rows, learnt, seed) if set(names) - set(lending.abducted) else {}
    parts = [lending.abducted[name] if name in lending.abducted else left[name] for name in names]
    return _standardised(np.hstack(parts), learnt) if parts else None


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
    left = residuals(mean, rows.category, rows.mediators.values[:, rows.numeric])
    names = [name for name, number in zip(rows.mediators.names, rows.numeric, strict=True) if number]
    return {name: left[:, [at]] for at, name in enumerate(names)}


def _standardised(noise: Floats, learnt: Longs) -> Floats:
    known = np.ma.masked_invalid(noise)
    centre, deviation = (of(known[learnt], axis=0).filled(0.0) for of in (np.ma.mean, np.ma.std))
    found: Floats = ((known - centre) / np.where(deviation > 0, deviation, 1.0)).filled(0.0)
    return found


def _training_settings(settings: GcfnPrediction) -> PredictorSettings:
    """Settings of the same names."""
    names = {field.name for field in fields(PredictorSettings)} & set(type(settings).model_fields)
    return PredictorSettings(**{name: getattr(settings, name) for name in names})
