"""One file of Feather, Stata, SAS or SPSS, its columns as text, read in a separate process (``reader_process``)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from schemas.audit.source import Source
from tasks.ingest.sources.containers import local
from tasks.ingest.sources.layout import usable_names
from tasks.ingest.sources.reader_process import Facts, read_apart


def names(source: Source, path: Path) -> list[str]:
    """Names of the file's columns, without nested ones.

    Raises:
        DataQualityError: the file is damaged, or too large.
    """
    return list(facts(source, path).names)


def table(source: Source, path: Path, columns: Sequence[str]) -> tuple[pa.Table, list[int]]:
    """The named columns as text, and the numbers of broken rows: none here.

    Raises:
        DataQualityError: as ``names``.
    """
    stored = _facts(*_file(source, path)).names
    by_name = dict(zip(usable_names(stored), stored, strict=True))
    with local(path, source.member, source.maximum_bytes) as file:
        reading = read_apart(source.kind, file, columns=[by_name[name] for name in columns])
    return reading.table.rename_columns(list(columns)), []


def facts(source: Source, path: Path) -> Facts:
    """Names, rows, labels and nested columns of the file."""
    stored = _facts(*_file(source, path))
    column_names = usable_names(stored.names)
    spelled = zip(column_names, stored.names, strict=True)
    labels = {name: stored.labels.get(text, text) for name, text in spelled if name != text or text in stored.labels}
    return replace(stored, names=tuple(column_names), labels=labels)


def _file(source: Source, path: Path) -> tuple[str, Path, str | None, int, tuple[int, int]]:
    """The file and its present state."""
    now = path.stat()
    return source.kind, path, source.member, source.maximum_bytes, (now.st_mtime_ns, now.st_size)


@lru_cache(8)
def _facts(kind: str, path: Path, member: str | None, most: int, state: tuple[int, int]) -> Facts:  # noqa: ARG001
    """The same, kept for the next question about the file in its present state."""
    with local(path, member, most) as file:
        return read_apart(kind, file, columns=()).facts
