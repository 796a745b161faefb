"""Ends a process when the one that started it is gone: killed, it could not end its children itself.

The id of the parent is looked at twice a second. Linux's PR_SET_PDEATHSIG is bound to the thread that started the
child, and fires when that thread ends. Workers of stages wait for their parent in ``flows.concurrency.workers``.

As a program it runs another module that ends so: ``python -P parentage.py PID MODULE ...``. It is called by its path,
as that module may run where this package is not found; and with ``-P``, as no file of its folder is a module of that
program.
"""

import gc
import os
import runpy
import signal
import sys
import threading
import time
from contextlib import suppress

_LOOK_SECONDS = 0.5
_LAST_SECONDS = 3.0
"""Between SIGTERM to what the process itself started, and its end."""
_GONE = 5


def ended_with(module: str) -> list[str]:
    """The words that run a module of Python as a program which ends with this process."""
    return [sys.executable, "-P", __file__, str(os.getpid()), module]


def end_with(parent: int) -> None:
    """End this process, and what it started, once it is no longer a child of ``parent``."""
    threading.Thread(target=_watch, args=(parent,), name="parent", daemon=True).start()


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
