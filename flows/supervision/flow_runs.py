"""Finds and deletes the Prefect flow runs of one lake.

Prefect keeps every run for ever. The results of an audit are in the lake; a flow run is only its log.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tasks.lake.storage import storage_at
from tasks.lake.store import Lake

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.filters import FlowRunFilter
    from prefect.client.schemas.objects import FlowRun

_PAGE = 200
"""As many as the server gives at once."""


def of_lake(client: "SyncPrefectClient", lake: Lake, states: list[str]) -> Iterator["FlowRun"]:
    """The flow runs on a lake that are in one of these states, such as PENDING, the newest first."""
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterState, FlowRunFilterStateType
    from prefect.client.schemas.objects import StateType

    wanted = FlowRunFilterStateType(any_=[StateType(state) for state in states])
    for run in _pages(client, FlowRunFilter(state=FlowRunFilterState(type=wanted))):
        if _location(str(run.parameters.get("lake", ""))) == lake.location:
            yield run


def outdated(client: "SyncPrefectClient", lake: Lake, newest: int) -> list["FlowRun"]:
    """The flow runs on a lake that are over, without the newest so many of every flow, audit and year."""
    alike: dict[tuple[str, ...], list[FlowRun]] = defaultdict(list)
    for run in of_lake(client, lake, ["COMPLETED", "FAILED", "CRASHED", "CANCELLED"]):
        alike[_subject(run)].append(run)
    return [run for group in alike.values() for run in group[newest:]]


def remove_outdated(client: "SyncPrefectClient", lake: Lake, newest: int) -> int:
    """Remove them, with their task runs; gives their number."""
    gone = outdated(client, lake, newest)
    for run in gone:
        client.delete_flow_run(run.id)
    return len(gone)


def _location(given: str) -> str:
    """The place that a parameter ``lake`` names, as the lake itself says it; nothing is opened for it."""
    scheme, separator, _ = given.partition("://")
    return given if separator and scheme != "file" else storage_at(given).location


def _subject(run: "FlowRun") -> tuple[str, ...]:
    """What a flow run was about: its flow, and the audit and year or years among its parameters."""
    spec: Any = run.parameters.get("spec")
    name, year = (spec.get("name"), spec.get("year")) if isinstance(spec, dict) else (spec, None)
    return str(run.flow_id), str(name), str(run.parameters.get("years") or run.parameters.get("year") or year)


def _pages(client: "SyncPrefectClient", wanted: "FlowRunFilter") -> Iterator["FlowRun"]:
    from prefect.client.schemas.sorting import FlowRunSort

    seen = 0
    while True:
        page = client.read_flow_runs(
            flow_run_filter=wanted, sort=FlowRunSort.EXPECTED_START_TIME_DESC, limit=_PAGE, offset=seen
        )
        yield from page
        seen += len(page)
        if len(page) < _PAGE:
            return
