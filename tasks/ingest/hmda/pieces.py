"""Pieces of a text file, each of whole lines, as files of a DuckDB file system: several threads read one file.

Packed files and those of fixed width are one piece. Scope: bytes. Rows: ``lines``.
"""

import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from fsspec import AbstractFileSystem

from tasks.ingest.hmda.files.recognition import Recognised

LEAST_BYTES = 2**24
"""Of a piece: less is not worth a thread."""
_PROTOCOL = "hmdapieces"
_CHUNK = 2**22
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Piece:
    """Bytes ``start`` to ``stop`` of the file."""

    start: int
    stop: int
    before: int
    """Rows that come before them."""
    header: bool = False
    """Whether the first line is the header of the file."""


def cut(recognised: Recognised, most: int) -> list[Piece]:
    """The file without its header in at most so many pieces; one that cannot be cut is one piece with the header."""
    if recognised.compression != "none" or recognised.layout.stops:
        return [Piece(0, recognised.path.stat().st_size, 0, recognised.header)]
    return list(_cut(recognised, most))


def serve(connection: duckdb.DuckDBPyConnection, path: Path, pieces: Sequence[Piece]) -> list[str]:
    """Let a connection read the pieces of a file, in place of those of another; gives the name of each."""
    if [piece.start for piece in pieces] == [0]:
        return [str(path)]  # the whole file, which DuckDB opens faster by itself
    if _PROTOCOL in connection.list_filesystems():
        connection.unregister_filesystem(_PROTOCOL)
    connection.register_filesystem(_Pieces(path, pieces))
    return [f"{_PROTOCOL}://{i}" for i in range(len(pieces))]


def _cut(recognised: Recognised, most: int) -> Iterator[Piece]:
    size = recognised.path.stat().st_size
    with recognised.path.open("rb") as file:
        start = len(_BOM) if file.read(len(_BOM)) == _BOM else 0
        if recognised.header:
            file.seek(0)
            start = len(file.readline())
        before, count = 0, max(1, min(most, (size - start) // LEAST_BYTES))
        for i in range(1, count + 1):
            file.seek(start + (size - start) // (count - i + 1))
            file.readline()
            stop = size if i == count else file.tell()
            yield Piece(start, stop, before)
            if i < count:
                before += _lines_between(file, start, stop)
            start = stop


def _lines_between(file: io.BufferedReader, start: int, stop: int) -> int:
    file.seek(start)
    return sum(file.read(min(_CHUNK, stop - at)).count(b"\n") for at in range(start, stop, _CHUNK))


class _Part(io.RawIOBase):
    """One piece as a file of its own."""

    def __init__(self, path: Path, piece: Piece) -> None:
        super().__init__()
        self._file, self._piece = path.open("rb", buffering=0), piece
        self._file.seek(piece.start)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell() - self._piece.start

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: self._piece.start, os.SEEK_CUR: self._file.tell(), os.SEEK_END: self._piece.stop}[whence]
        return self._file.seek(base + offset) - self._piece.start

    def read(self, size: int = -1) -> bytes:
        left = max(self._piece.stop - self._file.tell(), 0)
        return self._file.read(left if size < 0 else min(size, left)) or b""

    def close(self) -> None:
        self._file.close()
        super().close()


class _Pieces(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """The pieces by their number, as DuckDB opens files of Python."""

    protocol = _PROTOCOL
    cachable = False

    def __init__(self, path: Path, pieces: Sequence[Piece]) -> None:
        super().__init__()
        self._path, self._pieces = path, pieces

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        name = self._strip_protocol(path)
        piece = self._pieces[int(name)]
        return {"name": name, "size": piece.stop - piece.start, "type": "file"}

    def glob(self, path: str, **_: Any) -> list[str]:
        return [self._strip_protocol(path)]

    def modified(self, path: str) -> Any:  # noqa: ARG002
        return self._path.stat().st_mtime

    def _open(self, path: str, mode: str = "rb", **_: Any) -> _Part:  # noqa: ARG002
        return _Part(self._path, self._pieces[int(self._strip_protocol(path))])
