"""Finds the benchmarks: Evenhand's own in this folder, and each method's in ``research/<method>/bench.py``."""

from importlib import import_module

from research.benchmark import Bench
from tasks.pipeline.registry import METHODS, NAMES

OVERHEAD = "overhead"
"""The benchmark that takes an audit spec, and neither data nor a limit on rows."""
BENCHES = (
    *(OVERHEAD, "audit", "lender", "validation", "scale", "forecast", *NAMES),
    *("ingest", "twin", "cost", "ladder", "verdicts", "power", "planted", "clusters", "proxies", "alternatives"),
)


def bench_of(name: str) -> Bench:
    """Returns the declaration of a benchmark other than overhead."""
    module = import_module(f"research.{name}.bench" if name in METHODS else f"research.bench.{name}")
    bench: Bench = module.BENCH
    return bench


def options_of(name: str) -> tuple[str, ...]:
    """Returns the options that a benchmark takes."""
    return ("--spec", "--set") if name == OVERHEAD else bench_of(name).options
