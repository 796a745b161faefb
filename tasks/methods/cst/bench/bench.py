"""Times CST and measures its memory on the paper's grid, on a million rows, and on a year of complainants.

Rows, decisions and counterfactuals are made once by the stages of an audit, which is timed apart. Every measurement
then runs in a process of its own (``work``), so that its peak memory is its own.

Scope: runs and targets. The timed work: ``work``.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tasks.methods.cst.algorithm.comparisons import applicants_of
from tasks.methods.cst.algorithm.detection import units as complainants
from tasks.methods.cst.bench.coverage import TEXAS_ROWS, texas
from tasks.methods.cst.bench.work import case_of
from tasks.methods.cst.reproduction import worlds
from tasks.methods.cst.reproduction.experiments import EXPERIMENTS
from tasks.methods.cst.settings import CstSettings
from tasks.proof.benches import (
    Bench,
    Expected,
    Held,
    Room,
    Row,
    against,
    apart,
    at_least,
    at_most,
    below,
    per_second,
    row,
    timed_row,
)
from tasks.proof.specs import TEXAS_FILE, texas_spec
from tasks.proof.work import Piped

MOST_GRID_CPU_S = 20.0
MOST_SEARCH_S = 20.0
LEAST_RATIO = 50.0
MOST_APART = 1e-12
MOST_YEAR_S = 10.0
MOST_YEAR_MB = 1_000.0
MOST_LARGEST_MB = 1_500.0

MILLION, NEIGHBOURS, MEMORY_MB = 1_000_000, 100, 32
LARGEST, MOST_NEIGHBOURS = 418_000, 50
FREE_MB = 2_000
"""Memory that has to be free: a million rows, their index, and scikit-learn's copy of them."""

DRAWS = 200
"""Samples whose coverage is counted."""

DRAWN, TEXAS = "drawn applicants", "Texas 2022"

_run = partial(apart, "tasks.methods.cst.bench.work")

TEXAS_YEAR = {
    "methods": "{fgce: null, cst: {k: 50, ks: [50], null_permutations: 0, sensitivity: false}}",
    "explain.decision_makers": "[model]",
}
"""Everybody once: not again with labels permuted, nor without an edge of the causal graph."""


def _lines(room: Room) -> Iterator[Row]:
    yield from _grid(room)
    yield from _search(min(room.limit, MILLION))
    yield from _year(room)
    yield from _national(min(room.limit, LARGEST))
    yield from _samples(room)


def _grid(room: Room) -> Iterator[Row]:
    """The data sets of the paper, with all methods and numbers of neighbours, and their total."""
    grids = [(e, grid) for e in EXPERIMENTS.values() for grid in e.grids if grid.tabled]
    start = time.perf_counter()
    prepared = [experiment.prepared(grid, room.data) for experiment, grid in grids]
    cases = [Piped(case_of(each.problem)) for each in prepared]
    settings = prepared[-1].settings.model_copy(update={"sensitivity": False}).model_dump_json()
    yield row("paper", None, "apart: ingest, preprocess, score, imagine", seconds=time.perf_counter() - start)
    start = time.perf_counter()
    _run("detect", cases[0], settings, 1)  # compiles, so that no process below spends time on it
    yield row("paper", 1, "apart: start Python, compile what is not cached", seconds=time.perf_counter() - start)
    told = [_run("detect", case, settings, room.limit) for case in cases]
    for (_, grid), each in zip(grids, told, strict=True):
        yield _of_case(f"{Path(grid.spec).stem}, {grid.group}", each, "3 methods, 4 k", found=_detected(each))
    total = sum(each["cpu_s"] for each in told)
    seconds = sum(each["seconds"] for each in told)
    met = at_most(total, MOST_GRID_CPU_S, " CPU s")
    yield row("paper", None, "whole grid: 4 data sets, 3 methods, 4 k", seconds=seconds, cpu_s=total, **met)


def _search(rows: int) -> Iterator[Row]:
    """Exact neighbours among drawn applicants, and scikit-learn's of a sample in the same process."""
    said = _run("search", rows, min(NEIGHBOURS, rows), MEMORY_MB)
    at, total = (DRAWN, said["rows"]), said["index_s"] + said["search_s"]
    per_s, brute = said["queries"] / total, said["sample"] / said["brute_s"]
    what = f"{said['queries']:,} queries, k = {NEIGHBOURS}, 7 numeric and 5 nominal columns"
    index = f"index {said['index_s']:.1f} s, search {said['search_s']:.1f} s"
    yield row(*at, what, seconds=total, per_s=round(per_s), found=index, **at_most(total, MOST_SEARCH_S, " s"))
    yield row(*at, f"scikit-learn, brute force, {said['sample']} queries", seconds=said["brute_s"], per_s=round(brute))
    ratio, most = per_s / brute, said["furthest_apart"]
    yield row(*at, "queries per second against scikit-learn's", ratio=ratio, **at_least(ratio, LEAST_RATIO))
    met = against("equal", most <= MOST_APART)
    yield row(*at, "distances against scikit-learn's", found=f"at most {most:.1g} apart", **met)
    grown = said["peak_mb"] - said["indexed_mb"]
    met = at_most(grown, MEMORY_MB, " MB more, the setting")
    found = f"{said['data_mb']:.0f} MB with the rows, {said['indexed_mb']:.0f} indexing them"
    found += f", {grown:.0f} more searching"
    yield row(*at, "peak memory", peak_mb=said["peak_mb"], found=found, **met)


def _year(room: Room) -> Iterator[Row]:
    """All complainants of a state's year, by the default profile."""
    start = time.perf_counter()
    spec = texas_spec(room.data, TEXAS_YEAR)
    scene = worlds.scene(spec, "race")
    imagined = scene.imagined("race", np.flatnonzero(complainants(scene.problem)))
    applicants = replace(applicants_of(scene.problem), counterfactuals=imagined)
    case = Piped(case_of(replace(scene.problem, applicants=applicants)))
    yield row(TEXAS, None, "apart: ingest, preprocess, score, imagine", seconds=time.perf_counter() - start)
    said = _run("detect", case, (spec.methods.of(CstSettings) or CstSettings()).model_dump_json(), room.limit)
    met = below(said["seconds"], MOST_YEAR_S, " s")
    yield _of_case(TEXAS, said, "complainants of all groups but the white, k = 50", **met)
    met = below(said["peak_mb"], MOST_YEAR_MB, " MB")
    yield row(TEXAS, said["rows"], "peak memory", peak_mb=said["peak_mb"], **met)


def _national(rows: int) -> Iterator[Row]:
    """Memory among as many rows as the largest sample of a national year has, its evidence made and dropped."""
    said = _run("national", rows, MOST_NEIGHBOURS)
    grown = f"{said['evidence']:,} rows of evidence; {said['data_mb']:.0f} MB with the rows alone"
    met = below(said["peak_mb"], MOST_LARGEST_MB, " MB")
    yield timed_row(DRAWN, said, f"complainants of five groups, k = {MOST_NEIGHBOURS}", found=grown, **met)


def _samples(room: Room) -> Iterator[Row]:
    """How often samples of the complainants of Texas cover what all of them say, by the variance of the design."""
    found = list(texas(room.data, room.reps or DRAWS))
    for measure in ("st_effect", "share_detected", "share_significant"):
        own = [(name, each) for name, each in found if each.measure == measure]
        shares = [each.share for _, each in own]
        said = ", ".join(f"{name} {each.share:.1%} ({each.asked} of {each.of})" for name, each in own)
        mean = float(np.mean(shares))
        met = {} if measure == "share_significant" else against("93 to 97 %", 0.93 <= mean <= 0.97)
        yield row(TEXAS, TEXAS_ROWS, f"{measure}: samples cover all complainants", ratio=mean, found=said, **met)


def _of_case(name: str, said: Mapping[str, Any], what: str, **more: Any) -> Row:
    """Times of a case, and its number of complainants unless more is found."""
    found = f"{said['complainants']:,} complainants, {said['refused']:,} of them refused"
    per_s = per_second(said, said["complainants"])
    return timed_row(name, said, what, **{"peak_mb": None, "per_s": per_s, "found": found, **more})


def _detected(said: Mapping[str, Any]) -> str:
    """How many complainants were detected, by variant and number of neighbours."""
    return "detected: " + "; ".join(
        f"{variant} {' '.join(map(str, counts))}" for variant, counts in said["detected"].items()
    )


BENCH = Bench(
    "cst",
    _lines,
    (*(source for each in EXPERIMENTS.values() for source in each.sources), TEXAS_FILE),
    memory_mb=FREE_MB,
)
TWIN = Expected(
    "{ks: [100], k: 100, taus: [0], null_permutations: 0, null_draws: 0, sensitivity: false}",
    (
        Held("cst_effect", ("direct", "mediated"), ("direct", "mediated")),
        Held(
            "st_effect",
            ("direct",),
            ("direct",),
            "it compares applicants with equal finances, and here these are what was moved",
        ),
    ),
)
