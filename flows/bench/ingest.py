"""``evenhand bench ingest``: times the conversion of an HMDA file to canonical columns against a plain copy by DuckDB.

Rows are drawn. Both conversions read the same file in the same run, each in a process of its own (``ingest_work``),
twice in turn, and the lesser time counts. A file three times as long shows whether memory grows with the rows.

Here belong what is run and the targets. What is timed is in ``ingest_work``.
"""

import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from schemas.errors import InfrastructureError, SpecError
from tasks.lake.store import Lake
from tasks.proof.processes import against, apart, row

Row = dict[str, Any]

LEAST_RATIO, MOST_MB, MOST_GROWTH = 0.5, 2_000, 1.25
ROWS, TIMES_MORE = 1_000_000, 3
FEWEST = 3_000
REPETITIONS = 2
FREE_MB = 2_500
BYTES_A_ROW = 700
"""On disk: the file, both conversions of it, and what is put aside."""
DRAWN = "99 columns, drawn"

_run = partial(apart, "flows.bench.ingest_work")


def ingest(rows: int | None = None) -> list[Row]:
    """Rows a second, the ratio to the plain conversion, peak memory and how it grows.

    Args:
        rows: The longer of the two files has so many rows at most, for a quick look; the targets, which are for the
            sizes said, are then not held against it.

    Raises:
        SpecError: So few rows say nothing.
        InfrastructureError: Memory is short, or the disk is too full.
    """
    if rows is not None and rows < FEWEST:
        raise SpecError(f"--rows {rows}: bench ingest needs {FEWEST} rows at least; with fewer nothing takes any time")
    free = psutil.virtual_memory().available // 2**20
    if free < FREE_MB:
        raise InfrastructureError(f"{free} MB of memory are free and the benchmark needs up to {FREE_MB}; free some")
    longer = rows or ROWS * TIMES_MORE
    with tempfile.TemporaryDirectory() as name:
        Lake(Path(name)).require_space(longer * BYTES_A_ROW, "the benchmark")
        said = list(_measured(Path(name), longer // TIMES_MORE, longer))
    return said if rows is None else [{**each, "target": None, "met": None} for each in said]


def _measured(place: Path, shorter: int, longer: int) -> Iterator[Row]:
    made = _run("generate", place, shorter)
    yield row(DRAWN, shorter, "apart: rows drawn", seconds=made["seconds"], found=f"{made['file_mb']:.0f} MB of text")
    runs = [(_run("plain", place), _run("canonical", place)) for _ in range(REPETITIONS)]
    plain, canonical = (min(each, key=lambda told: told["seconds"]) for each in zip(*runs, strict=True))
    yield _row(plain, "DuckDB's plain conversion", ratio=1.0)
    ratio = plain["seconds"] / canonical["seconds"]
    met = against(f"at least {LEAST_RATIO:g}", ratio >= LEAST_RATIO)
    cpu = f"of CPU time {plain['cpu_s'] / canonical['cpu_s']:.2f}"
    yield _row(canonical, "recognised, canonical, validated", ratio=ratio, found=cpu, **met)
    _empty(place)
    _run("generate", place, longer)
    more = _run("canonical", place)
    met = against(f"at most {MOST_MB:,} MB", max(canonical["peak_mb"], more["peak_mb"]) <= MOST_MB)
    yield _row(more, "the same, of the longer file", **met)
    growth = more["peak_mb"] / canonical["peak_mb"]
    met = against(f"at most {MOST_GROWTH:g}", growth <= MOST_GROWTH)
    found = f"peak memory, for {longer / shorter:.0f} times the rows"
    yield row(DRAWN, longer, "growth", ratio=growth, found=found, **met)


def _empty(place: Path) -> None:
    for each in place.iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()


def _row(told: Any, what: str, **more: Any) -> Row:
    measured = {name: told[name] for name in ("seconds", "cpu_s", "peak_mb")}
    return row(DRAWN, told["rows"], what, **measured, per_s=round(told["rows"] / told["seconds"]), **more)
