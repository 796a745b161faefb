"""Records without which nobody can say what a lake needs: where one cannot be read, retention removes nothing.

A manifest names the files of its run; an entry of the log may be the sign-off that keeps a run.
"""

import os
from collections.abc import Iterator, Sequence

from flows.operations.doctor.records import LOG, RUN, Unreadable, unreadable
from schemas.errors import IntegrityError
from tasks.lake.store import Lake

_NAMED = 5
"""Records in a message."""


def damage(lake: Lake) -> tuple[Unreadable, ...]:
    """Manifests and entries of the log that cannot be read, and manifests that are no files any more."""
    return (*unreadable(lake, (RUN, LOG)), *_no_files(lake))


def _no_files(lake: Lake) -> Iterator[Unreadable]:
    """A link into nowhere, or a folder, in the place of a manifest, or a folder of a run that cannot be read.

    A run without a manifest is taken for removed, so that these are told from it.
    """
    for folder in sorted((lake.root / "runs").iterdir()):
        manifest = folder / "manifest.json"
        path = manifest.relative_to(lake.root).as_posix()
        try:
            names = os.listdir(folder) if folder.is_symlink() or folder.is_dir() else ()  # noqa: PTH208 names alone
        except OSError as error:
            why = f"{folder} cannot be read ({error.strerror})"
            yield Unreadable(RUN, path, f"{why}; make it readable, or remove it if it holds no run")
            continue
        if manifest.name in names and not manifest.is_file():
            yield Unreadable(RUN, path, f"{manifest} is no file; restore it from a copy, or run that audit again")


def refuse(found: Sequence[Unreadable]) -> None:
    """Refuse a removal where something cannot be read.

    Raises:
        IntegrityError: nobody can say what the lake needs.
    """
    if found:
        named = "\n".join(each.reason for each in found[:_NAMED])
        more = f"\nand {len(found) - _NAMED} more: evenhand status --json" if len(found) > _NAMED else ""
        raise IntegrityError(
            f"nothing was removed, as nobody can say what is needed by what cannot be read:\n{named}{more}"
        )
