"""Deterministic training: random numbers by epoch, one thread, and the choice of the device.

Every epoch draws from the seed and its own number, so that a resumed run equals an uninterrupted one. Torch's global
generator is neither read nor changed.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal

import numpy as np
import torch

Device = Literal["auto", "cpu", "cuda"]

INITIAL: Final = 2**32 - 1
"""Stands for an epoch where first weights are drawn."""


def draws(*numbers: int) -> np.random.Generator:
    """The random numbers of, say, a seed, a network and an epoch, whatever was drawn before."""
    return np.random.default_rng(numbers)


def chosen_device(wanted: Device) -> torch.device:
    """The device by name, CUDA for ``auto`` where there is one."""
    return torch.device(("cuda" if torch.cuda.is_available() else "cpu") if wanted == "auto" else wanted)


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
