"""The bytes of a table in whatever it is packed: plain, gz, zst, bz2, lz4 or zip, or a zip within a zip, within limits.

What a file is packed as is known by its first bytes, and not by its name. No path of a member is ever written to: what
a reader needs as a file is unpacked under the name that the user gave, in a folder of its own.
"""

import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final, cast

import pyarrow as pa

from schemas.errors import DataQualityError, nearest

MOST_RATIO: Final = 200
"""Bytes of content for a byte of the packed file."""
FREE_BYTES: Final = 100_000_000
"""So many bytes of content may come whatever the ratio."""
MOST_ENTRIES: Final = 10_000
"""Entries of a zip."""
MOST_TABLES: Final = 1_000
"""Files of a zip that may be tables."""
BLOCK: Final = 2**20

_PACKED: Final = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
_WORKBOOKS: Final = ("xl/workbook.xml", "xl/workbook.bin")
_OFFICE: Final = (*_WORKBOOKS, "word/document.xml", "ppt/presentation.xml", "content.xml")
"""Entries that only a document of an office has."""
_JUNK_FOLDERS: Final = ("__macosx", ".git", ".ipynb_checkpoints")
_JUNK: Final = (".ds_store", "thumbs.db", "desktop.ini")
_BROKEN: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)
"""What the library raises at a damaged zip, and at one that is locked or packed by a method it does not know."""


@dataclass(frozen=True)
class Member:
    """A file of a zip that may be a table."""

    name: str
    """Its path in the zip; of a zip within it, behind the inner zip's path and a slash."""
    size: int
    """Bytes, as the zip says."""


def packing(path: Path) -> str:
    """What a file is packed as: gzip, bz2, zstd, lz4, zip, or nothing."""
    with path.open("rb") as file:
        head = file.read(4)
    if head in _ZIP:
        return "" if _is_office(path) else "zip"
    return next((name for magic, name in _PACKED.items() if head.startswith(magic)), "")


def members(path: Path) -> tuple[Member, ...]:
    """The files of a zip that may be tables, without what systems leave there; none where it is no zip.

    Raises:
        DataQualityError: the zip is damaged, too large for its size, locked, or holds nothing to read.
    """
    return _members(path, path.stat().st_mtime_ns) if packing(path) == "zip" else ()


def chosen(path: Path, member: str | None) -> tuple[str | None, ...]:
    """The members that a source reads: the one it names, those that its pattern fits, or the only one.

    Raises:
        DataQualityError: there is none of that name, or there are several and none is named.
    """
    names = [entry.name for entry in members(path)]
    if not names:
        if member is not None:
            raise DataQualityError(f"{path.name} is no zip, and has no member {member!r}; leave source.member out")
        return (None,)
    if member is None:
        if len(names) > 1:
            listed = ", ".join(names[:5]) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")
            raise DataQualityError(f"{path.name} holds {len(names):,} files: {listed}; name one with source.member")
        return (names[0],)
    if not (named := fitting(names, member)):
        raise DataQualityError(f"{path.name} has no member {member!r}; {nearest(member, names)}")
    return tuple(named)


def fitting(names: Sequence[str], member: str) -> list[str]:
    """The member of that name, or those that it fits as a pattern."""
    return [member] if member in names else sorted(name for name in names if fnmatchcase(name, member))


@contextmanager
def unpacked(path: Path, member: str | None = None) -> Iterator[BinaryIO]:
    """The content as a stream of bytes; a zip gives its member, or the only file that it holds.

    Raises:
        DataQualityError: as ``chosen``; or it is damaged.
    """
    how = packing(path)
    if how != "zip":
        with pa.input_stream(str(path), compression=how or "detect") as stream:
            yield cast(BinaryIO, stream)
        return
    name = chosen(path, member)[0]
    assert name is not None  # noqa: S101 a zip has members
    with _refused(path), ExitStack() as stack:
        archive, inner = _archive_of(path, name, stack)
        yield cast(BinaryIO, stack.enter_context(archive.open(inner)))


def blocks(path: Path, member: str | None, most: int, limit_words: str) -> Iterator[bytes]:
    """The content, a block at a time.

    Args:
        path: The file.
        member: Of a zip.
        most: Bytes at which reading stops.
        limit_words: What the user does about that.

    Raises:
        DataQualityError: it is damaged, or larger than the limits allow.
    """
    packed, total = path.stat().st_size, 0
    with unpacked(path, member) as stream:
        while block := stream.read(BLOCK):
            total += len(block)
            check_size(path.name, total, packed, most, limit_words)
            yield block


def check_size(name: str, total: int, packed: int, most: int, limit_words: str) -> None:
    """Hold the bytes that came so far against the limits.

    Raises:
        DataQualityError: they are more.
    """
    if total > most:
        raise DataQualityError(f"{name} holds more than {most:,} bytes of text, {limit_words}")
    if total > FREE_BYTES and total > MOST_RATIO * packed:
        raise DataQualityError(
            f"{name} unpacks to more than {MOST_RATIO} times its size, which no table does: stopped; "
            "unpack it yourself if you trust it, and give the file"
        )


@contextmanager
def local(path: Path, member: str | None, most: int) -> Iterator[Path]:
    """A file with the content, for readers that need one: the file itself where nothing is packed.

    Raises:
        DataQualityError: as ``blocks``.
    """
    if not packing(path):
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / path.name
        with file.open("wb") as out:
            for block in blocks(path, member, most, "which is where source.maximum_bytes stops"):
                out.write(block)
        yield file


def check_archive(path: Path) -> None:
    """Hold what a workbook says of its parts against the limits, before anything is unpacked.

    Raises:
        DataQualityError: it would be larger than the limits allow.
    """
    if zipfile.is_zipfile(path):
        with _refused(path), zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
            if len(infos) > MOST_ENTRIES:
                raise DataQualityError(f"{path.name} has {len(infos):,} entries, and at most {MOST_ENTRIES:,} are read")
            check_size(path.name, sum(info.file_size for info in infos), path.stat().st_size, 10**12, "")


def is_workbook(path: Path) -> bool:
    """Whether a zip is a workbook of Excel or a sheet of OpenDocument."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            kind = archive.read("mimetype")[:100] if "mimetype" in names else b""
    except (*_BROKEN, OSError):
        return False
    return bool(names & set(_WORKBOOKS)) or b"opendocument.spreadsheet" in kind


@lru_cache(16)
def _members(path: Path, changed: int) -> tuple[Member, ...]:  # noqa: ARG001 another content has another time
    with _refused(path), zipfile.ZipFile(path) as archive:
        listed = list(_listed(path.name, archive))
        tables = [Member(name, info.file_size) for name, info in listed]
        for name, info in listed:
            if PurePosixPath(name).suffix.lower() != ".zip":
                continue
            with archive.open(info) as stream, _copied(path, cast(BinaryIO, stream)) as content:
                inner = _archive_in(path, content)
                if inner is not None and not set(inner.namelist()) & set(_OFFICE):
                    tables.remove(Member(name, info.file_size))
                    tables += [Member(f"{name}/{at}", part.file_size) for at, part in _listed(path.name, inner)]
        deep = [entry.name for entry in tables if entry.name.lower().count(".zip") > 1 and entry.name.endswith(".zip")]
    if deep:
        raise DataQualityError(f"{path.name} holds zips within zips within zips: unpack {deep[0]}, and give a file")
    if not tables:
        raise DataQualityError(f"{path.name} is a zip without a file that may be a table; give the table itself")
    if len(tables) > MOST_TABLES:
        raise DataQualityError(f"{path.name} holds {len(tables):,} files, and at most {MOST_TABLES:,} are looked at")
    return tuple(tables)


def _listed(name: str, archive: zipfile.ZipFile) -> Iterator[tuple[str, zipfile.ZipInfo]]:
    """Path and entry of each file of an archive that may be a table."""
    infos = archive.infolist()
    if len(infos) > MOST_ENTRIES:
        raise DataQualityError(f"{name} has {len(infos):,} entries, and at most {MOST_ENTRIES:,} are read")
    locked = [info.filename for info in infos if info.flag_bits & 1]
    if locked:
        raise DataQualityError(f"{name} is locked with a password: unpack it yourself, and give the file")
    for info in infos:
        parts = PurePosixPath(info.filename.replace("\\", "/")).parts
        junk = any(part.lower() in _JUNK_FOLDERS for part in parts) or not parts
        last = parts[-1].lower() if parts else ""
        if info.is_dir() or junk or last in _JUNK or last.startswith(("~$", "._")) or not info.file_size:
            continue
        yield info.filename, info


def _archive_of(path: Path, name: str, stack: ExitStack) -> tuple[zipfile.ZipFile, str]:
    """The archive that a member lies in, and its name there."""
    archive = stack.enter_context(zipfile.ZipFile(path))
    if name in archive.namelist():
        return archive, name
    outer = next(at for at in archive.namelist() if name.startswith(f"{at}/") and at.lower().endswith(".zip"))
    content = stack.enter_context(_copied(path, cast(BinaryIO, stack.enter_context(archive.open(outer)))))
    return stack.enter_context(zipfile.ZipFile(cast(Any, content))), name[len(outer) + 1 :]


def _archive_in(path: Path, content: BinaryIO) -> zipfile.ZipFile | None:
    """An inner zip, or None where it is something else under that name."""
    try:
        archive = zipfile.ZipFile(content)
        check_size(path.name, sum(info.file_size for info in archive.infolist()), path.stat().st_size, 10**12, "")
    except _BROKEN:
        return None
    return archive


@contextmanager
def _copied(path: Path, stream: BinaryIO) -> Iterator[BinaryIO]:
    """A stream of a zip as a file without a name, in which one can go back."""
    packed, total = path.stat().st_size, 0
    with tempfile.TemporaryFile() as file:
        while block := stream.read(BLOCK):
            total += len(block)
            check_size(path.name, total, packed, 10**12, "which no table has")
            file.write(block)
        file.seek(0)
        yield cast(BinaryIO, file)


def _is_office(path: Path) -> bool:
    """Whether a zip is a document of an office, which its own reader unpacks."""
    try:
        with zipfile.ZipFile(path) as archive:
            return bool(set(archive.namelist()) & set(_OFFICE))
    except (*_BROKEN, OSError):
        return False


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    """Turn any error of the library about a damaged zip into one error with a reason."""
    try:
        yield
    except DataQualityError:
        raise
    except UnicodeDecodeError:  # of the text within, which its reader tells
        raise
    except _BROKEN as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise DataQualityError(
            f"{path.name} could not be unpacked: {reason}; fetch it again, or unpack it and give the file"
        ) from error
