"""The adversarial game with torch's automatic differentiation."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from tasks.counterfactuals.algorithm.gan.networks import (
    LOOKED_AT,
    Adversarial,
    Discriminators,
    Encoded,
    Epoch,
    GanSettings,
    Generators,
    Shape,
    chosen,
    fresh,
    softened,
)
from tasks.numerics.networks.perceptron import chosen_device, draws, one_thread
from tasks.numerics.networks.training import ModuleSide

# --------------------------------------------------------------------------------------------------------------------
# Batches of rows for an ensemble of networks: features before rows, each network in its own order.


@dataclass(frozen=True)
class Batch:
    """Rows of each network, features before rows."""

    covariates: Tensor
    """``(s, c, r)``."""
    member: Tensor
    """``(s, k, r)`` whether a row is of a category."""
    mediators: Tensor
    """``(s, d, r)``."""
    category: Tensor
    """``(s, r)``."""

    def part(self, first: int, end: int) -> "Batch":
        """Some of the rows."""
        every = slice(first, end)
        return Batch(
            self.covariates[..., every], self.member[..., every], self.mediators[..., every], self.category[:, every]
        )

    def parts(self, size: int) -> Iterator["Batch"]:
        """Whole batches, in order."""
        for first in range(0, self.category.shape[1] - size + 1, size):
            yield self.part(first, first + size)


@dataclass(frozen=True)
class Table:
    """All rows on the device, features before rows: covariates, one-hot category, mediators."""

    values: Tensor
    """``(c + k + d, n)``."""
    category: Tensor
    """``(n,)``."""
    widths: tuple[int, int, int]

    @classmethod
    def of(cls, encoded: Encoded, categories: int, device: torch.device) -> "Table":
        """Move encoded rows to a device."""
        category = torch.from_numpy(encoded.category)
        parts = [
            torch.from_numpy(encoded.covariates.T).float(),
            functional.one_hot(category, categories).T.float(),
            torch.from_numpy(encoded.mediators.T).float(),
        ]
        return cls(torch.cat(parts).to(device), category.to(device), (len(parts[0]), len(parts[1]), len(parts[2])))

    def shuffled(self, settings: GanSettings, epoch: int) -> Batch:
        """All rows in the order that each network has for an epoch."""
        orders = [
            torch.from_numpy(draws(settings.seed, settings.first + number, epoch).permutation(len(self.category)))
            for number in range(settings.networks)
        ]
        order = torch.stack(orders).to(self.values.device)
        values = self.values[:, order].transpose(0, 1).contiguous()
        covariates, member, mediators = torch.split(values, list(self.widths), dim=1)
        return Batch(covariates, member > 0, mediators, self.category[order])


# --------------------------------------------------------------------------------------------------------------------
# Losses of generators and discriminators (equations 4, 7 and 8; Algorithm 1, lines 10 and 16), by network.
#
# Losses are sums over networks of means over rows, so the gradients of networks are independent.


def mixed_in(generated: Tensor, member: Tensor, mediators: Tensor) -> Tensor:
    """G~: what was observed in the place of each row's own category (equation 5), ``(s, k, d, r)``.

    Args:
        generated: ``(s, k, d, r)`` what was generated.
        member: ``(s, k, r)`` one-hot category, as truth values.
        mediators: ``(s, d, r)`` what was observed.
    """
    return torch.where(member[:, :, None], mediators[:, None], generated)


def reconstruction(soft: Tensor, member: Tensor, mediators: Tensor) -> Tensor:
    """Mean over rows of ||m - G(x, a, m)_A||^2 (equation 4), ``(s,)``."""
    missed = (soft - mediators[:, None]).square().sum(2)
    return (missed * member).sum((1, 2)) / member.shape[2]


def told_apart(logits: Tensor, category: Tensor) -> Tensor:
    """-log D_A by row (equation 7 with its sign turned), ``(s, r)``: the loss of the discriminators."""
    return functional.cross_entropy(logits, category, reduction="none")


def adversarial(logits: Tensor, member: Tensor, category: Tensor, kind: Adversarial) -> Tensor:
    """What the generators minimise of the discriminators, summed over networks.

    Args:
        logits: ``(s, k, r)``.
        member: ``(s, k, r)`` one-hot category, as truth values.
        category: ``(s, r)`` the same as numbers.
        kind: Which of the losses.
    """
    if kind == "non_saturating":
        other_logits = logits.masked_fill(member, -torch.inf).logsumexp(1)
        return (logits.logsumexp(1) - other_logits).mean(1).sum()
    return (-2 if kind == "algorithm_1" else -1) * told_apart(logits, category).mean(1).sum()


# --------------------------------------------------------------------------------------------------------------------
# Both sides as modules of torch, their losses differentiated automatically, and Adam as torch has it.


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
            ModuleSide(name, network, torch.optim.Adam(network.parameters(), settings.learning_rate, fused=True))
            for name, network in zip(("generators", "discriminators"), networks, strict=True)
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
        outputs = generators(batch.covariates, batch.member.to(batch.mediators.dtype), batch.mediators)
        soft = softened(outputs, self.shape.heads)
        mixed = mixed_in(chosen(soft, self.shape.heads), batch.member, batch.mediators)
        discriminate.optimizer.zero_grad()
        logits = discriminators(batch.covariates, mixed.detach())
        told_apart(logits, batch.category).mean(1).sum().backward()  # type: ignore[no-untyped-call]
        discriminate.optimizer.step()
        generate.optimizer.zero_grad()
        logits = discriminators(batch.covariates, mixed)
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
        outputs = generators(batch.covariates, batch.member.float(), batch.mediators)
        generators.train()
        soft = softened(outputs, self.shape.heads)
        mixed = mixed_in(chosen(soft, self.shape.heads), batch.member, batch.mediators)
        logits = discriminators(batch.covariates, mixed)
        right = (logits.argmax(1) == batch.category).float().mean(1)
        missed = reconstruction(soft, batch.member, batch.mediators)
        return torch.stack([missed, told_apart(logits, batch.category).mean(1), right], dim=1)[None].cpu()
