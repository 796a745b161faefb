"""What benchmarks share: room to work in, processes of their own, and the rows of a table with targets."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import psutil

from schemas.errors import InfrastructureError, SpecError
from tasks.lake.store import Lake

Row = dict[str, Any]

ALL = 2**31 - 1
"""No limit on rows."""


def measured(lines: Callable[[Path], Iterable[Row]], rows: int | None, memory_mb: int, disk: int = 2**30) -> list[Row]:
    """The lines of a benchmark that works in a folder of its own.

    Args:
        lines: Measures, and gives the rows of the table.
        rows: The limit that the user gave, for a quick look; targets, which are for the sizes said, are then left out.
        memory_mb: Memory that has to be free.
        disk: Bytes that have to be.

    Raises:
        InfrastructureError: Memory is short, or the disk is too full.
    """
    free = psutil.virtual_memory().available // 2**20
    if free < memory_mb:
        raise InfrastructureError(f"{free} MB of memory are free and the benchmark needs up to {memory_mb}; free some")
    with tempfile.TemporaryDirectory() as name:
        Lake(Path(name)).require_space(disk, "the benchmark")
        return held_to(list(lines(Path(name))), rows)


def held_to(said: list[Row], rows: int | None) -> list[Row]:
    """The rows of a table, without targets where the user limited the size."""
    return said if rows is None else [{**each, "target": None, "met": None} for each in said]


def require_rows(name: str, rows: int | None, fewest: int, why: str) -> None:
    """Refuse a limit on rows that is too low.

    Raises:
        SpecError: It is.
    """
    if rows is not None and rows < fewest:
        raise SpecError(f"--rows {rows}: bench {name} needs {fewest} rows at least; {why}")


def apart(module: str, what: str, *about: object) -> Mapping[str, Any]:
    """What a module says of some work, in a process of its own, so that its peak memory is that of the work."""
    command = [sys.executable, "-m", module, what, *map(str, about)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 our own
    if done.returncode:
        raise RuntimeError(f"{what} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    said: Mapping[str, Any] = json.loads(done.stdout)
    return said


def row(name: str, rows: int | None, what: str, **more: Any) -> Row:
    """A line of the table; what it does not say is empty."""
    columns = ("seconds", "cpu_s", "per_s", "peak_mb", "ratio", "target", "met", "found")
    return {"data": name, "rows": rows, "what": what, **dict.fromkeys(columns), **more}


def took(said: Mapping[str, Any]) -> Row:
    """Times and memory of a process, as far as it told them."""
    return {name: said.get(name) for name in ("seconds", "cpu_s", "peak_mb")}


def per_second(said: Mapping[str, Any], rows: int | None = None) -> Row:
    """Rows a second, of all or of those given."""
    return {"per_s": round((rows or said["rows"]) / said["seconds"])}


def at_most(value: float, most: float, unit: str = "") -> Row:
    """A target from above, and whether it was met."""
    return against(f"at most {most:g}{unit}", value <= most)


def below(value: float, most: float, unit: str) -> Row:
    """A target from above that is itself too much."""
    return against(f"below {most:g}{unit}", value < most)


def at_least(value: float, least: float) -> Row:
    """A target from below."""
    return against(f"at least {least:g}", value >= least)


def against(target: str, met: bool) -> Row:
    """Whether a target was met."""
    return {"target": target, "met": "met" if met else "missed"}
