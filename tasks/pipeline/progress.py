"""Progress of long work: which stage of how many, which step of how many, and the time left by earlier runs.

Stages and their steps tell it here, and the command shows it (``flows.cli.terminal``): a live line on a terminal, some
lines elsewhere. Where nothing shows it, as with ``--json`` or in a worker, there is no output. What a step has to say
of itself, such as a loss, goes to the log at the level DEBUG.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from rich.console import Console
from rich.logging import RichHandler

from tasks.pipeline.stop_request import raise_if_stopped

log = logging.getLogger("evenhand")

YEARS = "years"
"""The one stage of a back-fill, whose steps are years."""
Tell = Callable[[str], None]
"""Called after each step, with what there is to say of it. The work stops there if that was requested."""


@dataclass
class Course:
    """Where a run stands."""

    stages: Sequence[str]
    seconds: Sequence[float | None]
    """What each stage takes by earlier runs; None where there is none."""
    clock: Callable[[], float] = time.monotonic
    only: str = ""
    """Work whose steps are counted; empty: that of any stage."""
    number: int = 0
    """Of the stage at work, from 1; 0 before the first."""
    work: str = ""
    done: int = 0
    total: int = 0
    """Steps of the work at hand; 0 where the stage has none."""
    since: float = field(init=False)

    def __post_init__(self) -> None:
        """The first stage begins now, as far as is known."""
        self.since = self.clock()

    def began(self, number: int) -> None:
        """Go on to a stage."""
        self.number, self.work, self.done, self.total, self.since = number, "", 0, 0, self.clock()

    def stepped(self, work: str, done: int, total: int) -> None:
        """Record a step of the stage at work."""
        if self.only and work != self.only:
            return
        self.work, self.done, self.total = work, done, total

    @property
    def stage(self) -> str:
        """The stage at work, with its number where there are several."""
        if not self.number:
            return "starting"
        of = f"{self.number} of {len(self.stages)} " if len(self.stages) > 1 else ""
        return f"{of}{self.stages[self.number - 1]}"

    def words(self) -> str:
        """One line, such as "8 of 13 mediate, 4 of 10, about 1 min left"."""
        steps = f", {self.done} of {self.total}" if self.total else ""
        return f"{self.stage}{steps}, {self._time()}"

    def _time(self) -> str:
        left = self.left()
        return f"for {duration(self.clock() - self.since)}" if left is None else f"about {duration(left)} left"

    def left(self) -> float | None:
        """Seconds left by earlier runs, and by the steps of the stage at work; None where a stage to come has none."""
        to_come = self.seconds[self.number :]
        if any(each is None for each in to_come):
            return None
        own = self._left_of_stage()
        return None if own is None else own + sum(each or 0.0 for each in to_come)

    def _left_of_stage(self) -> float | None:
        if not self.number:
            return 0.0
        passed, expected = self.clock() - self.since, self.seconds[self.number - 1]
        if expected is not None and passed <= expected:
            return expected - passed
        # longer than before: by its own steps, else by nothing
        by_steps = self.done and self.total and passed / self.done * (self.total - self.done)
        return by_steps or (None if expected is None else 0.0)


def duration(seconds: float) -> str:
    """Seconds in words as exact as a forecast is: 10 s, 40 s, 3 min, 2.5 h."""
    if seconds < 55:
        return f"{max(10, 10 * round(seconds / 10))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


class Display(Protocol):
    """Shows the course of a run."""

    def opened(self, course: Course) -> None:
        """Show a run from now on."""

    def began(self) -> None:
        """Show that a stage began."""

    def ended(self, said: str) -> None:
        """Show that it ended, with what is to say of it."""

    def closed(self) -> None:
        """Show nothing any more."""


class _Shown:
    display: Display | None = None
    course: Course | None = None


def show_on(display: Display | None) -> None:
    """Show runs of this process; None: not at all."""
    _Shown.display, _Shown.course = display, None


@contextmanager
def course_of(stages: Sequence[str], seconds: Sequence[float | None], only: str = "") -> Iterator[None]:
    """Show a run of these stages while it lasts.

    Args:
        stages: their names, in order.
        seconds: what each took in earlier runs.
        only: work whose steps are counted, where others go on in threads beside it; empty: any.
    """
    display = _Shown.display
    if display is None:
        yield
        return
    course = _Shown.course = Course(stages, seconds, only=only)
    display.opened(course)
    try:
        yield
    finally:
        _Shown.course = None
        display.closed()


def stage_began(number: int) -> None:
    """Tell that the stage with this number, from 1, begins."""
    if _Shown.course is not None and _Shown.display is not None:
        _Shown.course.began(number)
        _Shown.display.began()


def stage_ended(said: str) -> None:
    """Tell that it ended, with what is to say of it."""
    if _Shown.course is not None and _Shown.display is not None:
        _Shown.display.ended(said)


def stepped(work: str, done: int, total: int) -> None:
    """Tell that the stage at work has done some of its steps."""
    if _Shown.course is not None:
        _Shown.course.stepped(work, done, total)


@contextmanager
def progress(total: int, of: str) -> Iterator[Tell]:
    """Tell how many of ``total`` steps are done.

    Args:
        total: steps.
        of: what they are, in a word or two.
    """
    done = 0

    def tell(said: str) -> None:
        nonlocal done
        done += 1
        stepped(of, done, total)
        log.debug("%s %d of %d: %s", of, done, total, said)
        raise_if_stopped()

    stepped(of, done, total)
    yield tell


def terminal() -> Console | None:
    """The terminal that the log is written to; a second one would write into its bars."""
    consoles = (handler.console for handler in log.handlers if isinstance(handler, RichHandler))
    return next((console for console in consoles if console.is_terminal), None)
