"""Attributors by kind of model: chooses how a model that was read is explained.

Networks and linear models have a closed form or a gradient. Other classifiers are explained by the substitute if the
spec permits it. Reading models: ``models``.
"""

from schemas.errors import SpecError
from tasks.numerics.attributions import Quadrature, of_network
from tasks.numerics.attributions.differences import Differences, log_odds
from tasks.numerics.attributions.linear import Linear
from tasks.numerics.attributions.modules import Module
from tasks.numerics.explanation import Attributor
from tasks.numerics.networks.parameters import Network
from tasks.scoring.linear_forms import LOG_ODDS, linear_form
from tasks.scoring.models import Apart, Readable, named, probabilities


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
    if isinstance(model, Module) or (isinstance(model, Apart) and model.facts.gradient):
        return Quadrature(model)
    if isinstance(model, Linear):
        return model
    linear = linear_form(model)
    if linear is not None:
        return linear
    kind = model.facts.kind if isinstance(model, Apart) else type(model).__name__
    if not substitute:
        message = f"{name} is a {kind}, which has no gradient to integrate; choose the substitute (path differences)"
        raise SpecError(f"{message} in the spec if that will do, or audit a network or a linear model")
    if isinstance(model, Apart):
        return Differences(model.logit if model.facts.log_odds else lambda x: log_odds(model.probability(x)))
    if kind in LOG_ODDS and model.loss == "log_loss":
        return Differences(lambda x: model.decision_function(named(model, x)))
    return Differences(lambda x: log_odds(probabilities(model, x)))
