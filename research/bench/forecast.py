"""Holds the forecast of ``evenhand plan`` against lenders of several sizes, and writes the table that it ships with.

A year is drawn, and lenders of it and all its rows are audited by data/audits/hmda.yaml, GCFN included, and all rows of
a year ten times as large. Each forecast is made twice: by the table, the shipped one or that which is written, and by
the other lenders, as if the lake had their runs. Two of the sizes are not in the table: they tell how well it lies
between sizes. One lender is audited with fewer groups and with fewer methods.
"""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from flows.partitions.part_spec import spec_of_part
from flows.partitions.partition_list import Listed, by_of, listing
from flows.partitions.year_plan import BY_GROUP, SAMPLED, Measured, Past, expected_cost, group_count, past_of
from flows.runs.index import runs_of
from research.bench import timed_scale as work
from research.bench.timed_scale import YEAR, Yardsticks
from research.benchmark import Bench, Room, Row, against, apart, row
from schemas.audit.partition import ALL
from schemas.audit.spec import AuditSpec
from tasks.lake.store import Lake
from tasks.pipeline.registry import validated
from tasks.plan import plan

ROWS, FEWEST = 200_000, 100_000
SIZES = (600, 1_000, 2_000, 4_000, 7_500, 50_000)
"""Usable rows that lenders are chosen by."""
SHIPPED = (0, 2, 4, 5)
"""Places of the sizes that the table ships with, beside all rows."""
VARIED = 2
"""Place of the lender that is audited otherwise, too."""
FEWER = ("cst", "cec", "raguel")
FOUR_GROUPS = "one attribute of four groups"
FOUR = ("White", "Black", "Asian", "not available")
MOST_OFF, MOST_OFF_BY_RUN = 0.30, 0.20
BYTES_A_ROW = 2_500
LARGER = 10
"""How many times as many rows the large year has: samples and pools bound the work of its methods."""

_run = partial(apart, "research.bench.timed_scale")


def _lines(room: Room) -> Iterator[Row]:
    rows, place = room.rows or ROWS, room.place
    Lake(place).require_space((1 + LARGER) * rows * BYTES_A_ROW, "the benchmark")
    yardsticks = Yardsticks()
    file, lake = _drawn(place, rows)
    spec = validated(AuditSpec, yaml.safe_load(file.read_text(encoding="utf-8")))
    listed = listing(spec, YEAR, lake)
    chosen = _chosen([partition for partition in listed if partition.value != ALL])
    [every] = [partition for partition in listed if partition.value == ALL]
    with ThreadPoolExecutor(1) as at_once:  # in a lake of its own, since a lake has one back-fill at a time
        alone = Lake(place / "alone")
        work.share_vintages(Path(lake.location), Path(alone.location))
        of_all = at_once.submit(_filled, file, {}, [every], alone)
        of_large_year = at_once.submit(_of_large_year, place / "large", LARGER * rows)
        past = _filled(file, {}, chosen, lake, yardsticks)
        in_full = {"by": {"column": work.LENDER, "minimum": by_of(spec).minimum, "full": True}}
        full = _filled(
            file, {"name": f"{spec.name}-full", **in_full}, [chosen[at] for at in SHIPPED[:-1]], lake, yardsticks
        )
        past |= of_all.result()
        large_year = of_large_year.result()
    steps = [step.name for step in plan(spec_of_part(spec, YEAR, chosen[0], lake)).steps]
    unsampled = {step: seconds for step, seconds in large_year.cpu_seconds.items() if step not in SAMPLED}
    beyond = replace(large_year, cpu_seconds=unsampled)
    full_past = (*(full[chosen[at].value] for at in SHIPPED[:-1]), past[ALL], beyond)
    short_past = tuple(past[chosen[at].value] for at in SHIPPED)
    share = round(every.usable / every.rows, 2)
    varied = {words: _varied(file, changes, chosen[VARIED], lake) for words, changes in _variants(file)}
    fixed = _fixed(spec, past[chosen[VARIED].value], *varied[FOUR_GROUPS])
    table = Measured(yardsticks.median, group_count(spec), short_past, full_past, share, fixed)
    by = Measured.shipped()
    if target := room.options.get("--write"):
        Path(target).write_text(json.dumps(_rounded(table), indent=1) + "\n", encoding="utf-8")
        by = table
    for partition in chosen:
        run = past[partition.value]
        other_runs = [past[other.value] for other in chosen if other.value != partition.value]
        yield from _compared(spec, steps, run, [], "the table", MOST_OFF, by)
        yield from _compared(spec, steps, run, other_runs, "runs of other lenders", MOST_OFF_BY_RUN, by)
    full_spec = spec.model_copy(update={"by": None})
    for words, run in (("of all rows", past[ALL]), (f"of {LARGER} times the rows", large_year)):
        yield from _compared(full_spec, list(run.cpu_seconds), run, [], f"the table, {words}", MOST_OFF, by)
    for words, (of, run) in varied.items():
        yield from _compared(of, list(run.cpu_seconds), run, [], f"the table, {words}", MOST_OFF, by)


def _drawn(place: Path, rows: int) -> tuple[Path, Lake]:
    """A year drawn and added to a lake of its own, and the spec that audits it."""
    place.mkdir(exist_ok=True)
    file, lake = work.write_spec(place, rows, gcfn=True), Lake(place / "lake")
    _run("draw", place, rows)
    added = ["data", "add", str(place / "year.txt"), "--year", str(YEAR), "--kind", "twin", "--geo", "nationwide"]
    work.evenhand([*added, "--frozen", "2026-01-01", "--lake", str(lake.location)])
    return file, lake


def _of_large_year(place: Path, rows: int) -> Past:
    """What all rows of a year take."""
    file, lake = _drawn(place, rows)
    spec = validated(AuditSpec, yaml.safe_load(file.read_text(encoding="utf-8")))
    every = [partition for partition in listing(spec, YEAR, lake) if partition.value == ALL]
    return _filled(file, {}, every, lake)[ALL]


def _varied(file: Path, changes: dict[str, Any], lender: Listed, lake: Lake) -> tuple[AuditSpec, Past]:
    """The changed spec, and what a lender took by it."""
    [run] = _filled(file, changes, [lender], lake).values()
    return validated(AuditSpec, yaml.safe_load(file.read_text(encoding="utf-8")) | changes), run


def _fixed(spec: AuditSpec, run: Past, fewer: AuditSpec, of_fewer: Past) -> dict[str, float]:
    """Seconds of steps at no group, on the line through the same lender with more and with fewer groups."""
    many, few = group_count(spec), group_count(fewer)
    fixed = {}
    for step in sorted(BY_GROUP & run.cpu_seconds.keys() & of_fewer.cpu_seconds.keys()):
        seconds, fewest = run.cpu_seconds[step], of_fewer.cpu_seconds[step]
        at_none = (many * fewest - few * seconds) / (many - few)
        fixed[step] = round(min(max(at_none, 0.0), seconds), 3)
    return fixed


def _variants(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """What an audit with fewer groups, and one with fewer methods, has in place of the spec's own."""
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    methods = document["methods"] | dict.fromkeys(FEWER)
    yield "fewer methods", {"name": "fewer-methods", "methods": methods}
    race = document["protected"][0]
    race["groups"] = {name: race["groups"][name] for name in FOUR}
    document["methods"]["cst"]["causal_order"][0] = ["race", "applicant_age"]
    of_race = {"protected": [race], "methods": document["methods"]}
    yield FOUR_GROUPS, {"name": "four-groups", **of_race}


def _filled(
    file: Path, changes: dict[str, Any], of: Sequence[Listed], lake: Lake, yardsticks: Yardsticks | None = None
) -> dict[str, Past]:
    """Audits partitions by the spec with some keys changed; what each took, by its value."""
    document = yaml.safe_load(file.read_text(encoding="utf-8")) | changes
    own_file = file.with_name(f"{document['name']}.yaml")
    own_file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    values = [word for partition in of for word in ("--by-value", partition.value)]
    look = yardsticks.look if yardsticks else None
    work.evenhand(["backfill", str(own_file), "--years", str(YEAR), *values, "--lake", str(lake.location)], look=look)
    return {run.value: past_of(lake, run) for run in runs_of(lake, document["name"])}


def _compared(
    spec: AuditSpec, steps: Sequence[str], run: Past, past: Sequence[Past], words: str, most: float, table: Measured
) -> Iterator[Row]:
    """Forecasts of CPU time and memory against what a partition took."""
    cost = expected_cost(spec, steps, run.usable, past, table)
    took = {"CPU time": sum(run.cpu_seconds.values()), "memory": max(run.peak_mb.values())}
    for what, expected in (("CPU time", cost.cpu_seconds), ("memory", cost.peak_mb)):
        ratio = expected / took[what]
        unit = "CPU s" if what == "CPU time" else "MB"
        met = against(f"within {most:.0%}", abs(ratio - 1) <= most)
        figures = f"expected {expected:,.1f}, took {took[what]:,.1f} {unit}"
        yield row("year, drawn", run.usable, f"{what} by {words}", ratio=ratio, found=figures, **met)


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
    return head | {"usable_share": table.usable_share, "fixed": dict(table.fixed)} | runs


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
