"""One file of Feather, Stata, SAS or SPSS, its columns as text, read in a separate process (``reader_process``)."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from schemas.audit.source import Source
from tasks.ingest.sources.containers import local
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
    with local(path, source.member, source.maximum_bytes) as file:
        return read_apart(source.kind, file, columns=columns).table, []


def facts(source: Source, path: Path) -> Facts:
    """Names, rows, labels and nested columns of the file."""
    now = path.stat()
    return _facts(source.kind, path, source.member, source.maximum_bytes, (now.st_mtime_ns, now.st_size))


@lru_cache(8)
def _facts(kind: str, path: Path, member: str | None, most: int, state: tuple[int, int]) -> Facts:  # noqa: ARG001
    """The same, kept for the next question about the file in its present state."""
    with local(path, member, most) as file:
        return read_apart(kind, file, columns=()).facts
