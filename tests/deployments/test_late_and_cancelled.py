"""A worker that starts after an outage cancels late runs but the newest; a run that somebody cancels is told once.

One real server, SQLite, a worker as `evenhand worker` starts it, and a receiver of alerts.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from conftest import SPEC, loans
from receivers import Received, web_receiver
from restartable_server import Deployed, Server, deployed, until

from flows.runs.index import runs_of
from tasks.lake.store import Lake

pytestmark = pytest.mark.long

_CHEAP = """\
methods:
  fgce: null
  cst: {ks: [5], k: 5, null_permutations: 1, null_complainants: 5, sensitivity: false}
"""
_COSTLY = """\
methods:
  fgce: null
  cst: {ks: [5, 10, 15, 20, 25, 30], k: 15, null_permutations: 1000}
"""


class Outage:
    """A server without a worker, a lake, and one deployment of the audit."""

    def __init__(self, place: Path, server: Server, deployment: Deployed, told: Received) -> None:
        self.place, self.server, self.deployment, self.told = place, server, deployment, told
        self.lake = place / "lake"
        text = SPEC.replace(SPEC[SPEC.index("methods:\n") : SPEC.index("thresholds:\n")], _CHEAP)
        self.spec = place / "loans.yaml"
        self.spec.write_text(text.replace("path: loans.csv", f"path: {place / 'loans.csv'}"))
        self.alerts = place / "alerts.yaml"
        self.alerts.write_text(
            f"to: {{pager: 'json://127.0.0.1:{told.port}/evenhand'}}\nrules:\n  - {{when: cancelled, tell: pager}}\n"
        )
        self.alerts.chmod(0o600)

    @property
    def parameters(self) -> dict[str, str]:
        return {"spec": str(self.spec), "lake": str(self.lake)}

    def runs(self) -> list[Any]:
        """The runs that should have begun, the oldest first."""
        found = [r for r in self.deployment.client.read_flow_runs() if r.expected_start_time < datetime.now(UTC)]
        return sorted(found, key=lambda run: run.expected_start_time)

    def processes(self, run: Any = "") -> list[psutil.Process]:
        """Those of runs at work, or of one, by their records."""
        found = []
        for path in (self.lake / "locks" / "alive").glob("*.json"):
            with suppress(ValueError, FileNotFoundError, psutil.NoSuchProcess):
                said = json.loads(path.read_text())
                if said["stage"] and str(run) in ("", said["run"]):
                    found.append(psutil.Process(said["pid"]))
        return found


@pytest.fixture(scope="module")
def outage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outage]:
    place = tmp_path_factory.mktemp("outage")
    loans().to_csv(place / "loans.csv", index=False)
    (place / "prefect").mkdir()
    server = Server(place / "prefect")
    server.start()
    with ExitStack() as stack:
        stack.callback(server.kill)
        stack.callback(
            lambda: [each.kill() for p in server.started if p.is_running() for each in (*p.children(recursive=True), p)]
        )
        told = stack.enter_context(web_receiver())
        yield Outage(place, server, stack.enter_context(deployed(server, "flows.audit.audit")), told)


def test_a_worker_that_starts_after_an_outage_cancels_all_late_runs_but_the_newest(outage: Outage) -> None:
    from prefect.client.schemas.actions import DeploymentScheduleCreate
    from prefect.client.schemas.schedules import IntervalSchedule

    often = IntervalSchedule(interval=timedelta(seconds=15), anchor_date=datetime.now(UTC))
    schedule = DeploymentScheduleCreate(schedule=often, parameters=outage.parameters)
    client, identity = outage.deployment.client, outage.deployment.deployment
    (made,) = client.create_deployment_schedules(identity, [schedule])
    until("three runs are late", lambda: len(outage.runs()) >= 3)
    outage.server.worker(outage.lake, EVENHAND_ALERTS=str(outage.alerts))
    until("one is at work", outage.processes, told=outage.server.log)
    client.update_deployment_schedule(identity, made.id, active=False)  # and what it had planned is gone
    cancelled = [run for run in outage.runs() if run.state.is_cancelled()]
    at_work = next(run for run in outage.runs() if run.state.is_running())
    assert len(cancelled) >= 2
    assert all(run.expected_start_time < at_work.expected_start_time for run in cancelled)
    messages = {run.state.message for run in cancelled}
    assert messages == {f"superseded by the run of {at_work.expected_start_time:%Y-%m-%d}"}
    log = outage.server.log()
    assert all(f"late run {run.name} was cancelled: superseded" in log for run in cancelled)
    kind, *_ = until("it is over", lambda: outage.deployment.over(at_work.id), told=outage.server.log)
    assert kind == "COMPLETED"
    assert len(runs_of(Lake(outage.lake))) == 1
    until(
        "those that began before it was off are over", lambda: all(r.state.is_final() for r in client.read_flow_runs())
    )
    assert outage.told.bodies == [], "nobody is told of a run that another one replaced"


def test_a_run_that_somebody_cancels_is_told_once_and_leaves_no_process(outage: Outage) -> None:
    from prefect.states import Cancelling

    text = outage.spec.read_text().replace("2024", "2023")
    outage.spec.write_text(text.replace(_CHEAP, _COSTLY))
    run = outage.deployment.begin(**outage.parameters)
    (process,) = until("it is at work", lambda: outage.processes(run), told=outage.server.log)
    family = [process, *process.children(recursive=True)]
    outage.deployment.client.set_flow_run_state(run, Cancelling())
    kind, name, _ = until("it is over", lambda: outage.deployment.over(run), 120, told=outage.server.log)
    assert (kind, name) == ("CANCELLED", "Cancelled")
    left = psutil.wait_procs(family, timeout=120)[1]
    assert [each.cmdline() for each in left] == [], outage.server.log()
    until("it is told", lambda: outage.told.bodies, 60, told=outage.server.log)
    assert outage.told.subjects() == ["Evenhand: cancelled in loans 2023"]
    until("the record is gone", lambda: not list((outage.lake / "locks" / "alive").glob("*.json")), 120)
    assert outage.deployment.state(run)[0] == "CANCELLED", "nobody takes it up again"
    assert len(outage.told.bodies) == 1
