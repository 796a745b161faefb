"""Training by the three-term loss (Algorithm 2), the same on every run and after every interruption.

Each epoch shuffles the rows and draws dropout from the seed and its own number. On the CPU torch trains on one thread:
batches of 64 gain nothing from more, and the result does not depend on the number of cores. The number of threads and
torch's global generator are restored afterwards.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from schemas.errors import DataQualityError, InfrastructureError
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.determinism import INITIAL, Device, chosen_device, digest_of, draws, one_thread
from tasks.numerics.networks.checkpoint import Checkpoint, ModuleSide, restore, take
from tasks.numerics.networks.losses import equalised_odds, inconsistency, odds_contrasts, pair_weights, pairs_looked_at
from tasks.numerics.networks.net import build, kept_units, logits
from tasks.numerics.networks.path import integrated_gradients
from tasks.numerics.networks.settings import TrainingSettings

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
        for one in np.unique(cell):
            means[one] = self.inputs[cell == one].mean(axis=0)
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
    _check(rows)
    device = _device(settings.device)
    net = build(rows.inputs.shape[1], settings.net, draws(settings.seed, INITIAL)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), settings.learning_rate, fused=True)
    side, mark = ModuleSide("net", net, optimizer), _fingerprint(settings, rows)
    state = resume or take([side], torch.zeros(0, len(TERMS), dtype=torch.float64), mark)
    restore(state, [side], mark)
    with one_thread():
        for epoch in range(state.epoch, settings.epochs):
            losses = _epoch(net, optimizer, rows, settings, draws(settings.seed, epoch))
            _require_finite(losses, net, state)
            mean = losses.double().mean(0, keepdim=True)
            state = take([side], torch.cat([state.history, mean]), mark)
            if on_epoch is not None:
                on_epoch(state)
    return Trained(net.cpu().eval(), state)


def _fingerprint(settings: TrainingSettings, rows: TrainingRows) -> str:
    """SHA-256 of rows and settings. More epochs, or another device, are still the same run."""
    arrays = rows.inputs, rows.favourable, rows.protected, rows.match, _weights(rows)
    return digest_of(replace(settings, epochs=0, device="auto"), *arrays)


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
        kept = kept_units(net, len(batch.inputs), rng)
        optimizer.zero_grad()
        loss, terms = _loss(net, batch, settings, kept and [part.to(batch.inputs.device) for part in kept])
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
    net: nn.Sequential, batch: _Batch, settings: TrainingSettings, kept: list[Tensor] | None
) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
    """The loss and its three terms before weighting; a term of weight 0 is not computed."""
    scores = logits(net, batch.inputs, kept)
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
    whole = (
        rows.inputs[order], favourable, _weights(rows)[order],
        odds_contrasts(favourable, rows.protected[order], size), rows.inputs[partner], rows.baseline()[order],
        pair_weights(match != UNMATCHED, size, settings.pair_share),
    )  # fmt: skip
    inputs, label, weight, contrasts, imagined, baseline, pair_weight = (
        torch.from_numpy(np.asarray(part, np.float32)).to(device) for part in whole
    )
    for begin in range(0, len(order), size):
        every, first = slice(begin, begin + size), slice(begin, min(begin + looked_at, len(order)))
        yield _Batch(
            inputs[every], label[every], weight[every], contrasts[:, every],
            torch.cat([inputs[first], imagined[first]]), torch.cat([baseline[first], baseline[first]]),
            pair_weight[first],
        )  # fmt: skip


def _check(rows: TrainingRows) -> None:
    """Refuse rows that nothing can be learnt from."""
    if rows.favourable.all() or not rows.favourable.any():
        raise DataQualityError("the training rows have labels of one kind only; training needs both")
    if not np.isfinite(rows.inputs).all():
        raise DataQualityError("inputs of the training rows are missing or infinite; impute or refuse such rows")


def _require_finite(losses: Tensor, net: nn.Sequential, last_good: Checkpoint) -> None:
    """Refuse an epoch in which a loss was not finite, or whose last step left weights that are not."""
    bad = torch.nonzero(~torch.isfinite(losses).all(1))
    if len(bad):
        raise DivergedError(last_good.epoch + 1, int(bad[0]) + 1, last_good)
    if not all(bool(torch.isfinite(weights).all()) for weights in net.parameters()):
        raise DivergedError(last_good.epoch + 1, len(losses), last_good)


def _weights(rows: TrainingRows) -> Floats:
    """Weight of each row, ``(n,)``."""
    return np.ones(len(rows.inputs)) if rows.weight is None else rows.weight


def _device(wanted: Device) -> torch.device:
    """The device by name.

    Raises:
        InfrastructureError: If it is not there.
    """
    if wanted == "cuda" and not torch.cuda.is_available():
        raise InfrastructureError("training is to run on a CUDA device and there is none; set device to auto or cpu")
    return chosen_device(wanted)
