"""State of a training after an epoch: named tensors and a few words, the content of a safetensors file.

Random numbers are no part of it: those of an epoch follow from the seed, the network and the epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import torch
from torch import Tensor, nn

from schemas.errors import DataQualityError, IntegrityError
from tasks.counterfactuals.algorithm.gan.settings import GanSettings
from tasks.numerics.determinism import digest_of
from tasks.numerics.mediation import Mediation

TERMS: Final = ("reconstruction", "log_loss", "accuracy")
"""Last axis of a history: squared error of the observed mediators, and how well the discriminator picks them out."""

_HISTORY = "history"
_MOMENTS = ("step", "exp_avg", "exp_avg_sq")
"""What Adam remembers of each parameter."""


@dataclass(frozen=True)
class Checkpoint:
    """After ``epoch`` epochs, on the CPU."""

    epoch: int
    tensors: Mapping[str, Tensor]
    """``generators.<tensor>``, ``discriminators.<tensor>``, ``<side>.adam.<number>.<moment>`` and ``history``."""
    fingerprint: str
    """Of rows and settings: a run goes on with those that it began with."""

    @property
    def history(self) -> Tensor:
        """``(epoch, s, 3)`` the ``TERMS`` of each network after each epoch, batch normalisation as it is used."""
        return self.tensors[_HISTORY]


class GanDivergedError(DataQualityError):
    """A weight or a loss that is no number; the last good state is kept."""

    def __init__(self, last_good: Checkpoint) -> None:
        """Name the epoch, from 1, and keep the state after the one before."""
        self.epoch, self.last_good = last_good.epoch + 1, last_good
        super().__init__(
            f"training of the generators diverged: a weight or loss is not finite in epoch {self.epoch}; the state "
            f"after epoch {last_good.epoch} is kept; lower learning_rate or alpha, or look for extreme mediators"
        )


@dataclass(frozen=True)
class Side:
    """The networks of one side of the game and what trains them."""

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


def fingerprint(settings: GanSettings, rows: Mediation) -> str:
    """SHA-256 of what is trained on and how. Another device is still the same run."""
    names = rows.categories, rows.covariates.names, rows.mediators.names
    arrays = rows.covariates.values, rows.category, rows.mediators.values
    return digest_of((replace(settings, device="auto"), names), *arrays)


def take(sides: tuple[Side, ...], history: Tensor, mark: str) -> Checkpoint:
    """The state as copies that later steps do not touch."""
    tensors = {name: value for side in sides for name, value in side.tensors().items()}
    copies = {name: value.detach().cpu().clone() for name, value in tensors.items()}
    return Checkpoint(len(history), {**copies, _HISTORY: history.clone()}, mark)


def restore(checkpoint: Checkpoint, sides: tuple[Side, ...], mark: str) -> None:
    """Put a run back into the state of a checkpoint.

    Raises:
        IntegrityError: If the checkpoint is of other rows or settings.
    """
    if checkpoint.fingerprint != mark:
        raise IntegrityError(
            "the checkpoint is of generators trained on other rows or with other settings; train from the start, or "
            "resume with the rows and the settings it was made with"
        )
    for side in sides:
        side.restore(checkpoint)
