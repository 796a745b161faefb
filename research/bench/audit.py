"""Times audits against their targets: Boston until its ingest, whole and unchanged, and what costs most elsewhere.

The command runs as a user runs it, with its default jobs, in a lake that is deleted afterwards. CPU seconds of stages
come from their lineage records, and those of processes from the system. After Boston: the ladder of 44,400 usable rows,
and a lender by the shipped spec of HMDA. A fixed piece of work, the yardstick, is timed before each run, since other
work on the machine slows both: its wall time next to its CPU time tells how busy the cores were.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from flows.runs.index import Run, runs_of
from research.bench.ladder import DRAWN, LADDER_ROWS, MOST_LADDER_S
from research.bench.lender import ROWS, lender_rows
from research.benchmark import Bench, Room, Row, apart, at_most, row, timed_row, yardstick
from tasks.lake.store import Lake

MOST_STAGES_S, MOST_CPU_S, MOST_UNCHANGED_S, MOST_VALIDATION_S = 60.0, 34.0, 1.7, 2.5
MOST_START_S, MOST_OUTSIDE_S = 8.0, 12.0
"""Of the command on an empty lake, but for its stages: Prefect's server, the command itself, the start of workers."""
ADDED = ("adjust", "detect adjusted", "publish")
"""Steps that commit 98f8be6, which the target of the stages is of, did not have."""
FREE_MB = 2_000
BOSTON = "Boston 1990"
_SPEC = Path(__file__).parents[2] / "data" / "audits" / "boston1990.yaml"
_ENDED = (0, 1, 3)
_LOOK_SECONDS = 0.1


def _lines(room: Room) -> Iterator[Row]:
    yield from _start(room.place / "start")
    yield from _whole(room)
    timings = apart("research.bench.timed_ladder", "ladder", LADDER_ROWS)
    met = at_most(timings["cpu_s"], MOST_LADDER_S, " CPU s")
    yield timed_row(DRAWN, timings, "the whole ladder of one decision maker", **met)
    yield from lender_rows(room.place, ROWS)


def _start(place: Path) -> Iterator[Row]:
    """The command until its first stage has ended, by process: most of it is the start."""
    before, timings = yardstick(), _audited(place, words=("--until", "ingest"))
    yield _yardstick(before, "yardstick of the start")
    met = at_most(timings["cpu_s"], MOST_START_S, " CPU s")
    ratio = timings["cpu_s"] / before["cpu_s"]
    yield row(BOSTON, None, "the command until ingest, empty lake", **_costs(timings), ratio=ratio, **met)
    for name, cpu_s in timings["processes"].items():
        yield row(BOSTON, None, f"  {name}", cpu_s=cpu_s)


def _costs(timings: Mapping[str, Any]) -> dict[str, float]:
    return {"seconds": timings["seconds"], "cpu_s": timings["cpu_s"]}


def _whole(room: Room) -> Iterator[Row]:
    lake = room.place / "lake"
    before, first = yardstick(), _audited(lake)
    [run] = runs_of(Lake(lake))
    manifest = json.loads(Lake(lake).storage.read(f"runs/{run.run}/manifest.json") or b"")
    names = [step["name"] for step in manifest["steps"]]
    steps = steps_of(run, names)
    compared_steps = [step for step in steps if step["step"] not in ADDED]
    yield _yardstick(before, "yardstick of the first run")
    cpu = _sum(compared_steps, "cpu_seconds")
    yield _against(run, "stages of commit 98f8be6", before, cpu_s=cpu, most=(cpu, MOST_STAGES_S, " CPU s"))
    for step in steps:
        name = f"{step['step']} (beside)" if step["step"] in ADDED else step["step"]
        costs = {"seconds": step["seconds"], "cpu_s": step["cpu_seconds"], "peak_mb": step["peak_memory_mb"]}
        yield row(BOSTON, run.rows, f"  {name}", **costs)
    validating = _sum(steps, "validation_cpu_seconds")
    most = (validating, MOST_VALIDATION_S, " CPU s")
    yield _against(run, "validation by Great Expectations, all stages", before, cpu_s=validating, most=most)
    most = (first["cpu_s"], MOST_CPU_S, " CPU s")
    yield _against(run, "the command, empty lake", before, **_costs(first), most=most)
    outside = first["cpu_s"] - _sum(steps, "cpu_seconds")
    yield _against(run, "what is not stages", before, cpu_s=outside, most=(outside, MOST_OUTSIDE_S, " CPU s"))
    again, unchanged = yardstick(), _audited(lake)
    yield _yardstick(again, "yardstick of the second run")
    most = (unchanged["cpu_s"], MOST_UNCHANGED_S, " CPU s")
    yield _against(run, "the command, unchanged", again, **_costs(unchanged), most=most)


def steps_of(run: Run, names: Sequence[str]) -> list[dict[str, Any]]:
    """Lineage records of a run's steps, each with the name of its step."""
    return [{**record, "step": name} for name, record in zip(names, run.lineage, strict=True)]


def _sum(records: Sequence[dict[str, Any]], name: str) -> float:
    return sum(float(record[name]) for record in records)


def _yardstick(timings: dict[str, float], what: str) -> Row:
    busy = f"cores {timings['seconds'] / timings['cpu_s'] - 1:.0%} busy with other work" if timings["cpu_s"] else ""
    return row(BOSTON, None, what, **timings, ratio=1.0, found=busy)


def _against(run: Run, what: str, yard: dict[str, float], most: tuple[float, float, str], **costs: float) -> Row:
    """A row against its target; its ratio is CPU seconds in yardsticks."""
    return row(BOSTON, run.rows, what, **costs, ratio=costs["cpu_s"] / yard["cpu_s"], **at_most(*most))


def _audited(lake: Path, words: Sequence[str] = ()) -> dict[str, Any]:
    """Wall and CPU seconds of the command with all processes that it started, and CPU seconds of the kinds of these."""
    command = [sys.executable, "-m", "flows.cli", "audit", str(_SPEC), "--quiet", "--lake", str(lake), *words]
    environment = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
    wall, cpu, used = time.perf_counter(), _children(), dict[int, tuple[str, float]]()
    with tempfile.TemporaryFile("w+") as errors:
        done = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=errors)  # noqa: S603 our own
        process = psutil.Process(done.pid)
        while done.poll() is None:
            with suppress(psutil.Error):
                for part in (process, *process.children(recursive=True)):
                    times, kind_before = part.cpu_times(), used.get(part.pid, ("others", 0.0))[0]
                    kind = (
                        _kind(part, done.pid) if part.cmdline() else kind_before
                    )  # it ended, and nobody collected it yet
                    used[part.pid] = kind, times.user + times.system
            time.sleep(_LOOK_SECONDS)
        errors.seek(0)
        if done.returncode not in _ENDED:
            raise RuntimeError(f"the audit ended with {done.returncode}:\n{errors.read()[-2000:]}")
    processes = defaultdict[str, float](float)
    for name, cpu_s in used.values():
        processes[name] += cpu_s
    return {"seconds": time.perf_counter() - wall, "cpu_s": _children() - cpu, "processes": processes}


def _kind(process: psutil.Process, command: int) -> str:
    """Which part of an audit a process is."""
    words = " ".join(process.cmdline())
    if process.pid == command:
        return "the command"
    if "flows.cli" in words or "uvicorn" in words:  # forked from the command, or a program of its own
        return "Prefect's server"
    if "forkserver" in words:
        return "what workers are forked from" if process.ppid() == command else "workers"
    return "others"


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


BENCH = Bench("audit", _lines, fewest=1_989, why="it audits all rows of Boston", memory_mb=FREE_MB)
