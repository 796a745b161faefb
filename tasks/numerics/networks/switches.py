"""Switching points of a ReLU net with two hidden layers along a straight path, and the gradients between them.

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
        columns = weight.T.contiguous()
        on, stays = (torch.sign(each).relu_() for each in (start, start + change))  # numbers: torch is slow with bools
        turns = (on - stays).numpy()
        intercept, slope = torch.addmm(bias, torch.relu(start), columns), (change * on) @ columns
        row, unit, turn, *chains = _switches(start.numpy(), change.numpy(), turns, np.count_nonzero(turns), steps)
        counts, at_switch = _follow(
            intercept.numpy(), slope.numpy(), columns.numpy(), start.numpy(), change.numpy(), unit, turn, *chains
        )
        switches = row, unit, turn, at_switch
        ctx.counts, ctx.stays, ctx.switches = torch.from_numpy(counts), stays, switches
        summed: Tensor = (ctx.counts @ factors) * stays
        _add_switches(summed.numpy(), factors.T.contiguous().numpy(), *switches)
        return summed

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        by_unit = (gradient * ctx.stays).T @ ctx.counts
        _add_gradient(by_unit.numpy(), gradient.contiguous().numpy(), *ctx.switches)
        return by_unit.T, None, None, None, None, None


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _switches(
    start: Array, change: Array, turns: Array, number: int, steps: int
) -> tuple[Array, Array, Array, Array, Array]:
    """Row, unit and turn of each switch; and chains of those of a row that come before the same step.

    A chain begins at ``first[row, step]``, goes on at ``following[switch]`` and ends with -1. Nothing is sorted: the
    order within a chain is of no account. ``turns`` is 1 where a unit switches off, -1 where it switches on, and 0
    where it does neither; ``number`` of them are not 0.
    """
    first = np.full((len(start), steps + 1), -1, np.int32)
    row, unit, following = np.empty(number, np.int32), np.empty(number, np.int32), np.empty(number, np.int32)
    turn = np.empty(number, start.dtype)
    switch = 0
    for r in range(start.shape[0]):
        for i in range(start.shape[1]):
            if turns[r, i]:
                step = min(max(int(np.ceil(-start[r, i] / change[r, i] * steps - 0.5)), 0), steps)
                row[switch], unit[switch], turn[switch] = r, i, turns[r, i]
                following[switch], first[r, step] = first[r, step], switch
                switch += 1
    return row, unit, turn, first, following


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _follow(
    intercept: Array, slope: Array, columns: Array, start: Array, change: Array,
    unit: Array, turn: Array, first: Array, following: Array,
) -> tuple[Array, Array]:  # fmt: skip
    """Count for each row the steps at which second-layer units are on: in all, ``(r, q)``, and before each switch.

    ``intercept`` and ``slope`` of the second layer are those at the start of the path and are overwritten; ``columns``
    is ``(p, q)``. Those that switch after the last step are chained to one more.
    """
    (rows, units), steps = intercept.shape, first.shape[1] - 1
    one, none = start.dtype.type(1), start.dtype.type(0)
    counts = np.zeros((rows, units), dtype=start.dtype)
    at_switch = np.empty((len(unit), units), dtype=start.dtype)
    for r in range(rows):
        for t in range(steps + 1):
            at = first[r, t]
            while at >= 0:
                i = unit[at]
                z, dz = turn[at] * start[r, i], turn[at] * change[r, i]
                for j in range(units):
                    at_switch[at, j] = counts[r, j]
                    intercept[r, j] -= z * columns[i, j]
                    slope[r, j] -= dz * columns[i, j]
                at = following[at]
            if t < steps:
                s = start.dtype.type((t + 0.5) / steps)
                for j in range(units):
                    counts[r, j] += one if intercept[r, j] + s * slope[r, j] > 0 else none
    return counts, at_switch


@numba.njit(cache=True, fastmath=True)  # type: ignore[untyped-decorator]
def _add_switches(summed: Array, rows_of_factors: Array, row: Array, unit: Array, turn: Array, counts: Array) -> None:
    """Add what units that switch off saw before, and take away what units that switch on did not see."""
    for switch in range(len(row)):
        i = unit[switch]
        seen = counts[switch, 0] * rows_of_factors[i, 0]
        for j in range(1, counts.shape[1]):
            seen += counts[switch, j] * rows_of_factors[i, j]
        summed[row[switch], i] += turn[switch] * seen


@numba.njit(cache=True, fastmath=True)  # type: ignore[untyped-decorator]
def _add_gradient(by_unit: Array, gradient: Array, row: Array, unit: Array, turn: Array, counts: Array) -> None:
    """The derivative of ``_add_switches`` by the factors, ``(p, q)``."""
    for switch in range(len(row)):
        i = unit[switch]
        slope = turn[switch] * gradient[row[switch], i]
        for j in range(counts.shape[1]):
            by_unit[i, j] += slope * counts[switch, j]
