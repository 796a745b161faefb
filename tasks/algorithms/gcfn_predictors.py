"""Predictors of the outcome that are trained to be counterfactually fair, held against others on held-out rows.

All learn from the same rows: one without any term of fairness, one from covariates alone (CFUA), one from covariates
and the residuals of the mediators about their conditional mean (CFAN), and GCFN for each weight lambda. Generators
imagined the mediators; they never saw an outcome.

Here belong who is compared and the split. What is said of each is in ``gcfn_predicted``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np

from schemas.gcfn import GcfnPrediction
from tasks.algorithms.conditional_moments import fit_mean, residuals
from tasks.algorithms.detector import Bools, Floats, Longs
from tasks.algorithms.fair_prediction.inputs import Scales, seen_by
from tasks.algorithms.fair_prediction.settings import CFAN, CFUA, UNCONSTRAINED, PredictorSettings, Variant
from tasks.algorithms.fair_prediction.training import train
from tasks.algorithms.gcfn_groups import drawn
from tasks.algorithms.gcfn_predicted import Predicted
from tasks.algorithms.mediation import Mediation
from tasks.algorithms.repeatable import Device

GCFN = "GCFN"


@dataclass(frozen=True)
class Lending:
    """Applicants, who they would have been, and what became of them."""

    rows: Mediation
    imagined: Floats
    """``(s, k, n, p)``."""
    label: Bools
    """``(n,)`` whether the outcome was favourable."""


def variants(rows: Mediation, settings: GcfnPrediction) -> tuple[Variant, ...]:
    """The models of the comparison; those that would see nothing of an applicant are left out."""
    some = [UNCONSTRAINED, *([CFUA] if rows.covariates.names else []), *([CFAN] if rows.numeric.any() else [])]
    return (*some, *(Variant(GCFN, "mediators", value) for value in settings.lambdas if value > 0))


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
    scales, noise = Scales.of(lending.rows.rows(parts[0])), _noise(lending.rows, parts[0], seed)
    laid_out = [
        scales.applicants(lending.rows.rows(part), lending.imagined[:, :, part], lending.label[part]) for part in parts
    ]
    for variant in variants(lending.rows, settings):
        told = replace(_told(settings), fairness=variant.fairness, device=device, seed=seed)
        learnt, test = (
            seen_by(variant.sees, applicants, None if noise is None else noise[part])
            for applicants, part in zip(laid_out, parts, strict=True)
        )
        net = train(learnt, told)
        yield Predicted(variant.name, variant.fairness, net.scores(test), net.imagined_scores(test))


def _noise(rows: Mediation, learnt: Longs, seed: int) -> Floats | None:
    """``(n, q)`` residuals of the numeric mediators, standardised over the training rows; None without any."""
    if not rows.numeric.any():
        return None
    mean = fit_mean(rows.rows(learnt), seed).potential(rows.covariates)
    left = residuals(mean, rows.category, rows.mediators.values[:, rows.numeric])
    deviation = left[learnt].std(axis=0)
    found: Floats = (left - left[learnt].mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    return found


def _told(settings: GcfnPrediction) -> PredictorSettings:
    """Settings of the same names."""
    names = {field.name for field in fields(PredictorSettings)} & set(type(settings).model_fields)
    return PredictorSettings(**{name: getattr(settings, name) for name in names})
