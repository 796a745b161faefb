"""Delimiter, header and encoding of delimited text that nobody described, by its first lines."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa

from schemas.audit.source import Source
from schemas.errors import DataQualityError
from tasks.ingest.sources.kept_lines import KeptLines

DELIMITERS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "pipes", " ": "blanks"}
"""In the order in which they are believed: a comma may have a blank behind it."""
_HEAD, _ROWS = 2**17, 300
"""Bytes and records that are looked at."""
_ALIKE = 0.9
"""Share of the records with the same number of cells, of the right delimiter."""


@dataclass(frozen=True)
class Dialect:
    """How the first lines of a file read."""

    source: Source
    records: tuple[tuple[str, ...], ...]
    """The first records, a header included."""
    has_header: bool

    @property
    def cells(self) -> str:
        """What stands between cells, in words."""
        return DELIMITERS[self.source.delimiter]


def sniffed(path: Path) -> Dialect:
    """The delimiter that most records agree on, and whether the first record names columns.

    Raises:
        DataQualityError: the file is no text, empty, or cannot be unpacked.
    """
    text, encoding = _head(path)
    parted = {mark: _records(text, mark) for mark in DELIMITERS}
    best = max(DELIMITERS, key=lambda mark: _score(parted[mark]))
    if _score(parted[best]) == (False, 0):
        best = max(",|;\t", key=text.partition("\n")[0].count)
    if not parted[best]:
        raise DataQualityError(
            f"{path.name}: no row could be told apart in its first {_HEAD // 1024} kB; is it a table, and are its "
            "quotes closed?"
        )
    source = Source(kind="csv", path=str(path), delimiter=best, encoding=encoding)
    return Dialect(source, tuple(map(tuple, parted[best])), _is_header(parted[best]))


def _head(path: Path) -> tuple[str, Literal["utf-8", "latin-1"]]:
    """The first whole lines, and the encoding of the file: Latin-1 where any line is not UTF-8."""
    chunks = iter(KeptLines(Source(kind="csv", path=str(path)), path, "utf8"))
    try:
        chunk = next(chunks, b"")
        utf8 = all(map(_is_utf8, chain([chunk], chunks)))
    except (OSError, pa.ArrowException) as error:
        raise DataQualityError(f"{path.name} could not be read as a table: {error}") from error
    if not chunk.strip():
        raise DataQualityError(f"{path.name} is empty: a header and at least one row are needed")
    head = chunk[:_HEAD].rpartition(b"\n")[0] if len(chunk) > _HEAD else chunk
    return (head.decode("utf-8"), "utf-8") if utf8 else (head.decode("latin-1"), "latin-1")


def _is_utf8(chunk: bytes) -> bool:
    try:
        chunk.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _records(text: str, delimiter: str) -> list[list[str]]:
    try:
        found = islice(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), _ROWS)
        return [[cell.strip() for cell in record] for record in found if record]
    except csv.Error:
        return []


def _score(records: Sequence[Sequence[str]]) -> tuple[bool, int]:
    """Whether records are alike, and into how many cells; the header counts, a cut last record does not."""
    counts = Counter(map(len, records))
    cells, alike = counts.most_common(1)[0] if counts else (0, 0)
    steady = cells > 1 and alike >= _ALIKE * len(records) and len(records[0]) == cells
    return steady, cells if steady else 0


def _is_header(records: Sequence[Sequence[str]]) -> bool:
    """Whether the first record names columns: no number over numbers, and few of its cells are values further down."""
    first, below = records[0], [record for record in records[1:] if len(record) == len(records[0])]
    if len(set(first)) < len(first) and len(set(filter(None, first))) * 2 < len(first):
        return False
    columns = [[record[i] for record in below] for i in range(len(first))]
    number_over_numbers = any(_number(cell) and _numbers(column) for cell, column in zip(first, columns, strict=True))
    texts = [(cell, column) for cell, column in zip(first, columns, strict=True) if cell and not _number(cell)]
    again = sum(cell in column for cell, column in texts)
    return not number_over_numbers and bool(texts) and again * 2 < max(len(texts), 1)


def _numbers(column: Sequence[str]) -> bool:
    present = [cell for cell in column if cell]
    return sum(map(_number, present)) * 2 > len(present)


def _number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
