"""Records of a lake that cannot be read: which they are, and a view of the lake without them.

Operators' commands read all records of a lake. A single corrupt file must not take the others away: such a command
reads the view, names what it left out, and ends with exit code 6. Writers see the lake as it is: they stop there.

Scope: whether a record can be parsed and has its seal. Whether it fits the files that it names: ``evenhand verify``.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final, cast

from flows.outcome.alerts import FOLDER as ALERTS
from flows.outcome.alerts import read_alert
from flows.partitions.attempts import LISTING, read_record
from flows.partitions.partition_list import kept_listing
from flows.runs.index import run_of
from flows.runs.run_names import audit_and_year
from flows.supervision import presence
from flows.supervision.failed_audits import FOLDER as FAILURES
from flows.supervision.failed_audits import read_failure
from schemas.errors import EvenhandError, InfrastructureError, IntegrityError
from tasks.lake import log
from tasks.lake.storage import Storage
from tasks.lake.store import Lake

RUN, ATTEMPT, LISTED, ALERT = "run", "attempt", "list of partitions", "alert"
FAILURE, LOG, PRESENCE = "failure", "log entry", "run at work"
KINDS: Final = (RUN, ATTEMPT, LISTED, ALERT, FAILURE, LOG, PRESENCE)


@dataclass(frozen=True)
class Unreadable:
    """A file that is not as it was written."""

    kind: str
    path: str
    """In the lake, with forward slashes."""
    reason: str
    """Names the file and the next step."""


@dataclass
class Records:
    """Records of one lake that are known to be readable, so that a process reads each only once."""

    lake: Lake
    sound: dict[str, int] = field(default_factory=dict)
    """Path of a record -> when it was written."""
    once: bool = False
    """Whether nobody asks again, so that nothing need be remembered."""

    def unreadable(self, kinds: Collection[str] = KINDS) -> tuple[Unreadable, ...]:
        """What cannot be read now, of these kinds.

        Raises:
            InfrastructureError: the place of the lake cannot be reached.
        """
        records = []
        modified_times = {}
        storage = self.lake.storage
        patterns = [(kind, pattern) for kind, pattern in _PATTERNS if kind in kinds]
        for folder_kind, path in ((kind, path) for kind, pattern in patterns for path in storage.glob(pattern)):
            if folder_kind == LOG and not PurePosixPath(path).stem.isdecimal():
                continue
            kind = LISTED if path.endswith(f"/{LISTING}") else folder_kind
            written = -1
            if not self.once:
                with suppress(OSError):
                    written = storage.modified(path)
            is_new = written < 0 or self.sound.get(path) != written
            if is_new and (reason := _fault(self.lake, kind, path)):
                records.append(Unreadable(kind, path, reason))
            else:
                modified_times[path] = written
        self.sound = modified_times
        for file in presence.unreadable(self.lake) if PRESENCE in kinds else ():
            step = "remove it once nobody is at work on the lake"
            path = file.relative_to(self.lake.storage.local).as_posix()
            records.append(Unreadable(PRESENCE, path, f"{file} is no record of a {PRESENCE}; {step}"))
        return tuple(records)


def unreadable(lake: Lake, kinds: Collection[str] = KINDS) -> tuple[Unreadable, ...]:
    """Every record of a lake, of some kinds, that cannot be read.

    Raises:
        InfrastructureError: the place of the lake cannot be reached.
    """
    return Records(lake, once=True).unreadable(kinds)


def without(lake: Lake, hidden: Sequence[Unreadable]) -> Lake:
    """A view of the lake in which these records are not there."""
    return _View(lake, frozenset(record.path for record in hidden)) if hidden else lake


def run_in(record: Unreadable) -> str:
    """The id of a run with an unreadable manifest."""
    return PurePosixPath(record.path).parent.name


def maybe_later(lake: Lake, hidden: Sequence[Unreadable], audit: str, year: int | None, newest: int) -> tuple[str, ...]:
    """Manifests of an audit that cannot be read, but for those of runs that the log has before its newest readable one.

    Args:
        lake: that holds them.
        hidden: the records that cannot be read.
        audit: its name.
        year: of the runs; None for those of every year.
        newest: number in the log of the newest readable run; 0 of none.
    """
    records_of_audit = []
    for record in hidden:
        name, named_year = audit_and_year(run_in(record)) if record.kind == RUN else ("", "")
        if record.kind == RUN and name == audit and (year is None or named_year == str(year)):
            records_of_audit.append(record)
    numbers = log.published(lake) if records_of_audit else {}
    return tuple(record.reason for record in records_of_audit if not 0 < numbers.get(run_in(record), 0) < newest)


_PATTERNS: Final = (
    (RUN, "runs/*/manifest.json"),
    (ATTEMPT, "backfills/*/*/*.json"),
    (ATTEMPT, "backfills/*/*/*/*.json"),
    (ALERT, f"{ALERTS}/*.json"),
    (FAILURE, f"{FAILURES}/*.json"),
    (LOG, "log/*.json"),
)


_READERS: Final[Mapping[str, Callable[[Lake, str], object]]] = {
    RUN: lambda lake, path: run_of(lake, PurePosixPath(path).parent.name),
    ATTEMPT: read_record,
    LISTED: lambda lake, path: kept_listing(lake, path.split("/")[1], int(path.split("/")[2])),
    ALERT: read_alert,
    FAILURE: read_failure,
    LOG: lambda lake, path: log.entry_of(lake, int(PurePosixPath(path).stem)),
}


def _fault(lake: Lake, kind: str, path: str) -> str:
    """Why a record cannot be read, and the next step; empty where it can be read, or no longer exists."""
    try:
        _READERS[kind](lake, path)
    except InfrastructureError:
        raise
    except IntegrityError as error:
        return str(error) if lake.storage.exists(path) else ""
    except FileNotFoundError:
        return ""
    except (EvenhandError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        message = f"{lake.storage.where(path)} cannot be read as a record of a {kind} ({why}); restore it from a copy"
        return message if lake.storage.exists(path) else ""
    return ""


class _Hiding:
    """A storage without some of its files; all else is that storage's."""

    def __init__(self, storage: Storage, hidden: frozenset[str]) -> None:
        self._storage, self._hidden = storage, hidden

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def exists(self, path: str) -> bool:
        """Whether there is such a file, or a folder with something in it."""
        return path not in self._hidden and self._storage.exists(path)

    def glob(self, pattern: str) -> list[str]:
        """All paths that fit."""
        return [path for path in self._storage.glob(pattern) if path not in self._hidden]

    def below(self, folder: str) -> list[str]:
        """All paths below a folder."""
        return [path for path in self._storage.below(folder) if path not in self._hidden]

    def read(self, path: str) -> bytes | None:
        """The content of a file; None where there is none."""
        return None if path in self._hidden else self._storage.read(path)


class _View(Lake):
    """A view of a lake without some of its files."""

    def __init__(self, lake: Lake, hidden: frozenset[str]) -> None:
        self._lake = lake
        self.storage = cast("Storage", _Hiding(lake.storage, hidden))

    @property
    def root(self) -> Path:
        """As the lake has it."""
        return self._lake.root
