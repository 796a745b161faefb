"""One Parquet file, its columns as text, within limits.

A footer is judged by its size before it is read. Rows are decoded in batches, and text that repeats stays a dictionary
until its length as text is known, so that a small file cannot fill the memory.
"""

import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.audit.source import Source
from schemas.errors import DataQualityError
from tasks.ingest.sources.containers import FREE_BYTES, MOST_RATIO, local
from tasks.ingest.sources.delimited_text import MOST_COLUMNS
from tasks.ingest.sources.layout import usable_names
from tasks.ingest.sources.reader_process import Facts
from tasks.ingest.sources.typed_cells import as_text, is_nested

MOST_FOOTER: Final = 64_000_000
"""Bytes of the footer, which describes every column of every group of rows."""
_MAGIC, _LOCKED = b"PAR1", b"PARE"
_ROWS: Final = 65_536
"""Rows that are decoded at a time."""
_LONGEST_REASON: Final = 200
_VARIED: Final = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


def names(source: Source, path: Path) -> list[str]:
    """Names of the file's columns, in order; under an intake without nested ones.

    Raises:
        DataQualityError: the file cannot be read, has no rows, too many columns, or two of one name.
    """
    with local(path, source.member, source.maximum_bytes) as plain, _refused(plain), _opened(plain) as file:
        return list(_stored_names(source, file.schema_arrow))


def facts(source: Source, path: Path) -> Facts:
    """Names, rows and nested columns of the file.

    Raises:
        DataQualityError: as ``names``.
    """
    with local(path, source.member, source.maximum_bytes) as plain, _refused(plain), _opened(plain) as file:
        nested = tuple(f.name for f in file.schema_arrow if is_nested(f.type))
        stored = _stored_names(source, file.schema_arrow)
        labels = {name: text for name, text in stored.items() if name != text}
        return Facts(tuple(stored), file.metadata.num_rows, labels, nested)


def table(source: Source, path: Path, columns: Sequence[str]) -> tuple[pa.Table, list[int]]:
    """The named columns as text, and the numbers of broken rows: none here.

    Raises:
        DataQualityError: as ``names``; or a column holds no plain values, or text that is not UTF-8.
    """
    found = list(batches(source, path, columns, []))
    schema = pa.schema([(name, pa.string()) for name in columns])
    return pa.Table.from_batches(found, schema), []


def batches(source: Source, path: Path, columns: Sequence[str], malformed: list[int]) -> Iterator[pa.RecordBatch]:  # noqa: ARG001 none is malformed here
    """The same a batch at a time, so that no table is held.

    Raises:
        DataQualityError: as ``table``.
    """
    text_of = _as_text if source.intake is None else as_text
    with local(path, source.member, source.maximum_bytes) as plain, _refused(plain):
        with _opened(plain) as file:
            stored = _stored_names(source, file.schema_arrow)
        stored_columns = [stored[name] for name in columns]
        with _opened(plain, stored_columns) as file:
            for name in stored_columns:
                kind_of_column = file.schema_arrow.field(name).type
                if pa.types.is_nested(kind_of_column):
                    raise _FaultError(f"column {name!r} is nested ({kind_of_column}); give it one plain value a row")
            for batch in _batches(file, plain, stored_columns, text_of):
                yield batch.rename_columns(list(columns))


def _stored_names(source: Source, schema: pa.Schema) -> dict[str, str]:
    """Name of each column -> its name in the file; under an intake made usable, and without nested columns."""
    if source.intake is None:
        return {name: name for name in schema.names}
    plain = [f.name for f in schema if not is_nested(f.type)]
    return dict(zip(usable_names(plain), plain, strict=True))


class _FaultError(ValueError):
    """What is wrong with a file, in our own words."""


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    """Turn any error of the library about a damaged file into one error with a reason."""
    try:
        yield
    except _FaultError as error:
        raise DataQualityError(f"{path.name} could not be read as Parquet: {error}") from error
    except (OSError, pa.ArrowException, UnicodeDecodeError, OverflowError, MemoryError) as error:
        reason = " ".join(str(error).split())[:_LONGEST_REASON] or type(error).__name__
        raise DataQualityError(
            f"{path.name} could not be read as Parquet: {reason}; if it is Parquet, write or fetch it again"
        ) from error


@contextmanager
def _opened(path: Path, varied: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
    """The file after its checks; ``varied`` are text columns that stay dictionaries."""
    _check_footer(path)
    with pq.ParquetFile(path) as plain:
        if plain.metadata.num_columns > MOST_COLUMNS:
            raise _FaultError(f"it has {plain.metadata.num_columns:,} columns, and at most {MOST_COLUMNS:,} are read")
        twice = sorted(name for name, times in Counter(plain.schema_arrow.names).items() if times > 1)
        if twice:
            raise _FaultError(f"it names {twice} more than once; every column needs its own name")
        if not plain.metadata.num_columns or plain.metadata.num_rows < 1:
            raise _FaultError("it has no rows; give a table with rows")
        _check_size(path, sum(plain.metadata.row_group(i).total_byte_size for i in range(plain.num_row_groups)))
        texts = [f.name for f in plain.schema_arrow if f.name in varied and any(kind(f.type) for kind in _VARIED)]
    with pq.ParquetFile(path, read_dictionary=texts, page_checksum_verification=True) as file:
        yield file


def _check_footer(path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(size - 8, 0))
        end = file.read(8)
    if size < 12 or end[4:] not in (_MAGIC, _LOCKED):
        raise _FaultError("it does not end as Parquet does; it was cut short, or is another kind of file")
    if end[4:] == _LOCKED:
        raise _FaultError("it is encrypted; write it without encryption")
    (footer,) = struct.unpack("<I", end[:4])
    if footer > MOST_FOOTER:
        raise _FaultError(f"its footer has {footer:,} bytes, and at most {MOST_FOOTER:,} are read; is it a table?")
    if not 0 < footer <= size - 12:
        raise _FaultError(f"its footer should have {footer:,} bytes, which the file does not hold; fetch it again")


def _check_size(path: Path, unpacked: int) -> None:
    if unpacked > max(FREE_BYTES, MOST_RATIO * path.stat().st_size):
        raise _FaultError(f"it unpacks to more than {MOST_RATIO} times its size, which no table does; give it as CSV")


def _batches(
    file: pq.ParquetFile, path: Path, columns: Sequence[str], text_of: Callable[[pa.Array], pa.Array]
) -> Iterator[pa.RecordBatch]:
    """The rows as text, a batch at a time, stopped where text grows far beyond the file."""
    total = 0
    for batch in file.iter_batches(_ROWS, columns=list(columns)):
        batch = batch.select(list(columns))
        total += sum(_length(column) for column in batch.columns)
        _check_size(path, total)
        yield pa.RecordBatch.from_arrays([text_of(column) for column in batch.columns], names=list(columns))


def _length(column: pa.Array) -> int:
    """Bytes of a column as text: of a dictionary without making that text."""
    if pa.types.is_dictionary(column.type) and any(kind(column.type.value_type) for kind in _VARIED):
        column.validate(full=True)  # an index beyond the dictionary would read elsewhere
        return int(pc.sum(pc.binary_length(column.dictionary).take(column.indices)).as_py() or 0)
    return int(column.nbytes)


def _as_text(column: pa.Array) -> pa.Array:
    """A column as Arrow writes it, as specs without an intake have it."""
    text = pc.fill_null(pc.cast(column, pa.string()), "")
    text.validate(full=True)  # text that is not UTF-8 would fail far from here
    return text
