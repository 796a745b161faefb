"""Marks runs of dead processes as crashed, resumes them on request, and corrects states that the server did not get.

Prefect is not informed when a process is killed: its run would stay RUNNING for ever and count against concurrency
limits. ``presence`` finds dead runs; this module reports them through Prefect's client. It proposes a state, and
resumes the run of a deployment by scheduling it, at most twice after a death. Files that dead runs left: ``leftovers``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from flows.supervision.prefect_server import crash_sub_flows, of_lake
from flows.supervision.presence import Presence, alive, dead, forget
from tasks.lake.store import Lake

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun

SOON = timedelta(minutes=10)
"""A run that a worker has taken is at work within seconds; after this it never will be."""
MOST_RESUMED = 2
"""Times that a run is resumed after its process died."""
MENDED = "Found by evenhand: the run ended while the server was away"
DIED = "Found by evenhand: the run ended, and its process died before it could say so"
GIVEN_UP = "Infrastructure"
"""Name of the state of a run that died more often than it is resumed."""
_AGAIN = "Taken up again by evenhand"


@dataclass(frozen=True)
class Marked:
    """A flow run of a dead process."""

    run: str
    flow_run: str
    why: str
    resumed: bool
    given_up: bool = False
    """Whether it died too often; its state is then FAILED."""
    stopped: bool = False
    """Whether it left after a stop request, which is no fault."""
    mended: tuple[str, str, str] | None = None
    """Type, name and message of its final state, if the server did not get it."""
    tags: tuple[str, ...] = ()
    """Of the flow run on the server."""
    flow: str = ""
    """Name of its flow: audit, backfill or watch."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Of the flow run."""
    began: str = ""
    """When its process did, UTC; empty of a run that never began."""
    stage: str = ""
    """At which it died."""


@dataclass(frozen=True)
class Burial:
    """How dead runs are seen to."""

    resume: bool = False
    """Whether runs of a deployment are scheduled again, so that the next worker takes them up, and runs that a worker
    took and never began are looked for. What they finished is in the lake and is not computed again."""
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    """The time by which a run should have begun."""
    ripe: Callable[[Presence, bool], bool] = lambda _, __: True
    """Whether a death may be acted on, given whether the server knows of it. Prefect's own worker reports the end of a
    process, too; a run that was scheduled before that would be reported dead twice."""
    remembered: Callable[[Presence], str] = lambda _: ""
    """What somebody saw of a run before it died, in words: its stage, memory."""


def mark_dead(lake: Lake, burial: Burial | None = None) -> list[Marked]:
    """Set the runs of dead processes on a lake to CRASHED; returns the marked runs.

    A run on another server is left alone.
    """
    burial = burial or Burial()
    gone = dead(lake)
    if not gone and not burial.resume:
        return []  # no call to the API in the ordinary case
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        marked_runs = [marked for presence in gone if (marked := _bury(client, lake, presence, burial))]
        if burial.resume:
            for run in of_lake(client, lake, ["PENDING"]):
                since = run.state.timestamp if run.state is not None else datetime.now(UTC)
                if since < burial.now - SOON:
                    why = f"taken by a worker {since:%Y-%m-%d %H:%M} and not begun since"
                    marked_runs.append(_crash(client, run, why, burial))
    return marked_runs


def mark_stopped(run: str | None) -> None:
    """Set a run of this process to CRASHED as the process is being ended; nothing without a flow run."""
    from prefect.client.orchestration import get_client
    from prefect.states import Crashed

    if run is not None:
        with get_client(sync_client=True) as client:
            client.set_flow_run_state(UUID(run), Crashed(message="Stopped by a signal."))
            crash_sub_flows(client, UUID(run), "it was stopped by a signal")


def _bury(client: "SyncPrefectClient", lake: Lake, presence: Presence, burial: Burial) -> Marked | None:
    """Mark the run of a dead process; None where there is nothing to mark."""
    from prefect.exceptions import ObjectNotFound

    try:
        run = client.read_flow_run(UUID(presence.run))
    except ValueError:
        forget(lake, presence)  # a command without a flow run
        return None
    except ObjectNotFound:
        return None
    over = run.state is not None and run.state.is_final()
    of_worker = _of_deployment(run) and not burial.resume
    if not burial.ripe(presence, over) or (of_worker and presence.outcome is not None and not over):
        return None  # it may be telling the server this moment
    marked = None
    if not any(other.run == presence.run for other in alive(lake)):
        marked = _marked(client, run, presence, burial)
    if not of_worker or (over and not _crashed(run)):  # else a worker is to take it up again
        forget(lake, presence)
    return marked


def _marked(client: "SyncPrefectClient", run: "FlowRun", presence: Presence, burial: Burial) -> Marked | None:
    from prefect.client.schemas.objects import State, StateType

    over = run.state is not None and run.state.is_final()
    if presence.outcome is not None:
        if over and not _crashed(run):
            return None
        # its process could not report its final state to the server
        kind, name, message = presence.outcome
        why = DIED if _crashed(run) else MENDED
        state = State(type=StateType(kind), name=name, message=f"{why}; {message}".rstrip("; "))
        client.set_flow_run_state(run.id, state, force=True)
        tags = tuple(run.tags)
        return Marked(run.name, str(run.id), why, resumed=False, mended=presence.outcome, tags=tags)
    if over and not (_crashed(run) and burial.resume and _of_deployment(run)):
        return None
    if presence.stopped:
        return _crash(client, run, "it was asked to stop, and left after its stage", burial, stopped=True)
    remembered = burial.remembered(presence)
    why = f"{presence} is gone: killed, or its machine stopped" + (f"; {remembered}" if remembered else "")
    return replace(_crash(client, run, why, burial), began=presence.started, stage=presence.stage)


def _crash(client: "SyncPrefectClient", run: "FlowRun", why: str, burial: Burial, *, stopped: bool = False) -> Marked:
    """Set a run to CRASHED; a run of a deployment is scheduled again, or fails if it has died too often."""
    from prefect.client.schemas.objects import State
    from prefect.states import Crashed, Failed, Scheduled

    client.set_flow_run_state(run.id, Crashed(message=f"Found by evenhand: {why}."), force=True)
    crash_sub_flows(client, run.id, why)
    crashed = Marked(
        run.name,
        str(run.id),
        why,
        resumed=False,
        stopped=stopped,
        flow=client.read_flow(run.flow_id).name,
        parameters=run.parameters,
    )
    if not (burial.resume and _of_deployment(run)):
        return crashed
    states = client.read_flow_run_states(run.id)
    before = sum((state.message or "").startswith(f"{_AGAIN} (") for state in states)
    state: State[Any]
    if stopped:
        state = Scheduled(message=f"{_AGAIN}: {why}.")
    elif before < MOST_RESUMED:
        state = Scheduled(message=f"{_AGAIN} ({before + 1} of {MOST_RESUMED}).")
    else:
        why = f"{why}; taken up again {MOST_RESUMED} times before: give it more memory, `workers: 1`, or fewer rows"
        state = Failed(name=GIVEN_UP, message=why)
    client.set_flow_run_state(run.id, state, force=True)
    resumed = state.is_scheduled()
    return replace(crashed, why=why, resumed=resumed, given_up=not resumed)


def _crashed(run: "FlowRun") -> bool:
    """Whether it is known to have crashed, as Prefect's worker reports it that sees the process end."""
    return run.state is not None and run.state.is_crashed()


def _of_deployment(run: "FlowRun") -> bool:
    """Whether a worker would take the run up: it is a deployment's, and no flow's within another."""
    return run.deployment_id is not None and run.parent_task_run_id is None
