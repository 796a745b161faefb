"""``evenhand bench cst``: time and memory of CST on the paper's grid, on a million rows, and on a year of complainants.

Rows are read, decided on and imagined once by the stages of an audit, which is told apart. Every measurement then runs
in a process of its own (``work``), so that its peak memory is its own.

Here belong what is run and the targets. What is timed is in ``work``.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from schemas.audit.spec import AuditSpec
from schemas.errors import InfrastructureError
from tasks.lake.store import Lake
from tasks.methods.cst.algorithm.comparisons import applicants_of
from tasks.methods.cst.algorithm.detection import units as complainants
from tasks.methods.cst.bench.work import Case
from tasks.methods.cst.reproduction import experiments, worlds
from tasks.methods.cst.settings import CstSettings
from tasks.pipeline.specs import read_spec
from tasks.proof.specs import require
from tasks.proof.texas import TEXAS_FILE, TEXAS_SPEC

Row = dict[str, Any]

MOST_GRID_CPU_S = 20.0
MOST_SEARCH_S = 20.0
LEAST_RATIO = 50.0
MOST_APART = 1e-12
MOST_YEAR_S = 10.0
MOST_YEAR_MB = 1_000.0

MILLION, NEIGHBOURS, MEMORY_MB = 1_000_000, 100, 32
ALL = 2**31 - 1
FREE_MB = 2_000
"""Memory that has to be free: a million rows, their index, and scikit-learn's copy of them."""

DRAWN, TEXAS = "drawn applicants", "Texas 2022"


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
    _require_memory()
    with tempfile.TemporaryDirectory() as name:
        place, limit = Path(name), rows or ALL
        Lake(place).require_space(2**30, "the benchmark")
        said = [*_grid(grids, place, limit), *_search(min(limit, MILLION)), *_year(data, place, limit)]
    return said if rows is None else [{**row, "target": None, "met": None} for row in said]


def _require_memory() -> None:
    free = psutil.virtual_memory().available // 2**20
    if free < FREE_MB:
        raise InfrastructureError(f"{free} MB of memory are free and the benchmark needs up to {FREE_MB}; free some")


def _grid(grids: list[tuple[Path, experiments.Grid]], place: Path, limit: int) -> Iterator[Row]:
    """The data sets of the paper, with all methods and numbers of neighbours, and their total."""
    start, files = time.perf_counter(), []
    for number, (source, grid) in enumerate(grids):
        prepared = experiments.prepared(grid, source)
        files.append(place / f"{number}.npz")
        Case.of(prepared.problem).write(files[-1])
    settings = prepared.settings.model_copy(update={"sensitivity": False}).model_dump_json()
    yield _row("paper", None, "apart: ingest, preprocess, score, imagine", seconds=time.perf_counter() - start)
    start = time.perf_counter()
    _run("detect", files[0], settings, 1)  # compiles, so that no process below spends time on it
    yield _row("paper", 1, "apart: start Python, compile what is not cached", seconds=time.perf_counter() - start)
    told = [_run("detect", file, settings, limit) for file in files]
    for (_, grid), each in zip(grids, told, strict=True):
        took = {**_took(each), "found": _detected(each)}
        yield _row(f"{Path(grid.spec).stem}, {grid.group}", each["rows"], "3 methods, 4 k", **took)
    total = sum(each["cpu_s"] for each in told)
    against = _against(f"at most {MOST_GRID_CPU_S:g} CPU s", total <= MOST_GRID_CPU_S)
    seconds = sum(each["seconds"] for each in told)
    yield _row("paper", None, "whole grid: 4 data sets, 3 methods, 4 k", seconds=seconds, cpu_s=total, **against)


def _search(rows: int) -> Iterator[Row]:
    """Exact neighbours among drawn applicants, and scikit-learn's of a sample in the same process."""
    said = _run("search", rows, min(NEIGHBOURS, rows), MEMORY_MB)
    at, total = (DRAWN, said["rows"]), said["index_s"] + said["search_s"]
    per_s, brute = said["queries"] / total, said["sample"] / said["brute_s"]
    what = f"{said['queries']:,} queries, k = {NEIGHBOURS}, 7 numeric and 5 nominal columns"
    index = f"index {said['index_s']:.1f} s, search {said['search_s']:.1f} s"
    against = _against(f"at most {MOST_SEARCH_S:g} s", total <= MOST_SEARCH_S)
    yield _row(*at, what, seconds=total, per_s=round(per_s), found=index, **against)
    yield _row(*at, f"scikit-learn, brute force, {said['sample']} queries", seconds=said["brute_s"], per_s=round(brute))
    against = _against(f"at least {LEAST_RATIO:g}", per_s / brute >= LEAST_RATIO)
    yield _row(*at, "queries per second against scikit-learn's", ratio=per_s / brute, **against)
    apart = said["furthest_apart"]
    against = _against("equal", apart <= MOST_APART)
    yield _row(*at, "distances against scikit-learn's", found=f"at most {apart:.1g} apart", **against)
    grown = said["peak_mb"] - said["indexed_mb"]
    against = _against(f"at most {MEMORY_MB} MB more, the setting", grown <= MEMORY_MB)
    found = (
        f"{said['data_mb']:.0f} MB with the rows, {said['indexed_mb']:.0f} indexing them, {grown:.0f} more searching"
    )
    yield _row(*at, "peak memory", peak_mb=said["peak_mb"], found=found, **against)


def _year(data: Path, place: Path, limit: int) -> Iterator[Row]:
    """All complainants of a state's year, by the default profile."""
    start = time.perf_counter()
    spec = _texas(data)
    scene, file = worlds.scene(spec, "race"), place / "texas.npz"
    imagined = scene.imagined("race", np.flatnonzero(complainants(scene.problem)))
    applicants = replace(applicants_of(scene.problem), counterfactuals=imagined)
    Case.of(replace(scene.problem, applicants=applicants)).write(file)
    yield _row(TEXAS, None, "apart: ingest, preprocess, score, imagine", seconds=time.perf_counter() - start)
    said = _run("detect", file, (spec.methods.of(CstSettings) or CstSettings()).model_dump_json(), limit)
    against = _against(f"below {MOST_YEAR_S:g} s", said["seconds"] < MOST_YEAR_S)
    yield _row(TEXAS, said["rows"], "complainants of all groups but the white, k = 50", **_took(said), **against)
    against = _against(f"below {MOST_YEAR_MB:g} MB", said["peak_mb"] < MOST_YEAR_MB)
    yield _row(TEXAS, said["rows"], "peak memory", peak_mb=said["peak_mb"], **against)


def _texas(data: Path) -> AuditSpec:
    if not TEXAS_SPEC.is_file():
        raise InfrastructureError(
            f"{str(TEXAS_SPEC)!r} is not there; run the benchmark from a checkout, which holds it"
        )
    overrides = {**TEXAS_YEAR, "source.path": str(data / TEXAS_FILE)}
    return read_spec(TEXAS_SPEC.read_text(encoding="utf-8"), str(TEXAS_SPEC), overrides).spec


def _run(what: str, *about: object) -> Mapping[str, Any]:
    """What a process of its own says."""
    command = [sys.executable, "-m", "tasks.methods.cst.bench.work", what, *map(str, about)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 our own
    if done.returncode:
        raise RuntimeError(f"{what} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    said: Mapping[str, Any] = json.loads(done.stdout)
    return said


def _took(said: Mapping[str, Any]) -> Row:
    """Times of a case, and how many complainants it has."""
    found = f"{said['complainants']:,} complainants, {said['refused']:,} of them refused"
    per_s = round(said["complainants"] / said["seconds"])
    return {"seconds": said["seconds"], "cpu_s": said["cpu_s"], "per_s": per_s, "found": found}


def _detected(said: Mapping[str, Any]) -> str:
    """How many complainants were detected, by variant and number of neighbours."""
    return "detected: " + "; ".join(
        f"{variant} {' '.join(map(str, counts))}" for variant, counts in said["detected"].items()
    )


def _row(name: str, rows: int | None, what: str, **more: Any) -> Row:
    """A line of the table; what it does not say is empty."""
    columns = ("seconds", "cpu_s", "per_s", "peak_mb", "ratio", "target", "met", "found")
    return {"data": name, "rows": rows, "what": what, **dict.fromkeys(columns), **more}


def _against(target: str, met: bool) -> Row:
    return {"target": target, "met": "met" if met else "missed"}
