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

from research.bench import timed_scale as work
from research.bench.timed_scale import QUICK, YEAR, Kill, Partition, Told, cluster, year
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
SIXTEEN = 16
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
        """What the user asked for."""
        given = room.given
        workers = given.get("--workers") or min(os.cpu_count() or 1, 4)
        runner = given.get("--runner") or "dask"
        return cls(room.place, room.rows or ROWS, workers, runner, bool(given.get("--gcfn")), bool(given.get("--kill")))

    @property
    def lake(self) -> Path:
        """The lake of all partitions."""
        return self.place / "lake"


def _lines(room: Room) -> Iterator[Row]:
    asked = Asked.of(room)
    sizes(asked.rows)
    Lake(asked.place).require_space(asked.rows * BYTES_A_ROW, "the benchmark")
    spec, minimum = work.write_spec(asked.place, asked.rows, gcfn=asked.gcfn)
    added = yield from _delivered(asked)
    first = yield from _audited(asked, spec, minimum)
    found = work.partitions(asked.lake)
    if not found:
        raise InfrastructureError(f"no partition of {asked.rows:,} rows was audited; look into {asked.lake}")
    yield from _read(asked, found)
    yield from _by_size(asked, found)
    yield from _estimated(asked, minimum, found, (added, first))


def _delivered(asked: Asked) -> Generator[Row, None, Told]:
    """The file, and the vintage that the lake makes of it."""
    made = _run("draw", asked.place, asked.rows)
    said = f"{made['file_mb']:,.0f} MB of text, {len(sizes(asked.rows)):,} lenders"
    yield timed_row(DRAWN, made, "apart: rows drawn", found=said)
    words = ["data", "add", str(asked.place / "year.txt"), "--year", str(YEAR), "--kind", "twin", "--geo", "nationwide"]
    added = work.evenhand([*words, "--frozen", "2026-01-01", "--json", "--lake", str(asked.lake)])
    (asked.place / "year.txt").unlink()
    met = at_most(added.peak_mb, MOST_CONVERTED_MB, " MB")
    yield _told(asked, added, "data add: converted, by state and lender", found=_a_million(asked, added.cpu_s), **met)
    return added


def _audited(asked: Asked, spec: Path, minimum: int) -> Generator[Row, None, Told]:
    """Plan, back-fill, back-fill again, league."""
    years, lake = ["--years", str(YEAR)], ["--lake", str(asked.lake), "--json"]
    planned = work.evenhand(["plan", str(spec), *years, *lake])
    yield _told(asked, planned, "plan")
    with ExitStack() as running:
        pids: list[int] = []
        runner = ["--runner", "processes", "--workers", str(asked.workers)]
        if asked.runner == "dask":
            one_large = asked.rows >= MANY
            address, pids = running.enter_context(cluster(asked.place / "dask", asked.workers, one_large=one_large))
            runner = ["--runner", "dask", "--address", address]
        command = ["backfill", str(spec), *years, *runner, *lake]
        first = yield from _filled(asked, command, pids, minimum)
        again = work.evenhand(command, pids)
    found, share = work.partitions(asked.lake), again.cpu_s / first.cpu_s
    held = at_most(share, MOST_RESUMED) if len(found) >= FEWEST_RESUMED else {}
    yield _told(asked, again, "backfill again: nothing left", ratio=share, **held)
    if sum(each.value != ALL for each in found) > 1:  # one lender is beside nobody
        yield _told(asked, work.evenhand(["league", str(spec), "--year", str(YEAR), *lake]), "league")
    if asked.kill:
        yield _compared(asked, spec)
    return first


def _filled(asked: Asked, command: Sequence[str], pids: Sequence[int], minimum: int) -> Generator[Row, None, Told]:
    """The first back-fill; where it is asked for, one of its workers is killed in the middle, and it goes on."""
    middle = max(1, int((sizes(asked.rows) >= 2 * minimum).sum()) // 2)
    kill = Kill(asked.lake, middle) if asked.kill else None
    ended = (*work.ENDED, ExitCode.INFRASTRUCTURE) if kill else work.ENDED
    first = work.evenhand(command, pids, kill, ended)
    parts = work.partitions(asked.lake)
    told = f"{len(parts)} partitions, {asked.workers} workers ({asked.runner})"
    if kill:
        told += f", one killed after {middle}"
        on = work.evenhand(command, pids)
        yield _told(asked, on, "the same command, gone on with", found=f"{len(work.partitions(asked.lake))} partitions")
    met = at_most(first.peak_mb, MOST_MB, " MB")
    yield _told(asked, first, "backfill: every partition", found=told, **met)
    return first


def _compared(asked: Asked, spec: Path) -> Row:
    """Measures of the partitions that were begun twice, or else small ones, against audits of them in another lake."""
    found = work.digests(asked.lake)
    alone = asked.place / "alone"
    work.share_vintages(asked.lake, alone)
    smallest = sorted(work.partitions(asked.lake), key=lambda each: each.rows)
    most = AUDITED_ALONE if asked.rows >= QUICK else AUDITED_ALONE_QUICK
    before = work.disturbed(asked.lake)
    lenders = [each.value for each in smallest if each.value != ALL]
    values = sorted(lenders, key=lambda value: value not in before)[:most]  # else in their order, the smallest first
    named = [word for value in values for word in ("--by-value", value)]
    told = work.evenhand(["backfill", str(spec), "--years", str(YEAR), *named, "--lake", str(alone), "--json"])
    others = work.digests(alone)
    same = [value for value in values if others.get(value) == found[value]]
    twice = len({*values} & {*before})
    said = f"{len(same)} of {len(values)} have equal digests; {twice} of them were begun twice in the first lake"
    met = against(f"{len(values)} of {len(values)}", len(same) == len(values))
    return _told(asked, told, "some partitions alone, undisturbed", found=said, **met)


def _read(asked: Asked, found: Sequence[Partition]) -> Iterator[Row]:
    """What it takes to read the rows of partitions."""
    every = [each for each in found if each.value == ALL]
    for each in every:
        a_million = each.stages["ingest"] / each.rows * 1e6
        met = at_most(a_million, MOST_INGEST_S, " CPU s a million rows") if asked.rows >= QUICK else {}
        told = _a_million(asked, each.stages["ingest"])
        yield row(DRAWN, each.rows, "ingest of every row", cpu_s=each.stages["ingest"], found=told, **met)
        met = at_most(each.ingest_mb, MOST_INGEST_MB, " MB")
        yield row(DRAWN, each.rows, "its memory", peak_mb=each.ingest_mb, **met)
    lenders = sorted((each for each in found if each.value != ALL), key=lambda each: each.rows)
    if lenders:
        middle = lenders[len(lenders) // 2]
        read = _run("read", work.applications(asked.lake), middle.value)
        yield timed_row(DRAWN, read, "rows of the middle lender, read", **at_most(read["cpu_s"], MOST_READ_S, " CPU s"))


def _by_size(asked: Asked, found: Sequence[Partition]) -> Iterator[Row]:
    """Seconds, CPU seconds and memory of a partition, by its rows."""
    for each in (each for each in found if each.value == ALL):
        yield row(DRAWN, each.rows, f"partition `{ALL}`", seconds=each.seconds, cpu_s=each.cpu_s, peak_mb=each.peak_mb)
    lenders = [each for each in found if each.value != ALL]
    for least, most in CLASSES:
        of = [each for each in lenders if least <= each.rows < most]
        if not of:
            continue
        cpu_s = _mean([each.cpu_s for each in of])
        met = at_most(cpu_s, MOST_LENDER_S[asked.gcfn], " CPU s") if (least, most) == MIDDLE else {}
        name = f"a lender of {least:,} to {most:,} rows" if least else f"a lender of less than {most:,} rows"
        name = name if most < ANY else f"a lender of {least:,} rows and more"
        figures = {"seconds": _mean([each.seconds for each in of]), "peak_mb": max(each.peak_mb for each in of)}
        rows = round(_mean([each.rows for each in of]))
        yield row(DRAWN, rows, name, cpu_s=cpu_s, **figures, found=f"mean of {len(of)}", **met)
    reports = _mean([each.stages["report"] for each in lenders]) if lenders else 0.0
    met = at_most(reports, MOST_REPORT_S, " CPU s")
    yield row(DRAWN, None, "short report of a lender", cpu_s=reports, found=f"mean of {len(lenders)}", **met)


def _estimated(asked: Asked, minimum: int, found: Sequence[Partition], of: tuple[Told, Told]) -> Iterator[Row]:
    """The real years at the rates of this run."""
    added, first = of
    lenders = [each for each in found if each.value != ALL] or list(found)
    every = sum(each.cpu_s for each in found if each.value == ALL)
    overhead = max(first.cpu_s - sum(each.cpu_s for each in found), 0.0) / len(found)
    for of_year, rows in REAL.items():
        one = year(rows, work.USABLE, minimum, lenders)
        cpu_s = one.cpu_s + one.lenders * overhead + (added.cpu_s + every) * rows / asked.rows
        hours = f"{cpu_s / 3600 / 2:.1f} h on 2 workers, {cpu_s / 3600 / SIXTEEN:.1f} h on {SIXTEEN}"
        quick = "without the methods that search; " if asked.rows < QUICK else ""
        told = f"{one.lenders:,} lenders; {quick}{hours}; {one.beyond:.0%} of it for lenders larger than any of these"
        yield row(f"{of_year}, estimated", rows, "download to league at these rates", cpu_s=cpu_s, found=told)


def _told(asked: Asked, told: Told, what: str, **more: object) -> Row:
    figures = {"seconds": told.seconds, "cpu_s": told.cpu_s, "peak_mb": told.peak_mb}
    return row(DRAWN, asked.rows, what, **figures, **more)


def _a_million(asked: Asked, cpu_s: float) -> str:
    """CPU seconds of a million rows; empty where the start of a process is most of it."""
    return f"{cpu_s / asked.rows * 1e6:.1f} CPU s a million rows" if asked.rows >= QUICK else ""


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
