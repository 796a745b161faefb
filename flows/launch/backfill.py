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
from schemas.audit.spec import AuditSpec
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


def run_backfill(asked: Backfill) -> dict[str, Any]:
    """Audit the years; gives the record of each and the exit code of the most serious one.

    Raises:
        InfrastructureError: the lake cannot be written.
    """
    lake = Lake(asked.lake)
    with at_work(lake, command_id()):  # so that nothing that counts as finished is removed meanwhile
        if asked.spec.by is not None:
            return _partitions(asked, lake)
        if asked.choice != Choice():
            raise SpecError("--by-value and --limit choose among partitions, and the spec has no `by`")
        found = forecast(asked.spec, asked.years, lake, asked.jobs)
        if any(year.is_left(asked.force) for year in found):
            left = [year for year in found if year.is_left(asked.force)]
            check_years(left, _workers(asked), force=asked.force)
            check_years_on_disk(lake, [year.cost.bytes for year in left], force=asked.force)
            seconds = _seconds(asked, left)
            with course_of([YEARS], [seconds], only=YEARS):
                return _orchestrated(asked, lake)
        log.info("all %d years are in the lake already: nothing to compute", len(found))
        return summed_up([stands(asked, year.year, lake) for year in found])


def _partitions(asked: Backfill, lake: Lake) -> dict[str, Any]:
    """The same of a spec with ``by``."""
    found, failed = outlooks(asked.spec, asked.years, lake, asked.choice, force=asked.force)
    left = [listed.rows for year in found for listed, _ in year.to_do]
    if left:
        known = [record for year in found for record in year.known]
        with course_of([PARTITIONS], [seconds_left(known, left, _workers(asked))], only=PARTITIONS):
            return _orchestrated(asked, lake)
    stand = [record for year in found for record in (*year.standing, *year.set_aside)]
    log.info("nothing is left to compute of %d partitions", len(stand))
    return summed_up(sorted([*stand, *failed], key=lambda record: (record.year, record.value)))


def _seconds(asked: Backfill, left: Sequence[Forecast]) -> float | None:
    """What the years take by earlier runs, as many at a time as there are workers; None where a year has none."""
    each = [year.cost.seconds for year in left]
    known = [seconds for seconds in each if seconds is not None]
    return sum(known) / _workers(asked) if len(known) == len(each) else None


def _workers(asked: Backfill) -> int:
    return max(int(asked.runner.get("workers") or 1), 1)


def _orchestrated(asked: Backfill, lake: Lake) -> dict[str, Any]:
    with prefect_api(lake):
        from flows.backfill import backfill  # starts Prefect
        from flows.outcome.run_state import BreachError

        try:
            said: dict[str, Any] = backfill(
                spec=asked.spec.model_dump(mode="json"),
                years=list(asked.years),
                lake=lake.location,
                runner=asked.runner,
                force=asked.force,
                jobs=asked.jobs,
                by_value=list(asked.choice.values) or None,
                limit=asked.choice.limit,
            )
        except (YearsFailedError, BreachError) as error:
            return error.summary
    return said


def stands(asked: Backfill, year: int, lake: Lake) -> Attempt:
    """The record of a year of which nothing is left to compute; its files are held against their digests."""
    try:
        return audit_year(asked.spec, year, lake, asked.force)
    except EvenhandError:
        last = latest(lake, asked.spec.name, year)
        if last is None:
            raise
        return last


# --------------------------------------------------------------------------------------------------------------------
# Spreads a back-fill over the workers of a server: one flow run of a deployment for each year that is left.
#
# Workers see the spec as it was read here, and the lake at the same place. Which years are left is asked of the lake,
# so
# that a command that was stopped, or is given again, begins what is not there yet.

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


def run_on_workers(asked: Backfill, deployment: str) -> dict[str, Any]:
    """Begin a run of a deployment for each year that is left, and wait for all of them.

    Args:
        asked: the back-fill; its runner is the workers.
        deployment: of ``flows.backfill.backfill``, as ``backfill/by-hand``.

    Returns:
        The record of each year, and the exit code of the most serious one.

    Raises:
        SpecError: no server is named, it has no such deployment, or the spec has ``by``.
        InfrastructureError: the server is not ready, or does not answer any more.
    """
    lake = Lake(asked.lake)
    if asked.spec.by is not None or asked.choice != Choice():
        raise SpecError("--fan-out spreads whole years; partitions of a spec with `by` are spread by --runner dask")
    if not (api := os.environ.get("PREFECT_API_URL")):
        raise SpecError("--fan-out begins runs on a server: name it, as in PREFECT_API_URL=http://127.0.0.1:4200/api")
    prepare_environment(lake.storage.local)
    require_server(api)
    left = {y.year for y in forecast(asked.spec, asked.years, lake, asked.jobs) if y.is_left(asked.force)}
    from httpx import HTTPError
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        of = _deployment(client, deployment)
        begun = [_begun(client, of, asked, year, lake) for year in asked.years if year in left]
        log.info("%d years are left: %d flow runs of %s", len(left), len(begun), deployment)
        try:
            ended = dict(_ended(client, begun, lake))
        except HTTPError as error:
            raise InfrastructureError(
                f"the server does not answer any more ({type(error).__name__}); runs at work go on without this "
                "command, which can be given again"
            ) from error
    return summed_up([ended.get(year) or stands(asked, year, lake) for year in asked.years])


def _deployment(client: "SyncPrefectClient", name: str) -> Any:
    from prefect.exceptions import ObjectNotFound

    try:
        return client.read_deployment_by_name(name)
    except (ObjectNotFound, ValueError) as error:
        flows = {flow.id: flow.name for flow in client.read_flows()}
        known = [f"{flows.get(each.flow_id)}/{each.name}" for each in client.read_deployments()]
        hint = nearest(name, known) if known else "register deployments/prefect.yaml first"
        raise SpecError(f"--fan-out {name}: the server has no such deployment; {hint}") from error


def _begun(client: "SyncPrefectClient", deployment: Any, asked: Backfill, year: int, lake: Lake) -> Begun:
    last = latest(lake, asked.spec.name, year)
    own = {"spec": asked.spec.model_dump(mode="json"), "years": [year], "lake": lake.location, "workers": 1}
    more = {"runner": None, "force": asked.force, "jobs": asked.jobs}
    made = client.create_flow_run_from_deployment(deployment.id, parameters={**own, **more})
    return Begun(year, str(made.id), last.attempt if last else 0)


def _ended(client: "SyncPrefectClient", begun: Sequence[Begun], lake: Lake) -> Iterator[tuple[int, Attempt]]:
    """The record of each year as its run ends."""
    from uuid import UUID

    left = {each.flow_run: each for each in begun}
    while left:
        for one in list(left.values()):
            run = client.read_flow_run(UUID(one.flow_run))
            if _is_over(run):
                record = _record(run, left.pop(one.flow_run), lake)
                log.info("%s  %-12s %d of %d", one.year, record.state, len(begun) - len(left), len(begun))
                yield one.year, record
        time.sleep(LOOK_SECONDS if left else 0)


def _is_over(run: "FlowRun") -> bool:
    """Whether nobody works on a run any more, or will; a worker takes up one that crashed."""
    if run.state is None or not run.state.is_final():
        return False
    return not run.state.is_crashed() or (datetime.now(UTC) - run.state.timestamp).total_seconds() > DEAD_SECONDS


def _record(run: "FlowRun", one: Begun, lake: Lake) -> Attempt:
    """What the lake has of the year; where nothing came of it, what the server says of the run."""
    audit = run.parameters["spec"]["name"]
    last = latest(lake, audit, one.year)
    if last is not None and last.attempt > one.before and last.ended:
        return last
    codes = {name.value: code for code, name in NAMES.items()}
    name, message = (run.state.name or "", run.state.message or "") if run.state else ("", "")
    return Attempt(
        audit=audit,
        year=one.year,
        attempt=one.before + 1,
        state=YearState.FAILED,
        message=f"{name}: {message}",
        began=(run.start_time or datetime.now(UTC)).isoformat(timespec="seconds"),
        exit_code=codes.get(name, ExitCode.INFRASTRUCTURE),
        pid=0,
        host="",
    )
