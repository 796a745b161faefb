"""Sources in files: one file, or several of one layout that are read one after the other.

Rows are numbered through from 1: those of a second file go on where the first one ended. Scope: finding the files,
their digest and their common header. Rows of one file: ``text`` and ``parquet``.
"""

import hashlib
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Final

import pyarrow as pa

from schemas.audit.source import Source
from schemas.errors import DataQualityError, InfrastructureError, nearest
from schemas.terms import Refusal
from tasks.ingest.sources import containers
from tasks.ingest.sources.raw import Raw, Unread, check_regular
from tasks.ingest.sources.reader_process import Facts
from tasks.lake.store import sha256_of

_FORMATS: Final = {
    "csv": "delimited_text",
    "parquet": "parquet",
    "feather": "typed_files",
    "jsonl": "json_lines",
    "excel": "workbooks",
    "stata": "typed_files",
    "sas": "typed_files",
    "spss": "typed_files",
}


def locate(source: Source) -> list[Path]:
    """The files of a source.

    Raises:
        InfrastructureError: one is not there or cannot be read.
        SpecError: one is a directory, a FIFO or a device.
    """
    paths = [Path(path) for path in source.paths]
    for path in paths:
        check_regular(path, ("source", "path"))
        if not path.is_file():
            folder_note = "" if path.is_absolute() else f" (from {Path.cwd()})"
            raise InfrastructureError(
                f"no file at source.path {str(path)!r}{folder_note}; "
                "give the right one in the spec or with --set source.path=FILE"
            )
    return paths


def pieces(source: Source) -> Iterator[tuple[Source, Path]]:
    """Each table that the source reads: a file, or a member of a zip, with the source that reads it alone.

    Raises:
        EvenhandError: as ``locate``; or a zip has not the member that the source names.
    """
    for path in locate(source):
        for member in containers.chosen(path, source.member):
            yield source.model_copy(update={"path": str(path), "member": member}), path


def digest(source: Source) -> str:
    """sha256 of the file; of several files, that of their digests in order."""
    digests = [sha256_of(path) for path in locate(source)]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def header(source: Source) -> list[str]:
    """Names of the columns, in order.

    Raises:
        DataQualityError: a file has no header, a column stands in it twice, or two files differ in theirs.
    """
    first, *further = pieces(source)
    names = _names(*first)
    for piece, path in further:
        if _names(piece, path) != names:
            raise DataQualityError(
                f"{_called(piece, path)} has other columns than {_called(*first)}: "
                "files of one source share their columns and order"
            )
    return names


def known(source: Source, columns: Sequence[str]) -> list[str]:
    """The columns, which the source has.

    Raises:
        DataQualityError: it lacks one; the nearest that it has is named.
    """
    names = header(source)
    for column in columns:
        if column not in names:
            raise DataQualityError(f"{source.words} has no column {column!r}; {nearest(column, names)}")
    return list(columns)


def _called(piece: Source, path: Path) -> str:
    return path.name if piece.member is None else f"{piece.member} of {path.name}"


def _names(source: Source, path: Path) -> list[str]:
    file_names: list[str] = _format(source).names(source, path)
    names = [source.rename.get(name, name) for name in file_names]
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise DataQualityError(f"{path.name}: the header names {twice} more than once; every column needs its own name")
    return names


def _format(source: Source) -> ModuleType:
    """The module that reads a kind of file: ``names`` and ``table``."""
    if source.kind not in _FORMATS:
        raise ValueError(f"no file is of the kind {source.kind}")
    return import_module(f"tasks.ingest.sources.{_FORMATS[source.kind]}")


def facts(source: Source, path: Path) -> Facts:
    """Names, rows and labels of a file with typed columns.

    Raises:
        EvenhandError: as its reader says.
    """
    file_facts: Facts = _format(source).facts(source, path)
    return file_facts


def _own_names(source: Source, path: Path, columns: Sequence[str]) -> list[str]:
    """The columns as the file names them."""
    if not source.rename:
        return list(columns)
    file_names: list[str] = _format(source).names(source, path)
    own_name = {source.rename.get(name, name): name for name in file_names}
    return [own_name.get(name, name) for name in columns]


def read(source: Source, columns: Sequence[str]) -> Raw:
    """The named columns as text.

    Raises:
        DataQualityError: a file is not in its declared encoding, or is no table at all.
    """
    tables, numbers, unread, before = [], list[int](), list[Unread](), 0
    for piece, path in pieces(source):
        table, broken = _format(source).table(piece, path, _own_names(piece, path, columns))
        table = table.rename_columns(list(columns))
        gone, rows = set(broken), table.num_rows + len(broken)
        last = max(rows - source.foot, 0)
        start = len(numbers)
        numbers += [before + i for i in range(1, last + 1) if i not in gone]
        tables.append(table.slice(0, len(numbers) - start))
        unread += [Unread(before + i, Refusal.MALFORMED_LINE) for i in broken if i <= last]
        unread += [Unread(before + i, Refusal.FOOTER) for i in range(last + 1, rows + 1)]
        before += rows
    return Raw(pa.concat_tables(tables), numbers, unread)


def batches(source: Source, columns: Sequence[str], unread: list[Unread]) -> Iterator[pa.RecordBatch]:
    """The same rows a batch at a time, without their numbers; ``unread`` is complete after the last one.

    Text and Parquet are never held whole; files of other kinds are, as their readers give a table.

    Raises:
        DataQualityError: as ``read``.
    """
    before = 0
    for piece, path in pieces(source):
        broken: list[int] = []
        held: deque[pa.RecordBatch] = deque()  # at least the foot, as how many of it are broken is known at the end
        good = 0
        for batch in _batches(piece, path, _own_names(piece, path, columns), broken):
            held.append(batch.rename_columns(list(columns)))
            good += batch.num_rows
            while sum(later.num_rows for later in islice(held, 1, None)) >= source.foot and len(held) > 1:
                yield held.popleft()
        rows = good + len(broken)
        last = max(rows - source.foot, 0)
        excess = good - (last - sum(number <= last for number in broken))
        remaining = pa.Table.from_batches(held) if held else None
        yield from remaining.slice(0, remaining.num_rows - excess).to_batches() if remaining is not None else ()
        unread += [Unread(before + i, Refusal.MALFORMED_LINE) for i in broken if i <= last]
        unread += [Unread(before + i, Refusal.FOOTER) for i in range(last + 1, rows + 1)]
        before += rows


def _batches(source: Source, path: Path, columns: Sequence[str], broken: list[int]) -> Iterator[pa.RecordBatch]:
    reader = _format(source)
    if hasattr(reader, "batches"):
        yield from reader.batches(source, path, columns, broken)
        return
    table, malformed = reader.table(source, path, columns)
    broken += malformed
    yield from table.to_batches()
