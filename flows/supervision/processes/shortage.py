"""Ends a process that ran out of memory before it hangs: Prefect waits for ever for a thread that could not start.

A process that computes years for another one ends at once, and its year is done once more in a new one. A flow run of
a worker has a minute to try again, or to say how it ended. Then the kernel ends it, for which no memory is needed, and
the worker takes it up again like a run that was killed.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import parent_process
from typing import Final

from schemas.terms import ExitCode

LAST_SECONDS: Final = 60
FLOW_RUN: Final = "PREFECT__FLOW_RUN_ID"
"""Prefect's worker names the flow run by it to the process that it starts."""


def of_worker() -> bool:
    """Whether this process was started by a worker for one flow run."""
    return bool(os.environ.get(FLOW_RUN))


def lacks_memory(error: BaseException) -> bool:
    """Whether an error is for want of memory, as ``tasks.pipeline.lineage.memory`` tells it."""
    return isinstance(error, MemoryError) or isinstance(error.__cause__, MemoryError)


def is_replaceable() -> bool:
    """Whether this process computes one thing at a time for another one, which can start a new one in its place."""
    return parent_process() is not None and threading.current_thread() is threading.main_thread()


@contextmanager
def ends_without_memory() -> Iterator[None]:
    """End this process where the block had no memory, if it is replaceable; the block has recorded its error."""
    try:
        yield
    except Exception as error:
        if lacks_memory(error) and is_replaceable():
            os._exit(ExitCode.INFRASTRUCTURE)
        raise


def limit_life(error: BaseException) -> None:
    """Give a flow run of a worker that had no memory a minute; until ``lift_limit`` or its end."""
    if lacks_memory(error) and of_worker():
        signal.alarm(LAST_SECONDS)


def lift_limit() -> None:
    """Take the limit back: the run goes on."""
    if of_worker():
        signal.alarm(0)
