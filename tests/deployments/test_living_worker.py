"""A worker that lives: runs whose process is killed, a server that goes away, SIGTERM, and a worker that is killed.

One real server, SQLite, and workers as `evenhand worker` starts them; each step goes on from the one before.
"""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from conftest import SPEC, loans
from restartable_server import Deployed, Server, deployed, limit_memory, until

from flows.runs.index import runs_of
from flows.runs.signatures import verify_run
from flows.supervision.presence import holders
from tasks.lake.store import Lake

pytestmark = pytest.mark.long

_CHEAP = """\
methods:
  fgce: null
  cst: {ks: [5], k: 5, null_permutations: 1, null_complainants: 5, sensitivity: false}
"""


class Living:
    """A server, a lake, and the runs of one deployment of the audit."""

    def __init__(self, place: Path, server: Server, deployment: Deployed) -> None:
        self.place, self.server, self.deployment = place, server, deployment
        self.lake = place / "lake"
        self.seen: set[int] = set()

    def begin(self, year: int) -> Any:
        text = SPEC.replace(SPEC[SPEC.index("methods:\n") : SPEC.index("thresholds:\n")], _CHEAP)
        text = text.replace("path: loans.csv", f"path: {self.place / 'loans.csv'}").replace("2024", str(year))
        spec = self.place / f"loans-{year}.yaml"
        spec.write_text(text)
        return self.deployment.begin(spec=str(spec), lake=str(self.lake))

    def records(self) -> list[dict[str, Any]]:
        found = []
        for path in (self.lake / "locks" / "alive").glob("*.json"):
            with suppress(ValueError, FileNotFoundError):
                found.append(json.loads(path.read_text()))
        return found

    def at_stage(self) -> int:
        """The process of a run that computes a stage, and that was not looked at before."""

        def new() -> int:
            pids = (each["pid"] for each in self.records() if each["stage"] and not each["outcome"])
            return next((pid for pid in pids if pid not in self.seen and psutil.pid_exists(pid)), 0)

        pid = int(until("a run is in a stage", new, told=self.server.log))
        self.seen.add(pid)
        return pid

    def over(self, run: Any) -> tuple[str, str, str]:
        found: tuple[str, str, str] = until("the run is over", lambda: self.deployment.over(run), told=self.server.log)
        return found


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Living]:
    place = tmp_path_factory.mktemp("living")
    loans().to_csv(place / "loans.csv", index=False)
    (place / "prefect").mkdir()
    server = Server(place / "prefect")
    server.start()
    try:
        with deployed(server, "flows.audit.audit") as deployment:
            yield Living(place, server, deployment)
    finally:
        server.end()


def family(process: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    parent = psutil.Process(process.pid)
    return [parent, *parent.children(recursive=True)]


def test_a_run_that_is_killed_thrice_is_taken_up_twice_and_then_told_and_the_worker_leaves_on_sigterm(
    living: Living,
) -> None:
    worker = living.server.worker(living.lake)
    run = living.begin(2023)
    for _ in range(3):
        os.kill(living.at_stage(), signal.SIGKILL)
    kind, name, message = living.over(run)
    assert (kind, name) == ("FAILED", "Infrastructure")
    assert "taken up again 2 times before" in message
    assert "in stage " in message
    messages = living.deployment.states(run)
    assert [f"Taken up again by evenhand ({n} of 2)." in messages for n in (1, 2)] == [True, True]
    assert worker.poll() is None, "the worker lives"

    other = living.begin(2024)
    living.at_stage()
    members = family(worker)
    worker.terminate()
    assert worker.wait(timeout=45) == 143, "it does not wait for the end of EVENHAND_GRACE, which is 90 s"
    assert psutil.wait_procs(members, timeout=10)[1] == [], "nothing of ours is left"
    assert living.deployment.state(other)[0] == "RUNNING", "it was not told as crashed"
    assert [each["stopped"] for each in living.records()] == [True]
    living.run = other  # type: ignore[attr-defined]


def test_the_next_worker_takes_it_up_and_it_ends_though_its_server_is_killed_meanwhile(living: Living) -> None:
    run = living.run  # type: ignore[attr-defined]
    worker = living.server.worker(living.lake)
    living.at_stage()
    living.server.kill()
    living.server.start()
    kind, name, _ = living.over(run)
    assert (kind, name) in {
        ("COMPLETED", "Outside the limit"),
        ("COMPLETED", "Within the limit"),
        ("COMPLETED", "Inconclusive"),
    }
    assert any("it was asked to stop" in message for message in living.deployment.states(run))
    lake = Lake(living.lake)
    (published,) = runs_of(lake)
    verify_run(lake.location, published.run)
    until("the record is gone", lambda: not living.records(), told=living.server.log)

    members = family(worker)
    worker.kill()
    assert psutil.wait_procs(members, timeout=10)[1] == [], "the children of the dead end"
    assert holders(Lake(living.lake)) == [], "nobody holds a lock; gc removes the files of those who were killed"


def test_a_run_without_memory_is_tried_thrice_and_then_told(living: Living) -> None:
    """A real limit, as by `ulimit -v`: what the process of the run has in a stage is all that it may have."""
    worker = living.server.worker(living.lake)
    starved = living.begin(2025)
    limited: set[int] = set()

    def over() -> Any:
        records = living.records()
        limit_memory((each["pid"] for each in records if each["stage"] and not each["outcome"]), limited)
        return living.deployment.over(starved)

    kind, name, message = until("the run without memory is over", over, told=living.server.log)
    assert (kind, name) == ("FAILED", "Infrastructure")
    assert "memory" in message
    deaths = [n for n in (1, 2) if f"Taken up again by evenhand ({n} of 2)." in living.deployment.states(starved)]
    assert len(limited) == 1 + len(deaths), "each that was resumed after a death had no more than before"
    assert worker.poll() is None, "the worker lives"
