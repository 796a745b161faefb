"""Index of a lake for the server: runs, log entries and failed audits, read again only where files changed."""

import hashlib
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from stat import S_ISREG
from typing import Final

import pyarrow as pa
from pyarrow import fs
from pydantic import ValidationError

from flows.partitions.attempts import Attempt, YearState, latest
from flows.partitions.partition_list import kept_listing, newest
from flows.runs.review import UNSIGNED, Remediation, remediations, states
from flows.runs.summary import Summary, read_summary
from schemas.audit.partition import ALL
from schemas.errors import EvenhandError, InfrastructureError, IntegrityError
from tasks.lake import log
from tasks.lake.local_directory import Directory
from tasks.lake.log import holds
from tasks.lake.store import Lake, open_lake

# --------------------------------------------------------------------------------------------------------------------
# When files of a lake were written and how large they are, by one listing of a folder and no request a file.


@dataclass(frozen=True)
class Stamp:
    """Changes with every write of a file: on a disk the time of change is the system's, and cannot be set back."""

    size: int = 0
    modified: int = 0
    changed: int = 0
    """Nanoseconds; 0 if the file system has no such time."""


def manifests(lake: Lake) -> dict[str, Stamp]:
    """Run -> the stamp of its manifest; errors as of ``below``."""
    if isinstance(lake.storage, Directory):
        run_folders = _entries(lake.storage.root / "runs")
        stamps = ((folder.name, _stamp(f"{folder.path}/manifest.json")) for folder in run_folders)
        return {run: stamp for run, stamp in stamps if stamp}
    parts = ((path.split("/"), stamp) for path, stamp in below(lake, "runs").items())
    return {names[1]: stamp for names, stamp in parts if names[2:] == ["manifest.json"]}


def entries(lake: Lake) -> dict[str, Stamp]:
    """Path -> the stamp of each file of the log; errors as of ``below``."""
    if isinstance(lake.storage, Directory):
        files = _entries(lake.storage.root / "log")
        stamps = {f"log/{file.name}": _stamp(file.path) for file in files if _is_number(file.name)}
    else:
        stamps = {path: stamp for path, stamp in below(lake, "log").items() if _is_number(path.rpartition("/")[2])}
    return dict(sorted((path, stamp) for path, stamp in stamps.items() if stamp))


def folders(lake: Lake, folder: str) -> list[str]:
    """Names of the folders in a folder, sorted; errors as of ``below``."""
    if isinstance(lake.storage, Directory):
        return sorted(entry.name for entry in _entries(lake.storage.root / folder) if entry.is_dir())
    infos = _listed(lake, folder, recursive=False)
    return sorted(info.base_name for info in infos.values() if info.type == fs.FileType.Directory)


def below(lake: Lake, folder: str) -> dict[str, Stamp]:
    """Path -> the stamp of each file below a folder of an object store, by one listing of paths and stamps.

    Raises:
        InfrastructureError: the store cannot be reached.
    """
    infos = _listed(lake, folder, recursive=True)
    files = {path: info for path, info in infos.items() if info.type == fs.FileType.File}
    return {path: Stamp(info.size or 0, info.mtime_ns or 0) for path, info in files.items()}


def _listed(lake: Lake, folder: str, *, recursive: bool) -> dict[str, fs.FileInfo]:
    """Path in the lake -> its information from the listing."""
    from tasks.lake.object_store import filesystem_at  # gives the connection that the lake has already

    try:
        system, root = filesystem_at(lake.location)
        selector = fs.FileSelector(f"{root}/{folder}", allow_not_found=True, recursive=recursive)
        return {info.path[info.path.index(root) + len(root) + 1 :]: info for info in system.get_file_info(selector)}
    except (OSError, pa.ArrowException) as error:
        raise InfrastructureError(f"{lake.location} could not be listed: {error}") from error


def _entries(folder: Path) -> Iterator["os.DirEntry[str]"]:
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as scan:
        yield from scan


def _stamp(path: str) -> Stamp | None:
    """None of what is no file, or is just being removed."""
    with suppress(OSError):
        status = os.stat(path)  # noqa: PTH116 thousands of them: a Path takes as long as the system
        return Stamp(status.st_size, status.st_mtime_ns, status.st_ctime_ns) if S_ISREG(status.st_mode) else None
    return None


def _is_number(name: str) -> bool:
    return name.endswith(".json") and name.removesuffix(".json").isdecimal()


# --------------------------------------------------------------------------------------------------------------------
# Audits that a back-fill tried and that have no run: their records, as no list of runs shows them.


_SERIOUS = (YearState.FAILED, YearState.INTERRUPTED, YearState.RUNNING)


def tried(lake: Lake, with_runs: Collection[str]) -> Mapping[str, tuple[Attempt, ...]]:
    """Audit -> the last attempt of each year, of audits that have records and no run.

    Args:
        lake: whose records are read.
        with_runs: audits that have a run.
    """
    audits = [audit for audit in folders(lake, "backfills") if audit not in with_runs]
    attempts_by_audit = {}
    for audit in audits:
        years = [int(year) for year in folders(lake, f"backfills/{audit}") if year.isdecimal()]
        attempts = tuple(attempt for year in years if (attempt := _last(lake, audit, year)) is not None)
        if attempts:
            attempts_by_audit[audit] = attempts
    return attempts_by_audit


def _last(lake: Lake, audit: str, year: int) -> Attempt | None:
    """The last attempt of a year; of a year by partitions the gravest of theirs. None where none can be read."""
    try:
        if kept_listing(lake, audit, year) is None:
            return latest(lake, audit, year)
        parts = newest(lake, audit, year).values()
    except (EvenhandError, OSError, ValueError, KeyError, TypeError):
        return None
    order = {state: place for place, state in enumerate(_SERIOUS)}
    return min(parts, key=lambda part: (order.get(part.state, len(order)), part.value), default=None)


# --------------------------------------------------------------------------------------------------------------------
# The lake's log as the server holds it: an entry is read again only where its file was written since.


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
        entries_by_run: dict[str, list[log.Entry]] = {}
        for entry in self.entries:
            entries_by_run.setdefault(entry.run, []).append(entry)
        return entries_by_run

    def of(self, run: str) -> list[log.Entry]:
        """The entries about a run."""
        return list(self.by_run.get(run, ()))

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Run -> number of the last entry about its publication, which gives the order of runs.

        A run that was there before the log has none: its entry does not say when it was published.
        """
        publications = (entry for entry in self.entries if entry.event == "run published")
        return {entry.run: entry.n for entry in publications if entry.text != log.BEFORE_THE_LOG}


@dataclass
class LogReader:
    """Reads a log, and remembers what it read."""

    _read: dict[str, tuple[Stamp, log.Entry, str]] = field(default_factory=dict)
    """Path -> stamp of its file, the entry, and the sha256 of its bytes."""
    _stamps: dict[str, Stamp] = field(default_factory=dict)
    _last: Logged | None = None
    """The log of the files with these stamps."""

    def read(self, lake: Lake) -> Logged:
        """The log as it is now, the same object where no file changed; a file that is no entry breaks it."""
        stamps = entries(lake)
        if self._last is not None and stamps == self._stamps and len(stamps) == len(self._read):
            return self._last
        self._stamps, broken = stamps, ""
        unchanged = {path: cached for path, cached in self._read.items() if stamps.get(path) == cached[0]}
        self._read = {}
        for path, stamp in stamps.items():
            try:
                self._read[path] = unchanged.get(path) or (stamp, *_entry(lake, path))
            except (ValueError, IntegrityError) as error:
                broken = broken or str(error)
            except OSError:
                broken = broken or f"{lake.storage.where(path)} cannot be read"
        entries_in_order = sorted((entry.n, digest, entry) for _, entry, digest in self._read.values())
        before = log.FIRST
        for place, (n, digest, entry) in enumerate(entries_in_order, 1):
            if not broken and n != place:
                broken = f"{lake.storage.where(log.path_of(place))} is missing: the log was cut in its middle"
            if not broken and entry.previous != before:
                broken = f"{lake.storage.where(log.path_of(n))} does not follow the entry before it"
            before = digest
        head = log.Head(n=entries_in_order[-1][0], sha256=entries_in_order[-1][1]) if entries_in_order else _EMPTY
        self._last = Logged(tuple(entry for _, _, entry in entries_in_order), head, broken)
        return self._last


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
        raise IntegrityError(f"{where} has the content of entry {entry.n}; restore it from a copy")
    if entry.signature is not None and not holds(entry.signature, "log", entry.content()):
        raise IntegrityError(f"{where} has a signature that is not of this entry")
    return entry, hashlib.sha256(content).hexdigest()


# --------------------------------------------------------------------------------------------------------------------
# The runs of a lake and its log at one moment, and what follows from both: order, valid runs, states of review.
#
# Each of these is made once for all pages of one moment, in time that grows with runs and entries and no faster.


Series = tuple[str, tuple[tuple[str, str], ...]]
"""Audit and partition."""


@dataclass(frozen=True)
class Known:
    """The runs and the log at one moment."""

    lake: Lake
    """Opened for this moment: what it found intact it does not read again."""
    runs: Mapping[str, Summary]
    written: Mapping[str, Stamp]
    """When the manifest of each was written."""
    unreadable: tuple[str, ...]
    """Runs whose files cannot be read."""
    log: Logged
    tried: Mapping[str, tuple[Attempt, ...]]
    """Audits that were tried and have no run: the last attempt of each of their years."""

    @cached_property
    def newest_first(self) -> tuple[Summary, ...]:
        """All runs; the order is the log's, as clocks are set back."""
        numbers = self.log.numbers
        return tuple(
            sorted(self.runs.values(), key=lambda run: (numbers.get(run.run, 0), run.finished, run.run), reverse=True)
        )

    @cached_property
    def protected(self) -> frozenset[str]:
        """Runs that are marked as published, by the log."""
        marked: dict[str, bool] = {}
        for entry in self.log.entries:
            if entry.event in ("protected", "unprotected"):
                marked[entry.run] = entry.event == "protected"
        return frozenset(run for run, is_marked in marked.items() if is_marked)

    @cached_property
    def valid(self) -> frozenset[str]:
        """The valid run of every audit, year and partition: the protected one, else the last."""
        newest_runs: dict[tuple[Series, int], Summary] = {}
        for run in reversed(self.newest_first):
            key = (_series(run), run.year)
            if key not in newest_runs or run.run in self.protected or newest_runs[key].run not in self.protected:
                newest_runs[key] = run
        return frozenset(run.run for run in newest_runs.values())

    @cached_property
    def signed(self) -> Mapping[str, str]:
        """Run -> the state of its review, such as approved, but for unsigned runs; none of a log that is broken."""
        if self.log.broken:
            return {}
        return {run: state for run, state in states(self.log.entries).items() if state != UNSIGNED}

    @cached_property
    def open(self) -> tuple[Remediation, ...]:
        """Remediations that are open."""
        return tuple(remediations(self.log.entries))

    @cached_property
    def audits(self) -> Mapping[str, Sequence[Summary]]:
        """Audit -> its runs, newest first."""
        runs_by_audit: dict[str, list[Summary]] = {}
        for run in self.newest_first:
            runs_by_audit.setdefault(run.audit, []).append(run)
        return dict(sorted(runs_by_audit.items()))

    @cached_property
    def has_partitions(self) -> bool:
        """Whether any run is of a partition."""
        return any(run.partition for run in self.newest_first)

    @cached_property
    def series(self) -> Mapping[Series, Sequence[Summary]]:
        """Audit and partition -> the runs, newest first."""
        runs_by_series: dict[Series, list[Summary]] = {}
        for run in self.newest_first:
            runs_by_series.setdefault(_series(run), []).append(run)
        return runs_by_series

    @cached_property
    def values_of(self) -> Mapping[str, Sequence[str]]:
        """Audit -> its partitions, ``ALL`` before the others, then the largest first by the figures of their runs."""
        sizes: dict[str, dict[str, int]] = {audit: {} for audit in self.audits}
        for run in self.newest_first:
            largest = max((figure.n or 0 for figure in run.figures), default=0)
            size, value = sizes[run.audit], value_of(run)
            size[value] = max(size.get(value, 0), largest)
        return {
            audit: sorted(values, key=lambda value: (value != ALL, -values[value], value))
            for audit, values in sizes.items()
        }

    def alike(self, run: str) -> Sequence[Summary]:
        """The runs of the same audit and partition, the run itself among them, newest first."""
        return self.series[_series(self.runs[run])]

    def before(self, run: str) -> Summary | None:
        """The run that this one supersedes, else the one of an earlier year of the same audit and partition."""
        current_run, alike = self.runs[run], self.alike(run)
        at = next(place for place, summary in enumerate(alike) if summary.run == run)
        superseded = next((summary for summary in alike[at + 1 :] if summary.year == current_run.year), None)
        years = [summary for summary in alike if summary.year < current_run.year and summary.run in self.valid]
        return superseded or max(years, key=lambda summary: summary.year, default=None)


def value_of(run: Summary) -> str:
    """The partition of a run; ``ALL`` of every row, with ``by`` or without."""
    return (run.partition or {}).get("value", ALL)


def _series(run: Summary) -> Series:
    return run.audit, tuple(sorted((run.partition or {}).items()))


# --------------------------------------------------------------------------------------------------------------------
# Index of the runs of a lake, by their summaries: read at the start, then where a manifest was written since.
#
# It is read again at most every 5 seconds, less often where reading takes long, and after an entry of this server. A
# run that is half written or half removed is left out; one whose summary cannot be read is counted.


FRESH_SECONDS: Final = 5
_SHARE: Final = 20
"""A look that takes long comes less often: so many times as long as it took lie between two."""


@dataclass
class Index:
    """Keeps the last state of a lake."""

    place: str
    clock: Callable[[], float] = time.monotonic
    _seen: dict[str, tuple[Stamp, Summary | None]] = field(default_factory=dict)
    _log: LogReader = field(default_factory=LogReader)
    _known: Known | None = None
    _looked: float = 0.0
    _fresh: float = FRESH_SECONDS
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def known(self, *, refresh: bool = False) -> Known:
        """What is known, of 5 seconds ago at most where a look is short; no request waits for another one's look.

        Args:
            refresh: whether to look even if that was a moment ago, as after an entry of one's own.

        Raises:
            InfrastructureError: the lake cannot be reached.
        """
        known = self._known
        if known is not None and not refresh and self.clock() - self._looked < self._fresh:
            return known
        if not self._lock.acquire(blocking=known is None or refresh) and known is not None:
            return known
        try:
            began = self.clock()
            lake, before = open_lake(self.place), self._known
            stamps = manifests(lake)
            self._read(lake, stamps)
            runs = {run: summary for run, (_, summary) in self._seen.items() if summary is not None}
            failed = tried(lake, {run.audit for run in runs.values()})
            unreadable = (run.encode("utf-8", "backslashreplace").decode() for run in self._seen if run not in runs)
            index = Known(lake, runs, stamps, tuple(sorted(unreadable)), self._log.read(lake), failed)
            same_log = before is not None and index.log is before.log and len(runs) == len(before.runs)
            if (
                before is not None
                and same_log
                and all(before.runs.get(run) is summary for run, summary in runs.items())
            ):
                # nothing changed: keep the cached properties, which are no fields of the class
                names = before.__dict__.keys() - Known.__dataclass_fields__.keys()
                index.__dict__.update({name: before.__dict__[name] for name in names})
            self._known = index
            self._looked = self.clock()
            self._fresh = max(FRESH_SECONDS, _SHARE * (self._looked - began))
            return index
        finally:
            self._lock.release()

    def _read(self, lake: Lake, stamps: Mapping[str, Stamp]) -> None:
        """Read what was written since, and what could not be read before."""
        unchanged = {
            run: cached for run, cached in self._seen.items() if cached[1] is not None and stamps.get(run) == cached[0]
        }
        seen: dict[str, tuple[Stamp, Summary | None]] = {}
        for run, stamp in stamps.items():
            seen[run] = unchanged.get(run) or (stamp, None)
            if run not in unchanged:
                with suppress(EvenhandError, OSError):
                    seen[run] = (stamp, read_summary(lake, run))
        self._seen = seen
