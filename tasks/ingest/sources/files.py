"""Sources in files: one file, or several of one layout that are read one after the other.

Rows are numbered through from 1: those of a second file go on where the first one ended. Scope: finding the files,
their digest and their common header. Rows of one file: ``text`` and ``parquet``.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pyarrow as pa

from schemas.audit.source import Source
from schemas.errors import DataQualityError, InfrastructureError
from schemas.terms import Refusal
from tasks.ingest.sources import delimited_text, parquet
from tasks.ingest.sources.raw import Raw, Unread, check_regular
from tasks.lake.store import sha256_of

_FORMATS: dict[str, ModuleType] = {"csv": delimited_text, "parquet": parquet}


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


def digest(source: Source) -> str:
    """sha256 of the file; of several files, that of their digests in order."""
    digests = [sha256_of(path) for path in locate(source)]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def header(source: Source) -> list[str]:
    """Names of the columns, in order.

    Raises:
        DataQualityError: a file has no header, a column stands in it twice, or two files differ in theirs.
    """
    first, *other_paths = locate(source)
    names = _names(source, first)
    for path in other_paths:
        if _names(source, path) != names:
            raise DataQualityError(
                f"{path.name} has other columns than {first.name}: files of one source share their columns and order"
            )
    return names


def _names(source: Source, path: Path) -> list[str]:
    file_names: list[str] = _FORMATS[source.kind].names(source, path)
    names = [source.rename.get(name, name) for name in file_names]
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise DataQualityError(f"{path.name}: the header names {twice} more than once; every column needs its own name")
    return names


def _own_names(source: Source, path: Path, columns: Sequence[str]) -> list[str]:
    """The columns as the file names them."""
    if not source.rename:
        return list(columns)
    file_names: list[str] = _FORMATS[source.kind].names(source, path)
    own_name = {source.rename.get(name, name): name for name in file_names}
    return [own_name.get(name, name) for name in columns]


def read(source: Source, columns: Sequence[str]) -> Raw:
    """The named columns as text.

    Raises:
        DataQualityError: a file is not in its declared encoding, or is no table at all.
    """
    tables, numbers, unread, before = [], [], [], 0
    for path in locate(source):
        table, broken = _FORMATS[source.kind].table(source, path, _own_names(source, path, columns))
        table = table.rename_columns(list(columns))
        gone, rows = set(broken), table.num_rows + len(broken)
        tables.append(table)
        numbers += [before + i for i in range(1, rows + 1) if i not in gone]
        unread += [Unread(before + i, Refusal.MALFORMED_LINE) for i in broken]
        before += rows
    return Raw(pa.concat_tables(tables), numbers, unread)
