"""Times the bundled Boston audit against its targets: in an empty lake, and again unchanged.

The command runs as a user runs it, with its default jobs, in a lake that is deleted afterwards. CPU seconds of stages
come from their lineage records. A fixed piece of work, the yardstick, is timed before each run, since other work on the
machine slows both: its wall time beside its CPU time tells how busy the cores were.
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flows.runs.index import Run, runs_of
from flows.supervision.prefect_server import LIGHT
from research.benchmark import Bench, Room, Row, at_most, row
from tasks.lake.store import Lake

MOST_STAGES_S, MOST_WALL_S, MOST_UNCHANGED_S, MOST_VALIDATION_S = 60.0, 45.0, 2.5, 2.5
MOST_OUTSIDE_S = 18.0
"""Of the command on an empty lake, but for its stages: Prefect's server, the command itself, the start of workers."""
ADDED = ("adjust", "detect adjusted", "publish")
"""Steps that commit 98f8be6, which the target of the stages is of, did not have."""
FREE_MB = 2_000
BOSTON = "Boston 1990"
_SPEC = Path(__file__).parents[2] / "data" / "audits" / "boston1990.yaml"
_ENDED = (0, 1, 3)


def _lines(room: Room) -> Iterator[Row]:
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
    timings = {"seconds": first["seconds"], "cpu_s": first["cpu_s"]}
    yield _against(run, "the command, empty lake", before, **timings, most=(first["seconds"], MOST_WALL_S, " s"))
    yield from _outside(run, before, first["cpu_s"] - _sum(steps, "cpu_seconds"), room.place / "plain")
    again, unchanged = yardstick(), _audited(lake)
    yield _yardstick(again, "yardstick of the second run")
    timings = {"seconds": unchanged["seconds"], "cpu_s": unchanged["cpu_s"]}
    yield _against(run, "the command, unchanged", again, **timings, most=(timings["cpu_s"], MOST_UNCHANGED_S, " CPU s"))


def _outside(run: Run, yard: dict[str, float], cpu_s: float, place: Path) -> Iterator[Row]:
    """CPU seconds of the command but for its stages: now, and where the embedded API runs all services of Prefect."""
    yield _against(run, "what is not stages", yard, cpu_s=cpu_s, most=(cpu_s, MOST_OUTSIDE_S, " CPU s"))
    opposite = {"false": "true", "true": "false"}
    whole = _audited(place, {name: opposite[value] for name, value in LIGHT.items()})
    stages = sum(float(record["cpu_seconds"]) for plain in runs_of(Lake(place)) for record in plain.lineage)
    yield row(BOSTON, run.rows, "  before, with all of Prefect's services", cpu_s=whole["cpu_s"] - stages)


def yardstick() -> dict[str, float]:
    """Wall and CPU seconds of a fixed piece of work of Python and numpy: about one CPU second."""
    wall, cpu = time.perf_counter(), time.process_time()
    rng = np.random.default_rng(1)
    for _ in range(12):
        values = rng.random(2_000_000)
        np.sort(values)
        np.cumsum(np.exp(-values))
    total = 0
    for number in range(8_000_000):
        total += number & 7
    return {"seconds": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}


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


def _audited(lake: Path, settings: Mapping[str, str] | None = None) -> dict[str, float]:
    """Wall and CPU seconds of the command, with all processes that it started; settings are of the environment."""
    command = [sys.executable, "-m", "flows.cli", "audit", str(_SPEC), "--quiet", "--lake", str(lake)]
    environment = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"} | dict(
        settings or {}
    )
    wall, cpu = time.perf_counter(), _children()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 our own
    if done.returncode not in _ENDED:
        raise RuntimeError(f"the audit ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return {"seconds": time.perf_counter() - wall, "cpu_s": _children() - cpu}


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


BENCH = Bench("audit", _lines, fewest=1_989, why="it audits all rows of Boston", memory_mb=FREE_MB)
