"""Splits a text file into pieces that end with a line, so that several threads read it and rows keep their numbers.

DuckDB numbers rows only where it reads with one thread. Here each piece is numbered by itself and its rows go on from
the lines before it; the pieces lie in the one file and are handed to DuckDB as if they were files. What cannot be cut,
packed files and fixed widths, is one piece, read as ``lines`` reads it.
"""
# ruff: noqa: S608 what goes into the SQL is quoted, or a name of the layouts

import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from fsspec import AbstractFileSystem
from numpy.typing import NDArray

from schemas.errors import DataQualityError
from tasks.ingest.hmda.canonical.cells import literal
from tasks.ingest.hmda.files import lines
from tasks.ingest.hmda.files.recognition import Recognised

LEAST_BYTES = 2**24
"""Of a piece: less is not worth a thread."""
_PROTOCOL = "hmdapieces"
_CHUNK = 2**22
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Piece:
    """Bytes ``start`` to ``stop`` of the file, and how many rows come before them."""

    start: int
    stop: int
    before: int


def open_raw(connection: duckdb.DuckDBPyConnection, recognised: Recognised, most: int) -> list[Piece]:
    """Make the view ``raw`` of the file in at most so many pieces: its columns as text, blank as null, ``source_row``.

    ``source_row`` counts the rows that can be read; ``source_rows`` makes of it the place in the file.
    """
    if recognised.compression != "none" or not recognised.delimiter or not recognised.line_end.endswith("\n"):
        lines.open_raw(connection, recognised)
        return [Piece(0, recognised.path.stat().st_size, 0)]
    found = list(_cut(recognised, most))
    if _PROTOCOL in connection.list_filesystems():
        connection.unregister_filesystem(_PROTOCOL)
    connection.register_filesystem(_Pieces(recognised.path, found))
    parts = " UNION ALL ".join(
        f"SELECT *, row_number() OVER () + {piece.before} AS source_row FROM {_table(recognised, i)}"
        for i, piece in enumerate(found)
    )
    connection.execute(f"CREATE OR REPLACE TEMP VIEW raw AS {parts}")
    return found


def broken_rows(
    connection: duckdb.DuckDBPyConnection, recognised: Recognised, pieces: Sequence[Piece], rows: int
) -> NDArray[np.int64]:
    """Numbers of the rows, from 1, whose line does not split into the columns; ``rows`` is how many ``raw`` gave.

    Raises:
        DataQualityError: rows and broken lines together are not the lines of the file, as with a quote left open.
    """
    if _PROTOCOL not in connection.list_filesystems():
        return np.array(lines.broken(connection, recognised, rows), np.int64)
    lines_of = (connection.execute(f"SELECT DISTINCT line FROM {_rejects(i)}").fetchnumpy() for i in range(len(pieces)))
    found = np.concatenate(
        [piece.before + each["line"].astype(np.int64) for piece, each in zip(pieces, lines_of, strict=True)]
    )
    expected = recognised.lines - recognised.header
    if rows + len(found) not in (expected, expected - _blank_lines(recognised)):
        raise DataQualityError(
            f"{recognised.path.name} has {expected:,} lines below its header, and {rows + len(found):,} can be told "
            "apart: a quote is left open, or a cell goes over several lines; mend the file or fetch it again"
        )
    return np.sort(found)


def source_rows(places: NDArray[np.int64], pieces: Sequence[Piece], broken: NDArray[np.int64]) -> NDArray[np.int64]:
    """``(n,)`` places in the file, from 1, of rows by their number in ``raw``: broken lines take up places, too."""
    out = places.copy()
    bounds = [*(piece.before for piece in pieces), np.iinfo(np.int64).max]
    for low, high in pairwise(bounds):
        mine, missing = (places > low) & (places <= high), broken[(broken > low) & (broken <= high)]
        out[mine] = low + lines.source_rows(places[mine] - low, missing - low)
    return out


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


def _blank_lines(recognised: Recognised) -> int:
    with recognised.path.open("rb") as file:
        return sum(not line.strip() for line in file)


def _rejects(index: int) -> str:
    return f"broken_lines_{index}"


def _table(recognised: Recognised, index: int) -> str:
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in recognised.columns)
    said = {
        "auto_detect": "false",
        "header": "false",
        "encoding": literal(recognised.encoding),
        "delim": literal(recognised.delimiter),
        "new_line": literal(recognised.line_end.replace("\r", "\\r").replace("\n", "\\n")),
        "quote": "'\"'",
        "escape": "'\"'",
        "nullstr": "''",
        "columns": "{" + columns + "}",
        "store_rejects": "true",
        "rejects_table": literal(_rejects(index)),
        "rejects_scan": literal(f"{_rejects(index)}_scan"),
        "rejects_limit": "0",
    }
    return f"read_csv('{_PROTOCOL}://{index}', {', '.join(f'{k} = {v}' for k, v in said.items())})"


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
