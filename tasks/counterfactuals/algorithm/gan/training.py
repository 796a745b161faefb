"""Adversarial training (Algorithm 1), the same on every run and after every interruption.

Seed, network and epoch determine the order of the rows of each network. Discriminator and generator alternate on the
same batch. An incomplete last batch is left for the next epoch, because batch normalisation of one row is undefined.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import torch
from torch import Tensor

from schemas.errors import DataQualityError, SpecError
from tasks.counterfactuals.algorithm.gan.batches import Batch, Table
from tasks.counterfactuals.algorithm.gan.imaginer import Imaginer
from tasks.counterfactuals.algorithm.gan.losses import adversarial, mixed_in, reconstruction, told_apart
from tasks.counterfactuals.algorithm.gan.mixed import fit_encoder
from tasks.counterfactuals.algorithm.gan.networks import Discriminators, Generators, Shape, chosen, softened
from tasks.counterfactuals.algorithm.gan.settings import GanSettings
from tasks.numerics.determinism import INITIAL, chosen_device, digest_of, draws, one_thread
from tasks.numerics.mediation import Mediation, require_trainable
from tasks.numerics.networks.checkpoint import Checkpoint, Side, restore, take

TERMS: Final = ("reconstruction", "log_loss", "accuracy")
"""Last axis of a history ``(epoch, s, 3)``: squared error of the observed mediators, and how well the discriminator
picks them out, batch normalisation as it is used."""

_LOOKED_AT = 2_048
"""Rows, new ones in each epoch, from which a history is taken."""


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
class Trained:
    """What imagines, and the state from which training could go on."""

    imaginer: Imaginer
    checkpoint: Checkpoint


def train(
    rows: Mediation,
    settings: GanSettings,
    on_epoch: Callable[[Checkpoint], None] | None = None,
    resume: Checkpoint | None = None,
) -> Trained:
    """Train an ensemble: min over G, max over D of E log D_A + alpha E||m - G_A||^2 (equation 8).

    Args:
        rows: Training rows.
        settings: Of the run.
        on_epoch: Told the state after each epoch.
        resume: A state that an earlier run told, to go on from.

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
    game = _Game.begin(shape, settings)
    mark = _fingerprint(settings, rows)
    state = resume or take(game.sides, torch.zeros(0, settings.networks, len(TERMS)), mark)
    restore(state, game.sides, mark)
    table = Table.of(encoded, shape.categories, chosen_device(settings.device))
    with one_thread():
        for epoch in range(state.epoch, settings.epochs):
            state = _epoch(game, table.shuffled(settings, epoch), epoch, state)
            if on_epoch is not None:
                on_epoch(state)
    return Trained(Imaginer(encoder, game.generators.cpu().eval()), state)


def _fingerprint(settings: GanSettings, rows: Mediation) -> str:
    """SHA-256 of what is trained on and how. Another device is still the same run."""
    names = rows.categories, rows.covariates.names, rows.mediators.names
    arrays = rows.covariates.values, rows.category, rows.mediators.values
    return digest_of((replace(settings, device="auto"), names), *arrays)


@dataclass(frozen=True)
class _Game:
    """Both sides, and how they play."""

    settings: GanSettings
    shape: Shape
    generators: Generators
    discriminators: Discriminators
    sides: tuple[Side, Side]

    @classmethod
    def begin(cls, shape: Shape, settings: GanSettings) -> "_Game":
        """Networks with fresh weights."""
        numbers = range(settings.first, settings.first + settings.networks)
        rngs = [draws(settings.seed, number, INITIAL) for number in numbers]
        device = chosen_device(settings.device)
        generators, discriminators = Generators(shape, rngs).to(device), Discriminators(shape, rngs).to(device)
        networks = {"generators": generators, "discriminators": discriminators}
        first, second = (
            Side(name, one, torch.optim.Adam(one.parameters(), settings.learning_rate, fused=True))
            for name, one in networks.items()
        )
        return cls(settings, shape, generators, discriminators, (first, second))

    def turn(self, batch: Batch) -> None:
        """One step of the discriminators, then one of the generators, from one pass of the latter."""
        generate, discriminate = self.sides
        made = self.generators(batch.covariates, batch.member.float(), batch.mediators)
        soft = softened(made, self.shape.heads)
        shown = mixed_in(chosen(soft, self.shape.heads), batch.member, batch.mediators)
        discriminate.optimizer.zero_grad()
        logits = self.discriminators(batch.covariates, shown.detach())
        told_apart(logits, batch.category).mean(1).sum().backward()  # type: ignore[no-untyped-call]
        discriminate.optimizer.step()
        generate.optimizer.zero_grad()
        logits = self.discriminators(batch.covariates, shown)
        played = adversarial(logits, batch.member, batch.category, self.settings.adversarial)
        missed = reconstruction(soft, batch.member, batch.mediators).sum()
        loss = played + self.settings.alpha * missed
        loss.backward(inputs=list(self.generators.parameters()))  # type: ignore[no-untyped-call]
        generate.optimizer.step()

    @torch.no_grad()
    def standing(self, batch: Batch) -> Tensor:
        """``(1, s, 3)`` the terms of the history, on the CPU."""
        self.generators.eval()
        made = self.generators(batch.covariates, batch.member.float(), batch.mediators)
        self.generators.train()
        soft = softened(made, self.shape.heads)
        shown = mixed_in(chosen(soft, self.shape.heads), batch.member, batch.mediators)
        logits = self.discriminators(batch.covariates, shown)
        right = (logits.argmax(1) == batch.category).float().mean(1)
        missed = reconstruction(soft, batch.member, batch.mediators)
        return torch.stack([missed, told_apart(logits, batch.category).mean(1), right], dim=1)[None].cpu()

    def pace(self, epoch: int) -> None:
        """Set the learning rate of an epoch, from 0: as given, then falling linearly from ``decay_from`` on."""
        epochs, whole = self.settings.epochs, self.settings.decay_from
        share = 1.0 if whole >= 1 else min(1.0, (epochs - epoch) / (epochs * (1 - whole)))
        for side in self.sides:
            for group in side.optimizer.param_groups:
                group["lr"] = self.settings.learning_rate * share


def _epoch(game: _Game, rows: Batch, epoch: int, before: Checkpoint) -> Checkpoint:
    """One pass over the rows; the state after it, if all of it is finite."""
    game.pace(epoch)
    for batch in rows.parts(game.settings.batch):
        game.turn(batch)
    standing = game.standing(rows.part(0, _LOOKED_AT))
    after = take(game.sides, torch.cat([before.history, standing]), before.fingerprint)
    if not all(bool(torch.isfinite(tensor).all()) for tensor in after.tensors.values()):
        raise GanDivergedError(before)
    return after
