"""The adversarial game as compiled code."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import cython_blas  # noqa: F401 loads the library of numba's products, which the limit has to reach
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from tasks.counterfactuals.algorithm.gan.networks import (
    LOOKED_AT,
    MOMENTUM,
    SLOPE,
    Adversarial,
    Encoded,
    Epoch,
    GanSettings,
    Generators,
    Shape,
    fresh,
)
from tasks.numerics.arrays import Longs
from tasks.numerics.networks.perceptron import draws
from tasks.numerics.networks.training import Checkpoint

# --------------------------------------------------------------------------------------------------------------------
# One pass of a batch through a generator and its discriminator, as compiled code.
#
# Rows come before features, so that sums over rows run along memory. Products go to buffers that are kept for an epoch.
#
# Scope: one network, from rows to logits, in the precision of its arrays. Gradients and steps: ``kernel``.


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
    visible: Reals
    """``(r, c + k * d)`` what the discriminator sees."""
    judge_hidden: Reals
    """``(r, h)`` its hidden units."""
    logits: Reals
    """``(r, k)``."""
    slopes: Reals
    """``(r, h)`` derivatives of the hidden units of either side."""
    of_shown: Reals
    of_made: Reals
    of_logits: Reals
    other_shares: Reals
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
    outputs, kind = k * rules.mediators, like.dtype
    return Pass(
        np.empty((r, c + k + rules.mediators), kind), np.empty((r, h), kind), np.empty(h, kind),
        np.empty((r, h), kind), np.empty((r, outputs), kind), np.empty((r, c + outputs), kind), np.empty((r, h), kind),
        np.empty((r, k), kind), np.empty((r, h), kind), np.empty((r, c + outputs), kind), np.empty((r, outputs), kind),
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
            at.visible[row, place] = at.inputs[row, place]
        for place in range(k * d):
            at.visible[row, c + place] = at.soft[row, place]
        for category in range(k):
            for head in range(rules.heads.shape[0]):
                _choose(at, row, c, category * d + rules.heads[head, 0], category * d + rules.heads[head, 1])
            if at.inputs[row, c + category] > kind(0):
                for place in range(d):
                    at.visible[row, c + category * d + place] = at.inputs[row, c + k + place]


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
        at.visible[row, c + place] = kind(1) if place == best else kind(0)


@compiled
def judge(at: Pass, of: Discriminator) -> None:
    """D(x, G~): logits of the categories."""
    kind = at.logits.dtype.type
    np.dot(at.visible, of.first.T, at.judge_hidden)
    rows, units = at.judge_hidden.shape
    for row in range(rows):
        for unit in range(units):
            value = at.judge_hidden[row, unit] + of.first_bias[unit]
            at.judge_hidden[row, unit] = value if value > kind(0) else value * kind(SLOPE)
    np.dot(at.judge_hidden, of.last.T, at.logits)
    for row in range(rows):
        for category in range(at.logits.shape[1]):
            at.logits[row, category] += of.last_bias[category]


# --------------------------------------------------------------------------------------------------------------------
# Turns of one network as compiled code: gradients of both sides written out, and the steps of Adam.
#
# A network is computed by itself and in one order, so that its weights do not depend on threads. The same in torch, by
# automatic differentiation: ``gan.autograd``.
#
# Scope: arithmetic of one network, in the precision of its arrays. The ensemble: ``game``.


_FIRST_DECAY, _SECOND_DECAY, _LEAST_ROOT = 0.9, 0.999, 1e-8
"""Adam's, as torch has them."""

WEIGHTS, MEAN, SQUARE = 0, 1, 2
"""Rows of a side ``(3, p)``: its weights, and Adam's moving means of gradients and of their squares."""

_AT_ONCE = 256
_NONE = -1


@compiled
def _shares(shares: Reals, logits: Reals, row: int, without: int) -> None:
    """Fill in a row's shares of categories by its logits; the one to leave out, if any, has 0."""
    kind = logits.dtype.type
    greatest, total = kind(-np.inf), kind(0)
    for place in range(logits.shape[1]):
        if place != without:
            greatest = max(greatest, logits[row, place])
    for place in range(logits.shape[1]):
        share = kind(0) if place == without else np.exp(logits[row, place] - greatest)
        shares[row, place] = share
        total += share
    for place in range(logits.shape[1]):
        shares[row, place] /= total


@compiled
def _sums(total: Reals, values: Reals) -> None:
    """Fill in the sums over rows."""
    total[:] = 0
    for row in range(values.shape[0]):
        for place in range(values.shape[1]):
            total[place] += values[row, place]


@compiled
def _through(slopes: Reals, active: Reals) -> None:
    """Derivatives before LeakyReLU by those behind it, in place."""
    kind = active.dtype.type
    for row in range(active.shape[0]):
        for unit in range(active.shape[1]):
            if not active[row, unit] > kind(0):
                slopes[row, unit] *= kind(SLOPE)


@compiled
def _judge_slopes(at: Pass, of: Discriminator) -> None:
    """Derivatives of a discriminator's hidden units, by those of its logits."""
    np.dot(at.of_logits, of.last, at.slopes)
    _through(at.slopes, at.judge_hidden)


@compiled
def discriminator_gradients(at: Pass, of: Discriminator, gradients: Discriminator, row_category: Longs) -> None:
    """Gradients of the mean of -log D_A (equation 7 with its sign turned).

    Args:
        at: A batch after both passes.
        of: Weights.
        gradients: Filled in.
        row_category: ``(r,)`` category of each row.
    """
    kind = at.logits.dtype.type
    rows = row_category.shape[0]
    for row in range(rows):
        _shares(at.of_logits, at.logits, row, _NONE)
        at.of_logits[row, row_category[row]] -= kind(1)
        for place in range(at.of_logits.shape[1]):
            at.of_logits[row, place] /= kind(rows)
    _judge_slopes(at, of)
    np.dot(at.of_logits.T, at.judge_hidden, gradients.last)
    _sums(gradients.last_bias, at.of_logits)
    np.dot(at.slopes.T, at.visible, gradients.first)
    _sums(gradients.first_bias, at.slopes)


@compiled
def _adversarial_slopes(at: Pass, row_category: Longs, saturating: float) -> None:
    """Derivatives of the generators' adversarial loss by the logits (equation 8, Algorithm 1, or non-saturating)."""
    kind = at.logits.dtype.type
    rows, categories = at.logits.shape
    weight = kind((-saturating if saturating > 0 else 1.0) / rows)
    for row in range(rows):
        _shares(at.of_logits, at.logits, row, _NONE)
        if saturating > 0:
            at.of_logits[row, row_category[row]] -= kind(1)
        else:
            _shares(at.other_shares, at.logits, row, row_category[row])
            for place in range(categories):
                at.of_logits[row, place] -= at.other_shares[row, place]
        for place in range(categories):
            at.of_logits[row, place] *= weight


@compiled
def _made_slopes(at: Pass, rules: Rules, row_category: Longs) -> None:
    """Derivatives by what is made: of the reconstruction in the own category, of what is shown in the others."""
    kind = at.soft.dtype.type
    c, k, d = rules.covariates, rules.categories, rules.mediators
    weight = kind(2 * rules.alpha / row_category.shape[0])
    for row in range(row_category.shape[0]):
        for category in range(k):
            first = category * d
            for place in range(d):
                if category == row_category[row]:
                    missed = at.soft[row, first + place] - at.inputs[row, c + k + place]
                    at.of_made[row, first + place] = weight * missed
                else:
                    at.of_made[row, first + place] = at.of_shown[row, c + first + place]
            for head in range(rules.heads.shape[0]):
                begin, end = first + rules.heads[head, 0], first + rules.heads[head, 1]
                mean = kind(0)
                for place in range(begin, end):
                    mean += at.of_made[row, place] * at.soft[row, place]
                for place in range(begin, end):
                    at.of_made[row, place] = at.soft[row, place] * (at.of_made[row, place] - mean)


@compiled
def _normal_slopes(at: Pass, of: Generator, gradients: Generator) -> None:
    """Derivatives before batch normalisation by those behind it, in place, and those of its gain and shift."""
    kind = at.normal.dtype.type
    rows, units = at.normal.shape
    _sums(gradients.shift, at.slopes)
    gradients.gain[:] = 0
    for row in range(rows):
        for unit in range(units):
            gradients.gain[unit] += at.slopes[row, unit] * at.normal[row, unit]
    share = kind(1) / kind(rows)
    for row in range(rows):
        for unit in range(units):
            centred = at.slopes[row, unit] - share * (
                gradients.shift[unit] + at.normal[row, unit] * gradients.gain[unit]
            )
            at.slopes[row, unit] = centred * of.gain[unit] * at.inverse[unit]


@compiled
def generator_gradients(
    at: Pass, of: Generator, against: Discriminator, gradients: Generator, row_category: Longs, rules: Rules
) -> None:
    """Gradients of the adversarial loss and alpha times the reconstruction (equation 8).

    Args:
        at: A batch after both passes.
        of: Weights of the generator.
        against: Weights of the discriminator.
        gradients: Filled in.
        row_category: ``(r,)`` category of each row.
        rules: Loss and alpha.
    """
    _adversarial_slopes(at, row_category, rules.saturating)
    _judge_slopes(at, against)
    np.dot(at.slopes, against.first, at.of_shown)
    _made_slopes(at, rules, row_category)
    np.dot(at.of_made.T, at.active, gradients.last)
    _sums(gradients.bias, at.of_made)
    np.dot(at.of_made, of.last, at.slopes)
    _through(at.slopes, at.active)
    _normal_slopes(at, of, gradients)
    np.dot(at.slopes.T, at.inputs, gradients.first)


@compiled
def _step(side: Reals, gradients: Reals, rate: float, number: int) -> None:
    """One step of Adam; the number of the first step is 1."""
    kind = side.dtype.type
    size = kind(rate / (1 - _FIRST_DECAY**number))
    root = kind(np.sqrt(1 - _SECOND_DECAY**number))
    first, second, least = kind(1 - _FIRST_DECAY), kind(1 - _SECOND_DECAY), kind(_LEAST_ROOT)
    weights, mean, square = side[WEIGHTS], side[MEAN], side[SQUARE]
    for place in range(gradients.shape[0]):
        gradient = gradients[place]
        mean[place] += first * (gradient - mean[place])
        square[place] += second * (gradient * gradient - square[place])
        weights[place] -= size * mean[place] / (np.sqrt(square[place]) / root + least)


@compiled
def run_epoch(
    table: Reals, category: Longs, order: Longs, sides: tuple[Reals, Reals], running: Reals, rules: Rules, done: int
) -> None:
    """One pass over the rows: in each batch a step of the discriminator, then one of the generator.

    Args:
        table: ``(n, c + k + d)`` covariates, one-hot category, mediators.
        category: ``(n,)``.
        order: ``(n,)`` in which rows are taken; an incomplete last batch is left.
        sides: Generator and discriminator, ``(3, p)`` each, changed in place.
        running: ``(2, h)`` mean and variance of batch normalisation, changed in place.
        rules: Sizes and settings.
        done: Steps before these.
    """
    generator_flat, discriminator_flat = sides
    of, against = generator(generator_flat[WEIGHTS], rules), discriminator(discriminator_flat[WEIGHTS], rules)
    of_made, of_told = np.empty_like(generator_flat[WEIGHTS]), np.empty_like(discriminator_flat[WEIGHTS])
    at = kept(rules, rules.batch, table)
    for turn in range(order.shape[0] // rules.batch):
        rows = order[turn * rules.batch : (turn + 1) * rules.batch]
        row_category = category[rows]
        take(at, table, rows)
        generate(at, of, rules, running, True)
        judge(at, against)
        discriminator_gradients(at, against, discriminator(of_told, rules), row_category)
        _step(discriminator_flat, of_told, rules.rate, done + turn + 1)
        judge(at, against)
        generator_gradients(at, of, against, generator(of_made, rules), row_category, rules)
        _step(generator_flat, of_made, rules.rate, done + turn + 1)


@compiled
def standing(
    table: Reals, category: Longs, order: Longs, sides: tuple[Reals, Reals], running: Reals, rules: Rules
) -> tuple[float, float, float]:
    """Values of an epoch's history, by its first rows: mean reconstruction and log loss, share classified correctly.

    Args: as of ``epoch``; nothing is changed.
    """
    of, against = generator(sides[0][WEIGHTS], rules), discriminator(sides[1][WEIGHTS], rules)
    total = min(LOOKED_AT, order.shape[0])
    missed = loss = right = 0.0
    for first in range(0, total, _AT_ONCE):
        rows = order[first : min(first + _AT_ONCE, total)]
        at = kept(rules, rows.shape[0], table)
        take(at, table, rows)
        generate(at, of, rules, running, False)
        judge(at, against)
        missed += _missed(at, rules, category[rows])
        for row in range(rows.shape[0]):
            _shares(at.of_logits, at.logits, row, _NONE)
            own_category = category[rows[row]]
            loss -= np.log(at.of_logits[row, own_category])
            right += np.argmax(at.logits[row]) == own_category
    return missed / total, loss / total, right / total


@compiled
def _missed(at: Pass, rules: Rules, row_category: Longs) -> float:
    """Sum over rows of the squared error of the observed mediators (equation 4)."""
    first, missed = rules.covariates + rules.categories, 0.0
    for row in range(row_category.shape[0]):
        for place in range(rules.mediators):
            apart = at.soft[row, row_category[row] * rules.mediators + place] - at.inputs[row, first + place]
            missed += apart * apart
    return missed


# --------------------------------------------------------------------------------------------------------------------
# The ensemble whose turns are compiled: each side's parameters in one vector a network, networks in threads.


Singles = NDArray[np.float32]

_SATURATING: Final[dict[Adversarial, float]] = {"non_saturating": 0.0, "equation_8": 1.0, "algorithm_1": 2.0}
_ROWS: Final = {"exp_avg": MEAN, "exp_avg_sq": SQUARE}
"""Names of Adam's moments in a state."""
_RUNNING: Final = ("mean", "variance")


@dataclass
class FlatSide:
    """One side of all networks: the parameters of a network lie one after the other, as in the module."""

    name: str
    module: nn.Module
    values: Singles
    """``(s, 3, p)`` weights and Adam's moments."""
    running: Singles
    """``(s, 2, h)`` mean and variance of batch normalisation; without a network where there is none."""
    steps: int = 0

    @classmethod
    def of(cls, name: str, module: nn.Module, networks: int) -> "FlatSide":
        """The weights of a module, and moments of 0."""
        weights = [parameter.detach().numpy().reshape(networks, -1) for parameter in module.parameters()]
        values = np.zeros((networks, 3, sum(weight.shape[1] for weight in weights)), np.float32)
        values[:, WEIGHTS] = np.concatenate(weights, axis=1)
        buffers = [buffer.numpy().reshape(networks, -1) for buffer in module.buffers()]
        return cls(name, module, values, np.stack(buffers, axis=1) if buffers else np.zeros((0, 2, 0), np.float32))

    def tensors(self) -> dict[str, Tensor]:
        """Weights, running statistics and, once there are any, Adam's moments, by the names that torch gives them."""
        tensors = dict(self._state())
        for number, (_, shape, part) in enumerate(self._parts()):
            if self.steps:
                prefix = f"{self.name}.adam.{number}"
                tensors[f"{prefix}.step"] = torch.tensor(float(self.steps))
                tensors |= {f"{prefix}.{moment}": self._tensor(row, part, shape) for moment, row in _ROWS.items()}
        return tensors

    def restore(self, checkpoint: Checkpoint) -> None:
        """Take over weights, and moments once there are any."""
        tensors, networks = checkpoint.tensors, len(self.values)
        for number, (name, _, part) in enumerate(self._parts()):
            self.values[:, WEIGHTS, part] = tensors[f"{self.name}.{name}"].numpy().reshape(networks, -1)
            if checkpoint.epoch:
                prefix = f"{self.name}.adam.{number}"
                self.steps = int(tensors[f"{prefix}.step"])
                for moment, row in _ROWS.items():
                    self.values[:, row, part] = tensors[f"{prefix}.{moment}"].numpy().reshape(networks, -1)
        for at, name in enumerate(_RUNNING if len(self.running) else ()):
            self.running[:, at] = tensors[f"{self.name}.{name}"].numpy().reshape(networks, -1)

    def load(self) -> None:
        """Put weights and running statistics into the module."""
        self.module.load_state_dict({name.removeprefix(f"{self.name}."): value for name, value in self._state()})

    def _state(self) -> Iterator[tuple[str, Tensor]]:
        for name, shape, part in self._parts():
            yield f"{self.name}.{name}", self._tensor(WEIGHTS, part, shape)
        for at, name in enumerate(_RUNNING if len(self.running) else ()):
            yield f"{self.name}.{name}", torch.from_numpy(self.running[:, at].reshape(-1))

    def _tensor(self, row: int, part: slice, shape: torch.Size) -> Tensor:
        return torch.from_numpy(self.values[:, row, part].reshape(shape))

    def _parts(self) -> Iterator[tuple[str, torch.Size, slice]]:
        """Name and shape of each parameter, and where a network's own lies in its vector."""
        first = 0
        for name, parameter in self.module.named_parameters():
            end = first + parameter.numel() // len(self.values)
            yield name, parameter.shape, slice(first, end)
            first = end


@dataclass(frozen=True)
class CompiledGame:
    """Both sides, the rows, and how they play."""

    settings: GanSettings
    shape: Shape
    table: Singles
    """``(n, c + k + d)`` covariates, one-hot category, mediators."""
    category: Longs
    module: Generators
    """Takes over weights at the end."""
    sides: Sequence[FlatSide]

    @classmethod
    def begin(cls, encoded: Encoded, shape: Shape, settings: GanSettings) -> "CompiledGame":
        """Networks with fresh weights."""
        generators, discriminators = fresh(shape, settings)
        member = encoded.category[:, None] == np.arange(shape.categories)
        table = np.hstack([encoded.covariates, member, encoded.mediators]).astype(np.float32, order="C")
        modules = {"generators": generators, "discriminators": discriminators}
        sides = [FlatSide.of(name, module, settings.networks) for name, module in modules.items()]
        return cls(settings, shape, table, np.array(encoded.category, np.int64), generators, sides)

    @contextmanager
    def playing(self) -> Iterator[Epoch]:
        """Run epochs one after another, each network in a separate thread.

        By threads of our own, as numba's bear only one caller at a time. A product has one thread, so that its last
        digits do not depend on the number of cores.
        """
        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(numba.config.NUMBA_NUM_THREADS) as pool:

            def epoch(number: int, rate: float) -> Tensor:
                rules, networks = self._rules(rate), range(self.settings.networks)
                losses = list(pool.map(lambda at: self._network(at, number, rules), networks))
                for side in self.sides:
                    side.steps += len(self.table) // self.settings.batch
                return torch.tensor(losses, dtype=torch.float32)[None]

            yield epoch

    def generators(self) -> Generators:
        """The generators as they are, in eval mode."""
        self.sides[0].load()
        return self.module.eval()

    def _network(self, at: int, epoch: int, rules: Rules) -> tuple[float, float, float]:
        """An epoch of one network, in the order of the rows that it has for it."""
        generator_side, discriminator_side = self.sides
        order = draws(self.settings.seed, self.settings.first + at, epoch).permutation(len(self.category))
        arguments = (
            self.table,
            self.category,
            order,
            (generator_side.values[at], discriminator_side.values[at]),
            generator_side.running[at],
            rules,
        )
        run_epoch(*arguments, generator_side.steps)
        return standing(*arguments)

    def _rules(self, rate: float) -> Rules:
        shape, settings = self.shape, self.settings
        heads = np.array(shape.heads, np.int64).reshape(-1, 2)
        return Rules(
            shape.covariates, shape.categories, shape.mediators, shape.hidden, heads,
            _SATURATING[settings.adversarial], float(settings.alpha), settings.batch, float(rate),
        )  # fmt: skip
