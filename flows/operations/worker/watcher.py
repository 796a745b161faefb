"""Watches the runs on a lake while a worker lives: marks and resumes those whose process died, and mends states.

It looks at the lake every few seconds, and asks the server only where something is found. Of several workers on one
lake one looks at a time.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial

from httpx import HTTPError

from flows.concurrency.spans import trace_dead
from flows.operations.worker.memory import Memory
from flows.outcome.deaths import see_to_dead
from flows.supervision.leftovers import clear_leftovers
from flows.supervision.presence import Presence, dead, taken
from flows.supervision.zombies import Burial, Marked
from tasks.lake.store import Lake

log = logging.getLogger("evenhand")

LOOK_SECONDS = 3.0
_NEVER_BEGUN_SECONDS = 60.0
"""Between two questions about runs that a worker took and never began."""
_REPORTED_SECONDS = 30.0
"""A death that Prefect's worker has not reported by then, it will not."""
_DONE_SECONDS = 6.0
"""Without a process for a run that Prefect's worker reported: it is done with it. It ends by an error where it is given
a run that it is not done with, as while a hook tells of the crash."""
_TURN = "watch.lock"


def _nobody() -> frozenset[str]:
    return frozenset()


@dataclass
class Watcher:
    """The watch of one worker."""

    lake: Lake
    busy: Callable[[], Collection[str]] = _nobody
    """Ids of the flow runs for which Prefect's worker has a process."""
    idle: dict[str, float] = field(default_factory=dict)
    """Id of a flow run that Prefect's worker reported -> since when it has no process for it."""
    memory: Memory = field(default_factory=Memory)
    since: dict[str, float] = field(default_factory=dict)
    """Name of a dead run's record -> when it was found first, by a monotonic clock."""
    asked: float = field(default_factory=time.monotonic)
    """When the server was asked last."""
    failed: str = ""
    """The error of the last look that had one, which is told once."""
    away: bool = False
    """Whether the server did not answer at the last look."""

    def run(self, ended: threading.Event) -> None:
        """Look until the worker ends."""
        while not ended.wait(LOOK_SECONDS):
            self.look()

    def look(self) -> list[Marked]:
        """One look; an error is logged, since a worker goes on without its watch."""
        try:
            self.memory.look(self.lake)
            found = self._see_to_dead()
            self.away = False
        except HTTPError as error:
            if not self.away:
                log.warning("the server does not answer (%s); dead runs are seen to when it does", type(error).__name__)
            self.away = True
            return []
        except Exception as error:
            if repr(error) != self.failed:
                log.exception("the watch of dead runs failed; it goes on")
            self.failed = repr(error)
            return []
        for marked in found:
            log.warning("%s", words_of(marked))
        return found

    def _see_to_dead(self) -> list[Marked]:
        gone = dead(self.lake)
        self.since = {each.name: self.since.get(each.name, time.monotonic()) for each in gone}
        if not (gone or time.monotonic() - self.asked > _NEVER_BEGUN_SECONDS):
            return []
        with taken(self.lake.storage.local / "locks" / _TURN) as ours:
            if not ours:
                return []
            self.asked = time.monotonic()
            remembered = partial(self.memory.words, self.lake)
            found = see_to_dead(self.lake, Burial(resume=True, ripe=self._ripe, remembered=remembered))
            for marked in found:
                trace_dead(marked)
            for draft in clear_leftovers(self.lake) if gone else ():
                log.warning("removed the unfinished draft %s", draft.name)
        return found

    def _ripe(self, presence: Presence, known: bool) -> bool:
        """Whether a death may be acted on: the server knows of it, or nobody will tell it any more."""
        now = time.monotonic()
        if presence.run in self.busy():
            self.idle.pop(presence.run, None)
            return False
        if presence.stopped or not known:
            return presence.stopped or now - self.since.get(presence.name, now) > _REPORTED_SECONDS
        return now - self.idle.setdefault(presence.run, now) > _DONE_SECONDS


def words_of(marked: Marked) -> str:
    """What was done with a dead run, as a worker says it."""
    if marked.mended:
        return f"run {marked.run}: its state was mended from the lake"
    done = "taken up again" if marked.resumed else "given up" * marked.given_up
    return f"run {marked.run} was dead ({marked.why})" + (f"; {done}" if done else "")
