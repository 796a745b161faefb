"""Spreads a back-fill over the workers of a server: one flow run of a deployment for each year that is left.

Workers see the spec as it was read here, and the lake at the same place. Which years are left is asked of the lake, so
that a command that was stopped, or is given again, begins what is not there yet.
"""

import logging
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from flows.launch.backfill import Backfill, stands
from flows.outcome.conclusion import NAMES
from flows.partitions.attempts.reading import latest
from flows.partitions.attempts.record import Attempt, YearState, summed_up
from flows.partitions.forecast import forecast
from flows.partitions.lenders.outlook import Choice
from flows.supervision.embedded_api import prepare_environment
from flows.supervision.processes.server_check import require_server
from schemas.errors import InfrastructureError, SpecError, nearest
from schemas.terms import ExitCode
from tasks.lake.store import Lake

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun

log = logging.getLogger("evenhand")
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
