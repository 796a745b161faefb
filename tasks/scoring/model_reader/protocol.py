"""Messages and limits of the restricted process that reads a model."""

import ctypes
import json
import os
import resource
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tasks.numerics.arrays import Floats

# --------------------------------------------------------------------------------------------------------------------
# Imports without what a library imports only because it is installed: half of the time and memory of a process.


class Without:
    """Makes some packages appear as not installed."""

    def __init__(self, names: tuple[str, ...]) -> None:
        """Keep their names."""
        self.names = names

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> None:  # noqa: ARG002
        """Leave every other module to the finders that come after this one.

        Raises:
            ModuleNotFoundError: It is one of the packages.
        """
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(name)


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Import as if these packages were not installed; afterwards they can be imported."""
    finder = Without(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


# --------------------------------------------------------------------------------------------------------------------
# What a process that reads a stranger's file may use, set by itself before it sees the file.
#
# Scope: limits of the operating system. Where it knows one of them not (macOS has no limit of addresses and no
# namespaces), it is left out, and docs/security.md says so.


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
    """Enter a separate network namespace, which reaches nothing; returns whether the system allows it."""
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


# --------------------------------------------------------------------------------------------------------------------
# Messages between the audit and the process that reads a model: a few words and arrays of numbers, never objects.
#
# A message is its length in eight bytes, and arrays in the safetensors format with the words in its metadata: to read
# it runs nothing, and unpacks nothing. The order in which an array lies in memory is kept, as sums depend on it.


HEAD = 8


@dataclass(frozen=True)
class Frame:
    """A message."""

    header: Mapping[str, Any]
    """Words and numbers, as JSON has them."""
    arrays: Mapping[str, Floats] = field(default_factory=dict)

    def packed(self) -> bytes:
        """The message as bytes, with its length before it."""
        columns = [name for name, array in self.arrays.items() if array.flags.f_contiguous and array.ndim == 2]
        arrays = {
            name: np.ascontiguousarray(array.T if name in columns else array) for name, array in self.arrays.items()
        }
        content = save(arrays, {"said": json.dumps({"said": self.header, "columns": columns})})
        return len(content).to_bytes(HEAD, "little") + content

    @classmethod
    def of(cls, content: bytes) -> "Frame":
        """The message of bytes without their length.

        Raises:
            ValueError: They are none.
        """
        try:
            arrays = load(content)
            length = int.from_bytes(content[:HEAD], "little")
            words = json.loads(json.loads(content[HEAD : HEAD + length])["__metadata__"]["said"])
            header, columns = words["said"], words["columns"]
            return cls(header, {name: array.T if name in columns else array for name, array in arrays.items()})
        except (SafetensorError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"no message: {error!r}") from error


def received(stream: BinaryIO) -> Frame | None:
    """The next message of a stream; None at its end.

    Raises:
        ValueError: It is none.
    """
    head = stream.read(HEAD)
    return Frame.of(stream.read(int.from_bytes(head, "little"))) if len(head) == HEAD else None


# --------------------------------------------------------------------------------------------------------------------
# Writes a question into a process and reads its answer, robust against the process's behaviour in the meantime.


PIECE = 2**16
MOST, TIMES = 2**24, 4
"""Bytes of an answer, and for each byte of its question: an array of halves comes back as doubles."""


class SilentError(Exception):
    """The process ended, or closed what it writes to."""


class TooLateError(SilentError, TimeoutError):
    """The process does not answer."""


def exchanged(process: "subprocess.Popen[bytes]", question: bytes, seconds: float) -> bytes:
    """The answer to a question, without its length.

    Args:
        process: all of its three streams are pipes; what comes on the third is read and forgotten.
        question: with its length.
        seconds: by the clock.

    Raises:
        SilentError: there is none.
    """
    until, remaining, answer = time.monotonic() + seconds, memoryview(question), bytearray()
    most = MOST + TIMES * len(question)
    into, out, other = process.stdin, process.stdout, process.stderr
    assert into is not None and out is not None and other is not None  # noqa: S101, PT018 it was started with pipes
    with selectors.DefaultSelector() as ready:
        ready.register(into, selectors.EVENT_WRITE)
        ready.register(out, selectors.EVENT_READ)
        ready.register(other, selectors.EVENT_READ)
        os.set_blocking(into.fileno(), False)
        while len(answer) < HEAD + int.from_bytes(answer[:HEAD], "little"):
            events = ready.select(max(until - time.monotonic(), 0.0))
            if not events:
                raise TooLateError
            for key, _ in events:
                if key.fileobj is into:
                    try:
                        remaining = remaining[os.write(key.fd, remaining[:PIECE]) :]
                    except BlockingIOError:
                        pass
                    except BrokenPipeError:  # no process reads the question any more
                        remaining = remaining[:0]
                    if not remaining:
                        ready.unregister(into)
                    continue
                piece = os.read(key.fd, PIECE)
                if key.fileobj is out:
                    answer += piece
                    if not piece or len(answer) > most:
                        raise SilentError
                elif not piece:
                    ready.unregister(other)
    return bytes(answer[HEAD:])
