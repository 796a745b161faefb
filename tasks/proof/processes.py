"""What benches share: work in a process of its own, and the rows of a table."""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any


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
