"""Measures time and memory of the streamed regressions, their ratio to statsmodels, and the ladder: time and coverage.

Rows are drawn into a Parquet file once, which is told apart. Every measurement then runs in a process of its own
(``work``), reads the file as often as it needs, and so has a peak memory of its own.

Scope: runs and targets. The timed work: ``work``.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tasks.methods.adjusted.bench.coverage import SCENARIOS
from tasks.proof.benches import Bench, Expected, Held, Room, Row, against, apart, at_most, per_second, row, timed_row
from tasks.proof.specs import TEXAS_FILE

ROWS, FEWEST = 2_000_000, 20_000
MOST_S, MOST_MB = 60.0, 1_500.0
STATSMODELS_ROWS = 500_000
"""With so many statsmodels holds some 1,500 MB, the target here; with twice as many 1,840."""
MOST_APART = 1e-6
"""Coefficients and errors of either, each as a share of its error."""
FREE_MB, BYTES_A_ROW = 2_000, 250

MOST_FAMILY_CPU_S = 5.0
MOST_TEXAS_CPU_S = 20.0

REPETITIONS, QUICK_REPETITIONS = 200, 10
COVERED = (0.93, 0.97)
"""Of 800 intervals at 95 %, those of four scenarios, a share outside has a probability of 1 %."""
SIZES = tuple(sorted({scenario.rows for scenario in SCENARIOS}))

DRAWN, SIMULATED, COLUMNS = "drawn applications", "simulated lenders", "40 columns"
BOSTON, TEXAS = "Boston 1990", "Texas 2022"
FITS = ("linear", "logit")

_run = partial(apart, "tasks.methods.adjusted.bench.work")


def _lines(room: Room) -> Iterator[Row]:
    size, file = room.rows or ROWS, str(room.place / "applications.parquet")
    made = _run("generate", file, size)
    yield timed_row(DRAWN, made, "apart: rows drawn", found=f"{made['file_mb']:.0f} MB of Parquet")
    told = [_run(fit, file, size) for fit in FITS]
    for fit, said in zip(FITS, told, strict=True):
        yield timed_row(DRAWN, said, f"{fit}, {COLUMNS}, streamed", per_s=per_second(said, size), found=_found(said))
    seconds, cpu_s = (sum(said[of] for said in told) for of in ("seconds", "cpu_s"))
    yield row(DRAWN, size, "both", seconds=seconds, cpu_s=cpu_s, **at_most(seconds, MOST_S, " s"))
    peak = max(said["peak_mb"] for said in told)
    yield row(DRAWN, size, "peak memory", peak_mb=peak, **at_most(peak, MOST_MB, " MB"))
    yield from _beside(file, min(size, STATSMODELS_ROWS))
    yield _family()
    yield _texas(room)
    yield from (_coverage(rows, QUICK_REPETITIONS if room.rows else REPETITIONS) for rows in SIZES)


def _beside(file: str, size: int) -> Iterator[Row]:
    """The same fits by statsmodels, on as many rows as it can hold."""
    for fit in FITS:
        ours, theirs = _run(fit, file, size), _run(f"statsmodels_{fit}", file, size)
        yield timed_row(DRAWN, ours, f"{fit}, streamed")
        yield timed_row(DRAWN, theirs, f"{fit}, statsmodels")
        ratio, memory = ours["cpu_s"] / theirs["cpu_s"], ours["peak_mb"] / theirs["peak_mb"]
        apart_by = _apart(ours, theirs)
        found = f"of CPU time; of memory {memory:.2f}; at most {apart_by:.1g} errors apart"
        met = against("equal", apart_by <= MOST_APART)
        yield row(DRAWN, size, f"{fit}, streamed against statsmodels", ratio=ratio, found=found, **met)


def _found(said: Mapping[str, Any]) -> str:
    passes = f"{said['passes']} passes"
    return f"{passes}; first group: {said['effect']:+.4f} ({said['effect_se']:.4f})"


def _apart(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> float:
    """The largest difference of a coefficient or an error, in errors."""
    errors = theirs["errors"]
    pairs = (zip(ours[of], theirs[of], errors, strict=True) for of in ("coefficients", "errors"))
    return max(abs(float(a) - float(b)) / float(error) for pair in pairs for a, b, error in pair)


def _family() -> Row:
    said = _run("family")
    met = at_most(said["cpu_s"], MOST_FAMILY_CPU_S, " CPU s")
    return timed_row(BOSTON, said, "the whole ladder", **met, found=f"{said['effects']} effects")


def _texas(room: Room) -> Row:
    said = _run("texas", room.data)
    met = at_most(said["cpu_s"], MOST_TEXAS_CPU_S, " CPU s")
    effects = ", ".join(f"{count} effects by {attribute}" for attribute, count in said["effects"].items())
    return timed_row(TEXAS, said, "the whole ladder", **met, found=effects)


def _coverage(rows: int, repetitions: int) -> Row:
    """The share of intervals that hold the truth, over all scenarios of a size."""
    said = _run("coverage", rows, repetitions)
    covered = sum(said["covered"].values()) / len(said["covered"])
    met = against(f"{COVERED[0]} to {COVERED[1]}", COVERED[0] <= covered <= COVERED[1])
    shares = "; ".join(f"{name} {share:.3f}" for name, share in said["covered"].items())
    what = f"coverage of the logit's own effect, {repetitions} repetitions each"
    return timed_row(SIMULATED, said, what, ratio=covered, **met, found=shares)


BENCH = Bench(
    "adjusted",
    _lines,
    (TEXAS_FILE,),
    fewest=FEWEST,
    why="with fewer nothing takes any time",
    memory_mb=FREE_MB,
    disk=ROWS * BYTES_A_ROW,
)
TWIN = Expected(
    "{splits: 1, folds: 2}",
    (
        Held(
            "adjusted_effect",
            ("direct",),
            ("direct",),
            "it compares applicants with equal finances, and here these are what was moved",
        ),
    ),
)
