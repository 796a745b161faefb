"""Draws the rows of ``evenhand bench ingest``, copies, converts and sorts them, and reads lenders, each in a process.

Rows are those of a twin of the public register: the same seed gives the same file.
"""

import json
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from research.benchmark import answer, peak_mb, timed
from schemas.audit.partition import Part
from schemas.tables.hmda import HMDA_APPLICATIONS
from tasks.ingest.applications import database
from tasks.ingest.hmda.canonical import literal, quoted
from tasks.ingest.hmda.conversion import APPLICATIONS_FILE, convert
from tasks.ingest.hmda.layouts import recognise
from tasks.ingest.hmda.rows import LENDER, LENDERS_FILE, SORTED, table_of
from tasks.ingest.registry import columns_read, lay
from tasks.ingest.stage import ingest, ingest_settings
from tasks.ingest.statement import Question
from tasks.ingest.synthetic.algorithm.twin import TwinSettings
from tasks.ingest.synthetic.twin_files import write
from tasks.ingest.vintages.sorting import sort_rows, write_lenders
from tasks.lake.store import drafts
from tasks.pipeline.registry import read_spec

SEED, YEAR, LENDERS = 8, 2022, 4_000
FILE = "public_lar.psv"
READS, READ = 10, 21
"""Reads of a lender, and columns of each."""


TABLE = {
    "name": "table",
    "year": 2023,
    "row_id": "id",
    "decision": {
        "column": "decision",
        "favourable": ["approved"],
        "unfavourable": ["denied"],
        "neither": ["withdrawn"],
    },
    "protected": [
        {"name": "race", "columns": ["race"], "reference": "White"},
        {"name": "sex", "columns": ["sex"], "reference": "Male"},
    ],
    "columns": {
        **{name: {"type": "continuous"} for name in ("income", "amount", "ratio", "score")},
        "purpose": {"type": "nominal"},
    },
}
"""The spec of a table of one's own, but for its source."""


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


def draw_table(place: str, rows: str) -> dict[str, Any]:
    """Draws a table of ten columns as people export it, and the same rows written plainly."""
    r, n = np.random.default_rng(SEED), int(rows)
    days = (np.datetime64("2023-01-01") + r.integers(0, 365, n)).astype(str)
    words = {
        "decision": ("approved", "denied", "withdrawn"),
        "race": ("White", "Black", "Asian"),
        "sex": ("Male", "Female"),
        "purpose": ("purchase", "refinance", "improvement"),
    }
    categories = {name: np.array(values)[r.integers(0, len(values), n)] for name, values in words.items()}
    income, amount = r.integers(15_000, 400_000, n), 1_000 * r.integers(20, 900, n)
    ratio, score, lost = r.integers(50, 650, n) / 10, r.integers(480, 850, n), r.random(n) < 0.02
    plain_columns = {
        **{"id": [f"A{i:08d}" for i in range(n)], "date": days, **categories},
        "income": ["" if gone else str(v) for v, gone in zip(income, lost, strict=True)],
        **{"amount": amount.astype(str), "ratio": ratio.astype(str), "score": score.astype(str)},
    }
    forms = (str, str.upper, str.title, lambda word: f"{word} ")
    form = r.integers(0, len(forms), n)
    messy_columns = {
        **plain_columns,
        **{name: [forms[f](str(v)) for v, f in zip(of, form, strict=True)] for name, of in categories.items()},
        "date": [f"{int(day[5:7])}/{int(day[8:])}/{day[:4]}" for day in days],
        "income": ["N/A" if gone else f"${v:,}" for v, gone in zip(income, lost, strict=True)],
        "amount": [f"${v:,}.00" for v in amount],
        "ratio": [f"{v:.1f}%" for v in ratio],
    }
    for name, columns in (("plain", plain_columns), ("messy", messy_columns)):
        csv.write_csv(pa.table({key: pa.array(of, pa.string()) for key, of in columns.items()}), f"{place}/{name}.csv")
    return {"rows": n}


def table_plainly(place: str) -> dict[str, Any]:
    """Ingests the plain table without a recipe."""
    return _ingested(place, {"kind": "csv", "path": f"{place}/plain.csv"})


def table_by_recipe(place: str) -> dict[str, Any]:
    """Ingests the table as it was exported, by a recipe."""
    money = {"read": "number", "thousands": ",", "unit": "USD"}
    columns = {
        **{"income": money, "amount": money, "ratio": {"read": "number", "unit": "%"}, "score": {"read": "number"}},
        "date": {"read": "date", "format": "%m/%d/%Y"},
    }
    intake = {"columns": columns}
    return _ingested(place, {"kind": "csv", "path": f"{place}/messy.csv", "year_column": "date", "intake": intake})


def _ingested(place: str, source: dict[str, Any]) -> dict[str, Any]:
    """Times the stage ingest on a table, and within it the reading of every cell once."""
    spec = read_spec(json.dumps({**TABLE, "source": source}), "table.yaml").spec
    settings = ingest_settings(spec)
    question = Question(spec.source, spec.row_id, spec.decision, None, spec.protected, spec.kept())
    names = [*columns_read(question, "date")]
    with drafts(Path(place), Path(place) / "rows") as growing, timed() as times:
        produced = ingest.function(settings=settings, drafts=growing)
        rows = produced.rows_in
    spill = Path(place) / "spill"
    with database(spill) as connection, timed() as reading, lay(question, names, connection) as view:
        cells = ", ".join(f"max(hash(c{i}))" for i in range(len(names)))
        connection.sql(f"SELECT {cells} FROM ({view.rows})").fetchall()  # noqa: S608 names are ours
    return {"rows": rows, **times, "peak_mb": peak_mb(), "reading_cpu_s": reading["cpu_s"]}


if __name__ == "__main__":
    answer(generate, plain, canonical, sorting, lender, draw_table, table_plainly, table_by_recipe)
