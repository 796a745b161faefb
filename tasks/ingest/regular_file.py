"""Refuses a file that is not regular before it is opened: a FIFO blocks its reader, and a device has no end."""

import errno
import stat
from pathlib import Path

from schemas.errors import Location, SpecError

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe (FIFO)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_SHOWN = 200
"""Letters of a path in a message."""
_NO_FILE = {errno.ELOOP: "a symbolic link that leads to itself", errno.ENAMETOOLONG: "a name longer than any file has"}


def check_regular(path: Path, location: Location = ()) -> None:
    """Hold a path that a user gave against what can be read as a file. One that is not there is left to the caller.

    Raises:
        SpecError: a directory, a FIFO, a socket, a device, a loop of symbolic links, or no name that a file can have;
            with its place in the spec.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if error.errno in _NO_FILE:
            raise _refused(path, _NO_FILE[error.errno], location) from error
        return
    except ValueError as error:  # a null character, or half of a character
        raise _refused(path, "a name that no file can have", location) from error
    if not stat.S_ISREG(mode):
        raise _refused(path, next((name for is_kind, name in _KINDS if is_kind(mode)), "something else"), location)


def _refused(path: Path, kind: str, location: Location) -> SpecError:
    shown = str(path) if len(str(path)) <= _SHOWN else f"{str(path)[:_SHOWN]}..."
    return SpecError(f"{shown!r} is not a file, but {kind}; give the path of a regular file", location)
