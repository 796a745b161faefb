"""What it costs to tell of a run: the same audit, all of it in the lake, with alerts, log and artifacts, and without.

Each run is a process of its own. Its CPU seconds count, and those of the server, which is given time to write. The lake
holds every stage, so that what is measured is not lost in what stages take; as many lines are told as ever.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import psutil

from flows.bench.work.soak.services import Services
from tasks.proof.work import answer

WITH, WITHOUT = "with", "without"
_REPETITIONS = 4
_SETTLE_SECONDS = 4.0
_UNTOLD: Mapping[str, Any] = {
    "flows.audit:show_verdict": lambda *_: None,
    "flows.audit:tell_run": lambda *_: None,
    "flows.outcome.state:tell_run": lambda *_: None,
    "flows.outcome.state:handed_over": lambda *_: nullcontext(),
    "flows.outcome.artifacts:create_progress_artifact": lambda *_, **__: None,
}
"""``module:name`` -> what stands there where nothing is told."""


def added_seconds(services: Services, spec: Path) -> Mapping[str, float]:
    """CPU seconds of a run by how it is told, the median of some.

    Args:
        services: with the server at work.
        spec: of the audit.
    """
    lake = services.home / "told"
    _run(services, spec, lake, WITHOUT)  # computes every stage
    took: dict[str, list[float]] = {WITH: [], WITHOUT: []}
    for _ in range(_REPETITIONS):
        for how, seconds in took.items():
            shutil.rmtree(lake / "alerts", ignore_errors=True)  # else it is told once
            seconds.append(_run(services, spec, lake, how))
    return {how: median(seconds) for how, seconds in took.items()}


def _run(services: Services, spec: Path, lake: Path, how: str) -> float:
    """CPU seconds of one run, of its process and of the server."""
    before = _used(services)
    own = {"PREFECT_API_URL": services.api, "EVENHAND_JOBS": "1"}
    own |= {"EVENHAND_ALERTS": str(services.alerts)} if how == WITH else {}
    words = [sys.executable, "-m", "flows.bench.work.soak.telling", "audited", str(spec), str(lake), how]
    done = subprocess.run(  # noqa: S603 our own words
        words, env={**services.environment(), **own}, capture_output=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"the audit ended with {done.returncode}:\n{done.stderr.decode()[-2000:]}")
    time.sleep(_SETTLE_SECONDS)
    own_seconds: float = json.loads(done.stdout.decode().splitlines()[-1])["cpu_s"]
    return own_seconds + _used(services) - before


def _used(services: Services) -> float:
    times = psutil.Process(services.server.pid if services.server else os.getpid()).cpu_times()
    return float(times.user + times.system)


def audited(spec: str, lake: str, how: str) -> Mapping[str, Any]:
    """CPU seconds of this process for an audit, told or not; run as a program."""
    from flows.audit import audit

    with ExitStack() as stack:
        for place, nothing in _UNTOLD.items() if how == WITHOUT else ():
            module, name = place.split(":")
            stack.enter_context(patch.object(import_module(module), name, nothing))
        audit(spec=spec, lake=lake, jobs=1)
    return {"cpu_s": time.process_time()}


if __name__ == "__main__":
    answer(audited)
