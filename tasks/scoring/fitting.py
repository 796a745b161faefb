"""Fits models by their kind in the spec: classifiers of scikit-learn, and a network of our own.

Each takes encoded features and gives the probability of the favourable decision. Choice of training rows:
``decision_makers``.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.attributions.linear import Linear, of_logistic_regression
from tasks.numerics.networks.parameters import Network, of_module

if TYPE_CHECKING:
    from sklearn.base import ClassifierMixin

Fit: TypeAlias = "Callable[[Floats, Bools], Network | Linear | ClassifierMixin]"
"""From inputs ``(r, d)`` and labels ``(r,)`` to a model that was fitted to them."""


def fit_of(kind: str, seed: int) -> Fit:
    """How models of a kind are fitted; the same rows give the same model."""
    fits: dict[str, Fit] = {
        "logistic_regression": partial(_logistic, seed),
        "random_forest": partial(_forest, seed),
        "gradient_boosting": partial(_boosting, seed),
        "net": partial(_net, seed),
    }
    return fits[kind]


def _logistic(seed: int, x: Floats, y: Bools) -> Linear:
    """The coefficients of a logistic regression, which are all that there is of it."""
    from sklearn.linear_model import LogisticRegression

    return of_logistic_regression(LogisticRegression(max_iter=1000, random_state=seed).fit(x, y))


def _forest(seed: int, x: Floats, y: Bools) -> "ClassifierMixin":
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(200, min_samples_leaf=5, random_state=seed).fit(x, y)


def _boosting(seed: int, x: Floats, y: Bools) -> "ClassifierMixin":
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=seed).fit(x, y)


def _net(seed: int, x: Floats, y: Bools) -> Network:
    """A network trained for prediction alone, on inputs by their mean and deviation; these move into its first layer.

    Raises:
        DataQualityError: The loss is no longer finite.
    """
    from tasks.numerics.networks.settings import TrainingSettings
    from tasks.numerics.networks.training import UNMATCHED, TrainingRows, train  # torch, seconds to import

    centre, scale = x.mean(axis=0), np.where(np.ptp(x, axis=0) > 0, x.std(axis=0), 1.0)
    rows = TrainingRows(
        inputs=(x - centre) / scale,
        favourable=y,
        protected=np.zeros(len(y), dtype=bool),  # no term of the loss looks at groups or matches
        match=np.full(len(y), UNMATCHED),
    )
    settings = TrainingSettings(lambda_eo=0.0, lambda_cec=0.0, seed=seed, device="cpu")
    return of_module(train(rows, settings).net).before_scaling(centre, scale)
