"""Work of the benchmark of scale: a year drawn as a file, Dask on this machine, and the estimate for a nation."""

import heapq
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np
import psutil
import pyarrow as pa
import yaml

from flows.partitions.attempts import YearState
from flows.partitions.year_plan import Past, expected_steps, timed_yardstick
from research.benchmark import answer, peak_mb, timed
from research.figures import shipped
from schemas.audit.partition import ALL
from schemas.audit.spec import AuditSpec
from schemas.errors import InfrastructureError
from schemas.terms import ExitCode
from tasks.ingest.hmda.canonical import literal
from tasks.ingest.synthetic.twin_files import write_nation
from tasks.lake.store import stage_runs
from tasks.numerics.arrays import Floats, Longs

# --------------------------------------------------------------------------------------------------------------------
# Watches processes while they work: CPU seconds and the highest memory of each, and of all that they start.
#
# The kernel keeps a process's highest memory, so that looking several times a second misses none but a last moment's.


_EVERY_S = 0.25


@dataclass
class Watch:
    """What processes have used since the watch began."""

    roots: list[int]
    """Process ids; what they start is watched as well."""
    peak_mb: float = 0.0
    """The highest memory of any one process."""
    _cpu: dict[tuple[int, float], tuple[float, float]] = field(default_factory=dict)
    """Process id and time of its start -> CPU seconds at first and last sight."""

    @property
    def cpu_s(self) -> float:
        """CPU seconds, of processes that have ended as well, to their last sight."""
        return sum(last - first for first, last in self._cpu.values())

    def look(self, *, begun: bool = False) -> None:
        """Look at all of them now; of those that are ``begun`` what they have used so far does not count."""
        for process in self._family():
            try:
                key, times = (process.pid, process.create_time()), process.cpu_times()
                status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii", errors="replace")
                line = next((line for line in status.splitlines() if line.startswith("VmHWM:")), "VmHWM: 0 kB")
                highest_mb = int(line.split()[1]) / 1024
                self.peak_mb = max(self.peak_mb, highest_mb)
            except (psutil.Error, OSError):  # it has ended
                continue
            used = times.user + times.system
            first = self._cpu[key][0] if key in self._cpu else used if begun else 0.0
            self._cpu[key] = first, used

    def killed(self, pid: int) -> bool:
        """Kill one of the processes by SIGKILL; whether it is one of them."""
        process = next((process for process in self._family() if process.pid == pid), None)
        if process is not None:
            process.kill()
        return process is not None

    def _family(self) -> Iterator[psutil.Process]:
        for pid in self.roots:
            try:
                root = psutil.Process(pid)
                yield from (root, *root.children(recursive=True))
            except psutil.Error:
                continue


@contextmanager
def watched(roots: Sequence[int]) -> Iterator[Watch]:
    """Watch processes, from now on, until the block ends."""
    watch, ended = Watch(list(roots)), threading.Event()
    watch.look(begun=True)

    def keep_looking() -> None:
        while not ended.wait(_EVERY_S):
            watch.look()

    thread = threading.Thread(target=keep_looking, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        ended.set()
        thread.join()
        watch.look()


# --------------------------------------------------------------------------------------------------------------------
# Dask on this machine: a scheduler, and workers of one thread and a limit of memory each, as in docs/scale.md.


MEMORY = "3GB"
"""Of a worker: the nanny starts one above it anew, and its partition is done once more, alone."""
LARGE = "12GB"
"""Of the one worker for what an ordinary one cannot take, as docs/scale.md has it."""
_PATIENCE_S = 120
SETTINGS: Mapping[str, str] = {
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
    "DASK_DISTRIBUTED__WORKER__MEMORY__TARGET": "False",
    "DASK_DISTRIBUTED__WORKER__MEMORY__SPILL": "False",
    "DASK_DISTRIBUTED__WORKER__MEMORY__PAUSE": "False",
}
"""A partition that kills its worker is not handed to three more, and no worker pauses at 80 % for ever."""


@contextmanager
def cluster(place: Path, workers: int, *, one_large: bool) -> Iterator[tuple[str, list[int]]]:
    """Address of a scheduler with so many workers, and the ids of the processes; they end with the block.

    Args:
        place: folder for what they write.
        workers: of one thread each.
        one_large: whether one of them may take more, and alone has the resource ``large``; else all have it.

    Raises:
        InfrastructureError: Dask is not installed, or the workers do not come.
    """
    try:
        import distributed  # noqa: F401 seconds, and the runner processes does without
        import prefect_dask  # noqa: F401
    except ImportError as error:
        raise InfrastructureError(
            f"runner dask needs libraries that are not installed ({error}): pip install 'evenhand[dask]', "
            "or --runner processes"
        ) from error
    place.mkdir(parents=True, exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free_port: int = probe.getsockname()[1]
    address = f"tcp://127.0.0.1:{free_port}"
    port = address.rpartition(":")[2]
    usual = ["--memory-limit", MEMORY] if one_large else ["--memory-limit", MEMORY, "--resources", "large=1"]
    with ExitStack() as running:
        words = ["scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard"]
        started = [running.enter_context(_running(words, place / "scheduler"))]
        for name, count, apart in (
            ("workers", workers - one_large, usual),
            ("large", int(one_large), ["--memory-limit", LARGE, "--resources", "large=1"]),
        ):
            words = ["worker", address, "--nworkers", str(count), "--nthreads", "1", *apart, "--no-dashboard"]
            words += ["--host", "127.0.0.1", "--local-directory", str(place)]
            if count:
                started.append(running.enter_context(_running(words, place / name)))
        _wait(address, workers, place)
        yield address, [process.pid for process in started]


@contextmanager
def _running(words: Sequence[str], home: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Runs one Dask command. It ends by SIGTERM, because a killed command leaves its workers running."""
    home.mkdir(exist_ok=True)
    environment = {**os.environ, **SETTINGS, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    with (home / "log").open("w") as output:
        command = [sys.executable, "-m", "dask", *words]
        process = subprocess.Popen(command, cwd=home, env=environment, stdout=output, stderr=output)  # noqa: S603 our own
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(address: str, workers: int, place: Path) -> None:
    from distributed import Client

    try:
        with Client(address, timeout=_PATIENCE_S, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=_PATIENCE_S)
    except (OSError, TimeoutError) as error:
        logs = sorted(place.glob("*/log"))
        log = "".join(log_file.read_text(encoding="utf-8", errors="replace")[-500:] for log_file in logs)
        raise InfrastructureError(
            f"{workers} Dask workers did not come within {_PATIENCE_S} s ({error}): {log}"
        ) from error


# --------------------------------------------------------------------------------------------------------------------
# What a national year costs, from partitions that were measured: by the rule of ``evenhand plan``, step by step.


@dataclass(frozen=True)
class Partition:
    """One audited partition."""

    value: str
    run: str
    rows: int
    usable: int
    seconds: float
    steps: dict[str, float]
    """Step -> CPU seconds."""
    peaks: dict[str, float]
    """Step -> the most memory, in MB."""
    waits: dict[str, tuple[str, ...]]
    """Step -> steps whose tables it reads."""

    @property
    def cpu_s(self) -> float:
        """Of all its steps."""
        return sum(self.steps.values())

    @property
    def peak_mb(self) -> float:
        """The highest memory of a step."""
        return max(self.peaks.values())

    @property
    def past(self) -> Past:
        """What a forecast uses of it."""
        return Past(self.usable, self.steps, self.peaks)


@dataclass(frozen=True)
class Year:
    """The estimate for a year."""

    lenders: int
    """Of the year, with few rows or many."""
    covered: float
    """Share of the rows that is of lenders with rows enough."""
    costs: Floats
    """``(n,)`` CPU seconds of the audit of each lender that has rows enough, the largest first."""
    beyond: float
    """Share of them that is for lenders larger than any that was measured."""


def year(size: Longs, usable: float, minimum: int, spec: AuditSpec, measured: Sequence[Partition]) -> Year:
    """The estimate for lenders of a year.

    Each lender costs what ``evenhand plan`` expects after runs of the measured ones, of those of about equal rows the
    mean.

    Args:
        size: ``(k,)`` rows of each lender.
        usable: share of the rows that can be used.
        minimum: of usable rows, that a lender needs.
        spec: of the audits.
        measured: lenders, at least one.
    """
    chosen, past = size[size * usable >= minimum], classes(measured)
    expected = {n: sum(expected_steps(spec, list(measured[0].steps), n, past)) for n in _usable(chosen, usable)}
    costs = np.array([expected[n] for n in _usable(chosen, usable)], dtype=np.float64)
    largest = max(partition.usable for partition in measured)
    beyond = float(costs[chosen * usable > largest].sum() / costs.sum()) if len(costs) else 0.0
    return Year(len(size), float(chosen.sum() / size.sum()), costs, beyond)


def _usable(size: Longs, usable: float) -> list[int]:
    return [round(rows * usable) for rows in size.tolist()]


def classes(measured: Sequence[Partition]) -> list[Past]:
    """The mean of partitions of about equal usable rows, by the size: four classes for twice the rows."""
    by_size: dict[int, list[Partition]] = {}
    for partition in measured:
        by_size.setdefault(round(4 * np.log2(max(partition.usable, 1))), []).append(partition)
    return [_mean(by_size[key]) for key in sorted(by_size)]


def _mean(of: Sequence[Partition]) -> Past:
    steps = {step: float(np.mean([partition.steps.get(step, 0.0) for partition in of])) for step in of[0].steps}
    peaks = {step: float(np.mean([partition.peaks.get(step, 0.0) for partition in of])) for step in of[0].steps}
    return Past(round(float(np.mean([partition.usable for partition in of]))), steps, peaks)


def chain(seconds: Mapping[str, float], waits: Mapping[str, Sequence[str]]) -> tuple[float, list[str]]:
    """The longest chain of steps that wait for each other: its seconds, and its steps in order.

    Args:
        seconds: of each step, in the order of the plan.
        waits: step -> earlier steps that it waits for.
    """
    ends: dict[str, tuple[float, list[str]]] = {"": (0.0, [])}
    for step, took in seconds.items():
        before = max((ends[name] for name in (*waits.get(step, ()), "") if name in ends), key=lambda end: end[0])
        ends[step] = before[0] + took, [*before[1], step]
    return max(ends.values(), key=lambda end: end[0])


def makespan(
    costs: Floats,
    workers: int,
    stages: Mapping[str, float] | None = None,
    waits: Mapping[str, Sequence[str]] | None = None,
) -> float:
    """Seconds until the last task ends, where each free worker takes the longest task that is left.

    Args:
        costs: ``(n,)`` seconds of each task.
        workers: at least one.
        stages: seconds of the stages of one more audit; a stage that may start goes before all tasks.
        waits: stage -> stages that it waits for.
    """
    remaining, tasks = dict(stages or {}), sorted(costs.tolist())
    at_work: list[tuple[float, str]] = []
    now, done = 0.0, set[str]()
    while True:
        ready = [name for name in remaining if done.issuperset((waits or {}).get(name, ()))]
        for name in sorted(ready, key=remaining.__getitem__, reverse=True)[: workers - len(at_work)]:
            heapq.heappush(at_work, (now + remaining.pop(name), name))
        while tasks and len(at_work) < workers:
            heapq.heappush(at_work, (now + tasks.pop(), ""))
        if not at_work:
            return now
        now, name = heapq.heappop(at_work)
        done.add(name)


# --------------------------------------------------------------------------------------------------------------------
# The work of the benchmark of scale: a year drawn as a file, commands as a user runs them, what the lake then holds.
#
# Every command runs in processes of its own, whose CPU seconds and memory are watched.


YEAR, SEED = 2022, 23
SPEC, LENDER = "spec.yaml", "lender_id"
QUICK = 100_000
"""Below so many rows the methods that search are left out, and lenders with fewer rows are audited."""
_READ = (
    *(LENDER, "action_taken", "derived_race", "income_usd", "property_value_usd", "loan_amount_usd"),
    *("debt_to_income_ratio", "ltv_ratio", "loan_purpose"),
)
"""Columns that the spec names."""
_LEFT_OUT = ("fgce", "cst", "gcfn", "raguel")
ENDED = (ExitCode.WITHIN, ExitCode.OUTSIDE, ExitCode.INCONCLUSIVE)
_LOOK_S = 10
_SAID = 2_000
"""Letters of what a command that failed wrote."""


@dataclass(frozen=True)
class Told:
    """What a command wrote and used."""

    out: str
    seconds: float
    cpu_s: float
    peak_mb: float


@dataclass
class Kill:
    """When the worker of a lender is killed in the middle."""

    lake: Path
    after: int
    """Partitions that are measured."""
    value: str = ""
    """The partition that it was at work on; empty before."""

    def look(self, watches: Sequence[Watch]) -> None:
        """Kill a worker that has begun with a lender, once as many are measured."""
        if sum(1 for _ in self.lake.glob("stages/measure/*/partition.json")) < self.after:
            return
        for file in self.lake.glob("backfills/*/*/*/*.json"):
            record = json.loads(file.read_bytes())
            running = record["state"] == YearState.RUNNING and record["value"] != ALL and record["stage"]
            if running and any(watch.killed(record["pid"]) for watch in watches):
                self.value = record["value"]
                return


def draw(place: str, rows: str) -> dict[str, Any]:
    """Draws the year in the layout in which it is delivered."""
    with timed() as times:
        file = write_nation(Path(place) / "year.txt", int(rows), YEAR, SEED)
    return {"rows": int(rows), **times, "peak_mb": peak_mb(), "file_mb": file.stat().st_size / 1e6}


def read(applications: str, lender: str) -> dict[str, Any]:
    """Reads a lender's rows from the year in the lake, in the columns of the spec; the least of three times counts."""
    files = str(Path(applications) / "**" / "*.parquet") if Path(applications).is_dir() else applications
    source = f"read_parquet({literal(files)}, hive_partitioning = false)"
    query = f"SELECT {', '.join(_READ)} FROM {source} WHERE {LENDER} = ?"  # noqa: S608 ours and quoted
    best: dict[str, float] = {}
    with duckdb.connect(config={"threads": 1}) as connection:
        for _ in range(3):
            with timed() as times:
                table: pa.Table = connection.sql(query, params=[lender]).to_arrow_table()
            best = min(best or times, times, key=lambda timing: timing["cpu_s"])
    return {"rows": table.num_rows, **best, "peak_mb": peak_mb()}


def write_spec(place: Path, rows: int, *, gcfn: bool) -> Path:
    """Writes the audit spec of the year, one audit a lender; gives its place."""
    spec = yaml.safe_load(shipped("audits/hmda.yaml").read_text(encoding="utf-8"))
    spec |= {"name": "national", "title": "National year, drawn", "year": YEAR}
    spec |= {"by": {"column": LENDER, "minimum": 500 if rows >= QUICK else 100}}
    if not gcfn:
        spec["methods"]["gcfn"] = None
    if rows < QUICK:
        spec["methods"] |= dict.fromkeys(_LEFT_OUT)
        spec["bootstrap"] = {"draws": 200}
    file = place / SPEC
    file.write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    return file


YARDSTICK_EVERY_S = 60


@dataclass
class Yardsticks:
    """The yardstick while commands run: the speed of a machine changes with what else it does."""

    seconds: list[float] = field(default_factory=list)
    """CPU seconds of each time."""
    timed: float = -inf
    """When the last one was, of the monotonic clock."""

    def look(self) -> None:
        """Time it, once a minute at most."""
        if time.monotonic() - self.timed > YARDSTICK_EVERY_S:
            self.seconds.append(timed_yardstick())
            self.timed = time.monotonic()

    @property
    def median(self) -> float:
        """CPU seconds in the middle; as they are now without one."""
        return median(self.seconds or [timed_yardstick()])


def evenhand(
    words: Sequence[str],
    workers: Sequence[int] = (),
    kill: Kill | None = None,
    ended: Sequence[int] = ENDED,
    look: Callable[[], None] | None = None,
) -> Told:
    """Runs a command as a user runs it.

    Args:
        words: of the command.
        workers: processes elsewhere that work for it.
        kill: when one of the processes that work is killed with SIGKILL; the command itself never is.
        ended: exit codes with which it has done what was asked for.
        look: called every few seconds meanwhile.

    Raises:
        InfrastructureError: it ended in another way; the message has its own words.
    """
    command = [sys.executable, "-m", "flows.cli", *words]
    thread_limits = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    environment = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"} | thread_limits
    clock, before = time.perf_counter(), _children()
    process = subprocess.Popen(  # noqa: S603 our own
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with watched(workers) as elsewhere, watched([process.pid]) as own_watch:
        out, err = _communicated(process, (elsewhere, own_watch), kill, look)
    seconds = time.perf_counter() - clock
    if process.returncode not in ended:
        raise InfrastructureError(
            f"evenhand {words[0]} ended with {process.returncode}: {(err.strip() or out.strip())[-_SAID:]}"
        )
    return Told(out, seconds, _children() - before + elsewhere.cpu_s, max(own_watch.peak_mb, elsewhere.peak_mb))


def _children() -> float:
    """CPU seconds of the processes that this one started, of those that they started, and so on, that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _communicated(
    process: "subprocess.Popen[str]", watches: Sequence[Watch], kill: Kill | None, look: Callable[[], None] | None
) -> tuple[str, str]:
    looked = time.monotonic()
    while True:
        try:
            return process.communicate(timeout=0.2 if kill or look else None)
        except subprocess.TimeoutExpired:
            if kill is not None and not kill.value:
                kill.look(watches)
            if look is not None and time.monotonic() - looked > _LOOK_S:
                look()
                looked = time.monotonic()


def partitions(lake: Path) -> list[Partition]:
    """What every audited partition of a lake took, by the records of its stages."""
    manifests = [json.loads(file.read_bytes()) for file in sorted(lake.glob("runs/*/manifest.json"))]
    return [_partition(manifest) for manifest in manifests if manifest.get("partition")]


def rows_of(manifest: Path) -> int:
    """Rows of the partition that a run is about; 0 if it is about none."""
    record = json.loads(manifest.read_bytes())
    return int(next(stage_runs(record))["rows_in"]) if record.get("partition") else 0


def disk_mb(folder: Path) -> float:
    """Megabytes of the files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def _partition(manifest: Mapping[str, Any]) -> Partition:
    rows = list(stage_runs(manifest))
    writers = {
        table["path"]: row["stage"]
        for row, partition in zip(rows, manifest["partitions"], strict=True)
        for table in partition["tables"]
    }
    waits = {
        row["stage"]: tuple({writers[table["path"]]: 0 for table in record["inputs"] if table["path"] in writers})
        for row, record in zip(rows, manifest["lineage"], strict=True)
    }
    return Partition(
        value=manifest["partition"]["value"],
        run=manifest["run"],
        rows=rows[0]["rows_in"],
        usable=rows[0]["rows_out"],
        seconds=sum(row["seconds"] for row in rows),
        steps={row["stage"]: row["cpu_seconds"] for row in rows},
        peaks={row["stage"]: row["peak_memory_mb"] for row in rows},
        waits=waits,
    )


def applications(lake: Path) -> Path:
    """Where the rows of the year are."""
    [folder] = [path for path in lake.glob("vintages/**/applications*") if "state=" not in str(path)]
    return folder


def share_vintages(lake: Path, other: Path) -> None:
    """Give another lake the year as well, without its bytes."""
    shutil.copytree(lake / "vintages", other / "vintages", copy_function=os.link)


def disturbed(lake: Path) -> list[str]:
    """Values of the partitions that were begun more than once."""
    records = [json.loads(file.read_bytes()) for file in lake.glob("backfills/**/*.json")]
    return sorted({record["value"] for record in records if record.get("value") and record["attempt"] > 1})


def digests(lake: Path) -> dict[str, str]:
    """Value of each partition -> digest of its measures as they were measured, before anything is withheld."""
    digests_by_partition = {}
    for file in lake.glob("runs/*/manifest.json"):
        manifest = json.loads(file.read_bytes())
        tables = [
            table
            for partition in manifest["partitions"]
            for table in partition["tables"]
            if partition["stage"] == "measure"
        ]
        [measures] = [table["sha256"] for table in tables if table["table"] == "measures"]
        if manifest.get("partition"):
            digests_by_partition[manifest["partition"]["value"]] = measures
    return digests_by_partition


if __name__ == "__main__":
    answer(draw, read)
