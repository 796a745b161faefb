"""One file of delimited text, read as text: compressed or not; with a header or without; BOM, CRLF and quotes."""

import codecs
import csv
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv

from schemas.errors import DataQualityError
from schemas.source import Source

_HEADER_BYTES = 2**20


def names(source: Source, path: Path) -> list[str]:
    """Names of the file's columns in order: its first record, or those that the spec gives.

    Raises:
        DataQualityError: the file is empty, is not text, or its first record is not as long as the spec's header.
    """
    first = _first_record(source, path)
    if source.header and len(first) != len(source.header):
        raise DataQualityError(
            f"{path.name} has {len(first)} columns in its first row and source.header names {len(source.header)}; "
            "is source.delimiter right?"
        )
    return list(source.header) or first


def table(source: Source, path: Path, columns: Sequence[str]) -> tuple[pa.Table, list[int]]:
    """The named columns as text, and the numbers, from 1, of the rows that could not be split into columns.

    Raises:
        DataQualityError: the file is not in its declared encoding, or is no table at all.
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
    parse = pacsv.ParseOptions(delimiter=source.delimiter, newlines_in_values=True, invalid_row_handler=skip)
    options = pacsv.ReadOptions(  # one thread: rows keep their numbers
        encoding=_codec(source), use_threads=False, column_names=list(source.header) or None
    )
    try:
        content = _without_comments(source, path)
        return pacsv.read_csv(content, read_options=options, parse_options=parse, convert_options=convert), malformed
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise _unreadable(source, path, error) from error


def _first_record(source: Source, path: Path) -> list[str]:
    """The first record, read by itself: a broken line further down is a matter of rows."""
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            start = bytes(stream.read(_HEADER_BYTES))
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(source, path, error) from error
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataQualityError(f"{path.name} is UTF-16 text, as spreadsheets export it: save it as UTF-8")
    head = b"".join(_rows(source, start)).decode(_codec(source), errors="ignore")
    first = next(csv.reader(head.splitlines(keepends=True), delimiter=source.delimiter), [])
    if not first:
        raise _unreadable(source, path, pa.ArrowInvalid("Empty CSV file"))
    return first


def _without_comments(source: Source, path: Path) -> Path | pa.BufferReader:
    """The file, or what is left of it without the lines that the spec leaves out."""
    if not source.skip and source.comment is None:
        return path
    with pa.input_stream(str(path), compression="detect") as stream:
        return pa.BufferReader(b"".join(_rows(source, bytes(stream.read()))))


def _rows(source: Source, content: bytes) -> list[bytes]:
    """The lines that hold the header and the rows, without a byte order mark."""
    lines = content.removeprefix(codecs.BOM_UTF8).splitlines(keepends=True)[source.skip :]
    if source.comment is None:
        return lines
    mark = source.comment.encode(_codec(source))
    return [line for line in lines if not line.startswith(mark)]


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
