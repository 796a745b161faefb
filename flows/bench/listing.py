"""Finds the benchmarks: Evenhand's own beside this file, and each method's in ``bench.bench`` of its folder."""

from importlib import import_module

from tasks.pipeline.registry import METHODS, NAMES
from tasks.proof.benches import Bench

OVERHEAD = "overhead"
"""The benchmark that takes an audit spec, and neither data nor a limit on rows."""
BENCHES = (OVERHEAD, "audit", "scale", *NAMES, "ingest", "twin", "verdicts", "published", "cost", "operations", "serve")


def bench_of(name: str) -> Bench:
    """Returns the declaration of a benchmark other than overhead."""
    module = METHODS[name].module("bench.bench") if name in METHODS else import_module(f"flows.bench.{name}")
    found: Bench = module.BENCH
    return found


def options_of(name: str) -> tuple[str, ...]:
    """Returns the options that a benchmark takes."""
    return ("--spec", "--set") if name == OVERHEAD else bench_of(name).options
