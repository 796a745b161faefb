"""What is done to a soak at random: the server, the worker and runs at work are killed, and the worker is asked to end.

In the first half of the dates all of it; then runs alone, so that server and worker live long enough for their memory
to be watched. A run is killed twice at most: a third death is told, and the run is not taken up again.
"""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from flows.bench.work.soak.services import Services
from flows.supervision.presence import Presence, alive
from flows.supervision.zombies import MOST_RESUMED
from tasks.lake.store import Lake

SERVER, WORKER, TERM, RUN = "server killed", "worker killed", "SIGTERM to the worker", "run killed"
_AWAY_SECONDS = 8.0
_BETWEEN_SECONDS = (50.0, 110.0)
_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Act:
    """Something that was done."""

    what: str
    time: datetime
    run: str = ""
    """Id of the flow run at work."""
    code: int | None = None
    """With which the worker left."""


@dataclass
class Shaking:
    """Acts, as they come."""

    services: Services
    seed: int
    done: list[Act] = field(default_factory=list)
    memory: list[tuple[float, dict[str, float]]] = field(default_factory=list)
    """Monotonic time -> MB of server and worker, while only runs are killed."""
    deaths: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Seed the choice."""
        self._random = random.Random(self.seed)  # noqa: S311 no secret

    def until(self, calm: datetime, end: datetime, tell: Callable[[], object]) -> None:
        """Shake until ``end``, from ``calm`` on runs alone.

        Args:
            calm: from then on server and worker live.
            end: no act after it.
            tell: called twice a second.
        """
        while (now := datetime.now(UTC)) < end:
            pause = self._random.uniform(*_BETWEEN_SECONDS)
            self._wait(min(pause, (end - now).total_seconds()), tell, watched=now > calm)
            left = (end - datetime.now(UTC)).total_seconds()
            if left > 0:
                quiet = datetime.now(UTC) > calm
                self._act(RUN if quiet else self._random.choice((SERVER, WORKER, TERM, RUN)), min(left, pause), tell)

    def _wait(self, seconds: float, tell: Callable[[], object], *, watched: bool) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            tell()
            if watched:
                self.memory.append((time.monotonic(), self.services.memory_mb()))
            time.sleep(_LOOK_SECONDS)

    def _act(self, what: str, patience: float, tell: Callable[[], object]) -> None:
        """Do it to a run at work if there is one within the time; nothing where the run has died twice."""
        victim = self._at_work(patience, tell)
        if victim is None and what == RUN:
            return
        if victim is not None and what in (RUN, WORKER) and self.deaths[victim.run] >= MOST_RESUMED:
            return
        run, code = victim.run if victim else "", None
        self.deaths[run] += what in (RUN, WORKER)
        if what == RUN and victim is not None:
            with suppress(ProcessLookupError):
                os.kill(victim.pid, signal.SIGKILL)
        elif what == SERVER:
            self.services.kill_server()
            time.sleep(_AWAY_SECONDS)
            self.services.start_server()
        else:
            code = self.services.leave() if what == TERM else None
            if what == WORKER:
                self.services.kill_worker()
            self.services.start_worker()
        self.done.append(Act(what, datetime.now(UTC), run, code))

    def _at_work(self, seconds: float, tell: Callable[[], object]) -> Presence | None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for each in alive(Lake(self.services.lake)):
                if each.stage and each.outcome is None:
                    return each
            tell()
            time.sleep(_LOOK_SECONDS)
        return None
