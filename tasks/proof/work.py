"""Hands a benchmark's process its input and times its work; the process answers in JSON.

Neither tables nor stages are imported here, so that the process's peak memory is that of the work.
"""

import json
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_PIPED = "-"


@dataclass(frozen=True)
class Piped:
    """Rows that a process of the benchmark gets through its standard input; on its command line stands ``-``."""

    rows: object

    def __str__(self) -> str:
        """Returns what stands for them among the words of a command."""
        return _PIPED

    def packed(self) -> bytes:
        """Returns them as the bytes that ``answer`` reads."""
        return pickle.dumps(self.rows)


def sampled(rows: int, most: int, seed: int = 0) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Draws ``most`` rows without replacement, ascending, or all if there are no more."""
    return np.sort(np.random.default_rng(seed).choice(rows, min(most, rows), replace=False))


@contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Yields a mapping that has ``seconds`` and ``cpu_s`` when the work ends."""
    told: dict[str, float] = {}
    wall, cpu = time.perf_counter(), time.process_time()
    yield told
    told |= {"seconds": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}


def peak_mb() -> float:
    """Returns the most memory that this process has held.

    ``resource.getrusage`` would also count the process that started this one, from before it became this one.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def device() -> dict[str, Any]:
    """Returns the accelerator that torch sees, or none."""
    import torch  # seconds to import, and half of the benchmarks do without

    return {"cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None}


def answer(*runs: Callable[..., Mapping[str, Any]]) -> None:
    """Runs the function named on the command line with its other words as arguments; prints the result as JSON."""
    name, *words = sys.argv[1:]
    about = [_piped() if word == _PIPED else word for word in words]
    sys.stdout.write(json.dumps({each.__name__: each for each in runs}[name](*about)))


def _piped() -> Any:
    """Returns the rows that the benchmark gave this process."""
    return pickle.load(sys.stdin.buffer)  # noqa: S301 from the process that started this one, and from no file
