"""Times the stages as plain calls against the command with Prefect and the lake.

Both run in processes of their own, after a run that compiles.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from schemas.audit.spec import AuditSpec
from tasks.in_memory import call_plainly
from tasks.lake.store import Lake
from tasks.pipeline.registry import validated
from tasks.plan import plan


def overhead(spec: AuditSpec) -> list[dict[str, Any]]:
    """Times the stages as plain calls on tables in memory, and the whole command with Prefect, GX and the lake.

    Both times include the start of Python and the imports.
    """
    with tempfile.TemporaryDirectory() as place:
        Lake(Path(place)).require_space(2 * 2**30, "the benchmark")
        file = Path(place) / "spec.yaml"
        file.write_text(yaml.safe_dump(spec.model_dump(mode="json")), encoding="utf-8")
        plain = [sys.executable, "-m", "research.bench.overhead", str(file)]
        full = [sys.executable, "-m", "flows.cli", "audit", str(file), "--json", "--lake", f"{place}/lake"]
        _seconds(plain)  # compiles what numba caches, so that neither side pays for it
        bare = _seconds(plain)
        runs = {"plain function calls": bare, "full flow, empty lake": _seconds(full)}
        runs["full flow, nothing to do"] = _seconds(full)
    return [{"what": what, "seconds": s, "ratio": s / bare, "added_s": s - bare} for what, s in runs.items()]


def _seconds(command: list[str]) -> float:
    environment = {k: v for k, v in os.environ.items() if k != "PREFECT_API_URL"}
    clock = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 our own
    if done.returncode not in (0, 1, 3):
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return time.perf_counter() - clock


if __name__ == "__main__":
    call_plainly(plan(validated(AuditSpec, yaml.safe_load(Path(sys.argv[1]).read_text(encoding="utf-8")))).steps)
