"""When files of a lake were written and how large they are, by one listing of a folder and no request a file."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

import pyarrow as pa
from pyarrow import fs

from schemas.errors import InfrastructureError
from tasks.lake.local_directory import Directory
from tasks.lake.store import Lake


@dataclass(frozen=True)
class Stamp:
    """Changes with every write of a file: on a disk the time of change is the system's, and cannot be set back."""

    size: int = 0
    modified: int = 0
    changed: int = 0
    """Nanoseconds; 0 where the file system does not tell."""


def manifests(lake: Lake) -> dict[str, Stamp]:
    """Run -> the stamp of its manifest; errors as of ``below``."""
    if isinstance(lake.storage, Directory):
        found = _entries(lake.storage.root / "runs")
        stamps = ((each.name, _stamp(f"{each.path}/manifest.json")) for each in found)
        return {run: stamp for run, stamp in stamps if stamp}
    parts = ((path.split("/"), stamp) for path, stamp in below(lake, "runs").items())
    return {own[1]: stamp for own, stamp in parts if own[2:] == ["manifest.json"]}


def entries(lake: Lake) -> dict[str, Stamp]:
    """Path -> the stamp of each file of the log; errors as of ``below``."""
    if isinstance(lake.storage, Directory):
        found = _entries(lake.storage.root / "log")
        stamps = {f"log/{each.name}": _stamp(each.path) for each in found if _is_number(each.name)}
    else:
        stamps = {path: stamp for path, stamp in below(lake, "log").items() if _is_number(path.rpartition("/")[2])}
    return dict(sorted((path, stamp) for path, stamp in stamps.items() if stamp))


def folders(lake: Lake, folder: str) -> list[str]:
    """Names of the folders in a folder, sorted; errors as of ``below``."""
    if isinstance(lake.storage, Directory):
        return sorted(each.name for each in _entries(lake.storage.root / folder) if each.is_dir())
    found = _listed(lake, folder, recursive=False)
    return sorted(info.base_name for info in found.values() if info.type == fs.FileType.Directory)


def below(lake: Lake, folder: str) -> dict[str, Stamp]:
    """Path -> the stamp of each file below a folder of an object store, whose listing tells both.

    Raises:
        InfrastructureError: the store cannot be reached.
    """
    found = _listed(lake, folder, recursive=True)
    files = {path: info for path, info in found.items() if info.type == fs.FileType.File}
    return {path: Stamp(info.size or 0, info.mtime_ns or 0) for path, info in files.items()}


def _listed(lake: Lake, folder: str, *, recursive: bool) -> dict[str, fs.FileInfo]:
    """Path in the lake -> what the listing says of it."""
    from tasks.lake.remote_filesystem import filesystem_at  # gives the connection that the lake has already

    try:
        system, root = filesystem_at(lake.location)
        selector = fs.FileSelector(f"{root}/{folder}", allow_not_found=True, recursive=recursive)
        return {info.path[info.path.index(root) + len(root) + 1 :]: info for info in system.get_file_info(selector)}
    except (OSError, pa.ArrowException) as error:
        raise InfrastructureError(f"{lake.location} could not be listed: {error}") from error


def _entries(folder: Path) -> Iterator["os.DirEntry[str]"]:
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as found:
        yield from found


def _stamp(path: str) -> Stamp | None:
    """None of what is no file, or is just being removed."""
    with suppress(OSError):
        found = os.stat(path)  # noqa: PTH116 thousands of them: a Path takes as long as the system
        return Stamp(found.st_size, found.st_mtime_ns, found.st_ctime_ns) if S_ISREG(found.st_mode) else None
    return None


def _is_number(name: str) -> bool:
    return name.endswith(".json") and name.removesuffix(".json").isdecimal()
