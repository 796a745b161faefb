"""Perceptrons of torch, and its deterministic mode."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Final, Literal

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrize, skip_init

from schemas.errors import DataQualityError
from tasks.numerics.arrays import Bools, Floats

# --------------------------------------------------------------------------------------------------------------------
# Deterministic training: random numbers by epoch, one thread, and the choice of the device.
#
# Every epoch draws from the seed and its own number, so that a resumed run equals an uninterrupted one. Torch's global
# generator is neither read nor changed.


Device = Literal["auto", "cpu", "cuda"]

INITIAL: Final = 2**32 - 1
"""Stands for an epoch where first weights are drawn."""


def draws(*numbers: int) -> np.random.Generator:
    """The random numbers of, for example, a seed, a network and an epoch, independent of earlier draws."""
    return np.random.default_rng(numbers)


def chosen_device(setting: Device) -> torch.device:
    """The device by name, CUDA for ``auto`` where there is one."""
    return torch.device(("cuda" if torch.cuda.is_available() else "cpu") if setting == "auto" else setting)


def digest_of(settings: object, *arrays: "np.ndarray[Any, Any]") -> str:
    """SHA-256 of settings, by their repr, and of arrays with shape and type."""
    digest = hashlib.sha256(repr(settings).encode())
    for array in arrays:
        digest.update(repr((array.shape, array.dtype.str)).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for torch, and then as many as before: small batches gain nothing from more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# --------------------------------------------------------------------------------------------------------------------
# A perceptron for scores: linear layers with ReLU between them, one logit at the end, and its probabilities.
#
# Scope: predictors that are trained with a penalty of their own (GCFN and the systems it is compared with). Weights are
# drawn from a NumPy generator that the caller passes. The net of CEC, with dropout and other activations: ``net``.


_AT_ONCE = 65_536
"""Rows that are scored together."""


class _Bounded(nn.Module):
    """Spectral normalisation: a weight divided by its largest singular value where that exceeds the bound."""

    def __init__(self, bound: float) -> None:
        super().__init__()
        self.bound = bound

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        """The weight, its spectral norm at most ``bound``."""
        norm: torch.Tensor = torch.linalg.matrix_norm(weight, ord=2)
        return weight * (self.bound / norm).clamp(max=1.0)


def perceptron(widths: tuple[int, ...], lipschitz: float | None, rng: np.random.Generator) -> nn.Sequential:
    """Linear layers drawn from ``rng``, ReLU between them; the bounds of the layers multiply up to ``lipschitz``."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layer: nn.Linear = skip_init(nn.Linear, inputs, outputs)  # type: ignore[no-untyped-call] # nn.Linear would draw from torch's global state
        bound = max(inputs, 1) ** -0.5
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.copy_(torch.from_numpy(rng.uniform(-bound, bound, tuple(parameter.shape))))
        if lipschitz is not None:
            parametrize.register_parametrization(layer, "weight", _Bounded(lipschitz ** (1 / (len(widths) - 1))))
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def unbound(net: nn.Sequential) -> nn.Sequential:
    """Returns the trained net in eval mode on the CPU, its bounded weights written out as plain ones."""
    for layer in net:
        if parametrize.is_parametrized(layer):
            parametrize.remove_parametrizations(layer, "weight")
    return net.cpu().eval()


def probabilities(net: nn.Sequential, inputs: Floats) -> Floats:
    """Probabilities ``(n,)`` of rows ``(n, d)``, in the precision of the net."""
    precision = next(net.parameters()).dtype
    with torch.no_grad(), one_thread():
        parts = torch.split(torch.from_numpy(inputs).to(precision), _AT_ONCE)
        scores: Floats = torch.sigmoid(torch.cat([net(part).squeeze(1) for part in parts])).double().numpy()
    return scores


def require_both_labels(label: Bools) -> None:
    """Refuses training rows if all labels ``(n,)`` are equal.

    Raises:
        DataQualityError: They are.
    """
    if label.all() or not label.any():
        raise DataQualityError("the training rows have labels of one kind only; training needs both")


def require_finite(net: nn.Module, epoch: int) -> None:
    """Refuses a net with a weight that is not finite after an epoch, counted from 0.

    Raises:
        DataQualityError: It has one.
    """
    if not all(bool(torch.isfinite(weights).all()) for weights in net.parameters()):
        raise DataQualityError(
            f"training of the predictor diverged in epoch {epoch + 1}: a weight is not finite; lower learning_rate or "
            "lambda, or look for extreme inputs"
        )
