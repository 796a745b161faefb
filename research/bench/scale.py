"""Audits a national year lender by lender, from the delivered file to the league, and estimates the real years.

A year is drawn with the states of 2022 and as many lenders, with as long a tail, as report one. The commands run as a
user runs them: on a Dask scheduler and workers of this machine with limits of memory, or in processes. Whatever holds
a target has been measured in the same run. The estimate takes for every lender of a real year what one as large took.

Scope: runs, rows and targets. Commands and what the lake holds: ``work.scale``.
"""

import os
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import yaml

from flows.partitions.year_plan import expected_cost, expected_steps
from research.bench import timed_scale as work
from research.bench.timed_scale import QUICK, YEAR, Kill, Partition, Told, Yardsticks, chain, cluster, makespan, year
from research.benchmark import Bench, Room, Row, against, apart, at_most, row, timed_row
from schemas.audit.partition import ALL
from schemas.audit.spec import AuditSpec
from schemas.errors import InfrastructureError
from schemas.terms import ExitCode
from tasks.ingest.synthetic.algorithm.twin import MEAN_ROWS, sizes
from tasks.lake.store import Lake
from tasks.pipeline.progress import stepped
from tasks.pipeline.registry import validated

ROWS, FEWEST = 2_000_000, 5_000
MANY = 500_000
"""From so many rows on one worker may take more than the others: the audit of all rows needs it."""
REAL = {2022: (16_080_210, 4_460), 2020: (25_551_868, 4_475)}
"""Year -> rows of the first snapshot, and institutions that reported (CFPB, Summary of 2022 Data on Mortgage
Lending; FFIEC, press release of 17 June 2021). Counts by lender are not known: sizes are those of the drawn year."""
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
MOST_HOURS = {2: 8, 16: 2}
"""A night, and two hours."""
REFERENCE_S = 0.0075
"""CPU seconds of the yardstick on the machine that the hours are asked of."""
SOME_USABLE = 0.74
"""Share of the drawn rows with a decision, about."""
KEPT_EVERY_S = 60
ROWS_AUDITED = "rows of partitions"
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
    def minimum(self) -> int:
        """Usable rows that a lender needs."""
        return self.audit.by.minimum if self.audit.by else 0

    @property
    def audit(self) -> AuditSpec:
        """The audit spec, once it is written."""
        return validated(AuditSpec, yaml.safe_load((self.place / work.SPEC).read_text(encoding="utf-8")))

    @property
    def rows_of_partitions(self) -> int:
        """Rows of lenders with enough usable ones, and of `all`, about."""
        of_lenders = sizes(self.rows)
        return self.rows + int(of_lenders[of_lenders * SOME_USABLE >= self.minimum].sum())

    @property
    def lake(self) -> Path:
        """The lake of all partitions."""
        return self.place / "lake"


@dataclass
class Journal:
    """The rows so far, as a file: a benchmark of an hour that is stopped leaves them."""

    settings: Asked
    file: Path | None
    rows: list[Row] = field(default_factory=list)
    audited: dict[Path, int] = field(default_factory=dict)
    """Rows by the record of the run."""
    added: Told | None = None
    yardsticks: Yardsticks = field(default_factory=Yardsticks)
    written: float = 0.0
    kept: int = 0

    def add(self, line: Row) -> Row:
        """Keep a row."""
        self.rows.append(line)
        self.write(self.rows)
        return line

    @property
    def slowness(self) -> float:
        """CPU time of this machine during the back-fill in times that of the reference."""
        return self.yardsticks.median / REFERENCE_S

    def look(self) -> None:
        """Show how many rows are audited; time the yardstick and write rows of the partitions once a minute at most."""
        self.yardsticks.look()
        for manifest in {*self.settings.lake.glob("runs/*/manifest.json")} - {*self.audited}:
            self.audited[manifest] = work.rows_of(manifest)
        stepped(ROWS_AUDITED, sum(self.audited.values()), self.settings.rows_of_partitions)
        new = len(self.audited) != self.kept
        if self.file and self.added and new and time.monotonic() - self.written > KEPT_EVERY_S:
            self.kept, self.written = len(self.audited), time.monotonic()
            partitions = work.partitions(self.settings.lake)
            estimates = _estimated(self.settings, partitions, self.added, 0.0, self.slowness)
            about = [*_by_size(self.settings, partitions), *estimates]
            self.write([*self.rows, *about])

    def write(self, rows: Sequence[Row]) -> None:
        """Write rows as a table of Markdown."""
        if self.file:
            self.file.write_text(markdown(rows), encoding="utf-8")


def markdown(rows: Sequence[Row]) -> str:
    """Rows as a table of Markdown, as docs/scale.md has it."""
    lines = ["| what | rows | CPU s | MB | found | target |", "| --- | --- | --- | --- | --- | --- |"]
    for line in rows:
        target = f"{line['target']}{' (**missed**)' if line['met'] == 'missed' else ''}" if line["target"] else ""
        about = line["found"] or ("" if line["ratio"] is None else f"{line['ratio']:.1%} of the first run")
        numbers = (_number(line["rows"], 0), _number(line["cpu_s"], 2), _number(line["peak_mb"], 0))
        lines.append(f"| {' | '.join((line['what'], *numbers, about, target))} |")
    return "\n".join(lines) + "\n"


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits if value < 10 else 0}f}"


def _lines(room: Room) -> Iterator[Row]:
    settings = Asked.of(room)
    target = room.options.get("--write")
    journal = Journal(settings, Path(target) if target else None)
    yield from map(journal.add, _measured(settings, journal))


def _measured(settings: Asked, journal: Journal) -> Iterator[Row]:
    sizes(settings.rows)
    Lake(settings.place).require_space(settings.rows * BYTES_A_ROW, "the benchmark")
    spec = work.write_spec(settings.place, settings.rows, gcfn=settings.gcfn)
    journal.added = yield from _delivered(settings)
    cpu_s = yield from _audited(settings, spec, journal)
    partitions = work.partitions(settings.lake)
    if not partitions:
        raise InfrastructureError(f"no partition of {settings.rows:,} rows was audited; look into {settings.lake}")
    yield from _read(settings, partitions)
    yield from _by_size(settings, partitions)
    yield from _estimated(settings, partitions, journal.added, cpu_s, journal.slowness)
    speed = f"{journal.slowness:.2f} times the CPU time of the reference, by a yardstick a minute"
    yield row(DRAWN, None, "this machine", found=speed)


def _estimated(
    settings: Asked, partitions: Sequence[Partition], added: Told, cpu_s: float, slowness: float
) -> Iterator[Row]:
    """Hours of real years on free cores at these rates: all work, the longest task, and the end by workers.

    Args:
        settings: of the benchmark.
        partitions: that were audited.
        added: what the conversion took.
        cpu_s: CPU seconds of the back-fill, which are more than those of its stages.
        slowness: CPU time here in times that of the reference, at whose speed hours are judged.
    """
    lenders = [partition for partition in partitions if partition.value != ALL]
    every = next((partition for partition in partitions if partition.value == ALL), None)
    if not lenders or every is None:
        return
    audit, share = settings.audit, every.usable / every.rows
    overhead = max(cpu_s - sum(partition.cpu_s for partition in partitions), 0.0) / len(partitions)
    for of_year, (rows, institutions) in REAL.items():
        size = sizes(institutions * MEAN_ROWS)[:institutions] * (rows / (institutions * MEAN_ROWS))
        of = year(np.round(size).astype(np.int64), share, settings.minimum, audit, lenders)
        usable, full_spec = round(rows * share), audit.model_copy(update={"by": None})
        largest = max(lenders, key=lambda partition: partition.usable)
        cost = expected_cost(full_spec, list(every.steps), usable, [largest.past, every.past])
        of_steps = dict(
            zip(every.steps, expected_steps(full_spec, list(every.steps), usable, [every.past]), strict=True)
        )
        delivered, tasks = added.cpu_s * rows / settings.rows, of.costs + overhead
        of_all = sum(of_steps.values()) + overhead
        named = f"{of_year}, estimated"
        summary = f"{len(of.costs):,} of {of.lenders:,} lenders, {of.covered:.0%} of the rows"
        summary += f"; {of.beyond:.0%} of their cost is of lenders larger than any measured"
        yield row(named, rows, f"{of_year}: every task", cpu_s=delivered + float(tasks.sum()) + of_all, found=summary)
        for workers in WORKERS:
            seconds = delivered + makespan(tasks, workers, of_steps, every.waits)
            most, fast_hours = MOST_HOURS[workers], seconds / 3600 / slowness
            met = against(f"{most} h of the reference", fast_hours <= most)
            hours = f"{seconds / 3600:.1f} h; {fast_hours:.1f} h of the reference"
            yield row(named, rows, f"{of_year}: on {workers} workers", seconds=seconds, found=hours, **met)
        longest = max((of_all, f"`{ALL}`"), (float(tasks.max()), "a lender"))
        summary = f"{longest[1]}, {longest[0] / 3600:.1f} h on one worker"
        yield row(named, rows, f"{of_year}: longest audit", cpu_s=longest[0], found=summary)
        seconds, steps = chain(of_steps, every.waits)
        words = f"{(delivered + seconds) / 3600:.1f} h: conversion, then stages of `{ALL}`"
        words += f" ({', '.join(steps)})" * (of_year == max(REAL))
        yield row(named, rows, f"{of_year}: critical path", cpu_s=delivered + seconds, found=words)
        yield row(named, rows, f"{of_year}: memory of `{ALL}`", peak_mb=cost.peak_mb)


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


def _audited(settings: Asked, spec: Path, journal: Journal) -> Generator[Row, None, float]:
    """Plan, back-fill, back-fill again, league; gives the CPU seconds of the back-fill."""
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
        cpu_s = yield from _filled(settings, command, pids, journal)
        again = work.evenhand(command, pids)
    partitions, share = work.partitions(settings.lake), again.cpu_s / cpu_s
    target = at_most(share, MOST_RESUMED) if len(partitions) >= FEWEST_RESUMED else {}
    yield _told(settings, again, "backfill again: nothing left", ratio=share, **target)
    if sum(partition.value != ALL for partition in partitions) > 1:  # one lender is beside nobody
        yield _told(settings, work.evenhand(["league", str(spec), "--year", str(YEAR), *lake]), "league")
    if settings.kill:
        yield _compared(settings, spec)
    yield from _disk(settings)
    return cpu_s


def _filled(
    settings: Asked, command: Sequence[str], pids: Sequence[int], journal: Journal
) -> Generator[Row, None, float]:
    """The first back-fill; with --kill one of its workers is killed in the middle, and the back-fill then continues."""
    middle = max(1, int((sizes(settings.rows) >= 2 * settings.minimum).sum()) // 2)
    kill = Kill(settings.lake, middle) if settings.kill else None
    ended = (*work.ENDED, ExitCode.INFRASTRUCTURE) if kill else work.ENDED
    first = work.evenhand(command, pids, kill, ended, journal.look)
    parts = work.partitions(settings.lake)
    hours = f"{first.seconds / 3600:.2f} h on {settings.workers} workers ({settings.runner})"
    summary = f"{len(parts)} partitions, {hours}" + (f"; the worker of {kill.value or 'none'} killed" if kill else "")
    met = at_most(first.peak_mb, MOST_MB, " MB")
    yield _told(settings, first, "backfill: every partition", found=summary, **met)
    if not kill:
        return first.cpu_s
    on = work.evenhand(command, pids, look=journal.look)
    summary = f"{len(work.partitions(settings.lake))} partitions"
    yield _told(settings, on, "the same command, gone on with", found=summary)
    return first.cpu_s + on.cpu_s


def _disk(settings: Asked) -> Iterator[Row]:
    """Megabytes of the lake: the year, and what partitions leave."""
    parts = len(work.partitions(settings.lake))
    of_year, every = work.disk_mb(settings.lake / "vintages"), work.disk_mb(settings.lake)
    summary = f"{of_year / settings.rows * 1e6:,.0f} MB a million rows, {(every - of_year) / parts:,.1f} MB a partition"
    yield row(DRAWN, settings.rows, "disk", found=summary)


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
        a_million = partition.steps["ingest"] / partition.rows * 1e6
        met = at_most(a_million, MOST_INGEST_S, " CPU s a million rows") if settings.rows >= QUICK else {}
        rate = _a_million(settings, partition.steps["ingest"])
        yield row(DRAWN, partition.rows, "ingest of every row", cpu_s=partition.steps["ingest"], found=rate, **met)
        met = at_most(partition.peaks["ingest"], MOST_INGEST_MB, " MB")
        yield row(DRAWN, partition.rows, "its memory", peak_mb=partition.peaks["ingest"], **met)
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
    reports = _mean([partition.steps["report"] for partition in lenders]) if lenders else 0.0
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
    takes=("--gcfn", "--kill", "--runner", "--workers", "--write"),
    of_any_size=True,
)
