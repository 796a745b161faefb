"""Delimited text and Parquet files, read as text; compressed or not; a BOM, CRLF and quotes understood."""

import codecs
import csv
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from schemas.errors import DataQualityError, InfrastructureError
from schemas.settings import Source
from tasks._store import sha256_of
from tasks.sources._raw import Raw

_HEADER_BYTES = 2**20


def locate(source: Source) -> Path:
    """The file of a source.

    Raises:
        InfrastructureError: it is not there or cannot be read.
    """
    path = Path(source.path or "")
    if not path.is_file():
        raise InfrastructureError(
            f"no file at source.path {str(path)!r} (from {Path.cwd()}); "
            "give the right one in the spec or with --set source.path=FILE"
        )
    return path


def digest(source: Source) -> str:
    """sha256 of the file."""
    return sha256_of(locate(source))


def header(source: Source) -> list[str]:
    """Names of the file's columns, in order.

    Raises:
        DataQualityError: the file has no header, or a column stands in it twice.
    """
    path = locate(source)
    names = list(_parquet(path).schema_arrow.names) if source.kind == "parquet" else _csv_header(source, path)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataQualityError(f"{path.name}: the header names {twice} more than once; every column needs its own name")
    return names


def read(source: Source, columns: Sequence[str]) -> Raw:
    """The named columns as text.

    Raises:
        DataQualityError: the file is not in its declared encoding, or is no table at all.
    """
    path = locate(source)
    if source.kind == "parquet":
        table = _as_text(_parquet(path).read(columns=list(columns)))
        return Raw(table, list(range(1, table.num_rows + 1)), [])
    malformed: list[int] = []
    table = _read_csv(source, path, columns, malformed)
    gone = set(malformed)
    rows = table.num_rows + len(gone)
    return Raw(table, [i for i in range(1, rows + 1) if i not in gone], malformed)


def _read_csv(source: Source, path: Path, columns: Sequence[str], malformed: list[int]) -> pa.Table:
    def skip(row: pacsv.InvalidRow) -> str:
        malformed.append(row.number - 1)  # the header is line 1, its first row is row 1
        return "skip"

    names = header(source)
    convert = pacsv.ConvertOptions(
        column_types={name: pa.string() for name in names}, strings_can_be_null=False, include_columns=list(columns)
    )
    parse = pacsv.ParseOptions(delimiter=source.delimiter, newlines_in_values=True, invalid_row_handler=skip)
    options = pacsv.ReadOptions(encoding=_codec(source), use_threads=False)  # one thread: rows keep their numbers
    try:
        return pacsv.read_csv(path, read_options=options, parse_options=parse, convert_options=convert)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise _unreadable(source, path, error) from error


def _csv_header(source: Source, path: Path) -> list[str]:
    """The first record, read by itself: a broken line further down is a matter of rows."""
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            start = bytes(stream.read(_HEADER_BYTES))
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(source, path, error) from error
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataQualityError(f"{path.name} is UTF-16 text, as spreadsheets export it: save it as UTF-8")
    head = start.decode(_codec(source), errors="ignore").removeprefix("\ufeff")
    names = next(csv.reader(head.splitlines(keepends=True), delimiter=source.delimiter), [])
    if not names:
        raise _unreadable(source, path, pa.ArrowInvalid("Empty CSV file"))
    return names


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


def _parquet(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except pa.ArrowException as error:
        raise DataQualityError(f"{path.name} is not a Parquet file: {error}") from error


def _as_text(table: pa.Table) -> pa.Table:
    columns = [pc.fill_null(pc.cast(column, pa.string()), "") for column in table.columns]
    return pa.table(columns, names=table.column_names)
