"""Writes a question into a process and reads its answer, whatever the process does in the meantime."""

import os
import selectors
import subprocess
import time
from contextlib import suppress

from tasks.scoring.model_reader.frames import HEAD

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
    until, left, answer = time.monotonic() + seconds, memoryview(question), bytearray()
    most = MOST + TIMES * len(question)
    into, out, other = process.stdin, process.stdout, process.stderr
    assert into is not None and out is not None and other is not None  # noqa: S101, PT018 it was started with pipes
    with selectors.DefaultSelector() as ready:
        ready.register(into, selectors.EVENT_WRITE)
        ready.register(out, selectors.EVENT_READ)
        ready.register(other, selectors.EVENT_READ)
        os.set_blocking(into.fileno(), False)
        while not _whole(answer):
            events = ready.select(max(until - time.monotonic(), 0.0))
            if not events:
                raise TooLateError
            for key, _ in events:
                if key.fileobj is into:
                    left = _written(into.fileno(), left)
                    if not left:
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


def _written(into: int, left: memoryview) -> memoryview:
    """What is left of a question once a piece of it is written; nothing where nobody reads any more."""
    with suppress(BlockingIOError):
        try:
            return left[os.write(into, left[:PIECE]) :]
        except BrokenPipeError:
            return left[:0]
    return left


def _whole(answer: bytearray) -> bool:
    return len(answer) >= HEAD and len(answer) >= HEAD + int.from_bytes(answer[:HEAD], "little")
