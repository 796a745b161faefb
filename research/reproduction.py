"""Runs the experiments of the papers, keeps and prints their results."""

import json
import logging
import math
import multiprocessing
import os
import platform
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.text import Text

from flows.partitions.runners import shared_cores
from research import figures
from research.figures import (
    ASKED,
    BESIDE,
    CONFIRMED,
    REPRODUCED,
    Cell,
    Figure,
    Line,
    Paper,
    Reproduced,
    Row,
    Spread,
    Status,
    Value,
    Verdict,
    entries,
    ledger,
    require,
    shipped,
)
from schemas.errors import SpecError, nearest
from tasks.pipeline.digests import code_digest, versions
from tasks.pipeline.progress import course_of, stage_began, stage_ended
from tasks.pipeline.registry import METHODS

# --------------------------------------------------------------------------------------------------------------------
# The lines of a reproduction, for people and for programmes.
#
# Many cells agree, and nobody reads them: the short form has one row per table, quantity and group with the number of
# cells that agree, and one row for every cell that does not.
#
# Scope: the form of the output. What a verdict means: ``research.figures``.


_STYLE = {
    Verdict.AGREES: "green",
    Verdict.DIFFERS: "bold red",
    Verdict.APART: "red",
    Verdict.OTHERWISE: "yellow",
    Verdict.INFORMATION: "dim",
}

_COLUMNS = ("source", "what", "group", "published", "obtained", "difference", "ratio", "tolerance", "verdict")

_OTHERWISE = (
    f"'{CONFIRMED.capitalize()}' means that the authors' own code, or a faster derivation checked against it, "
    "gives our figure for that cell, and that it is the paper that prints another."
)

_AT = {
    "coverage": ("d", "k"),
    "coverage_on_kauc_grid": ("d", "k"),
    "least_cost": ("c", "k"),
    "acf": ("attribute",),
    "smallest_cost": ("c",),
    **dict.fromkeys(("p_c", "p_t", "delta", "low", "high", "unfair"), ("complainant",)),
    "imagined": ("complainant", "column"),
    "coefficient": ("column", "cause"),
    **dict.fromkeys(("factual_values_differing", "counterfactual_values_differing"), ("column",)),
    **dict.fromkeys(("blocks_made_fair", "unfair_blocks"), ("blocks", "t")),
    "overall_ratio": ("t", "blocks"),
    **dict.fromkeys(("unfair_before", "unfair_after"), ("blocks", "t")),
    **dict.fromkeys(("rkl_by_records", "rnd_by_records", "rrd_by_records"), ("records",)),
    "mean_around": ("group", "complainant"),
    **dict.fromkeys(("mean_cost", "mean_cost_face", "mean_cost_over_face", "rows_covered"), ("cost", "k")),
    **dict.fromkeys(
        ("feasible_share", "feasible_mean_cost", "least_feasible_share", "largest_feasible_share"),
        ("epsilon", "removed"),
    ),
    **dict.fromkeys(("mean_factual", "mean_counterfactual", "mean_shift"), ("column",)),
    **dict.fromkeys(("initial_ratio", "mean_block_ratio", "overall_ratio_after"), ("records",)),
    **dict.fromkeys(("unfair_blocks_percent", "protected_modified_percent"), ("records",)),
    **dict.fromkeys(("points_changed", "recourse_cost", "ratio", "listed", "rkl", "rnd", "rrd"), ("method",)),
}
"""Names of what a cell is at, where its quantity does not begin with it (kauc: k, dauc: d, cauc: c)."""

_BY_VARIANT = ("variant", "k")
"""The same of other cells that are at a word."""


def tables(lines: Sequence[Line], *, every_cell: bool) -> Iterator[tuple[str, list[dict[str, str | Text]]]]:
    """The rows of a table for each data set, each with the data set's name."""
    for dataset, of_dataset in groupby(lines, key=lambda line: line.dataset):
        yield dataset, [dict(zip(_COLUMNS, row, strict=True)) for row in _rows(list(of_dataset), every_cell)]


def summary(lines: Sequence[Line]) -> str:
    """Counts the lines by verdict: against what the paper prints, and against the reference outputs.

    Lines beside them are only counted.
    """
    beside = [line for line in lines if line.figure.source == BESIDE]
    default_lines = [line for line in lines if line.figure.source == ASKED]
    reference = [line for line in lines if line.figure.reference or line.figure.source == REPRODUCED]
    other_sources = (REPRODUCED, ASKED, BESIDE)
    printed = [line for line in lines if not line.figure.reference and line.figure.source not in other_sources]
    sentences = [_counted("against the paper's printed figures", printed), _counted("against the reference", reference)]
    if default_lines:
        sentences.append(_counted("against what is asked of the default", default_lines))
    if beside:
        sentences.append(f"shown with them, without a figure to compare with, {len(beside):,}")
    if any(line.why == CONFIRMED for line in lines):
        sentences.append(_OTHERWISE)
    return "\n".join(sentences)


def _counted(title: str, lines: Sequence[Line]) -> str:
    counts = Counter(line.verdict for line in lines)
    verdicts = [verdict for verdict in Verdict if counts[verdict] or verdict is Verdict.DIFFERS]
    return f"{title}, {len(lines):,}: " + ", ".join(f"{verdict.value} {counts[verdict]:,}" for verdict in verdicts)


def as_json(lines: Sequence[Line]) -> dict[str, Any]:
    """Returns the lines as plain values; a figure without a value is null."""
    counts = Counter(line.verdict.value for line in lines)
    return {"counts": {v.value: counts[v.value] for v in Verdict}, "lines": [_plain(line) for line in lines]}


def _plain(line: Line) -> dict[str, Any]:
    cell = line.figure.cell
    return {
        "dataset": line.dataset,
        "source": line.figure.source,
        "reference": line.figure.reference,
        "what": cell.quantity,
        "group": cell.group,
        "at": list(cell.at),
        "published": _finite(line.figure.value),
        "obtained": _finite(line.obtained),
        "unfilled": line.obtained is None,
        "difference": line.difference,
        "ratio": line.ratio,
        "tolerance": line.tolerance,
        "of_digits": line.figure.tolerance,
        "published_spread": _spread(line.figure.spread),
        "obtained_spread": _spread(line.spread),
        "judged": line.figure.has_verdict,
        "at_most": line.figure.at_most,
        "at_least": line.figure.at_least,
        "verdict": line.verdict.value,
        "why": line.why,
    }


def _spread(spread: Spread | None) -> dict[str, Any] | None:
    return None if spread is None else {"deviation": _finite(spread.deviation), "repeats": spread.repeats}


def _finite(value: Value | None) -> Value | None:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _rows(lines: list[Line], every_cell: bool) -> Iterator[tuple[str | Text, ...]]:
    """The rows of one data set, in the order in which its sources were read."""
    series: dict[tuple[str, str, str], list[Line]] = {}
    for line in lines:
        cell = line.figure.cell
        series.setdefault((line.figure.source, cell.quantity, cell.group), []).append(line)
    for (source, quantity, group), members in series.items():
        agree = sum(line.verdict is Verdict.AGREES for line in members)
        if len(members) == 1 or every_cell:
            yield from map(_row, members)
            continue
        if agree:
            count = Text(f"{agree} of {len(members)} cells agree", style=_STYLE[Verdict.AGREES])
            yield source, _words(quantity), group, "", "", _furthest(members), "", "", count
        yield from (_row(line) for line in members if line.verdict is not Verdict.AGREES)


def _furthest(members: Sequence[Line]) -> str:
    """The largest difference of cells that agree, if there is any."""
    agreeing = (line for line in members if line.verdict is Verdict.AGREES)
    furthest = max(abs(line.difference or 0.0) for line in agreeing)
    return f"<= {furthest:.4g}" if furthest else ""


def _row(line: Line) -> tuple[str | Text, ...]:
    cell = line.figure.cell
    worded = bool(cell.at) and isinstance(cell.at[0], str)
    names = _AT.get(cell.quantity, _BY_VARIANT if worded else cell.quantity[:1])
    at = ", ".join(f"{name} = {_number(value)}" for name, value in zip(names, cell.at, strict=False))
    difference = "" if line.difference is None else f"{line.difference:+.4g}"
    verdict = Text(line.verdict.value, style=_STYLE[line.verdict])
    if line.why:
        verdict.append(f": {line.why}")
    published = _number(line.figure.value)
    bound = "at most " if line.figure.at_most else "at least " if line.figure.at_least else ""
    ratio = "" if line.ratio is None else f"{line.ratio:.3g}"
    tolerance = ""
    if line.figure.has_verdict and not isinstance(line.figure.value, str):  # with the two spreads that it follows from
        spreads = [(name, spread) for name, spread in (("paper", line.figure.spread), ("ours", line.spread)) if spread]
        parts = [f"{name} {_number(s.deviation)} of {s.repeats}" for name, s in spreads if s.is_known]
        tolerance = f"{line.tolerance:.3g}" + (f" (sd {', '.join(parts)})" if line.figure.spread and parts else "")
    cells = (f"{bound}{published}", _number(line.obtained), difference, ratio, tolerance)
    what = f"{_words(cell.quantity)}, {at}" if at else _words(cell.quantity)
    return (line.figure.source, Text(what), cell.group, *cells, verdict)


def _words(quantity: str) -> str:
    return quantity.replace("_", " ")


def _number(value: Value | None) -> str:
    """At most six digits and no exponent; of a digest the beginning."""
    if value is None:
        return "none"
    if isinstance(value, str):
        return value if len(value) < 40 else value[:12]
    if math.isnan(value):
        return "undefined"
    return f"{value:,.4f}".rstrip("0").rstrip(".")


# --------------------------------------------------------------------------------------------------------------------
# Runs a paper's experiments under the ``paper`` profile and compares them with paper and reference.
#
# Scope: the choice of data sets and sizes. Each method's ``Experiments`` in its ``reproduction.experiments`` declare
# data sets and figures (``research.figures``). Comparison: ``research.figures``.


log = logging.getLogger("evenhand")

ALL_PAPERS = "all"
"""Stands for every paper."""


@dataclass(frozen=True)
class Asked:
    """Which experiments of a paper are run, at which size."""

    paper: str
    """The method, by its paper's acronym."""
    only: Sequence[str] = ()
    """Data sets; all if there is none."""
    quick: bool = False
    """The size that takes about a minute of one core."""
    size: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the paper's ``Experiments``; None where one is left out."""


def reproduce(settings: Asked, data: Path) -> dict[str, Reproduced]:
    """Runs data set after data set: lines for the figures of paper and reference, and drawings.

    Args:
        settings: What is run.
        data: Directory that holds ``data/`` and ``golden/``.

    Raises:
        SpecError: The paper, a data set or a baseline is not known, or the paper has no such field.
        InfrastructureError: A file is missing; nothing is run then.
    """
    paper = settings.paper
    if paper not in METHODS:
        raise SpecError(f"no paper {paper!r}; {nearest(paper, [*METHODS, ALL_PAPERS])}")
    size = {name: value for name, value in settings.size.items() if value is not None}
    experiments = _of_size(paper, {**(_experiments(paper).quick if settings.quick else {}), **size})
    names = tuple(experiments.experiments)
    for name in settings.only:
        if name not in names:
            raise SpecError(f"--only {name}: no such data set of {paper}; {nearest(name, names)}")
    chosen = [name for name in names if not settings.only or name in settings.only]
    require(data, [file for name in chosen for file in experiments.experiments[name].files(data)])
    return {name: _run(experiments, name, data) for name in chosen}


def experiments_of(paper: str, quick: bool) -> Paper:
    """The experiments of a paper at their own size, or at the quick one."""
    paper_class = _experiments(paper)
    return paper_class.in_a_minute() if quick else paper_class()


def _of_size(paper: str, size: Mapping[str, Any]) -> Paper:
    """The experiments of a paper, at another size than their own if one is named."""
    for name in size:
        taking = papers_taking(name)
        if paper not in taking:
            raise SpecError(f"reproduce {paper} takes no --{name}; reproduce {' and '.join(taking)} does")
    experiments = _experiments(paper)
    for name in size.get("baseline") or ():
        if name not in experiments.known_baselines:
            raise SpecError(
                f"--baseline {name}: no such baseline of {paper}; {nearest(name, experiments.known_baselines)}"
            )
    return experiments(**size)


def papers_taking(size: str) -> list[str]:
    """Returns the papers with a field of this name in their ``Experiments``, by which they are made smaller."""
    return [paper for paper in METHODS if size in {field.name for field in fields(_experiments(paper))}]


def _experiments(paper: str) -> type[Paper]:
    paper_class: type[Paper] = import_module(f"research.{paper}.experiments").Experiments
    return paper_class


def _run(experiments: Paper, name: str, data: Path) -> Reproduced:
    start = time.perf_counter()
    result = experiments.run(name, data)
    log.info("%s: %d figures compared, %.1f s", name, len(result.lines), time.perf_counter() - start)
    return result


# --------------------------------------------------------------------------------------------------------------------
# One data set of one paper, run and kept: what a reproduction of all papers consists of, and resumes from.


@dataclass(frozen=True)
class Part:
    """A data set of a paper."""

    paper: str
    dataset: str
    quick: bool
    data: Path

    @property
    def name(self) -> str:
        """As progress and files have it."""
        return f"{self.paper} {self.dataset}"

    def file(self, folder: Path) -> Path:
        """Where its result is kept."""
        return folder / f"{self.paper}-{self.dataset}{'-quick' if self.quick else ''}.json"

    def key(self) -> str:
        """What its result depends on: code, libraries, published figures, the papers' specs, and its files.

        Remarks are left out, as they are read anew each time.
        """
        specs = sorted(shipped("audits/paper/loan.yaml").parent.glob("*.yaml"))
        digest = code_digest([f"research.{self.paper}.experiments"], specs)
        published = {name: tables for name, tables in figures.read(self.paper).items() if name != "remark"}
        files = experiments_of(self.paper, self.quick).experiments[self.dataset].files(self.data)
        file_stats = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files if path.is_file()]
        return json.dumps([digest, published, versions(), file_stats], sort_keys=True)


@dataclass(frozen=True)
class Done:
    """What a part gave."""

    part: Part
    seconds: float
    """Of one core, at the time that it was run."""
    lines: list[Line]
    drawings: list[dict[str, Any]]
    """Plain, as in JSON."""
    machine: str = ""
    """What it was run on."""


def done(part: Part, folder: Path | None) -> Done:
    """A part from what is kept, or run now and kept."""
    cached = _read(part, folder) if folder else None
    return cached or _parts_run(part, folder)


def is_kept(part: Part, folder: Path | None) -> bool:
    """Whether a result of this very code and these files is kept."""
    return folder is not None and _read(part, folder) is not None


def _parts_run(part: Part, folder: Path | None) -> Done:
    began = time.process_time()
    experiment = experiments_of(part.paper, part.quick).run(part.dataset, part.data)
    result = Done(
        part,
        time.process_time() - began,
        experiment.lines,
        [drawing.plain() for drawing in experiment.drawings],
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
    )
    if folder:
        plain = as_json(result.lines) | {"key": part.key(), "seconds": result.seconds, "drawings": result.drawings}
        plain |= {"machine": result.machine}
        draft = part.file(folder).with_suffix(".draft")
        folder.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(plain, indent=1))
        draft.replace(part.file(folder))
    return result


def _read(part: Part, folder: Path) -> Done | None:
    """None where nothing is kept, or of other code, libraries or files."""
    file = part.file(folder)
    if not file.is_file():
        return None
    content = json.loads(file.read_text())
    if content.get("key") != part.key():
        return None
    lines = [_line(line) for line in content["lines"]]
    # the verdicts are those of the present remarks; a line without a value of ours stays as it is
    groups = experiments_of(part.paper, part.quick).experiments[part.dataset].groups
    remarks = figures.published_remarks(figures.read(part.paper), part.dataset, groups)
    values = {line.figure.cell: line.obtained for line in lines if line.obtained is not None}
    spreads = {line.figure.cell: line.spread for line in lines if line.spread is not None}
    with_verdicts = figures.compare(part.dataset, [line.figure for line in lines], values, remarks, spreads)
    lines = [old if old.obtained is None else new for old, new in zip(lines, with_verdicts, strict=True)]
    return Done(part, content["seconds"], lines, content["drawings"], content["machine"])


def _line(record: Mapping[str, Any]) -> Line:
    """The line that was written; a value that is no number comes back as NaN."""
    figure = Figure(
        record["source"],
        record["reference"],
        Cell(record["what"], record["group"], tuple(record["at"])),
        _value(record["published"]),
        record["of_digits"],
        at_most=record["at_most"],
        at_least=record["at_least"],
        spread=_read_spread(record["published_spread"]),
        has_verdict=record["judged"],
    )
    obtained = None if record["unfilled"] else _value(record["obtained"])
    verdict, our_spread = Verdict(record["verdict"]), _read_spread(record["obtained_spread"])
    return Line(record["dataset"], figure, obtained, verdict, record["why"], our_spread)


def _read_spread(record: Mapping[str, Any] | None) -> Spread | None:
    return None if record is None else Spread(float(_value(record["deviation"])), record["repeats"])


def _value(number: Value | None) -> Value:
    return float("nan") if number is None else number


# --------------------------------------------------------------------------------------------------------------------
# All papers in turn: every data set in a process of its own, what is done kept, and the ledger over them.


@dataclass(frozen=True)
class Whole:
    """What a reproduction of all papers is given."""

    data: Path
    quick: bool = False
    results: Path | None = None
    """Folder with the results of data sets, from which an interrupted one goes on; None keeps nothing."""
    jobs: int = 2
    """Data sets at a time, each with one thread."""
    kept: bool = False
    """Whether nothing is run, and only what is kept is taken."""

    def parts(self) -> list[Part]:
        """The data sets of all papers, in the order of reports.

        Raises:
            InfrastructureError: A file is missing that is to be read; nothing is run then.
        """
        papers = {paper: experiments_of(paper, self.quick).experiments for paper in METHODS}
        if not self.kept:
            experiments = [experiment for datasets in papers.values() for experiment in datasets.values()]
            require(self.data, [file for experiment in experiments for file in experiment.files(self.data)])
        return [Part(paper, name, self.quick, self.data) for paper, datasets in papers.items() for name in datasets]


def reproduce_all(settings: Whole) -> list[Done]:
    """Runs what is not kept yet, the papers with networks first as they take longest; returns all in their order.

    In place of a quick run stands a kept result of the full size, as it is the better one.

    Raises:
        InfrastructureError: A file is missing; nothing is run then.
    """
    full_sizes = [replace(part, quick=False) for part in settings.parts()]
    parts = [
        full if is_kept(full, settings.results) else part
        for full, part in zip(full_sizes, settings.parts(), strict=True)
    ]
    results = {part: done(part, settings.results) for part in parts if is_kept(part, settings.results)}
    for part in results:
        log.info("%s: kept from before", part.name)
    if settings.kept:
        return [results[part] for part in parts if part in results]
    remaining = sorted(
        (part for part in parts if part not in results),
        key=lambda part: _LONG.index(part.paper) if part.paper in _LONG else len(_LONG),
    )
    with course_of([part.name for part in remaining], [None] * len(remaining)):
        for result in _whole_run(remaining, settings):
            results[result.part] = result
    return [results[part] for part in parts]


_LONG = ("cec", "gcfn", "raguel", "fgce")
"""Papers that take longest."""


def _whole_run(parts: Sequence[Part], settings: Whole) -> Iterator[Done]:
    """Yields parts as they end, each from a separate process with one thread."""
    remaining, waiting = list(enumerate(parts, start=1)), dict[Future[Done], int]()
    context = multiprocessing.get_context("spawn")
    with (
        shared_cores(settings.jobs, single_thread=True),
        ProcessPoolExecutor(settings.jobs, mp_context=context, max_tasks_per_child=1) as pool,
    ):
        while remaining or waiting:
            while remaining and len(waiting) < settings.jobs:
                n, part = remaining.pop(0)
                waiting[pool.submit(done, part, settings.results)] = n
                stage_began(n)
            ended, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in ended:
                result = future.result()
                stage_ended(f"{len(result.lines):,} figures, {result.seconds:,.0f} CPU s", waiting.pop(future))
                yield result


def ledgers(results: Sequence[Done]) -> Mapping[str, list[Row]]:
    """The ledger of each paper."""
    return {paper: _ledger(paper, [result for result in results if result.part.paper == paper]) for paper in METHODS}


def _ledger(paper: str, results: Sequence[Done]) -> list[Row]:
    lines = [line for result in results for line in result.lines]
    drawn = [(result.part.dataset, drawing["name"]) for result in results for drawing in result.drawings]
    unrun = set(_experiments(paper).experiments) - {result.part.dataset for result in results}
    listed = []
    for entry in entries(figures.read(paper)):  # nothing is missing of a data set that was not run
        drawings = frozenset(drawing for drawing in entry.drawings if drawing[0] not in unrun)
        listed.append(replace(entry, drawings=drawings))
    rows = ledger(listed, lines, drawn)
    return [
        replace(row, status=(Status.NOT_RUN,)) if row.entry.datasets and unrun.issuperset(row.entry.datasets) else row
        for row in rows
    ]
