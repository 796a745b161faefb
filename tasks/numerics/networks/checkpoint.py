"""State of a training run after an epoch, from which it resumes as if it had never stopped.

A checkpoint is tensors by name and a few words, as in a safetensors file. It holds no state of random numbers: those of
an epoch depend on the seed and the epoch alone. Scope: the state and its bytes. A ``Keeper`` stores them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from schemas.errors import IntegrityError
from tasks.numerics.determinism import digest_of

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
        found = {f"{self.name}.{name}": value for name, value in self.networks.state_dict().items()}
        for number, moments in self.optimizer.state_dict()["state"].items():
            found |= {f"{self.name}.adam.{number}.{name}": moments[name] for name in _MOMENTS}
        return found

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
    said = {"epoch": checkpoint.epoch, "fingerprint": checkpoint.fingerprint, "digest": _digest(checkpoint.tensors)}
    return save(dict(checkpoint.tensors), {_STATE: json.dumps(said)})


def of_bytes(content: bytes) -> Checkpoint:
    """The checkpoint that ``to_bytes`` wrote.

    Raises:
        IntegrityError: It is damaged, or was never one.
    """
    try:
        tensors = load(content)
        length = int.from_bytes(content[:8], "little")
        said = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][_STATE])
        if said["digest"] != _digest(tensors):
            raise IntegrityError("a checkpoint's tensors are not those that were written; train from the start")
        return Checkpoint(said["epoch"], tensors, said["fingerprint"])
    except (SafetensorError, KeyError, ValueError) as error:
        raise IntegrityError("a checkpoint cannot be read as one; train from the start") from error


def _digest(tensors: Mapping[str, Tensor]) -> str:
    """The format itself does not notice a bit that has turned."""
    names = sorted(tensors)
    return digest_of(names, *(tensors[name].contiguous().numpy() for name in names))
