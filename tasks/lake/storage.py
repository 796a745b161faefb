"""Storage of a lake: the interface, files by conditional writes, and connections of DuckDB."""

import json
import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from schemas.artifact import Partition
from schemas.errors import SpecError
from tasks.lake.local_directory import Directory

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb


# --------------------------------------------------------------------------------------------------------------------
# Threads and memory that a process may use, and a DuckDB connection that keeps to the threads.
#
# DuckDB takes all cores unless it is told otherwise, so that processes side by side slow each other down.
# Scope: what this process was given. Who shares cores out among processes: ``flows.concurrency.workers``.


def threads() -> int:
    """Threads that this process may use: NUMBA_NUM_THREADS, which workers share out, else all cores."""
    variable = os.environ.get("NUMBA_NUM_THREADS", "")
    return int(variable) if variable.isdecimal() and int(variable) else cores()


def cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_GROUPS, _OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_NO_LIMIT = 2**60
"""Bytes from which on a limit is none: version 1 writes nearly 2**63."""


class GroupMemory(NamedTuple):
    """Memory of the control groups of this process, in bytes; infinite without a limit."""

    limit: float
    remaining: float


def group_memory() -> GroupMemory:
    """What the control groups (version 2 or 1) of this process may use, and what they leave.

    A group lies within others: that of a service of systemd, of a container, of a pod. The tightest counts.
    """
    try:
        lines = _OWN_GROUPS.read_text(encoding="utf-8").splitlines()
    except OSError:  # another system than Linux
        lines = []
    paths = {controllers: path for _, controllers, path in (line.split(":", 2) for line in lines)}
    limit = remaining = math.inf
    for controller, folder, names in (
        ("", _GROUPS, ("memory.max", "memory.current")),
        ("memory", _GROUPS / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")),
    ):
        innermost = folder.joinpath(*(part for part in paths.get(controller, "").split("/") if part not in ("", "..")))
        for group in (innermost, *innermost.parents):
            if not group.is_relative_to(folder):
                break
            most, used = (_number(group / name) for name in names)
            if most is not None and most < _NO_LIMIT:
                limit, remaining = min(limit, most), min(remaining, most - (used or 0))
    return GroupMemory(limit, remaining)


def _number(file: Path) -> int | None:
    try:
        text = file.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() and int(text) else None


Setting = str | bool | int | float | list[str]


def connected(settings: "Mapping[str, Setting] | None" = None) -> "duckdb.DuckDBPyConnection":
    """A connection to an empty database in memory, with no more threads than this process may use.

    It draws no progress: DuckDB does so on standard output after two seconds, where commands print JSON.

    Args:
        settings: DuckDB's own, over the number of threads.
    """
    import duckdb

    connection = duckdb.connect(config={"threads": threads(), **(settings or {})})
    connection.execute("SET enable_progress_bar = false")
    return connection


# --------------------------------------------------------------------------------------------------------------------
# Storage of a lake's files: a directory, or a place on any file system that pyarrow or fsspec opens.
#
# Scope: the choice between the two, and their interface. Paths are relative to the root, with forward slashes.


_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""A scheme has two letters or more: a single one is a drive."""


class Storage(Protocol):
    """Interface of the storage of a lake.

    Every method raises ``InfrastructureError`` where the place cannot be reached.
    """

    @property
    def location(self) -> str:
        """An absolute path or a URI: opens the same place from every working directory."""

    @property
    def local(self) -> Path:
        """A directory of this machine for locks, drafts and other files that are not shared."""

    def make(self) -> None:
        """Make the place where it is not there, and see that it can be written."""

    def make_local(self) -> None:
        """Make what reading needs on this machine, outside of the place itself."""

    def beside(self, name: str) -> "Storage":
        """The place of another name in the folder that this one lies in."""

    def where(self, path: str) -> str:
        """A path for messages."""

    def exists(self, path: str) -> bool:
        """Whether there is such a file, or a folder with something in it."""

    def modified(self, path: str) -> int:
        """Modification time of a file in nanoseconds; 0 if the file system does not provide it."""

    def glob(self, pattern: str) -> list[str]:
        """Paths of all files that match the pattern, sorted. ``*`` matches any text within one path segment."""

    def below(self, folder: str) -> list[str]:
        """All paths of files below a folder, however deep, sorted."""

    def read(self, path: str) -> bytes | None:
        """The content of a file; None where there is none."""

    def intact(self, path: str, digest: str) -> bool:
        """Whether a file exists and has this SHA-256 digest."""

    def checked(self, path: str, digest: str) -> Path | None:
        """A file of this machine with the content of one that is intact; None where it is not."""

    def write(self, path: str, content: bytes, draft: str | None = None) -> None:
        """Write a file in one step over the one that was there; ``draft`` is where it may lie until then."""

    def add(self, path: str, content: bytes) -> bool:
        """Write a new file atomically; False if the file exists, even when another writer was first."""

    def remove(self, folder: str) -> None:
        """Remove a folder and all that is in it; nothing where there is none."""

    def home_of(self, partition: str) -> str:
        """The folder in which a new partition's files are to lie, ``partition`` being the folder of its record."""

    def publish(self, draft: Path, partition: Partition, home: str) -> None:
        """Publish the content of a directory. Readers see the record in ``home`` after all other files exist."""

    def home_beside(self, partition: str) -> str:
        """The folder for the files of a partition that replaces the existing one."""

    def supersede(self, draft: Path, partition: Partition, home: str) -> None:
        """Publish over an existing record: readers see the old record or the new one. Files of the old one stay."""

    def discard(self, path: str) -> None:
        """Remove a file; nothing where there is none."""


def storage_at(root: Path | str) -> Storage:
    """What lies at a path or a URI.

    Raises:
        SpecError: it is no place for a lake.
        InfrastructureError: it cannot be reached.
    """
    text = str(root)
    if not _URI.match(text):
        return Directory(Path(text))
    if "://" not in text:
        raise SpecError(
            f"{text!r} has a slash too few for a URI such as 's3://bucket/lake', or was given to a command that takes "
            "a lake in a directory only"
        )
    parts = urlsplit(text)
    if parts.scheme != "file":
        from tasks.lake.object_store import (
            ObjectStore,
            filesystem_at,  # loads libraries, and only where a URI asks for them
        )

        return ObjectStore(text, *filesystem_at(text))
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise SpecError(f"{text!r}: a lake on this machine is a path, or file:///absolute/path")
    return Directory(Path(unquote(parts.path)))


def mapping_of(content: bytes | None) -> dict[str, Any]:
    """The keys of a JSON file of a lake, such as a manifest.

    Raises:
        ValueError: it is missing, cut, nested without end, or holds no mapping.
    """
    try:
        parsed = json.loads(content or b"")
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if not isinstance(parsed, dict):
        raise ValueError("no mapping of keys")
    return parsed
