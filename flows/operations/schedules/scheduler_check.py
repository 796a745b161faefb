"""Checks that a Prefect server creates scheduled runs by itself, which a manual run cannot show.

The check creates a scratch deployment with an hourly schedule and no work pool, so that nothing ever starts. It then
deletes the flow, the deployment and its scheduled runs.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from flows.supervision.embedded_api import prepare_environment

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

LIMIT_SECONDS = 30
_HOUR = timedelta(hours=1)


def seconds_to_first_run() -> float | None:
    """How long the server took to make a run of a new schedule; None if it made none within ``LIMIT_SECONDS``.

    The server is the one of ``PREFECT_API_URL``, else one that is started for this in a temporary directory.

    Raises:
        Exception: whatever Prefect or its client raises where a server cannot be started, reached or used.
    """
    with tempfile.TemporaryDirectory(prefix="evenhand-doctor-") as home:
        prepare_environment(Path(home))  # before Prefect is loaded, which reads it then
        with _client(Path(home)) as client, _scratch_deployment(client) as deployment:
            return _until_planned(client, deployment)


@contextmanager
def _client(home: Path) -> Iterator["SyncPrefectClient"]:
    """A client of the server, with a shorter timeout than a run has."""
    from prefect.client.orchestration import get_client
    from prefect.settings import (
        PREFECT_API_REQUEST_TIMEOUT,
        PREFECT_API_URL,
        PREFECT_CLIENT_MAX_RETRIES,
        temporary_settings,
    )

    with _server(home) as url:
        hasty = {PREFECT_API_URL: url, PREFECT_API_REQUEST_TIMEOUT: 10, PREFECT_CLIENT_MAX_RETRIES: 1}
        with temporary_settings(hasty), get_client(sync_client=True) as client:
            yield client


@contextmanager
def _server(home: Path) -> Iterator[str]:
    named = os.environ.get("PREFECT_API_URL")
    if named:
        yield named
        return
    from flows.supervision.processes.server_process import scratch_server

    place = home / "server"
    place.mkdir()
    with scratch_server(place) as url:
        yield url


@contextmanager
def _scratch_deployment(client: "SyncPrefectClient") -> Iterator[UUID]:
    """A deployment of a flow of its own name; removing the two removes the runs that were made of them."""
    from prefect.client.schemas.actions import DeploymentScheduleCreate
    from prefect.client.schemas.schedules import IntervalSchedule

    name = f"evenhand-doctor-{uuid4().hex[:12]}"
    hourly = IntervalSchedule(interval=_HOUR, anchor_date=datetime.now(UTC) + _HOUR)
    flow = client.create_flow_from_name(name)
    try:
        deployment = client.create_deployment(flow, name, schedules=[DeploymentScheduleCreate(schedule=hourly)])
        try:
            yield deployment
        finally:
            client.delete_deployment(deployment)
    finally:
        client.delete_flow(flow)


def _until_planned(client: "SyncPrefectClient", deployment: UUID) -> float | None:
    from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId

    ours = DeploymentFilter(id=DeploymentFilterId(any_=[deployment]))
    began = time.monotonic()
    while (passed := time.monotonic() - began) < LIMIT_SECONDS:
        if any(run.auto_scheduled for run in client.read_flow_runs(deployment_filter=ours)):
            return passed
        time.sleep(0.2)
    return None
