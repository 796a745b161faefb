"""Conditional mean and spread of mediators: E[M | x, a], and the standardised residuals of applicants.

The model is a linear regression with category-specific slopes, and gradient-boosted trees on its residuals. On linear
data the trees stop early.

Generators standardise mediators by these moments. Their results are compared with the mean: a generator that does no
better has learnt nothing about the applicant.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.columns import Columns, one_hot
from tasks.numerics.mediation import Mediation

_LEAST_SPREAD = 0.05
"""Of the average spread: a regression may foretell none at all."""

_FOR_TREES = 100
"""Fewer rows than this leave too few to stop the trees by."""


@dataclass(frozen=True)
class ConditionalMean:
    """Fitted regressions of ``q`` targets."""

    regressors: tuple["Boosted", ...]
    categories: int
    """``k``."""

    def potential(self, covariates: Columns) -> Floats:
        """``(k, n, q)`` the targets foretold had everybody been of a category, in their units."""
        inputs, n = inputs_of(covariates), len(covariates.values)
        by_category = [np.full(n, number) for number in range(self.categories)]
        return np.stack(
            [
                np.stack([one.predict(inputs, category, self.categories) for one in self.regressors], axis=1)
                for category in by_category
            ]
        )


@dataclass(frozen=True)
class Moments:
    """Conditional mean and spread of ``q`` mediators."""

    mean: ConditionalMean
    spread: ConditionalMean
    """Of the mean distance from the mean."""
    floor: Floats
    """``(q,)`` least spread."""

    def potential(self, covariates: Columns) -> tuple[Floats, Floats]:
        """``(k, n, q)`` mean, and spread, had everybody been of a category."""
        return self.mean.potential(covariates), np.maximum(self.spread.potential(covariates), self.floor)


@dataclass(frozen=True)
class Boosted:
    """A linear regression and the trees that were grown on its residuals."""

    linear: Any
    trees: Any | None

    def predict(self, inputs: Floats, category: Longs, categories: int) -> Floats:
        """``(n,)`` for covariates ``(n, d)`` and categories ``(n,)``."""
        found: Floats = self.linear.predict(_design(inputs, category, categories))
        if self.trees is not None:
            found = found + self.trees.predict(np.column_stack([inputs, category]))
        return found


def fit_mean(mediation: Mediation, seed: int) -> ConditionalMean:
    """Regress every numeric mediator on covariates and category.

    Args:
        mediation: Training rows.
        seed: Of the rows that the trees are stopped by.
    """
    return _fit(mediation, mediation.mediators.values[:, mediation.numeric], seed)


def fit_moments(mediation: Mediation, seed: int) -> "Moments":
    """Regress every numeric mediator, and its distance from what is foretold, on covariates and category."""
    values, mean = mediation.mediators.values[:, mediation.numeric], fit_mean(mediation, seed)
    apart = np.abs(residuals(mean.potential(mediation.covariates), mediation.category, values))
    return Moments(mean, _fit(mediation, apart, seed), _LEAST_SPREAD * apart.mean(axis=0))


def own(potential: Floats, category: Longs) -> Floats:
    """``(n, q)`` of each row in its own category, out of ``(k, n, q)``."""
    return potential[category, np.arange(len(category))]


def residuals(potential: Floats, category: Longs, values: Floats) -> Floats:
    """Values ``(n, q)`` less what ``potential``, ``(k, n, q)``, says of each row in its own category."""
    return values - own(potential, category)


def inputs_of(covariates: Columns) -> Floats:
    """Covariates ``(n, d)``, categories one input each; no column where there is no covariate."""
    return one_hot(covariates)[0] if covariates.names else np.zeros((len(covariates.values), 0))


def _fit(mediation: Mediation, targets: Floats, seed: int) -> ConditionalMean:
    """Regress targets ``(n, q)`` of the same rows."""
    inputs, k = inputs_of(mediation.covariates), len(mediation.categories)
    fitted = tuple(_boosted(inputs, mediation.category, k, target, seed) for target in targets.T)
    return ConditionalMean(fitted, k)


def _boosted(inputs: Floats, category: Longs, categories: int, target: Floats, seed: int) -> Boosted:
    design = _design(inputs, category, categories)
    linear = make_pipeline(StandardScaler(), Ridge(alpha=1e-3)).fit(design, target)
    left = target - linear.predict(design)
    if not inputs.shape[1] or len(target) < _FOR_TREES:
        return Boosted(linear, None)
    trees = HistGradientBoostingRegressor(
        max_iter=300, max_leaf_nodes=8, categorical_features=_last(inputs), early_stopping=True, random_state=seed
    )
    return Boosted(linear, trees.fit(np.column_stack([inputs, category]), left))


def _last(inputs: Floats) -> Bools:
    """The column of categories, which stands behind those of the covariates."""
    last: Bools = np.arange(inputs.shape[1] + 1) == inputs.shape[1]
    return last


def _design(inputs: Floats, category: Longs, categories: int) -> Floats:
    """Covariates, category, and their products: a slope for each category."""
    member = (category[:, None] == np.arange(1, categories)).astype(np.float64)
    products = (inputs[:, :, None] * member[:, None, :]).reshape(len(inputs), -1)
    return np.hstack([inputs, member, products])
