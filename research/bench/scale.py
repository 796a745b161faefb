"""Audits a national year lender by lender, from the delivered file to the league, and estimates the real years.

A year is drawn with the states of 2022 and as many lenders, with as long a tail, as report one. The commands run as a
user runs them: on a Dask scheduler and workers of this machine with limits of memory, or in processes. Whatever holds
a target has been measured in the same run. The estimate takes for every lender of a real year what one as large took.

Scope: runs, rows and targets. Commands and what the lake holds: ``work.scale``.
"""

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from research.bench import timed_scale as work
from research.bench.timed_scale import QUICK, YEAR, Kill, Partition, Told, cluster, makespan, year
from research.benchmark import Bench, Room, Row, against, apart, at_most, row, timed_row
from schemas.audit.partition import ALL
from schemas.errors import InfrastructureError
from schemas.terms import ExitCode
from tasks.ingest.synthetic.algorithm.twin import sizes
from tasks.lake.store import Lake

ROWS, FEWEST = 2_000_000, 5_000
MANY = 500_000
"""From so many rows on one worker may take more than the others: the audit of all rows needs it."""
REAL = {2022: 16_080_210, 2020: 25_551_868}
"""Rows of first snapshots: data/hmda_schema/published_row_counts.csv of the shared material."""
MOST_MB, MOST_CONVERTED_MB, MOST_INGEST_MB = 3_000, 1_500, 1_500
MOST_INGEST_S, MOST_READ_S, MOST_REPORT_S = 15.0, 0.05, 1.0
MOST_LENDER_S = {False: 25.0, True: 60.0}
"""CPU seconds of a lender of some 2,000 rows, without GCFN and with it."""
MOST_RESUMED, FEWEST_RESUMED = 0.15, 10
"""Share of the first run's CPU seconds that the same command again may take, if there are as many partitions."""
CLASSES = ((0, 1_000), (1_000, 3_000), (3_000, 10_000), (10_000, 50_000), (50_000, ANY := 10**9))
MIDDLE = CLASSES[1]
WORKERS = (2, 16)
"""Of the estimates."""
AUDITED_ALONE, AUDITED_ALONE_QUICK = 5, 2
"""Partitions whose measures are compared after a kill."""
BYTES_A_ROW = 2_500
FREE_MB = 4_000
DRAWN = "national year, drawn"

_run = partial(apart, "research.bench.timed_scale")


@dataclass(frozen=True)
class Asked:
    """What is run."""

    place: Path
    rows: int
    workers: int
    runner: str
    gcfn: bool
    kill: bool

    @classmethod
    def of(cls, room: Room) -> "Asked":
        """Settings from the user's options."""
        options = room.options
        workers = options.get("--workers") or min(os.cpu_count() or 1, 4)
        runner = options.get("--runner") or "dask"
        return cls(
            room.place, room.rows or ROWS, workers, runner, bool(options.get("--gcfn")), bool(options.get("--kill"))
        )

    @property
    def lake(self) -> Path:
        """The lake of all partitions."""
        return self.place / "lake"


def _lines(room: Room) -> Iterator[Row]:
    settings = Asked.of(room)
    sizes(settings.rows)
    Lake(settings.place).require_space(settings.rows * BYTES_A_ROW, "the benchmark")
    spec, minimum = work.write_spec(settings.place, settings.rows, gcfn=settings.gcfn)
    added = yield from _delivered(settings)
    first = yield from _audited(settings, spec, minimum)
    partitions = work.partitions(settings.lake)
    if not partitions:
        raise InfrastructureError(f"no partition of {settings.rows:,} rows was audited; look into {settings.lake}")
    yield from _read(settings, partitions)
    yield from _by_size(settings, partitions)
    yield from _estimated(settings, minimum, partitions, added, first)


def _estimated(
    settings: Asked, minimum: int, partitions: Sequence[Partition], added: Told, first: Told
) -> Iterator[Row]:
    """Hours of real years at these rates: all work, the longest task, and the end on two and on sixteen workers."""
    lenders = [partition for partition in partitions if partition.value != ALL] or list(partitions)
    every = sum(partition.cpu_s for partition in partitions if partition.value == ALL)
    overhead = max(first.cpu_s - sum(partition.cpu_s for partition in partitions), 0.0) / len(partitions)
    for of_year, rows in REAL.items():
        cost = year(rows, work.USABLE, minimum, lenders)
        growth = rows / settings.rows
        delivered, tasks = added.cpu_s * growth, np.append(cost.costs + overhead, every * growth)
        cpu_s = delivered + float(tasks.sum())
        ends = (f"{(delivered + makespan(tasks, workers)) / 3600:.1f} h on {workers} workers" for workers in WORKERS)
        quick = "without the methods that search; " if settings.rows < QUICK else ""
        longest = (
            f"the longest task takes {tasks.max() / 3600:.1f} h ({ALL if tasks[-1] == tasks.max() else 'a lender'})"
        )
        text = f"{len(cost.costs):,} lenders; {quick}{', '.join(ends)}; {longest}"
        text += f"; {cost.beyond:.0%} of the work is for lenders larger than any of these"
        yield row(f"{of_year}, estimated", rows, "download to league at these rates", cpu_s=cpu_s, found=text)


def _delivered(settings: Asked) -> Generator[Row, None, Told]:
    """The file, and the vintage that the lake makes of it."""
    draw_run = _run("draw", settings.place, settings.rows)
    file_summary = f"{draw_run['file_mb']:,.0f} MB of text, {len(sizes(settings.rows)):,} lenders"
    yield timed_row(DRAWN, draw_run, "apart: rows drawn", found=file_summary)
    words = [
        "data",
        "add",
        str(settings.place / "year.txt"),
        "--year",
        str(YEAR),
        "--kind",
        "twin",
        "--geo",
        "nationwide",
    ]
    added = work.evenhand([*words, "--frozen", "2026-01-01", "--json", "--lake", str(settings.lake)])
    (settings.place / "year.txt").unlink()
    met = at_most(added.peak_mb, MOST_CONVERTED_MB, " MB")
    yield _told(
        settings, added, "data add: converted, by state and lender", found=_a_million(settings, added.cpu_s), **met
    )
    return added


def _audited(settings: Asked, spec: Path, minimum: int) -> Generator[Row, None, Told]:
    """Plan, back-fill, back-fill again, league."""
    years, lake = ["--years", str(YEAR)], ["--lake", str(settings.lake), "--json"]
    planned = work.evenhand(["plan", str(spec), *years, *lake])
    yield _told(settings, planned, "plan")
    with ExitStack() as running:
        pids: list[int] = []
        runner = ["--runner", "processes", "--workers", str(settings.workers)]
        if settings.runner == "dask":
            one_large = settings.rows >= MANY
            address, pids = running.enter_context(
                cluster(settings.place / "dask", settings.workers, one_large=one_large)
            )
            runner = ["--runner", "dask", "--address", address]
        command = ["backfill", str(spec), *years, *runner, *lake]
        first = yield from _filled(settings, command, pids, minimum)
        again = work.evenhand(command, pids)
    partitions, share = work.partitions(settings.lake), again.cpu_s / first.cpu_s
    target = at_most(share, MOST_RESUMED) if len(partitions) >= FEWEST_RESUMED else {}
    yield _told(settings, again, "backfill again: nothing left", ratio=share, **target)
    if sum(partition.value != ALL for partition in partitions) > 1:  # one lender is beside nobody
        yield _told(settings, work.evenhand(["league", str(spec), "--year", str(YEAR), *lake]), "league")
    if settings.kill:
        yield _compared(settings, spec)
    return first


def _filled(settings: Asked, command: Sequence[str], pids: Sequence[int], minimum: int) -> Generator[Row, None, Told]:
    """The first back-fill; with --kill one of its workers is killed in the middle, and the back-fill then continues."""
    middle = max(1, int((sizes(settings.rows) >= 2 * minimum).sum()) // 2)
    kill = Kill(settings.lake, middle) if settings.kill else None
    ended = (*work.ENDED, ExitCode.INFRASTRUCTURE) if kill else work.ENDED
    first = work.evenhand(command, pids, kill, ended)
    parts = work.partitions(settings.lake)
    summary = f"{len(parts)} partitions, {settings.workers} workers ({settings.runner})"
    if kill:
        summary += f", one killed after {middle}"
        on = work.evenhand(command, pids)
        yield _told(
            settings, on, "the same command, gone on with", found=f"{len(work.partitions(settings.lake))} partitions"
        )
    met = at_most(first.peak_mb, MOST_MB, " MB")
    yield _told(settings, first, "backfill: every partition", found=summary, **met)
    return first


def _compared(settings: Asked, spec: Path) -> Row:
    """Measures of the partitions that were begun twice, or else small ones, against audits of them in another lake."""
    first_digests = work.digests(settings.lake)
    alone = settings.place / "alone"
    work.share_vintages(settings.lake, alone)
    smallest = sorted(work.partitions(settings.lake), key=lambda partition: partition.rows)
    most = AUDITED_ALONE if settings.rows >= QUICK else AUDITED_ALONE_QUICK
    before = work.disturbed(settings.lake)
    lenders = [partition.value for partition in smallest if partition.value != ALL]
    values = sorted(lenders, key=lambda value: value not in before)[:most]  # else in their order, the smallest first
    named = [word for value in values for word in ("--by-value", value)]
    alone_run = work.evenhand(["backfill", str(spec), "--years", str(YEAR), *named, "--lake", str(alone), "--json"])
    alone_digests = work.digests(alone)
    same = [value for value in values if alone_digests.get(value) == first_digests[value]]
    twice = len({*values} & {*before})
    summary = f"{len(same)} of {len(values)} have equal digests; {twice} of them were begun twice in the first lake"
    met = against(f"{len(values)} of {len(values)}", len(same) == len(values))
    return _told(settings, alone_run, "some partitions alone, undisturbed", found=summary, **met)


def _read(settings: Asked, partitions: Sequence[Partition]) -> Iterator[Row]:
    """What it takes to read the rows of partitions."""
    every = [partition for partition in partitions if partition.value == ALL]
    for partition in every:
        a_million = partition.stages["ingest"] / partition.rows * 1e6
        met = at_most(a_million, MOST_INGEST_S, " CPU s a million rows") if settings.rows >= QUICK else {}
        rate = _a_million(settings, partition.stages["ingest"])
        yield row(DRAWN, partition.rows, "ingest of every row", cpu_s=partition.stages["ingest"], found=rate, **met)
        met = at_most(partition.ingest_mb, MOST_INGEST_MB, " MB")
        yield row(DRAWN, partition.rows, "its memory", peak_mb=partition.ingest_mb, **met)
    lenders = sorted(
        (partition for partition in partitions if partition.value != ALL), key=lambda partition: partition.rows
    )
    if lenders:
        middle = lenders[len(lenders) // 2]
        timings = _run("read", work.applications(settings.lake), middle.value)
        yield timed_row(
            DRAWN, timings, "rows of the middle lender, read", **at_most(timings["cpu_s"], MOST_READ_S, " CPU s")
        )


def _by_size(settings: Asked, partitions: Sequence[Partition]) -> Iterator[Row]:
    """Seconds, CPU seconds and memory of a partition, by its rows."""
    for partition in (partition for partition in partitions if partition.value == ALL):
        yield row(
            DRAWN,
            partition.rows,
            f"partition `{ALL}`",
            seconds=partition.seconds,
            cpu_s=partition.cpu_s,
            peak_mb=partition.peak_mb,
        )
    lenders = [partition for partition in partitions if partition.value != ALL]
    for least, most in CLASSES:
        of = [partition for partition in lenders if least <= partition.rows < most]
        if not of:
            continue
        cpu_s = _mean([partition.cpu_s for partition in of])
        met = at_most(cpu_s, MOST_LENDER_S[settings.gcfn], " CPU s") if (least, most) == MIDDLE else {}
        name = f"a lender of {least:,} to {most:,} rows" if least else f"a lender of less than {most:,} rows"
        name = name if most < ANY else f"a lender of {least:,} rows and more"
        figures = {
            "seconds": _mean([partition.seconds for partition in of]),
            "peak_mb": max(partition.peak_mb for partition in of),
        }
        rows = round(_mean([partition.rows for partition in of]))
        yield row(DRAWN, rows, name, cpu_s=cpu_s, **figures, found=f"mean of {len(of)}", **met)
    reports = _mean([partition.stages["report"] for partition in lenders]) if lenders else 0.0
    met = at_most(reports, MOST_REPORT_S, " CPU s")
    yield row(DRAWN, None, "short report of a lender", cpu_s=reports, found=f"mean of {len(lenders)}", **met)


def _told(settings: Asked, process_run: Told, what: str, **figures_of_row: object) -> Row:
    figures = {"seconds": process_run.seconds, "cpu_s": process_run.cpu_s, "peak_mb": process_run.peak_mb}
    return row(DRAWN, settings.rows, what, **figures, **figures_of_row)


def _a_million(settings: Asked, cpu_s: float) -> str:
    """CPU seconds of a million rows; empty where the start of a process is most of it."""
    return f"{cpu_s / settings.rows * 1e6:.1f} CPU s a million rows" if settings.rows >= QUICK else ""


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


BENCH = Bench(
    "scale",
    _lines,
    fewest=FEWEST,
    why="with fewer no lender has rows enough to be audited",
    memory_mb=FREE_MB,
    disk=0,
    takes=("--gcfn", "--kill", "--runner", "--workers"),
    of_any_size=True,
)
