"""Orderly end of a process: signals, SIGTERM, shortage of memory."""

import contextvars
import multiprocessing
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import parent_process
from types import FrameType
from typing import Final, NoReturn

import psutil

from flows.supervision.parentage import SIGNALS
from schemas.errors import InfrastructureError
from schemas.terms import ExitCode
from tasks.pipeline.progress import request_stop, stop_raised, stop_requested

# --------------------------------------------------------------------------------------------------------------------
# Whether processes have ended, and how to end one with all that it started.
#
# A process that ended counts at once, also while its parent has not collected it: Prefect's worker is halted while runs
# leave, and collects none. psutil's ``wait_procs`` waits for such a zombie until its time is over.


_LOOK_SECONDS = 0.1


def has_ended(process: psutil.Process) -> bool:
    """Whether a process is gone, or a zombie."""
    with suppress(psutil.NoSuchProcess):
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    return True


def wait_for(processes: Collection[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait until all of them have ended, at most so long; returns those that have not."""
    until = time.monotonic() + seconds
    while running := [process for process in processes if not has_ended(process)]:
        if time.monotonic() >= until:
            break
        time.sleep(_LOOK_SECONDS)
    return running


def kill_family(process: psutil.Process, seconds: float) -> None:
    """Kill a process and its descendants, which are listed before, and wait for their end with a time limit."""
    family = [process]
    with suppress(psutil.Error):
        family += process.children(recursive=True)
    for member in family:
        with suppress(psutil.Error):
            member.kill()
    wait_for(family, seconds)


# --------------------------------------------------------------------------------------------------------------------
# Ends a process that ran out of memory before it hangs: Prefect waits for ever for a thread that could not start.
#
# A process that computes years for another one ends at once, and its year is done once more in a new one. A flow run of
# a worker has a minute to try again, or to say how it ended. Then the kernel ends it, for which no memory is needed,
# and the worker takes it up again like a run that was killed.


LAST_SECONDS: Final = 60
FLOW_RUN: Final = "PREFECT__FLOW_RUN_ID"
"""Prefect's worker names the flow run by it to the process that it starts."""


def of_worker() -> bool:
    """Whether this process was started by a worker for one flow run."""
    return bool(os.environ.get(FLOW_RUN))


def lacks_memory(error: BaseException) -> bool:
    """Whether an error is for want of memory, as ``tasks.pipeline.resources`` reports it."""
    return isinstance(error, MemoryError) or isinstance(error.__cause__, MemoryError)


def is_replaceable() -> bool:
    """Whether this process computes one thing at a time for another one, which can start a new one in its place."""
    return parent_process() is not None and threading.current_thread() is threading.main_thread()


@contextmanager
def ends_without_memory() -> Iterator[None]:
    """End this process where the block had no memory, if it is replaceable; the block has recorded its error."""
    try:
        yield
    except Exception as error:
        if lacks_memory(error) and is_replaceable():
            os._exit(ExitCode.INFRASTRUCTURE)
        raise


def limit_life(error: BaseException) -> None:
    """Give a flow run of a worker that had no memory a minute; until ``lift_limit`` or its end."""
    if lacks_memory(error) and of_worker():
        signal.alarm(LAST_SECONDS)


def lift_limit() -> None:
    """Take the limit back: the run goes on."""
    if of_worker():
        signal.alarm(0)


# --------------------------------------------------------------------------------------------------------------------
# Leaves in order after SIGTERM: no new stage begins, and the one at work may end within EVENHAND_GRACE.
#
# A command notes SIGTERM in ``flows.supervision.shutdown``. A flow run that a worker started gets SIGUSR1 from
# `evenhand worker`, as Prefect takes SIGTERM there for a cancelled run; it passes the word on to the processes of its
# years. Code that is about to begin something long calls ``end_if_leaving`` first.


GRACE = "EVENHAND_GRACE"
GRACE_SECONDS = 90.0
LEFT = 128 + signal.SIGTERM
"""Exit code of a process that left."""
WORD = signal.SIGUSR1
"""What a worker sends a flow run, and this one the processes of its years."""


class _Leaving:
    requested = False
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
    """Seconds by an environment variable.

    Raises:
        InfrastructureError: it says no number of seconds.
    """
    text = os.environ.get(variable, "").strip()
    try:
        seconds = float(text or default)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds < float("inf"):
        raise InfrastructureError(f"{variable} is {text!r}; expected seconds, such as {default:g}")
    return seconds


def ask_to_leave() -> None:
    """Record that this process leaves, and inform the processes of its years; a signal handler may call this."""
    first, _Leaving.requested = not _Leaving.requested, True
    if first:
        for child in multiprocessing.active_children():
            if child.pid is not None:
                with suppress(OSError):
                    os.kill(child.pid, WORD)


def leaving() -> bool:
    """Whether this process leaves."""
    return _Leaving.requested


def finishing() -> bool:
    """Whether something is at work that may end first."""
    return _Leaving.finishing > 0


def in_command(is_command: bool) -> None:
    """Say whether this process is that of a command."""
    _Leaving.in_command = is_command


@contextmanager
def may_finish() -> Iterator[None]:
    """A block in which the current stages may end after SIGTERM."""
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
    before = signal.signal(WORD, lambda _, __: ask_to_leave()) if heeds else None
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
    if not _Leaving.requested:
        return
    request_stop()
    if _Leaving.in_command:
        raise KeyboardInterrupt
    # End without unwinding: Prefect would report a crash, and the process that resumes the run reports it better.
    for act in reversed(_Leaving.last_acts):
        with suppress(Exception):
            act()
    with suppress(psutil.Error):
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                child.kill()
    os._exit(LEFT)


# --------------------------------------------------------------------------------------------------------------------
# Ends the command within five seconds of Ctrl-C, SIGTERM or SIGHUP, together with its child processes.
#
# SIGTERM while stages are computed lets the one at work end first (``processes.leaving``), within EVENHAND_GRACE. Else:
#
# 1. The handler records the request, and raises KeyboardInterrupt once in the main thread. A library that is being
#    loaded is loaded first: Prefect and pydantic print an exception in the middle of it as a fault of theirs.
# 2. If a library swallows that, the next check between or inside stages raises it again
#    (``tasks.pipeline.progress``).
# 3. If the process still runs after a grace period, or at a second Ctrl-C, a thread kills its children and ends it. The
#    lake is then as after ``kill -9``: the next run recovers it.
#
# The thread reads the pipe that Python's C handler writes to. So it depends neither on the main thread, which may be
# inside a library for long, nor on a handler that a library installs over ours. Only a library that holds the
# interpreter's lock for seconds can delay it. Scope: the command. Prefect handles the signals of a flow run that a
# worker started.


INTERRUPTION_GRACE_SECONDS = 3.0
"""Time to end in order: to report to Prefect, and to remove drafts and locks."""
_LAST_SECONDS = 1.0
"""Time for the message and for telling Prefect once the grace period is over."""
_INTERRUPTION_LOOK_SECONDS = 0.5
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
    is_put_off: bool = False
    """Whether the handler waits with its exception until a library is loaded."""
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
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _handle_signal)
    sys.unraisablehook = _report_unraisable
    os.register_at_fork(after_in_child=_leave_to_python)
    threading.Thread(target=_watch, args=(pipe,), name=SIGNALS, daemon=True).start()


def stoppable(command: Callable[[], int]) -> int:
    """Run a command.

    Returns:
        Its exit code; 128 and the signal's number if it was asked to stop, however it ended.
    """
    watch_signals()
    _process.began = _process.raises = True
    try:
        code = command()
        _process.raises = _process.is_put_off = False
    except BaseException:
        if not (stop_requested() or leaving()):
            raise
        code = 0
    _process.raises = _process.is_put_off = False
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
    """After a stop request, replace any error of the block by KeyboardInterrupt, since the request caused it.

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
    context = contextvars.copy_context()  # of Prefect's settings, which another thread does not see
    registered = partial(context.run, act)
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


@contextmanager
def heeding_term() -> Iterator[None]:
    """Handle SIGTERM as a command does inside the block, where Prefect has put its own handler in the way."""
    ours = _process.watched and threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, _handle_signal) if ours else None
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, before)


def _handle_signal(number: int, frame: FrameType | None) -> None:
    if _may_end_first(number):
        _leave(number)
        return
    _request(number)
    _process.is_put_off = _process.raises and _is_loading(frame)
    if _process.raises and not _process.is_put_off:
        _process.raises = False
        raise KeyboardInterrupt


def _is_loading(frame: FrameType | None) -> bool:
    """Whether a frame is inside an import."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _raise_after_loading() -> None:
    """Raise what the handler put off, once the main thread has loaded its library."""
    main = threading.main_thread().ident or 0
    if _process.is_put_off and not stop_raised() and not _is_loading(sys._current_frames().get(main)):
        signal.pthread_kill(main, signal.SIGTERM)


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
        until = time.monotonic() + grace_seconds()
        while (seconds := until - time.monotonic()) > 0:
            if not finishing():
                until = min(until, time.monotonic() + INTERRUPTION_GRACE_SECONDS)
            ready = select.select([pipe], [], [], min(seconds, _INTERRUPTION_LOOK_SECONDS))[0]
            if (ready and os.read(pipe, 1)[0] == signal.SIGINT) or stop_requested():
                break
        _process.overdue = True
        if not stop_requested():  # the main thread may be where only an exception ends it
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
    _request(number)
    if _process.began:
        # wait for a second Ctrl-C, at most the grace period; Prefect sends itself a second SIGTERM, so that is none
        until = time.monotonic() + INTERRUPTION_GRACE_SECONDS
        while (seconds := until - time.monotonic()) > 0:
            ready = select.select([pipe], [], [], min(seconds, _LOOK_SECONDS))[0]
            if ready and os.read(pipe, 1)[0] == signal.SIGINT:
                break
            _raise_after_loading()
    acts = threading.Thread(target=_act, daemon=True)
    acts.start()
    acts.join(_LAST_SECONDS)
    _kill_children()
    os._exit(_exit_code())


def _act() -> None:
    """Run the last acts in a separate thread, since a terminal or a server may not answer."""
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
        children = []
        for child in psutil.Process().children(recursive=True):
            command: list[str] = []
            with suppress(psutil.Error):
                command = child.cmdline()
            if not any("multiprocessing.resource_tracker" in word for word in command):
                children.append(child)
        if not children:
            return
        for child in children:
            with suppress(psutil.Error):
                child.kill()
        psutil.wait_procs(children, timeout=0.5)


def _leave_to_python() -> None:
    """In a forked child: its signals are its own, and not its parent's."""
    in_command(False)
    signal.set_wakeup_fd(-1)
    for number in _SIGNALS:
        if signal.getsignal(number) is _handle_signal:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
