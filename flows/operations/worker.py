"""Prefect's worker as a child process, with a watch on dead runs and their memory."""

import logging
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

import psutil
from httpx import HTTPError

from flows.concurrency.tracing import trace_dead
from flows.outcome.run_state import see_to_dead
from flows.partitions.attempts import YearState, read_record
from flows.supervision import shutdown
from flows.supervision.dead_runs import Burial, Marked
from flows.supervision.parentage import ended_with
from flows.supervision.presence import Presence, alive, clear_leftovers, dead, leave_stopped, recorded, taken
from schemas.errors import IntegrityError, SpecError, nearest
from tasks.lake.store import Lake
from tasks.pipeline.resources import free_mb

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient


# --------------------------------------------------------------------------------------------------------------------
# Drains a work pool before an upgrade: no worker takes a new run of it, and the runs at work come to their end.
#
# The pool is paused on the server, and not the worker: what starts a worker again that ended, as Docker and systemd do,
# starts none that takes runs. The pool stays paused until somebody resumes it.


_LOOK_SECONDS = 2.0
_QUIET_LOOKS = 3
"""In a row: a worker may just be asking for leave to begin a run that it was given before the pool was paused."""


def drain(lake: Lake, pool: str, report: Callable[[str], object]) -> int:
    """Pause a work pool, and wait until none of its runs is at work; gives how many runs were waited for.

    Args:
        lake: whose records show whether the process of a run at work is alive.
        pool: name of the work pool.
        report: gets a line about the runs at work, each time that they change.

    Raises:
        SpecError: the server has no such pool.
        httpx.HTTPError: the server does not answer.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolUpdate

    run_names: set[str] = set()
    before: tuple[str, ...] | None = None
    quiet = 0
    with get_client(sync_client=True) as client:
        pool_names = [work_pool.name for work_pool in client.read_work_pools()]
        if pool not in pool_names:
            hint = nearest(pool, pool_names) if pool_names else "make one first"
            raise SpecError(f"the server has no work pool {pool!r}; {hint}")
        client.update_work_pool(pool, WorkPoolUpdate(is_paused=True))
        while quiet < _QUIET_LOOKS:
            names = tuple(sorted(_at_work(client, lake, pool)))
            run_names.update(names)
            if names and names != before:
                report(f"waiting for {len(names)} at work: {', '.join(names)}")
            quiet, before = (0 if names else quiet + 1), names
            time.sleep(_LOOK_SECONDS)
    return len(run_names)


def _at_work(client: "SyncPrefectClient", lake: Lake, pool: str) -> Iterator[str]:
    """Names of active runs: those of the server with a living process, and those of the lake that the server forgot.

    A run whose process is gone is no longer waited for: a worker takes it up again once the pool is resumed.
    """
    from prefect.client.schemas.filters import (
        FlowRunFilter,
        FlowRunFilterState,
        FlowRunFilterStateType,
        WorkPoolFilter,
        WorkPoolFilterName,
    )
    from prefect.client.schemas.objects import StateType

    busy = FlowRunFilterStateType(any_=[StateType.PENDING, StateType.RUNNING, StateType.CANCELLING])
    runs = client.read_flow_runs(
        flow_run_filter=FlowRunFilter(state=FlowRunFilterState(type=busy)),
        work_pool_filter=WorkPoolFilter(name=WorkPoolFilterName(any_=[pool])),
    )
    working = {presence.run for presence in alive(lake)}
    gone = {presence.run for presence in dead(lake)} - working
    yield from (run.name for run in runs if str(run.id) not in gone)
    for run in working - {str(run.id) for run in runs}:
        with suppress(ValueError):  # a record of a command has another name than a flow run
            UUID(run)
            yield run


# --------------------------------------------------------------------------------------------------------------------
# Memory of runs at work, looked at while they live: of one that was killed nobody can ask it any more.
#
# A back-fill computes its years in other processes: their records in the lake say in which stage each was.


_MB = 1e6


@dataclass
class Seen:
    """The most memory that a run was seen to hold, and how much there was for it at that time."""

    stage: str = ""
    peak_mb: float = 0.0
    there_was_mb: float = 0.0
    pids: set[int] = field(default_factory=set)
    """Its process, and those that it started."""

    def words(self, lake: Lake) -> str:
        """What was measured, as it reads in a message."""
        stage = f"stage {self.stage}" if self.stage else ", ".join(years_at_work(lake, self.pids)) or "it"
        return f"{stage} was seen to hold {_gb(self.peak_mb)} of the {_gb(self.there_was_mb)} that there was"


@dataclass
class Memory:
    """Memory of the runs on a lake, by the names of their records."""

    peaks: dict[str, Seen] = field(default_factory=dict)

    def look(self, lake: Lake) -> None:
        """Look at the runs of this machine that are at work."""
        for presence in alive(lake):
            if presence.host != socket.gethostname():
                continue
            family: list[psutil.Process] = []
            with suppress(psutil.Error):
                parent = psutil.Process(presence.pid)
                family = [parent, *parent.children(recursive=True)]
            resident = 0.0
            for process in family:
                with suppress(psutil.Error):
                    resident += process.memory_info().rss
            mb = resident / _MB
            run_peak = self.peaks.setdefault(presence.name, Seen())
            if presence.stage != run_peak.stage:
                run_peak = self.peaks[presence.name] = Seen(presence.stage)
            run_peak.pids |= {process.pid for process in family}
            if mb > run_peak.peak_mb:
                run_peak.peak_mb, run_peak.there_was_mb = mb, mb + free_mb()

    def words(self, lake: Lake, presence: Presence) -> str:
        """What was seen of a run; empty where nothing was."""
        run_peak = self.peaks.get(presence.name)
        return run_peak.words(lake) if run_peak and run_peak.peak_mb else ""


def years_at_work(lake: Lake, pids: Collection[int]) -> Iterator[str]:
    """The years and partitions that processes did not finish, each with its stage: ``2019 detect cst``."""
    for path in (path for depth in ("*", "*/*") for path in lake.storage.glob(f"backfills/*/{depth}/*.json")):
        with suppress(IntegrityError):
            record = read_record(lake, path)
            if record and record.state is YearState.RUNNING and record.pid in pids:
                yield " ".join(filter(None, (str(record.year), record.value, record.stage)))


def _gb(mb: float) -> str:
    return f"{mb / 1000:.2f} GB"


# --------------------------------------------------------------------------------------------------------------------
# Watches the runs on a lake while a worker lives: marks and resumes those whose process died, and mends states.
#
# It looks at the lake every few seconds, and asks the server only where something is found. Of several workers on one
# lake one looks at a time.


log = logging.getLogger("evenhand")

LOOK_SECONDS = 3.0
_NEVER_BEGUN_SECONDS = 60.0
"""Between two questions about runs that a worker took and never began."""
_REPORTED_SECONDS = 30.0
"""A death that Prefect's worker has not reported by then, it will not."""
_DONE_SECONDS = 6.0
"""Without a process for a run that Prefect's worker reported: it is done with it. It ends by an error where it is given
a run that it is not done with, as while a hook tells of the crash."""
_TURN = "watch.lock"


@dataclass
class Watcher:
    """The watch of one worker."""

    lake: Lake
    busy: Callable[[], Collection[str]] = frozenset
    """Ids of the flow runs for which Prefect's worker has a process."""
    idle: dict[str, float] = field(default_factory=dict)
    """Id of a flow run that Prefect's worker reported -> since when it has no process for it."""
    memory: Memory = field(default_factory=Memory)
    since: dict[str, float] = field(default_factory=dict)
    """Name of a dead run's record -> when it was found first, by a monotonic clock."""
    request_time: float = field(default_factory=time.monotonic)
    """When the server was asked last."""
    failed: str = ""
    """The error of the last look that had one, which is told once."""
    away: bool = False
    """Whether the server did not answer at the last look."""

    def run(self, ended: threading.Event) -> None:
        """Look until the worker ends."""
        while not ended.wait(LOOK_SECONDS):
            self.look()

    def look(self) -> list[Marked]:
        """One look; an error is logged, since a worker goes on without its watch."""
        try:
            self.memory.look(self.lake)
            marked_runs = self._see_to_dead()
            self.away = False
        except HTTPError as error:
            if not self.away:
                log.warning("the server does not answer (%s); dead runs are seen to when it does", type(error).__name__)
            self.away = True
            return []
        except Exception as error:
            if repr(error) != self.failed:
                log.exception("the watch of dead runs failed; it goes on")
            self.failed = repr(error)
            return []
        for marked in marked_runs:
            log.warning("%s", words_of(marked))
        return marked_runs

    def _see_to_dead(self) -> list[Marked]:
        gone = dead(self.lake)
        self.since = {presence.name: self.since.get(presence.name, time.monotonic()) for presence in gone}
        if not (gone or time.monotonic() - self.request_time > _NEVER_BEGUN_SECONDS):
            return []
        with taken(self.lake.storage.local / "locks" / _TURN) as ours:
            if not ours:
                return []
            self.request_time = time.monotonic()
            remembered = partial(self.memory.words, self.lake)
            marked_runs = see_to_dead(self.lake, Burial(resume=True, ripe=self._ripe, remembered=remembered))
            for marked in marked_runs:
                trace_dead(marked)
            for draft in clear_leftovers(self.lake) if gone else ():
                log.warning("removed the unfinished draft %s", draft.name)
        return marked_runs

    def _ripe(self, presence: Presence, is_known: bool) -> bool:
        """Whether to act on a death: the server knows of it, or will not hear of it any more."""
        now = time.monotonic()
        if presence.run in self.busy():
            self.idle.pop(presence.run, None)
            return False
        if presence.stopped or not is_known:
            return presence.stopped or now - self.since.get(presence.name, now) > _REPORTED_SECONDS
        return now - self.idle.setdefault(presence.run, now) > _DONE_SECONDS


def words_of(marked: Marked) -> str:
    """What was done with a dead run, as a line of the worker's log."""
    if marked.mended:
        return f"run {marked.run}: its state was mended from the lake"
    done = "taken up again" if marked.resumed else "given up" * marked.given_up
    return f"run {marked.run} was dead ({marked.why})" + (f"; {done}" if done else "")


# --------------------------------------------------------------------------------------------------------------------
# Runs Prefect's worker as a child, with a watch on dead runs beside it, and ends both in order on SIGTERM.
#
# On SIGTERM no new run is taken: Prefect's worker is halted. Runs at work end after the stage that they compute, within
# EVENHAND_GRACE, and are taken up by the next worker. Then all processes that are left are ended.


_SERVING_LOOK_SECONDS = 0.2
_LAST_SECONDS = 4.0
"""Of the time after SIGTERM, to end what is left."""


@dataclass(frozen=True)
class Serving:
    """What a worker takes runs from."""

    pool: str
    limit: int
    """Runs at once."""


def serve(lake: Lake, settings: Serving) -> int:
    """Run a worker until SIGTERM or until Prefect's worker ends; returns the exit code of Prefect's worker.

    Raises:
        InfrastructureError: EVENHAND_GRACE is no number of seconds.
    """
    grace = shutdown.grace_seconds()
    ended = threading.Event()
    with shutdown.heeding_term(), shutdown.may_finish():
        # A separate session: Ctrl-C of a terminal reaches this process, which ends both.
        words = ["worker", "start", "--pool", settings.pool, "--type", "process", "--limit", str(settings.limit)]
        child = subprocess.Popen(  # noqa: S603 our own words
            [*ended_with("prefect"), *words, "--with-healthcheck"], start_new_session=True
        )
        watcher = Watcher(lake, lambda: {_run_of(process) for process in _runs(child)})
        watch = threading.Thread(target=watcher.run, args=(ended,), name="watch", daemon=True)
        watch.start()
        try:
            while child.poll() is None and not shutdown.leaving():
                time.sleep(_SERVING_LOOK_SECONDS)
            if shutdown.leaving():
                sys.stderr.write(f"no new run is taken; those at work have {grace:g} s to end their stage\n")
                ended.set()
                watch.join(_LAST_SECONDS / 2)  # else it would schedule what leaves, while a record of it is still made
                seconds = max(0.0, grace - _LAST_SECONDS)
                until = time.monotonic() + seconds
                child.send_signal(signal.SIGSTOP)  # it takes no other run, and reports none that leaves as crashed
                runs = _runs(child)
                ids = {run.pid: _run_of(run) for run in runs}  # of one that has ended nobody can ask any more
                for run in runs:
                    with suppress(psutil.Error):
                        run.send_signal(shutdown.WORD)  # which ends one that has not begun, and does not heed it yet
                shutdown.wait_for(runs, max(0.0, until - time.monotonic()))
                for run in runs:
                    shutdown.kill_family(run, _LAST_SECONDS / 2)
                _leave(lake, {pid: run for pid, run in ids.items() if run})
        finally:
            ended.set()
            with suppress(psutil.Error):
                shutdown.kill_family(psutil.Process(child.pid), _LAST_SECONDS / 2)
            child.wait()
    return child.returncode or 0


def _leave(lake: Lake, runs: dict[int, str]) -> None:
    """Note of each run that did not end that it was stopped, which is no death."""
    unfinished: list[Presence] = [
        record for record in recorded(lake) if record.pid in runs and record.host == socket.gethostname()
    ]
    for record in unfinished:
        if record.outcome is None:
            leave_stopped(lake, record.run, record)
    for run in set(runs.values()) - {record.run for record in unfinished}:
        leave_stopped(lake, run)  # it had not begun, or has ended: the server knows which


def _runs(child: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    """The processes that Prefect's worker started, each for one flow run."""
    with suppress(psutil.Error):
        return [process for process in psutil.Process(child.pid).children() if not shutdown.has_ended(process)]
    return []


def _run_of(process: psutil.Process) -> str:
    """Id of the flow run that a process was started for."""
    with suppress(psutil.Error, OSError):
        return str(process.environ().get(shutdown.FLOW_RUN, ""))
    return ""


def at_home() -> dict[str, str]:
    """Default environment of a worker, where a variable is not set."""
    return {
        "PREFECT_LOGGING_LEVEL": "INFO",  # a worker is watched by its log, a command by what it prints
        "PREFECT_LOGGING_SERVER_LEVEL": "INFO",
        "PREFECT_WORKER_WEBSERVER_HOST": "127.0.0.1",  # it tells of its health to this machine only
        "PREFECT_CLIENT_MAX_RETRIES": "7",  # four minutes in which a server may be restarted, as its leases last
    }
