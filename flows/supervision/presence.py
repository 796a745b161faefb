"""Live and dead runs of a lake by file locks, and the files that dead ones left."""

import errno
import json
import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from filelock import FileLock, Timeout

from flows.supervision.crash_files import CRASH_FILES
from schemas.errors import InfrastructureError
from tasks.lake.local_directory import strange
from tasks.lake.store import Lake
from tasks.pipeline.progress import stop_requested

# --------------------------------------------------------------------------------------------------------------------
# Detects live and dead runs of a lake through advisory file locks.
#
# A run holds a lock in ``locks/alive`` while it works, with a record of the run next to it. A record whose lock is free
# belongs to a process that was killed, ran out of memory or lost its machine. A process id alone does not show that,
# since ids are reused. For a lake on an object store the locks are local: each machine sees its own runs only.
#
# Scope: locks and records, without Prefect. What happens to dead runs: ``zombies``.


_GATE = "gate.lock"
_COMMAND = "command-"


@dataclass(frozen=True)
class Presence:
    """The process of a run."""

    run: str
    """Id of the flow run; ``command_id()`` where there is none."""
    host: str
    pid: int
    started: str
    name: str
    """Of the record and its lock: another one each time, as a run may be taken up again while the old record lies."""
    stage: str = ""
    """What it computes in its own process."""
    outcome: tuple[str, str, str] | None = None
    """Type, name and message of the state in which it ended, which the server may not have got."""
    stopped: bool = False
    """Whether it left after a stop request."""

    def __str__(self) -> str:
        """In the words of a message."""
        where = f" in stage {self.stage}" * bool(self.stage)
        return f"process {self.pid} on {self.host}, at work since {self.started}{where}"


def command_id() -> str:
    """An id for a command without a flow run."""
    return f"{_COMMAND}{os.getpid()}"


@contextmanager
def at_work(lake: Lake, run: str) -> Iterator[Presence]:
    """Hold a lock for a run while it works; waits while files of the lake are being removed.

    The record is left where the run did not end in order, or left its outcome in it: ``zombies`` looks at the server.

    Raises:
        InfrastructureError: the disk is full or fails.
    """
    home = _home(lake)
    home.mkdir(parents=True, exist_ok=True)
    presence = Presence(run, socket.gethostname(), os.getpid(), _now(), uuid4().hex)
    with FileLock(home / f"{presence.name}.lock"):
        with gate(lake):
            try:
                _write(lake, presence)
            except OSError as error:
                full = error.errno in (errno.ENOSPC, errno.EDQUOT)
                why = "is full; free some space and run again" if full else f"could not be written: {error}"
                raise InfrastructureError(f"the disk of the lake {lake.location} {why}") from error
        in_order = True
        try:
            yield presence
        except BaseException as error:
            in_order = isinstance(error, Exception)  # else it is ended by force, and Prefect may not come to say so
            raise
        finally:
            unsaid = not in_order or stop_requested() or _noted(lake, presence).outcome is not None
            if not unsaid or run.startswith(_COMMAND):
                forget(lake, presence)


def in_stage(lake: Lake, stage: str) -> None:
    """Note in the records of this process which stage it computes, so that it is known if the process is killed."""
    _note(lake, stage=stage)


def note_stopped(lake: Lake) -> None:
    """Note in the records of this process that it leaves after a stop request."""
    _note(lake, stopped=True)


def leave_stopped(lake: Lake, run: str, presence: Presence | None = None) -> None:
    """Leave a record of a stopped run for the next worker; also if its process left none."""
    _home(lake).mkdir(parents=True, exist_ok=True)
    presence = presence or Presence(run, socket.gethostname(), os.getpid(), _now(), uuid4().hex)
    _write(lake, replace(presence, stopped=True))


def note_outcome(lake: Lake, presence: Presence, outcome: tuple[str, str, str]) -> None:
    """Note how a run ended before the server is informed, since the server may not answer."""
    _write(lake, replace(_noted(lake, presence), outcome=outcome))


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _note(lake: Lake, **news: Any) -> None:
    for presence in recorded(lake):
        if (presence.pid, presence.host) == (os.getpid(), socket.gethostname()):
            _write(lake, replace(presence, **news))


def _noted(lake: Lake, presence: Presence) -> Presence:
    """A record as it is by now."""
    return next((record for record in recorded(lake) if record.name == presence.name), presence)


def _write(lake: Lake, presence: Presence) -> None:
    draft = _home(lake) / f"{presence.name}.draft"
    draft.write_text(json.dumps(asdict(presence)))
    draft.replace(_home(lake) / f"{presence.name}.json")


def killed(lake: Lake) -> Iterator[str]:
    """Commands that were killed, in words; each is reported once. ``zombies`` reports flow runs."""
    for presence in dead(lake):
        if presence.run.startswith(_COMMAND):
            forget(lake, presence)
            yield f"{presence}, ended without a word, as when it is killed: was there memory enough?"


def dead(lake: Lake) -> list[Presence]:
    """The records of dead processes.

    A process that ends in order removes the record before the lock: a record next to a free lock is of a dead one.
    """
    free = [presence for presence in recorded(lake) if not _works(lake, presence)]
    return [presence for presence in free if (_home(lake) / f"{presence.name}.json").is_file()]


def alive(lake: Lake) -> list[Presence]:
    """The records of living processes."""
    return [presence for presence in recorded(lake) if _works(lake, presence)]


def forget(lake: Lake, presence: Presence) -> None:
    """Remove the record of a finished run, and its lock, which is not needed any more."""
    for ending in ("json", "lock"):
        (_home(lake) / f"{presence.name}.{ending}").unlink(missing_ok=True)


def _works(lake: Lake, presence: Presence) -> bool:
    return held(_home(lake) / f"{presence.name}.lock")


def held(lock: Path) -> bool:
    """Whether a lock is held; a link never is."""
    if lock.is_symlink() or not lock.is_file():
        return False
    with taken(lock) as got:
        return not got


@contextmanager
def taken(lock: Path) -> Iterator[bool]:
    """Take a lock if it is free, and say whether it was."""
    file_lock = FileLock(lock)
    try:
        file_lock.acquire(blocking=False)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        file_lock.release()


def gate(lake: Lake) -> FileLock:
    """The lock that every run passes through at its start, and that a removal of files holds."""
    locks = lake.storage.local / "locks"
    try:
        locks.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfrastructureError(f"the lake {lake.location} cannot be written ({error.strerror})") from error
    return FileLock(locks / _GATE)


@contextmanager
def alone(lake: Lake) -> Iterator[None]:
    """Keep others from beginning to work on a lake.

    Raises:
        InfrastructureError: somebody is at work on it.
    """
    with gate(lake):
        names = {f"{presence.name}.lock": str(presence) for presence in recorded(lake)}
        locks = [path for path in (lake.storage.local / "locks").rglob("*.lock") if path.name != _GATE]
        busy = [names.get(path.name, path.stem) for path in sorted(locks) if held(path)]
        if busy:
            raise InfrastructureError(
                f"the lake {lake.location} is in use ({'; '.join(busy)}): what a run is about to need must not go; "
                "try again when it has ended"
            )
        yield


def recorded(lake: Lake) -> Iterator[Presence]:
    """Every record, of the dead and of those at work; files that are none are passed over: ``unreadable``."""
    return (presence for _, presence in _read(lake) if presence is not None)


def unreadable(lake: Lake) -> list[Path]:
    """Files among the records that no version of ours wrote whole."""
    return [path for path, presence in _read(lake) if presence is None]


def _read(lake: Lake) -> Iterator[tuple[Path, Presence | None]]:
    for path in sorted(_home(lake).glob("*.json")):
        try:
            yield path, _presence(json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            continue  # removed this moment
        except (OSError, ValueError, RecursionError):
            yield path, None


def _presence(record: Any) -> Presence | None:
    """A record by what its file holds; None of a file that is no record."""
    if not isinstance(record, dict):
        return None
    if not {"run", "host", "pid", "started", "name"} <= record.keys() <= {field.name for field in fields(Presence)}:
        return None
    words = [value for key, value in record.items() if key not in ("pid", "outcome", "stopped")]
    outcome = record.get("outcome")  # an earlier version had none
    outcome_parts = outcome if isinstance(outcome, list) else []
    is_valid_outcome = outcome is None or len(outcome_parts) == len(("type", "name", "message"))
    plain = all(isinstance(word, str) for word in (*words, *outcome_parts)) and isinstance(
        record.get("stopped", False), bool
    )
    if not (is_valid_outcome and plain and type(record["pid"]) is int and Path(record["name"]).name == record["name"]):
        return None
    return Presence(
        **{**record, "outcome": (outcome_parts[0], outcome_parts[1], outcome_parts[2]) if outcome_parts else None}
    )


def was_stopped(lake: Lake, run: str) -> bool:
    """Whether a run left after a stop request, which does not count as a death."""
    return any(presence.run == run and presence.stopped for presence in recorded(lake))


def _home(lake: Lake) -> Path:
    return lake.storage.local / "locks" / "alive"


# --------------------------------------------------------------------------------------------------------------------
# Files that processes left in a lake: drafts of dead writers, and the lock files of those that hold or held them.
#
# A lock file goes with its holder where that ends in order (``tasks.lake.store``). What a killed process leaves is
# free, and is taken by the next process that needs it; ``remove_free_locks`` removes those that no process needed.


_UNTOUCHED_SECONDS = 24 * 3600
"""A draft without a lock of its own is left behind once nothing has been written to it for so long; a lock, too."""


@dataclass(frozen=True)
class Holder:
    """A lock that is held."""

    lock: str
    """Its name: of a stage with its key, of a year of a back-fill, or of a run at work."""
    who: str
    """In words; empty if only the lock is known."""


def clear_leftovers(lake: Lake) -> list[Path]:
    """Remove the drafts of dead writers from the lake's ``tmp``, without drafts in use; returns the removed paths."""
    gone = []
    for draft in leftovers(lake):
        lock = _lock(lake, draft)
        with taken(lock) if lock is not None else nullcontext(True) as free:
            if free:
                if draft.is_dir():
                    shutil.rmtree(draft, ignore_errors=True)
                else:
                    draft.unlink(missing_ok=True)
                if lock is not None:
                    lock.unlink(missing_ok=True)
                gone.append(draft)
    return gone


def leftovers(lake: Lake) -> list[Path]:
    """The drafts of dead writers.

    A stage's draft is written under the lock of its key: if the lock is free, the draft is left behind. Others are
    small and written at once: they are left behind once nothing was written to them for a day. Crash files are no
    drafts: the user is to send them.
    """
    drafts = (path for path in sorted((lake.storage.local / "tmp").glob("*")) if not path.match(CRASH_FILES))
    # what a link leads to is no draft
    owned_drafts = [draft for draft in drafts if not strange(lake.storage.local, draft)]
    before = time.time() - _UNTOUCHED_SECONDS
    return [
        draft
        for draft in owned_drafts
        if (touched(draft) < before if (lock := _lock(lake, draft)) is None else not held(lock))
    ]


def holders(lake: Lake) -> list[Holder]:
    """Who holds which lock of a lake, for `evenhand status`."""
    names = {f"{presence.name}.lock": f"{presence.run}: {presence}" for presence in recorded(lake)}
    locks = sorted((lake.storage.local / "locks").rglob("*.lock"))
    return [Holder(path.stem, names.get(path.name, "")) for path in locks if held(path)]


def free_locks(lake: Lake, seconds: float = _UNTOUCHED_SECONDS) -> list[Path]:
    """Lock files that are not held and were not opened for a day; those of dead runs are kept."""
    runs = {f"{presence.name}.lock" for presence in recorded(lake)}
    before = time.time() - seconds
    local = lake.storage.local
    locks = [path for path in sorted((local / "locks").rglob("*.lock")) if path.name not in runs]
    files = (path for path in locks if path.is_file() and not strange(local, path))
    return [path for path in files if touched(path) < before and not held(path)]


def remove_free_locks(lake: Lake, seconds: float = _UNTOUCHED_SECONDS) -> list[Path]:
    """Remove them, each while this process holds it, so that no other can take it; returns the removed paths."""
    gone = []
    for path in free_locks(lake, seconds):
        with taken(path) as free:
            if free:
                path.unlink(missing_ok=True)
                gone.append(path)
    return gone


def _lock(lake: Lake, draft: Path) -> Path | None:
    """The lock file of a draft's key; None where there is none, or something else in its place."""
    lock = lake.storage.local / "locks" / f"{draft.name}.lock"
    return lock if lock.is_file() and not strange(lake.storage.local, lock) else None


def touched(path: Path) -> float:
    """When something was last written to a file, or to anything below a directory, in seconds since 1970."""
    times = []
    for entry in (path, *(path.rglob("*") if path.is_dir() else ())):
        try:
            times.append(entry.lstat().st_mtime)
        except FileNotFoundError:
            continue  # given its name this moment
        except OSError:
            return time.time()  # in a folder that cannot be read: its age is unknown
    return max(times, default=time.time())
