"""Index of the runs of a lake, by their summaries: read at the start, then where a manifest was written since.

It is looked at anew at most every 5 seconds, and after an entry of one's own. A run that is half written or half
removed is left out; one whose summary cannot be read is counted.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from flows.runs.summary import Summary, read_summary
from flows.runs.trust.notes import Remediation, remediations
from flows.runs.trust.review import UNSIGNED, state_of
from flows.serving.index.entries import Logged, LogReader
from schemas.errors import EvenhandError
from tasks.lake.store import Lake, open_lake

FRESH_SECONDS: Final = 5


@dataclass(frozen=True)
class Known:
    """The runs and the log at one moment."""

    lake: Lake
    """Opened for this moment: what it found intact it does not read again."""
    runs: Mapping[str, Summary]
    written: Mapping[str, int]
    """When the manifest of each was written."""
    unreadable: tuple[str, ...]
    """Runs whose files cannot be read."""
    log: Logged

    @cached_property
    def newest_first(self) -> tuple[Summary, ...]:
        """All runs; the order is the log's, as clocks are set back."""
        numbers = self.log.numbers()
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
        found: dict[str, Summary] = {}
        for run in reversed(self.newest_first):
            stem = run.run.rpartition("-")[0]
            if stem not in found or run.run in self.protected or found[stem].run not in self.protected:
                found[stem] = run
        return frozenset(run.run for run in found.values())

    @cached_property
    def signed(self) -> Mapping[str, str]:
        """Run -> the state of its review, such as approved, but for unsigned runs; none of a log that is broken."""
        if self.log.broken:
            return {}
        published = {entry.run: entry.manifest_sha256 for entry in self.log.entries if entry.event == "run published"}
        states = {}
        for run in {entry.run for entry in self.log.entries if entry.event == "signed off"}:
            state = state_of(self.log.of(run), published.get(run, ""))
            if state != UNSIGNED:
                states[run] = state
        return states

    @cached_property
    def open(self) -> tuple[Remediation, ...]:
        """Remediations that are open."""
        return tuple(remediations(self.log.entries))

    def audits(self) -> dict[str, list[Summary]]:
        """Audit -> its runs, newest first."""
        found: dict[str, list[Summary]] = {}
        for run in self.newest_first:
            found.setdefault(run.audit, []).append(run)
        return dict(sorted(found.items()))

    def before(self, run: str) -> Summary | None:
        """The run of the same audit and partition whose year comes before, else the one that this one supersedes."""
        one = self.runs[run]
        numbers = self.log.numbers()
        same = [each for each in self.newest_first if (each.audit, each.partition) == (one.audit, one.partition)]
        superseded = [each for each in same if each.year == one.year and numbers.get(each.run, 0) < numbers.get(run, 0)]
        years = [each for each in same if each.year < one.year and each.run in self.valid]
        earlier = max(years, key=lambda each: each.year, default=None)
        return superseded[0] if superseded else earlier


@dataclass
class Index:
    """Keeps what is known of a lake."""

    place: str
    clock: Callable[[], float] = time.monotonic
    _seen: dict[str, tuple[int, Summary | None]] = field(default_factory=dict)
    _log: LogReader = field(default_factory=LogReader)
    _known: Known | None = None
    _looked: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def known(self, *, anew: bool = False) -> Known:
        """What is known, not older than 5 seconds; another request that looks just now is not waited for.

        Args:
            anew: whether to look even if that was a moment ago, as after an entry of one's own.

        Raises:
            InfrastructureError: the lake cannot be reached.
        """
        held = self._known
        if held is not None and not anew and self.clock() - self._looked < FRESH_SECONDS:
            return held
        if not self._lock.acquire(blocking=held is None or anew) and held is not None:
            return held
        try:
            self._known = held = self._look()
            self._looked = self.clock()
            return held
        finally:
            self._lock.release()

    def _look(self) -> Known:
        lake = open_lake(self.place)
        runs = [path.split("/")[1] for path in lake.storage.glob("runs/*/manifest.json")]
        self._seen = {run: self._seen[run] for run in runs if run in self._seen}
        for run in runs:
            written = _written(lake, run)
            if run not in self._seen or self._seen[run][0] != written or self._seen[run][1] is None:
                self._seen[run] = (written, _summary(lake, run))
        found = {run: summary for run, (_, summary) in self._seen.items() if summary is not None}
        times = {run: written for run, (written, _) in self._seen.items()}
        return Known(lake, found, times, tuple(_without(self._seen, found)), self._log.read(lake))


def _written(lake: Lake, run: str) -> int:
    """When the manifest was written; 0 where it is just being removed."""
    try:
        return lake.storage.modified(f"runs/{run}/manifest.json")
    except OSError:
        return 0


def _summary(lake: Lake, run: str) -> Summary | None:
    try:
        return read_summary(lake, run)
    except (EvenhandError, OSError):
        return None


def _without(seen: Iterable[str], found: Mapping[str, Summary]) -> list[str]:
    return sorted(run.encode("utf-8", "backslashreplace").decode() for run in seen if run not in found)
