"""The lake's log as the server holds it: an entry is read again only where its file was written since."""

import hashlib
from dataclasses import dataclass, field

from schemas.errors import IntegrityError
from tasks.lake import log
from tasks.lake.signatures import holds
from tasks.lake.store import Lake

_EMPTY = log.Head(n=0, sha256=log.FIRST)


@dataclass(frozen=True)
class Logged:
    """The log at one moment."""

    entries: tuple[log.Entry, ...] = ()
    head: log.Head = _EMPTY
    broken: str = ""
    """Why the log cannot be relied on, the first entry that does not fit; empty of a sound one."""

    def of(self, run: str) -> list[log.Entry]:
        """The entries about a run."""
        return [entry for entry in self.entries if entry.run == run]

    def numbers(self) -> dict[str, int]:
        """Run -> number of the last entry that tells of its being published: the order of runs."""
        return {entry.run: entry.n for entry in self.entries if entry.event == "run published"}


@dataclass
class LogReader:
    """Reads a log, and remembers what it read."""

    _read: dict[str, tuple[int, log.Entry, str]] = field(default_factory=dict)
    """Path -> time of its file, the entry, and the sha256 of its bytes."""

    def read(self, lake: Lake) -> Logged:
        """The log as it is now; one with a file that is no entry has the entries before it."""
        names = ((path, path.rsplit("/", 1)[1].removesuffix(".json")) for path in lake.storage.glob("log/*.json"))
        paths = [path for path, name in names if name.isdecimal()]
        written = {path: lake.storage.modified(path) for path in paths}
        changed = [path for path in paths if path not in self._read or self._read[path][0] != written[path]]
        self._read = {path: self._read[path] for path in paths if path in self._read and path not in changed}
        broken = ""
        for path in changed:
            try:
                self._read[path] = (written[path], *_entry(lake, path))
            except (ValueError, IntegrityError) as error:
                broken = broken or str(error)
            except OSError:
                broken = broken or f"{lake.storage.where(path)} cannot be read"
        return self._logged(lake, broken)

    def _logged(self, lake: Lake, broken: str) -> Logged:
        found = sorted((entry.n, entry, digest) for _, entry, digest in self._read.values())
        before = log.FIRST
        for place, (n, entry, digest) in enumerate(found, 1):
            if not broken and n != place:
                broken = f"{lake.storage.where(log.path_of(place))} is missing: the log was cut in its middle"
            if not broken and entry.previous != before:
                broken = f"{lake.storage.where(log.path_of(n))} does not follow the entry before it"
            before = digest
        head = log.Head(n=found[-1][0], sha256=found[-1][2]) if found else _EMPTY
        return Logged(tuple(entry for _, entry, _ in found), head, broken)


def _entry(lake: Lake, path: str) -> tuple[log.Entry, str]:
    """An entry and the digest of its bytes."""
    n = int(path.rsplit("/", 1)[1].removesuffix(".json"))
    entry = log.entry_of(lake, n)
    if entry is None:
        raise IntegrityError(f"{lake.storage.where(path)} is missing")
    if entry.signature is not None and not holds(entry.signature, "log", entry.content()):
        raise IntegrityError(f"{lake.storage.where(path)} has a signature that is not of this entry")
    return entry, hashlib.sha256(lake.storage.read(path) or b"").hexdigest()
