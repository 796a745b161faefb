"""Both sides as modules of torch, their losses differentiated automatically, and Adam as torch has it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.counterfactuals.algorithm.gan.autograd.batches import Batch, Table
from tasks.counterfactuals.algorithm.gan.autograd.losses import adversarial, mixed_in, reconstruction, told_apart
from tasks.counterfactuals.algorithm.gan.mixed import Encoded
from tasks.counterfactuals.algorithm.gan.networks import (
    Discriminators,
    Epoch,
    Generators,
    Shape,
    chosen,
    fresh,
    softened,
)
from tasks.counterfactuals.algorithm.gan.settings import LOOKED_AT, GanSettings
from tasks.numerics.determinism import chosen_device, one_thread
from tasks.numerics.networks.checkpoint import ModuleSide


@dataclass(frozen=True)
class AutogradGame:
    """Both sides, the rows, and how they play."""

    settings: GanSettings
    shape: Shape
    table: Table
    networks: tuple[Generators, Discriminators]
    sides: Sequence[ModuleSide]

    @classmethod
    def begin(cls, encoded: Encoded, shape: Shape, settings: GanSettings) -> "AutogradGame":
        """Networks with fresh weights, on the device."""
        device = chosen_device(settings.device)
        generators, discriminators = fresh(shape, settings)
        networks = generators.to(device), discriminators.to(device)
        sides = [
            ModuleSide(name, one, torch.optim.Adam(one.parameters(), settings.learning_rate, fused=True))
            for name, one in zip(("generators", "discriminators"), networks, strict=True)
        ]
        return cls(settings, shape, Table.of(encoded, shape.categories, device), networks, sides)

    @contextmanager
    def playing(self) -> Iterator[Epoch]:
        """An epoch after another, on one thread of torch."""
        with one_thread():
            yield self._epoch

    def generators(self) -> Generators:
        """The generators as they are, on the CPU and in eval mode."""
        return self.networks[0].cpu().eval()

    def turn(self, batch: Batch) -> None:
        """One step of the discriminators, then one of the generators, from one pass of the latter."""
        (generators, discriminators), (generate, discriminate) = self.networks, self.sides
        made = generators(batch.covariates, batch.member.to(batch.mediators.dtype), batch.mediators)
        soft = softened(made, self.shape.heads)
        shown = mixed_in(chosen(soft, self.shape.heads), batch.member, batch.mediators)
        discriminate.optimizer.zero_grad()
        logits = discriminators(batch.covariates, shown.detach())
        told_apart(logits, batch.category).mean(1).sum().backward()  # type: ignore[no-untyped-call]
        discriminate.optimizer.step()
        generate.optimizer.zero_grad()
        logits = discriminators(batch.covariates, shown)
        played = adversarial(logits, batch.member, batch.category, self.settings.adversarial)
        missed = reconstruction(soft, batch.member, batch.mediators).sum()
        loss = played + self.settings.alpha * missed
        loss.backward(inputs=list(generators.parameters()))  # type: ignore[no-untyped-call]
        generate.optimizer.step()

    def _epoch(self, number: int, rate: float) -> Tensor:
        rows = self.table.shuffled(self.settings, number)
        for side in self.sides:
            for group in side.optimizer.param_groups:
                group["lr"] = rate
        for batch in rows.parts(self.settings.batch):
            self.turn(batch)
        return self._standing(rows.part(0, LOOKED_AT))

    @torch.no_grad()
    def _standing(self, batch: Batch) -> Tensor:
        generators, discriminators = self.networks
        generators.eval()
        made = generators(batch.covariates, batch.member.float(), batch.mediators)
        generators.train()
        soft = softened(made, self.shape.heads)
        shown = mixed_in(chosen(soft, self.shape.heads), batch.member, batch.mediators)
        logits = discriminators(batch.covariates, shown)
        right = (logits.argmax(1) == batch.category).float().mean(1)
        missed = reconstruction(soft, batch.member, batch.mediators)
        return torch.stack([missed, told_apart(logits, batch.category).mean(1), right], dim=1)[None].cpu()
