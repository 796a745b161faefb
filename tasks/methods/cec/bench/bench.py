"""``evenhand bench cec``: what consistency costs in training, and time and memory of matching and of scoring.

Rows are read once by the stages of an audit, which is told apart. Every measurement then runs in a process of its own
(``work``). Ratios are of CPU seconds of an epoch, the least of several, for training works on one thread.

Here belong what is run and the targets. What is timed is in ``work``.
"""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tasks.methods.cec.reproduction.experiments import EXPERIMENTS
from tasks.proof.benches import ALL, Row, apart, at_least, at_most, below, measured, per_second, row, took
from tasks.proof.specs import paper_spec, require
from tasks.proof.texas import TEXAS_FILE, texas_spec

MOST_OF_PLAIN = 4.0
MOST_APART = 0.01
LEAST_OF_DOUBLE_BACKWARD = 3.0
MOST_SCORING_S = 20.0
MOST_MATCHING_S = {50_000: 1.0, 1_000_000: 20.0}

PAIRS, FEATURES = 50_000, 6
EPOCH_ROWS, QUALITY_ROWS = 10_000, 10_000
FREE_MB = 2_000
"""Memory that has to be free: a million rows, their trees and their matches."""

TEXAS, GERMAN, DRAWN = "Texas 2022", "German Credit", "drawn rows"
PLAIN, DEFAULT, PAPER, DOUBLE = "plain", "default", "paper", "paper, double backward"
TITLES = {
    PLAIN: "prediction alone",
    DEFAULT: "all three losses, default: T = 8, half of the pairs",
    PAPER: "all three losses, T = 32, all pairs",
    DOUBLE: "all three losses, T = 32, all pairs, double backward",
}

_run = partial(apart, "tasks.methods.cec.bench.work")


def cec(data: Path, rows: int | None = None) -> list[Row]:
    """Times, memory and ratios, each beside its target.

    Args:
        data: Directory that holds ``data/``.
        rows: At most so many rows of each data set, for a quick look; the targets, which are for all rows and for the
            sizes said, are then not held against it.

    Raises:
        InfrastructureError: A file is missing, memory is short, or the disk is too full.
    """
    german = data / EXPERIMENTS["german"].sources[0]
    require(data, [data / TEXAS_FILE, german])

    def lines(place: Path) -> Iterator[Row]:
        limit = rows or ALL
        yield _prepared(data, german, place)
        yield from _training(place, limit)
        yield from _quality(place, limit)
        yield from _scoring(place, limit)
        yield from _matching(limit)
        yield from _accelerator(place, limit)

    return measured(lines, rows, FREE_MB)


def _prepared(data: Path, german: Path, place: Path) -> Row:
    """Both data sets read, encoded and left in files."""
    from tasks.methods.cec.bench import work as cec_stages  # torch takes seconds to import
    from tasks.methods.cec.reproduction import lending

    start = time.perf_counter()
    texas = texas_spec(data, {"methods": "{fgce: null, cec: {}}"})
    hot = lending.one_hot(*lending.of_spec(texas))
    cec_stages.write(hot, place / f"{TEXAS}.npz")
    paper = paper_spec(EXPERIMENTS["german"].spec or "", {"source.path": str(german)})
    cec_stages.write(lending.of_spec(paper)[0], place / f"{GERMAN}.npz")
    found = f"{TEXAS}: {len(hot.feature_of_input)} inputs, {', '.join(hot.financial_names)} financial"
    return row("both", None, "apart: ingest, preprocess", seconds=time.perf_counter() - start, found=found)


def _training(place: Path, limit: int) -> Iterator[Row]:
    """An epoch of the same net, trained in four ways."""
    told = {each: _run("epoch", place / f"{TEXAS}.npz", each, min(limit, EPOCH_ROWS), "cpu") for each in TITLES}
    cpu_s = {variant: each["cpu_s"] for variant, each in told.items()}
    targets = {DEFAULT: at_most(cpu_s[DEFAULT] / cpu_s[PLAIN], MOST_OF_PLAIN)}
    for variant, each in told.items():
        ratio = cpu_s[variant] / cpu_s[PLAIN]
        what = f"an epoch, {TITLES[variant]}"
        yield row(
            TEXAS, each["rows"], what, **took(each), ratio=ratio, **targets.get(variant, {}), found="ratio to plain"
        )
    faster = cpu_s[DOUBLE] / cpu_s[PAPER]
    met = at_least(faster, LEAST_OF_DOUBLE_BACKWARD)
    what = "T = 32, all pairs: closed form against double backward"
    yield row(TEXAS, told[PAPER]["rows"], what, ratio=faster, **met, found="times faster, a whole epoch")
    alone = (cpu_s[DOUBLE] - cpu_s[PLAIN]) / (cpu_s[PAPER] - cpu_s[PLAIN])
    yield row(TEXAS, told[PAPER]["rows"], what, ratio=alone, found="times faster, less prediction alone")


def _quality(place: Path, limit: int) -> Iterator[Row]:
    """Trained to the end: how much consistency the cheaper defaults cost on rows held out."""
    for name, rows, folds in ((GERMAN, ALL, 5), (TEXAS, QUALITY_ROWS, 1)):
        file = place / f"{name}.npz"
        told = {each: _run("quality", file, each, min(limit, rows), folds) for each in (PLAIN, DEFAULT, PAPER)}
        for variant, each in told.items():
            found = f"CEC {each['cec']:.4f}, floor {each['cec_floor']:.4f}, regime B {each['regime_b_percent']:.1f} %"
            what = f"30 epochs, held out of {folds} of 5 folds, {TITLES[variant]}"
            yield row(name, each["rows"], what, cpu_s=each["cpu_s"], found=found)
        change = told[DEFAULT]["cec"] - told[PAPER]["cec"]
        met = at_most(abs(change), MOST_APART, " apart")
        yield row(name, told[PAPER]["rows"], "CEC of the default against T = 32", found=f"{change:+.4f}", **met)


def _scoring(place: Path, limit: int) -> Iterator[Row]:
    pairs = min(limit, PAIRS)
    said = _run("score", place / f"{TEXAS}.npz", pairs, limit)
    told = {**took(said), **per_second(said, pairs), **below(said["seconds"], MOST_SCORING_S, " s")}
    what = f"{pairs:,} pairs matched, explained exactly and scored"
    yield row(TEXAS, said["rows"], what, **told, found=f"CEC {said['cec']:.4f}")


def _matching(limit: int) -> Iterator[Row]:
    for size, most in MOST_MATCHING_S.items():
        said = _run("match", min(limit, size), FEATURES)
        told = {**took(said), **per_second(said), **below(said["seconds"], most, " s")}
        what = f"everybody matched, {FEATURES} features"
        yield row(DRAWN, said["rows"], what, **told, found=f"{said['matched']:,} matched")


def _accelerator(place: Path, limit: int) -> Iterator[Row]:
    """The same epochs on CUDA, where there is a device; nothing is aimed at there."""
    cuda = _run("device")["cuda"]
    if cuda is None:
        yield row("device", None, "CUDA", found="no device: nothing measured")
        return
    plain = None
    for variant in (PLAIN, DEFAULT, PAPER):
        each = _run("epoch", place / f"{TEXAS}.npz", variant, min(limit, EPOCH_ROWS), "cuda")
        plain = plain or each["seconds"]
        times = {"seconds": each["seconds"], "ratio": each["seconds"] / plain}
        yield row(cuda, each["rows"], f"an epoch, {TITLES[variant]}", **times, found="ratio to plain, by the clock")
