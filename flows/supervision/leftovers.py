"""Files that processes left in a lake: drafts of dead writers, and the lock files of those that hold or held them.

A lock file goes with its holder where that ends in order (``tasks.lake.store``). What a killed process leaves is free,
and is taken by the next one that asks for it; ``remove_free_locks`` removes those that nobody asked for.
"""

import shutil
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from flows.supervision.crash import CRASH_FILES
from flows.supervision.presence import held, recorded, taken
from tasks.lake.local_directory import strange
from tasks.lake.store import Lake

_UNTOUCHED_SECONDS = 24 * 3600
"""A draft without a lock of its own is left behind once nothing has been written to it for so long; a lock, too."""


@dataclass(frozen=True)
class Holder:
    """A lock that somebody holds."""

    lock: str
    """Its name: of a stage with its key, of a year of a back-fill, or of a run at work."""
    who: str
    """In words; empty where the lock alone tells that somebody works."""


def clear_leftovers(lake: Lake) -> list[Path]:
    """Remove the drafts of dead writers from the lake's ``tmp``, what somebody writes left alone; gives what went."""
    gone = []
    for draft in leftovers(lake):
        lock = _lock(lake, draft)
        with taken(lock) if lock is not None else nullcontext(True) as free:
            if free:
                _remove(draft)
                if lock is not None:
                    lock.unlink(missing_ok=True)
                gone.append(draft)
    return gone


def leftovers(lake: Lake) -> list[Path]:
    """The drafts of dead writers.

    A stage's draft is written under the lock of its key, by whose being free it is known to be left behind. Others are
    small and written at once: they are left behind once nothing was written to them for a day. Crash files are no
    drafts: the user was asked to send them.
    """
    drafts = (path for path in sorted((lake.storage.local / "tmp").glob("*")) if not path.match(CRASH_FILES))
    own = [draft for draft in drafts if not strange(lake.storage.local, draft)]  # what a link leads to is no draft
    return [draft for draft in own if _left_behind(lake, draft)]


def holders(lake: Lake) -> list[Holder]:
    """Who holds which lock of a lake, for `evenhand status`."""
    known = {f"{presence.name}.lock": f"{presence.run}: {presence}" for presence in recorded(lake)}
    locks = sorted((lake.storage.local / "locks").rglob("*.lock"))
    return [Holder(path.stem, known.get(path.name, "")) for path in locks if held(path)]


def free_locks(lake: Lake, seconds: float = _UNTOUCHED_SECONDS) -> list[Path]:
    """Lock files that nobody holds and nobody has opened for a day; those of dead runs stay until they are seen to."""
    runs = {f"{presence.name}.lock" for presence in recorded(lake)}
    before = time.time() - seconds
    local = lake.storage.local
    locks = [path for path in sorted((local / "locks").rglob("*.lock")) if path.name not in runs]
    files = (path for path in locks if path.is_file() and not strange(local, path))
    return [path for path in files if touched(path) < before and not held(path)]


def remove_free_locks(lake: Lake, seconds: float = _UNTOUCHED_SECONDS) -> list[Path]:
    """Remove them, each while it is held, so that nobody else can have it; gives what went."""
    gone = []
    for path in free_locks(lake, seconds):
        with taken(path) as free:
            if free:
                path.unlink(missing_ok=True)
                gone.append(path)
    return gone


def _left_behind(lake: Lake, draft: Path) -> bool:
    lock = _lock(lake, draft)
    return touched(draft) < time.time() - _UNTOUCHED_SECONDS if lock is None else not held(lock)


def _lock(lake: Lake, draft: Path) -> Path | None:
    """The lock file of a draft's key; None where there is none, or something else in its place."""
    lock = lake.storage.local / "locks" / f"{draft.name}.lock"
    return lock if lock.is_file() and not strange(lake.storage.local, lock) else None


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
            times.append(each.lstat().st_mtime)
        except FileNotFoundError:
            continue  # given its name this moment
        except OSError:
            return time.time()  # in a folder that cannot be read: nobody knows how new it is
    return max(times, default=time.time())
