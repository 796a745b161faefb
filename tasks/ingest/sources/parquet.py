"""One Parquet file, its columns as text."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.audit.source import Source
from schemas.errors import DataQualityError


def names(source: Source, path: Path) -> list[str]:  # noqa: ARG001 the same call for every format
    """Names of the file's columns, in order."""
    return list(_open(path).schema_arrow.names)


def table(source: Source, path: Path, columns: Sequence[str]) -> tuple[pa.Table, list[int]]:  # noqa: ARG001
    """The named columns as text, and the numbers of broken rows: none here."""
    return _as_text(_open(path).read(columns=list(columns))), []


def _open(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except pa.ArrowException as error:
        raise DataQualityError(f"{path.name} is not a Parquet file: {error}") from error


def _as_text(table: pa.Table) -> pa.Table:
    columns = [pc.fill_null(pc.cast(column, pa.string()), "") for column in table.columns]
    return pa.table(columns, names=table.column_names)
