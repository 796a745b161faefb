"""The ensemble whose turns are compiled: each side's parameters in one vector a network, networks in threads."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import cython_blas  # noqa: F401 loads the library of numba's products, which the limit has to reach
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from tasks.counterfactuals.algorithm.gan.compiled import kernel
from tasks.counterfactuals.algorithm.gan.compiled.passes import Rules
from tasks.counterfactuals.algorithm.gan.mixed import Encoded
from tasks.counterfactuals.algorithm.gan.networks import Epoch, Generators, Shape, fresh
from tasks.counterfactuals.algorithm.gan.settings import Adversarial, GanSettings
from tasks.numerics.arrays import Longs
from tasks.numerics.determinism import draws
from tasks.numerics.networks.checkpoint import Checkpoint

Singles = NDArray[np.float32]

_SATURATING: Final[dict[Adversarial, float]] = {"non_saturating": 0.0, "equation_8": 1.0, "algorithm_1": 2.0}
_ROWS: Final = {"exp_avg": kernel.MEAN, "exp_avg_sq": kernel.SQUARE}
"""Names of Adam's moments in a state."""
_RUNNING: Final = ("mean", "variance")


@dataclass
class FlatSide:
    """One side of all networks: the parameters of a network lie one after the other, as in the module."""

    name: str
    module: nn.Module
    values: Singles
    """``(s, 3, p)`` weights and Adam's moments."""
    running: Singles
    """``(s, 2, h)`` mean and variance of batch normalisation; without a network where there is none."""
    steps: int = 0

    @classmethod
    def of(cls, name: str, module: nn.Module, networks: int) -> "FlatSide":
        """The weights of a module, and moments of 0."""
        weights = [each.detach().numpy().reshape(networks, -1) for each in module.parameters()]
        values = np.zeros((networks, 3, sum(each.shape[1] for each in weights)), np.float32)
        values[:, kernel.WEIGHTS] = np.concatenate(weights, axis=1)
        buffers = [each.numpy().reshape(networks, -1) for each in module.buffers()]
        return cls(name, module, values, np.stack(buffers, axis=1) if buffers else np.zeros((0, 2, 0), np.float32))

    def tensors(self) -> dict[str, Tensor]:
        """Weights, running statistics and, once there are any, Adam's moments, by the names that torch gives them."""
        found = dict(self._state())
        for number, (_, shape, part) in enumerate(self._parts()):
            if self.steps:
                prefix = f"{self.name}.adam.{number}"
                found[f"{prefix}.step"] = torch.tensor(float(self.steps))
                found |= {f"{prefix}.{each}": self._tensor(row, part, shape) for each, row in _ROWS.items()}
        return found

    def restore(self, checkpoint: Checkpoint) -> None:
        """Take over weights, and moments once there are any."""
        own, networks = checkpoint.tensors, len(self.values)
        for number, (name, _, part) in enumerate(self._parts()):
            self.values[:, kernel.WEIGHTS, part] = own[f"{self.name}.{name}"].numpy().reshape(networks, -1)
            if checkpoint.epoch:
                prefix = f"{self.name}.adam.{number}"
                self.steps = int(own[f"{prefix}.step"])
                for each, row in _ROWS.items():
                    self.values[:, row, part] = own[f"{prefix}.{each}"].numpy().reshape(networks, -1)
        for at, name in enumerate(_RUNNING if len(self.running) else ()):
            self.running[:, at] = own[f"{self.name}.{name}"].numpy().reshape(networks, -1)

    def load(self) -> None:
        """Put weights and running statistics into the module."""
        self.module.load_state_dict({name.removeprefix(f"{self.name}."): value for name, value in self._state()})

    def _state(self) -> Iterator[tuple[str, Tensor]]:
        for name, shape, part in self._parts():
            yield f"{self.name}.{name}", self._tensor(kernel.WEIGHTS, part, shape)
        for at, name in enumerate(_RUNNING if len(self.running) else ()):
            yield f"{self.name}.{name}", torch.from_numpy(self.running[:, at].reshape(-1))

    def _tensor(self, row: int, part: slice, shape: torch.Size) -> Tensor:
        return torch.from_numpy(self.values[:, row, part].reshape(shape))

    def _parts(self) -> Iterator[tuple[str, torch.Size, slice]]:
        """Name and shape of each parameter, and where a network's own lies in its vector."""
        first = 0
        for name, parameter in self.module.named_parameters():
            end = first + parameter.numel() // len(self.values)
            yield name, parameter.shape, slice(first, end)
            first = end


@dataclass(frozen=True)
class CompiledGame:
    """Both sides, the rows, and how they play."""

    settings: GanSettings
    shape: Shape
    table: Singles
    """``(n, c + k + d)`` covariates, one-hot category, mediators."""
    category: Longs
    module: Generators
    """Takes over weights at the end."""
    sides: Sequence[FlatSide]

    @classmethod
    def begin(cls, encoded: Encoded, shape: Shape, settings: GanSettings) -> "CompiledGame":
        """Networks with fresh weights."""
        generators, discriminators = fresh(shape, settings)
        member = encoded.category[:, None] == np.arange(shape.categories)
        table = np.hstack([encoded.covariates, member, encoded.mediators]).astype(np.float32, order="C")
        modules = {"generators": generators, "discriminators": discriminators}
        sides = [FlatSide.of(name, module, settings.networks) for name, module in modules.items()]
        return cls(settings, shape, table, np.array(encoded.category, np.int64), generators, sides)

    @contextmanager
    def playing(self) -> Iterator[Epoch]:
        """An epoch after another, each network in a thread of its own.

        By threads of our own, as numba's bear only one caller at a time. A product has one thread, so that its last
        digits do not depend on the number of cores.
        """
        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(numba.config.NUMBA_NUM_THREADS) as pool:

            def epoch(number: int, rate: float) -> Tensor:
                rules, networks = self._rules(rate), range(self.settings.networks)
                told = list(pool.map(lambda at: self._network(at, number, rules), networks))
                for side in self.sides:
                    side.steps += len(self.table) // self.settings.batch
                return torch.tensor(told, dtype=torch.float32)[None]

            yield epoch

    def generators(self) -> Generators:
        """The generators as they are, in eval mode."""
        self.sides[0].load()
        return self.module.eval()

    def _network(self, at: int, epoch: int, rules: Rules) -> tuple[float, float, float]:
        """An epoch of one network, in the order of the rows that it has for it."""
        made, told = self.sides
        order = draws(self.settings.seed, self.settings.first + at, epoch).permutation(len(self.category))
        whole = self.table, self.category, order, (made.values[at], told.values[at]), made.running[at], rules
        kernel.epoch(*whole, made.steps)
        return kernel.standing(*whole)

    def _rules(self, rate: float) -> Rules:
        shape, settings = self.shape, self.settings
        heads = np.array(shape.heads, np.int64).reshape(-1, 2)
        return Rules(
            shape.covariates, shape.categories, shape.mediators, shape.hidden, heads,
            _SATURATING[settings.adversarial], float(settings.alpha), settings.batch, float(rate),
        )  # fmt: skip
