"""Integrated gradients of ReLU networks in closed form."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numba
import numpy as np

from schemas.errors import SpecError
from tasks.numerics.arrays import Floats, Longs
from tasks.numerics.networks.network import Network

# --------------------------------------------------------------------------------------------------------------------
# Exact integrals of the gradient of a ReLU network along straight lines, compiled.
#
# On a line the pre-activations of the first layer are affine, so each of its units switches at most once. Between two
# switches those of the second layer are affine too, and so on down to stretches of constant gradient. A switch changes
# one unit, so the next layer moves by a multiple of one column of weights; the contribution of a unit to the logit is a
# cumulative sum, read where it switches. Nothing is evaluated twice, and nothing is approximated.
#
# The walk over nested stretches has its own stack, because numba cannot cache recursive functions.


class Layers(NamedTuple):
    """All layers after the first, padded to one width ``h``. A tuple, because numba takes tuples."""

    columns: Floats
    """``(d - 1, h, h)`` weights, transposed: a row holds what one unit gives to the units of the next layer."""
    biases: Floats
    """``(d - 1, h)``"""
    output: Floats
    """``(h_d,)`` weights of the logit."""
    widths: Longs
    """``(d,)`` units of each hidden layer."""


class Stack(NamedTuple):
    """For each hidden layer, the stretch that is being walked; its ends are 0 and 1."""

    start: Floats
    """``(d, h)`` pre-activations at the start of the stretch."""
    change: Floats
    """``(d, h)`` what they gain until its end."""
    switch: Floats
    """``(d, h)`` where each unit switches, inside (0, 1); ``inf`` where it does not."""
    order: Longs
    """``(d, h)`` units by their switches."""
    inner: Floats
    """``(d, h)`` the next layer's pre-activations are ``inner + s * slope`` until the next switch."""
    slope: Floats
    total: Floats
    """``(d, h)`` integral up to ``since`` of the logit's gradient by the next layer's pre-activations."""
    flow: Floats
    """``(d, h)`` the same by this layer's own, over the whole stretch."""
    switched: Longs
    """``(d,)`` how many units have switched."""
    since: Floats
    """``(d,)`` how far the stretch has been walked."""
    share: Floats
    """``(d,)`` length, in this stretch, of the one that the next layer is walking."""


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def integrate(start: Floats, change: Floats, layers: Layers, stack: Stack, flow: Floats) -> None:
    """Fill ``flow`` with the mean, along each line, of the logit's gradient by the first pre-activations.

    Args:
        start: ``(r, h_1)`` pre-activations of the first hidden layer where each line begins.
        change: ``(r, h_1)`` what they gain until it ends.
        layers: The network after them.
        stack: Room to work in; any content.
        flow: ``(r, h_1)``, written.
    """
    width = start.shape[1]
    for row in range(start.shape[0]):
        stack.start[0, :width] = start[row]
        stack.change[0, :width] = change[row]
        _enter(layers, stack, 0)
        level = 0
        while level >= 0:
            if stack.since[level] < 1.0:
                level = _advance(layers, stack, level)
            else:
                _leave(layers, stack, level)
                level -= 1
        flow[row] = stack.flow[0, :width]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _enter(layers: Layers, stack: Stack, level: int) -> None:
    """Begin a stretch after ``start`` and ``change`` are set; for the last hidden layer, finish it too."""
    width = layers.widths[level]
    start, change = stack.start[level, :width], stack.change[level, :width]
    flow = stack.flow[level, :width]
    if level == len(layers.widths) - 1:
        _fill_active(flow, start, change)
        flow *= layers.output
        stack.since[level] = 1.0
        return
    switch, columns, following = stack.switch[level, :width], layers.columns[level], layers.widths[level + 1]
    for unit in range(width):
        switch[unit] = _switch(start[unit], change[unit])
    stack.order[level, :width] = np.argsort(switch)
    stack.switched[level], stack.since[level] = 0, 0.0
    inner, slope = stack.inner[level, :following], stack.slope[level, :following]
    inner[:], slope[:], flow[:] = layers.biases[level, :following], 0.0, 0.0
    stack.total[level, :following] = 0.0
    for unit in range(width):
        if _on_at_start(start[unit], change[unit]):
            _add(inner, start[unit], columns[unit])
            _add(slope, change[unit], columns[unit])


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _advance(layers: Layers, stack: Stack, level: int) -> int:
    """Switch the next unit, or have the next layer walk up to where it switches; the layer to go on with."""
    width, following = layers.widths[level], layers.widths[level + 1]
    inner, slope = stack.inner[level, :following], stack.slope[level, :following]
    done, since = stack.switched[level], stack.since[level]
    unit = stack.order[level, min(done, width - 1)]
    until = min(stack.switch[level, unit], 1.0) if done < width else 1.0
    if until > since:
        share = until - since
        start, change = stack.start[level + 1], stack.change[level + 1]
        for place in range(following):
            start[place] = inner[place] + since * slope[place]
            change[place] = share * slope[place]
        stack.since[level], stack.share[level] = until, share
        _enter(layers, stack, level + 1)
        return level + 1
    start, change, column = stack.start[level], stack.change[level], layers.columns[level, unit]
    turn = -1.0 if _on_at_start(start[unit], change[unit]) else 1.0
    stack.flow[level, unit] = -turn * _owed(column, stack.total[level, :following])
    _add(inner, turn * start[unit], column)
    _add(slope, turn * change[unit], column)
    stack.switched[level] = done + 1
    return level


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _leave(layers: Layers, stack: Stack, level: int) -> None:
    """End a stretch: settle the units that are on at its end, and hand the integral to the layer before."""
    width = layers.widths[level]
    flow = stack.flow[level, :width]
    if level < len(layers.widths) - 1:
        start, change, switch = stack.start[level], stack.change[level], stack.switch[level]
        columns, total = layers.columns[level], stack.total[level, : layers.widths[level + 1]]
        for unit in range(width):
            if _on_at_start(start[unit], change[unit]) != (switch[unit] < 1.0):
                flow[unit] += _owed(columns[unit], total)
    if level > 0:
        _add(stack.total[level - 1, :width], stack.share[level - 1], flow)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _switch(start: float, change: float) -> float:
    """Where a unit switches, inside (0, 1); ``inf`` where it does not."""
    if start * change < 0.0:
        at = -start / change
        if 0.0 < at < 1.0:
            return at
    return np.inf


@numba.njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def _fill_active(active: Floats, start: Floats, change: Floats) -> None:
    """Fill in the share of the stretch on which each unit is on: what its output gains, by what its input gains."""
    for unit in range(start.shape[0]):
        end = start[unit] + change[unit]
        gained = max(end, 0.0) - max(start[unit], 0.0)
        still = 1.0 if end > 0.0 else 0.0
        active[unit] = gained / (end - start[unit]) if end != start[unit] else still


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _on_at_start(start: float, change: float) -> bool:
    """Whether a unit is on just after the start. One that stays at zero is off, as in torch."""
    return start > 0.0 or (start == 0.0 and change > 0.0)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _add(total: Floats, factor: float, values: Floats) -> None:
    for place in range(total.shape[0]):
        total[place] += factor * values[place]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _owed(column: Floats, total: Floats) -> float:
    """What the logit owes to a unit that was on from the start of the stretch to where ``total`` was read."""
    owed = 0.0
    for place in range(total.shape[0]):
        owed += column[place] * total[place]
    return owed


# --------------------------------------------------------------------------------------------------------------------
# Integrated gradients of ReLU networks in closed form.
#
# Scope: the attributor. The loops over stretches of constant gradient: ``piecewise_kernel``.


ROWS_AT_ONCE = 2048
"""Lines whose first pre-activations are held at the same time, for each thread."""


@dataclass(frozen=True)
class Piecewise:
    """Exact integrated gradients of a ReLU network of any depth (Sundararajan et al. 2017; CEC, Principle 1)."""

    network: Network
    name: ClassVar[str] = "integrated gradients, closed form"
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Accept only networks with a constant gradient between kinks.

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
        layers_network = self.network
        inner = layers_network.weights[1:-1]
        widths = np.array([len(bias) for bias in layers_network.biases[:-1]], np.int64)
        columns = np.zeros((len(inner), widths.max(), widths.max()))
        biases = np.zeros((len(inner), widths.max()))
        for layer, (weight, bias) in enumerate(zip(inner, layers_network.biases[1:-1], strict=True)):
            columns[layer, : weight.shape[1], : weight.shape[0]] = weight.T
            biases[layer, : len(bias)] = bias
        layers = Layers(columns, biases, layers_network.weights[-1][0].copy(), widths)
        depth, width = len(layers.widths), layers.widths.max()
        stack_start, stack_change, switch, stack_inner, slope, total, stack_flow = np.empty((7, depth, width))
        order, switched = np.empty((depth, width), np.int64), np.empty(depth, np.int64)
        since, share = np.empty((2, depth))
        stack = Stack(
            stack_start, stack_change, switch, order, stack_inner, slope, total, stack_flow, switched, since, share
        )
        integrate(start, change, layers, stack, flow)
        return way * (flow @ first)
