"""Memory that an audit may take, EVENHAND_MEMORY or else four fifths of what is free; and words of a stage without any.

In a container the limit of its control group counts, which the machine's free memory does not tell.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from schemas.errors import EvenhandError, InfrastructureError

NAME = "EVENHAND_MEMORY"
SHARE = 0.8
"""Of the free memory: the rest is for the system and for what grows meanwhile."""

_UNITS = {"MB": 1.0, "GB": 1_000.0, "MIB": 2**20 / 1e6, "GIB": 2**30 / 1e6}
_GROUP = Path("/sys/fs/cgroup")
_MB = 1e6


def allowed_mb() -> float:
    """What an audit may take in all, in MB.

    Raises:
        InfrastructureError: EVENHAND_MEMORY is no size.
    """
    given = os.environ.get(NAME, "").strip()
    return SHARE * free_mb() if not given else size_mb(given)


def size_mb(text: str) -> float:
    """MB of a size such as `3GB` or `800 MiB`.

    Raises:
        InfrastructureError: it is none.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]+)", text.strip(), re.IGNORECASE)
    if found is None or found[2].upper() not in _UNITS or not float(found[1]):
        raise InfrastructureError(f"{NAME} is {text!r}; expected a size with its unit, such as 3GB or 800MB")
    return float(found[1]) * _UNITS[found[2].upper()]


def free_mb() -> float:
    """Memory that is free on this machine, or within the limit of this process's container if that is less."""
    machine = float(psutil.virtual_memory().available)
    return min(machine / _MB, _left_in_group())


def _left_in_group() -> float:
    """What a control group (version 2) leaves; without a limit, or without a group, infinite."""
    try:
        limit, used = ((_GROUP / f"memory.{name}").read_text(encoding="ascii").strip() for name in ("max", "current"))
    except OSError:
        return float("inf")
    return (int(limit) - int(used)) / _MB if limit.isdecimal() else float("inf")


@contextmanager
def telling_short_memory(what: str) -> Iterator[None]:
    """Tell that a stage or a year lacks memory, whatever a library calls it; the error comes from a MemoryError.

    One that says so in words of its own keeps them.

    Raises:
        InfrastructureError: the block had too little memory.
    """
    try:
        yield
    except EvenhandError as error:
        if _short(error.__cause__) and not isinstance(error.__cause__, MemoryError):
            raise error from MemoryError(str(error.__cause__))
        raise
    except Exception as error:
        if not _short(error):
            raise
        why = f"{what} ran out of memory; narrow source.keep, or give it more"
        raise InfrastructureError(why) from (error if isinstance(error, MemoryError) else MemoryError(str(error)))


def _short(error: BaseException | None) -> bool:
    """Whether an error is for want of memory; DuckDB has its own kind, and Python its own words of a thread."""
    in_own_words = type(error).__name__ == "OutOfMemoryException" or str(error) == "can't start new thread"
    return isinstance(error, MemoryError) or in_own_words
