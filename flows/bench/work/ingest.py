"""Draws the rows of ``evenhand bench ingest``, copies them plainly or converts them, each in a process of its own.

Rows are those of a twin of the public register: the same seed gives the same file.
"""

import time
from pathlib import Path
from typing import Any

import duckdb

from tasks.ingest.hmda.canonical.cells import literal
from tasks.ingest.hmda.conversion import convert
from tasks.ingest.hmda.files.recognition import recognise
from tasks.ingest.synthetic.twin import write
from tasks.ingest.synthetic.twin.algorithm.settings import TwinSettings
from tasks.proof.work import answer, peak_mb, timed

SEED, YEAR, LENDERS = 8, 2022, 4_000
FILE = "public_lar.psv"


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
        told = connection.execute(copied).fetchone()
    return {"rows": int(told[0]) if told else 0, **times, "peak_mb": peak_mb()}


def canonical(place: str) -> dict[str, Any]:
    """Recognises, converts and validates the file."""
    folder = Path(place)
    with timed() as times:
        rows = convert(recognise(folder / FILE, folder / "scratch"), folder / "canonical").rows
    return {"rows": rows, **times, "peak_mb": peak_mb()}


if __name__ == "__main__":
    answer(generate, plain, canonical)
