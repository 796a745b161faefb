"""Measures the added cost of verdicts and their intervals, on the applications of Texas in 2022.

All steps of an audit run once as plain function calls, each in a process of its own and with its parts under a clock.
Each step that computes something for a verdict then runs without that part. ``ratio`` is a part's share of the CPU
seconds of all steps. Memory is what the part adds to its step's peak, and what counts is by how much the largest peak
of all steps grows. The refits of GCFN and CEC are off, as they are by default.

Scope: runs and targets. The timed work: ``work.cost``.
"""

from collections.abc import Iterator
from functools import partial

from research.bench.timed_cost import PARTS, WITH, WITHOUT
from research.benchmark import Bench, Room, Row, apart, at_most, row, yardstick
from research.figures import TEXAS_FILE

MOST_S, MOST_MB = 20.0, 300.0
FREE_MB = 4_000
"""Memory that has to be free: the detection of FGCE and CST on 50,000 rows."""
TEXAS = "Texas 2022"

_run = partial(apart, "research.bench.timed_cost")


def _lines(room: Room) -> Iterator[Row]:
    names = _run("step_names", room.data)["names"]
    speed = yardstick()
    yield row(TEXAS, None, "yardstick", **speed, found="one CPU second on a machine without other work")
    runs, rows = {}, 0
    for name in names:
        run = runs[name] = _run("step", room.data, room.place, name, WITH)
        rows = rows or run["rows"]  # ingest reads a file and no table
        yield row(TEXAS, rows or None, f"step {name}", cpu_s=run["cpu_s"], peak_mb=run["peak_mb"])
    every = sum(run["cpu_s"] for run in runs.values())
    yield row(TEXAS, rows, "all steps, of a method each or of all", cpu_s=every)
    total, largest = 0.0, dict.fromkeys((WITH, WITHOUT), 0.0)
    for name in dict.fromkeys(part.step for part in PARTS):
        parts = [part for part in PARTS if part.step == name]
        without = _run("step", room.data, room.place, name, WITHOUT) if any(p.can_be_left_out for p in parts) else None
        peaks = {WITH: runs[name]["peak_mb"], WITHOUT: (without or runs[name])["peak_mb"]}
        largest = {how: max(peaks[how], peak) for how, peak in largest.items()}
        for part in parts:
            took = runs[name]["parts"][part.name]
            total += 0.0 if part.within else took
            memory = None if part.within or not part.can_be_left_out else peaks[WITH] - peaks[WITHOUT]
            yield row(TEXAS, rows, part.name, cpu_s=took, peak_mb=memory, ratio=took / every)
    yield row(TEXAS, rows, "all parts", cpu_s=total, ratio=total / every, **at_most(total, MOST_S, " s"))
    grown = largest[WITH] - largest[WITHOUT]
    found_mb = f"{largest[WITHOUT]:.0f} MB without"
    yield row(TEXAS, rows, "largest peak of a step", peak_mb=grown, **at_most(grown, MOST_MB, " MB"), found=found_mb)


BENCH = Bench("cost", _lines, files=(TEXAS_FILE,), fewest=50_000, why="the sample has so many rows", memory_mb=FREE_MB)
