"""Times the conversion of an HMDA file to canonical columns against a plain copy by DuckDB.

Rows are drawn. Both conversions read the same file in the same run, each in a process of its own (``work.ingest``),
twice in turn, and the lesser time counts. A file three times as long shows whether memory grows with the rows; then
it is sorted by state and lender, and lenders are read from it.

Scope: runs and targets. The timed work: ``work.ingest``.
"""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from research.benchmark import Bench, Room, Row, apart, at_least, at_most, per_second, row, timed_row
from tasks.lake.store import Lake

LEAST_RATIO, MOST_MB, MOST_GROWTH = 0.5, 2_000, 1.25
MOST_SORTING_MB, MOST_SECONDS = 1_500, (0.05, 0.5)
"""Memory of the sort; CPU seconds of reading a lender in the middle, and the largest."""
ROWS, TIMES_MORE = 1_000_000, 3
FEWEST = 3_000
REPETITIONS = 2
FREE_MB = 2_500
BYTES_A_ROW = 700
"""On disk: the file, both conversions of it, and what is put aside."""
DRAWN = "99 columns, drawn"
TABLE = "10 columns of one's own"
MOST_TIMES, MOST_CPU = 5, 2.5
"""Times the CPU time of the plain pass; CPU seconds of the recipe itself a million rows."""

_run = partial(apart, "research.bench.timed_ingest")


def _lines(room: Room) -> Iterator[Row]:
    longer = room.rows or ROWS * TIMES_MORE
    Lake(room.place).require_space(longer * BYTES_A_ROW, "the benchmark")
    yield from _conversions(room.place, longer // TIMES_MORE, longer)
    yield from _lenders(room.place)
    yield from _recipes(room.place, longer * 2 // TIMES_MORE)


def _recipes(place: Path, rows: int) -> Iterator[Row]:
    """A table of one's own as people export it, ingested by a recipe, against the same rows written plainly."""
    _run("draw_table", place, rows)
    runs = [(_run("table_plainly", place), _run("table_by_recipe", place)) for _ in range(REPETITIONS)]
    plain, recipe = (min(pair, key=lambda run: run["cpu_s"]) for pair in zip(*runs, strict=True))
    yield timed_row(TABLE, plain, "ingested as it stands", per_s=per_second(plain), found=f"{plain['cpu_s']:.2f} CPU s")
    ratio, words = recipe["cpu_s"] / plain["cpu_s"], f"{recipe['cpu_s']:.2f} CPU s"
    met = at_most(ratio, MOST_TIMES)
    yield timed_row(TABLE, recipe, "exported, ingested by a recipe", ratio=ratio, found=words, **met)
    recipe_cpu = (recipe["reading_cpu_s"] - plain["reading_cpu_s"]) / (rows / 1_000_000)
    met = at_most(recipe_cpu, MOST_CPU, " CPU s a million rows")
    yield row(TABLE, rows, "of it the recipe", found=f"{recipe_cpu:.2f} CPU s a million rows", **met)
    growth = recipe["peak_mb"] / plain["peak_mb"]
    yield row(
        TABLE, rows, "its peak memory", ratio=growth, found=f"{recipe['peak_mb']:.0f} MB", **at_most(growth, 1.25)
    )


def _conversions(place: Path, shorter: int, longer: int) -> Iterator[Row]:
    generated = _run("generate", place, shorter)
    yield row(
        DRAWN,
        shorter,
        "apart: rows drawn",
        seconds=generated["seconds"],
        found=f"{generated['file_mb']:.0f} MB of text",
    )
    runs = [(_run("plain", place), _run("canonical", place)) for _ in range(REPETITIONS)]
    plain, canonical = (min(pair, key=lambda run: run["seconds"]) for pair in zip(*runs, strict=True))
    yield timed_row(DRAWN, plain, "DuckDB's plain conversion", per_s=per_second(plain), ratio=1.0)
    ratio = plain["seconds"] / canonical["seconds"]
    figures = {"per_s": per_second(canonical), "found": f"of CPU time {plain['cpu_s'] / canonical['cpu_s']:.2f}"}
    what = "recognised, canonical, validated"
    yield timed_row(DRAWN, canonical, what, ratio=ratio, **figures, **at_least(ratio, LEAST_RATIO))
    for path in place.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    _run("generate", place, longer)
    longer_run = _run("canonical", place)
    met = at_most(max(canonical["peak_mb"], longer_run["peak_mb"]), MOST_MB, " MB")
    yield timed_row(DRAWN, longer_run, "the same, of the longer file", per_s=per_second(longer_run), **met)
    growth = longer_run["peak_mb"] / canonical["peak_mb"]
    about = f"peak memory, for {longer / shorter:.0f} times the rows"
    yield row(DRAWN, longer, "growth", ratio=growth, found=about, **at_most(growth, MOST_GROWTH))


def _lenders(place: Path) -> Iterator[Row]:
    """The longer file again, sorted as a vintage is, and lenders read from it."""
    sorting = _run("sorting", place)
    figures = {"per_s": per_second(sorting), "found": f"{sorting['lenders']:,} lenders"}
    what = "sorted by state and lender, with digests"
    yield timed_row(DRAWN, sorting, what, **figures, **at_most(sorting["peak_mb"], MOST_SORTING_MB, " MB"))
    for which, most in (("middle", MOST_SECONDS[0]), ("largest", MOST_SECONDS[1])):
        lender_run = _run("lender", place, which)
        cpu_time = f"{lender_run['cpu_s']:.4f} CPU s"
        yield timed_row(
            DRAWN,
            lender_run,
            f"the {which} lender read",
            found=cpu_time,
            **at_most(lender_run["cpu_s"], most, " CPU s"),
        )


BENCH = Bench("ingest", _lines, fewest=FEWEST, why="with fewer nothing takes any time", memory_mb=FREE_MB, disk=0)
