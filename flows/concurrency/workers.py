"""Worker processes that compute stages, forked from a server that has loaded the libraries."""

import atexit
import logging
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import forkserver, parent_process, resource_tracker
from typing import Any

from flows.concurrency.schedule import telling_full_disk
from flows.supervision.file_modes import restrict
from flows.supervision.shutdown import WORD, shielded_children
from schemas.artifact import Artifact, Partition
from schemas.errors import InfrastructureError
from schemas.terms import ExitCode
from tasks.lake.store import Lake
from tasks.pipeline.progress import relay_to, stepped, stop_requested
from tasks.pipeline.registry import validated
from tasks.pipeline.resources import cores, free_mb
from tasks.plan import STAGES, Inputs, Step

# --------------------------------------------------------------------------------------------------------------------
# Call of a stage as plain values, which a flow's task and a worker process take alike.


Artifacts = dict[str, list[dict[str, Any]]]
"""Table -> its artifacts, as ``Artifact`` dumps them."""


@dataclass(frozen=True)
class StageCall:
    """One stage on its artifacts."""

    stage: str
    artifacts: Artifacts
    settings: dict[str, Any]
    modules: list[str]
    lake: str

    @classmethod
    def of(cls, step: Step, inputs: Inputs, lake: str) -> "StageCall":
        """The call of a step."""
        artifacts = {table: [artifact.model_dump() for artifact in entries] for table, entries in inputs.items()}
        return cls(step.stage.name, artifacts, step.settings.model_dump(mode="json"), list(step.modules), lake)

    def restored(self) -> tuple[Any, Inputs, Any]:
        """The stage, its artifacts and its settings."""
        stage = STAGES[self.stage]
        artifacts = {
            table: [Artifact.model_validate(artifact) for artifact in entries]
            for table, entries in self.artifacts.items()
        }
        return stage, artifacts, validated(stage.settings, self.settings)

    def run(self) -> Partition:
        """Run the stage in this process.

        Raises:
            EvenhandError: as the stage says.
        """
        restrict()  # a worker of Dask has the umask of its shell
        stage, artifacts, settings = self.restored()
        with telling_full_disk(Lake(self.lake), f"stage {self.stage}"):
            partition: Partition = stage.run(Lake(self.lake), artifacts, settings, self.modules)
        return partition


# --------------------------------------------------------------------------------------------------------------------
# A worker process: set up once, then computes stages one after another and sends word to the command.
#
# Its error comes back as a value with the frames of its traceback, since an exception loses both cause and traceback on
# the way between processes. Scope: inside the worker. Starting and ending workers: ``workers``.


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
        replacement = RuntimeError(type(error).__name__)  # without its words, which may hold values of rows
        replacement.frames = error.frames  # type: ignore[attr-defined]
        return replacement
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


# --------------------------------------------------------------------------------------------------------------------
# Processes that compute stages side by side, forked from a server that has loaded the stages once.
#
# Threads would be wrong: numba and torch hold the interpreter's lock in parts, and the number of threads of linear
# algebra is global to a process. Prefect's own process pool costs more (docs/decisions/0037): the tasks of the flow
# wait in threads, and their work is done here. Scope: starting, asking and ending workers. Inside one: ``worker``.


log = logging.getLogger("evenhand")

MOST_JOBS = 4
"""By default: an audit has five branches, of which two or three take long."""
LEAST_SECONDS = 20.0
"""Of work for which processes are started: they take some seconds to load."""
_WARNINGS = "PYTHONWARNINGS"
_OF_LEAKS = "ignore:resource_tracker:UserWarning"
"""Of workers that were killed by Ctrl-C: Python frees their semaphores, and says so after our last line."""
_SAFE_PATH = "PYTHONSAFEPATH"
"""Python starts both servers of ``multiprocessing`` with ``-c``, which looks in the working directory first."""
_PRELOADED = "flows.concurrency.preload"


def default_jobs() -> int:
    """EVENHAND_JOBS, else as many as cores, at most four."""
    setting = os.environ.get("EVENHAND_JOBS", "")
    return int(setting) if setting.isdecimal() and int(setting) else min(cores(), MOST_JOBS)


def worthwhile(jobs: int, seconds: Sequence[float | None]) -> int:
    """The number of jobs, or 1 where by earlier runs less work is left than processes are worth.

    Args:
        jobs: asked for.
        seconds: what each step that is left takes; None where nothing is known.
    """
    known_seconds = [duration for duration in seconds if duration is not None]
    return 1 if len(known_seconds) == len(seconds) and sum(known_seconds) < LEAST_SECONDS else jobs


def threads_of(jobs: int) -> int:
    """Threads of each worker: its share of the cores, and no more than NUMBA_NUM_THREADS allows."""
    share = max(1, cores() // jobs)
    setting = os.environ.get("NUMBA_NUM_THREADS", "")
    return min(share, int(setting)) if setting.isdecimal() and int(setting) else share


def start_loading(jobs: int) -> None:
    """Start the server that workers are forked from, which begins to load the stages; at once back.

    It gets its share of the cores through the environment, where libraries look when they are loaded.
    """
    forkserver.set_forkserver_preload([_PRELOADED])
    before = {name: os.environ.get(name) for name in (*THREADS, _WARNINGS, _SAFE_PATH)}
    try:
        os.environ.update(dict.fromkeys(THREADS, str(threads_of(jobs))))
        os.environ[_SAFE_PATH] = "1"
        os.environ[_WARNINGS] = ",".join(filter(None, (before[_WARNINGS], _OF_LEAKS)))
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        resource_tracker.ensure_running()  # by itself first: it lifts the block of Ctrl-C that the server needs
        with shielded_children():
            forkserver.ensure_running()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    _end_server_at_exit()


class Workers:
    """Worker processes; threads ask them, and wait for the answer."""

    def __init__(self, jobs: int) -> None:
        """So many at most; each starts when it is needed."""
        self._jobs, self._changing = jobs, threading.Lock()
        self._pool = self._made()

    def _made(self) -> ProcessPoolExecutor:
        """A pool with a new message queue: a killed process may hold the lock of the former queue."""
        context = multiprocessing.get_context("forkserver")
        self._messages = context.SimpleQueue()
        self._reader = threading.Thread(target=_read, args=(self._messages,), daemon=True)
        self._reader.start()
        begun = (self._messages, log.getEffectiveLevel(), threads_of(self._jobs))
        return ProcessPoolExecutor(self._jobs, mp_context=context, initializer=begin, initargs=begun)

    def compute(self, at: int, call: StageCall) -> Partition:
        """The partition of a stage.

        Raises:
            InfrastructureError: a process died; who asks once more gets others.
            EvenhandError: as the stage says.
        """
        pool = self._pool
        try:
            with shielded_children():
                future = pool.submit(computed, at, call)
            ended = future.result()
        except BrokenProcessPool as error:
            with self._changing:  # once, even if several threads find it broken
                if self._pool is pool and not stop_requested():
                    self._pool = self._made()
            raise InfrastructureError(
                f"a process was killed while stage {call.stage} ran, and {free_mb() / 1000:.1f} GB are free now: does "
                "the memory suffice? Finished stages are kept; try --jobs 1, or narrow source.keep"
            ) from error
        if ended.error is not None:
            raise ended.error from ended.cause
        assert ended.partition is not None  # noqa: S101 one of the two
        return ended.partition

    def close(self, *, kill: bool) -> None:
        """End the processes: those at work as well, or when they have ended."""
        if kill:
            for process in multiprocessing.active_children():
                process.kill()
        self._pool.shutdown(wait=not kill, cancel_futures=True)
        if not kill:  # one that was killed may hold the lock of the messages
            self._messages.put(None)
            self._reader.join()


def _read(messages: Any) -> None:
    """Log the messages and the step progress that workers send."""
    while (message := messages.get()) is not None:
        kind, *content = message
        if kind == LOG:
            log.log(*content)
        else:
            at, work, done, total = content
            stepped(work, done, total, number=at + 1)


@contextmanager
def workers(jobs: int) -> Iterator[Workers]:
    """Worker processes for a while; an error of ours lets them end, a request to stop kills them."""
    start_loading(jobs)
    worker_pool, kill = Workers(jobs), True
    try:
        yield worker_pool
        kill = False
    except Exception:
        kill = stop_requested()
        raise
    finally:
        worker_pool.close(kill=kill)


@lru_cache(maxsize=1)
def _end_server_at_exit() -> None:
    """End the server with the command and wait for it, so that its CPU time is counted as the command's."""
    atexit.register(_end_server)


def _end_server() -> None:
    """Kill it, as no worker is left: to free what it has loaded takes it a second."""
    server: Any = forkserver._forkserver
    with suppress(OSError):  # a command that was stopped has killed it, and waited for it
        if server._forkserver_pid is not None:
            os.kill(server._forkserver_pid, signal.SIGKILL)
        server._stop()
