"""Runs Prefect's worker as a child, with a watch on dead runs beside it, and ends both in order on SIGTERM.

On SIGTERM no new run is taken: Prefect's worker is halted. Runs at work end after the stage that they compute, within
EVENHAND_GRACE, and are taken up by the next worker. Then all processes that are left are ended.
"""

import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass

import psutil

from flows.operations.worker.watcher import Watcher
from flows.supervision.interruption import heeding_term
from flows.supervision.presence import Presence, leave_stopped, recorded
from flows.supervision.processes.ended import has_ended, kill_family, wait_for
from flows.supervision.processes.leaving import WORD, grace_seconds, leaving, may_finish
from flows.supervision.processes.parentage import ended_with
from flows.supervision.processes.shortage import FLOW_RUN
from tasks.lake.store import Lake

_LOOK_SECONDS = 0.2
_LAST_SECONDS = 4.0
"""Of the time after SIGTERM, to end what is left."""


@dataclass(frozen=True)
class Serving:
    """What a worker takes runs from."""

    pool: str
    limit: int
    """Runs at once."""


def serve(lake: Lake, asked: Serving) -> int:
    """Be a worker until it is asked to end, or Prefect's worker ends by itself; gives that one's exit code.

    Raises:
        InfrastructureError: EVENHAND_GRACE is no number of seconds.
    """
    grace = grace_seconds()
    ended = threading.Event()
    with heeding_term(), may_finish():
        child = _started(asked)
        watcher = Watcher(lake, lambda: {_run_of(each) for each in _runs(child)})
        watch = threading.Thread(target=watcher.run, args=(ended,), name="watch", daemon=True)
        watch.start()
        try:
            while child.poll() is None and not leaving():
                time.sleep(_LOOK_SECONDS)
            if leaving():
                sys.stderr.write(f"no new run is taken; those at work have {grace:g} s to end their stage\n")
                ended.set()
                watch.join(_LAST_SECONDS / 2)  # else it would schedule what leaves, while a record of it is still made
                _drain(child, lake, max(0.0, grace - _LAST_SECONDS))
        finally:
            ended.set()
            _end(child)
    return child.returncode or 0


def _started(asked: Serving) -> "subprocess.Popen[bytes]":
    """In a session of its own: Ctrl-C of a terminal comes to this process, which ends the others."""
    words = ["worker", "start", "--pool", asked.pool, "--type", "process", "--limit", str(asked.limit)]
    return subprocess.Popen(  # noqa: S603 our own words
        [*ended_with("prefect"), *words, "--with-healthcheck"], start_new_session=True
    )


def _drain(child: "subprocess.Popen[bytes]", lake: Lake, seconds: float) -> None:
    """Let the runs at work end their stage; what is not done in time is dropped, and taken up as what was stopped."""
    until = time.monotonic() + seconds
    child.send_signal(signal.SIGSTOP)  # it takes no other run, and does not report those that leave as crashed
    runs = _runs(child)
    ids = {run.pid: _run_of(run) for run in runs}  # of one that has ended nobody can ask any more
    for run in runs:
        with suppress(psutil.Error):
            run.send_signal(WORD)  # which ends one that has not begun, and does not heed it yet
    wait_for(runs, max(0.0, until - time.monotonic()))
    for run in runs:
        kill_family(run, _LAST_SECONDS / 2)
    _leave(lake, {pid: run for pid, run in ids.items() if run})


def _leave(lake: Lake, runs: dict[int, str]) -> None:
    """Note of each run that did not end that it was stopped, which is no death."""
    left: list[Presence] = [each for each in recorded(lake) if each.pid in runs and each.host == socket.gethostname()]
    for each in left:
        if each.outcome is None:
            leave_stopped(lake, each.run, each)
    for run in set(runs.values()) - {each.run for each in left}:
        leave_stopped(lake, run)  # it had not begun, or has ended: the server knows which


def _runs(child: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    """The processes that Prefect's worker started, each for one flow run."""
    with suppress(psutil.Error):
        return [each for each in psutil.Process(child.pid).children() if not has_ended(each)]
    return []


def _run_of(process: psutil.Process) -> str:
    """Id of the flow run that a process was started for."""
    with suppress(psutil.Error, OSError):
        return str(process.environ().get(FLOW_RUN, ""))
    return ""


def _end(child: "subprocess.Popen[bytes]") -> None:
    """End Prefect's worker and all that it started."""
    with suppress(psutil.Error):
        kill_family(psutil.Process(child.pid), _LAST_SECONDS / 2)
    child.wait()


def at_home() -> dict[str, str]:
    """The environment of a worker where nobody has said otherwise."""
    return {
        "PREFECT_LOGGING_LEVEL": "INFO",  # a worker is watched by its log, a command by what it prints
        "PREFECT_LOGGING_SERVER_LEVEL": "INFO",
        "PREFECT_WORKER_WEBSERVER_HOST": "127.0.0.1",  # it tells of its health to this machine only
        "PREFECT_CLIENT_MAX_RETRIES": "7",  # four minutes in which a server may be restarted, as its leases last
    }
