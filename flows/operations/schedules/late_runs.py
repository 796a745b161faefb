"""Cancels late runs that a later one of the same deployment replaces.

A server plans runs ahead. After an outage several of one deployment are late, and would start one after the other on
the same files. A run with a ``quarter`` among its parameters is not replaced: its dates differ in what they read. Nor
is one that had begun before: it is to go on where it was.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID

from flows.supervision.flow_runs import of_lake
from tasks.lake.store import Lake

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun

QUARTER = "quarter"


@dataclass(frozen=True)
class Superseded:
    """A late run that was cancelled."""

    run: str
    flow_run: str
    message: str


def cancel_superseded(lake: Lake, now: datetime | None = None) -> list[Superseded]:
    """Cancel all late runs on a lake but the newest of each deployment; gives those that were cancelled.

    Args:
        lake: whose runs.
        now: a run that should have begun before it is late; the clock's if left out.
    """
    from prefect.client.orchestration import get_client

    when = now or datetime.now(UTC)
    late: dict[UUID, list[FlowRun]] = defaultdict(list)
    with get_client(sync_client=True) as client:
        for run in of_lake(client, lake, ["SCHEDULED"]):  # the newest first
            if run.deployment_id is not None and _replaceable(run, when):
                late[run.deployment_id].append(run)
        return [_cancelled(client, run, newest) for newest, *older in late.values() for run in older]


def _replaceable(run: "FlowRun", now: datetime) -> bool:
    begun = run.run_count > 0 or run.start_time is not None
    missed = run.expected_start_time is not None and run.expected_start_time < now
    return missed and bool(run.auto_scheduled) and not begun and run.parameters.get(QUARTER) is None


def _cancelled(client: "SyncPrefectClient", run: "FlowRun", newest: "FlowRun") -> Superseded:
    from prefect.states import Cancelled

    message = f"superseded by the run of {newest.expected_start_time:%Y-%m-%d}"
    client.set_flow_run_state(run.id, Cancelled(message=message))
    return Superseded(run.name, str(run.id), message)
