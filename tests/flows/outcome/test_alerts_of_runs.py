"""Alerts of real runs: a server, a worker and receivers as processes and sockets, and what arrives of each ending."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from conftest import REPOSITORY, SPEC, environment, loans
from receivers import Received, alerts_file, mail_receiver, web_receiver

from flows.outcome import alerts
from flows.supervision.presence import recorded
from tasks.lake.store import Lake

pytestmark = pytest.mark.long
_PATIENCE = 240
_POOL = "alerts"
_CHEAP = """\
methods:
  fgce: null
  adjusted: null
  cst: {ks: [5], k: 5, null_permutations: 1, null_complainants: 5, sensitivity: false}
"""
SECRET = "Ms Applicant of the second row"
"""A cell, with a quote before it that nothing closes."""


def _specs(place: Path) -> dict[str, Path]:
    """A spec that ends in a breach, one whose data are not as declared, and one that nobody is told of at its end."""
    methods = SPEC[SPEC.index("methods:\n") : SPEC.index("thresholds:\n")]
    frame = loans(400)
    denied = (frame["race"] == "b") & (frame.index % 10 != 0)
    table = frame.assign(approved=frame["approved"].mask(denied, "no")).to_csv(index=False)
    found = {}
    for name in ("outside", "quality", "killed"):
        said = table.replace("buy", f'"{SECRET}', 1) if name == "quality" else table
        (place / f"{name}.csv").write_text(said)
        text = SPEC.replace(methods, _CHEAP).replace("loans.csv", str(place / f"{name}.csv"))
        limit = "minimum: 0.9" if name == "outside" else "minimum: 0.01"
        found[name] = place / f"{name}.yaml"
        found[name].write_text(text.replace("name: loans", f"name: {name}").replace("minimum: 0.9", limit))
    return found


@contextmanager
def _worker(server: str, place: Path, file: Path) -> Iterator[Callable[[], str]]:
    """A worker with the file of alerts; gives what it has printed."""
    output = place / "worker.log"
    words = ["-m", "flows.cli", "worker", "--lake", str(place / "lake"), "--pool", _POOL, "--limit", "3"]
    with output.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, *words],
            env=environment(server) | {"EVENHAND_ALERTS": str(file), "PREFECT_WORKER_QUERY_SECONDS": "1"},
            cwd=REPOSITORY,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield output.read_text
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=30)


@contextmanager
def _deployed(client: Any) -> Iterator[UUID]:
    """A deployment of the audit; gives its id."""
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.client.schemas.objects import WorkPool

    from flows.audit import audit

    pool: WorkPool = client.create_work_pool(WorkPoolCreate(name=_POOL, type="process"))
    made: UUID = client.create_deployment(
        flow_id=client.create_flow(audit),
        name=_POOL,
        work_pool_name=pool.name,
        entrypoint="flows.audit.audit",
        path=str(REPOSITORY),
    )
    try:
        yield made
    finally:
        client.delete_deployment(made)
        client.delete_work_pool(_POOL)


def _until(what: str, found: Callable[[], Any], told: Callable[[], str]) -> Any:
    limit = time.monotonic() + _PATIENCE
    while not (result := found()):
        assert time.monotonic() < limit, f"not within {_PATIENCE} s: {what}\n{told()[-6000:]}"
        time.sleep(0.2)
    return result


def test_breach_data_quality_and_a_killed_run_are_told_once_and_no_value_of_a_row_leaves(
    server: str, tmp_path: Path
) -> None:
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings

    specs, lake = _specs(tmp_path), Lake(tmp_path / "lake")
    with mail_receiver() as mail, web_receiver() as web:
        file = alerts_file(tmp_path / "alerts.yaml", mail, web)
        web.answers += [500, 500]
        with (
            temporary_settings({PREFECT_API_URL: server}),
            get_client(sync_client=True) as client,
            _deployed(client) as deployment,
            _worker(server, tmp_path, file) as told,
        ):
            begun = {
                name: client.create_flow_run_from_deployment(
                    deployment, parameters={"spec": str(spec), "lake": lake.location, "jobs": 1}
                ).id
                for name, spec in specs.items()
            }
            doomed = str(begun["killed"])
            gone = _until("it is at work", lambda: [p for p in recorded(lake) if p.run == doomed], told)
            os.kill(gone[0].pid, signal.SIGKILL)
            _until("all alerts", lambda: len(mail.bodies) > 2 and len(web.bodies) > 1, told)
            time.sleep(2)  # for one that is told twice
    _hold(mail, web, lake)


def _hold(mail: Received, web: Received, lake: Lake) -> None:
    quality, crashed = "Evenhand: data quality in quality 2024", "Evenhand: crashed in killed 2024"
    assert sorted(mail.subjects()) == ["Evenhand: outside the limit in breach 2024", crashed, quality]
    assert sorted(web.subjects()) == [crashed, quality]
    said = mail.text() + web.text()
    assert "approval_rate_ratio" in said
    assert "/reports/breach-2024-" in said
    assert SECRET not in said
    kept = "".join((lake.root / path).read_text() for path in lake.storage.glob("alerts/*.json"))
    assert SECRET not in kept
    assert sum(each.tries for each in alerts.alerts(lake) if each.to == "pager") == 4, "two were answered 500"
