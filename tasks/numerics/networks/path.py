"""Differentiable integrated gradients of the logit, for training (Sundararajan et al. 2017, equation 1).

Attributions of row x from baseline b are ``(x - b)`` times the mean gradient of the logit at T midpoints of the
straight path from b to x, without dropout. For a ReLU net with two hidden layers the mean gradient has a closed form
(``switches``) whose derivative by the weights needs no second pass; other nets use autograd twice.
"""

import torch
from torch import Tensor, nn

from tasks.numerics.networks.net import activation, linear_layers, logits
from tasks.numerics.networks.switches import mean_unit_gradient

_LAYERS = 3
"""Linear layers of the nets that have the closed form."""


def integrated_gradients(net: nn.Sequential, inputs: Tensor, baseline: Tensor, steps: int) -> Tensor:
    """Attributions ``(r, d)`` of rows ``(r, d)`` from baselines ``(r, d)``, a graph by the weights behind them.

    The sum over features is the change of the logit from baseline to row up to the error of ``steps`` midpoints.
    """
    if isinstance(activation(net), nn.ReLU) and len(linear_layers(net)) == _LAYERS:
        return _closed_form(net, inputs, baseline, steps)
    return twice_differentiated(net, inputs, baseline, steps)


def twice_differentiated(net: nn.Sequential, inputs: Tensor, baseline: Tensor, steps: int) -> Tensor:
    """The same by automatic differentiation, for any activation."""
    along = (torch.arange(steps, dtype=inputs.dtype, device=inputs.device) + 0.5) / steps
    points = (baseline + along[:, None, None] * (inputs - baseline)).flatten(0, 1).requires_grad_()
    (gradient,) = torch.autograd.grad(logits(net, points).sum(), points, create_graph=True)
    return (inputs - baseline) * gradient.view(steps, *inputs.shape).mean(0)


def _closed_form(net: nn.Sequential, inputs: Tensor, baseline: Tensor, steps: int) -> Tensor:
    """Attributions of a ReLU net with two hidden layers."""
    first, second, last = linear_layers(net)
    away = inputs - baseline
    with torch.no_grad():
        start, change = first(baseline), away @ first.weight.T
    by_unit = mean_unit_gradient(start, change, second.weight, second.bias, last.weight[0], steps)
    return away * (by_unit @ first.weight)
