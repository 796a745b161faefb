"""Delimited text within limits: its lines, records and cells."""

import codecs
import csv
import io
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from schemas.audit.source import Source
from schemas.errors import DataQualityError, SeveralLinesError
from tasks.ingest.sources.containers import blocks, packing, unpacked
from tasks.ingest.sources.encodings import to_utf8
from tasks.ingest.sources.layout import usable_names

# --------------------------------------------------------------------------------------------------------------------
# Counts the records of delimited text over its bytes, so that what a parser reads can be held against it.
#
# The parsers here open a quoted field at its first character alone: a quote further on is a letter (``5" pipe``). One
# stray quote at the start of a field therefore takes the following lines into that field. Scope: counting, and finding
# such a quote. Cells are split by the parsers.


MOST_LINES: Final = 100
"""Lines that a quoted field may cover."""
MOST_BYTES: Final = 64_000
"""Bytes of a quoted field that covers several lines."""
LONGEST: Final = 16_000_000
"""Bytes of a record."""

_QUOTE, _LF, _CR = b'"\n\r'
_Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Dialect:
    """How records are written."""

    delimiter: bytes
    quoting: bool = True
    """Whether a quote at the start of a field makes it a quoted one."""
    multiline: bool = False
    """Whether a quoted field may hold line ends."""
    remedy: str = "mend the file, or fetch it again"
    """What the user does about a stray quote."""
    remedy_for_lines: str = "cells of several lines are not read here"
    """What the user does about a quoted field of several lines."""


def whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes cut after a line feed, or after a carriage return where a block has no line feed.

    A line without an end is cut once it is longer than ``LONGEST``, which ``Records`` refuses.
    """
    rest = b""
    for block in blocks:
        text = rest + block if rest else block
        stop = text.rfind(b"\n") + 1 or text.rfind(b"\r", 0, -1) + 1 or (len(text) if len(text) > LONGEST else 0)
        if stop:
            yield text[:stop]
        rest = text[stop:]
    if rest:
        yield rest


class Records:
    """A running count over chunks of whole lines."""

    def __init__(self, name: str, dialect: Dialect, line_number: Callable[[int], int] = int) -> None:
        """Nothing is counted yet.

        Args:
            name: The file's, for messages.
            dialect: May be set anew before the first quote.
            line_number: Number of a line in the file, of its number among the lines that are counted.
        """
        self.dialect = dialect
        self.count, self.lines, self.longest = 0, 0, 0
        """Records that are not blank; lines; bytes of the longest record."""
        self.line_feeds, self.returns, self.pairs = 0, 0, 0
        self._name, self._line_number = name, line_number
        self._read, self._start, self._start_line = 0, 0, 1  # bytes so far; where the unfinished record begins
        self._open: tuple[int, int] | None = None  # byte and line of a quote that is open at the end of the chunk

    def add(self, chunk: bytes) -> None:
        """Count a chunk.

        Raises:
            DataQualityError: a record is too long; a quoted field covers several lines where none may, or too many.
        """
        data = np.frombuffer(chunk, np.uint8)
        ends = self._line_ends(chunk, data)
        closing = ends
        if self._open is not None or (self.dialect.quoting and b'"' in chunk):
            closing = ends[~self._quoted(chunk, data, ends)]
        self._add_records(data, ends, closing)
        self.lines += len(ends)
        self._read += len(chunk)

    def finish(self) -> None:
        """Count the last record, which may have no line end.

        Raises:
            DataQualityError: a quote is open.
        """
        if self._open is not None:
            raise self._unclosed(self._open[1], "by the end of the file")
        if self._start < self._read:
            self.count += 1
            self.lines += 1
            self._start = self._read

    def _line_ends(self, chunk: bytes, data: NDArray[np.uint8]) -> _Positions:
        """Place of the last byte of each line end."""
        feeds = np.flatnonzero(data == _LF)
        self.line_feeds += len(feeds)
        if b"\r" not in chunk:
            return feeds
        returns = np.flatnonzero(data == _CR)
        alone = returns[data[np.minimum(returns + 1, len(data) - 1)] != _LF]
        self.returns += len(returns)
        self.pairs += len(returns) - len(alone)
        return np.sort(np.concatenate([feeds, alone])) if len(alone) else feeds

    def _quoted(self, chunk: bytes, data: NDArray[np.uint8], ends: _Positions) -> NDArray[np.bool_]:
        """Whether each line end is inside of a quoted field.

        Doubled quotes cancel out, so that runs of an odd number alone change anything. Behind a delimiter or a line
        end such a run opens a field, or closes the open one; elsewhere it can only close.
        """
        quotes = np.flatnonzero(data == _QUOTE)
        if self._all_closed(data, quotes, ends):
            return np.zeros(len(ends), bool)
        runs = _odd_runs(quotes) if b'""' in chunk else quotes
        toggles = self._separator(data[np.maximum(runs - 1, 0)]) | (runs == 0)
        toggled = np.cumsum(toggles) + (self._open is not None)
        at_reset = np.maximum.accumulate(np.where(toggles, 0, toggled))
        inside = np.concatenate([[self._open is not None], (toggled - at_reset) & 1 == 1])
        quoted: NDArray[np.bool_] = inside[np.searchsorted(runs, ends)]
        opening, closing = runs[~inside[:-1] & inside[1:]], runs[inside[:-1] & ~inside[1:]]
        self._check_spans(opening, closing, ends, bool(quoted.any()) or self._open is not None)
        return quoted

    def _all_closed(self, data: NDArray[np.uint8], quotes: _Positions, ends: _Positions) -> bool:
        """Whether the last quote before each line end can only close: the usual case, found without reading all bytes.

        False says nothing.
        """
        if self._open is not None or not len(quotes) or not len(ends) or ends[-1] != len(data) - 1:
            return False
        last = quotes[np.maximum(np.searchsorted(quotes, ends) - 1, 0)]
        before = data[np.maximum(last - 1, 0)]
        return not (self._separator(before) | (before == _QUOTE)).any()

    def _separator(self, data: NDArray[np.uint8]) -> NDArray[np.bool_]:
        separator: NDArray[np.bool_] = (data == self.dialect.delimiter[0]) | (data == _LF) | (data == _CR)
        return separator

    def _check_spans(self, opening: _Positions, closing: _Positions, ends: _Positions, several: bool) -> None:
        """Hold the fields that cover several lines against the dialect, and keep the one that is still open."""
        lines = self.lines + 1 + np.searchsorted(ends, opening)
        places = opening + self._read
        if self._open is not None:
            places, lines = np.append(self._open[0], places), np.append(self._open[1], lines)
        still_open = len(places) > len(closing)
        if several:
            last = self.lines + 1 + np.searchsorted(ends, closing)
            stop = closing + self._read
            if still_open:  # all that was read belongs to it
                last, stop = (
                    np.append(last, self.lines + 1 + len(ends)),
                    np.append(stop, self._read + int(ends[-1] if len(ends) else 0)),
                )
            self._check_lines(lines, last, stop - places, len(closing))
        self._open = (int(places[-1]), int(lines[-1])) if still_open else None

    def _check_lines(self, first: _Positions, last: _Positions, size: _Positions, closed: int) -> None:
        covered = last - first
        far, large = covered >= MOST_LINES, (covered > 0) & (size > MOST_BYTES)
        refused = far | large
        if not self.dialect.multiline:
            refused[:closed] |= covered[:closed] > 0
        if not refused.any():
            return
        at = int(np.argmax(refused))
        if far[at] or large[at]:
            raise self._unclosed(int(first[at]), f"within {MOST_LINES} lines" if far[at] else f"within {_KB} kB")
        raise SeveralLinesError(
            f"{self._name}: the quote that opens in line {self._number(first[at])} is closed in line "
            f"{self._number(last[at])}; {self.dialect.remedy_for_lines}; if it is a stray quote, {self.dialect.remedy}"
        )

    def _add_records(self, data: NDArray[np.uint8], ends: _Positions, closing: _Positions) -> None:
        stops = closing + self._read
        starts = np.append(self._start, stops + 1)
        sizes = np.diff(np.append(starts, self._read + len(data)))
        longest = int(sizes.max())
        if longest > LONGEST:
            begun = starts[int(np.argmax(sizes > LONGEST))] - self._read
            line = self._start_line if begun <= 0 else self.lines + 1 + int(np.searchsorted(ends, begun))
            raise DataQualityError(
                f"{self._name}: line {self._number(line)} is longer than {LONGEST // 10**6} MB; is it a table?"
            )
        self.longest = max(self.longest, longest)
        ending = 1 + ((data[closing] == _LF) & (data[np.maximum(closing - 1, 0)] == _CR) & (closing > 0))
        self.count += int(np.count_nonzero(sizes[:-1] > ending))
        if len(closing):
            self._start = int(starts[-1])
            self._start_line = self.lines + 1 + int(np.searchsorted(ends, closing[-1], side="right"))

    def _unclosed(self, line: int, within: str) -> DataQualityError:
        return DataQualityError(
            f"{self._name}: the quote that opens in line {self._number(line)} is not closed {within}; "
            f"{self.dialect.remedy}"
        )

    def _number(self, line: Any) -> str:
        return f"{self._line_number(int(line)):,}"


_KB: Final = MOST_BYTES // 1000


def _odd_runs(quotes: _Positions) -> _Positions:
    """Place of the first of each odd number of quotes side by side."""
    first = np.flatnonzero(np.diff(quotes, prepend=-2) != 1)
    length = np.diff(np.append(first, len(quotes)))
    odd: _Positions = quotes[first[length & 1 == 1]]
    return odd


# --------------------------------------------------------------------------------------------------------------------
# The lines of a delimited file that hold its header and rows: unpacked as a stream, within limits.
#
# Scope: bytes and lines. ``records`` counts them, and ``text`` makes a table of them.


class KeptLines:
    """Chunks of whole lines in UTF-8, without a byte order mark, ``skip`` lines at the start, and comments."""

    def __init__(self, source: Source, path: Path) -> None:
        """Nothing is opened before the first chunk is read."""
        self._source, self._path = source, path
        self._mark = None if source.comment is None else source.comment.encode()
        self._left_out: list[int] = []  # of each line left out: how many were kept before it

    @property
    def as_they_are(self) -> bool:
        """Whether the chunks are what the file holds, so that a parser may read the file itself."""
        source = self._source
        plain = source.skip == 0 and self._mark is None and source.encoding == "utf-8" and not source.starts
        return plain and packing(self._path) != "zip"

    def __iter__(self) -> Iterator[bytes]:
        """Read the file from its start.

        Raises:
            DataQualityError: it is no text, or larger than the limits allow.
            OSError, pyarrow.ArrowException, UnicodeDecodeError: it cannot be read, unpacked or decoded.
        """
        chunks = whole_lines(to_utf8(self._blocks(), self._source.encoding))
        if self._source.skip or self._mark is not None:
            chunks = self._filter(chunks)
        return self._parted(chunks) if self._source.starts else chunks

    def line_number(self, row_number: int) -> int:
        """Number of a line in the file, from 1, of its number among those that were kept."""
        return row_number + bisect_right(self._left_out, row_number - 1)

    def _filter(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        self._left_out, line_count = [], 0
        for chunk in chunks:
            if self._mark is None and line_count >= self._source.skip:
                yield chunk
                continue
            out = []
            for line in chunk.splitlines(keepends=True):
                line_count += 1
                skipped = line_count <= self._source.skip or (self._mark is not None and line.startswith(self._mark))
                if skipped and len(line) <= LONGEST:  # of a longer one this may be a part
                    self._left_out.append(line_count - 1 - len(self._left_out))
                else:
                    out.append(line)
            if out:
                yield b"".join(out)

    def _parted(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """The lines with the delimiter between cells that are aligned."""
        for chunk in chunks:
            lines = chunk.decode().splitlines()
            cells = (cells_at(line, self._source.starts) or [line] for line in lines)
            yield "".join(self._source.delimiter.join(record) + "\n" for record in cells).encode()

    def _blocks(self) -> Iterator[bytes]:
        """The bytes of the file, unpacked, within limits."""
        source, start = self._source, True
        limit_words = "which is where source.maximum_bytes stops; raise it if the file is meant to be that large"
        for block in blocks(self._path, source.member, source.maximum_bytes, limit_words):
            if source.encoding not in ("utf-16", "utf-32"):
                if start and block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                    raise DataQualityError(
                        f"{self._path.name} is UTF-16 text, as spreadsheets export it: set source.encoding: utf-16"
                    )
                if b"\0" in block:
                    raise DataQualityError(
                        f"{self._path.name} holds NUL bytes, and text has none: is it another kind of file, or UTF-16? "
                        "Set source.encoding: utf-16, or save it as UTF-8"
                    )
            start = False
            yield block


def cells_at(line: str, starts: Sequence[int]) -> list[str]:
    """The cells of a line that begin at some characters; none where a text goes on over such a place."""
    if any(line[start - 1 : start].strip() for start in starts[1:]):
        return []
    return [line[start:stop].strip() for start, stop in zip(starts, (*starts[1:], len(line)), strict=True)]


class _Content(io.RawIOBase):
    """Chunks as a file, for a parser that reads it from its start to its end."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        """Nothing is read before the first call of ``read``."""
        self._chunks, self._rest = iter(chunks), b""

    def readable(self) -> bool:
        """It is read, and nothing else."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes: so many, or all."""
        parts, count = [self._rest], len(self._rest)
        while size < 0 or count < size:
            chunk = next(self._chunks, b"")
            if not chunk:
                break
            parts.append(chunk)
            count += len(chunk)
        content = b"".join(parts)
        end = len(content) if size < 0 else size
        self._rest = content[end:]
        return content[:end]


# --------------------------------------------------------------------------------------------------------------------
# One file of delimited text, read as text: compressed or not; with a header or without; BOM, CRLF and quotes.
#
# Records are counted twice: by the parser, and over the bytes (``records``). No row is lost unnoticed.


MOST_COLUMNS: Final = 10_000
_TEXT_BLOCK: Final = 2**20
"""Bytes that the parser takes at a time; a longer record gets a larger block."""


def names(source: Source, path: Path) -> list[str]:
    """Names of the file's columns in order: its first record, or those that the spec gives.

    Raises:
        DataQualityError: the file is empty, is not text, has too many columns, or its first record is not as long as
            the spec's header.
    """
    quoting: Final = csv.QUOTE_MINIMAL if source.quote == "double" else csv.QUOTE_NONE
    try:
        head = io.StringIO(b"".join(_head(source, path)).decode(), newline="")
        first = next((row for row in csv.reader(head, delimiter=source.delimiter, quoting=quoting) if row), [])
    except (OSError, pa.ArrowException, UnicodeDecodeError, csv.Error) as error:
        raise _unreadable(source, path, error) from error
    if not first:
        raise _unreadable(source, path, pa.ArrowInvalid("Empty CSV file"))
    if len(first) > MOST_COLUMNS:
        raise DataQualityError(
            f"{path.name} has {len(first):,} columns in its first row, and at most {MOST_COLUMNS:,} are read; "
            "is source.delimiter right?"
        )
    if source.header and len(first) != len(source.header):
        raise DataQualityError(
            f"{path.name} has {len(first)} columns in its first row and source.header names {len(source.header)}; "
            "is source.delimiter right?"
        )
    if source.header:
        return list(source.header)
    return usable_names(first) if source.intake is not None else first


def table(source: Source, path: Path, columns: Sequence[str]) -> tuple[pa.Table, list[int]]:
    """The named columns as text, and the numbers, from 1, of the rows that could not be split into columns.

    Raises:
        DataQualityError: the file is not in its declared encoding, or is no table at all; a quote is not closed; a
            cell has several lines without ``source.multiline``; the parser found more or fewer rows than there are.
    """
    malformed: list[int] = []
    try:
        records = counted(source, path)
        options = _options(source, path, columns, malformed, records.longest)
        with _content(source, path) as content:
            text_table = pacsv.read_csv(content, **options)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise _unreadable(source, path, error) from error
    _check_rows(source, path, records.count, text_table.num_rows + len(malformed))
    return text_table, malformed


def batches(source: Source, path: Path, columns: Sequence[str], malformed: list[int]) -> Iterator[pa.RecordBatch]:
    """The same a batch at a time, so that no table is held; ``malformed`` is complete after the last one.

    Raises:
        DataQualityError: as ``table``.
    """
    rows = 0
    try:
        records = counted(source, path)
        options = _options(source, path, columns, malformed, records.longest)
        with _content(source, path) as content, pacsv.open_csv(content, **options) as reader:
            for batch in reader:
                rows += batch.num_rows
                yield batch
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise _unreadable(source, path, error) from error
    _check_rows(source, path, records.count, rows + len(malformed))


def _options(source: Source, path: Path, columns: Sequence[str], malformed: list[int], longest: int) -> dict[str, Any]:
    """How the parser reads a file; the rows that it cannot split go to ``malformed``."""
    passed_over = 0 if source.header or source.intake is None else _blank_lines(source, path) + 1
    lines_before = 0 if source.header else max(passed_over, 1)  # a header is line 1, and the row after it is row 1

    def skip(row: pacsv.InvalidRow) -> str:
        malformed.append(row.number - lines_before)
        return "skip"

    column_names = names(source, path)
    convert = pacsv.ConvertOptions(
        column_types=dict.fromkeys(column_names, pa.string()),
        strings_can_be_null=False,
        include_columns=list(columns),
    )
    parse = pacsv.ParseOptions(
        delimiter=source.delimiter,
        quote_char='"' if source.quote == "double" else False,
        newlines_in_values=source.multiline,
        invalid_row_handler=skip,
    )
    # Names of an intake are cleaned: the header's own record is passed over. One thread: rows keep their numbers.
    read = pacsv.ReadOptions(
        use_threads=False,
        column_names=column_names if source.header or source.intake is not None else None,
        skip_rows_after_names=passed_over,
        block_size=max(_TEXT_BLOCK, longest),
    )
    return {"read_options": read, "parse_options": parse, "convert_options": convert}


def _check_rows(source: Source, path: Path, records: int, rows: int) -> None:
    """Hold the rows that a parser gave against the records that were counted."""
    expected = records - (0 if source.header else 1)
    if rows != expected:
        raise DataQualityError(
            f"{path.name} has {expected:,} records below its header, and {rows:,} could be separated: "
            "look for stray quotes and line ends inside of cells"
        )


def _blank_lines(source: Source, path: Path) -> int:
    """Lines without anything before the header."""
    start = b"".join(_head(source, path))
    return start[: len(start) - len(start.lstrip(b"\r\n"))].replace(b"\r\n", b"\n").count(b"\n")


def counted(source: Source, path: Path) -> Records:
    """The records of the file, its header among them, counted over its bytes.

    Raises:
        DataQualityError: as ``Records``, and ``KeptLines``.
        OSError, pyarrow.ArrowException, UnicodeDecodeError: as ``KeptLines``.
    """
    lines = KeptLines(source, path)
    records = Records(path.name, dialect(source), lines.line_number)
    for chunk in lines:
        records.add(chunk)
    records.finish()
    return records


def _head(source: Source, path: Path) -> Iterator[bytes]:
    """Chunks up to the one in which the first record ends."""
    lines = KeptLines(source, path)
    records = Records(path.name, dialect(source), lines.line_number)
    for chunk in lines:
        records.add(chunk)
        yield chunk
        if records.count:
            return
    records.finish()


@contextmanager
def _content(source: Source, path: Path) -> Iterator[Any]:
    """What the parser reads: the file, or its lines as a stream where some are left out, packed or recoded."""
    lines = KeptLines(source, path)
    if not lines.as_they_are:
        yield _Content(lines)
        return
    with unpacked(path) as stream:
        yield stream


def dialect(source: Source) -> Dialect:
    """How the records of a source are written."""
    return Dialect(
        source.delimiter.encode(),
        quoting=source.quote == "double",
        multiline=source.multiline,
        remedy='escape it ("") or set source.quote: none',
        remedy_for_lines="a cell of several lines needs source.multiline: true",
    )


def _unreadable(source: Source, path: Path, error: Exception) -> DataQualityError:
    if path.stat().st_size == 0 or "Empty CSV" in str(error):
        return DataQualityError(f"{path.name} is empty: a header and at least one row are needed")
    if isinstance(error, UnicodeDecodeError) or "UTF8" in str(error) or "UTF-8" in str(error):
        return DataQualityError(f"{path.name} is not {source.encoding} text; set source.encoding: cp1252 if it is that")
    if "include_columns" in str(error):
        words = (
            f"its header, read as {source.encoding}, lacks a column of the spec; check source.encoding and source.skip"
        )
        return DataQualityError(f"{path.name}: {words}")
    return DataQualityError(f"{path.name} could not be read as a table: {error}")
