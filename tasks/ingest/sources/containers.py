"""The bytes of a table, plain or packed as gz, zst, bz2, lz4, zip or a zip within a zip, within limits; and its kind.

What a file is packed as is known by its first bytes, and not by its name. No path of a member is ever written to: what
a reader needs as a file is unpacked under the name that the user gave, in a folder of its own.
"""

import re
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final, Literal, cast

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
        try:
            with zipfile.ZipFile(path) as archive:  # an office's document is unpacked by its own reader
                return "" if set(archive.namelist()) & set(_OFFICE) else "zip"
        except (*_BROKEN, OSError):
            return "zip"
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
    """Hold the sizes of a workbook's parts against the limits, before anything is unpacked.

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
                if not zipfile.is_zipfile(content):
                    continue
                inner = zipfile.ZipFile(cast(Any, content))
                check_size(path.name, sum(part.file_size for part in inner.infolist()), info.file_size, 10**12, "")
                if not set(inner.namelist()) & set(_OFFICE):
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


# --------------------------------------------------------------------------------------------------------------------
# The kind of a file by its content, and never by its name.


Kind = Literal["csv", "parquet", "excel", "stata", "sas", "spss", "jsonl", "feather"]

_START: Final = 2**16
_SAS: Final = bytes(12) + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011")
_BY_MAGIC: Final[tuple[tuple[bytes, Kind], ...]] = (
    (b"PAR1", "parquet"),
    (b"ARROW1", "feather"),
    (b"FEA1", "feather"),
    (b"<stata_dta>", "stata"),
    (_SAS, "sas"),
    (b"HEADER RECORD*******LIB", "sas"),
    (b"$FL2", "spss"),
    (b"$FL3", "spss"),
    (bytes.fromhex("d0cf11e0a1b11ae1"), "excel"),
)
_OTHERS: Final = (
    (b"%PDF", "a PDF", "ask for the table it was printed from"),
    *((magic, "a picture", "ask for the table that it shows") for magic in (b"\x89PNG", b"\xff\xd8\xff", b"GIF8")),
    (b"Rar!", "a RAR archive", "unpack it, and give the table"),
    (b"7z\xbc\xaf'\x1c", "a 7z archive", "unpack it, and give the table"),
    (b"SQLite format 3", "an SQLite database", "save the table as CSV or Parquet"),
    (b"\x89HDF", "an HDF5 file", "save the table as CSV or Parquet"),
    (b"RDX", "a file of R", "save the table as CSV or Parquet"),
    (b"\x80\x04\x95", "a pickle, which is never opened", "save the table as CSV or Parquet"),
    (b"Obj\x01", "an Avro file", "save the table as CSV or Parquet"),
    (b"ORC", "an ORC file", "save the table as CSV or Parquet"),
)
_PAGE: Final = re.compile(rb"^\s*(?:<!doctype html|<html|<table|<\?xml)", re.IGNORECASE)
_JSON: Final = re.compile(rb"\[\s*\{|\{\s*\"[^\"\n]*\"\s*:")
_OBJECT: Final = re.compile(rb"\s*\{\s*[\"}]")
"""The start of an object; a GUID in braces is none."""
_LINES: Final = 10
_OBJECTS: Final = 9
"""So many of the first lines are an object each, in JSON lines."""


def kind_of(path: Path, member: str | None) -> Kind:
    """The kind of a file, or of a member of a zip, by its content.

    Raises:
        DataQualityError: it is something that holds no table, or that is not read.
    """
    with unpacked(path, member) as stream:
        head = stream.read(_START)
    if head.startswith(b"PK\x03\x04"):
        with local(path, member, 10**12) as file:
            if is_workbook(file):
                return "excel"
        raise DataQualityError(f"{path.name} is a document of an office or an archive, and no table; give the table")
    kind = next((kind for magic, kind in _BY_MAGIC if head.startswith(magic)), None)
    if kind is not None:
        return kind
    if len(head) > 4 and 0x66 <= head[0] <= 0x73 and head[1] in (1, 2) and head[2] == 1 and head[3] == 0:
        return "stata"  # before version 117
    for magic, words, step in _OTHERS:
        if head.startswith(magic):
            raise DataQualityError(f"{path.name} is {words}, and no table that is read here; {step}")
    if _PAGE.match(head):
        raise DataQualityError(f"{path.name} is a page (HTML or XML), and no table; open it, and save it as CSV")
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    lines = [line for line in text.split(b"\n")[: _LINES + 1] if line.strip()]
    complete = lines[:_LINES] if len(lines) > _LINES else lines
    least = _OBJECTS if len(complete) == _LINES else max(len(complete), 1)
    objects = sum(bool(_OBJECT.match(line)) for line in complete)
    return "jsonl" if objects >= least or _JSON.match(text) else "csv"
