"""An open HMDA file as canonical applications: those of a vintage, or of a file that is converted here.

Both are the same from here on, a Parquet file with its refusals beside it. What is done about departures from a layout
is in ``reading``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.audit.partition import Part
from schemas.errors import DataQualityError, InfrastructureError
from schemas.terms import Refusal
from tasks.ingest.hmda.canonical.cells import quoted
from tasks.ingest.hmda.canonical.codes import CANONICAL
from tasks.ingest.hmda.canonical.columns import lacking
from tasks.ingest.hmda.files.recognition import Recognised, recognise
from tasks.ingest.hmda.lines import broken_rows, open_raw, source_rows
from tasks.ingest.hmda.sorted_rows import files_of, is_sorted, table_of
from tasks.ingest.sources.raw import Unread
from tasks.lake.threads import connected

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class OpenFile:
    """An open file."""

    name: str
    """As it was given."""
    rows: Path
    """The applications: a file, or the directory of a sorted vintage; ``refusals.parquet`` lies beside it."""
    recognised: Recognised | None
    """None of a vintage."""
    connection: "duckdb.DuckDBPyConnection"

    def table(self, part: Part | None = None) -> str:
        """The applications as a table of SQL; of a lender's part at least the lender's."""
        return table_of(self.rows, part)

    @property
    def own(self) -> tuple[str, ...]:
        """Columns that the file's layout does not know; a vintage has none."""
        return () if self.recognised is None else _own(self.recognised)

    def given(self) -> set[str]:
        """Canonical columns in which some row has a value."""
        return _with_values(self.rows)

    def unread(self) -> list[Unread]:
        """Rows of the file that are no applications, in its order.

        Raises:
            InfrastructureError: a vintage's refusals do not lie beside its applications.
        """
        file = self.rows.with_name("refusals.parquet")
        if not file.is_file():
            raise InfrastructureError(
                f"there is no {file.name} beside {self.rows}, and rows that were refused would go untold: give "
                "the file in the vintage's own folder"
            )
        table = pq.read_table(file).sort_by("source_row").to_pylist()
        return [Unread(row["source_row"], Refusal(row["reason"]), row["column"], row["detail"]) for row in table]

    def own_column(self, name: str) -> dict[int, str]:
        """Number of the row in the file -> cell of a column that its layout does not know."""
        if self.recognised is None:
            raise ValueError("a vintage has canonical columns alone")
        pieces = open_raw(self.connection, self.recognised)
        cells = self.connection.sql(
            f"SELECT source_row, coalesce({quoted(name)}, '') AS cell FROM raw"  # noqa: S608 it is quoted
        ).to_arrow_table()
        broken = broken_rows(self.connection, self.recognised, pieces, cells.num_rows)
        numbers = source_rows(cells["source_row"].to_numpy(), pieces, broken)
        return dict(zip(numbers.tolist(), cells["cell"].to_pylist(), strict=True))


def columns_of(path: Path) -> tuple[set[str], tuple[str, ...]]:
    """The canonical columns that a file gives, and its own that its layout does not know; nothing is converted for it.

    Raises:
        DataQualityError: no known layout, or a Parquet file of another table.
        InfrastructureError: it cannot be read.
    """
    if _is_parquet(path):
        _check_canonical(path)
        return _with_values(path), ()
    with TemporaryDirectory(prefix="evenhand-hmda-") as scratch:
        recognised = recognise(path, Path(scratch))
        return set(CANONICAL) - set(lacking(recognised)), _own(recognised)


@contextmanager
def open_file(path: Path) -> Iterator[OpenFile]:
    """A file, as long as it is open; what was converted or unpacked of it is gone afterwards.

    Raises:
        DataQualityError: no known layout, a Parquet file of another table, or a file that cannot be read to its end.
        InfrastructureError: it cannot be read, or the disk for temporary files is full.
    """
    from tasks.ingest.hmda.conversion import APPLICATIONS_FILE, convert

    with (
        TemporaryDirectory(prefix="evenhand-hmda-") as scratch,
        connected() as connection,
    ):
        if _is_parquet(path):
            _check_canonical(path)
            yield OpenFile(path.name, path, None, connection)
            return
        recognised = recognise(path, Path(scratch))
        convert(recognised, Path(scratch))
        yield OpenFile(path.name, Path(scratch) / APPLICATIONS_FILE, recognised, connection)


def _is_parquet(path: Path) -> bool:
    if is_sorted(path):
        return True
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def _own(recognised: Recognised) -> tuple[str, ...]:
    return tuple(name for name in recognised.unknown if name not in CANONICAL)


def _with_values(path: Path) -> set[str]:
    """Columns of Parquet files that are not null in every row, by the counts that they keep."""
    return {name for file in files_of(path) for name in _with_values_of(file, file.stat().st_mtime_ns)}


@cache
def _with_values_of(file: Path, written: int) -> frozenset[str]:  # noqa: ARG001 a file written anew is another
    meta = pq.ParquetFile(file).metadata
    groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
    chunks = [(group.num_rows, group.column(i)) for group in groups for i in range(group.num_columns)]
    return frozenset(c.path_in_schema for n, c in chunks if c.statistics is None or c.statistics.null_count < n)


def _check_canonical(path: Path) -> None:
    try:
        found = set(pq.read_schema(files_of(path)[0]).names)
    except (OSError, pa.ArrowException) as error:
        raise InfrastructureError(f"{path.name} cannot be read: {error}") from error
    lacking = [name for name in CANONICAL if name not in found]
    if lacking or path.stem != "applications":
        why = f"it has no column {lacking[0]!r}" if lacking else "a vintage's file is called applications.parquet"
        raise DataQualityError(
            f"{path.name} is no vintage of HMDA, {why}; `evenhand data add` makes one of a delivered file, and other "
            "Parquet files are of kind: parquet"
        )
