"""Times RAGUEL's recourse costs and both of its algorithms.

People are read once by the stages of an audit, which is timed apart. Every measurement then runs in a process of its
own (``work``), on one thread but for the sort of the longest list. Compilation is timed apart. Growth is measured in
CPU seconds, because on a shared machine a longer run is interrupted more often.

Scope: runs and targets. The timed work: ``work``.
"""

import time
from collections.abc import Iterator, Mapping
from functools import partial
from math import log
from typing import Any

from research import benchmark
from research.raguel.experiments import PEOPLE, judged

LEAST_PER_S = {"closed": 10_000_000, "bounded": 200_000}
MOST_CASE_S = 0.003
MOST_ONE_BY_ONE_S, MOST_IN_BLOCKS_S = 0.25, 0.02
MOST_MILLION_S, MOST_MILLION_MB = 0.5, 1_000
MOST_GROWTH = 1.1

RECORDS, GROWTH = 1_000_000, (10_000, 100_000, 1_000_000)
"""Of costs and of a drawn list; of lists of growing length."""
FEWEST, FEW_CHANGES = 1_000, 2
FREE_MB = 1_500

EVERYBODY = {
    "source__keep": "{}",
    "protected": "[{name: marital status, columns: [MARRIAGE], reference: not married, "
    "groups: {married: [1], not married: [0, 2, 3]}}]",
}
"""All 30,000 clients: those with another or an unknown marital status count as not married here."""
DATA: tuple[tuple[str, Mapping[str, str]], ...] = (("german", {}), ("default-credit", EVERYBODY))
TITLES = {"closed": "costs, closed form, 10 attributes", "bounded": "costs within bounds, 10 attributes"}
GERMAN, CLIENTS, DRAWN = "German Credit", "credit card clients", "drawn lists"

_run = partial(benchmark.apart, "research.raguel.timed_work")


def _lines(room: benchmark.Room) -> Iterator[benchmark.Row]:
    start = time.perf_counter()
    german, clients = (_people(room, name, overrides) for name, overrides in DATA)
    yield benchmark.row("both", None, "apart: ingest, preprocess, classifier", seconds=time.perf_counter() - start)
    yield from _costs(room.rows or RECORDS)
    yield from _steps(german)
    yield from _rerankings(clients)
    yield from _lists(room.rows or RECORDS)


def _people(room: benchmark.Room, name: str, overrides: Mapping[str, str]) -> benchmark.Piped:
    """A data set read and judged by a classifier."""
    from research.raguel import series
    from research.raguel.timed_work import People  # scikit-learn takes a second to import

    verdicts = judged(PEOPLE[name], room.data, **overrides)
    actions = series.actions(verdicts, bounded=False)
    return benchmark.Piped(People(verdicts.values, verdicts.people.group, verdicts.boundary, actions))


def _costs(limit: int) -> Iterator[benchmark.Row]:
    for kind, least in LEAST_PER_S.items():
        report = _run("costs", limit, kind)
        per_s = benchmark.per_second(report)
        yield _row(
            DRAWN,
            report,
            TITLES[kind],
            per_s=per_s,
            **benchmark.against(f"at least {least:,} a second", per_s >= least),
        )


def _steps(people: benchmark.Piped) -> Iterator[benchmark.Row]:
    """Everybody of German Credit: in whole steps, and with few changes too."""
    for title, most in (("whole steps", 0), (f"whole steps, {FEW_CHANGES} attributes at most", FEW_CHANGES)):
        report = _run("steps", people, most)
        case_s = report["seconds"] / report["cases"]
        met = benchmark.below(1000 * case_s, 1000 * MOST_CASE_S, " ms each")
        finding = f"{1000 * case_s:.3f} ms a case, {report['refused']} out of reach, {report['unproven']} not proven"
        yield _row(GERMAN, report, title, per_s=round(1 / case_s), text=finding, **met)


def _rerankings(people: benchmark.Piped) -> Iterator[benchmark.Row]:
    """Everybody of the credit card clients, by both algorithms at every setting of the paper."""
    report = _run("one_by_one", people)
    met = benchmark.below(1000 * report["seconds"], 1000 * MOST_ONE_BY_ONE_S, " ms")
    yield _row(CLIENTS, report, "Algorithm 1, real steps, slowest tolerance", **met)
    report = _run("in_blocks", people)
    blocks, tolerance = report["slowest"]
    met = benchmark.below(1000 * report["seconds"], 1000 * MOST_IN_BLOCKS_S, " ms")
    finding = f"slowest: {blocks} blocks, t = {tolerance:.3f}; median setting {1000 * report['median_s']:.1f} ms"
    yield _row(CLIENTS, report, "Algorithm 2, slowest setting of the grid", text=finding, **met)


def _lists(limit: int) -> Iterator[benchmark.Row]:
    """Lists of growing length in blocks of 100."""
    lengths = [length for length in GROWTH if length < limit] + [limit]
    reports = {length: _run("drawn", length) for length in lengths}
    for length, report in reports.items():
        quick = report["seconds"] < MOST_MILLION_S and report["peak_mb"] < MOST_MILLION_MB
        met = (
            benchmark.against(f"below {MOST_MILLION_S:g} s and {MOST_MILLION_MB:,} MB", quick)
            if length == RECORDS
            else {}
        )
        finding = f"of it the sort {1000 * report['sort_s']:.1f} ms"
        yield _row(
            DRAWN, report, "blocks of 100, with the sort", per_s=benchmark.per_second(report), text=finding, **met
        )
    first, last = lengths[0], lengths[-1]
    if first < last:
        growth = log(reports[last]["cpu_s"] / reports[first]["cpu_s"]) / log(last / first)
        what = f"growth from {first:,} records: exponent of CPU time"
        yield benchmark.row(DRAWN, last, what, ratio=growth, **benchmark.at_most(growth, MOST_GROWTH))


def _row(name: str, report: Mapping[str, Any], what: str, text: str = "", **columns: Any) -> benchmark.Row:
    """The row of a process, with the time of compilation apart."""
    compiled = f"compiled apart in {report['compile_s']:.1f} s" if "compile_s" in report else ""
    findings = "; ".join(part for part in (text, compiled) if part)
    return benchmark.timed_row(name, report, what, text=findings or None, **columns)


BENCH = benchmark.Bench(
    "raguel",
    _lines,
    tuple(source for people in PEOPLE.values() for source in people.sources),
    fewest=FEWEST,
    why="with fewer nothing takes any time",
    memory_mb=FREE_MB,
)
TWIN = benchmark.Expected(
    "{block_counts: [10], tolerances: [0.3333], probes: 20}",
    (
        benchmark.Held(
            "recourse_cost_reference_over_group",
            (),
            ("direct",),
            "lower means deny more applicants, and not by so much more; costs are of the denied",
        ),
    ),
)
