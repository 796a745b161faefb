"""Processes that compute stages side by side, forked from a server that has loaded the stages once.

Threads would be wrong: numba and torch hold the interpreter's lock in parts, and the number of threads of linear
algebra is global to a process. Prefect's own process pool costs more (docs/decisions/0037): the tasks of the flow wait
in threads, and their work is done here. Scope: starting, asking and ending workers. Inside one: ``worker``.
"""

import atexit
import logging
import multiprocessing
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import lru_cache
from multiprocessing import forkserver, resource_tracker
from typing import Any

from flows.concurrency import worker
from flows.concurrency.call import StageCall
from flows.supervision.interruption import shielded_children
from schemas.artifact import Partition
from schemas.errors import InfrastructureError
from tasks.pipeline.lineage.cost import cores
from tasks.pipeline.lineage.memory import free_mb
from tasks.pipeline.progress import stepped
from tasks.pipeline.stop_request import stop_requested

log = logging.getLogger("evenhand")

MOST_JOBS = 4
"""By default: an audit has five branches, of which two or three take long."""
LEAST_SECONDS = 20.0
"""Of work for which processes are started: they take some seconds to load."""
_WARNINGS = "PYTHONWARNINGS"
_OF_LEAKS = "ignore:resource_tracker:UserWarning"
"""Of workers that were killed by Ctrl-C: Python frees their semaphores, and says so after our last line."""
_PRELOADED = "flows.concurrency.preload"


def default_jobs() -> int:
    """EVENHAND_JOBS, else as many as cores, at most four."""
    given = os.environ.get("EVENHAND_JOBS", "")
    return int(given) if given.isdecimal() and int(given) else min(cores(), MOST_JOBS)


def worthwhile(jobs: int, seconds: Sequence[float | None]) -> int:
    """The number of jobs, or 1 where by earlier runs less work is left than processes are worth.

    Args:
        jobs: asked for.
        seconds: what each step that is left takes; None where nothing is known.
    """
    known = [each for each in seconds if each is not None]
    return 1 if len(known) == len(seconds) and sum(known) < LEAST_SECONDS else jobs


def threads_of(jobs: int) -> int:
    """Threads of each worker: its share of the cores, and no more than NUMBA_NUM_THREADS allows."""
    share = max(1, cores() // jobs)
    given = os.environ.get("NUMBA_NUM_THREADS", "")
    return min(share, int(given)) if given.isdecimal() and int(given) else share


def start_loading(jobs: int) -> None:
    """Start the server that workers are forked from, which begins to load the stages; at once back.

    It gets its share of the cores through the environment, where libraries look when they are loaded.
    """
    forkserver.set_forkserver_preload([_PRELOADED])
    before = {name: os.environ.get(name) for name in (*worker.THREADS, _WARNINGS)}
    try:
        os.environ.update(dict.fromkeys(worker.THREADS, str(threads_of(jobs))))
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
        """A pool with messages of its own: a process that was killed may hold the lock of the former ones."""
        context = multiprocessing.get_context("forkserver")
        self._messages = context.SimpleQueue()
        self._reader = threading.Thread(target=_read, args=(self._messages,), daemon=True)
        self._reader.start()
        begun = (self._messages, log.getEffectiveLevel(), threads_of(self._jobs))
        return ProcessPoolExecutor(self._jobs, mp_context=context, initializer=worker.begin, initargs=begun)

    def compute(self, at: int, call: StageCall) -> Partition:
        """The partition of a stage.

        Raises:
            InfrastructureError: a process died; who asks once more gets others.
            EvenhandError: as the stage says.
        """
        pool = self._pool
        try:
            with shielded_children():
                asked = pool.submit(worker.computed, at, call)
            ended = asked.result()
        except BrokenProcessPool as error:
            self._replace(pool)
            raise InfrastructureError(
                f"a process was killed while stage {call.stage} ran, and {free_mb() / 1000:.1f} GB are free now: is "
                "there memory enough? Finished stages are kept; try --jobs 1, or narrow source.keep"
            ) from error
        if ended.error is not None:
            raise ended.error from ended.cause
        assert ended.partition is not None  # noqa: S101 one of the two
        return ended.partition

    def _replace(self, broken: ProcessPoolExecutor) -> None:
        """Put another pool in the place of a broken one, once, whoever finds it so."""
        with self._changing:
            if self._pool is broken and not stop_requested():
                self._pool = self._made()

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
    """Tell what workers say of their steps, and log what they log."""
    while (message := messages.get()) is not None:
        kind, *said = message
        if kind == worker.LOG:
            log.log(*said)
        else:
            at, work, done, total = said
            stepped(work, done, total, number=at + 1)


@contextmanager
def workers(jobs: int) -> Iterator[Workers]:
    """Worker processes for a while; an error of ours lets them end, a request to stop kills them."""
    start_loading(jobs)
    made, kill = Workers(jobs), True
    try:
        yield made
        kill = False
    except Exception:
        kill = stop_requested()
        raise
    finally:
        made.close(kill=kill)


@lru_cache(maxsize=1)
def _end_server_at_exit() -> None:
    """End the server with the command and wait for it, so that its CPU time is counted as the command's."""
    atexit.register(_end_server)


def _end_server() -> None:
    server: Any = forkserver._forkserver
    with suppress(OSError):  # a command that was stopped has killed it, and waited for it
        server._stop()
