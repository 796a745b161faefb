"""The lake's log as the server holds it: an entry is read again only where its file was written since."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pydantic import ValidationError

from flows.serving.index import written
from flows.serving.index.written import Stamp
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

    @cached_property
    def by_run(self) -> Mapping[str, Sequence[log.Entry]]:
        """Run -> the entries about it."""
        found: dict[str, list[log.Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.run, []).append(entry)
        return found

    def of(self, run: str) -> list[log.Entry]:
        """The entries about a run."""
        return list(self.by_run.get(run, ()))

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Run -> number of the last entry that tells of its being published: the order of runs.

        A run that was there before the log has none: its entry does not say when it was published.
        """
        told = (entry for entry in self.entries if entry.event == "run published")
        return {entry.run: entry.n for entry in told if entry.text != log.BEFORE_THE_LOG}


@dataclass
class LogReader:
    """Reads a log, and remembers what it read."""

    _read: dict[str, tuple[Stamp, log.Entry, str]] = field(default_factory=dict)
    """Path -> stamp of its file, the entry, and the sha256 of its bytes."""
    _stamps: dict[str, Stamp] = field(default_factory=dict)
    _last: Logged | None = None
    """What the files with these stamps came to."""

    def read(self, lake: Lake) -> Logged:
        """The log as it is now, the same object where no file changed; a file that is no entry breaks it."""
        stamps = written.entries(lake)
        if self._last is not None and stamps == self._stamps and len(stamps) == len(self._read):
            return self._last
        self._stamps, broken = stamps, ""
        kept = {path: held for path, held in self._read.items() if stamps.get(path) == held[0]}
        self._read = {}
        for path, stamp in stamps.items():
            try:
                self._read[path] = kept.get(path) or (stamp, *_entry(lake, path))
            except (ValueError, IntegrityError) as error:
                broken = broken or str(error)
            except OSError:
                broken = broken or f"{lake.storage.where(path)} cannot be read"
        self._last = self._logged(lake, broken)
        return self._last

    def _logged(self, lake: Lake, broken: str) -> Logged:
        found = sorted((entry.n, digest, entry) for _, entry, digest in self._read.values())
        before = log.FIRST
        for place, (n, digest, entry) in enumerate(found, 1):
            if not broken and n != place:
                broken = f"{lake.storage.where(log.path_of(place))} is missing: the log was cut in its middle"
            if not broken and entry.previous != before:
                broken = f"{lake.storage.where(log.path_of(n))} does not follow the entry before it"
            before = digest
        head = log.Head(n=found[-1][0], sha256=found[-1][1]) if found else _EMPTY
        return Logged(tuple(entry for _, _, entry in found), head, broken)


def _entry(lake: Lake, path: str) -> tuple[log.Entry, str]:
    """An entry and the digest of its bytes, which are read once.

    Raises:
        IntegrityError: the file is gone, no entry, of another number, or its signature is not of this entry.
    """
    content, where = lake.storage.read(path), lake.storage.where(path)
    if content is None:
        raise IntegrityError(f"{where} is missing")
    try:
        entry = log.Entry.model_validate_json(content)
    except ValidationError as error:
        raise IntegrityError(f"{where} is no entry of a log; restore it from a copy") from error
    if log.path_of(entry.n) != path:
        raise IntegrityError(f"{where} says that it is entry {entry.n}; restore it from a copy")
    if entry.signature is not None and not holds(entry.signature, "log", entry.content()):
        raise IntegrityError(f"{where} has a signature that is not of this entry")
    return entry, hashlib.sha256(content).hexdigest()
