"""Logit and probit as textbooks print them: coefficients, two covariances, effects as changes and as derivatives.

The logit is our own, streamed in one batch. The probit, which no audit fits, is that of statsmodels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit
from scipy.stats import norm
from statsmodels.discrete.discrete_model import Probit

from tasks.methods.adjusted.algorithm.ladder.linear import sandwich
from tasks.methods.adjusted.algorithm.scale.batches import Batch
from tasks.methods.adjusted.algorithm.scale.gram import inverse
from tasks.methods.adjusted.algorithm.scale.newton import added_up, fit_logit
from tasks.numerics.arrays import Floats

Link = Literal["logit", "probit"]
OfIndex = Callable[[Floats], Floats]


@dataclass(frozen=True)
class BinaryFit:
    """A fit of a 0/1 outcome, ``p`` columns."""

    coefficients: Floats
    classical: Floats
    """``(p, p)`` inverse of the information."""
    robust: Floats
    """``(p, p)`` sandwich (HC0)."""
    distribution: OfIndex
    density: OfIndex


def fit_binary(y: Floats, x: Floats, link: Link) -> BinaryFit:
    """Maximum likelihood of a logit or probit; ``x`` ``(n, p)`` holds its intercept."""
    return _logit(y, x) if link == "logit" else _probit(y, x)


def _logit(y: Floats, x: Floats) -> BinaryFit:
    rows = Batch(y, x)
    found = fit_logit(lambda: iter([rows]))
    bread = inverse(added_up(lambda: iter([rows]), found.coefficients).information)
    scores = x * (y - expit(x @ found.coefficients))[:, None]
    return BinaryFit(found.coefficients, bread, sandwich(bread, scores.T @ scores), expit, _logistic_density)


def _probit(y: Floats, x: Floats) -> BinaryFit:
    model = Probit(y, x)
    found = model.fit(disp=0, tol=1e-12)
    bread: Floats = np.asarray(found.cov_params())
    scores: Floats = np.asarray(model.score_obs(found.params))
    return BinaryFit(np.asarray(found.params), bread, sandwich(bread, scores.T @ scores), norm.cdf, norm.pdf)


def _logistic_density(index: Floats) -> Floats:
    fitted = expit(index)
    found: Floats = fitted * (1 - fitted)
    return found


def average_change(fit: BinaryFit, x: Floats, column: int) -> tuple[float, float]:
    """Mean change of the probability over all rows if an indicator goes from 0 to 1, and its classical error."""
    on, off = x.copy(), x.copy()
    on[:, column], off[:, column] = 1, 0
    change = fit.distribution(on @ fit.coefficients) - fit.distribution(off @ fit.coefficients)
    gradient = (fit.density(on @ fit.coefficients) @ on - fit.density(off @ fit.coefficients) @ off) / len(x)
    return float(change.mean()), float(np.sqrt(gradient @ fit.classical @ gradient))


def average_derivative(fit: BinaryFit, x: Floats, column: int) -> float:
    """Mean derivative of the probability by a column."""
    return float(fit.density(x @ fit.coefficients).mean() * fit.coefficients[column])
