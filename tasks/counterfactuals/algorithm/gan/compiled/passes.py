"""One pass of a batch through a generator and its discriminator, as compiled code.

Rows come before features, so that sums over rows run along memory. Products go to buffers that are kept for an epoch.

Scope: one network, from rows to logits, in the precision of its arrays. Gradients and steps: ``kernel``.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np

from tasks.counterfactuals.algorithm.gan.settings import MOMENTUM, SLOPE
from tasks.numerics.arrays import Longs

Reals = np.ndarray[Any, Any]
"""``float32``, or ``float64`` where gradients are checked."""

_Function = TypeVar("_Function", bound=Callable[..., Any])
compiled: Callable[[_Function], _Function] = numba.njit(
    cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"}
)

_LEAST_VARIANCE = 1e-5
"""Added to a variance; torch's own."""


class Rules(NamedTuple):
    """What stays the same in all turns of an epoch."""

    covariates: int
    categories: int
    mediators: int
    hidden: int
    heads: Longs
    """``(m, 2)`` first and behind-last input of each mediator with categories."""
    saturating: float
    """How often the generators' loss counts log D_A; 0 where it is -log(1 - D_A)."""
    alpha: float
    batch: int
    rate: float


class Generator(NamedTuple):
    """The parts of a generator's vector, of its weights or of their gradients."""

    first: Reals
    gain: Reals
    shift: Reals
    last: Reals
    bias: Reals


class Discriminator(NamedTuple):
    """The same of a discriminator."""

    first: Reals
    first_bias: Reals
    last: Reals
    last_bias: Reals


class Pass(NamedTuple):
    """What one pass of a batch leaves behind, rows before features."""

    inputs: Reals
    """``(r, c + k + d)`` covariates, one-hot category, mediators."""
    normal: Reals
    """``(r, h)`` hidden units, batch normalisation done."""
    inverse: Reals
    """``(h,)`` one over their deviations."""
    active: Reals
    """``(r, h)`` what goes on to the last layer."""
    soft: Reals
    """``(r, k * d)`` what is made: numbers, and shares in the heads."""
    shown: Reals
    """``(r, c + k * d)`` what the discriminator sees."""
    judged: Reals
    """``(r, h)`` its hidden units."""
    logits: Reals
    """``(r, k)``."""
    slopes: Reals
    """``(r, h)`` derivatives of the hidden units of either side."""
    of_shown: Reals
    of_made: Reals
    of_logits: Reals
    others: Reals
    """``(r, k)`` shares of the categories but for the own one."""


@compiled
def generator(flat: Reals, rules: Rules) -> Generator:
    """The parts of a vector, as views."""
    inputs, outputs = rules.covariates + rules.categories + rules.mediators, rules.categories * rules.mediators
    a = rules.hidden * inputs
    b, c = a + rules.hidden, a + 2 * rules.hidden
    d = c + outputs * rules.hidden
    return Generator(
        flat[:a].reshape((rules.hidden, inputs)), flat[a:b], flat[b:c], flat[c:d].reshape((outputs, rules.hidden)),
        flat[d : d + outputs],
    )  # fmt: skip


@compiled
def discriminator(flat: Reals, rules: Rules) -> Discriminator:
    """The parts of a vector, as views."""
    inputs = rules.covariates + rules.categories * rules.mediators
    a = rules.hidden * inputs
    b = a + rules.hidden
    c = b + rules.categories * rules.hidden
    return Discriminator(
        flat[:a].reshape((rules.hidden, inputs)), flat[a:b], flat[b:c].reshape((rules.categories, rules.hidden)),
        flat[c : c + rules.categories],
    )  # fmt: skip


@compiled
def kept(rules: Rules, rows: int, like: Reals) -> Pass:
    """Room for so many rows, in the precision of ``like``."""
    r, h, c, k = rows, rules.hidden, rules.covariates, rules.categories
    made, kind = k * rules.mediators, like.dtype
    return Pass(
        np.empty((r, c + k + rules.mediators), kind), np.empty((r, h), kind), np.empty(h, kind),
        np.empty((r, h), kind), np.empty((r, made), kind), np.empty((r, c + made), kind), np.empty((r, h), kind),
        np.empty((r, k), kind), np.empty((r, h), kind), np.empty((r, c + made), kind), np.empty((r, made), kind),
        np.empty((r, k), kind), np.empty((r, k), kind),
    )  # fmt: skip


@compiled
def take(at: Pass, table: Reals, order: Longs) -> None:
    """Lay the rows of a batch out."""
    for row in range(order.shape[0]):
        for place in range(table.shape[1]):
            at.inputs[row, place] = table[order[row], place]


@compiled
def _normalise(at: Pass, running: Reals) -> None:
    """Batch normalisation in place; what is used later on follows the batch."""
    kind = running.dtype.type
    rows, units = at.normal.shape
    mean, variance = np.zeros(units, running.dtype), np.zeros(units, running.dtype)
    for row in range(rows):
        for unit in range(units):
            mean[unit] += at.normal[row, unit]
    mean /= kind(rows)
    for row in range(rows):
        for unit in range(units):
            at.normal[row, unit] -= mean[unit]
            variance[unit] += at.normal[row, unit] * at.normal[row, unit]
    for unit in range(units):
        running[0, unit] += kind(MOMENTUM) * (mean[unit] - running[0, unit])
        running[1, unit] += kind(MOMENTUM) * (variance[unit] / kind(rows - 1) - running[1, unit])
        at.inverse[unit] = kind(1) / np.sqrt(variance[unit] / kind(rows) + kind(_LEAST_VARIANCE))
    for row in range(rows):
        for unit in range(units):
            at.normal[row, unit] *= at.inverse[unit]


@compiled
def _as_used(at: Pass, running: Reals) -> None:
    """Batch normalisation as it is used after training."""
    kind = running.dtype.type
    rows, units = at.normal.shape
    for unit in range(units):
        at.inverse[unit] = kind(1) / np.sqrt(running[1, unit] + kind(_LEAST_VARIANCE))
    for row in range(rows):
        for unit in range(units):
            at.normal[row, unit] = (at.normal[row, unit] - running[0, unit]) * at.inverse[unit]


@compiled
def generate(at: Pass, of: Generator, rules: Rules, running: Reals, training: bool) -> None:
    """G(x, a, m), and what the discriminator is shown of it: one category of each head, and what was observed."""
    kind = running.dtype.type
    np.dot(at.inputs, of.first.T, at.normal)
    if training:
        _normalise(at, running)
    else:
        _as_used(at, running)
    rows, units = at.normal.shape
    for row in range(rows):
        for unit in range(units):
            value = at.normal[row, unit] * of.gain[unit] + of.shift[unit]
            at.active[row, unit] = value if value > kind(0) else value * kind(SLOPE)
    np.dot(at.active, of.last.T, at.soft)
    for row in range(rows):
        for place in range(at.soft.shape[1]):
            at.soft[row, place] += of.bias[place]
    _show(at, rules)


@compiled
def _show(at: Pass, rules: Rules) -> None:
    """Lay out what the discriminator sees: a category of each head, and what was observed in the own category."""
    kind = at.soft.dtype.type
    c, k, d = rules.covariates, rules.categories, rules.mediators
    for row in range(at.soft.shape[0]):
        for place in range(c):
            at.shown[row, place] = at.inputs[row, place]
        for place in range(k * d):
            at.shown[row, c + place] = at.soft[row, place]
        for category in range(k):
            for head in range(rules.heads.shape[0]):
                _choose(at, row, c, category * d + rules.heads[head, 0], category * d + rules.heads[head, 1])
            if at.inputs[row, c + category] > kind(0):
                for place in range(d):
                    at.shown[row, c + category * d + place] = at.inputs[row, c + k + place]


@compiled
def _choose(at: Pass, row: int, c: int, first: int, end: int) -> None:
    """Turn the logits of a head into shares, and show the category of the largest."""
    kind = at.soft.dtype.type
    best, total = first, kind(0)
    for place in range(first, end):
        if at.soft[row, place] > at.soft[row, best]:
            best = place
    greatest = at.soft[row, best]
    for place in range(first, end):
        share = np.exp(at.soft[row, place] - greatest)
        at.soft[row, place] = share
        total += share
    for place in range(first, end):
        at.soft[row, place] /= total
        at.shown[row, c + place] = kind(1) if place == best else kind(0)


@compiled
def judge(at: Pass, of: Discriminator) -> None:
    """D(x, G~): logits of the categories."""
    kind = at.logits.dtype.type
    np.dot(at.shown, of.first.T, at.judged)
    rows, units = at.judged.shape
    for row in range(rows):
        for unit in range(units):
            value = at.judged[row, unit] + of.first_bias[unit]
            at.judged[row, unit] = value if value > kind(0) else value * kind(SLOPE)
    np.dot(at.judged, of.last.T, at.logits)
    for row in range(rows):
        for category in range(at.logits.shape[1]):
            at.logits[row, category] += of.last_bias[category]
