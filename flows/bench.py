"""Benchmarks: each times the same work two ways in one run and prints the ratio. Compilation is done before.

Here belong that of Prefect and the lake, and what benchmarks share: processes of their own, and the rows of a table.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from flows.plan import Step, plan
from schemas.settings import AuditSpec
from tasks._stage import Produced
from tasks._store import Lake


def overhead(spec: AuditSpec) -> list[dict[str, Any]]:
    """The stages as plain function calls on frames in memory, against a whole process with Prefect, GX and the lake.

    Both run as processes of their own and include the start of Python and the imports that they need.
    """
    with tempfile.TemporaryDirectory() as place:
        Lake(Path(place)).require_space(2 * 2**30, "the benchmark")
        file = Path(place) / "spec.yaml"
        file.write_text(yaml.safe_dump(spec.model_dump(mode="json")), encoding="utf-8")
        plain = [sys.executable, "-m", "flows.bench", str(file)]
        full = [sys.executable, "-m", "flows.cli", "audit", str(file), "--json", "--lake", f"{place}/lake"]
        _seconds(plain)  # compiles what numba caches, so that neither side pays for it
        bare, framed = _seconds(plain), _seconds(full)
        again = _seconds(full)
    return [
        {"what": "plain function calls", "seconds": bare, "ratio": 1.0, "added_s": 0.0},
        {"what": "full flow, empty lake", "seconds": framed, "ratio": framed / bare, "added_s": framed - bare},
        {"what": "full flow, nothing to do", "seconds": again, "ratio": again / bare, "added_s": again - bare},
    ]


def apart(module: str, what: str, *about: object) -> Mapping[str, Any]:
    """What a module says of some work, in a process of its own, so that its peak memory is that of the work."""
    command = [sys.executable, "-m", module, what, *map(str, about)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 our own
    if done.returncode:
        raise RuntimeError(f"{what} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    said: Mapping[str, Any] = json.loads(done.stdout)
    return said


def row(name: str, rows: int | None, what: str, **more: Any) -> dict[str, Any]:
    """A line of the table; what it does not say is empty."""
    columns = ("seconds", "cpu_s", "per_s", "peak_mb", "ratio", "target", "met", "found")
    return {"data": name, "rows": rows, "what": what, **dict.fromkeys(columns), **more}


def against(target: str, met: bool) -> dict[str, Any]:
    """Whether a target was met."""
    return {"target": target, "met": "met" if met else "missed"}


def call_plainly(steps: Sequence[Step]) -> dict[str, list[pa.Table]]:
    """Every stage as the plain function that it is: no lake, no validation, no Prefect."""
    tables: dict[str, list[pa.Table]] = {}
    for step in steps:
        held = {name: parts for name, parts in tables.items() if name not in {t.name for t in step.unread}}
        given = [pa.concat_tables(held.get(t.name) or [t.empty()]) for t in step.stage.reads]
        produced: Produced = step.stage.function(*given, settings=step.settings)
        for name, table in {**produced.tables, "refusals": produced.refusals}.items():
            tables.setdefault(name, []).append(table)
    return tables


def _seconds(command: list[str]) -> float:
    environment = {k: v for k, v in os.environ.items() if k != "PREFECT_API_URL"}
    clock = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 our own
    if done.returncode not in (0, 1, 3):
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return time.perf_counter() - clock


if __name__ == "__main__":
    call_plainly(plan(AuditSpec.model_validate(yaml.safe_load(Path(sys.argv[1]).read_text(encoding="utf-8")))).steps)
