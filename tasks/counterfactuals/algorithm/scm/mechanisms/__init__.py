"""Mechanisms: one column as a function of its direct causes and of its own noise.

``abduct`` finds the noise of an observed value, ``predict`` computes the value from causes and noise. Predicting from
the causes of the abduction returns the observed value.

Scope: the interface of mechanisms, and the choice among them. The graph:
``tasks.counterfactuals.algorithm.scm.abduction``.
"""

from typing import Protocol

import numpy as np

from schemas.audit.causal import Form, Mechanism
from schemas.terms import Kind
from tasks.counterfactuals.algorithm.scm.mechanisms.additive import REGRESSORS, Additive, fit_additive, refit_additive
from tasks.counterfactuals.algorithm.scm.mechanisms.cumulative import CumulativeLogit, refit_cumulative
from tasks.counterfactuals.algorithm.scm.mechanisms.discrete import (
    Count,
    Nominal,
    Ordinal,
    fit_classifier,
    fit_count,
    fit_ordered,
)
from tasks.numerics.arrays import Floats

__all__ = [
    "ALLOWED",
    "AUTO",
    "Additive",
    "Count",
    "FittedMechanism",
    "Nominal",
    "Ordinal",
    "fit_mechanism",
    "refit_mechanism",
]

AUTO: dict[Kind, Form] = {
    Kind.CONTINUOUS: "linear",
    Kind.ORDINAL: "ordinal",
    Kind.BINARY: "ordinal",
    Kind.NOMINAL: "nominal",
}
"""The mechanism that a kind of column gets if none is named."""

ALLOWED: dict[Kind, tuple[Form, ...]] = {
    Kind.CONTINUOUS: ("linear", "forest", "boosting", "count"),
    Kind.ORDINAL: ("ordinal", "nominal"),
    Kind.BINARY: ("ordinal", "nominal"),
    Kind.NOMINAL: ("nominal",),
}
"""The mechanisms that a kind of column can have."""


class FittedMechanism(Protocol):
    """A mechanism with its parameters. ``q`` encoded causes, ``d`` numbers of noise per row."""

    @property
    def draws(self) -> int:
        """Uniform numbers that ``abduct`` needs per row."""

    def abduct(self, causes: Floats, values: Floats, uniforms: Floats) -> Floats:
        """Noise ``(r, d)`` behind values ``(r,)``; not finite where no noise makes the value."""

    def predict(self, causes: Floats, noise: Floats) -> Floats:
        """Values ``(r,)`` from causes ``(r, q)`` and noise ``(r, d)``."""


def fit_mechanism(
    form: Form, setting: Mechanism, causes: Floats, values: Floats, categories: int, seed: int
) -> FittedMechanism:
    """Fit one mechanism to all rows given, whatever their group.

    Args:
        form: Which mechanism, ``setting.kind`` where that names one.
        setting: How the noise is rounded.
        causes: ``(n, q)`` encoded direct causes.
        values: ``(n,)`` numbers, or the numbers of categories.
        categories: Categories that the column has; 0 for numbers.
        seed: Of regressors that draw.
    """
    if form == "count":
        return fit_count(causes, values)
    if form == "ordinal":
        return Ordinal(fit_ordered(causes, values), categories)
    if form == "nominal":
        return Nominal(fit_classifier(causes, values), categories)
    return fit_additive(REGRESSORS[form], causes, values, seed, setting.noise_decimals)


def refit_mechanism(
    whole: FittedMechanism, form: Form, setting: Mechanism, causes: Floats, values: Floats, categories: int, seed: int
) -> FittedMechanism:
    """Fit a mechanism to a resample of the rows that ``whole`` was fitted to; the rest as ``fit_mechanism``."""
    if isinstance(whole, Ordinal) and isinstance(whole.classifier, CumulativeLogit) and len(np.unique(values)) > 1:
        return Ordinal(refit_cumulative(whole.classifier, causes, values), categories)
    if isinstance(whole, Additive):
        return refit_additive(whole, causes, values, seed)
    return fit_mechanism(form, setting, causes, values, categories, seed)
