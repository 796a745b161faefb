"""One file of delimited text, read as text: compressed or not; with a header or without; BOM, CRLF and quotes.

Records are counted twice: by the parser, and over the bytes (``records``). No row is lost unnoticed.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.csv as pacsv

from schemas.audit.source import Source
from schemas.errors import DataQualityError
from tasks.ingest.sources.kept_lines import KeptLines
from tasks.ingest.sources.records import Dialect, Records

MOST_COLUMNS: Final = 10_000
_BLOCK: Final = 2**20
"""Bytes that the parser takes at a time; a longer record gets a larger block."""


def names(source: Source, path: Path) -> list[str]:
    """Names of the file's columns in order: its first record, or those that the spec gives.

    Raises:
        DataQualityError: the file is empty, is not text, has too many columns, or its first record is not as long as
            the spec's header.
    """
    first = _first_record(source, path)
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
    return list(source.header) or first


def table(source: Source, path: Path, columns: Sequence[str]) -> tuple[pa.Table, list[int]]:
    """The named columns as text, and the numbers, from 1, of the rows that could not be split into columns.

    Raises:
        DataQualityError: the file is not in its declared encoding, or is no table at all; a quote is not closed; a
            cell has several lines without ``source.multiline``; the parser found more or fewer rows than there are.
    """
    malformed: list[int] = []
    lines_before = 0 if source.header else 1  # a header is line 1, and the row after it is row 1

    def skip(row: pacsv.InvalidRow) -> str:
        malformed.append(row.number - lines_before)
        return "skip"

    convert = pacsv.ConvertOptions(
        column_types=dict.fromkeys(names(source, path), pa.string()),
        strings_can_be_null=False,
        include_columns=list(columns),
    )
    parse = pacsv.ParseOptions(
        delimiter=source.delimiter,
        quote_char='"' if source.quote == "double" else False,
        newlines_in_values=source.multiline,
        invalid_row_handler=skip,
    )
    try:
        content, records = _counted(source, path)
        options = pacsv.ReadOptions(  # one thread: rows keep their numbers
            encoding=_codec(source),
            use_threads=False,
            column_names=list(source.header) or None,
            block_size=max(_BLOCK, records.longest),
        )
        found = pacsv.read_csv(content, read_options=options, parse_options=parse, convert_options=convert)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise _unreadable(source, path, error) from error
    _check_balance(path, records.count - lines_before, found.num_rows + len(malformed))
    return found, malformed


def _check_balance(path: Path, records: int, rows: int) -> None:
    if rows != records:
        raise DataQualityError(
            f"{path.name} has {records:,} records below its header, and {rows:,} could be told apart: "
            "look for stray quotes and line ends inside of cells"
        )


def _first_record(source: Source, path: Path) -> list[str]:
    """The first record, read by itself: a broken line further down is a matter of rows."""
    quoting: Final = csv.QUOTE_MINIMAL if source.quote == "double" else csv.QUOTE_NONE
    try:
        head = io.StringIO(b"".join(_head(source, path)).decode(_codec(source)), newline="")
        first = next((row for row in csv.reader(head, delimiter=source.delimiter, quoting=quoting) if row), [])
    except (OSError, pa.ArrowException, UnicodeDecodeError, csv.Error) as error:
        raise _unreadable(source, path, error) from error
    if not first:
        raise _unreadable(source, path, pa.ArrowInvalid("Empty CSV file"))
    return first


def _head(source: Source, path: Path) -> Iterator[bytes]:
    """Chunks up to the one in which the first record ends."""
    lines = KeptLines(source, path, _codec(source))
    records = Records(path.name, _dialect(source), lines.line_number)
    for chunk in lines:
        records.add(chunk)
        yield chunk
        if records.count:
            return
    records.finish()


def _counted(source: Source, path: Path) -> tuple[Path | pa.BufferReader, Records]:
    """The file, or what is left of it without the lines that the spec leaves out; and its records, counted."""
    lines = KeptLines(source, path, _codec(source))
    records, kept = Records(path.name, _dialect(source), lines.line_number), []
    for chunk in lines:
        records.add(chunk)
        if lines.filtered:
            kept.append(chunk)
    records.finish()
    return (pa.BufferReader(b"".join(kept)) if lines.filtered else path), records


def _dialect(source: Source) -> Dialect:
    return Dialect(
        source.delimiter.encode(_codec(source)),
        quoting=source.quote == "double",
        multiline=source.multiline,
        remedy='escape it ("") or set source.quote: none',
        remedy_for_lines="a cell of several lines needs source.multiline: true",
    )


def _codec(source: Source) -> str:
    return "utf8" if source.encoding == "utf-8" else source.encoding


def _unreadable(source: Source, path: Path, error: Exception) -> DataQualityError:
    if path.stat().st_size == 0 or "Empty CSV" in str(error):
        return DataQualityError(f"{path.name} is empty: a header and at least one row are needed")
    if isinstance(error, UnicodeDecodeError) or "UTF8" in str(error) or "UTF-8" in str(error):
        return DataQualityError(
            f"{path.name} is not {source.encoding} text; set source.encoding: latin-1 if it is that"
        )
    return DataQualityError(f"{path.name} could not be read as a table: {error}")
