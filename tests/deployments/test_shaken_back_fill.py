"""A back-fill of four years whose server is killed, whose worker leaves, whose processes die: it ends as ever.

One real server on SQLite with leases of 30 s, and workers as `evenhand worker` starts them.
"""

import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families
from restartable_server import Deployed, Server, deployed, free_port, limit_memory, until
from shaken_years import YEARS, digests, left_alone, write_four_years

from flows.partitions.attempts import Attempt, attempts
from flows.supervision.presence import holders, recorded
from tasks.lake.store import Lake

pytestmark = pytest.mark.long

_AWAY_SECONDS = 8.0
"""As long as operations.md has the server away."""
_LEAVES_SECONDS = 45.0
"""A worker whose runs have ended their stages does not wait for the end of EVENHAND_GRACE, which is 90 s."""


class Shaken:
    """A server, a deployment of the back-fill, and what its years are when nothing disturbs them."""

    def __init__(self, place: Path, server: Server, deployment: Deployed) -> None:
        self.server, self.deployment, self.place = server, deployment, place
        self.spec = write_four_years(place)
        self.expected = left_alone(self.spec, place / "quiet")

    def begin(self, lake: Path, **more: Any) -> Any:
        return self.deployment.begin(spec=str(self.spec), years=list(YEARS), lake=str(lake), **more)

    def at_work(self, lake: Path, year: int) -> Attempt:
        """The record of a year, once it is in a stage."""

        def found() -> Attempt | None:
            return next((each for each in self.attempts(lake, year) if each.stage and not each.ended), None)

        record: Attempt = until(f"{year} is at work", found, told=self.server.log)
        return record

    def attempts(self, lake: Path, year: int) -> list[Attempt]:
        return [each for each in attempts(Lake(lake)) if each.year == year]

    def ended_well(self, run: Any, lake: Path) -> None:
        """The run is COMPLETED, and all four years are there once, each with the tables of the quiet one."""
        kind, name, message = until("it is over", lambda: self.deployment.over(run), told=self.server.log)
        assert (kind, message.split(":")[0]) == ("COMPLETED", "4 years"), (name, message)
        assert digests(Lake(lake)) == self.expected
        assert len(list((lake / "runs").iterdir())) == len(YEARS), "each once"
        until("the record is gone", lambda: not list(recorded(Lake(lake))), told=self.server.log)
        until("nobody holds a lock", lambda: not holders(Lake(lake)), told=self.server.log)
        assert not list((lake / "tmp").iterdir())


@pytest.fixture(scope="module")
def shaken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shaken]:
    place = tmp_path_factory.mktemp("shaken")
    (place / "prefect").mkdir()
    server = Server(place / "prefect")
    server.start()
    try:
        with deployed(server, "flows.backfill.backfill") as deployment:
            yield Shaken(place, server, deployment)
    finally:
        server.end()


def family(process: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    parent = psutil.Process(process.pid)
    return [parent, *parent.children(recursive=True)]


def scraped(port: int) -> dict[str, float]:
    """What Prometheus would read: name and labels -> value."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    return {f"{s.name}{sorted(s.labels.values())}": s.value for family in families for s in family.samples}


def test_a_server_that_is_killed_in_mid_back_fill_and_comes_back_changes_nothing(shaken: Shaken) -> None:
    lake, port = shaken.place / "restarted", free_port()
    worker = shaken.server.worker(lake, EVENHAND_METRICS=f"127.0.0.1:{port}")
    run = shaken.begin(lake)
    shaken.at_work(lake, YEARS[1])
    during = scraped(port)
    assert during["evenhand_runs_at_work[]"] == 1
    assert sum(value for name, value in during.items() if name.startswith("evenhand_runs_total")) == 1
    assert during["evenhand_stage_seconds_count['cst', 'detect']"] == 1
    shaken.server.kill()
    time.sleep(_AWAY_SECONDS)
    shaken.server.start()
    shaken.ended_well(run, lake)
    assert [len(shaken.attempts(lake, year)) for year in YEARS] == [1] * 4, "it went on; no year was begun again"
    after = scraped(port)
    assert sum(value for name, value in after.items() if name.startswith("evenhand_runs_total")) == len(YEARS)
    _end(worker)


def test_sigterm_ends_the_years_processes_and_the_next_worker_ends_the_back_fill(shaken: Shaken) -> None:
    lake = shaken.place / "left"
    worker = shaken.server.worker(lake)
    run = shaken.begin(lake, workers=2)
    shaken.at_work(lake, YEARS[1])
    members, began = family(worker), time.monotonic()
    assert len(members) >= 4, "the worker, Prefect's, the flow and its years"
    worker.terminate()
    assert worker.wait(timeout=120) == 143
    assert psutil.wait_procs(members, timeout=10)[1] == [], "nothing of ours is left"
    assert time.monotonic() - began < _LEAVES_SECONDS
    assert shaken.deployment.state(run)[0] == "RUNNING", "it was not told as crashed"
    after = shaken.server.worker(lake)
    shaken.ended_well(run, lake)
    _end(after)


def test_drained_workers_end_what_is_at_work_and_take_nothing_more(shaken: Shaken) -> None:
    lake = shaken.place / "drained"
    worker = shaken.server.worker(lake)
    run = shaken.begin(lake)
    shaken.at_work(lake, YEARS[0])
    waits = shaken.begin(lake)
    done = shaken.server.run("worker", "--drain", "--lake", str(lake))
    assert done.returncode == 0, done.stderr
    assert "waiting for 1 at work: yearly 2001-2004" in done.stderr
    assert "drained: no run of the pool evenhand is at work after 1 had ended" in done.stdout
    assert shaken.deployment.state(run)[0] == "COMPLETED"
    assert shaken.deployment.state(waits)[0] == "SCHEDULED"
    assert worker.poll() is None
    _end(worker)
    again = shaken.server.worker(lake)
    time.sleep(10)
    assert shaken.deployment.state(waits)[0] == "SCHEDULED", "nor does one that was started again"
    shaken.deployment.resume_pool()
    shaken.ended_well(waits, lake)
    _end(again)


def test_a_killed_process_of_a_stage_is_no_loss_of_a_year(shaken: Shaken) -> None:
    lake = shaken.place / "stages"
    worker = shaken.server.worker(lake)
    run = shaken.begin(lake, jobs=2)
    shaken.at_work(lake, YEARS[0])
    victim = until("a process computes a stage", lambda: computing(worker), told=shaken.server.log)
    os.kill(victim, signal.SIGKILL)
    shaken.ended_well(run, lake)
    assert len(shaken.attempts(lake, YEARS[0])) == 2
    _end(worker)


def test_a_year_without_memory_is_tried_again_and_then_told(shaken: Shaken) -> None:
    """A real limit, as by `ulimit -v`: what the process of the year has is all that it may have."""
    lake = shaken.place / "limited"
    worker = shaken.server.worker(lake)
    run = shaken.deployment.begin(spec=str(shaken.spec), years=[YEARS[0]], lake=str(lake))
    limited: set[int] = set()

    def over() -> Any:
        if any(each.stage and not each.ended for each in attempts(Lake(lake))):
            limit_memory([each.pid for each in years_processes(worker)], limited)
        return shaken.deployment.over(run)

    kind, name, message = until("it is over", over, told=shaken.server.log)
    tried = shaken.attempts(lake, YEARS[0])
    assert (kind, name) == ("FAILED", "Infrastructure"), message
    assert len(tried) == 2, [each.message for each in tried]  # in the pool, then by itself in a new process
    assert len(limited) == 2, "a process that had no memory is not used again"
    assert "1 failed; 2001" in message
    assert "memory" in message
    assert worker.poll() is None, "the worker lives"
    _end(worker)


def computing(worker: "subprocess.Popen[bytes]") -> int:
    """A process that works on a stage: it is a grandchild of the year's, forked from their server, and busy."""
    for each in years_processes(worker):
        with suppress(psutil.Error):
            for child in each.children(recursive=True):
                if "forkserver" in " ".join(child.cmdline()) and child.parent() not in (None, each):
                    return child.pid
    return 0


def years_processes(worker: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    """The processes that compute years: the children of the flow's, but for those that keep its semaphores."""
    found = []
    with suppress(psutil.Error):
        for each in psutil.Process(worker.pid).children(recursive=True):
            with suppress(psutil.Error):
                if "spawn_main" in " ".join(each.cmdline()):
                    found.append(each)
    return found


def _end(worker: "subprocess.Popen[bytes]") -> None:
    worker.terminate()
    worker.wait(timeout=_LEAVES_SECONDS)
