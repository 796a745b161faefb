"""What a benchmark's process shares with others: arrays from a file, seconds, peak memory, and its answer as JSON.

Neither frames nor stages are imported here, so that the process's peak memory is that of the work.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

import numpy as np


class Stored:
    """A dataclass of arrays that is handed from one process to another in a file."""

    @classmethod
    def read(cls, file: Path) -> Self:
        """The arrays that ``write`` left in a file."""
        with np.load(file) as stored:
            return cls(**stored)

    def write(self, file: Path) -> None:
        """Leave the arrays in a file."""
        np.savez(file, **{each.name: getattr(self, each.name) for each in fields(self)})  # type: ignore[arg-type]


def sampled(rows: int, most: int, seed: int = 0) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """``most`` rows drawn without replacement, ascending, or all if there are no more."""
    return np.sort(np.random.default_rng(seed).choice(rows, min(most, rows), replace=False))


@contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Told ``seconds`` and ``cpu_s`` when the work ends."""
    told: dict[str, float] = {}
    wall, cpu = time.perf_counter(), time.process_time()
    yield told
    told |= {"seconds": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}


def peak_mb() -> float:
    """Most memory that this process has held.

    ``resource.getrusage`` would also count the process that started this one, from before it became this one.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def device() -> dict[str, Any]:
    """The accelerator that torch sees, or none."""
    import torch  # seconds to import, and half of the benchmarks do without

    return {"cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None}


def answer(*runs: Callable[..., Mapping[str, Any]]) -> None:
    """Print as JSON what one run came to; the words of the command line are its name and what it is about."""
    name, *about = sys.argv[1:]
    sys.stdout.write(json.dumps({each.__name__: each for each in runs}[name](*about)))
