"""Marks runs of dead processes as crashed, resumes them on request, and deletes their temporary files.

Prefect is not informed when a process is killed: its run would stay RUNNING for ever and count against concurrency
limits. ``presence`` finds dead runs; this module reports them through Prefect's client. It proposes a state, and
resumes the run of a deployment by scheduling it.
"""

import shutil
import time
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from flows.supervision.crash import CRASH_FILES
from flows.supervision.flow_runs import of_lake
from flows.supervision.presence import Presence, alive, dead, forget, held, taken
from tasks.lake.store import Lake

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun

SOON = timedelta(minutes=10)
"""A run that a worker has taken is at work within seconds; after this it never will be."""
_UNTOUCHED_SECONDS = 24 * 3600
"""A draft without a lock of its own is left behind once nothing has been written to it for so long."""


@dataclass(frozen=True)
class Marked:
    """A flow run whose process is dead."""

    run: str
    flow_run: str
    why: str
    resumed: bool


def mark_dead(lake: Lake, *, resume: bool = False, now: datetime | None = None) -> list[Marked]:
    """Set the runs on a lake whose process is gone to CRASHED.

    Args:
        lake: the lake.
        resume: whether runs of a deployment are scheduled anew, so that the next worker takes them up, and runs that a
            worker took and never began are looked for. What they finished is in the lake and is not computed again.
        now: the time by which a run should have begun; the clock's if left out.

    Returns:
        What was marked. A run on another server than the one that is asked is left alone.
    """
    gone = dead(lake)
    if not gone and not resume:
        return []  # no call to the API in the ordinary case
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        found = [marked for presence in gone if (marked := _bury(client, lake, presence, resume=resume))]
        if resume:
            found += _never_begun(client, lake, now or datetime.now(UTC))
    return found


def mark_stopped(run: str | None) -> None:
    """Set a run of this process to CRASHED as the process is being ended; nothing without a flow run."""
    from prefect.client.orchestration import get_client
    from prefect.states import Crashed

    if run is not None:
        with get_client(sync_client=True) as client:
            client.set_flow_run_state(UUID(run), Crashed(message="Stopped by a signal."))


def _bury(client: "SyncPrefectClient", lake: Lake, presence: Presence, *, resume: bool) -> Marked | None:
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
    again = any(other.run == presence.run for other in alive(lake))
    marked = (
        None
        if over or again
        else _crash(client, run, f"{presence} is gone: killed, or its machine stopped", resume=resume)
    )
    forget(lake, presence)
    return marked


def _crash(client: "SyncPrefectClient", run: "FlowRun", why: str, *, resume: bool) -> Marked:
    from prefect.states import Crashed, Scheduled

    client.set_flow_run_state(run.id, Crashed(message=f"Found by evenhand: {why}."))
    again = resume and run.deployment_id is not None and run.parent_task_run_id is None
    if again:
        client.set_flow_run_state(run.id, Scheduled(message="Taken up again by evenhand."), force=True)
    return Marked(run.name, str(run.id), why, again)


def _never_begun(client: "SyncPrefectClient", lake: Lake, now: datetime) -> list[Marked]:
    """Mark runs on this lake that a worker took and did not begin: it died in between."""
    taken_long_ago = (run for run in of_lake(client, lake, ["PENDING"]) if _since(run) < now - SOON)
    return [
        _crash(client, run, f"taken by a worker {_since(run):%Y-%m-%d %H:%M} and not begun since", resume=True)
        for run in taken_long_ago
    ]


def _since(run: "FlowRun") -> datetime:
    """When a run came into its state."""
    return run.state.timestamp if run.state is not None else datetime.now(UTC)


def clear_leftovers(lake: Lake) -> list[Path]:
    """Remove the drafts of dead writers from the lake's ``tmp``, what somebody writes left alone; gives what went."""
    gone = []
    for draft in leftovers(lake):
        with taken(_lock(lake, draft)) if _lock(lake, draft).is_file() else nullcontext(True) as free:
            if free:
                _remove(draft)
                gone.append(draft)
    return gone


def leftovers(lake: Lake) -> list[Path]:
    """The drafts of dead writers.

    A stage's draft is written under the lock of its key, by whose being free it is known to be left behind. Others are
    small and written at once: they are left behind once nothing was written to them for a day. Crash files are no
    drafts: the user was asked to send them.
    """
    drafts = (path for path in sorted((lake.storage.local / "tmp").glob("*")) if not path.match(CRASH_FILES))
    return [draft for draft in drafts if _left_behind(lake, draft)]


def _left_behind(lake: Lake, draft: Path) -> bool:
    lock = _lock(lake, draft)
    return not held(lock) if lock.is_file() else touched(draft) < time.time() - _UNTOUCHED_SECONDS


def _lock(lake: Lake, draft: Path) -> Path:
    return lake.storage.local / "locks" / f"{draft.name}.lock"


def _remove(draft: Path) -> None:
    if draft.is_dir():
        shutil.rmtree(draft, ignore_errors=True)
    else:
        draft.unlink(missing_ok=True)


def touched(path: Path) -> float:
    """When something was last written to a file, or to anything below a directory, in seconds since 1970."""
    times = []
    for each in (path, *(path.rglob("*") if path.is_dir() else ())):
        try:
            times.append(each.stat().st_mtime)
        except FileNotFoundError:
            continue  # given its name this moment
    return max(times, default=time.time())
