"""Mechanisms of counts and categories: a fitted distribution given the causes, and a coupling over it.

The distributions are scikit-learn's; the couplings are in ``coupling``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import pdtr, pdtrc
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tasks.counterfactuals.algorithm.scm.mechanisms.coupling import gumbel_argmax, gumbel_noise, passed, quantile_score
from tasks.counterfactuals.algorithm.scm.mechanisms.cumulative import fit_cumulative
from tasks.numerics.arrays import Floats


@dataclass(frozen=True)
class Count:
    """A count with a Poisson distribution whose log mean is linear in the causes, under the quantile coupling."""

    regressor: Any
    """A fitted regressor of the mean."""
    draws: int = 1

    def abduct(self, causes: Floats, values: Floats, uniforms: Floats) -> Floats:
        """Scores ``(r, 1)`` behind the counts ``(r,)``, seeded by ``(r, 1)`` uniform numbers."""
        mean, before = self.expected(causes), values - 1
        lower = (np.where(values > 0, pdtr(before, mean), 0.0), pdtr(values, mean))
        upper = (pdtrc(values, mean), np.where(values > 0, pdtrc(before, mean), 1.0))
        return quantile_score(lower, upper, uniforms[:, 0])[:, None]

    def predict(self, causes: Floats, noise: Floats) -> Floats:
        """Counts ``(r,)``: the smallest that the score has not passed, found by halving."""
        mean, scores = self.expected(causes), noise[:, 0]
        low, high = np.full(len(mean), -1.0), np.ceil(mean)
        while (short := passed(scores, pdtr(high, mean), pdtrc(high, mean))).any():
            high[short] = 2 * high[short] + 1
        while (high - low > 1).any():
            middle = np.floor((low + high) / 2)
            count = np.maximum(middle, 0.0)
            beyond = (middle < 0) | passed(scores, pdtr(count, mean), pdtrc(count, mean))
            low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
        return high

    def expected(self, causes: Floats) -> Floats:
        """Mean count, ``(r,)``."""
        return np.asarray(self.regressor.predict(causes), dtype=np.float64)


@dataclass(frozen=True)
class _Categorical:
    """Categories with a probability each, given the causes."""

    classifier: Any
    """A fitted classifier of the category's number."""
    categories: int

    def probabilities(self, causes: Floats) -> Floats:
        """Probability of every category, ``(r, c)``; 0 for those that the fit has not seen."""
        found = np.zeros((len(causes), self.categories))
        found[:, self.classifier.classes_.astype(np.int64)] = self.classifier.predict_proba(causes)
        return found


@dataclass(frozen=True)
class Ordinal(_Categorical):
    """Ordered categories under the quantile coupling, which keeps the order of rows with the same causes."""

    draws: int = 1

    def abduct(self, causes: Floats, values: Floats, uniforms: Floats) -> Floats:
        """Scores ``(r, 1)`` behind the categories ``(r,)``, seeded by ``(r, 1)`` uniform numbers."""
        at_most, more = _tails(self.probabilities(causes))
        rows, code = np.arange(len(values)), values.astype(np.int64)
        lower = np.pad(at_most, ((0, 0), (1, 0)))
        upper = np.pad(more, ((0, 0), (1, 0)), constant_values=1.0)
        return quantile_score(
            (lower[rows, code], lower[rows, code + 1]), (upper[rows, code + 1], upper[rows, code]), uniforms[:, 0]
        )[:, None]

    def predict(self, causes: Floats, noise: Floats) -> Floats:
        """Categories ``(r,)``: as many as the score has passed."""
        at_most, more = _tails(self.probabilities(causes))
        return np.asarray(passed(noise, at_most[:, :-1], more[:, :-1]).sum(axis=1), dtype=np.float64)


@dataclass(frozen=True)
class Nominal(_Categorical):
    """Categories without order, under Gumbel-max coupling.

    A category whose odds have not fallen against any other is kept (counterfactual stability, Oberst and Sontag 2019).
    """

    @property
    def draws(self) -> int:
        """Uniform numbers that ``abduct`` needs per row: one per category."""
        return self.categories

    def abduct(self, causes: Floats, values: Floats, uniforms: Floats) -> Floats:
        """Gumbel noise ``(r, c)`` behind the categories ``(r,)``, seeded by ``(r, c)`` uniform numbers."""
        return gumbel_noise(self.probabilities(causes), values, uniforms)

    def predict(self, causes: Floats, noise: Floats) -> Floats:
        """Categories ``(r,)`` with the largest log probability plus noise."""
        return gumbel_argmax(self.probabilities(causes), noise)


def _tails(probabilities: Floats) -> tuple[Floats, Floats]:
    """``P(X <= x)`` and ``P(X > x)`` of every category, ``(r, c)`` each, either summed from its own end."""
    at_most = np.cumsum(probabilities, axis=1)
    at_least = np.cumsum(probabilities[:, ::-1], axis=1)[:, ::-1]
    return at_most, np.pad(at_least[:, 1:], ((0, 0), (0, 1)))


def fit_count(causes: Floats, values: Floats) -> Count:
    """Fit a Poisson regression without a penalty."""
    return Count(PoissonRegressor(alpha=0.0, solver="newton-cholesky", max_iter=1000, tol=1e-8).fit(causes, values))


def fit_ordered(causes: Floats, codes: Floats) -> Any:
    """Fit a cumulative logit to the numbers of ordered categories."""
    if len(np.unique(codes)) == 1:
        return DummyClassifier(strategy="prior").fit(causes, codes)
    return fit_cumulative(causes, codes)


def fit_classifier(causes: Floats, codes: Floats) -> Any:
    """Fit a multinomial logit with the library's slight penalty, which keeps separable data finite.

    Rows that are alike are fitted as one with their number as weight: with categories as causes there are few.
    """
    distinct, weight = np.unique(np.column_stack([causes, codes]), axis=0, return_counts=True)
    causes, codes = distinct[:, :-1], distinct[:, -1]
    if len(np.unique(codes)) == 1:
        return DummyClassifier(strategy="prior").fit(causes, codes)
    logit = LogisticRegression(solver="newton-cholesky", tol=1e-6, max_iter=1000)
    weights = {"standardscaler__sample_weight": weight, "logisticregression__sample_weight": weight}
    return make_pipeline(StandardScaler(), logit).fit(causes, codes, **weights)
