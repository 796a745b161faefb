"""The state of a training run after an epoch: all that it takes to go on as if it had never stopped.

A checkpoint is tensors by name and a few words, which is what a safetensors file holds. Random numbers are no part of
it: those of an epoch are drawn from the seed and the epoch's number alone.
"""

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from schemas.errors import IntegrityError
from tasks.algorithms.training.settings import TrainingSettings

_HISTORY = "history"
_MOMENTS = ("step", "exp_avg", "exp_avg_sq")
"""What Adam remembers of each parameter."""


@dataclass(frozen=True)
class Checkpoint:
    """After ``epoch`` epochs, on the CPU."""

    epoch: int
    tensors: dict[str, Tensor]
    """``net.<parameter>``, ``adam.<number>.<moment>`` and ``history``, the ``(epoch, 4)`` losses so far."""
    fingerprint: str
    """Of the rows and of the settings: a run goes on with those that it began with."""

    @property
    def history(self) -> Tensor:
        """``(epoch, 4)`` mean over the batches of the loss and its three terms, unweighted, in float64."""
        return self.tensors[_HISTORY]


def fingerprint(settings: TrainingSettings, *arrays: np.ndarray) -> str:
    """SHA-256 of rows and settings. More epochs, or another device, are still the same run."""
    digest = hashlib.sha256(repr(replace(settings, epochs=0, device="auto")).encode())
    for array in arrays:
        digest.update(repr((array.shape, array.dtype.str)).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def take(net: nn.Sequential, optimizer: torch.optim.Adam, history: Tensor, mark: str) -> Checkpoint:
    """The state as copies that later steps do not touch."""
    tensors = {f"net.{name}": value for name, value in net.state_dict().items()}
    for number, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"adam.{number}.{name}": moments[name] for name in _MOMENTS}
    copies = {name: value.detach().cpu().clone() for name, value in tensors.items()}
    return Checkpoint(len(history), {**copies, _HISTORY: history.clone()}, mark)


def restore(checkpoint: Checkpoint, net: nn.Sequential, optimizer: torch.optim.Adam, mark: str) -> None:
    """Put a run back into the state of a checkpoint.

    Raises:
        IntegrityError: If the checkpoint is of other rows or settings.
    """
    if checkpoint.fingerprint != mark:
        raise IntegrityError(
            "the checkpoint is of a training run on other rows or with other settings; "
            "train from the start, or resume with the rows and the settings it was made with"
        )
    parts = {name.removeprefix("net."): value for name, value in checkpoint.tensors.items() if name.startswith("net.")}
    net.load_state_dict(parts)
    if checkpoint.epoch:
        state = optimizer.state_dict()
        state["state"] = {
            number: {name: checkpoint.tensors[f"adam.{number}.{name}"].clone() for name in _MOMENTS}
            for number in range(len(list(net.parameters())))
        }
        optimizer.load_state_dict(state)
