"""Attributions: how much of a model's logit is owed to each feature, on the straight path from a baseline to a row.

Integrated gradients (Sundararajan, Taly and Yan 2017; CEC, Principle 1) of feature ``j`` are ``(x_j - b_j)`` times the
mean over the path of the logit's derivative by ``x_j``. Each kind of model has its own way to them: ``linear`` and
``piecewise`` in closed form, ``quadrature`` for whatever has a gradient; ``differences`` stands in where there is none.

Here belong the choice among them for a network and the check that all share: attributions sum to what the logit gains.
"""

from typing import Protocol

import numpy as np

from tasks.numerics.arrays import Floats
from tasks.numerics.attributions.piecewise import Piecewise
from tasks.numerics.attributions.quadrature import Quadrature, Rule
from tasks.numerics.networks.parameters import Network

__all__ = ["TOLERANCE", "Piecewise", "Quadrature", "Rule", "Scored", "completeness_error", "of_network"]

TOLERANCE = 1e-3
"""Completeness error below which attributions count as complete (CEC, section on integrated gradients)."""


class Scored(Protocol):
    """What has a logit."""

    def logit(self, x: Floats) -> Floats:
        """``(r,)`` logits of rows ``(r, p)``."""
        ...


def of_network(network: Network, rule: Rule | None = None) -> Piecewise | Quadrature:
    """The attributor of a network: the closed form of a ReLU network unless a rule is asked for, else a quadrature."""
    if network.activation == "relu" and rule is None:
        return Piecewise(network)
    return Quadrature(network, rule or Rule())


def completeness_error(model: Scored, x: Floats, baseline: Floats, attributions: Floats) -> Floats:
    """``|sum_j IG_j - (f(x) - f(b))| / max(1, |f(x) - f(b)|)`` of each row, ``(r,)``, for the logit ``f``.

    Args:
        model: What the attributions are of.
        x: ``(r, p)`` rows.
        baseline: ``(r, p)`` where each row's path starts.
        attributions: ``(r, p)``.
    """
    gain = model.logit(x) - model.logit(baseline)
    error: Floats = np.abs(attributions.sum(axis=1) - gain) / np.maximum(1.0, np.abs(gain))
    return error
