"""A worker process: set up once, then computes stages one after another and sends word to the command.

Its error comes back as a value with the frames of its traceback, since an exception loses both cause and traceback on
the way between processes. Scope: inside the worker. Starting and ending workers: ``workers``.
"""

import logging
import os
import pickle
import signal
import sys
import threading
import traceback
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import parent_process
from typing import Any

from flows.concurrency.call import StageCall
from flows.supervision.processes.leaving import WORD
from schemas.artifact import Partition
from schemas.terms import ExitCode
from tasks.pipeline.progress import relay_to

THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS")
"""Variables that share out the cores."""
STEP, LOG = "step", "log"
"""Kinds of messages: (STEP, place, work, done, total) and (LOG, level, text)."""


@dataclass(frozen=True)
class Ended:
    """How a call ended: with a partition, or with an error."""

    partition: Partition | None
    error: Exception | None = None
    cause: OSError | MemoryError | None = None
    """Of the error, where a retry may help."""


class _Channel:
    """Where this worker sends messages."""

    messages: Any = None


class _Relay(logging.Handler):
    """Sends lines of the log to the command."""

    def emit(self, record: logging.LogRecord) -> None:
        _Channel.messages.put((LOG, record.levelno, record.getMessage()))


def begin(messages: Any, level: int, threads: int) -> None:
    """Set up this process: its signals, log, threads, and that it ends with the command."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends Ctrl-C to workers, too; the command ends them
    signal.signal(WORD, signal.SIG_IGN)  # the stage at work may end; the command begins no other
    end_with_parent()
    _Channel.messages = messages
    log = logging.getLogger("evenhand")
    log.handlers, log.propagate = [_Relay()], False
    log.setLevel(level)
    _share_of_cores(threads)


def computed(at: int, call: StageCall) -> Ended:
    """Compute a stage; ``at`` is the place of its step in the plan."""
    relay_to(lambda work, done, total: _Channel.messages.put((STEP, at, work, done, total)))
    try:
        return Ended(call.run())
    except Exception as error:
        passing = (OSError, MemoryError)
        cause = error if isinstance(error, passing) else error.__cause__
        return Ended(None, portable(error), cause if isinstance(cause, passing) else None)
    finally:
        relay_to(None)


def portable(error: Exception) -> Exception:
    """The error in a form that reaches another process, with the frames of its traceback as text."""
    error.frames = traceback.format_list(traceback.extract_tb(error.__traceback__))  # type: ignore[attr-defined]
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 written in this line
    except Exception:
        told = RuntimeError(type(error).__name__)  # without its words, which may hold values of rows
        told.frames = error.frames  # type: ignore[attr-defined]
        return told
    return error


@lru_cache(maxsize=1)
def end_with_parent() -> None:
    """End this process when the one that started it dies: it would hold its lock, and then wait for ever."""
    parent = parent_process()
    if parent is not None:

        def watch() -> None:
            parent.join()
            os._exit(ExitCode.INFRASTRUCTURE)

        threading.Thread(target=watch, daemon=True).start()


def _share_of_cores(threads: int) -> None:
    """Use so many threads; the fork server may have loaded numba for another number of jobs."""
    for name in THREADS:
        os.environ[name] = str(threads)
    if "numba" in sys.modules:
        import numba

        numba.config.reload_config()
    if "pyarrow" in sys.modules:
        import pyarrow as pa

        pa.set_cpu_count(threads)
