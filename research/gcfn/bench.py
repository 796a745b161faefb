"""Measures what an ensemble of GCFN's generators costs, how that grows, and how good the generators are.

Rows are drawn. Every measurement runs in a process of its own (``work``). ``--savings`` compares settings that would
save time with five seeds of today's, on the applicants of Boston and of a drawn lender.

Scope: runs and targets. The timed work: ``work``.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING

from research import benchmark
from schemas.errors import SpecError

if TYPE_CHECKING:
    from research.gcfn.timed_work import SeedResult  # loads torch

MOST_CPU_S = 36.0
LEAST_RATIO = 2.0
"""Automatic differentiation over compiled gradients, in CPU seconds."""
LEAST_SLOPE = {0.5: 0.9, 0.1: 0.7}
"""By the standard deviation of the noise."""
MOST_ERROR = {0.5: 0.05}

NETWORKS, EPOCHS = 10, 300
EPOCHS_OF_FORMS = 6
BATCHES = {256: 10_000, 64: 1_989}
"""Size of a batch -> rows: by default, and as in the audit of the Boston data."""
ROWS, MANY_ROWS, FEWEST_ROWS = 10_000, 101_570, 1_000
"""Of the paper's synthetic and semi-synthetic data; and what lets either group fill a batch."""
EPOCHS_ON_MANY, EPOCHS_ON_CUDA = 10, 30
SEEDS = 5
FREE_MB = 1_500
"""Memory that has to be free: 101,570 rows, and what torch needs."""

LENDER_ROWS = 7_000
"""Drawn; some 4,000 are usable, and the groups Asian, Black and not available fill a batch."""

DRAWN = "equation 72"
TITLES = {
    "default": "ten GANs, default settings",
    "paper": "ten GANs, paper's settings",
    "quantile map": "quantile map",
}

_run = partial(benchmark.apart, "research.gcfn.timed_work")


def _lines(room: benchmark.Room) -> Iterator[benchmark.Row]:
    some = min(room.limit, ROWS)
    yield from _speed(room.rows or MANY_ROWS)
    yield from _forms(some)
    yield from _quality(some, SEEDS if room.rows is None else 1)
    yield from _accelerator(some)


def _speed(limit: int) -> Iterator[benchmark.Row]:
    """Ten networks together, one alone, and ten on ten times as many rows."""
    n = min(limit, ROWS)
    ten, single = (_run("speed", n, networks, EPOCHS, "cpu") for networks in (NETWORKS, 1))
    met = benchmark.at_most(ten["cpu_s"], MOST_CPU_S, " CPU s")
    yield benchmark.timed_row(DRAWN, ten, f"{NETWORKS} networks together, {EPOCHS} epochs", **met)
    yield benchmark.timed_row(DRAWN, single, f"one network alone, {EPOCHS} epochs")
    ratio = ten["cpu_s"] / single["cpu_s"]
    alone = f"{NETWORKS} together against one alone"
    yield benchmark.row(DRAWN, n, alone, ratio=ratio, found="CPU seconds; each network is computed by itself")
    many = _run("speed", min(limit, MANY_ROWS), NETWORKS, EPOCHS_ON_MANY, "cpu")
    at = (DRAWN, many["rows"])
    yield benchmark.timed_row(DRAWN, many, f"{NETWORKS} networks together, {EPOCHS_ON_MANY} epochs")
    growth = many["epoch_cpu_s"] / ten["epoch_cpu_s"]
    finding = f"CPU seconds of an epoch, for {many['rows'] / n:.2f} times the rows"
    yield benchmark.row(*at, "growth", ratio=growth, found=finding)
    remaining = (EPOCHS - EPOCHS_ON_MANY) * many["epoch_cpu_s"]
    finding = f"extrapolated: not run, {EPOCHS - EPOCHS_ON_MANY} more epochs at {many['epoch_cpu_s']:.2f} CPU s"
    yield benchmark.row(
        *at, f"{NETWORKS} networks together, {EPOCHS} epochs", cpu_s=many["cpu_s"] + remaining, found=finding
    )


def _forms(limit: int) -> Iterator[benchmark.Row]:
    """Compiled gradients against automatic differentiation, in one process and in turn."""
    for batch, rows in BATCHES.items():
        report = _run("forms", min(limit, rows), batch, EPOCHS_OF_FORMS)
        ratio = report["autograd"] / report["compiled"]
        text = f"automatic differentiation, {report['autograd']:.2f} CPU s, over compiled gradients"
        fields = {"cpu_s": report["compiled"], "ratio": ratio, "found": text, **benchmark.at_least(ratio, LEAST_RATIO)}
        yield benchmark.row(DRAWN, report["rows"], f"{NETWORKS} networks in batches of {batch}", **fields)


def _quality(rows: int, seeds: int) -> Iterator[benchmark.Row]:
    """Slope on the true noise and normalised error of the counterfactual, by settings and noise."""
    for noise, least in LEAST_SLOPE.items():
        for variant, title in TITLES.items():
            report = _run("quality", variant, noise, rows, seeds)
            slope, error = mean(report["slopes"]), mean(report["errors"])
            slopes = " ".join(f"{value:.3f}" for value in report["slopes"])
            errors = " ".join(f"{value:.4f}" for value in report["errors"])
            finding = f"slope {slope:.3f} ({slopes}), error {error:.4f} ({errors})"
            met: benchmark.Row = {}
            if variant == "default":
                most = MOST_ERROR.get(noise)
                target = f"slope at least {least:g}" + (f", error at most {most:g}" if most is not None else "")
                met = benchmark.against(target, slope >= least and (most is None or error <= most))
            what = f"noise {noise:g}, {title}, mean of seeds: {seeds}"
            yield benchmark.row(DRAWN, rows, what, cpu_s=report["cpu_s"], found=finding, **met)


def _savings(room: benchmark.Room) -> Iterator[benchmark.Row]:
    """Each candidate next to five seeds of today's setting: what it changes, and whether seeds explain it.

    Five other seeds of today's setting are the control: what differs no more than they do is no change either.

    Raises:
        SpecError: ``--rows`` is given.
    """
    from research.gcfn.timed_work import AUDITS, CANDIDATES, CONTROL, TODAY, SeedResult, limits_of

    if room.rows is not None:
        raise SpecError("bench gcfn --savings takes no --rows; with fewer rows no group of the lender fills a batch")
    for name in AUDITS:
        n = _run("applicants", name, LENDER_ROWS, room.place)["rows"]
        runs = dict[str, list[SeedResult]]()
        for candidate, how in CANDIDATES.items():
            answers = _run("seeded", room.place, name, candidate, SEEDS)["results"]
            runs[candidate] = [SeedResult(*answer) for answer in answers]
            if candidate != TODAY:
                limits = limits_of(runs[TODAY], runs[CONTROL])
                yield from compared(name, n, runs[TODAY], limits, how.title, runs[candidate])


def compared(
    name: str,
    rows: int,
    today: "Sequence[SeedResult]",
    limits: Mapping[str, float],
    title: str,
    results: "Sequence[SeedResult]",
) -> Iterator[benchmark.Row]:
    """The rows of a candidate: each measure with the spread of seeds, and last what all of them say.

    Args:
        name: Of the audit.
        rows: Its applicants.
        today: Runs of today's setting, one a seed.
        limits: Measure -> the share of the spread above which it is beyond.
        title: Of the candidate.
        results: Its runs, one a seed.
    """
    from research.gcfn.timed_work import comparisons

    beyond = []
    for line in comparisons(today, results):
        text = f"{mean(line.candidate):.4f} ({min(line.candidate):.4f} to {max(line.candidate):.4f}), "
        text += f"today {mean(line.today):.4f} ({min(line.today):.4f} to {max(line.today):.4f})"
        text += f", limit {limits[line.measure]:.2f}"
        beyond += [line.measure] * (line.over_spread > limits[line.measure])
        yield benchmark.row(name, rows, f"{title}: {line.measure}", ratio=line.over_spread, found=text)
    costs = [[run.cpu_s for run in runs] for runs in (results, today)]
    text = "beyond the spread of seeds: " + ", ".join(beyond) if beyond else "within the spread of seeds"
    yield benchmark.row(name, rows, title, cpu_s=mean(costs[0]), ratio=mean(costs[0]) / mean(costs[1]), found=text)


def _accelerator(rows: int) -> Iterator[benchmark.Row]:
    """The same training on CUDA, where there is a device; there is no target there."""
    cuda = _run("device")["cuda"]
    if cuda is None:
        yield benchmark.row("device", None, "CUDA", found="no device: nothing measured")
        return
    cpu, accelerated = (_run("speed", rows, NETWORKS, EPOCHS_ON_CUDA, device) for device in ("cpu", "cuda"))
    what = f"{NETWORKS} networks together, {EPOCHS_ON_CUDA} epochs"
    finding = "times the speed of the CPU, an epoch by the clock"
    yield benchmark.row(
        cuda, rows, what, seconds=accelerated["seconds"], ratio=cpu["epoch_s"] / accelerated["epoch_s"], found=finding
    )


BENCH = benchmark.Bench(
    "gcfn",
    _lines,
    fewest=FEWEST_ROWS,
    why="so that either group fills a batch",
    memory_mb=FREE_MB,
    forms={"--savings": _savings},
)
TWIN = benchmark.Expected(
    "{networks: 3, epochs: 60, batch: 128}",
    (benchmark.Held("share_changed", (), (), "without refits it has no interval, and is descriptive"),),
)
