"""Integrated gradients of ReLU networks in closed form.

Scope: the attributor. The loops over stretches of constant gradient: ``piecewise_kernel``.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import numba
import numpy as np

from schemas.errors import SpecError
from tasks.numerics.arrays import Floats
from tasks.numerics.attributions import piecewise_kernel
from tasks.numerics.attributions.piecewise_kernel import Layers, Stack
from tasks.numerics.networks.parameters import Network

ROWS_AT_ONCE = 2048
"""Lines whose first pre-activations are held at the same time, for each thread."""


@dataclass(frozen=True)
class Piecewise:
    """Exact integrated gradients of a ReLU network of any depth (Sundararajan et al. 2017; CEC, Principle 1)."""

    network: Network
    name: ClassVar[str] = "integrated gradients, closed form"
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Hold to networks whose gradient is constant between kinks.

        Raises:
            SpecError: The network has another activation.
        """
        if self.network.activation != "relu":
            message = f"the closed form is of ReLU networks, and this one has {self.network.activation!r}"
            raise SpecError(f"{message}; use the quadrature")

    def logit(self, x: Floats) -> Floats:
        """``(r,)`` logits of rows ``(r, p)``."""
        return self.network.logit(x)

    def attribute(self, x: Floats, baseline: Floats) -> Floats:
        """``(r, p)`` attributions of rows ``(r, p)``, each from its own baseline ``(r, p)``; zero where they are equal.

        By threads of our own: numba's bear only one caller at a time, and stages of a flow may run at the same time.
        """
        attributions = np.empty(x.shape)
        parts = [slice(start, start + ROWS_AT_ONCE) for start in range(0, len(x), ROWS_AT_ONCE)]

        def fill(part: slice) -> None:
            attributions[part] = self._attribute(x[part], baseline[part])

        with ThreadPoolExecutor(numba.config.NUMBA_NUM_THREADS) as pool:
            list(pool.map(fill, parts))
        return attributions

    def _attribute(self, x: Floats, baseline: Floats) -> Floats:
        first, later = self.network.weights[0], self.network.weights[1:]
        way = x - baseline
        if not later:
            return way * first
        start, change = baseline @ first.T + self.network.biases[0], way @ first.T
        flow = np.empty(start.shape)
        layers = _layers(self.network)
        piecewise_kernel.integrate(start, change, layers, _stack(layers), flow)
        return way * (flow @ first)


def _layers(network: Network) -> Layers:
    """All layers after the first, as the kernel reads them."""
    inner = network.weights[1:-1]
    widths = np.array([len(bias) for bias in network.biases[:-1]], np.int64)
    columns = np.zeros((len(inner), widths.max(), widths.max()))
    biases = np.zeros((len(inner), widths.max()))
    for layer, (weight, bias) in enumerate(zip(inner, network.biases[1:-1], strict=True)):
        columns[layer, : weight.shape[1], : weight.shape[0]] = weight.T
        biases[layer, : len(bias)] = bias
    return Layers(columns, biases, network.weights[-1][0].copy(), widths)


def _stack(layers: Layers) -> Stack:
    """Room for one line's walk."""
    depth, width = len(layers.widths), layers.widths.max()
    start, change, switch, inner, slope, total, flow = np.empty((7, depth, width))
    order, switched = np.empty((depth, width), np.int64), np.empty(depth, np.int64)
    since, share = np.empty((2, depth))
    return Stack(start, change, switch, order, inner, slope, total, flow, switched, since, share)
