"""``evenhand bench ingest``: times the conversion of an HMDA file to canonical columns against a plain copy by DuckDB.

Rows are drawn. Both conversions read the same file in the same run, each in a process of its own (``ingest_work``),
twice in turn, and the lesser time counts. A file three times as long shows whether memory grows with the rows.

Here belong what is run and the targets. What is timed is in ``ingest_work``.
"""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tasks.proof.benches import Row, apart, at_least, at_most, measured, per_second, require_rows, row, took

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
    require_rows("ingest", rows, FEWEST, "with fewer nothing takes any time")
    longer = rows or ROWS * TIMES_MORE
    return measured(lambda place: _lines(place, longer // TIMES_MORE, longer), rows, FREE_MB, longer * BYTES_A_ROW)


def _lines(place: Path, shorter: int, longer: int) -> Iterator[Row]:
    made = _run("generate", place, shorter)
    yield row(DRAWN, shorter, "apart: rows drawn", seconds=made["seconds"], found=f"{made['file_mb']:.0f} MB of text")
    runs = [(_run("plain", place), _run("canonical", place)) for _ in range(REPETITIONS)]
    plain, canonical = (min(each, key=lambda told: told["seconds"]) for each in zip(*runs, strict=True))
    yield _row(plain, "DuckDB's plain conversion", ratio=1.0)
    ratio = plain["seconds"] / canonical["seconds"]
    cpu = f"of CPU time {plain['cpu_s'] / canonical['cpu_s']:.2f}"
    yield _row(canonical, "recognised, canonical, validated", ratio=ratio, found=cpu, **at_least(ratio, LEAST_RATIO))
    _empty(place)
    _run("generate", place, longer)
    more = _run("canonical", place)
    met = at_most(max(canonical["peak_mb"], more["peak_mb"]), MOST_MB, " MB")
    yield _row(more, "the same, of the longer file", **met)
    growth = more["peak_mb"] / canonical["peak_mb"]
    found = f"peak memory, for {longer / shorter:.0f} times the rows"
    yield row(DRAWN, longer, "growth", ratio=growth, found=found, **at_most(growth, MOST_GROWTH))


def _empty(place: Path) -> None:
    for each in place.iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()


def _row(told: Any, what: str, **more: Any) -> Row:
    return row(DRAWN, told["rows"], what, **took(told), **per_second(told), **more)
