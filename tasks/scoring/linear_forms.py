"""Which models have a logit that is linear in their inputs, and which classifiers give the log odds themselves."""

from typing import Any

from tasks.numerics.attributions.linear import Linear, of_logistic_regression
from tasks.numerics.networks.parameters import Network
from tasks.scoring.models import Apart

LOG_ODDS = ("GradientBoostingClassifier", "HistGradientBoostingClassifier")
"""Classifiers whose decision function is the log odds where they minimise the log loss: no probability is clipped."""


def linear_form(model: Any) -> Linear | None:
    """The logit of a network without hidden layers, or of a logistic regression behind any number of StandardScalers.

    None of other models.
    """
    if isinstance(model, Linear):
        return model
    if isinstance(model, Apart):
        return model.facts.linear
    if isinstance(model, Network):
        return Linear(model.weights[0][0], float(model.biases[0][0])) if len(model.weights) == 1 else None
    *scalers, last = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    if type(last).__name__ not in ("LogisticRegression", "LogisticRegressionCV"):
        return None
    if any(type(scaler).__name__ != "StandardScaler" for scaler in scalers):
        return None
    linear = of_logistic_regression(last)
    for scaler in reversed(scalers):
        centre = scaler.mean_ if scaler.with_mean else 0.0 * linear.coefficients
        linear = linear.before_scaling(centre, scaler.scale_ if scaler.with_std else 0.0 * linear.coefficients + 1)
    return linear
