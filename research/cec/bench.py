"""Measures what consistency costs in CEC's training, and times matching and scoring.

Rows are read once by the stages of an audit, which is timed apart. Every measurement then runs in a process of its own
(``work``). Ratios are of CPU seconds of an epoch, the least of several, as training works on one thread.

Scope: runs and targets. The timed work: ``work``.
"""

import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from research import benchmark
from research.cec.experiments import EXPERIMENTS
from research.figures import TEXAS_FILE, texas_spec

if TYPE_CHECKING:
    pass

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

_run = partial(benchmark.apart, "research.cec.timed_work")


def _lines(room: benchmark.Room) -> Iterator[benchmark.Row]:
    from research.cec import data  # torch takes seconds to import

    start = time.perf_counter()
    texas_rows = data.of_spec(texas_spec(room.data, {"methods": "{fgce: null, cec: {}}"}))
    german, _ = data.of_spec(EXPERIMENTS["german"].read(room.data))
    texas = data.one_hot(*texas_rows)
    inputs = f"{len(texas.feature_of_input)} inputs, {', '.join(texas.financial_names)} financial"
    seconds = time.perf_counter() - start
    yield benchmark.row("both", None, "apart: ingest, preprocess", seconds=seconds, found=f"{TEXAS}: {inputs}")
    lending = {TEXAS: benchmark.Piped(texas), GERMAN: benchmark.Piped(german)}
    yield from _training(lending[TEXAS], room.limit)
    yield from _quality(lending, room.limit)
    pairs = min(room.limit, PAIRS)
    scoring = _run("score", lending[TEXAS], pairs, room.limit)
    met = benchmark.below(scoring["seconds"], MOST_SCORING_S, " s")
    what, text = f"{pairs:,} pairs matched, explained exactly and scored", f"CEC {scoring['cec']:.4f}"
    yield benchmark.timed_row(TEXAS, scoring, what, per_s=benchmark.per_second(scoring, pairs), **met, found=text)
    for size, most in MOST_MATCHING_S.items():
        matching = _run("match", min(room.limit, size), FEATURES)
        met = benchmark.below(matching["seconds"], most, " s")
        what, text = f"everybody matched, {FEATURES} features", f"{matching['matched']:,} matched"
        yield benchmark.timed_row(DRAWN, matching, what, per_s=benchmark.per_second(matching), **met, found=text)
    # the same epochs on CUDA, where there is a device; there is no target there
    cuda = _run("device")["cuda"]
    if cuda is None:
        yield benchmark.row("device", None, "CUDA", found="no device: nothing measured")
        return
    plain = None
    for variant in (PLAIN, DEFAULT, PAPER):
        epoch = _run("epoch", lending[TEXAS], variant, min(room.limit, EPOCH_ROWS), "cuda")
        plain = plain or epoch["seconds"]
        times = {"seconds": epoch["seconds"], "ratio": epoch["seconds"] / plain}
        yield benchmark.row(
            cuda, epoch["rows"], f"an epoch, {TITLES[variant]}", **times, found="ratio to plain, by the clock"
        )


def _training(texas: benchmark.Piped, limit: int) -> Iterator[benchmark.Row]:
    """An epoch of the same net, trained in four ways."""
    times_of_variant = {title: _run("epoch", texas, title, min(limit, EPOCH_ROWS), "cpu") for title in TITLES}
    cpu_s = {variant: times["cpu_s"] for variant, times in times_of_variant.items()}
    targets = {DEFAULT: benchmark.at_most(cpu_s[DEFAULT] / cpu_s[PLAIN], MOST_OF_PLAIN)}
    for variant, times in times_of_variant.items():
        ratio = cpu_s[variant] / cpu_s[PLAIN]
        what = f"an epoch, {TITLES[variant]}"
        yield benchmark.timed_row(TEXAS, times, what, ratio=ratio, **targets.get(variant, {}), found="ratio to plain")
    faster = cpu_s[DOUBLE] / cpu_s[PAPER]
    met = benchmark.at_least(faster, LEAST_OF_DOUBLE_BACKWARD)
    what = "T = 32, all pairs: closed form against double backward"
    yield benchmark.row(
        TEXAS, times_of_variant[PAPER]["rows"], what, ratio=faster, **met, found="times faster, a whole epoch"
    )
    alone = (cpu_s[DOUBLE] - cpu_s[PLAIN]) / (cpu_s[PAPER] - cpu_s[PLAIN])
    yield benchmark.row(
        TEXAS, times_of_variant[PAPER]["rows"], what, ratio=alone, found="times faster, less prediction alone"
    )


def _quality(lending: Mapping[str, benchmark.Piped], limit: int) -> Iterator[benchmark.Row]:
    """Trained to the end: how much consistency the cheaper defaults cost on rows held out."""
    for name, rows, folds in ((GERMAN, benchmark.ALL, 5), (TEXAS, QUALITY_ROWS, 1)):
        quality_of_variant = {
            variant: _run("quality", lending[name], variant, min(limit, rows), folds)
            for variant in (PLAIN, DEFAULT, PAPER)
        }
        for variant, score in quality_of_variant.items():
            text = f"CEC {score['cec']:.4f}, floor {score['cec_floor']:.4f}, regime B {score['regime_b_percent']:.1f} %"
            what = f"30 epochs, held out of {folds} of 5 folds, {TITLES[variant]}"
            yield benchmark.row(name, score["rows"], what, cpu_s=score["cpu_s"], found=text)
        change = quality_of_variant[DEFAULT]["cec"] - quality_of_variant[PAPER]["cec"]
        met = benchmark.at_most(abs(change), MOST_APART, " apart")
        yield benchmark.row(
            name, quality_of_variant[PAPER]["rows"], "CEC of the default against T = 32", found=f"{change:+.4f}", **met
        )


BENCH = benchmark.Bench("cec", _lines, (TEXAS_FILE, *EXPERIMENTS["german"].sources), memory_mb=FREE_MB)
TWIN = benchmark.Expected(
    "{theta_steps: 0}",
    (
        benchmark.Held(
            "cec_above_own_group",
            (),
            ("direct",),
            "the model has the same reasons for everybody: it does not see the group, or it is means that differ",
        ),
    ),
)
