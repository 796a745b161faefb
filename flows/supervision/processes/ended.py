"""Whether processes have ended, and how to end one with all that it started.

A process that ended counts at once, also while its parent has not collected it: Prefect's worker is halted while runs
leave, and collects none. psutil's ``wait_procs`` waits for such a zombie until its time is over.
"""

import time
from collections.abc import Collection
from contextlib import suppress

import psutil

_LOOK_SECONDS = 0.1


def has_ended(process: psutil.Process) -> bool:
    """Whether a process is gone, or a zombie."""
    with suppress(psutil.NoSuchProcess):
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    return True


def wait_for(processes: Collection[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait until all of them have ended, at most so long; returns those that have not."""
    until = time.monotonic() + seconds
    while left := [each for each in processes if not has_ended(each)]:
        if time.monotonic() >= until:
            break
        time.sleep(_LOOK_SECONDS)
    return left


def kill_family(process: psutil.Process, seconds: float) -> None:
    """Kill a process and its descendants, which are asked for first; wait for their end, at most so long."""
    family = [process]
    with suppress(psutil.Error):
        family += process.children(recursive=True)
    for each in family:
        with suppress(psutil.Error):
            each.kill()
    wait_for(family, seconds)
