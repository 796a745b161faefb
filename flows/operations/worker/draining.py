"""Drains a work pool before an upgrade: no worker takes a new run of it, and the runs at work come to their end.

The pool is paused on the server, and not the worker: what starts a worker again that ended, as Docker and systemd do,
starts none that takes runs. The pool stays paused until somebody resumes it.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID

from flows.supervision.presence import alive, dead
from schemas.errors import SpecError, nearest
from tasks.lake.store import Lake

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

_LOOK_SECONDS = 2.0
_QUIET_LOOKS = 3
"""In a row: a worker may just be asking for leave to begin a run that it was given before the pool was paused."""


def drain(lake: Lake, pool: str, told: Callable[[str], object]) -> int:
    """Pause a work pool, and wait until none of its runs is at work; gives how many runs were waited for.

    Args:
        lake: whose records tell of a run that is at work on the server whether its process is alive.
        pool: name of the work pool.
        told: is told who is waited for, each time that it is somebody else.

    Raises:
        SpecError: the server has no such pool.
        httpx.HTTPError: the server does not answer.
    """
    from prefect.client.orchestration import get_client

    seen: set[str] = set()
    before: tuple[str, ...] | None = None
    quiet = 0
    with get_client(sync_client=True) as client:
        _pause(client, pool)
        while quiet < _QUIET_LOOKS:
            names = tuple(sorted(_at_work(client, lake, pool)))
            seen.update(names)
            if names and names != before:
                told(f"waiting for {len(names)} at work: {', '.join(names)}")
            quiet, before = (0 if names else quiet + 1), names
            time.sleep(_LOOK_SECONDS)
    return len(seen)


def _pause(client: "SyncPrefectClient", pool: str) -> None:
    from prefect.client.schemas.actions import WorkPoolUpdate

    known = [each.name for each in client.read_work_pools()]
    if pool not in known:
        hint = nearest(pool, known) if known else "make one first"
        raise SpecError(f"the server has no work pool {pool!r}; {hint}")
    client.update_work_pool(pool, WorkPoolUpdate(is_paused=True))


def _at_work(client: "SyncPrefectClient", lake: Lake, pool: str) -> Iterator[str]:
    """Names of runs at work: by the server, but for those whose process is gone, and by the lake of those it forgot.

    A run whose process is gone is no longer waited for: a worker takes it up again once the pool is resumed.
    """
    from prefect.client.schemas.filters import (
        FlowRunFilter,
        FlowRunFilterState,
        FlowRunFilterStateType,
        WorkPoolFilter,
        WorkPoolFilterName,
    )
    from prefect.client.schemas.objects import StateType

    busy = FlowRunFilterStateType(any_=[StateType.PENDING, StateType.RUNNING, StateType.CANCELLING])
    runs = client.read_flow_runs(
        flow_run_filter=FlowRunFilter(state=FlowRunFilterState(type=busy)),
        work_pool_filter=WorkPoolFilter(name=WorkPoolFilterName(any_=[pool])),
    )
    working = {presence.run for presence in alive(lake)}
    gone = {presence.run for presence in dead(lake)} - working
    yield from (run.name for run in runs if str(run.id) not in gone)
    yield from (run for run in working - {str(run.id) for run in runs} if _is_flow_run(run))


def _is_flow_run(run: str) -> bool:
    """Whether a record is of a flow run, and not of a command."""
    with suppress(ValueError):
        return bool(UUID(run))
    return False
