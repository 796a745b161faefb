"""Writes crash files: stack frames and exception types of an internal error, without values of rows.

Frames hold no local values. Messages of exceptions may quote a cell, so they are left out unless the class is ours.
"""

import os
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

from schemas.errors import EvenhandError

CRASH_FILES = "crash-*.txt"
"""The files' names, as a pattern."""


def report_crash(error: BaseException, arguments: Sequence[str]) -> str:
    """Write the traceback to a file that its owner alone can read; returns the sentence for the user.

    Args:
        error: that was not caught.
        arguments: the command line, which may name the lake.
    """
    fault = f"this is {fault_words(error)}"
    try:
        text = "\n".join(_lines(error))
        lakes = [after for before, after in pairwise(arguments) if before == "--lake"]
        lakes += [argument.removeprefix("--lake=") for argument in arguments if argument.startswith("--lake=")]
        lake = Path((lakes or [os.environ.get("EVENHAND_LAKE", "data/lake")])[-1])
        # the system's folder where the command has no lake, or one at a URI
        folder = lake / "tmp" if lake.is_dir() else Path(tempfile.gettempdir())
        folder.mkdir(mode=0o700, exist_ok=True)
        file = folder / f"crash-{uuid4().hex[:12]}.txt"
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(opened, "w", encoding="utf-8", errors="backslashreplace") as output:
            output.write(f"{text}\n")
    except OSError:
        return f"{fault}; its traceback could not be written anywhere; please report it"
    return f"{fault}; traceback in {file}; please report it with that file, which holds no data"


def fault_words(error: BaseException) -> str:
    """An internal error in words: its type and its place, without its message."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"a fault of ours: {type(error).__name__}{where}"


def _lines(error: BaseException) -> Iterator[str]:
    yield f"evenhand, Python {sys.version.split()[0]}, {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    for fault in reversed(causes):  # as Python has it: the first one first
        yield "\nTraceback (most recent call last):"
        frames = getattr(fault, "frames", [])  # of a worker process, whose traceback does not come along
        yield "".join([*frames, *traceback.format_list(traceback.extract_tb(fault.__traceback__))]).rstrip()
        kind = f"{type(fault).__module__}.{type(fault).__qualname__}"
        yield f"{kind}: {fault}" if isinstance(fault, EvenhandError) else f"{kind}: (message left out)"
