"""Scratch place of a long stage: intermediate results, from which it resumes after a stop.

It lies in the lake under ``unfinished/<stage>-<key>``; the holder of the key's lock may read and write it. It survives
a failure of the stage or its process, and is removed once the stage's partition is published.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from schemas.errors import IntegrityError
from tasks.lake.store import Lake
from tasks.pipeline.stop_request import raise_if_stopped

log = logging.getLogger("evenhand")

_Parsed = TypeVar("_Parsed")


class Scratch:
    """Files of one key of one stage; without a lake nothing is kept."""

    def __init__(self, lake: Lake | None = None, stage: str = "", key: str = "") -> None:
        """Nothing is made on disk before the first file is written."""
        self._lake, self._folder = lake, f"unfinished/{stage}-{key}"

    def path(self, name: str) -> Path | str | None:
        """Where a file is, or would be: a path, or the URI that it has in a lake at one."""
        if self._lake is None:
            return None
        where = self._lake.storage.where(f"{self._folder}/{name}")
        return where if "://" in where else Path(where)

    def read(self, name: str) -> bytes | None:
        """The content of a file; None where there is none. Whoever wrote it has to tell whether it is whole."""
        return None if self._lake is None else self._lake.storage.read(f"{self._folder}/{name}")

    def whole(self, name: str, parse: Callable[[bytes], _Parsed]) -> _Parsed | None:
        """The parsed content of a file; None where there is none, or a damaged one, which is logged."""
        content = self.read(name)
        try:
            return None if content is None else parse(content)
        except IntegrityError as error:
            log.warning("%s: %s", self.path(name), error)
            return None

    def where(self, name: str) -> str:
        """The path of a file in an error's words; nothing without a lake."""
        return "" if self.path(name) is None else f" (in {self.path(name)})"

    def write(self, name: str, content: bytes) -> None:
        """Write a file in one step, over the one that was there: it is read as it was before, or as it is then.

        The work stops here if that was requested: it can go on from this very file.

        Raises:
            KeyboardInterrupt: the process was asked to stop.
            InfrastructureError: the disk is full or fails.
        """
        if self._lake is not None:
            self._lake.write_file(f"{self._folder}/{name}", content, draft=f"{self._folder}/.{name}")
        raise_if_stopped()

    def clear(self) -> None:
        """Remove all files."""
        if self._lake is not None:
            self._lake.storage.remove(self._folder)


NOWHERE: Final = Scratch()
"""For a stage that is called as the plain function that it is."""
