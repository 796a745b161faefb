"""Schedules of a real server: listed, paused and resumed by name, and late runs that a later one replaces."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from conftest import evenhand

from flows.operations.schedules import LATE, Planned, cancel_superseded, planned
from schemas.terms import ExitCode
from tasks.lake.store import Lake

pytestmark = pytest.mark.slow
GROUP = "scheduler"
"""Of tests for one worker: others plan runs on the same server."""
YEARLY = {"cron": "0 6 8 1,4,7,10 *", "timezone": "America/New_York"}


@pytest.fixture
def client(server: str) -> Iterator[Any]:
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with temporary_settings({PREFECT_API_URL: server}), get_client(sync_client=True) as found:
        yield found


@contextmanager
def deployed(client: Any, schedule: Any, **parameters: Any) -> Iterator[tuple[str, UUID]]:
    """A deployment with a schedule, both of one name, and without a work pool, so that nothing takes its runs."""
    from prefect.client.schemas.actions import DeploymentScheduleCreate

    name = f"scratch-{uuid4().hex[:8]}"
    flow = client.create_flow_from_name(name)
    try:
        made = DeploymentScheduleCreate(schedule=schedule, slug=f"{name}-slug")
        yield name, client.create_deployment(flow, name, schedules=[made], parameters=parameters)
    finally:
        client.delete_flow(flow)


def until(found: Callable[[], Any], seconds: float = 60) -> Any:
    limit = time.monotonic() + seconds
    while not (result := found()):
        assert time.monotonic() < limit, "not in time"
        time.sleep(0.2)
    return result


def runs(client: Any, deployment: UUID) -> list[Any]:
    from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId

    return client.read_flow_runs(deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[deployment])))


def one(client: Any, slug: str, now: datetime | None = None) -> Planned:
    return next(each for each in planned(client, now) if each.name == slug)


def test_a_schedule_is_listed_paused_and_resumed_by_name(client: Any, server: str) -> None:
    from prefect.client.schemas.schedules import CronSchedule

    with deployed(client, CronSchedule(**YEARLY), spec="loans.yaml") as (name, deployment):
        until(lambda: runs(client, deployment))
        slug = f"{name}-slug"
        found = one(client, slug)
        assert (found.deployment, found.when, found.zone) == (f"{name}/{name}", YEARLY["cron"], YEARLY["timezone"])
        assert found.next[10:16] == " 06:00"
        assert (found.active, found.overdue, found.spec) == (True, "", "loans.yaml")
        passed = datetime.fromisoformat(found.next) + LATE
        assert one(client, slug, passed).overdue == "", "a worker has ten minutes"
        assert one(client, slug, passed + timedelta(seconds=1)).overdue == f"the run of {found.next} has not begun"

        off = evenhand("schedules", "pause", slug, server=server)
        assert (off.returncode, off.stdout) == (0, f"{slug}: off\n"), off.stderr
        assert runs(client, deployment) == [], "what was planned of it goes"
        paused = one(client, slug, passed + timedelta(days=1))
        assert (paused.active, paused.next, paused.overdue) == (False, "", "")

        on = evenhand("schedules", "resume", name, server=server)  # by the deployment's name
        assert (on.returncode, on.stdout) == (0, f"{slug}: on\n"), on.stderr
        until(lambda: runs(client, deployment))
        listed = evenhand("schedules", "--json", server=server)
        assert listed.returncode in (0, ExitCode.INFRASTRUCTURE), listed.stderr  # another test's may be overdue
        assert next(each for each in json.loads(listed.stdout) if each["name"] == slug)["next"] == found.next


def test_a_name_that_is_none_is_answered_with_the_nearest_and_no_server_with_the_next_step(
    client: Any, server: str
) -> None:
    from prefect.client.schemas.schedules import CronSchedule

    with deployed(client, CronSchedule(**YEARLY)) as (name, _):
        done = evenhand("schedules", "pause", f"{name}-slog", server=server)
    assert done.returncode == ExitCode.USAGE
    assert f"'{name}-slug'" in done.stderr
    done = evenhand("schedules")
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
    assert "PREFECT_API_URL" in done.stderr


def test_a_season_that_is_more_than_a_hundred_days_away_is_not_overdue(client: Any) -> None:
    from prefect.client.schemas.schedules import CronSchedule

    now = datetime.now(UTC)
    for days, overdue in ((120, ""), (50, "the server has planned no run: evenhand doctor")):
        day = now + timedelta(days=days)
        season = CronSchedule(cron=f"0 7 {day.day} {day.month} *", timezone="America/New_York")
        with deployed(client, season) as (name, deployment):
            for run in runs(client, deployment):
                client.delete_flow_run(run.id)
            found = next(each for each in planned(client, now) if each.name == f"{name}-slug")
            assert (found.next[:10], found.overdue) == (f"{day.year}-{day.month:02}-{day.day:02}", overdue)


def test_of_several_late_runs_the_newest_stays(client: Any, lake: Lake) -> None:
    from prefect.client.schemas.schedules import IntervalSchedule

    often = IntervalSchedule(interval=timedelta(seconds=2), anchor_date=datetime.now(UTC))
    where = lake.location
    with (
        deployed(client, often, lake=where) as (_, ours),
        deployed(client, often, lake=where, quarter="2026-Q3") as (_, quarterly),
        deployed(client, often, lake=f"{where}-other") as (_, of_another_lake),
    ):
        everywhere = (ours, quarterly, of_another_lake)
        until(lambda: all(len(late(client, each, datetime.now(UTC))) >= 3 for each in everywhere))
        now = datetime.now(UTC)
        before = {each: late(client, each, now) for each in everywhere}
        gone = cancel_superseded(lake, now)
        newest = before[ours][-1]
        assert {each.flow_run for each in gone} == {str(run.id) for run in before[ours][:-1]}
        told = f"superseded by the run of {newest.expected_start_time:%Y-%m-%d}"
        assert {each.message for each in gone} == {told}
        by_id = {run.id: run for run in runs(client, ours)}
        assert {by_id[run.id].state.type.value for run in before[ours][:-1]} == {"CANCELLED"}
        assert by_id[before[ours][0].id].state.message == told
        assert by_id[newest.id].state.is_scheduled()
        for each in (quarterly, of_another_lake):
            assert [run.id for run in late(client, each, now)] == [run.id for run in before[each]]
        assert cancel_superseded(lake, now) == [], "once"


def late(client: Any, deployment: UUID, now: datetime) -> list[Any]:
    """The runs of a deployment that should have begun, the oldest first."""
    waiting = [run for run in runs(client, deployment) if run.state.is_scheduled() and run.expected_start_time < now]
    return sorted(waiting, key=lambda run: run.expected_start_time)


@pytest.fixture
def lake(tmp_path: Any) -> Lake:
    return Lake(tmp_path / "lake")
