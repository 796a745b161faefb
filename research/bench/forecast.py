"""Holds the forecast of ``evenhand plan`` against lenders of several sizes, and writes the table that it ships with.

A year is drawn, and lenders of it are audited by data/audits/hmda.yaml, GCFN included. Each forecast is made twice: by
the shipped table alone, and by the other lenders, as if the lake had their runs. Two of the five sizes are not in the
table: they tell how well it lies between sizes.
"""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from flows.partitions.part_spec import spec_of_part
from flows.partitions.partition_list import Listed, listing
from flows.partitions.year_plan import Measured, Past, expected_cost, group_count, past_of, yardstick_seconds
from flows.runs.index import runs_of
from research.bench import timed_scale as work
from research.bench.timed_scale import YEAR
from research.benchmark import Bench, Room, Row, against, apart, row
from schemas.audit.partition import ALL
from schemas.audit.spec import AuditSpec
from tasks.lake.store import Lake
from tasks.pipeline.registry import validated
from tasks.plan import plan

ROWS, FEWEST = 120_000, 100_000
SIZES = (600, 1_000, 2_000, 4_000, 7_500)
"""Usable rows that lenders are chosen by."""
SHIPPED = (0, 2, 4)
"""Places of the sizes that the table ships with."""
MOST_OFF, MOST_OFF_BY_RUN = 0.30, 0.20
BYTES_A_ROW = 2_500

_run = partial(apart, "research.bench.timed_scale")


def _lines(room: Room) -> Iterator[Row]:
    rows, place = room.rows or ROWS, room.place
    Lake(place).require_space(rows * BYTES_A_ROW, "the benchmark")
    file, _ = work.write_spec(place, rows, gcfn=True)
    _run("draw", place, rows)
    added = ["data", "add", str(place / "year.txt"), "--year", str(YEAR), "--kind", "twin", "--geo", "nationwide"]
    lake = Lake(place / "lake")
    work.evenhand([*added, "--frozen", "2026-01-01", "--lake", str(lake.location)])
    spec = validated(AuditSpec, yaml.safe_load(file.read_text(encoding="utf-8")))
    chosen = _chosen([partition for partition in listing(spec, YEAR, lake) if partition.value != ALL])
    values = [word for partition in chosen for word in ("--by-value", partition.value)]
    work.evenhand(["backfill", str(file), "--years", str(YEAR), *values, "--lake", str(lake.location)])
    past = {run.value: past_of(lake, run) for run in runs_of(lake, spec.name)}
    full_past = _in_full(spec, file, [chosen[at] for at in SHIPPED], lake)
    steps = [step.name for step in plan(spec_of_part(spec, YEAR, chosen[0], lake)).steps]
    share = sum(lender.usable for lender in chosen) / sum(lender.rows for lender in chosen)
    short_past = tuple(past[chosen[at].value] for at in SHIPPED)
    table = Measured(yardstick_seconds(), group_count(spec), short_past, full_past, round(share, 2))
    for partition in chosen:
        run = past[partition.value]
        other_runs = [past[other.value] for other in chosen if other.value != partition.value]
        yield from _compared(spec, steps, run, [], "the shipped table", MOST_OFF)
        yield from _compared(spec, steps, run, other_runs, "runs of other lenders", MOST_OFF_BY_RUN)
    if target := room.options.get("--write"):
        Path(target).write_text(json.dumps(_rounded(table), indent=1) + "\n", encoding="utf-8")


def _in_full(spec: AuditSpec, file: Path, lenders: Sequence[Listed], lake: Lake) -> tuple[Past, ...]:
    """Runs of lenders with all that a report of an audit without partitions prints."""
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    document |= {"name": f"{spec.name}-full", "by": document["by"] | {"full": True}}
    full_file = file.with_name("full.yaml")
    full_file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    values = [word for lender in lenders for word in ("--by-value", lender.value)]
    work.evenhand(["backfill", str(full_file), "--years", str(YEAR), *values, "--lake", str(lake.location)])
    past = {run.value: past_of(lake, run) for run in runs_of(lake, document["name"])}
    return tuple(past[lender.value] for lender in lenders)


def _compared(
    spec: AuditSpec, steps: Sequence[str], run: Past, past: Sequence[Past], by: str, most: float
) -> Iterator[Row]:
    """Forecasts of CPU time and memory against what a lender took."""
    cost = expected_cost(spec, steps, run.usable, past)
    took = {"CPU time": sum(run.cpu_seconds.values()), "memory": max(run.peak_mb.values())}
    for what, expected in (("CPU time", cost.cpu_seconds), ("memory", cost.peak_mb)):
        ratio = expected / took[what]
        unit = "CPU s" if what == "CPU time" else "MB"
        met = against(f"within {most:.0%}", abs(ratio - 1) <= most)
        figures = f"expected {expected:,.1f}, took {took[what]:,.1f} {unit}"
        yield row("year, drawn", run.usable, f"{what} by {by}", ratio=ratio, found=figures, **met)


def _chosen(lenders: Sequence[Listed]) -> list[Listed]:
    """The lender nearest to each size, none twice."""
    remaining, chosen = [lender for lender in lenders if not lender.too_few], []
    for size in SIZES:
        nearest = min(remaining, key=lambda lender: abs(lender.usable / size - 1))
        remaining.remove(nearest)
        chosen.append(nearest)
    return chosen


def _rounded(table: Measured) -> dict[str, Any]:
    runs = {
        name: [
            {
                "usable": run.usable,
                "cpu_seconds": {step: round(seconds, 3) for step, seconds in run.cpu_seconds.items()},
                "peak_mb": {step: round(mb) for step, mb in run.peak_mb.items()},
            }
            for run in runs_of_table
        ]
        for name, runs_of_table in (("runs", table.runs), ("full_runs", table.full_runs))
    }
    head = {"yardstick_seconds": round(table.yardstick_seconds, 4), "groups": table.groups}
    return head | {"usable_share": table.usable_share} | runs


BENCH = Bench(
    "forecast",
    _lines,
    fewest=FEWEST,
    why="with fewer there are no lenders of all sizes",
    memory_mb=4_000,
    disk=0,
    takes=("--write",),
    of_any_size=True,
)
