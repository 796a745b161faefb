"""Cache of the shapes of source files between processes: parsing some 400 files takes two seconds.

The cache lies with Python's own compiled files, and may be deleted at any time. Entries are keyed by the sha256 of the
source, and valid only for the same Python and the same reader. A damaged file, or one that another user could have
changed, is ignored.
"""

import hashlib
import json
import os
import stat
import sys
import tempfile
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path

from tasks.pipeline.lineage import shape
from tasks.pipeline.lineage.shape import Import, Shape

PLACE = Path(__file__).parent / "__pycache__" / f"shapes.{sys.implementation.cache_tag}.json"
_MOST = 3000
"""Shapes kept: several times the files of the project. Beyond it, only those that the last process asked for are."""


class Kept:
    """The shapes in a file, and those that are to be added to it."""

    def __init__(self, place: Path, packages: tuple[str, ...]) -> None:
        """Read what is kept.

        Args:
            place: the file.
            packages: the packages that are first-party in these shapes.
        """
        self._place = place
        reader = hashlib.sha256(Path(shape.__file__).read_bytes()).hexdigest()
        self._by = [sys.version, reader, *packages]
        self._kept = self._read()
        self._asked: dict[str, Shape] = {}
        self._is_new = False

    def find(self, source: bytes) -> Shape | None:
        """The shape of a source, if it is kept."""
        found = self._kept.get(_key(source))
        if found is not None:
            self._asked[_key(source)] = found
        return found

    def add(self, source: bytes, found: Shape) -> None:
        """Keep the shape of a source, once it is saved."""
        self._kept[_key(source)] = self._asked[_key(source)] = found
        self._is_new = True

    def save(self) -> None:
        """Replace the file atomically if there is something to add; do nothing if it cannot be written."""
        if not self._is_new:
            return
        shapes = self._kept if len(self._kept) <= _MOST else self._asked
        body = json.dumps({"by": self._by, "shapes": {key: astuple(each) for key, each in shapes.items()}})
        with suppress(OSError):
            self._place.parent.mkdir(exist_ok=True)
            handle, draft = tempfile.mkstemp(dir=self._place.parent)
            with os.fdopen(handle, "w") as file:
                file.write(f"{_key(body.encode())}\n{body}")
            Path(draft).replace(self._place)
            self._is_new = False

    def _read(self) -> dict[str, Shape]:
        try:
            mode = self._place.stat().st_mode
            told, _, body = self._place.read_text().partition("\n")
        except (OSError, UnicodeDecodeError):
            return {}
        if mode & (stat.S_IWGRP | stat.S_IWOTH) or told != _key(body.encode()):
            return {}
        said = json.loads(body)
        if said["by"] != self._by:
            return {}
        return {key: _shape(*parts) for key, parts in said["shapes"].items()}


def _key(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _shape(tree: str, *imports: list[tuple[str, str | None, str]]) -> Shape:
    used, placed, unused = (tuple(Import(*each) for each in some) for some in imports)
    return Shape(tree, used, placed, unused)
