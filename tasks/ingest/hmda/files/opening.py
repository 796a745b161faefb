"""Opens a delivered file as plain text: as it is, from gzip, or from the one member of a zip archive.

What comes from elsewhere is not trusted: a zip member is written under a name of our own, and nothing grows beyond what
its packing makes plausible. What the text says is not looked at here.
"""

import codecs
import gzip
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path, PurePosixPath
from typing import IO, Literal

from schemas.errors import DataQualityError, InfrastructureError
from tasks.ingest.regular_file import check_regular
from tasks.ingest.sources.records import Dialect, Records, whole_lines

_CHUNK = 4 * 2**20
_HEAD = 2**20


@dataclass(frozen=True)
class Limits:
    """How far a packed file may grow. The largest year is 11 GB of text, and HMDA packs to a tenth or so."""

    size: int = 64 * 2**30
    """Bytes of text."""
    ratio: float = 100.0
    """Bytes of text for a byte of the packed file; the first 16 MiB are free."""

    def allowed(self, packed: int) -> int:
        """Bytes to which a packed file of this size may grow."""
        return min(self.size, max(int(packed * self.ratio), 2**24))


@dataclass(frozen=True)
class Opened:
    """A file that can be read as it lies."""

    path: Path
    compression: Literal["none", "gzip"]
    encoding: Literal["utf-8", "latin-1"]
    """Latin-1 where some byte of the whole file is not UTF-8."""
    head: bytes
    """The first MiB of the text, without a byte order mark."""
    whole: bool
    """Whether the head is all of it."""
    lines: int
    """Lines of the whole file, blank ones and a last one without an end included."""
    line_end: str
    delimiter: str
    """Pipe or comma, whichever the first line has more of."""


def opened(path: Path, scratch: Path, limits: Limits | None = None) -> Opened:
    """The file, or what a zip archive holds, written into ``scratch``. Every byte is read once, for its encoding.

    Raises:
        DataQualityError: it is empty or no text; an archive without exactly one plain member, with a password, cut
            short, or of such a packing that it can only be meant to fill a disk; a quote that is not closed in its
            line, or a line without end.
        SpecError: it is a directory, a FIFO or a device.
        InfrastructureError: it cannot be read, or the disk is too small for what it holds.
    """
    limits = limits or Limits()
    check_regular(path)
    try:
        magic = _first_bytes(path)
        if magic == b"PAR1":
            raise DataQualityError(
                f"{path.name} is Parquet, and files of HMDA are delivered as text, plain or packed; an audit takes a "
                "vintage's rows (applications) as source.path, and other Parquet as kind: parquet"
            )
        if magic.startswith(b"PK"):
            return _text(_extracted(path, scratch, limits), "none", limits, path.name)
        return _text(path, "gzip" if magic.startswith(b"\x1f\x8b") else "none", limits, path.name)
    except (zipfile.BadZipFile, NotImplementedError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataQualityError(f"{path.name} is damaged or cut short ({error}): fetch it again") from error
    except OSError as error:
        why = error.strerror or error
        raise InfrastructureError(
            f"{str(path)!r} cannot be read ({why}): see whether it is a file that this user may read"
        ) from error


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4)


def _extracted(path: Path, scratch: Path, limits: Limits) -> Path:
    """The archive's member in ``scratch``, under the archive's name: it does not say itself where it is written."""
    with zipfile.ZipFile(path) as archive:
        member = _only_member(archive, path.name)
        allowed = limits.allowed(member.compress_size)
        if member.file_size > allowed:
            raise _bomb(path.name, member.file_size, allowed)
        scratch.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(scratch).free
        if member.file_size > free:
            raise InfrastructureError(
                f"{path.name} holds {member.file_size:,} bytes and {scratch} has {free:,} free: make room, or unpack it"
            )
        target = scratch / f"{path.name}.txt"
        with archive.open(member) as packed, target.open("wb") as plain:
            for chunk in _chunks(packed, allowed, path.name):
                plain.write(chunk)
    return target


def _only_member(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    members = archive.infolist()
    if len(members) != 1:
        raise DataQualityError(
            f"{name} holds {len(members)} members, and one file of rows is expected: unpack it and give the file"
        )
    member = members[0]
    inside = PurePosixPath(member.filename.replace("\\", "/"))
    if member.is_dir() or inside.is_absolute() or len(inside.parts) != 1 or ".." in inside.parts or ":" in str(inside):
        raise DataQualityError(
            f"{name} holds {member.filename!r}, which is a path and no plain file name: this is no file of the "
            "publisher; unpack it yourself if you trust it, and give the file"
        )
    if member.flag_bits & 0x1:
        raise DataQualityError(f"{name} is locked by a password: unpack it and give the file")
    return member


def _chunks(stream: IO[bytes] | BufferedIOBase, allowed: int, name: str) -> Iterator[bytes]:
    """The bytes of a stream, as long as they are no more than allowed, whatever was declared."""
    total = 0
    while chunk := stream.read(_CHUNK):
        total += len(chunk)
        if total > allowed:
            raise _bomb(name, total, allowed)
        yield chunk


def _text(path: Path, compression: Literal["none", "gzip"], limits: Limits, name: str) -> Opened:
    packed = path.stat().st_size
    allowed = limits.allowed(packed) if compression == "gzip" else packed
    head, total, encoding, records = b"", 0, _Encoding(), Records(name, _dialect(b""))
    with gzip.open(path) if compression == "gzip" else path.open("rb") as stream:
        for chunk in whole_lines(_chunks(stream, allowed, name)):
            if not head.strip():
                records.dialect = _dialect(chunk)
            head += chunk[: _HEAD - len(head)]
            total += len(chunk)
            encoding.add(chunk)
            records.add(chunk.removeprefix(codecs.BOM_UTF8) if total == len(chunk) else chunk)
    records.finish()
    if not head.strip():
        raise DataQualityError(f"{name} is empty: rows of applications are expected")
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in head:
        raise DataQualityError(f"{name} is no text in UTF-8 or Latin-1: is it another kind of file, or UTF-16?")
    head = head.removeprefix(codecs.BOM_UTF8)
    return Opened(
        *(path, compression, encoding.name, head, total <= _HEAD, records.lines, _line_end(name, records)),
        delimiter=records.dialect.delimiter.decode(),
    )


def _dialect(chunk: bytes) -> Dialect:
    """By the first line; what has neither pipes nor commas has columns of fixed widths, and no quotes."""
    first = chunk.lstrip().split(b"\n", 1)[0]
    delimiter = b"|" if first.count(b"|") > first.count(b",") else b","
    return Dialect(delimiter, quoting=delimiter in first)


class _Encoding:
    """UTF-8, as long as no byte contradicts it."""

    def __init__(self) -> None:
        self.name: Literal["utf-8", "latin-1"] = "utf-8"
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def add(self, chunk: bytes) -> None:
        if self.name == "latin-1" or (chunk.isascii() and not self._decoder.getstate()[0]):
            return
        try:
            self._decoder.decode(chunk)
        except UnicodeDecodeError:
            self.name = "latin-1"


def _line_end(name: str, records: Records) -> str:
    feeds, returns, pairs = records.line_feeds, records.returns, records.pairs
    if returns != pairs or pairs not in (0, feeds):
        raise DataQualityError(
            f"{name} has {feeds:,} line ends and {returns:,} carriage returns, {pairs:,} of them "
            "together as Windows has it: lines have to end alike, and cells to hold none; mend it or fetch it again"
        )
    return "\r\n" if pairs else "\n"


def _bomb(name: str, size: int, allowed: int) -> DataQualityError:
    return DataQualityError(
        f"{name} grows to {size:,} bytes or more, and {allowed:,} are plausible for its packed size: not unpacked; "
        "unpack it yourself if you trust it, and give the file"
    )
