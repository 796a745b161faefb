"""Adversarial training (Algorithm 1), the same on every run and after every interruption.

Seed, network and epoch determine the order of the rows of each network. Discriminator and generator alternate on the
same batch. An incomplete last batch is left for the next epoch, because batch normalisation of one row is undefined.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Final, Protocol

import torch

from schemas.errors import DataQualityError, SpecError
from tasks.counterfactuals.algorithm.gan.autograd.game import AutogradGame
from tasks.counterfactuals.algorithm.gan.compiled.game import CompiledGame
from tasks.counterfactuals.algorithm.gan.imaginer import Imaginer
from tasks.counterfactuals.algorithm.gan.mixed import Encoded, fit_encoder
from tasks.counterfactuals.algorithm.gan.networks import Epoch, Generators, Shape
from tasks.counterfactuals.algorithm.gan.settings import GanSettings
from tasks.numerics.determinism import chosen_device, digest_of
from tasks.numerics.mediation import Mediation, require_trainable
from tasks.numerics.networks.checkpoint import Checkpoint, Side, restore, take

TERMS: Final = ("reconstruction", "log_loss", "accuracy")
"""Last axis of a history ``(epoch, s, 3)``: squared error of the observed mediators, and how well the discriminator
picks them out, batch normalisation as it is used."""


class GanDivergedError(DataQualityError):
    """A weight or a loss that is no number; the last good state is kept."""

    def __init__(self, last_good: Checkpoint) -> None:
        """Name the epoch, from 1, and keep the state after the one before."""
        self.epoch, self.last_good = last_good.epoch + 1, last_good
        super().__init__(
            f"training of the generators diverged: a weight or loss is not finite in epoch {self.epoch}; the state "
            f"after epoch {last_good.epoch} is kept; lower learning_rate or alpha, or look for extreme mediators"
        )


class Game(Protocol):
    """An ensemble of generators against its discriminators: ``compiled`` or ``autograd``."""

    @property
    def sides(self) -> Sequence[Side]:
        """Generators and discriminators."""

    def playing(self) -> AbstractContextManager[Epoch]:
        """Holds threads while epochs are played."""

    def generators(self) -> Generators:
        """The generators as they are, on the CPU and in eval mode."""


@dataclass(frozen=True)
class Trained:
    """What imagines, and the state from which training could go on."""

    imaginer: Imaginer
    checkpoint: Checkpoint


def train(
    rows: Mediation,
    settings: GanSettings,
    on_epoch: Callable[[Checkpoint], None] | None = None,
    resume: Checkpoint | None = None,
    begin: Callable[[Encoded, Shape, GanSettings], Game] | None = None,
) -> Trained:
    """Train an ensemble: min over G, max over D of E log D_A + alpha E||m - G_A||^2 (equation 8).

    Args:
        rows: Training rows.
        settings: Of the run.
        on_epoch: Told the state after each epoch.
        resume: A state that an earlier run told, to go on from.
        begin: Begins the game; by the device if None.

    Raises:
        GanDivergedError: If a weight or loss is no longer finite; it keeps the state of the epoch before.
        SpecError: If a batch has a single row, which batch normalisation cannot scale.
        DataQualityError: If nothing can be learnt from the rows (``mediation.require_trainable``).
        IntegrityError: If ``resume`` is of other rows or settings.
    """
    if settings.batch < 2:
        raise SpecError(f"a batch of {settings.batch} has no spread to normalise by; set batch to 2 or more, as 256")
    require_trainable(rows, settings.batch)
    encoder = fit_encoder(rows, settings.among_alike, settings.seed)
    encoded = encoder.encode(rows)
    inputs = encoded.covariates.shape[1]
    shape = Shape(inputs, len(rows.categories), encoder.width, encoder.heads, settings.hidden)
    game = (begin or _begin)(encoded, shape, settings)
    mark = _fingerprint(settings, rows)
    state = resume or take(game.sides, torch.zeros(0, settings.networks, len(TERMS)), mark)
    restore(state, game.sides, mark)
    with game.playing() as play:
        for epoch in range(state.epoch, settings.epochs):
            standing = play(epoch, _rate(settings, epoch))
            state = _finite(take(game.sides, torch.cat([state.history, standing]), mark), state)
            if on_epoch is not None:
                on_epoch(state)
    return Trained(Imaginer(encoder, game.generators()), state)


def _fingerprint(settings: GanSettings, rows: Mediation) -> str:
    """SHA-256 of what is trained on and how. Another device is still the same run."""
    names = rows.categories, rows.covariates.names, rows.mediators.names
    arrays = rows.covariates.values, rows.category, rows.mediators.values
    return digest_of((replace(settings, device="auto"), names), *arrays)


def _begin(encoded: Encoded, shape: Shape, settings: GanSettings) -> Game:
    """A game on the device of the settings: compiled on the CPU, by automatic differentiation on CUDA."""
    on_cpu = chosen_device(settings.device).type == "cpu"
    return (CompiledGame if on_cpu else AutogradGame).begin(encoded, shape, settings)


def _rate(settings: GanSettings, epoch: int) -> float:
    """The learning rate of an epoch, from 0: as given, then falling linearly from ``decay_from`` on."""
    epochs, whole = settings.epochs, settings.decay_from
    share = 1.0 if whole >= 1 else min(1.0, (epochs - epoch) / (epochs * (1 - whole)))
    return settings.learning_rate * share


def _finite(after: Checkpoint, before: Checkpoint) -> Checkpoint:
    """The state after an epoch, if all of it is finite."""
    if not all(bool(torch.isfinite(tensor).all()) for tensor in after.tensors.values()):
        raise GanDivergedError(before)
    return after
