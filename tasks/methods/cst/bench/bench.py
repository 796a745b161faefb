"""``evenhand bench cst``: time and memory of CST on the paper's grid, on a million rows, and on a year of complainants.

Rows are read, decided on and imagined once by the stages of an audit, which is told apart. Every measurement then runs
in a process of its own (``work``), so that its peak memory is its own.

Here belong what is run and the targets. What is timed is in ``work``.
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
from tasks.methods.cst.bench.work import Case
from tasks.methods.cst.reproduction import experiments, worlds
from tasks.methods.cst.settings import CstSettings
from tasks.proof.benches import (
    ALL,
    Row,
    against,
    apart,
    at_least,
    at_most,
    below,
    measured,
    per_second,
    row,
    took,
)
from tasks.proof.specs import require
from tasks.proof.texas import TEXAS_FILE, texas_spec

MOST_GRID_CPU_S = 20.0
MOST_SEARCH_S = 20.0
LEAST_RATIO = 50.0
MOST_APART = 1e-12
MOST_YEAR_S = 10.0
MOST_YEAR_MB = 1_000.0

MILLION, NEIGHBOURS, MEMORY_MB = 1_000_000, 100, 32
FREE_MB = 2_000
"""Memory that has to be free: a million rows, their index, and scikit-learn's copy of them."""

DRAWN, TEXAS = "drawn applicants", "Texas 2022"

_run = partial(apart, "tasks.methods.cst.bench.work")

TEXAS_YEAR = {
    "methods": "{fgce: null, cst: {k: 50, ks: [50], null_permutations: 0, sensitivity: false}}",
    "explain.decision_makers": "[model]",
}
"""Everybody once: not again with labels permuted, nor without an edge of the causal graph."""


def cst(data: Path, rows: int | None = None) -> list[Row]:
    """Times, memory and the ratio to brute force, each beside its target.

    Args:
        data: Directory that holds ``data/`` and ``golden/``.
        rows: At most so many rows of each data set, for a quick look; the targets, which are for all rows and for the
            sizes said, are then not held against it.

    Raises:
        InfrastructureError: A file is missing, memory is short, or the disk is too full.
    """
    grids = [(data / e.source, grid) for e in experiments.EXPERIMENTS.values() for grid in e.grids if grid.tabled]
    require(data, [*dict.fromkeys(source for source, _ in grids), data / TEXAS_FILE])

    def lines(place: Path) -> Iterator[Row]:
        limit = rows or ALL
        yield from _grid(grids, place, limit)
        yield from _search(min(limit, MILLION))
        yield from _year(data, place, limit)

    return measured(lines, rows, FREE_MB)


def _grid(grids: list[tuple[Path, experiments.Grid]], place: Path, limit: int) -> Iterator[Row]:
    """The data sets of the paper, with all methods and numbers of neighbours, and their total."""
    start, files = time.perf_counter(), []
    for number, (source, grid) in enumerate(grids):
        prepared = experiments.prepared(grid, source)
        files.append(place / f"{number}.npz")
        Case.of(prepared.problem).write(files[-1])
    settings = prepared.settings.model_copy(update={"sensitivity": False}).model_dump_json()
    yield row("paper", None, "apart: ingest, preprocess, score, imagine", seconds=time.perf_counter() - start)
    start = time.perf_counter()
    _run("detect", files[0], settings, 1)  # compiles, so that no process below spends time on it
    yield row("paper", 1, "apart: start Python, compile what is not cached", seconds=time.perf_counter() - start)
    told = [_run("detect", file, settings, limit) for file in files]
    for (_, grid), each in zip(grids, told, strict=True):
        times = {**_times(each), "found": _detected(each)}
        yield row(f"{Path(grid.spec).stem}, {grid.group}", each["rows"], "3 methods, 4 k", **times)
    total = sum(each["cpu_s"] for each in told)
    seconds = sum(each["seconds"] for each in told)
    yield row(
        "paper",
        None,
        "whole grid: 4 data sets, 3 methods, 4 k",
        seconds=seconds,
        cpu_s=total,
        **at_most(total, MOST_GRID_CPU_S, " CPU s"),
    )


def _search(rows: int) -> Iterator[Row]:
    """Exact neighbours among drawn applicants, and scikit-learn's of a sample in the same process."""
    said = _run("search", rows, min(NEIGHBOURS, rows), MEMORY_MB)
    at, total = (DRAWN, said["rows"]), said["index_s"] + said["search_s"]
    per_s, brute = said["queries"] / total, said["sample"] / said["brute_s"]
    what = f"{said['queries']:,} queries, k = {NEIGHBOURS}, 7 numeric and 5 nominal columns"
    index = f"index {said['index_s']:.1f} s, search {said['search_s']:.1f} s"
    yield row(*at, what, seconds=total, per_s=round(per_s), found=index, **at_most(total, MOST_SEARCH_S, " s"))
    yield row(*at, f"scikit-learn, brute force, {said['sample']} queries", seconds=said["brute_s"], per_s=round(brute))
    yield row(
        *at, "queries per second against scikit-learn's", ratio=per_s / brute, **at_least(per_s / brute, LEAST_RATIO)
    )
    most = said["furthest_apart"]
    yield row(
        *at,
        "distances against scikit-learn's",
        found=f"at most {most:.1g} apart",
        **against("equal", most <= MOST_APART),
    )
    grown = said["peak_mb"] - said["indexed_mb"]
    met = at_most(grown, MEMORY_MB, " MB more, the setting")
    found = (
        f"{said['data_mb']:.0f} MB with the rows, {said['indexed_mb']:.0f} indexing them, {grown:.0f} more searching"
    )
    yield row(*at, "peak memory", peak_mb=said["peak_mb"], found=found, **met)


def _year(data: Path, place: Path, limit: int) -> Iterator[Row]:
    """All complainants of a state's year, by the default profile."""
    start = time.perf_counter()
    spec = texas_spec(data, TEXAS_YEAR)
    scene, file = worlds.scene(spec, "race"), place / "texas.npz"
    imagined = scene.imagined("race", np.flatnonzero(complainants(scene.problem)))
    applicants = replace(applicants_of(scene.problem), counterfactuals=imagined)
    Case.of(replace(scene.problem, applicants=applicants)).write(file)
    yield row(TEXAS, None, "apart: ingest, preprocess, score, imagine", seconds=time.perf_counter() - start)
    said = _run("detect", file, (spec.methods.of(CstSettings) or CstSettings()).model_dump_json(), limit)
    met = below(said["seconds"], MOST_YEAR_S, " s")
    yield row(TEXAS, said["rows"], "complainants of all groups but the white, k = 50", **_times(said), **met)
    met = below(said["peak_mb"], MOST_YEAR_MB, " MB")
    yield row(TEXAS, said["rows"], "peak memory", peak_mb=said["peak_mb"], **met)


def _times(said: Mapping[str, Any]) -> Row:
    """Times of a case, and how many complainants it has."""
    found = f"{said['complainants']:,} complainants, {said['refused']:,} of them refused"
    return {**took(said), "peak_mb": None, **per_second(said, said["complainants"]), "found": found}


def _detected(said: Mapping[str, Any]) -> str:
    """How many complainants were detected, by variant and number of neighbours."""
    return "detected: " + "; ".join(
        f"{variant} {' '.join(map(str, counts))}" for variant, counts in said["detected"].items()
    )
