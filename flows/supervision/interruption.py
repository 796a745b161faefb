"""Ends the command within five seconds of Ctrl-C, SIGTERM or SIGHUP, together with its child processes.

SIGTERM while stages are computed lets the one at work end first (``processes.leaving``), within EVENHAND_GRACE. Else:

1. The handler records the request, and raises KeyboardInterrupt once in the main thread.
2. If a library swallows that, the next check between or inside stages raises it again
   (``tasks.pipeline.stop_request``).
3. If the process still runs after a grace period, or at a second Ctrl-C, a thread kills its children and ends it. The
   lake is then as after ``kill -9``: the next run recovers it.

The thread reads the pipe that Python's C handler writes to. So it depends neither on the main thread, which may be
inside a library for long, nor on a handler that a library installs over ours. Only a library that holds the
interpreter's lock for seconds can delay it. Scope: the command. Prefect handles the signals of a flow run that a worker
started.
"""

import contextvars
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import NoReturn

import psutil

from flows.supervision.processes.leaving import (
    ask_to_leave,
    finishing,
    grace_seconds,
    in_command,
    leaving,
)
from tasks.pipeline.stop_request import request_stop, stop_requested

GRACE_SECONDS = 3.0
"""Time to end in order: to tell Prefect, and to remove drafts and locks."""
_LAST_SECONDS = 1.0
"""Time for the message and for telling Prefect once the grace period is over."""
_LOOK_SECONDS = 0.5
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_MESSAGE = b"evenhand: stopped; what was finished is kept, and the same command goes on from there\n"
_CLEAR_LINE_AND_SHOW_CURSOR = b"\r\x1b[2K\x1b[?25h"


@dataclass
class _Process:
    """State of this process."""

    watched: bool = False
    began: bool = False
    """Whether the command's own code is running; until then nothing needs a grace period."""
    raises: bool = False
    """Whether the handler raises. It raises once: a second exception would interrupt the clean-up."""
    signal: int = 0
    """The first one that came; 0 before."""
    unsaid: bool = True
    message: bytes = _MESSAGE
    overdue: bool = False
    """Whether what might end first after SIGTERM has had its time."""
    last_acts: list[Callable[[], object]] = field(default_factory=list)


_process = _Process()
_saying = threading.Lock()


def watch_signals() -> None:
    """Start to watch, once. Ignored signals stay ignored, as nohup and the shell's background jobs rely on that."""
    if _process.watched:
        return
    _process.watched = True
    in_command(True)
    pipe, end = os.pipe()
    os.set_blocking(end, False)
    signal.set_wakeup_fd(end, warn_on_full_buffer=False)
    for each in _SIGNALS:
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, _handle)
    sys.unraisablehook = _report_unraisable
    os.register_at_fork(after_in_child=_leave_to_python)
    threading.Thread(target=_watch, args=(pipe,), name="signals", daemon=True).start()


def stoppable(command: Callable[[], int]) -> int:
    """Run a command.

    Returns:
        Its exit code; 128 and the signal's number if it was asked to stop, however it ended.
    """
    watch_signals()
    _process.began = _process.raises = True
    try:
        code = command()
        _process.raises = False
    except BaseException:
        if not (stop_requested() or leaving()):
            raise
        code = 0
    _process.raises = False
    if not (stop_requested() or leaving()):
        return code
    _say()
    _kill_children()
    return _exit_code()


def say_only_stopped() -> None:
    """Say at the end that the command stopped, and no more: a server computes nothing that could go on."""
    _process.message = b"evenhand: stopped\n"


@contextmanager
def errors_of_stopping() -> Iterator[None]:
    """Replace whatever ends the block after a request by KeyboardInterrupt: errors then follow from the request.

    Raises:
        KeyboardInterrupt: the process was asked to stop.
    """
    try:
        yield
    except BaseException as error:
        if stop_requested():
            raise KeyboardInterrupt from error
        raise


@contextmanager
def at_forced_end(act: Callable[[], object]) -> Iterator[None]:
    """Call ``act`` if the process is ended by force inside the block. It has a second, and runs in another thread."""
    registered = _in_this_context(act)
    _process.last_acts.append(registered)
    try:
        yield
    finally:
        _process.last_acts.remove(registered)


@contextmanager
def shielded_children() -> Iterator[None]:
    """Block Ctrl-C in the processes that this block starts.

    A terminal sends Ctrl-C to every process of a command. The parent ends these, and needs some of them until then.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _in_this_context(act: Callable[[], object]) -> Callable[[], object]:
    """Prefect keeps its settings in context variables, which another thread does not see."""
    context = contextvars.copy_context()
    return lambda: context.run(act)


@contextmanager
def heeding_term() -> Iterator[None]:
    """Handle SIGTERM as a command does inside the block, where Prefect has put its own handler in the way."""
    ours = _process.watched and threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, _handle) if ours else None
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, before)


def _handle(number: int, _: FrameType | None) -> None:
    if _may_end_first(number):
        _leave(number)
        return
    _request(number)
    if _process.raises:
        _process.raises = False
        raise KeyboardInterrupt


def _report_unraisable(lost: "sys.UnraisableHookArgs") -> None:
    """Say nothing of a KeyboardInterrupt that a callback swallowed: the request is recorded."""
    if not (stop_requested() and lost.exc_type is KeyboardInterrupt):
        sys.__unraisablehook__(lost)


def _request(number: int) -> None:
    _process.signal = _process.signal or number
    request_stop()


def _may_end_first(number: int) -> bool:
    return number == signal.SIGTERM and finishing() and not (_process.overdue or stop_requested())


def _leave(number: int) -> None:
    _process.signal = _process.signal or number
    ask_to_leave()


def _exit_code() -> int:
    return 128 + _process.signal


def _watch(pipe: int) -> NoReturn:
    while (number := os.read(pipe, 1)[0]) not in _SIGNALS:
        pass  # one of a library's own, such as SIGALRM
    if _may_end_first(number):
        _leave(number)
        _wait_for_end(pipe)
        if not stop_requested():  # the main thread may be where only an exception ends it
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
    _request(number)
    if _process.began:
        _wait_for_second(pipe)
    acts = threading.Thread(target=_act, daemon=True)
    acts.start()
    acts.join(_LAST_SECONDS)
    _kill_children()
    os._exit(_exit_code())


def _wait_for_end(pipe: int) -> None:
    """Wait until what is at work has had its time, or somebody presses Ctrl-C; who is done has a moment to leave."""
    until = time.monotonic() + grace_seconds()
    while (left := until - time.monotonic()) > 0:
        if not finishing():
            until = min(until, time.monotonic() + GRACE_SECONDS)
        ready = select.select([pipe], [], [], min(left, _LOOK_SECONDS))[0]
        if (ready and os.read(pipe, 1)[0] == signal.SIGINT) or stop_requested():
            break
    _process.overdue = True


def _wait_for_second(pipe: int) -> None:
    """Wait for a second Ctrl-C, at most the grace period. Prefect sends itself a second SIGTERM, so that is none."""
    until = time.monotonic() + GRACE_SECONDS
    while select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
        if os.read(pipe, 1)[0] == signal.SIGINT:
            return


def _act() -> None:
    """In a thread of its own, as a terminal or a server may not answer."""
    _say()
    for act in reversed(_process.last_acts):
        with suppress(Exception):
            act()


def _say() -> None:
    """Print the message once, past Python's streams: another thread may hold their locks."""
    with _saying:
        unsaid, _process.unsaid = _process.unsaid, False
    if unsaid:
        with suppress(OSError):
            os.write(2, (_CLEAR_LINE_AND_SHOW_CURSOR if os.isatty(2) else b"") + _process.message)


def _kill_children() -> None:
    """Kill every descendant process but multiprocessing's tracker: it ends by itself and frees what the others held."""
    for _ in range(5):  # one may just be starting another
        children = [child for child in psutil.Process().children(recursive=True) if not _is_tracker(child)]
        if not children:
            return
        for child in children:
            with suppress(psutil.Error):
                child.kill()
        psutil.wait_procs(children, timeout=0.5)


def _is_tracker(process: psutil.Process) -> bool:
    try:
        return any("multiprocessing.resource_tracker" in word for word in process.cmdline())
    except psutil.Error:
        return False


def _leave_to_python() -> None:
    """In a forked child: its signals are its own, and not its parent's."""
    in_command(False)
    signal.set_wakeup_fd(-1)
    for each in _SIGNALS:
        if signal.getsignal(each) is _handle:
            signal.signal(each, signal.default_int_handler if each == signal.SIGINT else signal.SIG_DFL)
