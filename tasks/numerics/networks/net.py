"""The network that is trained: linear layers, one activation, dropout after each, one logit at the end.

Weights and dropout are drawn from a NumPy generator that the caller passes, so that every device sees the same draws
and torch's global state is neither read nor changed. The net is an ordinary ``nn.Sequential``.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from tasks.numerics.networks.settings import Activation, NetSettings

ACTIVATIONS: Final[dict[Activation, type[nn.Module]]] = {"relu": nn.ReLU, "softplus": nn.Softplus, "silu": nn.SiLU}


def build(inputs: int, settings: NetSettings, rng: np.random.Generator) -> nn.Sequential:
    """A net of ``inputs`` features with fresh weights in float32, in training mode.

    Weights and biases are uniform within 1 / sqrt(inputs of the layer), which is torch's own default.
    """
    layers: list[nn.Module] = []
    for width in settings.hidden:
        layers += [_linear(inputs, width, rng), ACTIVATIONS[settings.activation](), nn.Dropout(settings.dropout)]
        inputs = width
    return nn.Sequential(*layers, _linear(inputs, 1, rng))


def linear_layers(net: nn.Sequential) -> list[nn.Linear]:
    """The linear layers, first to last."""
    return [layer for layer in net if isinstance(layer, nn.Linear)]


def activation(net: nn.Sequential) -> nn.Module:
    """The activation between the layers.

    Raises:
        ValueError: If there is none, or one that no setting names.
    """
    for layer in net:
        if isinstance(layer, tuple(ACTIVATIONS.values())):
            return layer
    raise ValueError(f"the net has no activation among {', '.join(ACTIVATIONS)}; build it with training.net.build")


def kept_units(net: nn.Sequential, rows: int, rng: np.random.Generator) -> list[Tensor] | None:
    """For each hidden layer which units dropout keeps, ``(rows, width)``: 0, or 1 / (1 - p) so that the mean is 1."""
    rates = [layer.p for layer in net if isinstance(layer, nn.Dropout)]
    if not any(rates):
        return None
    widths = [layer.out_features for layer in linear_layers(net)[:-1]]
    draws = torch.split(torch.from_numpy(rng.random((rows, sum(widths)), dtype=np.float32)), widths, dim=1)
    return [(draw >= rate).float().div_(1 - rate) for draw, rate in zip(draws, rates, strict=True)]


def logits(net: nn.Sequential, inputs: Tensor, kept: Sequence[Tensor] | None = None) -> Tensor:
    """Logits ``(r,)`` of rows ``(r, d)``; without ``kept`` nothing is dropped, as in ``net.eval()``."""
    *hidden, last = linear_layers(net)
    act = activation(net)
    values = inputs
    for at, layer in enumerate(hidden):
        values = act(layer(values))
        if kept is not None:
            values = values * kept[at]
    out: Tensor = last(values).squeeze(1)
    return out


def _linear(inputs: int, outputs: int, rng: np.random.Generator) -> nn.Linear:
    """A linear layer whose weights are drawn from ``rng``."""
    layer: nn.Linear = skip_init(nn.Linear, inputs, outputs)  # type: ignore[no-untyped-call] # nn.Linear would draw from torch's global state
    bound = inputs**-0.5
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.from_numpy(rng.uniform(-bound, bound, tuple(parameter.shape))))
    return layer
