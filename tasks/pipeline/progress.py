"""Progress of long work, and the request to stop."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from rich.console import Console
from rich.logging import RichHandler

# --------------------------------------------------------------------------------------------------------------------
# A request to stop, which long work checks between its steps.
#
# The command records the request on a signal (``flows.supervision.shutdown``). A library that calls back into Python
# may swallow Python's own KeyboardInterrupt; a recorded request remains for the next check.


class _Request:
    made = False
    raised = False
    """Whether a check has raised."""


def request_stop() -> None:
    """Record the request. A signal handler may call this at any moment, so it takes no lock."""
    _Request.made = True


def stop_requested() -> bool:
    """Whether a stop of the process was requested."""
    return _Request.made


def stop_raised() -> bool:
    """Whether a check has raised for the request, so that clean-up is on its way."""
    return _Request.raised


def raise_if_stopped() -> None:
    """Stop here if a stop of the process was requested.

    Raises:
        KeyboardInterrupt: the process was asked to stop. It is no ``Exception``, so ordinary error handling lets it
            pass, and Prefect knows it.
    """
    if _Request.made:
        _Request.raised = True
        raise KeyboardInterrupt


# --------------------------------------------------------------------------------------------------------------------
# Progress of long work: which stage of how many, which step of how many, and the time left by earlier runs.
#
# Stages and their steps tell it here, and the command shows it (``flows.cli.terminal``): a live line on a terminal,
# some lines elsewhere. Where nothing shows it, as with ``--json`` or in a worker, there is no output. What a step has
# to say of itself, such as a loss, goes to the log at the level DEBUG.


log = logging.getLogger("evenhand")

YEARS = "years"
"""The one stage of a back-fill, whose steps are years."""
PARTITIONS = "partitions"
"""The same, where its steps are partitions of years."""
_MINUTE, _HOUR = 60, 3600
_PACE_SECONDS = 20.0
"""Seconds by which a run has to be ahead or behind before its pace counts for much."""
START_SECONDS, END_SECONDS, STEP_SECONDS = 10.0, 3.0, 1.0
"""What an audit takes until its first stage begins, after its last one, and around each where the shipped costs tell,
as those are of the computation alone: about, of audits of 500 rows on two cores."""
_DAYS = 2
"""From so many days on, a duration is in days."""
Tell = Callable[[str], None]
"""Called after each step, with what there is to say of it. The work stops there if that was requested."""


@dataclass
class AtWork:
    """A stage at work."""

    number: int
    """From 1."""
    since: float
    work: str = ""
    done: int = 0
    total: int = 0
    """Steps of the work at hand; 0 where the stage has none."""


@dataclass
class Course:
    """Progress of a run. Stages run one after another, or several at a time (``beside``)."""

    stages: Sequence[str]
    seconds: Sequence[float | None]
    """What each stage takes by earlier runs; None where there is none."""
    clock: Callable[[], float] = time.monotonic
    only: str = ""
    """Work whose steps are counted; empty: that of any stage."""
    beside: bool = False
    """Whether several stages run at a time: a stage then ends only when that is told."""
    by_table: bool = False
    """Whether seconds are those of the shipped costs, as no earlier run tells them."""
    at_work: dict[int, AtWork] = field(default_factory=dict)
    """By their numbers."""
    begun: set[int] = field(default_factory=set)
    """Numbers of the stages that began."""

    def __post_init__(self) -> None:
        """The first stage begins now, as far as is known."""
        self._opened = self.clock()

    def began(self, number: int) -> None:
        """Go on to a stage, or start one in parallel with the others."""
        self.begun.add(number)
        running = dict(self.at_work) if self.beside else {}
        self.at_work = {**running, number: AtWork(number, self.clock())}

    def ended(self, number: int) -> None:
        """Remove a stage that ran in parallel with others."""
        if self.beside:
            self.at_work = {other: stage for other, stage in self.at_work.items() if other != number}

    def stepped(self, work: str, done: int, total: int, number: int | None = None) -> None:
        """Record a step of a stage at work; of the last one that began where no number is given."""
        current = self.at_work.get(number or max(self.at_work, default=0))
        if current is not None and self.only in ("", work):
            current.work, current.done, current.total = work, done, total

    @property
    def stage(self) -> str:
        """The stage that began last, with its number where there are several."""
        return self.named(next(reversed(self.at_work))) if self.at_work else "starting"

    def named(self, number: int) -> str:
        """A stage, such as "8 of 13 mediate"; its name alone where there are no others."""
        return f"{number} of {len(self.stages)} {self.stages[number - 1]}" if len(self.stages) > 1 else self.stages[0]

    def lines(self) -> list[str]:
        """A line a stage at work, such as "8 of 13 mediate, 4 of 10, about 1 min left"."""
        if not (self.beside and self.at_work):
            return [f"{self.stage}{_share(self._last())}, {self._time()}"]
        at_work = [self.at_work[number] for number in sorted(self.at_work)]
        return [f"{self.named(running.number)}{_share(running)}, {self._passed(running.since)}" for running in at_work]

    def words(self) -> str:
        """The lines in one."""
        return "\n".join(self.lines())

    def long(self, seconds: float) -> list[str]:
        """The lines of stages that have been at work so long."""
        since = [self.at_work[number].since for number in sorted(self.at_work)]
        timed_lines = zip(self.lines(), since, strict=False) if since else ()
        return [line for line, began in timed_lines if self.clock() - began >= seconds]

    def _last(self) -> AtWork | None:
        return self.at_work[next(reversed(self.at_work))] if self.at_work else None

    def _passed(self, since: float) -> str:
        return f"for {duration(self.clock() - since)}"

    def _time(self) -> str:
        remaining, last = self.left(), self._last()
        since = last.since if last else self._opened
        return self._passed(since) if remaining is None else f"about {duration(coarse(remaining))} left"

    def left(self) -> float | None:
        """Seconds left by earlier runs, and by the steps of the stage at work; None where a stage to come has none.

        Scope: stages that run one after another.
        """
        last = self._last()
        to_come = self.seconds[last.number if last else 0 :]
        if any(seconds is None for seconds in to_come):
            return None
        remaining = self._left_of(last) if last else 0.0
        return None if remaining is None else remaining + sum(seconds or 0.0 for seconds in to_come)

    def remaining(self) -> float | None:
        """Seconds left of any stages, as if they ran one after another at the pace so far; None where one is unknown.

        The pace is that of the forecast at first. It follows what the run takes, as a busy machine is slower and
        several stages at a time are faster. What a late stage has left its steps tell, else nothing.
        """
        forecast = self.forecast()
        if forecast is None:
            return None
        seconds, now = [duration or 0.0 for duration in self.seconds], self.clock()
        before = 0.0 if self.begun else max(START_SECONDS - self.passed(), 0.0)
        to_come = sum(duration for number, duration in enumerate(seconds, 1) if number not in self.begun)
        left_of = {number: seconds[number - 1] - (now - stage.since) for number, stage in list(self.at_work.items())}
        rest_seconds = before + to_come + sum(max(rest, 0.0) for rest in left_of.values()) + END_SECONDS
        pace = (self.passed() + _PACE_SECONDS) / (forecast - rest_seconds + _PACE_SECONDS)
        late = [stage for number, stage in list(self.at_work.items()) if left_of.get(number, 0.0) < 0]
        return rest_seconds * pace + sum(self._left_of(stage) or 0.0 for stage in late)

    def passed(self) -> float:
        """Seconds since the run was shown first."""
        return self.clock() - self._opened

    def forecast(self) -> float | None:
        """Seconds that the whole run takes by its forecast; None where that of a stage is unknown."""
        known_seconds = [seconds for seconds in self.seconds if seconds is not None]
        return START_SECONDS + sum(known_seconds) + END_SECONDS if len(known_seconds) == len(self.seconds) else None

    def _left_of(self, stage: AtWork) -> float | None:
        passed, expected = self.clock() - stage.since, self.seconds[stage.number - 1]
        if expected is not None and passed <= expected:
            return expected - passed
        # longer than before: by its own steps, else by nothing
        by_steps = stage.done and stage.total and passed / stage.done * (stage.total - stage.done)
        return by_steps or (None if expected is None else 0.0)


def _share(stage: AtWork | None) -> str:
    return f", {stage.done} of {stage.total}" if stage is not None and stage.total else ""


def duration(seconds: float) -> str:
    """Full seconds, minutes, hours or days in words: 59 s, 7 min, 1 h 30 min, and from two days on 2 days."""
    if seconds < _MINUTE:
        return f"{max(0, int(seconds))} s"
    minutes, hours = int(seconds // _MINUTE), int(seconds // _HOUR)
    if hours >= _DAYS * 24:
        return f"{hours // 24:,} days"
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {minutes % 60} min" if minutes % 60 else f"{hours} h"


def coarse(seconds: float) -> float:
    """Seconds as exact as a forecast is: in tens up to a minute, and then in minutes."""
    unit = 10 if seconds < _MINUTE - 5 else _MINUTE
    return max(10, unit * round(seconds / unit))


class Display(Protocol):
    """Shows the course of a run."""

    def opened(self, course: Course) -> None:
        """Show a run from now on."""

    def began(self) -> None:
        """Show that a stage began."""

    def ended(self, stage: str, message: str) -> None:
        """Show that it ended, with what is to say of it."""

    def closed(self) -> None:
        """Show nothing any more."""


class _Shown:
    display: Display | None = None
    course: Course | None = None
    relay: Callable[[str, int, int], object] | None = None


def show_on(display: Display | None) -> None:
    """Show runs of this process; None: not at all."""
    _Shown.display, _Shown.course = display, None


def relay_to(tell: Callable[[str, int, int], object] | None) -> None:
    """Relay steps to a function, as a worker process does that computes for a command; None: stop relaying."""
    _Shown.relay = tell


@contextmanager
def course_of(
    stages: Sequence[str], seconds: Sequence[float | None], only: str = "", *, beside: bool = False
) -> Iterator[None]:
    """Show a run of these stages while it lasts.

    Args:
        stages: their names, in order.
        seconds: what each took in earlier runs.
        only: work whose steps are counted, where others go on in threads beside it; empty: any.
        beside: whether several stages run at a time.
    """
    display = _Shown.display
    if display is None:
        yield
        return
    course = _Shown.course = Course(stages, seconds, only=only, beside=beside)
    display.opened(course)
    try:
        yield
    finally:
        _Shown.course = None
        display.closed()


def stage_began(number: int) -> None:
    """Report that the stage with this number, from 1, begins."""
    if _Shown.course is not None and _Shown.display is not None:
        _Shown.course.began(number)
        _Shown.display.began()


def stage_ended(message: str, number: int | None = None) -> None:
    """Report that a stage ended, with its outcome; without a number: the one that began last."""
    course, display = _Shown.course, _Shown.display
    if course is not None and display is not None:
        display.ended(course.stage if number is None else course.named(number), message)
        if number is not None:
            course.ended(number)


def forecast(seconds: Sequence[float]) -> None:
    """Report what stages compute by the shipped costs, where no earlier run is; what is held takes no time."""
    course = _Shown.course
    is_unknown = course is not None and (course.by_table or None in course.seconds)
    if course is not None and is_unknown and len(course.seconds) == len(seconds):
        pairs = zip(course.seconds, seconds, strict=True)
        course.seconds = [0.0 if now == 0.0 else STEP_SECONDS + computed for now, computed in pairs]
        course.by_table = True


def stepped(work: str, done: int, total: int, number: int | None = None) -> None:
    """Report that a running stage has done some of its steps; without a number: the one that began last."""
    if _Shown.relay is not None:
        _Shown.relay(work, done, total)
    if _Shown.course is not None:
        _Shown.course.stepped(work, done, total, number)


@contextmanager
def progress(total: int, of: str) -> Iterator[Tell]:
    """Report how many of ``total`` steps are done.

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
