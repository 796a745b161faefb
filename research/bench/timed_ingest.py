"""Draws the rows of ``evenhand bench ingest``, copies, converts and sorts them, and reads lenders, each in a process.

Rows are those of a twin of the public register: the same seed gives the same file.
"""

import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

from research.benchmark import answer, peak_mb, timed
from schemas.audit.partition import Part
from schemas.tables.hmda import HMDA_APPLICATIONS
from tasks.ingest.hmda.canonical import literal, quoted
from tasks.ingest.hmda.conversion import APPLICATIONS_FILE, convert
from tasks.ingest.hmda.layouts import recognise
from tasks.ingest.hmda.rows import LENDER, LENDERS_FILE, SORTED, table_of
from tasks.ingest.synthetic.algorithm.twin import TwinSettings
from tasks.ingest.synthetic.twin_files import write
from tasks.ingest.vintages.sorting import sort_rows, write_lenders

SEED, YEAR, LENDERS = 8, 2022, 4_000
FILE = "public_lar.psv"
READS, READ = 10, 21
"""Reads of a lender, and columns of each."""


def generate(place: str, rows: str) -> dict[str, Any]:
    """Draws a file of the public register: 99 columns, a header, pipes between them."""
    start = time.perf_counter()
    settings = TwinSettings(rows=int(rows), lenders=LENDERS, year=YEAR)
    file = write(Path(place), settings, SEED).rows.replace(Path(place) / FILE)
    return {"rows": int(rows), "seconds": time.perf_counter() - start, "file_mb": file.stat().st_size / 1e6}


def plain(place: str) -> dict[str, Any]:
    """Copies the file by DuckDB's own conversion, which guesses the type of every column."""
    source, target = Path(place) / FILE, Path(place) / "plain.parquet"
    with timed() as times, duckdb.connect(config={"temp_directory": place}) as connection:
        connection.execute("SET enable_progress_bar = false")
        copied = f"COPY (SELECT * FROM read_csv({literal(str(source))})) TO {literal(str(target))} (FORMAT parquet)"  # noqa: S608 quoted
        copied_rows = connection.execute(copied).fetchone()
    return {"rows": int(copied_rows[0]) if copied_rows else 0, **times, "peak_mb": peak_mb()}


def canonical(place: str) -> dict[str, Any]:
    """Recognises, converts and validates the file."""
    folder = Path(place)
    with timed() as times:
        rows = convert(recognise(folder / FILE, folder / "scratch"), folder / "canonical").rows
    return {"rows": rows, **times, "peak_mb": peak_mb()}


def sorting(place: str) -> dict[str, Any]:
    """Sorts the converted rows by state and lender, and counts the lenders with digests of their rows."""
    folder = Path(place) / "canonical"
    with timed() as times:
        rows = sum(sort_rows(folder / APPLICATIONS_FILE, folder).values())
        lenders = write_lenders(folder / SORTED, folder)
    return {"rows": rows, "lenders": lenders, **times, "peak_mb": peak_mb()}


def lender(place: str, which: str) -> dict[str, Any]:
    """Reads the rows of the largest lender, or of one in the middle, as an audit does; mean of ten reads."""
    rows = Path(place) / "canonical" / SORTED
    lenders = pq.read_table(rows.with_name(LENDERS_FILE), partitioning=None).sort_by("rows").to_pylist()
    lender_row = lenders[len(lenders) // 2 if which == "middle" else -1]
    part = Part(column=LENDER, value=lender_row["lender_id"], rows_sha256=lender_row["rows_sha256"])
    columns = ", ".join(quoted(column.name) for column in HMDA_APPLICATIONS.columns[:READ])
    with duckdb.connect(config={"threads": 1}) as connection, timed() as times:
        for _ in range(READS):
            query = f"SELECT {columns} FROM {table_of(rows, part)} WHERE {LENDER} = {literal(part.value)}"  # noqa: S608 quoted
            row_count = connection.sql(f"{query} ORDER BY source_row").to_arrow_table().num_rows
    return {"rows": row_count, **{name: value / READS for name, value in times.items()}, "peak_mb": peak_mb()}


if __name__ == "__main__":
    answer(generate, plain, canonical, sorting, lender)
