"""``evenhand bench cec``: what consistency costs in training, and time and memory of matching and of scoring.

Rows are read once by the stages of an audit, which is told apart. Every measurement then runs in a process of its own
(``work``). Ratios are of CPU seconds of an epoch, the least of several, for training works on one thread.

Here belong what is run and the targets. What is timed is in ``work``.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from schemas.errors import InfrastructureError
from tasks.lake.store import Lake
from tasks.methods.cec.reproduction.experiments import EXPERIMENTS
from tasks.pipeline.specs import read_spec
from tasks.proof.specs import paper_spec, require
from tasks.proof.texas import TEXAS_FILE, TEXAS_SPEC

Row = dict[str, Any]

MOST_OF_PLAIN = 4.0
MOST_APART = 0.01
LEAST_OF_DOUBLE_BACKWARD = 3.0
MOST_SCORING_S = 20.0
MOST_MATCHING_S = {50_000: 1.0, 1_000_000: 20.0}

PAIRS, FEATURES = 50_000, 6
EPOCH_ROWS, QUALITY_ROWS = 10_000, 10_000
ALL = 2**31 - 1
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
    free = psutil.virtual_memory().available // 2**20
    if free < FREE_MB:
        raise InfrastructureError(f"{free} MB of memory are free and the benchmark needs up to {FREE_MB}; free some")
    with tempfile.TemporaryDirectory() as name:
        place, limit = Path(name), rows or ALL
        Lake(place).require_space(2**30, "the benchmark")
        said = [_prepared(data, german, place), *_training(place, limit), *_quality(place, limit)]
        said += [*_scoring(place, limit), *_matching(limit), *_accelerator(place, limit)]
    return said if rows is None else [{**row, "target": None, "met": None} for row in said]


def _prepared(data: Path, german: Path, place: Path) -> Row:
    """Both data sets read, encoded and left in files."""
    from tasks.methods.cec.bench import work as cec_stages  # torch takes seconds to import
    from tasks.methods.cec.reproduction import lending

    if not TEXAS_SPEC.is_file():
        raise InfrastructureError(
            f"{str(TEXAS_SPEC)!r} is not there; run the benchmark from a checkout, which holds it"
        )
    start = time.perf_counter()
    overrides = {"source.path": str(data / TEXAS_FILE), "methods": "{fgce: null, cec: {}}"}
    texas = read_spec(TEXAS_SPEC.read_text(encoding="utf-8"), str(TEXAS_SPEC), overrides).spec
    hot = lending.one_hot(*lending.of_spec(texas))
    cec_stages.write(hot, place / f"{TEXAS}.npz")
    paper = paper_spec(EXPERIMENTS["german"].spec or "", {"source.path": str(german)})
    cec_stages.write(lending.of_spec(paper)[0], place / f"{GERMAN}.npz")
    found = f"{TEXAS}: {len(hot.feature_of_input)} inputs, {', '.join(hot.financial_names)} financial"
    return _row("both", None, "apart: ingest, preprocess", seconds=time.perf_counter() - start, found=found)


def _training(place: Path, limit: int) -> Iterator[Row]:
    """An epoch of the same net, trained in four ways."""
    told = {each: _run("epoch", place / f"{TEXAS}.npz", each, min(limit, EPOCH_ROWS), "cpu") for each in TITLES}
    cpu_s = {variant: each["cpu_s"] for variant, each in told.items()}
    targets = {DEFAULT: _against(f"at most {MOST_OF_PLAIN:g}", cpu_s[DEFAULT] <= MOST_OF_PLAIN * cpu_s[PLAIN])}
    for variant, each in told.items():
        took = {name: each[name] for name in ("seconds", "cpu_s", "peak_mb")}
        ratio = cpu_s[variant] / cpu_s[PLAIN]
        what = f"an epoch, {TITLES[variant]}"
        yield _row(TEXAS, each["rows"], what, **took, ratio=ratio, **targets.get(variant, {}), found="ratio to plain")
    faster = cpu_s[DOUBLE] / cpu_s[PAPER]
    met = _against(f"at least {LEAST_OF_DOUBLE_BACKWARD:g}", faster >= LEAST_OF_DOUBLE_BACKWARD)
    what = "T = 32, all pairs: closed form against double backward"
    yield _row(TEXAS, told[PAPER]["rows"], what, ratio=faster, **met, found="times faster, a whole epoch")
    alone = (cpu_s[DOUBLE] - cpu_s[PLAIN]) / (cpu_s[PAPER] - cpu_s[PLAIN])
    yield _row(TEXAS, told[PAPER]["rows"], what, ratio=alone, found="times faster, less prediction alone")


def _quality(place: Path, limit: int) -> Iterator[Row]:
    """Trained to the end: how much consistency the cheaper defaults cost on rows held out."""
    for name, rows, folds in ((GERMAN, ALL, 5), (TEXAS, QUALITY_ROWS, 1)):
        file = place / f"{name}.npz"
        told = {each: _run("quality", file, each, min(limit, rows), folds) for each in (PLAIN, DEFAULT, PAPER)}
        for variant, each in told.items():
            found = f"CEC {each['cec']:.4f}, floor {each['cec_floor']:.4f}, regime B {each['regime_b_percent']:.1f} %"
            what = f"30 epochs, held out of {folds} of 5 folds, {TITLES[variant]}"
            yield _row(name, each["rows"], what, cpu_s=each["cpu_s"], found=found)
        apart = told[DEFAULT]["cec"] - told[PAPER]["cec"]
        against = _against(f"at most {MOST_APART:g} apart", abs(apart) <= MOST_APART)
        yield _row(name, told[PAPER]["rows"], "CEC of the default against T = 32", found=f"{apart:+.4f}", **against)


def _scoring(place: Path, limit: int) -> Iterator[Row]:
    said = _run("score", place / f"{TEXAS}.npz", min(limit, PAIRS), limit)
    against = _against(f"below {MOST_SCORING_S:g} s", said["seconds"] < MOST_SCORING_S)
    took = {name: said[name] for name in ("seconds", "cpu_s", "peak_mb")}
    per_s = round(min(limit, PAIRS) / said["seconds"])
    what = f"{min(limit, PAIRS):,} pairs matched, explained exactly and scored"
    yield _row(TEXAS, said["rows"], what, **took, per_s=per_s, **against, found=f"CEC {said['cec']:.4f}")


def _matching(limit: int) -> Iterator[Row]:
    for size, most in MOST_MATCHING_S.items():
        said = _run("match", min(limit, size), FEATURES)
        against = _against(f"below {most:g} s", said["seconds"] < most)
        took = {name: said[name] for name in ("seconds", "cpu_s", "peak_mb")}
        per_s, found = round(said["rows"] / said["seconds"]), f"{said['matched']:,} matched"
        what = f"everybody matched, {FEATURES} features"
        yield _row(DRAWN, said["rows"], what, **took, per_s=per_s, found=found, **against)


def _accelerator(place: Path, limit: int) -> Iterator[Row]:
    """The same epochs on CUDA, where there is a device; nothing is aimed at there."""
    cuda = _run("device")["cuda"]
    if cuda is None:
        yield _row("device", None, "CUDA", found="no device: nothing measured")
        return
    plain = None
    for variant in (PLAIN, DEFAULT, PAPER):
        each = _run("epoch", place / f"{TEXAS}.npz", variant, min(limit, EPOCH_ROWS), "cuda")
        plain = plain or each["seconds"]
        took = {"seconds": each["seconds"], "ratio": each["seconds"] / plain}
        yield _row(cuda, each["rows"], f"an epoch, {TITLES[variant]}", **took, found="ratio to plain, by the clock")


def _run(what: str, *about: object) -> Mapping[str, Any]:
    """What a process of its own says."""
    command = [sys.executable, "-m", "tasks.methods.cec.bench.work", what, *map(str, about)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 our own
    if done.returncode:
        raise RuntimeError(f"{what} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    said: Mapping[str, Any] = json.loads(done.stdout)
    return said


def _row(name: str, rows: int | None, what: str, **more: Any) -> Row:
    """A line of the table; what it does not say is empty."""
    columns = ("seconds", "cpu_s", "per_s", "peak_mb", "ratio", "target", "met", "found")
    return {"data": name, "rows": rows, "what": what, **dict.fromkeys(columns), **more}


def _against(target: str, met: bool) -> Row:
    return {"target": target, "met": "met" if met else "missed"}
