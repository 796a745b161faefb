"""Attributions: the contribution of each feature to a model's logit, on the straight path from a baseline to a row.

Integrated gradients (Sundararajan, Taly and Yan 2017; CEC, Principle 1) of feature ``j`` are ``(x_j - b_j)`` times the
mean over the path of the logit's derivative by ``x_j``. They have a closed form in ``linear`` and ``piecewise``;
``quadrature`` serves any model with a gradient, and ``differences`` substitutes where there is none.

Scope: the choice among them for a network.
"""

from typing import TYPE_CHECKING

from tasks.numerics.attributions.quadrature import Quadrature, Rule
from tasks.numerics.networks.parameters import Network

if TYPE_CHECKING:
    from tasks.numerics.attributions.piecewise import Piecewise

__all__ = ["Quadrature", "Rule", "of_network"]


def of_network(network: Network, rule: Rule | None = None) -> "Piecewise | Quadrature":
    """The attributor of a network: the closed form of a ReLU network without a rule, else a quadrature."""
    if network.activation == "relu" and rule is None:
        from tasks.numerics.attributions.piecewise import Piecewise  # numba, and who only reads models needs none

        return Piecewise(network)
    return Quadrature(network, rule or Rule())
