"""Schedules on a Prefect server: list, switch, cancel late runs, check that the scheduler works."""

import logging
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from json import JSONDecodeError
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from pydantic import ValidationError

from flows.supervision.prefect_server import (
    GIVE_PASSWORD,
    LOOK_AT_DATABASE,
    NO_PREFECT,
    START,
    WANTS_PASSWORD,
    of_lake,
    prepare_environment,
    shown_address,
)
from schemas.errors import InfrastructureError, SpecError, nearest
from tasks.lake.store import Lake

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import DeploymentSchedule, FlowRun
    from prefect.client.schemas.responses import DeploymentResponse


# --------------------------------------------------------------------------------------------------------------------
# A client of a Prefect server that gives up soon, and advice where no Prefect server answers.
#
# An address may be answered by somebody else: a proxy's page, or the server's own pages where ``/api`` is missing.


_OTHER = f"no Prefect server answers there: {NO_PREFECT}"


@contextmanager
def hasty_client(seconds: float, retries: int) -> Iterator["SyncPrefectClient"]:
    """A client of the server of PREFECT_API_URL, which gives up soon.

    Args:
        seconds: that an answer may take.
        retries: after a failed request.

    Raises:
        InfrastructureError: it does not answer, or what answers is no Prefect server.
    """
    from httpx import HTTPError, InvalidURL
    from prefect.client.orchestration import get_client
    from prefect.settings import (
        PREFECT_API_REQUEST_TIMEOUT,
        PREFECT_API_URL,
        PREFECT_CLIENT_MAX_RETRIES,
        temporary_settings,
    )

    api = os.environ.get("PREFECT_API_URL", "")
    hasty = {PREFECT_API_URL: api, PREFECT_API_REQUEST_TIMEOUT: seconds, PREFECT_CLIENT_MAX_RETRIES: retries}
    try:
        with temporary_settings(hasty), get_client(sync_client=True) as client:
            yield client
    except (HTTPError, InvalidURL, JSONDecodeError, ValidationError) as error:
        finding, step = finding_of(error)
        raise InfrastructureError(f"the Prefect server at {shown_address(api)} {finding}: {step}") from error


def finding_of(error: Exception) -> tuple[str, str]:
    """Describes an error of Prefect's client: the state of the server, and the next step."""
    from httpx import HTTPStatusError, codes

    if isinstance(error, JSONDecodeError | ValidationError):
        return "gives no answer of Prefect", _OTHER
    if not isinstance(error, HTTPStatusError):
        return f"does not answer ({type(error).__name__})", START
    code = error.response.status_code
    if code == codes.NOT_FOUND or codes.is_redirect(code):
        return f"answers {code}", _OTHER
    if code in WANTS_PASSWORD:
        return f"refuses the password ({code})", GIVE_PASSWORD
    return f"answers {code}", LOOK_AT_DATABASE


# --------------------------------------------------------------------------------------------------------------------
# Cancels late runs that a later one of the same deployment replaces.
#
# A server plans runs ahead. After an outage several of one deployment are late, and would start one after the other on
# the same files. A run with a ``quarter`` among its parameters is not replaced: its dates differ in what they read. Nor
# is one that had begun before: it is to go on where it was.


QUARTER = "quarter"


@dataclass(frozen=True)
class Superseded:
    """A late run that was cancelled."""

    run: str
    flow_run: str
    message: str


def cancel_superseded(lake: Lake, now: datetime | None = None) -> list[Superseded]:
    """Cancel all late runs on a lake but the newest of each deployment; returns those that were cancelled.

    Args:
        lake: whose runs.
        now: a run that should have begun before it is late; the clock's if left out.
    """
    from prefect.client.orchestration import get_client
    from prefect.states import Cancelled

    when = now or datetime.now(UTC)
    late: dict[UUID, list[FlowRun]] = defaultdict(list)
    cancelled = []
    with get_client(sync_client=True) as client:
        for run in of_lake(client, lake, ["SCHEDULED"]):  # the newest first
            begun = run.run_count > 0 or run.start_time is not None
            missed = run.expected_start_time is not None and run.expected_start_time < when
            replaceable = missed and run.auto_scheduled and not begun and run.parameters.get(QUARTER) is None
            if run.deployment_id is not None and replaceable:
                late[run.deployment_id].append(run)
        for newest, *older in late.values():
            message = f"superseded by the run of {newest.expected_start_time:%Y-%m-%d}"
            for run in older:
                client.set_flow_run_state(run.id, Cancelled(message=message))
                cancelled.append(Superseded(run.name, str(run.id), message))
    return cancelled


# --------------------------------------------------------------------------------------------------------------------
# Lists the schedules of a server's deployments with their next date and last run, and switches them off and on.
#
# A schedule is overdue if a planned run of it has not begun ten minutes after its date, or if it is on and the server
# has planned nothing: a worker is missing, or the server's scheduler fails.


log = logging.getLogger("evenhand")

LATE = timedelta(minutes=10)
"""A worker that waits takes a run within seconds; after this it is overdue."""
_AHEAD = timedelta(days=99)
"""Prefect's server plans no run that is more than 100 days ahead."""
PAUSED = "paused"
_PAGE = 200
"""Deployments, and runs of one, that are read at once: as many as the server gives."""
_PAGES = 50
"""Of deployments; those after them are not looked at, which is logged."""


@dataclass(frozen=True)
class Planned:
    """One schedule of a deployment."""

    name: str
    """Its slug; the deployment's name where it has none."""
    deployment: str
    """Flow and deployment, such as ``audit/quarterly``."""
    when: str
    """The cron words, or the interval."""
    zone: str
    active: bool
    next: str
    """The next date, with its offset; empty where none is planned."""
    last: str
    """When the last run of the deployment began; empty without one."""
    state: str
    """Name of the last run's state."""
    overdue: str
    """Why it is overdue; empty where it is not."""
    spec: str = ""
    """The spec among the deployment's parameters, where that is a path."""
    lake: str = ""


def planned(client: "SyncPrefectClient", now: datetime | None = None) -> list[Planned]:
    """Every schedule of the server, by deployment and name.

    Args:
        client: of the server.
        now: the time by which a run is late; the clock's if left out.
    """
    from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId
    from prefect.client.schemas.sorting import FlowRunSort

    when, schedules = now or datetime.now(UTC), []
    for deployment in _deployments(client):
        if deployment.schedules:
            of_deployment = DeploymentFilter(id=DeploymentFilterId(any_=[deployment.id]))
            newest_first = FlowRunSort.EXPECTED_START_TIME_DESC
            runs = client.read_flow_runs(deployment_filter=of_deployment, sort=newest_first, limit=_PAGE)
            flow = client.read_flow(deployment.flow_id).name
            schedules += [_planned(deployment, schedule, flow, runs, when) for schedule in deployment.schedules]
    return sorted(schedules, key=lambda schedule: (schedule.deployment, schedule.name))


def switch(client: "SyncPrefectClient", name: str, *, active: bool) -> list[str]:
    """Switch the schedules of a name off or on: of a slug, or all of a deployment; gives their slugs.

    Runs that the server has planned of a schedule go when it is switched off.

    Raises:
        SpecError: the server has no schedule of that name.
    """
    pairs: list[tuple[DeploymentResponse, DeploymentSchedule]] = [
        (deployment, schedule) for deployment in _deployments(client) for schedule in deployment.schedules
    ]
    matches = [(d, s) for d, s in pairs if name in (s.slug, d.name)]
    if not matches:
        names = sorted({schedule_name for d, s in pairs for schedule_name in (s.slug, d.name) if schedule_name})
        hint = nearest(name, names) if names else "register deployments/prefect.yaml first"
        raise SpecError(f"the server has no schedule {name!r}; {hint}")
    for deployment, schedule in matches:
        client.update_deployment_schedule(deployment.id, schedule.id, active=active)
        if active and deployment.paused:  # somebody switched the whole deployment off in Prefect's pages
            client.resume_deployment(deployment.id)
    return [schedule.slug or deployment.name for deployment, schedule in matches]


def _deployments(client: "SyncPrefectClient") -> "list[DeploymentResponse]":
    deployments: list[DeploymentResponse] = []
    for page in range(_PAGES):
        batch = client.read_deployments(limit=_PAGE, offset=page * _PAGE)
        deployments += batch
        if len(batch) < _PAGE:
            return deployments
    log.warning("the server has more than %d deployments: the others are not looked at", len(deployments))
    return deployments


def _planned(
    deployment: "DeploymentResponse", schedule: "DeploymentSchedule", flow: str, runs: "list[FlowRun]", now: datetime
) -> Planned:
    from zoneinfo import ZoneInfo

    from cronsim import CronSim

    rule, active = schedule.schedule, schedule.active and not deployment.paused
    cron, interval = getattr(rule, "cron", None), getattr(rule, "interval", None)
    zone = getattr(rule, "timezone", None) or "UTC"
    when = f"every {interval}" if interval is not None else str(cron or getattr(rule, "rrule", ""))
    # The next date by the cron words; None of an interval, or where none will come.
    date = next(CronSim(when, now.astimezone(ZoneInfo(zone))), None) if active and cron else None
    begun = max((run for run in runs if run.start_time), key=lambda run: run.start_time or now, default=None)
    alone = len(deployment.schedules) == 1
    waiting = sorted(
        run.expected_start_time
        for run in runs
        if run.state and run.state.is_scheduled() and run.run_count == 0 and run.auto_scheduled
        if alone or run.created_by is None or run.created_by.id in (None, schedule.id)
        if run.expected_start_time
    )
    overdue = ""
    if active and not waiting and not (date is not None and date > now + _AHEAD):
        overdue = "the server has planned no run: evenhand doctor"
    elif active and waiting and waiting[0] < now - LATE:
        overdue = f"the run of {_shown(waiting[0], zone)} has not begun"
    to_come = [day for day in (*waiting, *([date] if date else [])) if day >= now]
    spec = deployment.parameters.get("spec")
    return Planned(
        name=schedule.slug or deployment.name,
        deployment=f"{flow}/{deployment.name}",
        when=when,
        zone=zone,
        active=active,
        next=_shown(to_come[0], zone) if to_come else "",
        last=_shown(begun.start_time, zone) if begun and begun.start_time else "",
        state=(begun.state_name or "") if begun else "",
        overdue=overdue,
        spec=spec if isinstance(spec, str) else "",
        lake=str(deployment.parameters.get("lake", "")),
    )


def _shown(date: datetime, zone: str) -> str:
    from zoneinfo import ZoneInfo

    return date.astimezone(ZoneInfo(zone)).isoformat(sep=" ", timespec="minutes")


# --------------------------------------------------------------------------------------------------------------------
# Checks that a Prefect server creates scheduled runs by itself, which a manual run cannot show.
#
# The check creates a scratch deployment with an hourly schedule and no work pool, so that nothing ever starts. It then
# deletes the flow, the deployment and its scheduled runs.


LIMIT_SECONDS = 30
_HOUR = timedelta(hours=1)


def seconds_to_first_run() -> float | None:
    """How long the server took to create a run of a new schedule; None without one within ``LIMIT_SECONDS``.

    The server is the one of ``PREFECT_API_URL``, else one that is started for this in a temporary directory.

    Raises:
        Exception: whatever Prefect or its client raises where a server cannot be started, reached or used.
    """
    with tempfile.TemporaryDirectory(prefix="evenhand-doctor-") as home:
        prepare_environment(Path(home))  # before Prefect is loaded, which reads it then
        from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId

        with _scratch_deployment(Path(home)) as (client, deployment):
            ours = DeploymentFilter(id=DeploymentFilterId(any_=[deployment]))
            began = time.monotonic()
            while (passed := time.monotonic() - began) < LIMIT_SECONDS:
                if any(run.auto_scheduled for run in client.read_flow_runs(deployment_filter=ours)):
                    return passed
                time.sleep(0.2)
            return None


@contextmanager
def _scratch_deployment(home: Path) -> Iterator[tuple["SyncPrefectClient", UUID]]:
    """A client with a shorter timeout than a run has, and a deployment of a separate flow.

    Removing the two removes the runs that were made of them.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import DeploymentScheduleCreate
    from prefect.client.schemas.schedules import IntervalSchedule
    from prefect.settings import (
        PREFECT_API_REQUEST_TIMEOUT,
        PREFECT_API_URL,
        PREFECT_CLIENT_MAX_RETRIES,
        temporary_settings,
    )

    from flows.supervision.prefect_server import scratch_server

    named = os.environ.get("PREFECT_API_URL")
    place = home / "server"
    if not named:
        place.mkdir()
    with nullcontext(named) if named else scratch_server(place) as url:
        hasty = {PREFECT_API_URL: url, PREFECT_API_REQUEST_TIMEOUT: 10, PREFECT_CLIENT_MAX_RETRIES: 1}
        with temporary_settings(hasty), get_client(sync_client=True) as client:
            name = f"evenhand-doctor-{uuid4().hex[:12]}"
            hourly = IntervalSchedule(interval=_HOUR, anchor_date=datetime.now(UTC) + _HOUR)
            flow = client.create_flow_from_name(name)
            try:
                schedules = [DeploymentScheduleCreate(schedule=hourly)]
                deployment = client.create_deployment(flow, name, schedules=schedules)
                try:
                    yield client, deployment
                finally:
                    client.delete_deployment(deployment)
            finally:
                client.delete_flow(flow)
