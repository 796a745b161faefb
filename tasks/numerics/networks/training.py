"""Training by a three-term loss, resumable after every epoch."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.autograd.function import Function
from torch.nn import functional
from torch.nn.utils import skip_init

from schemas.errors import DataQualityError, InfrastructureError, IntegrityError
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.networks.network import Activation, NetSettings, TrainingSettings
from tasks.numerics.networks.perceptron import INITIAL, chosen_device, digest_of, draws, one_thread

# --------------------------------------------------------------------------------------------------------------------
# The network that is trained: linear layers, one activation, dropout after each, one logit at the end.
#
# Weights and dropout are drawn from a NumPy generator that the caller passes, so that every device sees the same draws
# and torch's global state is neither read nor changed. The net is an ordinary ``nn.Sequential``.


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


def logits(net: nn.Sequential, inputs: Tensor, unit_masks: Sequence[Tensor] | None = None) -> Tensor:
    """Logits ``(r,)`` of rows ``(r, d)``; without ``unit_masks`` nothing is dropped, as in ``net.eval()``."""
    *hidden, last = linear_layers(net)
    act = activation(net)
    values = inputs
    for at, layer in enumerate(hidden):
        values = act(layer(values))
        if unit_masks is not None:
            values = values * unit_masks[at]
    out: Tensor = last(values).squeeze(1)
    return out


def _linear(inputs: int, outputs: int, rng: np.random.Generator) -> nn.Linear:
    """A linear layer with weights drawn from ``rng``."""
    layer: nn.Linear = skip_init(nn.Linear, inputs, outputs)  # type: ignore[no-untyped-call] # nn.Linear would draw from torch's global state
    bound = inputs**-0.5
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.from_numpy(rng.uniform(-bound, bound, tuple(parameter.shape))))
    return layer


# --------------------------------------------------------------------------------------------------------------------
# Switching points of a ReLU net with two hidden layers along a straight path, and the gradients between them.
#
# Along ``b + s (x - b)`` the first layer is affine in s, so each of its units switches at most once. Between switches
# the second layer is affine too: its intercept and slope change by one column of weights at each switch. So T steps
# need two matrix products for the start of the path and one update per switch, instead of T matrix products.
#
# With masks m1 and m2 of the two layers the gradient at a step is ``W1' (m1 * (V m2))``, ``V = W2' diag(w3)``. Its mean
# over the path needs the mean of m1_i m2_j. As m1_i is constant but for one switch, that is a count of m2_j up to the
# switch, or from it on: a cumulative count, read off where i switches.


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
        on, stays = (
            torch.sign(position).relu_() for position in (start, start + change)
        )  # numbers: torch is slow with bools
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
    increment, none = start.dtype.type(1), start.dtype.type(0)
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
                    counts[r, j] += increment if intercept[r, j] + s * slope[r, j] > 0 else none
    return counts, at_switch


@numba.njit(cache=True, fastmath=True)  # type: ignore[untyped-decorator]
def _add_switches(summed: Array, rows_of_factors: Array, row: Array, unit: Array, turn: Array, counts: Array) -> None:
    """Add what units that switch off saw before, and take away what units that switch on did not see."""
    for switch in range(len(row)):
        i = unit[switch]
        weighted = counts[switch, 0] * rows_of_factors[i, 0]
        for j in range(1, counts.shape[1]):
            weighted += counts[switch, j] * rows_of_factors[i, j]
        summed[row[switch], i] += turn[switch] * weighted


@numba.njit(cache=True, fastmath=True)  # type: ignore[untyped-decorator]
def _add_gradient(by_unit: Array, gradient: Array, row: Array, unit: Array, turn: Array, counts: Array) -> None:
    """The derivative of ``_add_switches`` by the factors, ``(p, q)``."""
    for switch in range(len(row)):
        i = unit[switch]
        slope = turn[switch] * gradient[row[switch], i]
        for j in range(counts.shape[1]):
            by_unit[i, j] += slope * counts[switch, j]


# --------------------------------------------------------------------------------------------------------------------
# Differentiable integrated gradients of the logit, for training (Sundararajan et al. 2017, equation 1).
#
# Attributions of row x from baseline b are ``(x - b)`` times the mean gradient of the logit at T midpoints of the
# straight path from b to x, without dropout. For a ReLU net with two hidden layers the mean gradient has a closed form
# (``switches``) whose derivative by the weights needs no second pass; other nets use autograd twice.


_LAYERS = 3
"""Linear layers of the nets that have the closed form."""


def integrated_gradients(net: nn.Sequential, inputs: Tensor, baseline: Tensor, steps: int) -> Tensor:
    """Attributions ``(r, d)`` of rows ``(r, d)`` from baselines ``(r, d)``, a graph by the weights behind them.

    The sum over features is the change of the logit from baseline to row up to the error of ``steps`` midpoints.
    """
    if isinstance(activation(net), nn.ReLU) and len(linear_layers(net)) == _LAYERS:
        first, second, last = linear_layers(net)
        away = inputs - baseline
        with torch.no_grad():
            start, change = first(baseline), away @ first.weight.T
        by_unit = mean_unit_gradient(start, change, second.weight, second.bias, last.weight[0], steps)
        return away * (by_unit @ first.weight)
    return twice_differentiated(net, inputs, baseline, steps)


def twice_differentiated(net: nn.Sequential, inputs: Tensor, baseline: Tensor, steps: int) -> Tensor:
    """The same by automatic differentiation, for any activation."""
    along = (torch.arange(steps, dtype=inputs.dtype, device=inputs.device) + 0.5) / steps
    points = (baseline + along[:, None, None] * (inputs - baseline)).flatten(0, 1).requires_grad_()
    (gradient,) = torch.autograd.grad(logits(net, points).sum(), points, create_graph=True)
    return (inputs - baseline) * gradient.view(steps, *inputs.shape).mean(0)


# --------------------------------------------------------------------------------------------------------------------
# The three terms that training minimises (Algorithm 2): prediction, equalised odds, consistency of explanations.
#
# Batches are prepared as weights of rows: a missing cell, or a row without a match, has weight 0 and is no special
# case.
# Every term is a plain product of arrays.


_NO_DIRECTION = 1e-8
"""Added to the length of an attribution vector before dividing by it (section 4.4)."""


def odds_contrasts(favourable: Bools, protected: Bools, batch: int) -> Floats:
    """Weights ``(2, n)``; their products with scores, batch by batch, are the gaps in true and false positive rates.

    A row counts ``1 / size`` of its cell in its batch, with a minus in the protected group. The gap of a label whose
    rows in a batch are of one group only has weights of 0.

    Args:
        favourable: ``(n,)`` labels, in the order of the batches.
        protected: ``(n,)`` group of each row.
        batch: Rows per batch; the last one may be smaller.
    """
    number = np.arange(len(favourable)) // batch
    cell = number * 4 + favourable * 2 + protected
    sizes = np.bincount(cell, minlength=(number[-1] + 1) * 4)
    has_both = (sizes[cell] > 0) & (sizes[cell ^ 1] > 0)
    weight = np.where(has_both, np.where(protected, -1.0, 1.0) / sizes[cell], 0.0)
    return np.stack([weight * favourable, weight * ~favourable])


def equalised_odds(scores: Tensor, contrasts: Tensor) -> Tensor:
    """(TPR gap)^2 + (FPR gap)^2 with soft rates: means over cells of sigmoid(logit), ``scores`` ``(r,)``."""
    return (contrasts @ torch.sigmoid(scores)).square().sum()


def pair_weights(matched: Bools, batch: int, share: float) -> Floats:
    """Weights ``(n,)`` of the pairs: in each batch ``1 / number`` for the matched among its first rows, else 0.

    Args:
        matched: ``(n,)`` rows that have a match, in the order of the batches, which is random.
        batch: Rows per batch.
        share: Share of each batch that is looked at, from its first row on.
    """
    number, place = np.divmod(np.arange(len(matched)), batch)
    chosen = matched & (place < pairs_looked_at(batch, share))
    sizes = np.bincount(number, chosen)
    return np.where(chosen, 1.0 / np.maximum(sizes, 1)[number], 0.0)


def pairs_looked_at(batch: int, share: float) -> int:
    """Number of rows of a batch with explained pairs: the share of it, rounded up."""
    return int(np.ceil(batch * share))


def directions(attributions: Tensor) -> Tensor:
    """Attribution vectors ``(r, d)`` over their length plus 1e-8; nothing stays nothing.

    To torch a length of 0 has a derivative of 0.
    """
    length: Tensor = torch.linalg.vector_norm(attributions, dim=1, keepdim=True)
    return attributions / (length + _NO_DIRECTION)


def inconsistency(factual: Tensor, counterfactual: Tensor, weights: Tensor) -> Tensor:
    """Weighted mean of (|g - g~| / 2)^2 over pairs of attributions ``(r, d)``, weights ``(r,)`` that sum to 1.

    The square is summed and never rooted: a root has no derivative where two explanations agree.
    """
    apart = directions(factual) - directions(counterfactual)
    return weights @ apart.square().sum(1) / 4


# --------------------------------------------------------------------------------------------------------------------
# State of a training run after an epoch, from which it resumes as if it had never stopped.
#
# A checkpoint is tensors by name and a few words, as in a safetensors file. It holds no state of random numbers: those
# of an epoch depend on the seed and the epoch alone. Scope: the state and its bytes. A ``Keeper`` stores them.


_HISTORY: Final = "history"
_MOMENTS: Final = ("step", "exp_avg", "exp_avg_sq")
"""What Adam remembers of each parameter."""
_STATE: Final = "state"
"""The one word of the metadata: the format puts several words into any order."""


@dataclass(frozen=True)
class Checkpoint:
    """After ``epoch`` epochs, on the CPU."""

    epoch: int
    tensors: Mapping[str, Tensor]
    """``<side>.<tensor>`` and ``<side>.adam.<number>.<moment>`` of each side, and ``history``."""
    fingerprint: str
    """Of rows and settings: a run goes on with those that it began with."""

    @property
    def history(self) -> Tensor:
        """``(epoch, ...)`` the terms of the loss so far."""
        return self.tensors[_HISTORY]


class Keeper(Protocol):
    """Keeps the states of training runs, so that a run that was stopped can go on."""

    def kept(self, run: str) -> Checkpoint | None:
        """The last state of a run, by its name; None where there is none."""

    def keep(self, run: str, state: Checkpoint) -> None:
        """Keep a state in place of the one before."""


class Side(Protocol):
    """Networks that are trained together, and what trains them. A game has two sides."""

    def tensors(self) -> dict[str, Tensor]:
        """Weights, running statistics and Adam's moments, whether copied or not."""

    def restore(self, checkpoint: Checkpoint) -> None:
        """Take over weights, and moments once there are any."""


@dataclass(frozen=True)
class ModuleSide:
    """A side that is a module of torch, trained by torch's own Adam."""

    name: str
    networks: nn.Module
    optimizer: torch.optim.Adam

    def tensors(self) -> dict[str, Tensor]:
        """Weights, running statistics and Adam's moments, not copied."""
        tensors = {f"{self.name}.{name}": value for name, value in self.networks.state_dict().items()}
        for number, moments in self.optimizer.state_dict()["state"].items():
            tensors |= {f"{self.name}.adam.{number}.{name}": moments[name] for name in _MOMENTS}
        return tensors

    def restore(self, checkpoint: Checkpoint) -> None:
        """Take over weights, and moments once there are any."""
        tensors, prefix = checkpoint.tensors, f"{self.name}."
        parts = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
        self.networks.load_state_dict({name: value for name, value in parts.items() if not name.startswith("adam.")})
        if checkpoint.epoch:
            state = self.optimizer.state_dict()
            numbers = range(len(list(self.networks.parameters())))
            state["state"] = {n: {name: parts[f"adam.{n}.{name}"].clone() for name in _MOMENTS} for n in numbers}
            self.optimizer.load_state_dict(state)


def take(sides: Sequence[Side], history: Tensor, mark: str) -> Checkpoint:
    """The state as copies that later steps do not touch."""
    tensors = {name: value for side in sides for name, value in side.tensors().items()}
    copies = {name: value.detach().cpu().clone() for name, value in tensors.items()}
    return Checkpoint(len(history), {**copies, _HISTORY: history.clone()}, mark)


def restore(checkpoint: Checkpoint, sides: Sequence[Side], mark: str) -> None:
    """Put a run back into the state of a checkpoint.

    Raises:
        IntegrityError: If the checkpoint is of other rows or settings.
    """
    if checkpoint.fingerprint != mark:
        raise IntegrityError(
            "the checkpoint is of a training run on other rows or with other settings; "
            "train from the start, or resume with the rows and the settings it was made with"
        )
    for side in sides:
        side.restore(checkpoint)


def to_bytes(checkpoint: Checkpoint) -> bytes:
    """A checkpoint as safetensors, as bytes that follow from it alone."""
    state = {"epoch": checkpoint.epoch, "fingerprint": checkpoint.fingerprint, "digest": _digest(checkpoint.tensors)}
    return save(dict(checkpoint.tensors), {_STATE: json.dumps(state)})


def of_bytes(content: bytes) -> Checkpoint:
    """The checkpoint that ``to_bytes`` wrote.

    Raises:
        IntegrityError: It is damaged, or was never one.
    """
    try:
        tensors = load(content)
        length = int.from_bytes(content[:8], "little")
        state = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][_STATE])
        if state["digest"] != _digest(tensors):
            raise IntegrityError("a checkpoint's tensors are not those that were written; train from the start")
        return Checkpoint(state["epoch"], tensors, state["fingerprint"])
    except (SafetensorError, KeyError, ValueError) as error:
        raise IntegrityError("a checkpoint cannot be read as one; train from the start") from error


def _digest(tensors: Mapping[str, Tensor]) -> str:
    """The format itself does not notice a bit that has turned."""
    names = sorted(tensors)
    return digest_of(names, *(tensors[name].contiguous().numpy() for name in names))


# --------------------------------------------------------------------------------------------------------------------
# Training by the three-term loss (Algorithm 2), the same on every run and after every interruption.
#
# Each epoch shuffles the rows and draws dropout from the seed and its own number. On the CPU torch trains on one
# thread:
# batches of 64 gain nothing from more, and the result does not depend on the number of cores. The number of threads and
# torch's global generator are restored afterwards.


UNMATCHED: Final = -1

TERMS: Final = ("loss", "prediction", "odds", "consistency")
"""Columns of a history ``(epoch, 4)``: means over batches of the whole loss and of its terms before weighting."""


class DivergedError(DataQualityError):
    """A loss or a weight that is no number; the last good state is kept."""

    def __init__(self, epoch: int, batch: int, last_good: Checkpoint) -> None:
        """Name the epoch and the batch, both from 1, and keep the state after the epoch before."""
        super().__init__(
            f"training diverged: the loss is not finite in epoch {epoch}, batch {batch}; the state after epoch "
            f"{last_good.epoch} is kept; lower learning_rate or the lambdas, or look for extreme inputs"
        )
        self.epoch, self.batch, self.last_good = epoch, batch, last_good
        self.run = ""
        """Name of the run, where several are trained."""


@dataclass(frozen=True)
class TrainingRows:
    """What a net is trained on; all arrays by row."""

    inputs: Floats
    """``(n, d)`` standardised."""
    favourable: Bools
    """``(n,)`` labels."""
    protected: Bools
    """``(n,)`` group."""
    match: Longs
    """``(n,)`` row of the counterfactual among these rows, ``UNMATCHED`` where there is none."""
    weight: Floats | None = None
    """``(n,)`` weight of each row in the prediction loss; all 1 if None."""

    def baseline(self) -> Floats:
        """``(n, d)`` mean inputs of each row's (label, group) cell (section 4.2)."""
        cell = self.favourable * 2 + self.protected
        means: Floats = np.zeros((4, self.inputs.shape[1]))
        for category in np.unique(cell):
            means[category] = self.inputs[cell == category].mean(axis=0)
        baseline: Floats = means[cell]
        return baseline


@dataclass(frozen=True)
class Trained:
    """A net in eval mode on the CPU, and the state from which training could go on."""

    net: nn.Sequential
    checkpoint: Checkpoint


def train(
    rows: TrainingRows,
    settings: TrainingSettings,
    on_epoch: Callable[[Checkpoint], None] | None = None,
    resume: Checkpoint | None = None,
) -> Trained:
    """Minimise prediction + lambda_EO odds + lambda_CEC consistency by Adam.

    Args:
        rows: Training rows; those without a match count for prediction and odds only.
        settings: Of the run.
        on_epoch: Told the state after each epoch.
        resume: A state that an earlier run told, to go on from.

    Raises:
        DivergedError: If the loss is no longer finite; it keeps the state of the epoch before.
        DataQualityError: If the rows have labels of one kind only or inputs that are not finite.
        IntegrityError: If ``resume`` is of other rows or settings.
        InfrastructureError: If a CUDA device is asked for and there is none.
    """
    if rows.favourable.all() or not rows.favourable.any():
        raise DataQualityError("the training rows have labels of one kind only; training needs both")
    if not np.isfinite(rows.inputs).all():
        raise DataQualityError("inputs of the training rows are missing or infinite; impute or refuse such rows")
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise InfrastructureError("training is to run on a CUDA device and there is none; set device to auto or cpu")
    device = chosen_device(settings.device)
    net = build(rows.inputs.shape[1], settings.net, draws(settings.seed, INITIAL)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), settings.learning_rate, fused=True)
    arrays = rows.inputs, rows.favourable, rows.protected, rows.match, _weights(rows)
    fingerprint = digest_of(replace(settings, epochs=0, device="auto"), *arrays)
    side, mark = ModuleSide("net", net, optimizer), fingerprint
    state = resume or take([side], torch.zeros(0, len(TERMS), dtype=torch.float64), mark)
    restore(state, [side], mark)
    with one_thread():
        for epoch in range(state.epoch, settings.epochs):
            losses = _epoch(net, optimizer, rows, settings, draws(settings.seed, epoch))
            bad = torch.nonzero(~torch.isfinite(losses).all(1))
            if len(bad):
                raise DivergedError(state.epoch + 1, int(bad[0]) + 1, state)
            if not all(bool(torch.isfinite(weights).all()) for weights in net.parameters()):
                raise DivergedError(state.epoch + 1, len(losses), state)
            mean = losses.double().mean(0, keepdim=True)
            state = take([side], torch.cat([state.history, mean]), mark)
            if on_epoch is not None:
                on_epoch(state)
    return Trained(net.cpu().eval(), state)


def _epoch(
    net: nn.Sequential,
    optimizer: torch.optim.Adam,
    rows: TrainingRows,
    settings: TrainingSettings,
    rng: np.random.Generator,
) -> Tensor:
    """One pass over all rows; the losses of each batch, ``(batches, 4)``, on the CPU."""
    losses = []
    for batch in _batches(rows, settings, rng, next(net.parameters()).device):
        unit_masks = kept_units(net, len(batch.inputs), rng)
        optimizer.zero_grad()
        loss, terms = _loss(net, batch, settings, unit_masks and [part.to(batch.inputs.device) for part in unit_masks])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(torch.stack([loss.detach(), *(term.detach() for term in terms)]))
    return torch.stack(losses).cpu()


@dataclass(frozen=True)
class _Batch:
    """Consecutive rows of the shuffled order; pairs are those of its first rows."""

    inputs: Tensor
    label: Tensor
    weight: Tensor
    contrasts: Tensor
    pairs: Tensor
    """``(2h, d)`` rows and, below them, their counterfactuals."""
    baseline: Tensor
    """``(2h, d)`` that of the factual for both (Principle 1)."""
    pair_weight: Tensor
    """``(h,)``."""


def _loss(
    net: nn.Sequential, batch: _Batch, settings: TrainingSettings, unit_masks: list[Tensor] | None
) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
    """The loss and its three terms before weighting; a term of weight 0 is not computed."""
    scores = logits(net, batch.inputs, unit_masks)
    prediction = functional.binary_cross_entropy_with_logits(scores, batch.label, batch.weight)
    odds = consistency = torch.zeros_like(prediction)
    loss = prediction
    if settings.lambda_eo:
        odds = equalised_odds(scores, batch.contrasts)
        loss = loss + settings.lambda_eo * odds
    if settings.lambda_cec:
        explained = integrated_gradients(net, batch.pairs, batch.baseline, settings.steps)
        factual, counterfactual = explained.chunk(2)
        consistency = inconsistency(factual, counterfactual, batch.pair_weight)
        loss = loss + settings.lambda_cec * consistency
    return loss, (prediction, odds, consistency)


def _batches(
    rows: TrainingRows, settings: TrainingSettings, rng: np.random.Generator, device: torch.device
) -> Iterator[_Batch]:
    """The rows in a random order, batch by batch; what batches share is laid out for the whole epoch first."""
    order = rng.permutation(len(rows.inputs))
    size, looked_at = settings.batch, pairs_looked_at(settings.batch, settings.pair_share)
    favourable, match = rows.favourable[order], rows.match[order]
    partner = np.where(match == UNMATCHED, order, match)  # of weight 0, and so explained like itself
    tensors = (
        rows.inputs[order], favourable, _weights(rows)[order],
        odds_contrasts(favourable, rows.protected[order], size), rows.inputs[partner], rows.baseline()[order],
        pair_weights(match != UNMATCHED, size, settings.pair_share),
    )  # fmt: skip
    inputs, label, weight, contrasts, imagined, baseline, pair_weight = (
        torch.from_numpy(np.asarray(part, np.float32)).to(device) for part in tensors
    )
    for begin in range(0, len(order), size):
        every, first = slice(begin, begin + size), slice(begin, min(begin + looked_at, len(order)))
        yield _Batch(
            inputs[every], label[every], weight[every], contrasts[:, every],
            torch.cat([inputs[first], imagined[first]]), torch.cat([baseline[first], baseline[first]]),
            pair_weight[first],
        )  # fmt: skip


def _weights(rows: TrainingRows) -> Floats:
    """Weight of each row, ``(n,)``."""
    return np.ones(len(rows.inputs)) if rows.weight is None else rows.weight
