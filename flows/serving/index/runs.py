"""Index of the runs of a lake, by their summaries: read at the start, then where a manifest was written since.

It is looked at anew at most every 5 seconds, less often where a look takes long, and after an entry of one's own. A run
that is half written or half removed is left out; one whose summary cannot be read is counted.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from flows.runs.summary import Summary, read_summary
from flows.serving.index import written
from flows.serving.index.entries import LogReader
from flows.serving.index.known import Known
from flows.serving.index.tried import tried
from flows.serving.index.written import Stamp
from schemas.errors import EvenhandError
from tasks.lake.store import Lake, open_lake

__all__ = ["FRESH_SECONDS", "Index", "Known"]

FRESH_SECONDS: Final = 5
_SHARE: Final = 20
"""A look that takes long comes less often: so many times as long as it took lie between two."""


@dataclass
class Index:
    """Keeps what is known of a lake."""

    place: str
    clock: Callable[[], float] = time.monotonic
    _seen: dict[str, tuple[Stamp, Summary | None]] = field(default_factory=dict)
    _log: LogReader = field(default_factory=LogReader)
    _known: Known | None = None
    _looked: float = 0.0
    _fresh: float = FRESH_SECONDS
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def known(self, *, anew: bool = False) -> Known:
        """What is known, of 5 seconds ago at most where a look is short; no request waits for another one's look.

        Args:
            anew: whether to look even if that was a moment ago, as after an entry of one's own.

        Raises:
            InfrastructureError: the lake cannot be reached.
        """
        held = self._known
        if held is not None and not anew and self.clock() - self._looked < self._fresh:
            return held
        if not self._lock.acquire(blocking=held is None or anew) and held is not None:
            return held
        try:
            began = self.clock()
            self._known = held = self._look()
            self._looked = self.clock()
            self._fresh = max(FRESH_SECONDS, _SHARE * (self._looked - began))
            return held
        finally:
            self._lock.release()

    def _look(self) -> Known:
        """What is there now; what follows from runs and log is kept where neither changed."""
        lake, before = open_lake(self.place), self._known
        stamps = written.manifests(lake)
        self._read(lake, stamps)
        runs = {run: summary for run, (_, summary) in self._seen.items() if summary is not None}
        failed = tried(lake, {run.audit for run in runs.values()})
        made = Known(lake, runs, stamps, tuple(_without(self._seen, runs)), self._log.read(lake), failed)
        if before is not None and made.log is before.log and _are_same(runs, before.runs):
            made.__dict__.update(_made_of(before))
        return made

    def _read(self, lake: Lake, stamps: Mapping[str, Stamp]) -> None:
        """Read what was written since, and what could not be read before."""
        kept = {run: seen for run, seen in self._seen.items() if seen[1] is not None and stamps.get(run) == seen[0]}
        self._seen = {run: kept.get(run) or (stamp, _summary(lake, run)) for run, stamp in stamps.items()}


def _are_same(one: Mapping[str, Summary], other: Mapping[str, Summary]) -> bool:
    """Whether no run was read anew, and none went."""
    return len(one) == len(other) and all(other.get(run) is summary for run, summary in one.items())


def _made_of(known: Known) -> dict[str, object]:
    """What was made of runs and log so far: cached properties, which fields of the class are not."""
    return {name: made for name, made in known.__dict__.items() if name not in Known.__dataclass_fields__}


def _summary(lake: Lake, run: str) -> Summary | None:
    try:
        return read_summary(lake, run)
    except (EvenhandError, OSError):
        return None


def _without(seen: Iterable[str], found: Mapping[str, Summary]) -> list[str]:
    return sorted(run.encode("utf-8", "backslashreplace").decode() for run in seen if run not in found)
