"""Counts the records of delimited text over its bytes, so that what a parser reads can be held against it.

The parsers here open a quoted field at its first character alone: a quote further on is a letter (``5" pipe``). One
stray quote at the start of a field therefore takes the following lines into that field. Scope: counting, and finding
such a quote. Cells are split by the parsers.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from schemas.errors import DataQualityError, SeveralLinesError

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
        """Count the last record, which may lack its line end.

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
        """Whether the last quote before each line end can only close: the usual case, told without going through all.

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
