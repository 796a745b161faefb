"""Cost of a stage run: wall time, CPU time, true peak memory and the threads that it may use.

Scope: the process that computes the stage. Where several years run in threads of one process, CPU time and memory of
one include those of the others.
"""

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tasks.lake.threads import cores as cores
from tasks.lake.threads import threads as threads

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
"""Sets the peak of resident memory to what is resident now (proc(5), Linux 4.0)."""


@contextmanager
def measured() -> Iterator[dict[str, Any]]:
    """Yields a mapping that has the cost of the block when it ends: started, seconds, cpu_seconds, peak and threads."""
    cost: dict[str, Any] = {}
    _reset_peak()
    started, wall, cpu = time.time(), time.perf_counter(), cpu_seconds()
    yield cost
    cost |= {
        "started": started,
        "seconds": round(time.perf_counter() - wall, 3),
        "cpu_seconds": round(cpu_seconds() - cpu, 3),
        "peak_memory_mb": round(peak_memory_mb(), 1),
        "threads": threads(),
    }


def cpu_seconds() -> float:
    """CPU time of this process, of all its threads, and of its ended children, such as a solver of integer programs."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def peak_memory_mb() -> float:
    """Highest resident memory: since ``measured`` began on Linux, since the process began elsewhere."""
    with suppress(OSError, StopIteration):
        lines = _STATUS.read_text(encoding="ascii", errors="replace").splitlines()
        line = next(line for line in lines if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 if sys.platform != "darwin" else peak / 2**20


def _reset_peak() -> None:
    with suppress(OSError):  # not Linux, or a container that forbids it: the peak is the process's
        _CLEAR.write_text(_RESET_PEAK, encoding="ascii")
