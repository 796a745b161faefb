"""Modes of a lake's files: readable by their owner alone, or by a group too where EVENHAND_GROUP_READ is 1.

Scope: the umask of processes that write, and files of a lake that were written without it. Reviewers' packs under
``restricted``, tables under ``uploads``, and vintages of lenders' own submissions, are never readable by a group.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from schemas.errors import InfrastructureError
from schemas.vintages import SUBMISSION

if TYPE_CHECKING:
    from tasks.lake.store import Lake  # loads pyarrow, and every command sets its umask

_OTHERS, _OTHERS_AND_GROUP_WRITE = 0o077, 0o027


def restrict() -> None:
    """Set the umask of this process, which the processes that it starts inherit."""
    os.umask(denied_bits())


def open_to_others(local: Path) -> list[Path]:
    """Files and directories, of those that a lake keeps at a place of this machine, that other users can use."""
    return [path for path, mode, denied in _modes(local) if mode & denied]


def fix(lake: "Lake") -> int:
    """Give every file and directory of a lake the mode that it would be made with today; gives how many had another.

    Raises:
        InfrastructureError: a file belongs to another user.
    """
    changed = 0
    for path, mode, denied in _modes(lake.storage.local):
        full_mode = (0o777 if path.is_dir() else 0o666) & ~denied
        if mode != full_mode:
            try:
                path.chmod(full_mode)
            except FileNotFoundError:
                continue
            except PermissionError as error:
                raise InfrastructureError(
                    f"the mode of {path} cannot be changed: it belongs to user {path.stat().st_uid}; run this as that "
                    "user, or as root"
                ) from error
            changed += 1
    return changed


def denied_bits() -> int:
    """Bits of a mode that no file of a lake, and no file with passwords, may have."""
    return _OTHERS_AND_GROUP_WRITE if os.environ.get("EVENHAND_GROUP_READ") == "1" else _OTHERS


def _modes(local: Path) -> Iterator[tuple[Path, int, int]]:
    """Path, mode and the bits that it must not have, of files and folders in the lake itself.

    Nothing is reached through a link, and no pipe or device counts; a run may remove files meanwhile.
    """
    from tasks.lake.local_directory import strange  # every command sets its umask, and few need this

    denied, local = denied_bits(), Path(os.path.realpath(local))
    for path in (local, *local.rglob("*")):
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            continue
        if (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and (path == local or not strange(local, path)):
            parts = path.relative_to(local).parts
            restricted = parts[:1] in (("restricted",), ("uploads",)) or parts[0:3:2] == ("vintages", SUBMISSION)
            yield path, stat.S_IMODE(mode), _OTHERS if restricted else denied
