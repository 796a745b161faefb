"""What a process that reads a stranger's file may use, set by itself before it sees the file.

Scope: limits of the operating system. Where it knows one of them not (macOS has no limit of addresses and no
namespaces), it is left out, and docs/security.md says so.
"""

import ctypes
import os
import resource
import threading
import time
from contextlib import suppress
from pathlib import Path

ADDRESSES = 3 * 10**9
"""Bytes beside four times the file's size and what the libraries took."""
READING, BATCH = 60, 600
"""Seconds of the processor for reading a file, and for one batch of rows."""
PATIENCE = 10
"""Seconds by the clock for each of the processor: a process that only waits ends too."""

NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
"""CLONE_NEWUSER and CLONE_NEWNET of Linux, which Python names from 3.12."""


def confine(size: int) -> None:
    """Give up network, files and core dumps, and limit memory for a file of ``size`` bytes."""
    leave_network()
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_FSIZE, 0)
    limit(resource.RLIMIT_AS, reserved() + ADDRESSES + 4 * size)
    allow_seconds(READING)


def limit(kind: int, most: int) -> None:
    """Set a limit that cannot be raised again, where the system has it and none is lower."""
    with suppress(ValueError, OSError):
        _, hard = resource.getrlimit(kind)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def allow_seconds(seconds: int) -> None:
    """Let the process use so many seconds of the processor more; then the system ends it."""
    with suppress(ValueError, OSError):
        used, (_, hard) = time.process_time(), resource.getrlimit(resource.RLIMIT_CPU)
        most = int(used) + 1 + seconds
        resource.setrlimit(resource.RLIMIT_CPU, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def reserved() -> int:
    """Addresses that the process took so far, by its libraries: of torch with CUDA some ten times as many."""
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return 0


def leave_network() -> bool:
    """Move into a network of its own, which reaches nothing; whether the system lets it."""
    with suppress(OSError, AttributeError):
        unshare = ctypes.CDLL(None, use_errno=True).unshare
        return any(unshare(flags) == 0 for flags in (NEW_NETWORK, NEW_USER | NEW_NETWORK))
    return False


def end_with(parent: int) -> None:
    """End this process once the one that started it is gone, even in the middle of a batch."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
