"""Measures the logits of the ladder, the whole ladder, judged and fixed effects of two million applications.

Every measurement runs in a process of its own. ``found`` has the passes over the rows.

Scope: runs and targets. The timed work: ``timed_ladder``.
"""

from collections.abc import Iterator
from functools import partial

from research.benchmark import Bench, Room, Row, apart, at_most, timed_row

SEPARATED_ROWS, LADDER_ROWS, ROWS, FEWEST = 40_000, 48_700, 2_000_000, 5_000
"""Of 48,700 drawn applications 44,400 are decided and complete."""
FITS = {"newton": "logit that converges", "limit": "separated, at its limit", "firth": "separated, Firth's fit"}
MOST_LADDER_S, MOST_JUDGED_S, MOST_MB = 6.5, 15.0, 2_000.0
FREE_MB = 4_000
DRAWN = "drawn lender"

_run = partial(apart, "research.bench.timed_ladder")


def _lines(room: Room) -> Iterator[Row]:
    for how, what in FITS.items():
        timings = _run("fit", how, min(room.limit, SEPARATED_ROWS))
        text = f"{timings['passes']} passes, {timings['columns']} columns"
        yield timed_row(DRAWN, timings, f"one fit: {what}", found=text)
    timings = _run("ladder", min(room.limit, LADDER_ROWS))
    met = at_most(timings["cpu_s"], MOST_LADDER_S, " CPU s")
    yield timed_row(DRAWN, timings, "the whole ladder", found=f"{timings['effects']} effects", **met)
    timings = _run("judged", min(room.limit, ROWS))
    text = f"{timings['parts']} parts; {timings['before_mb']:.0f} MB before"
    met = at_most(timings["cpu_s"], MOST_JUDGED_S, " CPU s")
    yield timed_row(DRAWN, timings, "the judged effect of every group", found=text, **met)
    met = at_most(timings["peak_mb"], MOST_MB, " MB")
    yield timed_row(DRAWN, {**timings, "seconds": None, "cpu_s": None}, "peak memory of that", **met)
    timings = _run("places", min(room.limit, ROWS))
    text = f"{timings['columns']} columns; {timings['before_mb']:.0f} MB before"
    met = at_most(timings["peak_mb"], MOST_MB, " MB")
    yield timed_row(DRAWN, timings, "the rung of fixed effects", found=text, **met)


BENCH = Bench("ladder", _lines, fewest=FEWEST, why="every group needs ten denials", memory_mb=FREE_MB)
