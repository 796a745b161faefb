"""Memory that an audit may take, and the cost of a stage run."""

import ctypes
import gc
import os
import re
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psutil
import pyarrow as pa

from schemas.errors import EvenhandError, InfrastructureError
from tasks.lake.storage import cores as cores
from tasks.lake.storage import group_memory
from tasks.lake.storage import threads as threads

# --------------------------------------------------------------------------------------------------------------------
# Memory that an audit may take, EVENHAND_MEMORY or else four fifths of what is free; and words of a stage without any.
#
# In a container the limit of its control group counts, which the machine's free memory does not tell.


NAME = "EVENHAND_MEMORY"
SHARE = 0.8
"""Of the free memory: the rest is for the system and for what grows meanwhile."""

_UNITS = {"MB": 1.0, "GB": 1_000.0, "MIB": 2**20 / 1e6, "GIB": 2**30 / 1e6}
_MB = 1e6


def allowed_mb() -> float:
    """What an audit may take in all, in MB.

    Raises:
        InfrastructureError: EVENHAND_MEMORY is no size.
    """
    setting = os.environ.get(NAME, "").strip()
    return SHARE * free_mb() if not setting else size_mb(setting)


LEAST_MB = 500
"""Measured: within 400 MB the kernel ends an audit of 60 rows, without a word, while its first stage begins."""


def require_memory(what: str) -> None:
    """Refuse what would be ended by the kernel before it could say anything.

    Raises:
        InfrastructureError: less than ``LEAST_MB`` are free, of the machine or within the control groups.
    """
    if (free := free_mb()) < LEAST_MB:
        raise InfrastructureError(
            f"{free:,.0f} MB of memory are free and {what} needs {LEAST_MB} MB or more; give it a larger limit, or end "
            "other processes"
        )


def size_mb(text: str) -> float:
    """MB of a size such as `3GB` or `800 MiB`.

    Raises:
        InfrastructureError: it is none.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]+)", text.strip(), re.IGNORECASE)
    if match is None or match[2].upper() not in _UNITS or not float(match[1]):
        raise InfrastructureError(f"{NAME} is {text!r}; expected a size with its unit, such as 3GB or 800MB")
    return float(match[1]) * _UNITS[match[2].upper()]


def free_mb() -> float:
    """Memory that is free on this machine, or within the limit of this process's container if that is less."""
    machine = float(psutil.virtual_memory().available)
    return min(machine, group_memory().remaining) / _MB


@contextmanager
def telling_short_memory(what: str) -> Iterator[None]:
    """Reports that a stage or a year has too little memory, under any library's error name; raised from a MemoryError.

    One that says so in words of its own keeps them.

    Raises:
        InfrastructureError: the block had too little memory.
    """
    try:
        yield
    except EvenhandError as error:
        if _short(error.__cause__) and not isinstance(error.__cause__, MemoryError):
            raise error from MemoryError(str(error.__cause__))
        raise
    except Exception as error:
        if not _short(error):
            raise
        why = f"{what} ran out of memory; narrow source.keep, or give it more"
        raise InfrastructureError(why) from (error if isinstance(error, MemoryError) else MemoryError(str(error)))


def _short(error: BaseException | None) -> bool:
    """Whether an error is for want of memory; DuckDB has its own kind, and Python its own words of a thread."""
    in_own_words = type(error).__name__ == "OutOfMemoryException" or str(error) == "can't start new thread"
    return isinstance(error, MemoryError) or in_own_words


# --------------------------------------------------------------------------------------------------------------------
# Cost of a stage run: wall time, CPU time, true peak memory and the threads that it may use.
#
# Scope: the process that computes the stage, and the processes that it starts meanwhile, such as a solver. Where
# several years run in threads of one process, CPU time and memory of one include those of the others.


_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
"""Sets the peak of resident memory to what is resident now (proc(5), Linux 4.0)."""
_SAMPLE_SECONDS = 0.2
"""Between two looks at processes that the stage started; one takes less than half a millisecond."""


_LARGE_MB = 1_000
"""From so much on a process looks for circles of objects that nothing else holds: some keep tables of a whole year."""


def return_freed() -> None:
    """Return to the system what was freed and the allocators of C and of Arrow keep for their process."""
    if _resident_mb(os.getpid()) > _LARGE_MB:
        gc.collect()
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # another C library than glibc has no such function
        ctypes.CDLL(None).malloc_trim(0)


@contextmanager
def measured() -> Iterator[dict[str, Any]]:
    """Yields a mapping that has the cost of the block when it ends: started, seconds, cpu_seconds, peak and threads."""
    cost: dict[str, Any] = {}
    return_freed()
    with suppress(OSError):  # not Linux, or a container that forbids it: the peak is the process's
        _CLEAR.write_text(_RESET_PEAK, encoding="ascii")
    started, wall, cpu = time.time(), time.perf_counter(), cpu_seconds()
    with _Children() as children:
        yield cost
    cost |= {
        "started": started,
        "seconds": round(time.perf_counter() - wall, 3),
        "cpu_seconds": round(cpu_seconds() - cpu, 3),
        "peak_memory_mb": round(max(peak_memory_mb(), children.peak_mb), 1),
        "threads": threads(),
    }


class _Children:
    """Samples the memory of this process together with that of the processes that it starts meanwhile, on Linux."""

    def __init__(self) -> None:
        self.peak_mb = 0.0
        """Highest sum of a sample with such a process; 0 without one."""
        self._before = set(_children(os.getpid()))
        self._ended = Event()
        self._thread = Thread(target=self._sample, name="memory of children", daemon=True)

    def __enter__(self) -> "_Children":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(_SAMPLE_SECONDS):
            family = _family([child for child in _children(os.getpid()) if child not in self._before])
            if family:
                self.peak_mb = max(self.peak_mb, sum(map(_resident_mb, [os.getpid(), *family])))


def _family(processes: list[int]) -> list[int]:
    """The processes and all that they started."""
    return [member for process in processes for member in (process, *_family(_children(process)))]


def _children(process: int) -> list[int]:
    """The processes that a process has started; none where the system does not list them."""
    children: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            with suppress(OSError):  # the thread has ended
                children += map(int, (task / "children").read_text(encoding="ascii").split())
    return children


def _resident_mb(process: int) -> float:
    """Resident memory of a process, of a child without what it shares with others."""
    with suppress(OSError, ValueError):
        _, resident, shared, *_ = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()
        pages = int(resident) - int(shared) * (process != os.getpid())
        return pages * resource.getpagesize() / 2**20
    return 0.0


def cpu_seconds() -> float:
    """CPU time of this process, of all its threads, and of its ended children, such as a solver of integer programs."""
    used = [resource.getrusage(scope) for scope in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def peak_memory_mb() -> float:
    """Highest resident memory: since ``measured`` began on Linux, since the process began elsewhere."""
    with suppress(OSError, StopIteration):
        lines = _STATUS.read_text(encoding="ascii", errors="replace").splitlines()
        line = next(line for line in lines if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 if sys.platform != "darwin" else peak / 2**20
