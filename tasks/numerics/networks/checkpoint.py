"""State of a training run after an epoch, from which it resumes as if it had never stopped.

A checkpoint is tensors by name and a few words, which is what a safetensors file holds. Random numbers are no part of
it: those of an epoch are drawn from the seed and the epoch's number alone.

Here belong the state and its bytes. Where they are kept is up to a ``Keeper``.
"""

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from schemas.errors import IntegrityError
from tasks.numerics.determinism import digest_of
from tasks.numerics.networks.settings import TrainingSettings

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


class Keeper(Protocol):
    """Keeps the states of training runs, so that a run that was stopped can go on."""

    def kept(self, run: str) -> Checkpoint | None:
        """The last state of a run, by its name; None where there is none."""
        ...

    def keep(self, run: str, state: Checkpoint) -> None:
        """Keep a state in place of the one before."""
        ...


def fingerprint(settings: TrainingSettings, *arrays: np.ndarray) -> str:
    """SHA-256 of rows and settings. More epochs, or another device, are still the same run."""
    return digest_of(replace(settings, epochs=0, device="auto"), *arrays)


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


def to_bytes(checkpoint: Checkpoint) -> bytes:
    """A checkpoint as safetensors; in its metadata epoch, fingerprint and a digest of the tensors."""
    said = {"epoch": str(checkpoint.epoch), "fingerprint": checkpoint.fingerprint}
    return save(checkpoint.tensors, {**said, "digest": _digest(checkpoint.tensors)})


def of_bytes(content: bytes) -> Checkpoint:
    """The checkpoint that ``to_bytes`` wrote.

    Raises:
        IntegrityError: It is damaged, or was never one.
    """
    try:
        tensors = load(content)
        length = int.from_bytes(content[:8], "little")
        said = json.loads(content[8 : 8 + length])["__metadata__"]
        if said["digest"] != _digest(tensors):
            raise IntegrityError("a checkpoint's tensors are not those that were written; train from the start")
        return Checkpoint(int(said["epoch"]), tensors, said["fingerprint"])
    except (SafetensorError, KeyError, ValueError) as error:
        raise IntegrityError("a checkpoint cannot be read as one; train from the start") from error


def _digest(tensors: dict[str, Tensor]) -> str:
    """SHA-256 of tensors and their names: the format itself does not notice a bit that has turned."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        array = tensors[name].contiguous().numpy()
        digest.update(repr((name, array.shape, array.dtype.str)).encode() + array.tobytes())
    return digest.hexdigest()
