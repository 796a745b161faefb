"""Runs steps side by side: each as soon as what it reads is there, those that take longest first.

A step that fails does not end the others: what runs goes on to its end and is kept, nothing new starts, and the first
error in the order of the plan is raised. Scope: the order. Who computes a step: ``workers``.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from flows.concurrency.graph import waits_for
from flows.supervision.processes.leaving import end_if_leaving, leaving
from schemas.artifact import Partition
from schemas.errors import EvenhandError
from tasks.pipeline.stop_request import raise_if_stopped
from tasks.plan import Inputs, Step, inputs

log = logging.getLogger("evenhand")

_LOOK_SECONDS = 0.2
"""Between two looks at whether the command was asked to stop."""


class Running(Protocol):
    """A step at work, as the futures of Prefect and of Python are."""

    def add_done_callback(self, fn: Callable[[Any], object], /) -> None:
        """Call when it ends."""

    def result(self) -> Any:
        """Its result, or its error raised."""


Start = Callable[[int, Inputs], Running]
"""Starts the step at a place on its artifacts."""
Told = Callable[[int, Partition], None]
"""Told of the step at a place when it ended; an error that it raises counts as one of that step."""


@dataclass
class Schedule:
    """Steps of an audit that run side by side."""

    steps: Sequence[Step]
    seconds: Sequence[float | None]
    """What each takes by earlier runs; steps of which nothing is known go first, in the order of the plan."""
    jobs: int
    restored: Callable[[Any], Partition] = lambda result: result
    """Makes a partition of what a future gives."""
    done: dict[int, Partition] = field(default_factory=dict)
    errors: dict[int, Exception] = field(default_factory=dict)

    def run(self, start: Start, told: Told) -> list[Partition]:
        """Run all steps; the partitions in the order of the plan.

        Raises:
            Exception: the first error in the order of the plan.
        """
        running: dict[int, Running] = {}
        ended: SimpleQueue[int] = SimpleQueue()
        while True:
            raise_if_stopped()
            for at in self.ready(running)[: self.jobs - len(running)]:
                running[at] = start(at, inputs(self.steps[at], self._before(at)))
                running[at].add_done_callback(partial(_put, ended, at))
            if not running:
                end_if_leaving()
                break
            at = _next(ended)
            self._keep(at, running.pop(at), told)
        if self.errors:
            raise self._first_error()
        return [self.done[at] for at in sorted(self.done)]

    def ready(self, running: "dict[int, Running]") -> list[int]:
        """Steps that may start, longest first; none after an error, or where this process leaves."""
        if self.errors or leaving():
            return []
        waits = waits_for(self.steps)
        free = [at for at in range(len(self.steps)) if at not in self.done and at not in running]
        return sorted((at for at in free if waits[at] <= self.done.keys()), key=self._urgency)

    def _urgency(self, at: int) -> tuple[float, int]:
        seconds = self.seconds[at]
        return (float("-inf") if seconds is None else -seconds), at

    def _before(self, at: int) -> list[Partition]:
        """What earlier steps wrote, in the order of the plan: a step reads the same at any number of jobs."""
        return [self.done[each] for each in sorted(self.done) if each < at]

    def _keep(self, at: int, ended: Running, told: Told) -> None:
        try:
            self.done[at] = self.restored(ended.result())
            told(at, self.done[at])
        except Exception as error:
            self.errors[at] = error

    def _first_error(self) -> Exception:
        first, *others = sorted(self.errors)
        for at in others:
            log.info("stage %s failed, too: %s", self.steps[at].name, _words(self.errors[at]))
        log.info("stage %s failed; %d of %d stages are kept", self.steps[first].name, len(self.done), len(self.steps))
        return self.errors[first]


def _words(error: Exception) -> str:
    """The message of an error of ours; of others the kind, since their words may hold values of rows."""
    return str(error).split("\n")[0] if isinstance(error, EvenhandError) else type(error).__name__


def _put(ended: "SimpleQueue[int]", at: int, _: object) -> None:
    ended.put(at)


def _next(ended: "SimpleQueue[int]") -> int:
    while True:
        try:
            return ended.get(timeout=_LOOK_SECONDS)
        except Empty:
            raise_if_stopped()
