"""Conditional moments and quantiles of mediators."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from schemas.errors import DataQualityError
from schemas.terms import Kind
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.encoding import Columns, one_hot
from tasks.numerics.problem import Mediation, require_seen, require_trainable

# --------------------------------------------------------------------------------------------------------------------
# Conditional mean and spread of mediators: E[M | x, a], and the standardised residuals of applicants.
#
# The model is a linear regression with category-specific slopes, and gradient-boosted trees on its residuals. On linear
# data the trees stop early.
#
# Generators standardise mediators by these moments. Their results are compared with the mean: a generator that does no
# better has learnt nothing about the applicant.


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
        if not self.regressors:  # every mediator has categories
            return np.empty((self.categories, n, 0))
        by_category = [np.full(n, number) for number in range(self.categories)]
        return np.stack(
            [
                np.stack(
                    [regressor.predict(inputs, category, self.categories) for regressor in self.regressors], axis=1
                )
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
        prediction: Floats = self.linear.predict(_design(inputs, category, categories))
        if self.trees is not None:
            prediction = prediction + self.trees.predict(np.column_stack([inputs, category]))
        return prediction


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
    """Values ``(n, q)`` minus those of ``potential``, ``(k, n, q)``, for each row in its factual category."""
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
    residual = target - linear.predict(design)
    if not inputs.shape[1] or len(target) < _FOR_TREES:
        return Boosted(linear, None)
    # The column of categories, which comes after those of the covariates.
    last: Bools = np.arange(inputs.shape[1] + 1) == inputs.shape[1]
    trees = HistGradientBoostingRegressor(
        max_iter=300, max_leaf_nodes=8, categorical_features=last, early_stopping=True, random_state=seed
    )
    return Boosted(linear, trees.fit(np.column_stack([inputs, category]), residual))


def _design(inputs: Floats, category: Longs, categories: int) -> Floats:
    """Covariates, category, and their products: a slope for each category."""
    member = (category[:, None] == np.arange(1, categories)).astype(np.float64)
    products = (inputs[:, :, None] * member[:, None, :]).reshape(len(inputs), -1)
    return np.hstack([inputs, member, products])


# --------------------------------------------------------------------------------------------------------------------
# The counterfactual of a scalar continuous mediator by quantiles (Ma et al., Lemma 1; Nasr-Esfahany et al. 2023).
#
# In category a', a mediator keeps its rank among those with the same covariates: F^-1(F(m | x, a) | x, a'). That is
# exact where the mediator increases with its noise in every category. Lemma 1 allows one other solution, with reversed
# ranks: F^-1(1 - F(m | x, a) | x, a').
#
# The conditional distribution has a location and a spread, both regressed on covariates and category, and one shape of
# the residuals per category. If the shape depends on the covariates, ``ranks`` are not uniform among similar
# applicants.
# Each mediator is mapped separately.


FEWEST_ROWS = 20
"""Of a category: fewer ranks than this are no distribution."""


@dataclass(frozen=True)
class Shape:
    """The distribution of one standardised mediator within a category, as points of a strictly increasing curve."""

    values: Floats
    """``(u,)`` ascending, no two alike."""
    ranks: Floats
    """``(u,)`` in (0, 1): mean place of each value among the rows."""

    def rank(self, values: Floats) -> Floats:
        """Rank of values ``(n,)``, in (0, 1)."""
        return np.interp(values, self.values, self.ranks)

    def beyond(self, values: Floats) -> Floats:
        """How far values ``(n,)`` lie outside of all that the shape was made of."""
        return values - np.clip(values, self.values[0], self.values[-1])

    def at(self, ranks: Floats) -> Floats:
        """The values at ranks ``(n,)``; the first or last one beyond these."""
        return np.interp(ranks, self.ranks, self.values)


@dataclass(frozen=True)
class QuantileMap:
    """Conditional distributions of ``p`` mediators."""

    template: Mediation
    """The training rows, without any."""
    moments: Moments
    shapes: tuple[tuple[Shape, ...], ...]
    """By category and mediator."""

    def imagine(self, rows: Mediation, flipped: bool = False) -> Floats:
        """Mediators ``(1, k, n, p)`` in the user's units, what was observed in a row's own category.

        Args:
            rows: Applicants.
            flipped: Whether ranks are turned round: the other solution of Lemma 1.

        Raises:
            DataQualityError: If categories or columns are not those of the training.
        """
        require_seen(rows, self.template)
        location, spread = self.moments.potential(rows.covariates)
        values = _standardised(self.moments, rows)
        mapped = np.stack([self._mapped(values, rows.category, to, flipped) for to in range(len(rows.categories))])
        imagined = location + spread * mapped
        imagined[rows.category, np.arange(len(rows))] = rows.mediators.values
        return imagined[None]

    def ranks(self, rows: Mediation) -> Floats:
        """F(m | x, a) of every mediator, ``(n, p)`` in (0, 1): uniform, given covariates and category, if it fits."""
        values, ranks = _standardised(self.moments, rows), np.empty(rows.mediators.values.shape)
        for number, shapes in enumerate(self.shapes):
            of = rows.category == number
            ranks[of] = np.column_stack([shape.rank(values[of, at]) for at, shape in enumerate(shapes)])
        return ranks

    def _mapped(self, values: Floats, category: Longs, to: int, flipped: bool) -> Floats:
        """Standardised mediators ``(n, p)`` of another category at the same ranks, or at those turned round."""
        mapped = np.empty_like(values)
        for number, shapes in enumerate(self.shapes):
            of = category == number
            for at, (source, target) in enumerate(zip(shapes, self.shapes[to], strict=True)):
                rank, beyond = source.rank(values[of, at]), source.beyond(values[of, at])
                mapped[of, at] = target.at(1 - rank) - beyond if flipped else target.at(rank) + beyond
        return mapped


def fit_quantiles(rows: Mediation, seed: int) -> QuantileMap:
    """Fit the conditional distribution of every mediator.

    Args:
        rows: Training rows.
        seed: Of the regressions.

    Raises:
        DataQualityError: If a mediator is not continuous, or ``mediation.require_trainable`` refuses the rows.
    """
    is_continuous: Bools = np.array([kind is Kind.CONTINUOUS for kind in rows.mediators.kinds], dtype=np.bool_)
    unsupported = [name for name, continuous in zip(rows.mediators.names, is_continuous, strict=True) if not continuous]
    if unsupported:
        raise DataQualityError(
            f"the quantile map needs continuous mediators, and {', '.join(map(repr, unsupported))} is none; "
            "map the continuous ones alone, or use the adversarial generators"
        )
    require_trainable(rows, FEWEST_ROWS)
    moments = fit_moments(rows, seed)
    values = _standardised(moments, rows)
    by_category = (values[rows.category == number] for number in range(len(rows.categories)))
    shapes = tuple(tuple(_shape(column) for column in category_values.T) for category_values in by_category)
    return QuantileMap(rows.template, moments, shapes)


def _standardised(moments: Moments, rows: Mediation) -> Floats:
    """Mediators ``(n, p)`` less their mean among people alike, over the spread there."""
    location, spread = moments.potential(rows.covariates)
    return (rows.mediators.values - own(location, rows.category)) / own(spread, rows.category)


def _shape(values: Floats) -> Shape:
    """Distinct values and their mean ranks."""
    distinct, counts = np.unique(values, return_counts=True)
    below = np.cumsum(counts) - counts
    return Shape(distinct, (below + counts / 2) / len(values))
