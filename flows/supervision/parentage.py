"""Processes that end when the one that started them is gone: killed, it could not end its children itself.

The id of the parent is looked at twice a second. Linux's PR_SET_PDEATHSIG is bound to the thread that started the
child, and fires when that thread ends. Workers of stages wait for their parent in ``flows.concurrency.workers``.

As a program it runs another module that ends so: ``python -P parentage.py PID MODULE ...``. It is called by its path,
as that module may run where this package is not found; and with ``-P``, as no file of its folder is a module of that
program. A command may also fork such a process: what both need is then loaded once.
"""

import gc
import os
import runpy
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from subprocess import TimeoutExpired
from typing import Final, NoReturn

_LOOK_SECONDS = 0.5
_LAST_SECONDS = 3.0
"""Between SIGTERM to what the process itself started, and its end."""
_GONE = 5
SIGNALS: Final = "signals"
"""Name of the thread that waits for signals; each command has it."""
_WAIT_SECONDS = 0.02
_ERRORS = 2
"""Number of the last standard stream."""
PROGRESS: Final = "progress"
"""Name of threads that show how far a command is: they load no library."""


def ended_with(module: str) -> list[str]:
    """The words that run a module of Python as a program which ends with this process."""
    return [sys.executable, "-P", __file__, str(os.getpid()), module]


def end_with(parent: int) -> None:
    """End this process, and what it started, once it is no longer a child of ``parent``."""
    threading.Thread(target=_watch, args=(parent,), name="parent", daemon=True).start()


class Forked:
    """A process that was forked from this one, with methods of ``subprocess.Popen``."""

    def __init__(self, pid: int) -> None:
        """Of a running child of this process."""
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code, or a signal's number below 0; None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; its exit code.

        Raises:
            TimeoutExpired: it still runs after ``timeout`` seconds.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if until is not None and time.monotonic() > until:
                raise TimeoutExpired(str(self.pid), timeout or 0.0)
            time.sleep(_WAIT_SECONDS)
        return code

    def terminate(self) -> None:
        """Ask it to end."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        if self.poll() is None:  # else its number may be another's
            os.kill(self.pid, number)


def may_fork() -> bool:
    """Whether this process is a command that may be forked: no thread of it holds a lock that the child would need.

    A library that another thread loads would stay locked in the child. macOS allows no fork without exec.
    """
    names = {thread.name for thread in threading.enumerate() if thread is not threading.current_thread()}
    return sys.platform == "linux" and SIGNALS in names and names <= {SIGNALS, PROGRESS}


def forked(work: Callable[[], object]) -> Forked:
    """A process forked from this one, which does some work, and ends after it or with this one.

    It has this process's modules, standard streams and environment, but none of its locks, pipes and exit handlers.
    """
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _work(work, parent)
    return Forked(pid)


def _work(work: Callable[[], object], parent: int) -> NoReturn:
    """Work in the child. It never returns to the frames of its parent, which would let go of what the parent holds."""
    code = 1
    try:
        _let_go()
        end_with(parent)
        work()
        code = 0
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _let_go() -> None:
    """Put an empty file in the place of each open one: a later close of an old number then closes nothing of ours."""
    empty = os.open(os.devnull, os.O_RDWR)
    for number in [int(name) for name in os.listdir("/proc/self/fd")]:  # noqa: PTH208 a server need not load pathlib
        if number > _ERRORS and number != empty:
            with suppress(OSError):  # the one of the list itself
                os.fstat(number)
                os.dup2(empty, number, inheritable=False)
    # a thread of the parent may have held the locks of its streams
    sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, _ERRORS))  # noqa: SIM115
    gc.freeze()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    import psutil  # a server need not load it before

    with suppress(psutil.Error):  # the process to which the children would report is gone
        children = psutil.Process().children(recursive=True)
        for child in children:
            with suppress(psutil.Error):
                child.send_signal(signal.SIGKILL)
        psutil.wait_procs(children, timeout=_LAST_SECONDS)
    os._exit(_GONE)


if __name__ == "__main__":
    _, parent_pid, name, *rest = sys.argv
    end_with(int(parent_pid))
    sys.argv = [name, *rest]
    gc.set_threshold(100_000, 50, 50)  # libraries that load leave little to collect: a sixth of the start of a server
    runpy.run_module(name, run_name="__main__", alter_sys=True)
