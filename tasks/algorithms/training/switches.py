"""Where the units of a ReLU net with two hidden layers switch along a straight path, and what follows for gradients.

Along ``b + s (x - b)`` the first layer is affine in s, so each of its units switches at most once. Between switches the
second layer is affine too: its intercept and slope change by one column of weights at each switch. So T steps need
two matrix products for the start of the path and one update per switch, instead of T matrix products.

With masks m1 and m2 of the two layers the gradient at a step is ``W1' (m1 * (V m2))``, ``V = W2' diag(w3)``. Its mean
over the path needs the mean of m1_i m2_j. As m1_i is constant but for one switch, that is a count of m2_j up to the
switch, or from it on: a cumulative count, read off where i switches.
"""

from typing import Any

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import Function

Array = NDArray[Any]


def mean_unit_gradient(start: Tensor, change: Tensor, weight: Tensor, bias: Tensor, out: Tensor, steps: int) -> Tensor:
    """Mean over the path of the derivative of the logit by the first hidden layer's input, ``(r, p)``.

    Gradients flow to ``weight`` and ``out``; the masks are constant almost everywhere. On the CPU switches are followed
    one by one; elsewhere all steps are multiplied out, which suits a device that does nothing one by one.

    Args:
        start: ``(r, p)`` input of the first hidden layer at the start of each path.
        change: ``(r, p)`` what is added to it by the end.
        weight: ``(q, p)`` weights of the second layer.
        bias: ``(q,)`` its biases.
        out: ``(q,)`` weights of the logit.
        steps: Midpoints T of the path.
    """
    factors = weight * out[:, None]
    start, change = start.detach(), change.detach()
    if start.device.type == "cpu":
        summed: Tensor = _Followed.apply(factors, start, change, weight.detach(), bias.detach(), steps)  # type: ignore[no-untyped-call]
        return summed / steps
    return multiplied_out(factors, start, change, weight.detach(), bias.detach(), steps)


def multiplied_out(factors: Tensor, start: Tensor, change: Tensor, weight: Tensor, bias: Tensor, steps: int) -> Tensor:
    """The same with a matrix product per step; ``factors`` is ``(q, p)``."""
    along = (torch.arange(steps, dtype=start.dtype, device=start.device) + 0.5) / steps
    first = torch.addcmul(start, along[:, None, None], change)
    second = torch.relu(first) @ weight.T + bias
    return (((second > 0).to(factors.dtype) @ factors) * (first > 0)).mean(0)


class _Followed(Function):
    """Sum over the steps, following the switches; the derivative by ``factors`` uses the counts kept on the way."""

    @staticmethod
    def forward(
        ctx: Any, factors: Tensor, start: Tensor, change: Tensor, weight: Tensor, bias: Tensor, steps: int
    ) -> Tensor:
        on = start > 0
        stays = start + change > 0
        intercept = torch.addmm(bias, start * on, weight.T)
        slope = (change * on) @ weight.T
        switch_row, switch_unit = np.nonzero((on != stays).numpy())
        counts, at_switch = _follow(
            start.numpy(), change.numpy(), intercept.numpy(), slope.numpy(), weight.T.contiguous().numpy(),
            switch_row, switch_unit, steps,
        )  # fmt: skip
        ctx.counts, ctx.stays, ctx.switches = torch.from_numpy(counts), stays, (switch_row, switch_unit, at_switch)
        summed: Tensor = (ctx.counts @ factors) * stays
        _add_switches(summed.numpy(), factors.T.contiguous().numpy(), start.numpy(), *ctx.switches)
        ctx.start = start
        return summed

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        by_unit = (gradient * ctx.stays).T @ ctx.counts
        _add_gradient(by_unit.numpy(), gradient.contiguous().numpy(), ctx.start.numpy(), *ctx.switches)
        return by_unit.T, None, None, None, None, None


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _follow(
    start: Array, change: Array, intercept: Array, slope: Array, columns: Array, row: Array, unit: Array, steps: int
) -> tuple[Array, Array]:
    """Count for each row the steps at which second-layer units are on: in all, ``(r, q)``, and before each switch.

    ``intercept`` and ``slope`` of the second layer are those at the start of the path and are overwritten; ``columns``
    is ``(p, q)``. Switches are given by row.
    """
    rows, units = intercept.shape
    counts = np.zeros((rows, units), dtype=start.dtype)
    at_switch = np.zeros((len(row), units), dtype=start.dtype)
    first = 0
    for r in range(rows):
        last = first
        while last < len(row) and row[last] == r:
            last += 1
        when = -start[r, unit[first:last]] / change[r, unit[first:last]] * steps - 0.5
        order = np.argsort(when)
        place = 0
        for t in range(steps):
            while place < len(order) and when[order[place]] <= t:
                switch = first + order[place]
                i = unit[switch]
                sign = -1.0 if start[r, i] > 0 else 1.0
                z, dz = start.dtype.type(sign * start[r, i]), start.dtype.type(sign * change[r, i])
                for j in range(units):
                    at_switch[switch, j] = counts[r, j]
                    intercept[r, j] += z * columns[i, j]
                    slope[r, j] += dz * columns[i, j]
                place += 1
            s = start.dtype.type((t + 0.5) / steps)
            for j in range(units):
                counts[r, j] += intercept[r, j] + s * slope[r, j] > 0
        for left in range(place, len(order)):  # switches after the last midpoint
            at_switch[first + order[left]] = counts[r]
        first = last
    return counts, at_switch


@numba.njit(cache=True, fastmath=True)  # type: ignore[untyped-decorator]
def _add_switches(summed: Array, rows_of_factors: Array, start: Array, row: Array, unit: Array, counts: Array) -> None:
    """Add what units that switch off saw before, and take away what units that switch on did not see."""
    for switch in range(len(row)):
        r, i = row[switch], unit[switch]
        seen = counts[switch, 0] * rows_of_factors[i, 0]
        for j in range(1, counts.shape[1]):
            seen += counts[switch, j] * rows_of_factors[i, j]
        summed[r, i] += seen if start[r, i] > 0 else -seen


@numba.njit(cache=True, fastmath=True)  # type: ignore[untyped-decorator]
def _add_gradient(by_unit: Array, gradient: Array, start: Array, row: Array, unit: Array, counts: Array) -> None:
    """The derivative of ``_add_switches`` by the factors, ``(p, q)``."""
    for switch in range(len(row)):
        r, i = row[switch], unit[switch]
        slope = gradient[r, i] if start[r, i] > 0 else -gradient[r, i]
        for j in range(counts.shape[1]):
            by_unit[i, j] += slope * counts[switch, j]
