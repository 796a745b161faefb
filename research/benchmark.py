"""Declares benchmarks, starts their timed work in separate processes, and compares with targets."""

import json
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from research.figures import require
from schemas.errors import InfrastructureError, SpecError
from tasks.lake.store import Lake

# --------------------------------------------------------------------------------------------------------------------
# Hands a benchmark's process its input and times its work; the process answers in JSON.
#
# Neither tables nor stages are imported here, so that the process's peak memory is that of the work.


_PIPED = "-"


@dataclass(frozen=True)
class Piped:
    """Rows that a benchmark process gets through its standard input; its command line has ``-`` instead."""

    rows: object

    def __str__(self) -> str:
        """Returns the text that represents them in a command."""
        return _PIPED

    def packed(self) -> bytes:
        """Returns them as the bytes that ``answer`` reads."""
        return pickle.dumps(self.rows)


def sampled(rows: int, most: int, seed: int = 0) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Draws ``most`` rows without replacement, ascending, or all if there are no more."""
    return np.sort(np.random.default_rng(seed).choice(rows, min(most, rows), replace=False))


@contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Yields a mapping that has ``seconds`` and ``cpu_s`` when the work ends."""
    timings: dict[str, float] = {}
    wall, cpu = time.perf_counter(), time.process_time()
    yield timings
    timings |= {"seconds": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}


def peak_mb() -> float:
    """Returns the most memory that this process has held.

    ``resource.getrusage`` would also count the process that started this one, from before it became this one.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def device() -> dict[str, Any]:
    """Returns the accelerator that torch sees, or none."""
    import torch  # seconds to import, and half of the benchmarks do without

    return {"cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None}


def answer(*runs: Callable[..., Mapping[str, Any]]) -> None:
    """Runs the function named on the command line with its other words as arguments; prints the result as JSON."""
    name, *words = sys.argv[1:]
    # rows come by a pipe from the process that started this one, and from no file
    about = [pickle.load(sys.stdin.buffer) if word == _PIPED else word for word in words]  # noqa: S301
    sys.stdout.write(json.dumps({run.__name__: run for run in runs}[name](*about)))


# --------------------------------------------------------------------------------------------------------------------
# Declares benchmarks: the memory and files that one needs, runs in separate processes, rows with targets.


Row = dict[str, Any]

ALL = 2**31 - 1
"""No limit on rows."""


@dataclass(frozen=True)
class Room:
    """What a benchmark works with."""

    place: Path
    """A folder of its own, deleted at the end."""
    data: Path
    """The directory that ``--data`` gives."""
    rows: int | None
    """The limit that the user gave, for a quick look."""
    reps: int | None = None
    """Repetitions that the user gave, of a benchmark that repeats simulations."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What the user gave for ``Bench.takes``: option -> value."""

    @property
    def limit(self) -> int:
        """Most rows of each data set."""
        return self.rows or ALL


@dataclass(frozen=True)
class Bench:
    """A benchmark: the rows of its table, and what it needs to measure them."""

    name: str
    lines: Callable[[Room], Iterable[Row]]
    """Runs the measurements and yields the rows of the table."""
    files: tuple[str, ...] = ()
    """Files inside the directory that ``--data`` gives."""
    fewest: int = 1
    """Least limit on rows."""
    why: str = ""
    """Reason for that."""
    memory_mb: int = 0
    """Memory that has to be free."""
    disk: int = 2**30
    """Bytes that have to be free."""
    forms: Mapping[str, Callable[[Room], Iterable[Row]]] = field(default_factory=dict)
    """Option -> what runs in place of ``lines`` where it is given."""
    repeats: bool = False
    """Whether it repeats simulations, as often as ``--reps`` says."""
    takes: tuple[str, ...] = ()
    """Further options, which ``lines`` finds in the room."""
    of_any_size: bool = False
    """Whether targets hold for whatever rows are asked for; else they are for the full sizes alone."""

    @property
    def options(self) -> tuple[str, ...]:
        """The options that it takes."""
        return (*("--data",) * bool(self.files), "--rows", *("--reps",) * self.repeats, *self.forms, *self.takes)

    def run(
        self,
        data: Path | None = None,
        rows: int | None = None,
        reps: int | None = None,
        form: str | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        show: Callable[[Row], None] | None = None,
    ) -> list[Row]:
        """Measures, and returns the rows of the table.

        Args:
            data: Directory with the files.
            rows: Most rows of each data set, for a quick look; targets, which are for the full sizes, are left out,
                but for those of simulations, which hold for any size.
            reps: Repetitions of simulations.
            form: The option of ``forms`` that is given.
            options: Options of ``takes``, with their values.
            show: Gets each row once it is measured.

        Raises:
            SpecError: The limit on rows is too low.
            InfrastructureError: A file is missing, memory is short, or the disk is too full.
        """
        if rows is not None and rows < self.fewest:
            raise SpecError(f"--rows {rows}: bench {self.name} needs {self.fewest} rows at least; {self.why}")
        inside = data or Path()
        require(inside, [inside / file for file in self.files])
        free = psutil.virtual_memory().available // 2**20
        if free < self.memory_mb:
            requirement = f"the benchmark needs up to {self.memory_mb}; free some"
            raise InfrastructureError(f"{free} MB of memory are free and {requirement}")
        with tempfile.TemporaryDirectory() as place:
            Lake(Path(place)).require_space(self.disk, "the benchmark")
            lines = self.forms[form] if form else self.lines
            rows_of_bench = []
            for line in lines(Room(Path(place), inside, rows, reps, options or {})):
                rows_of_bench.append(line)
                if show:
                    show(line)
        is_complete = rows is None or self.repeats or self.of_any_size
        return rows_of_bench if is_complete else [{**line, "target": None, "met": None} for line in rows_of_bench]


@dataclass(frozen=True)
class Held:
    """A measure by which a method is held against twins of HMDA, and which planted discrimination it can find."""

    measure: str
    finds: tuple[str, ...]
    """What it can find where the group is no input of the model. Of the rest the rate is shown, without a target."""
    finds_by_input: tuple[str, ...]
    """The same where the group is an input of the model."""
    why_not: str = ""
    """Reason for the rest."""


@dataclass(frozen=True)
class Expected:
    """How a method is run on a twin of HMDA, and what it is held against there."""

    smaller: str
    """Settings, as YAML, with which its part of an audit takes seconds. No measure that it is held by is touched."""
    measures: tuple[Held, ...]


def apart(module: str, what: str, *about: object) -> Mapping[str, Any]:
    """Runs a function of a module in a separate process, so that its peak memory is that of the work."""
    command = [sys.executable, "-m", module, what, *map(str, about)]
    stdin = next((argument.packed() for argument in about if isinstance(argument, Piped)), None)
    done = subprocess.run(command, input=stdin, capture_output=True, check=False)  # noqa: S603 our own
    if done.returncode:
        raise RuntimeError(f"{what} ended with {done.returncode}:\n{done.stderr.decode()[-2000:]}")
    answer: Mapping[str, Any] = json.loads(done.stdout)
    return answer


def row(name: str, rows: int | None, what: str, **extra: Any) -> Row:
    """Returns a row of the table; columns that are not given are empty."""
    columns = ("seconds", "cpu_s", "per_s", "peak_mb", "ratio", "target", "met", "found")
    return {"data": name, "rows": rows, "what": what, **dict.fromkeys(columns), **extra}


def timed_row(name: str, timings: Mapping[str, Any], what: str, **extra: Any) -> Row:
    """Returns the row of a process: its rows, times and memory as far as it gave them, and more columns."""
    times = {column: timings.get(column) for column in ("seconds", "cpu_s", "peak_mb")}
    return row(name, timings["rows"], what, **{**times, **extra})


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


def per_second(timings: Mapping[str, Any], rows: int | None = None) -> int:
    """Returns rows a second, of all or of those given."""
    rate: int = round((rows or timings["rows"]) / timings["seconds"])
    return rate


def at_most(value: float, most: float, unit: str = "") -> Row:
    """Returns an upper target, and whether it was met."""
    return against(f"at most {most:g}{unit}", value <= most)


def below(value: float, most: float, unit: str) -> Row:
    """Returns an upper target that is itself too much, and whether it was met."""
    return against(f"below {most:g}{unit}", value < most)


def at_least(value: float, least: float) -> Row:
    """Returns a lower target, and whether it was met."""
    return against(f"at least {least:g}", value >= least)


def against(target: str, met: bool) -> Row:
    """Returns a target, and whether it was met."""
    return {"target": target, "met": "met" if met else "missed"}
