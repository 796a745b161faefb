"""The records of a vintage: what it is and which files it has, and whether these are the ones that were written.

``partition.json`` names the files with their digests, and a vintage is there when that is. ``vintage.json``, which it
names too, says what was delivered.
"""

import hashlib
from pathlib import Path, PurePosixPath

from schemas.artifact import Partition
from schemas.errors import IntegrityError
from schemas.vintages import Vintage
from tasks.ingest.hmda.identity import RECORD
from tasks.ingest.hmda.sorted_rows import files_of
from tasks.lake.store import Lake

PARTITION = "partition.json"

_FOUND: dict[tuple[str, str, str], tuple[Path, tuple[int, int]]] = {}
"""Lake, path and digest -> the file of this machine, and what the system knew of it when it was found intact."""


def partition_of(lake: Lake, record: str) -> Partition:
    """The files of a vintage by the path of its record.

    Raises:
        IntegrityError: the record is missing or was altered.
    """
    try:
        return Partition.model_validate_json(lake.storage.read(record) or b"")
    except ValueError as error:
        raise altered(lake, record) from error


def read(lake: Lake, record: str) -> Vintage:
    """A vintage by the path of its record.

    Raises:
        IntegrityError: as ``partition_of`` says.
    """
    partition = partition_of(lake, record)
    path, digest = next((path, digest) for path, digest in partition.files.items() if path.endswith(f"/{RECORD}"))
    content = lake.storage.read(path)
    if content is None or hashlib.sha256(content).hexdigest() != digest:
        raise altered(lake, record, path)
    return Vintage.model_validate_json(content)


def rows_of(lake: Lake, vintage: Vintage) -> Path:
    """The vintage's rows on this machine, beside its refusals and its record, once all of these agree.

    This process hashes each of them once, however many lenders are read, as long as nobody writes to it.

    Raises:
        IntegrityError: a file is missing or was altered, or one lies among the rows that is not theirs.
    """
    record = f"{vintage.folder}/{PARTITION}"
    kept = partition_of(lake, record)
    beside = {path: digest for path, digest in kept.files.items() if path.endswith(f"/{RECORD}")}
    beside |= {table.path: table.sha256 for table in kept.tables}
    files = {path: _checked(lake, record, path, digest) for path, digest in beside.items()}
    rows = {table.path: files[table.path] for table in kept.tables if table.table == "applications"}
    path, first = next(iter(rows.items()))
    if vintage.version == 1:
        return first
    home = first.parents[1]
    if others := sorted(set(files_of(home)) - set(rows.values())):
        raise altered(lake, record, f"{PurePosixPath(path).parents[1]}/{others[0].relative_to(home).as_posix()}")
    return home


def altered(lake: Lake, record: str, path: str = "") -> IntegrityError:
    """The error of a vintage that is not as it was written; with the file, where it is known."""
    home = PurePosixPath(record).parent
    named = f" ({PurePosixPath(path).relative_to(home)})" if path else ""
    return IntegrityError(
        f"{lake.storage.where(str(home))} lacks a file, or holds one that is not the one that was written{named}; "
        "restore it from a copy, or remove the folder and add the delivered file again"
    )


def _checked(lake: Lake, record: str, path: str, digest: str) -> Path:
    key = lake.location, path, digest
    if key in _FOUND:
        file, known = _FOUND[key]
        if _state(file) == known:
            return file
    found = lake.storage.checked(path, digest)
    if found is None:
        raise altered(lake, record, path)
    if state := _state(found):
        _FOUND[key] = found, state
    return found


def _state(file: Path) -> tuple[int, int] | None:
    """What changes when somebody writes to a file; None of one that is not there."""
    try:
        told = file.stat()
    except OSError:
        return None
    return told.st_size, told.st_mtime_ns
