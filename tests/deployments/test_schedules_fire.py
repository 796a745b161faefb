"""A run that nobody starts: prefect.yaml is registered with intervals for crons, and a worker audits what comes.

A run that is started by hand works even where the server's scheduler fails, so that it shows nothing of schedules.
"""

import json
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
import yaml
from conftest import SPEC
from deployed import DEPLOYMENTS, SERVICES, Deployment, Places, working
from prometheus_client.parser import text_string_to_metric_families

from flows.operations.metrics import VARIABLE
from flows.runs.index import runs_of
from tasks.lake.store import Lake

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun

pytestmark = pytest.mark.long
GROUP = "scheduler"
"""Of tests for one worker: test_doctor plans runs on the same server."""

_OFTEN, _SELDOM = 20, 24 * 3600
"""Seconds between the runs of the deployment that is waited for, and of others, which are not to run here."""
_PATIENCE = 240
_CHEAP = """\
methods:
  fgce: null
  cst: {ks: [5], k: 5, null_permutations: 1, null_complainants: 5, sensitivity: false}
"""


@dataclass
class Measured(Deployment):
    """A deployment whose worker serves metrics."""

    @property
    def metrics(self) -> str:
        """Address; the port is that of the site, which does not run here."""
        return f"127.0.0.1:{self.places.site}"

    def container(self, service: str) -> dict[str, str]:
        """With the variable that compose.yaml leaves to the operator."""
        return {**super().container(service), VARIABLE: self.metrics}


@pytest.fixture
def deployment(server: str, place: Path) -> Measured:
    """What compose.yaml runs, with the session's server for its own; its spec audits the loans in a cheap way."""
    places = replace(Places.free(place), server=urlsplit(server).port)
    text = (place / "loans.yaml").read_text()
    methods = SPEC[SPEC.index("methods:\n") : SPEC.index("thresholds:\n")]
    (place / "specs" / "quarterly.yaml").write_text(text.replace(methods, _CHEAP))
    return Measured(places)


def often(file: Path) -> Path:
    """prefect.yaml with an interval for each cron: short for the quarterly audit, a day for all others."""
    said = yaml.safe_load((DEPLOYMENTS / "prefect.yaml").read_text())
    for each in said["deployments"]:
        seconds = _OFTEN if each["name"] == "quarterly" else _SELDOM
        later = {"anchor_date": "2100-01-01T00:00:00+00:00"} if seconds == _SELDOM else {}
        each["schedules"] = [{"interval": seconds, **later, "slug": s["slug"]} for s in each["schedules"]]
    file.write_text(yaml.safe_dump(said))
    return file


@contextmanager
def registered(deployment: Deployment, client: "SyncPrefectClient") -> Iterator[None]:
    """The deployments, registered by compose.yaml's own command; the server is left as it was."""
    file = often(deployment.places.home / "prefect.yaml")
    words = [word if not word.endswith("prefect.yaml") else str(file) for word in SERVICES["register"]["command"]]
    deployment.once("pool")
    try:
        deployment.run(words, "register")
        yield
    finally:
        names = {each["name"] for each in yaml.safe_load(file.read_text())["deployments"]}
        for each in client.read_deployments():
            if each.name in names:  # others' tests have theirs on this server
                client.delete_deployment(each.id)
        client.delete_work_pool("evenhand")


def runs_by_schedule(client: "SyncPrefectClient", name: str) -> "list[FlowRun]":
    from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterName

    ours = DeploymentFilter(name=DeploymentFilterName(any_=[name]))
    return [run for run in client.read_flow_runs(deployment_filter=ours) if run.auto_scheduled]


def until(what: str, found: Any, deployment: Deployment) -> Any:
    """Wait for something to be found; gives it."""
    limit, log = time.monotonic() + _PATIENCE, deployment.places.home / "worker.log"
    while not (result := found()):
        told = log.read_text()[-4000:] if log.is_file() else ""
        assert time.monotonic() < limit, f"not within {_PATIENCE} s: {what}\n{told}"
        time.sleep(0.3)
    return result


def scraped(address: str) -> dict[str, float]:
    """What Prometheus would read: name and labels -> value."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    return {f"{s.name}{sorted(s.labels.values())}": s.value for family in families for s in family.samples}


def listens(address: str) -> bool:
    """Whether the worker tells its metrics: it begins after the first run is planned."""
    try:
        return "evenhand_runs_at_work[]" in scraped(address)
    except urllib.error.URLError:
        return False


def test_a_schedule_fires_and_its_audit_is_in_the_lake_and_in_the_metrics(server: str, deployment: Measured) -> None:
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings

    lake = Lake(deployment.places.home / "lake")
    with (
        temporary_settings({PREFECT_API_URL: server}),
        get_client(sync_client=True) as client,
        registered(deployment, client),
        working(deployment),
    ):
        until("the quarterly audit is planned", lambda: runs_by_schedule(client, "quarterly"), deployment)
        until("the watch is planned", lambda: runs_by_schedule(client, "snapshot"), deployment)
        assert not runs_by_schedule(client, "by-hand"), "which has no schedule"
        until("the worker tells how many are at work", lambda: listens(deployment.metrics), deployment)
        ended = until("one has ended", lambda: over(runs_by_schedule(client, "quarterly")), deployment)
        assert {run.state_type.value for run in ended} == {"COMPLETED"}, ended
        (audited,) = runs_of(lake)
        told = scraped(deployment.metrics)
        assert told[f"evenhand_runs_total{sorted(['loans', audited.state])}"] == 1
        assert told["evenhand_stage_seconds_count['cst', 'detect']"] == 1
        assert told["evenhand_stage_peak_bytes['', 'ingest']"] > 50 * 2**20
        assert told["evenhand_rows_total['in', 'ingest']"] == 500
        listed = json.loads(deployment.run(["evenhand", "status", "--json"]))
        assert [audit["next_run"] != "" for audit in listed["audits"]] == [True], "by the server's schedule"
    assert (audited.audit, audited.year) == ("loans", 2024)
    assert (lake.storage.local / "runs" / audited.run / "manifest.json").is_file()


def over(runs: "list[FlowRun]") -> "list[FlowRun]":
    return [run for run in runs if run.state is not None and run.state.is_final()]
