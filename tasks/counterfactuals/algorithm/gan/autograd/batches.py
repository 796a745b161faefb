"""Batches of rows for an ensemble of networks: features before rows, each network in its own order."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from tasks.counterfactuals.algorithm.gan.mixed import Encoded
from tasks.counterfactuals.algorithm.gan.settings import GanSettings
from tasks.numerics.determinism import draws


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
