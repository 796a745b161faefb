"""Starts a back-fill, on this machine or spread over the workers of a server."""

import logging
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from flows.concurrency.schedule import check_years, check_years_on_disk
from flows.outcome.conclusion import NAMES
from flows.partitions.attempts import Attempt, YearsFailedError, YearState, latest, summed_up
from flows.partitions.forecast import Forecast, forecast
from flows.partitions.partition_list import seconds_left
from flows.partitions.year_audit import audit_year
from flows.partitions.year_plan import Choice, outlooks
from flows.supervision.prefect_server import prefect_api, prepare_environment, require_server
from flows.supervision.presence import at_work, command_id
from schemas.audit.spec import AuditSpec, check_decided
from schemas.errors import EvenhandError, InfrastructureError, SpecError, nearest
from schemas.terms import ExitCode
from tasks.lake.store import Lake
from tasks.pipeline.progress import PARTITIONS, YEARS, course_of

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun


# --------------------------------------------------------------------------------------------------------------------
# Starts a back-fill: checks which years are left, and starts Prefect only if there is something to compute.


log = logging.getLogger("evenhand")


@dataclass(frozen=True)
class Backfill:
    """Settings of a back-fill."""

    spec: AuditSpec
    years: Sequence[int]
    lake: str
    runner: dict[str, Any]
    """Where years run, as ``flows.partitions.runners.RunnerSettings`` dumps it."""
    force: bool = False
    jobs: int = 1
    """Stages of a year at a time."""
    choice: Choice = field(default_factory=Choice)
    """Of a spec with ``by``: which partitions."""


def run_backfill(request: Backfill) -> dict[str, Any]:
    """Audit the years; gives the record of each and the exit code of the most serious one.

    Raises:
        InfrastructureError: the lake cannot be written.
    """
    check_decided(request.spec)
    lake = Lake(request.lake)
    with at_work(lake, command_id()):  # so that nothing that counts as finished is removed meanwhile
        if request.spec.by is not None:
            return _partitions(request, lake)
        if request.choice != Choice():
            raise SpecError("--by-value and --limit choose among partitions, and the spec has no `by`")
        forecasts = forecast(request.spec, request.years, lake, request.jobs)
        if any(year.is_left(request.force) for year in forecasts):
            remaining_years = [year for year in forecasts if year.is_left(request.force)]
            check_years(remaining_years, _workers(request), force=request.force)
            check_years_on_disk(lake, [year.cost.bytes for year in remaining_years], force=request.force)
            seconds = _seconds(request, remaining_years)
            with course_of([YEARS], [seconds], only=YEARS):
                return _orchestrated(request, lake)
        log.info("all %d years are in the lake already: nothing to compute", len(forecasts))
        return summed_up([stands(request, year.year, lake) for year in forecasts])


def _partitions(request: Backfill, lake: Lake) -> dict[str, Any]:
    """The same of a spec with ``by``."""
    outlooks_of_years, failed = outlooks(request.spec, request.years, lake, request.choice, force=request.force)
    remaining_rows = [listed.rows for year in outlooks_of_years for listed, _ in year.to_do]
    if remaining_rows:
        records = [record for year in outlooks_of_years for record in year.last_attempts]
        with course_of([PARTITIONS], [seconds_left(records, remaining_rows, _workers(request))], only=PARTITIONS):
            return _orchestrated(request, lake)
    stand = [record for year in outlooks_of_years for record in (*year.settled, *year.set_aside)]
    log.info("nothing is left to compute of %d partitions", len(stand))
    return summed_up(sorted([*stand, *failed], key=lambda record: (record.year, record.value)))


def _seconds(request: Backfill, remaining_years: Sequence[Forecast]) -> float | None:
    """What the years take by earlier runs, as many at a time as there are workers; None where a year has none."""
    year_seconds = [year.cost.seconds for year in remaining_years]
    known_seconds = [seconds for seconds in year_seconds if seconds is not None]
    return sum(known_seconds) / _workers(request) if len(known_seconds) == len(year_seconds) else None


def _workers(request: Backfill) -> int:
    return max(int(request.runner.get("workers") or 1), 1)


def _orchestrated(request: Backfill, lake: Lake) -> dict[str, Any]:
    lake.require_space(0, "a back-fill")  # Prefect's database is on that disk, too
    with prefect_api(lake):
        from flows.backfill import backfill  # starts Prefect
        from flows.outcome.run_state import BreachError

        try:
            summary: dict[str, Any] = backfill(
                spec=request.spec.model_dump(mode="json"),
                years=list(request.years),
                lake=lake.location,
                runner=request.runner,
                force=request.force,
                jobs=request.jobs,
                by_value=list(request.choice.values) or None,
                limit=request.choice.limit,
            )
        except (YearsFailedError, BreachError) as error:
            return error.summary
    return summary


def stands(request: Backfill, year: int, lake: Lake) -> Attempt:
    """The record of a year with nothing left to compute; its files are checked against their digests."""
    try:
        return audit_year(request.spec, year, lake, request.force)
    except EvenhandError:
        last = latest(lake, request.spec.name, year)
        if last is None:
            raise
        return last


# --------------------------------------------------------------------------------------------------------------------
# Spreads a back-fill over the workers of a server: one flow run of a deployment for each year that is left.
#
# Workers see the spec as it was read here, and the lake at the same place. Which years are left is asked of the lake,
# so that a command that was stopped, or is given again, begins what is not there yet.

LOOK_SECONDS: Final = 2.0
DEAD_SECONDS: Final = 240.0
"""In which a worker takes up a run that crashed; after that nobody does."""


@dataclass(frozen=True)
class Begun:
    """A flow run for a year."""

    year: int
    flow_run: str
    before: int
    """Number of the last attempt at the year before it."""


def run_on_workers(request: Backfill, deployment: str) -> dict[str, Any]:
    """Begin a run of a deployment for each year that is left, and wait for all of them.

    Args:
        request: the back-fill; its runner is the workers.
        deployment: of ``flows.backfill.backfill``, as ``backfill/by-hand``.

    Returns:
        The record of each year, and the exit code of the most serious one.

    Raises:
        SpecError: no server is named, it has no such deployment, or the spec has ``by``.
        InfrastructureError: the server is not ready, or does not answer any more.
    """
    lake = Lake(request.lake)
    if request.spec.by is not None or request.choice != Choice():
        raise SpecError("--fan-out spreads whole years; partitions of a spec with `by` are spread by --runner dask")
    if not (api := os.environ.get("PREFECT_API_URL")):
        raise SpecError("--fan-out begins runs on a server: name it, as in PREFECT_API_URL=http://127.0.0.1:4200/api")
    prepare_environment(lake.storage.local)
    require_server(api)
    remaining_years = {
        y.year for y in forecast(request.spec, request.years, lake, request.jobs) if y.is_left(request.force)
    }
    from httpx import HTTPError
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        of = _deployment(client, deployment)
        begun = [_begun(client, of, request, year, lake) for year in request.years if year in remaining_years]
        log.info("%d years are left: %d flow runs of %s", len(remaining_years), len(begun), deployment)
        try:
            ended = dict(_ended(client, begun, lake))
        except HTTPError as error:
            raise InfrastructureError(
                f"the server does not answer any more ({type(error).__name__}); runs at work go on without this "
                "command, which can be given again"
            ) from error
    return summed_up([ended.get(year) or stands(request, year, lake) for year in request.years])


def _deployment(client: "SyncPrefectClient", name: str) -> Any:
    from prefect.exceptions import ObjectNotFound

    try:
        return client.read_deployment_by_name(name)
    except (ObjectNotFound, ValueError) as error:
        flows = {flow.id: flow.name for flow in client.read_flows()}
        deployment_names = [
            f"{flows.get(known_deployment.flow_id)}/{known_deployment.name}"
            for known_deployment in client.read_deployments()
        ]
        hint = nearest(name, deployment_names) if deployment_names else "register deployments/prefect.yaml first"
        raise SpecError(f"--fan-out {name}: the server has no such deployment; {hint}") from error


def _begun(client: "SyncPrefectClient", deployment: Any, request: Backfill, year: int, lake: Lake) -> Begun:
    last = latest(lake, request.spec.name, year)
    parameters = {"spec": request.spec.model_dump(mode="json"), "years": [year], "lake": lake.location, "workers": 1}
    run_settings = {"runner": None, "force": request.force, "jobs": request.jobs}
    flow_run = client.create_flow_run_from_deployment(deployment.id, parameters={**parameters, **run_settings})
    return Begun(year, str(flow_run.id), last.attempt if last else 0)


def _ended(client: "SyncPrefectClient", begun: Sequence[Begun], lake: Lake) -> Iterator[tuple[int, Attempt]]:
    """The record of each year as its run ends."""
    from uuid import UUID

    remaining = {begun_run.flow_run: begun_run for begun_run in begun}
    while remaining:
        for begun_run in list(remaining.values()):
            run = client.read_flow_run(UUID(begun_run.flow_run))
            if _is_over(run):
                record = _record(run, remaining.pop(begun_run.flow_run), lake)
                log.info("%s  %-12s %d of %d", begun_run.year, record.state, len(begun) - len(remaining), len(begun))
                yield begun_run.year, record
        time.sleep(LOOK_SECONDS if remaining else 0)


def _is_over(run: "FlowRun") -> bool:
    """Whether a run is over and no worker will continue it; a worker resumes a crashed one."""
    if run.state is None or not run.state.is_final():
        return False
    return not run.state.is_crashed() or (datetime.now(UTC) - run.state.timestamp).total_seconds() > DEAD_SECONDS


def _record(run: "FlowRun", begun_run: Begun, lake: Lake) -> Attempt:
    """The lake's record of the year; without one, the server's state of the run."""
    audit = run.parameters["spec"]["name"]
    last = latest(lake, audit, begun_run.year)
    if last is not None and last.attempt > begun_run.before and last.ended:
        return last
    codes = {name.value: code for code, name in NAMES.items()}
    name, message = (run.state.name or "", run.state.message or "") if run.state else ("", "")
    return Attempt(
        audit=audit,
        year=begun_run.year,
        attempt=begun_run.before + 1,
        state=YearState.FAILED,
        message=f"{name}: {message}",
        began=(run.start_time or datetime.now(UTC)).isoformat(timespec="seconds"),
        exit_code=codes.get(name, ExitCode.INFRASTRUCTURE),
        pid=0,
        host="",
    )
