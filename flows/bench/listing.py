"""The benchmarks that there are: Evenhand's own beside this file, and each method's in the method's folder.

A benchmark is a function of its name. Its arguments are the options that it takes.
"""

from collections.abc import Callable
from importlib import import_module
from inspect import signature
from typing import Any

from tasks.pipeline.registry import METHODS, NAMES

BENCHES = ("overhead", *NAMES, "ingest", "twin")
_OPTIONS = {"spec": ("--spec", "--set")}
"""Options of an argument, where they are not named like it alone."""


def bench_of(name: str) -> Callable[..., list[dict[str, Any]]]:
    """The function of a benchmark."""
    module = METHODS[name].module("bench.bench") if name in METHODS else import_module(f"flows.bench.{name}")
    found: Callable[..., list[dict[str, Any]]] = getattr(module, name)
    return found


def options_of(name: str) -> tuple[str, ...]:
    """The options that a benchmark takes, in the order of its arguments."""
    arguments = signature(bench_of(name)).parameters
    return tuple(option for argument in arguments for option in _OPTIONS.get(argument, (f"--{argument}",)))
