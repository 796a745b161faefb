"""Leaves in order after SIGTERM: no new stage begins, and the one at work may end within EVENHAND_GRACE.

A command notes SIGTERM in ``flows.supervision.interruption``. A flow run that a worker started gets SIGUSR1 from
`evenhand worker`, as Prefect takes SIGTERM there for a cancelled run; it passes the word on to the processes of its
years. Whoever is about to begin something long asks ``end_if_leaving`` first.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

import psutil

from schemas.errors import InfrastructureError
from tasks.pipeline.stop_request import request_stop

GRACE = "EVENHAND_GRACE"
GRACE_SECONDS = 90.0
LEFT = 128 + signal.SIGTERM
"""Exit code of a process that left."""
WORD = signal.SIGUSR1
"""What a worker sends a flow run, and this one the processes of its years."""


class _Leaving:
    asked = False
    finishing = 0
    """Blocks that may end before the process leaves."""
    in_command = False
    """Whether a command ends by an exception, which has more to do; other processes end at once."""
    last_acts: list[Callable[[], object]] = []  # noqa: RUF012 of the process, as all here


def grace_seconds() -> float:
    """Seconds that the stage at work has to end after SIGTERM.

    Raises:
        InfrastructureError: EVENHAND_GRACE is no number of seconds.
    """
    return seconds_given(GRACE, GRACE_SECONDS)


def seconds_given(variable: str, default: float) -> float:
    """Seconds that an environment variable says.

    Raises:
        InfrastructureError: it says no number of seconds.
    """
    given = os.environ.get(variable, "").strip()
    try:
        seconds = float(given or default)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds < float("inf"):
        raise InfrastructureError(f"{variable} is {given!r}; expected seconds, such as {default:g}")
    return seconds


def ask_to_leave() -> None:
    """Record that this process leaves, and tell the processes of its years; a signal handler may call this."""
    first, _Leaving.asked = not _Leaving.asked, True
    if first:
        for child in multiprocessing.active_children():
            if child.pid is not None:
                with suppress(OSError):
                    os.kill(child.pid, WORD)


def leaving() -> bool:
    """Whether this process leaves."""
    return _Leaving.asked


def finishing() -> bool:
    """Whether something is at work that may end first."""
    return _Leaving.finishing > 0


def in_command(given: bool) -> None:
    """Say whether this process is that of a command."""
    _Leaving.in_command = given


@contextmanager
def may_finish() -> Iterator[None]:
    """A block whose stages may end after SIGTERM."""
    _Leaving.finishing += 1
    try:
        yield
    finally:
        _Leaving.finishing -= 1


@contextmanager
def leaves_on_word(act: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Heed the word of a worker inside the block; ``act`` is done before the process leaves there."""
    _Leaving.last_acts.append(act)
    heeds = threading.current_thread() is threading.main_thread() and not _Leaving.in_command
    before = signal.signal(WORD, _handle) if heeds else None
    try:
        yield
    finally:
        if heeds:
            signal.signal(WORD, before)
        _Leaving.last_acts.remove(act)


def end_if_leaving() -> None:
    """End here if this process leaves.

    Raises:
        KeyboardInterrupt: it is a command, which ends in order.
    """
    if not _Leaving.asked:
        return
    request_stop()
    if _Leaving.in_command:
        raise KeyboardInterrupt
    _end()


def _handle(_: int, __: FrameType | None) -> None:
    ask_to_leave()


def _end() -> NoReturn:
    """End without unwinding: Prefect would report a crash, and whoever takes the run up again tells it better."""
    for act in reversed(_Leaving.last_acts):
        with suppress(Exception):
            act()
    with suppress(psutil.Error):
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                child.kill()
    os._exit(LEFT)
