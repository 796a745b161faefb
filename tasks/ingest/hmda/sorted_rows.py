"""The rows of a vintage as they lie on the disk: one file, or files by state that are sorted by lender.

Scope: finding and naming them. How they are written: ``tasks.ingest.vintages.sorting``.
"""

from pathlib import Path
from typing import Final

import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.audit.partition import Part
from schemas.audit.source import Source
from tasks.ingest.hmda.canonical.cells import listed, parquet
from tasks.ingest.sources import delimited
from tasks.lake.local_directory import BESIDE

SORTED: Final = "applications"
"""Directory of sorted rows: ``state=TX/part-0.parquet`` and so on."""
LENDERS_FILE: Final = "lenders.parquet"
"""Beside it."""
LENDER: Final = "lender_id"
"""Column by which the rows are sorted."""


def is_sorted(rows: Path) -> bool:
    """Whether a path is the directory of a vintage's rows."""
    return rows.name == SORTED and rows.is_dir() and any(rows.glob("state=*/*.parquet"))


def files_of(rows: Path) -> list[Path]:
    """The Parquet files of rows: one, or those of a directory."""
    return sorted(rows.glob("*/*.parquet")) if rows.is_dir() else [rows]


def located(source: Source) -> list[Path]:
    """The files of a source; a sorted vintage is the directory of its rows, also under its name before it was sorted.

    Raises:
        InfrastructureError: one is not there or cannot be read.
        SpecError: one is another directory, a FIFO or a device.
    """
    paths = [_now(Path(path)) for path in source.paths]
    plain = tuple(str(path) for path in paths if not is_sorted(path))
    if plain:
        delimited.locate(source.model_copy(update={"path": plain}))
    return paths


def _now(path: Path) -> Path:
    """Where the rows of a vintage lie that a run read in one file, and that were sorted since."""
    since = path.parent / BESIDE / SORTED
    return since if path.name == f"{SORTED}.parquet" and not path.exists() and is_sorted(since) else path


def table_of(rows: Path, part: Part | None = None) -> str:
    """Rows as a table of SQL, which has at least those of a part: of a lender, the files of its states alone.

    Whoever asks for a part still says so in a predicate: other lenders are in the same files.
    """
    if part is None or part.column != LENDER or not rows.is_dir() or not rows.with_name(LENDERS_FILE).is_file():
        return parquet(rows)
    own = pc.field(LENDER) == part.value
    told = pq.read_table(rows.with_name(LENDERS_FILE), columns=["states"], filters=own, partitioning=None)
    states = {f"state={state}" for text in told["states"].to_pylist() for state in text.split(",")}
    files = [file for file in files_of(rows) if file.parent.name in states]
    return f"read_parquet({listed(map(str, files))}, hive_partitioning = false)" if files else parquet(rows)
