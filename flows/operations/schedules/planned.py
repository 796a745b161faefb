"""Lists the schedules of a server's deployments with their next date and last run, and switches them off and on.

A schedule is overdue if a planned run of it has not begun ten minutes after its date, or if it is on and the server has
planned nothing: a worker is missing, or the server's scheduler fails.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from schemas.errors import SpecError, nearest

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import DeploymentSchedule, FlowRun
    from prefect.client.schemas.responses import DeploymentResponse

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
    when = now or datetime.now(UTC)
    found = [each for deployment in _deployments(client) for each in _of(client, deployment, when)]
    return sorted(found, key=lambda each: (each.deployment, each.name))


def switch(client: "SyncPrefectClient", name: str, *, active: bool) -> list[str]:
    """Switch the schedules of a name off or on: of a slug, or all of a deployment; gives their slugs.

    Runs that the server has planned of a schedule go when it is switched off.

    Raises:
        SpecError: the server has no schedule of that name.
    """
    known: list[tuple[DeploymentResponse, DeploymentSchedule]] = [
        (deployment, schedule) for deployment in _deployments(client) for schedule in deployment.schedules
    ]
    wanted = [(d, s) for d, s in known if name in (s.slug, d.name)]
    if not wanted:
        names = sorted({each for d, s in known for each in (s.slug, d.name) if each})
        hint = nearest(name, names) if names else "register deployments/prefect.yaml first"
        raise SpecError(f"the server has no schedule {name!r}; {hint}")
    for deployment, schedule in wanted:
        client.update_deployment_schedule(deployment.id, schedule.id, active=active)
        if active and deployment.paused:  # somebody switched the whole deployment off in Prefect's pages
            client.resume_deployment(deployment.id)
    return [schedule.slug or deployment.name for deployment, schedule in wanted]


def _deployments(client: "SyncPrefectClient") -> "list[DeploymentResponse]":
    found: list[DeploymentResponse] = []
    for page in range(_PAGES):
        read = client.read_deployments(limit=_PAGE, offset=page * _PAGE)
        found += read
        if len(read) < _PAGE:
            return found
    log.warning("the server has more than %d deployments: the others are not looked at", len(found))
    return found


def _of(client: "SyncPrefectClient", deployment: "DeploymentResponse", now: datetime) -> Iterator[Planned]:
    if not deployment.schedules:
        return
    runs = _runs(client, deployment)
    begun = max((run for run in runs if run.start_time), key=lambda run: run.start_time or now, default=None)
    flow = client.read_flow(deployment.flow_id).name
    for schedule in deployment.schedules:
        active = schedule.active and not deployment.paused
        date = _date(schedule, now) if active else None
        waiting = _waiting(runs, schedule, alone=len(deployment.schedules) == 1)
        cron, zone = _words(schedule)
        given = deployment.parameters
        yield Planned(
            name=schedule.slug or deployment.name,
            deployment=f"{flow}/{deployment.name}",
            when=cron,
            zone=zone,
            active=active,
            next=next((_said(each, zone) for each in (*waiting, *([date] if date else [])) if each >= now), ""),
            last=_said(begun.start_time, zone) if begun and begun.start_time else "",
            state=(begun.state_name or "") if begun else "",
            overdue=_overdue(waiting, date, now, zone) if active else "",
            spec=str(given["spec"]) if isinstance(given.get("spec"), str) else "",
            lake=str(given.get("lake", "")),
        )


def _runs(client: "SyncPrefectClient", deployment: "DeploymentResponse") -> "list[FlowRun]":
    from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId
    from prefect.client.schemas.sorting import FlowRunSort

    ours = DeploymentFilter(id=DeploymentFilterId(any_=[deployment.id]))
    newest = FlowRunSort.EXPECTED_START_TIME_DESC
    return client.read_flow_runs(deployment_filter=ours, sort=newest, limit=_PAGE)


def _waiting(runs: "Sequence[FlowRun]", schedule: "DeploymentSchedule", *, alone: bool) -> list[datetime]:
    """Dates of the runs that a schedule made and that have not begun, the earliest first."""
    ours = [run for run in runs if run.state and run.state.is_scheduled() and run.run_count == 0 and run.auto_scheduled]
    mine = [run for run in ours if alone or run.created_by is None or run.created_by.id in (None, schedule.id)]
    return sorted(run.expected_start_time for run in mine if run.expected_start_time)


def _date(schedule: "DeploymentSchedule", now: datetime) -> datetime | None:
    """The next date of a schedule by its cron words; None of an interval, or where none will come."""
    from zoneinfo import ZoneInfo

    from cronsim import CronSim

    cron, zone = _words(schedule)
    if not getattr(schedule.schedule, "cron", None):
        return None
    return next(CronSim(cron, now.astimezone(ZoneInfo(zone))), None)


def _overdue(waiting: Sequence[datetime], date: datetime | None, now: datetime, zone: str) -> str:
    if not waiting:
        ahead = date is not None and date > now + _AHEAD
        return "" if ahead else "the server has planned no run: evenhand doctor"
    if waiting[0] < now - LATE:
        return f"the run of {_said(waiting[0], zone)} has not begun"
    return ""


def _words(schedule: "DeploymentSchedule") -> tuple[str, str]:
    """Cron or interval of a schedule, and its zone."""
    said = schedule.schedule
    zone = getattr(said, "timezone", None) or "UTC"
    interval = getattr(said, "interval", None)
    if interval is not None:
        return f"every {interval}", zone
    return str(getattr(said, "cron", None) or getattr(said, "rrule", "")), zone


def _said(date: datetime, zone: str) -> str:
    from zoneinfo import ZoneInfo

    return date.astimezone(ZoneInfo(zone)).isoformat(sep=" ", timespec="minutes")
