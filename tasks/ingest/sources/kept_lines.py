"""The lines of a delimited file that hold its header and rows: unpacked as a stream, within limits.

Scope: bytes and lines. ``records`` counts them, and ``text`` makes a table of them.
"""

import codecs
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa

from schemas.audit.source import Source
from schemas.errors import DataQualityError
from tasks.ingest.sources.records import LONGEST, whole_lines

MOST_RATIO: Final = 200
"""Bytes of text for a byte of the packed file."""
FREE_BYTES: Final = 100_000_000
"""So many bytes of text may come whatever the ratio."""
_BLOCK: Final = 2**20


class KeptLines:
    """Chunks of whole lines without a byte order mark, without those that ``skip`` and ``comment`` leave out."""

    def __init__(self, source: Source, path: Path, encoding: str) -> None:
        """Nothing is opened before the first chunk is asked for."""
        self._source, self._path = source, path
        self._mark = None if source.comment is None else source.comment.encode(encoding)
        self._left_out: list[int] = []  # of each line left out: how many were kept before it

    @property
    def filtered(self) -> bool:
        """Whether lines may be left out."""
        return self._source.skip > 0 or self._mark is not None

    def __iter__(self) -> Iterator[bytes]:
        """Read the file from its start.

        Raises:
            DataQualityError: it is no text, or larger than the limits allow.
            OSError, pyarrow.ArrowException: it cannot be read or unpacked.
        """
        chunks = whole_lines(self._blocks())
        return self._filter(chunks) if self.filtered else chunks

    def line_number(self, kept: int) -> int:
        """Number of a line in the file, from 1, of its number among those that were kept."""
        return kept + bisect_right(self._left_out, kept - 1)

    def _filter(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        self._left_out, seen = [], 0
        for chunk in chunks:
            out = []
            for line in chunk.splitlines(keepends=True):
                seen += 1
                skipped = seen <= self._source.skip or (self._mark is not None and line.startswith(self._mark))
                if skipped and len(line) <= LONGEST:  # of a longer one this may be a part
                    self._left_out.append(seen - 1 - len(self._left_out))
                else:
                    out.append(line)
            if out:
                yield b"".join(out)

    def _blocks(self) -> Iterator[bytes]:
        packed, total = self._path.stat().st_size, 0
        with pa.input_stream(str(self._path), compression="detect") as stream:
            while block := stream.read(_BLOCK):
                if not total:
                    self._check_start(block)
                total += len(block)
                self._check_size(total, packed)
                if b"\0" in block:
                    raise DataQualityError(
                        f"{self._path.name} holds NUL bytes, and text has none: is it another kind of file, or UTF-16? "
                        "Save it as UTF-8"
                    )
                yield block.removeprefix(codecs.BOM_UTF8) if total == len(block) else block

    def _check_start(self, block: bytes) -> None:
        if block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise DataQualityError(f"{self._path.name} is UTF-16 text, as spreadsheets export it: save it as UTF-8")

    def _check_size(self, total: int, packed: int) -> None:
        most = self._source.maximum_bytes
        if total > most:
            raise DataQualityError(
                f"{self._path.name} holds more than {most:,} bytes of text, which is where source.maximum_bytes stops; "
                "raise it if the file is meant to be that large"
            )
        if total > FREE_BYTES and total > MOST_RATIO * packed:
            raise DataQualityError(
                f"{self._path.name} unpacks to more than {MOST_RATIO} times its size, which no table does: stopped; "
                "unpack it yourself if you trust it, and give the file"
            )
