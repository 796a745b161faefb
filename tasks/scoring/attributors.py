"""Attributors by kind of model: chooses how a model that was read is explained.

Networks and linear models have a closed form or a gradient. Other classifiers are explained by the substitute if the
spec permits it. Reading models: ``models``.
"""

from typing import Any

from schemas.errors import SpecError
from tasks.numerics.attributions import Quadrature, of_network
from tasks.numerics.attributions.differences import Differences, log_odds
from tasks.numerics.attributions.linear import Linear, of_logistic_regression
from tasks.numerics.attributions.modules import Module
from tasks.numerics.explanation import Attributor
from tasks.numerics.networks.parameters import Network
from tasks.scoring.models import Readable, named, probabilities

LOG_ODDS = ("GradientBoostingClassifier", "HistGradientBoostingClassifier")
"""Classifiers whose decision function is the log odds where they minimise the log loss: no probability is clipped."""


def attributor(model: Readable, name: str, substitute: bool = False) -> Attributor:
    """What makes the attributions of a model, by the best way that its kind allows.

    Args:
        model: A network, a module, or a classifier for the second of its classes; pipelines of StandardScalers that end
            in a logistic regression count as linear.
        name: How messages call it.
        substitute: Whether ``Differences`` may stand in where there is no gradient.

    Raises:
        SpecError: It has no gradient, and no substitute was chosen.
    """
    if isinstance(model, Network):
        return of_network(model)
    if isinstance(model, Module):
        return Quadrature(model)
    if isinstance(model, Linear):
        return model
    linear = linear_form(model)
    if linear is not None:
        return linear
    kind = type(model).__name__
    if not substitute:
        message = f"{name} is a {kind}, which has no gradient to integrate; choose the substitute (path differences)"
        raise SpecError(f"{message} in the spec if that will do, or audit a network or a linear model")
    if kind in LOG_ODDS and model.loss == "log_loss":
        return Differences(lambda x: model.decision_function(named(model, x)))
    return Differences(lambda x: log_odds(probabilities(model, x)))


def linear_form(model: Any) -> Linear | None:
    """The logit of a network without hidden layers, or of a logistic regression behind any number of StandardScalers.

    None of other models.
    """
    if isinstance(model, Linear):
        return model
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
