"""Benchmark of CST, and the coverage of its intervals."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from research.benchmark import (
    Bench,
    Expected,
    Held,
    Piped,
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
from research.cst import problem as cst_problem
from research.cst.experiments import EXPERIMENTS
from research.cst.timed_work import case_of, sample
from research.figures import TEXAS_FILE, texas_spec
from tasks.methods.cst.algorithm.contrasts import Contrast, Lists, Sides, contrast, sides_of
from tasks.methods.cst.algorithm.detection import units as complainants
from tasks.methods.cst.algorithm.effects import Frame
from tasks.methods.cst.algorithm.situations import CST, NOBODY, Comparison, applicants_of, compare, judge, lay
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.problem import Problem
from tasks.numerics.statistics.intervals import Pair
from tasks.numerics.statistics.sampling import Asked, allotted, design_variance, hashes

# --------------------------------------------------------------------------------------------------------------------
# Measures how often samples of the complainants cover the result of all of them, over many draws of one search.
#
# The neighbours of a complainant do not depend on who else is queried, so that one search serves all draws. What a draw
# gives is computed by the functions of an audit: weights, design variance, q-values over the sample.
#
# Scope: draws and counts. The bench and the tests print and judge them.


Z = 1.959964
"""Of a two-sided interval at 95 %."""

TEXAS_ROWS, TEXAS_QUERIES, FEWEST = 20_000, 2_000, 100
TEXAS_LENDER = {
    "methods": "{fgce: null, cst: {k: 50, ks: [50], null_permutations: 0, sensitivity: false}}",
    "explain.decision_makers": "[lender]",
}


@dataclass(frozen=True)
class Sampled:
    """Results of one sample of a group: each a value and its design-based standard error."""

    st_effect: tuple[float, float]
    share_detected: tuple[float, float]
    share_significant: tuple[float, float]


@dataclass(frozen=True)
class Covered:
    """One measure of one group over many draws."""

    group: int
    measure: str
    sample: int
    of: int
    value: float
    """Of everybody."""
    share: float
    """Of the draws whose interval by the design covers that."""
    spread: float
    """Standard deviation of the draws."""
    error: float
    """Root of the mean variance that the design gives."""


@dataclass(frozen=True)
class _Group:
    """The searches and regressions of one group, of all complainants."""

    sides: Sides
    values: Floats
    denied: Floats
    lists: Lists
    pair: Pair
    """Of situation testing, or of CST where there are counterfactuals."""
    row: Longs
    settings: CstSettings

    def sampled(self, is_drawn: Bools, part: tuple[int, int]) -> Sampled:
        """What those drawn ``(n,)`` say."""
        some = is_drawn[self.lists.row]
        lists = Lists(self.lists.row[some], self.lists.control[some], self.lists.test[some])
        effect: Contrast = contrast(self.sides, self.values, lists, part)
        tests = judge(Pair(*(counts[:, is_drawn[self.row]] for counts in self.pair)), self.settings)
        return Sampled(
            (effect.value(self.denied), effect.sampling**0.5),
            _share(tests.detected(self.settings.tau)[0], part),
            _share(tests.significant(self.settings.alpha)[0], part),
        )


def _share(met: Floats, part: tuple[int, int]) -> tuple[float, float]:
    finite_values = met[~np.isnan(met)]
    value = float(finite_values.mean())
    return value, design_variance((finite_values - value) / len(finite_values), *part) ** 0.5


def coverage(problem: Problem, settings: CstSettings, queries: int, draws: int, fewest: int) -> Iterator[Covered]:
    """Coverage of the effect of situation testing and of the shares detected and significant, group by group.

    Args:
        problem: Rows with counterfactuals, or without.
        settings: ``k`` alone is looked at.
        queries: Complainants drawn each time, of all groups in their shares.
        draws: Each by a seed of its own, from 0.
        fewest: Complainants drawn below which a group is left out.
    """
    once = settings.model_copy(update={"ks": (settings.k,)})
    ground = lay(problem, once, problem.group, applicants_of(problem).counterfactuals)
    frame, counts = Frame(ground), np.bincount(problem.group, minlength=len(problem.groups))
    counts[problem.reference] = 0
    sizes = allotted(counts, queries, floor=0)
    ids = [str(row) for row in range(len(problem.group))]
    samples = [Asked.of(hashes(ids, seed), problem.group, sizes) for seed in range(draws)]
    for group in np.flatnonzero(sizes >= fewest).tolist():
        group_search = _group(frame, group, compare(ground, group, np.flatnonzero(problem.group == group)))
        if group_search is None:
            continue
        everybody = len(group_search.row)
        of_all = group_search.sampled(np.ones(len(group_search.values), np.bool_), (everybody, everybody))
        of_samples = [group_search.sampled(sample.drawn, sample.part(group)) for sample in samples]
        part = samples[0].part(group)
        for name in (field.name for field in fields(Sampled)):
            value = getattr(of_all, name)[0]
            values, errors = np.array([getattr(of_sample, name) for of_sample in of_samples]).T
            covered = float((np.abs(values - value) <= Z * errors).mean())
            error = float(np.sqrt((errors**2).mean()))
            yield Covered(group, name, *part, value, covered, float(values.std(ddof=1)), error)


def _group(frame: Frame, group: int, compared: Comparison) -> _Group | None:
    rows = frame.rows(group)
    sides = sides_of(frame.designs, frame.columns.values, rows, frame.denied)
    if sides is None:
        return None
    control, test = compared.control.members.rows, compared.factual.members.rows
    full = (control[:, 0] != NOBODY) & (test[:, 0] != NOBODY)
    lists = Lists(compared.row[full], control[full], test[full])
    pair = compared.pairs.get(CST, next(iter(compared.pairs.values())))
    return _Group(sides, frame.columns.values, frame.denied, lists, pair, compared.row, frame.settings)


def texas(data: Path, draws: int = 200) -> Iterator[tuple[str, Covered]]:
    """Judged groups of Texas 2022 by the lender's decisions: 2,000 complainants of 20,000 rows, each time.

    Args:
        data: The directory that holds the file.
        draws: Samples of each protected attribute.
    """
    spec = texas_spec(data, TEXAS_LENDER)
    for protected in spec.protected:
        world = cst_problem.scene(spec, protected.name)
        problem = world.problem
        imagined = world.imagined(protected.name, np.flatnonzero(problem.group != problem.reference))
        case = case_of(replace(problem, applicants=replace(applicants_of(problem), counterfactuals=imagined)))
        settings = spec.methods.of(CstSettings) or CstSettings()
        for group_coverage in coverage(sample(case, TEXAS_ROWS), settings, TEXAS_QUERIES, draws, FEWEST):
            name = problem.groups[group_coverage.group]
            if protected.judges(name):
                yield name, group_coverage


# --------------------------------------------------------------------------------------------------------------------
# Times CST and measures its memory on the paper's grid, on a million rows, and on a year of complainants.
#
# Rows, decisions and counterfactuals are made once by the stages of an audit, which is timed apart. Every measurement
# then runs in a process of its own (``work``), so that its peak memory is its own.
#
# Scope: runs and targets. The timed work: ``work``.


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

_run = partial(apart, "research.cst.timed_work")

TEXAS_YEAR = {
    "methods": "{fgce: null, cst: {k: 50, ks: [50], null_permutations: 0, sensitivity: false}}",
    "explain.decision_makers": "[model]",
}
"""Everybody once: not again with labels permuted, nor without an edge of the causal graph."""


def _lines(room: Room) -> Iterator[Row]:
    yield from _grid(room)
    yield from _search(min(room.limit, MILLION))
    start = time.perf_counter()
    spec = texas_spec(room.data, TEXAS_YEAR)
    scene = cst_problem.scene(spec, "race")
    imagined = scene.imagined("race", np.flatnonzero(complainants(scene.problem)))
    applicants = replace(applicants_of(scene.problem), counterfactuals=imagined)
    case = Piped(case_of(replace(scene.problem, applicants=applicants)))
    yield row(TEXAS, None, "apart: ingest, preprocess, score, imagine", seconds=time.perf_counter() - start)
    measurement = _run("detect", case, (spec.methods.of(CstSettings) or CstSettings()).model_dump_json(), room.limit)
    met = below(measurement["seconds"], MOST_YEAR_S, " s")
    yield _of_case(TEXAS, measurement, "complainants of all groups but the white, k = 50", **met)
    met = below(measurement["peak_mb"], MOST_YEAR_MB, " MB")
    yield row(TEXAS, measurement["rows"], "peak memory", peak_mb=measurement["peak_mb"], **met)
    # memory among as many rows as the largest sample of a national year has, its evidence made and dropped
    measurement = _run("national", min(room.limit, LARGEST), MOST_NEIGHBOURS)
    text = f"{measurement['evidence']:,} rows of evidence; {measurement['data_mb']:.0f} MB with the rows alone"
    met = below(measurement["peak_mb"], MOST_LARGEST_MB, " MB")
    yield timed_row(DRAWN, measurement, f"complainants of five groups, k = {MOST_NEIGHBOURS}", found=text, **met)
    yield from _samples(room)


def _grid(room: Room) -> Iterator[Row]:
    """The data sets of the paper, with all methods and numbers of neighbours, and their total."""
    grids = [(e, grid) for e in EXPERIMENTS.values() for grid in e.grids if grid.tabled]
    start = time.perf_counter()
    prepared = [experiment.prepared(grid, room.data) for experiment, grid in grids]
    cases = [Piped(case_of(case.problem)) for case in prepared]
    settings = prepared[-1].settings.model_copy(update={"sensitivity": False}).model_dump_json()
    yield row("paper", None, "apart: ingest, preprocess, score, imagine", seconds=time.perf_counter() - start)
    start = time.perf_counter()
    _run("detect", cases[0], settings, 1)  # compiles, so that no process below spends time on it
    yield row("paper", 1, "apart: start Python, compile what is not cached", seconds=time.perf_counter() - start)
    measurements = [_run("detect", case, settings, room.limit) for case in cases]
    for (_, grid), measurement in zip(grids, measurements, strict=True):
        counts = [f"{variant} {' '.join(map(str, numbers))}" for variant, numbers in measurement["detected"].items()]
        name, text = f"{Path(grid.spec).stem}, {grid.group}", "detected: " + "; ".join(counts)
        yield _of_case(name, measurement, "3 methods, 4 k", found=text)
    total = sum(measurement["cpu_s"] for measurement in measurements)
    seconds = sum(measurement["seconds"] for measurement in measurements)
    met = at_most(total, MOST_GRID_CPU_S, " CPU s")
    yield row("paper", None, "whole grid: 4 data sets, 3 methods, 4 k", seconds=seconds, cpu_s=total, **met)


def _search(rows: int) -> Iterator[Row]:
    """Exact neighbours among drawn applicants, and scikit-learn's of a sample in the same process."""
    measurement = _run("search", rows, min(NEIGHBOURS, rows), MEMORY_MB)
    at, total = (DRAWN, measurement["rows"]), measurement["index_s"] + measurement["search_s"]
    per_s, brute = measurement["queries"] / total, measurement["sample"] / measurement["brute_s"]
    what = f"{measurement['queries']:,} queries, k = {NEIGHBOURS}, 7 numeric and 5 nominal columns"
    index = f"index {measurement['index_s']:.1f} s, search {measurement['search_s']:.1f} s"
    yield row(*at, what, seconds=total, per_s=round(per_s), found=index, **at_most(total, MOST_SEARCH_S, " s"))
    yield row(
        *at,
        f"scikit-learn, brute force, {measurement['sample']} queries",
        seconds=measurement["brute_s"],
        per_s=round(brute),
    )
    ratio, most = per_s / brute, measurement["furthest_apart"]
    yield row(*at, "queries per second against scikit-learn's", ratio=ratio, **at_least(ratio, LEAST_RATIO))
    met = against("equal", most <= MOST_APART)
    yield row(*at, "distances against scikit-learn's", found=f"at most {most:.1g} apart", **met)
    grown = measurement["peak_mb"] - measurement["indexed_mb"]
    met = at_most(grown, MEMORY_MB, " MB more, the setting")
    text = f"{measurement['data_mb']:.0f} MB with the rows, {measurement['indexed_mb']:.0f} indexing them"
    text += f", {grown:.0f} more searching"
    yield row(*at, "peak memory", peak_mb=measurement["peak_mb"], found=text, **met)


def _samples(room: Room) -> Iterator[Row]:
    """How often samples of the complainants of Texas cover the result of all of them, by the variance of the design."""
    coverages = list(texas(room.data, room.reps or DRAWS))
    for measure in ("st_effect", "share_detected", "share_significant"):
        measure_coverages = [
            (name, group_coverage) for name, group_coverage in coverages if group_coverage.measure == measure
        ]
        shares = [group_coverage.share for _, group_coverage in measure_coverages]
        text = ", ".join(
            f"{name} {group_coverage.share:.1%} ({group_coverage.sample} of {group_coverage.of})"
            for name, group_coverage in measure_coverages
        )
        mean = float(np.mean(shares))
        met = {} if measure == "share_significant" else against("93 to 97 %", 0.93 <= mean <= 0.97)
        yield row(TEXAS, TEXAS_ROWS, f"{measure}: samples cover all complainants", ratio=mean, found=text, **met)


def _of_case(name: str, measurement: Mapping[str, Any], what: str, **fields: Any) -> Row:
    """Times of a case, and its number of complainants unless more is found."""
    text = f"{measurement['complainants']:,} complainants, {measurement['refused']:,} of them refused"
    per_s = per_second(measurement, measurement["complainants"])
    return timed_row(name, measurement, what, **{"peak_mb": None, "per_s": per_s, "found": text, **fields})


BENCH = Bench(
    "cst",
    _lines,
    (*(source for experiment in EXPERIMENTS.values() for source in experiment.sources), TEXAS_FILE),
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
