"""What the command loads before it knows that it will compute something."""

import os
import subprocess
import sys
from collections.abc import Callable
from math import inf
from pathlib import Path

import pytest
from conftest import REPOSITORY, environment
from lake_of_runs import lake_of_runs
from loaded_modules import COMPUTING, HEAVY, loaded

from tasks.lake.store import Lake
from tasks.pipeline.registry import NAMES

DATA = ("duckdb", "networkx", "numpy", "pandas", "pyarrow", "scipy", "sklearn")
METHODS = ("networkx", "scipy", "sklearn", "tasks.plan", "tasks.pipeline.registry")
"""What only computing needs; DuckDB and pyarrow read tables."""


def test_help_loads_no_library_of_data() -> None:
    assert loaded("--help").isdisjoint({*HEAVY, *DATA})


def test_nothing_to_do_and_the_version_load_no_library_of_data() -> None:
    assert loaded("--version").isdisjoint({*HEAVY, *DATA})


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    return lake_of_runs(tmp_path_factory.mktemp("light") / "lake").location


@pytest.mark.parametrize("words", [["runs"], ["show"], ["show", "loans@2023"], ["measures"]], ids=" ".join)
def test_reading_results_loads_no_method_and_takes_little_time_of_a_processor(words: list[str], lake: str) -> None:
    modules: list[set[str]] = []
    assert takes_less_than(5, lambda: modules.append(loaded(*words, "--lake", lake)))
    assert modules[0].isdisjoint({*HEAVY, *METHODS})


@pytest.mark.parametrize(("words", "times"), [(["--help"], 2), (["runs"], 4)])
def test_a_command_with_its_start_takes_little_time_of_a_processor(words: list[str], times: float, lake: str) -> None:
    command, given = [sys.executable, "-m", "flows.cli", *words], environment(None) | {"EVENHAND_LAKE": lake}
    assert takes_less_than(times, lambda: subprocess.run(command, env=given, cwd=REPOSITORY, check=True))


def takes_less_than(times: float, act: Callable[[], object]) -> bool:
    """Whether it does in units of a process that only imports what reads tables: a slow machine slows both.

    A machine at work disturbs single tries, so the least of up to four counts.
    """
    reference = [sys.executable, "-c", "import duckdb, pyarrow.parquet, pydantic, yaml"]
    imports, actions = inf, inf
    for _ in range(4):
        imports = min(imports, _processor_seconds(lambda: subprocess.run(reference, cwd=REPOSITORY, check=True)))
        actions = min(actions, _processor_seconds(act))
        if actions < times * imports:
            return True
    return False


def _processor_seconds(act: Callable[[], object]) -> float:
    before = os.times()
    act()
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def test_status_loads_nothing_that_computes(tmp_path: Path) -> None:
    Lake(tmp_path / "lake")
    assert loaded("status", "--lake", str(tmp_path / "lake")).isdisjoint(HEAVY)


@pytest.mark.parametrize(
    ("modules", "absent"),
    [
        ("tasks.plan, flows.launch.audit", COMPUTING),
        (", ".join(f"tasks.methods.{name}.measures" for name in NAMES), COMPUTING),
        ("flows.launch.backfill, flows.launch.audit", ("prefect", "dask", "distributed")),
        ("tasks.scoring.models, tasks.scoring.decider", ("torch", "sklearn", "skops")),
        (
            "flows.audit, flows.supervision.prefect_server",
            ("prefect.server.api.server", "torch", "sklearn", "skops"),
        ),
    ],
    ids=[
        "a plan",
        "what a spec is checked with",
        "what starts an audit or a back-fill",
        "kept models",
        "a flow and its server",
    ],
)
def test_what_is_loaded_before_it_is_needed(modules: str, absent: tuple[str, ...]) -> None:
    program = f"import sys, {modules}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=REPOSITORY, check=True)
    assert set(done.stdout.split()).isdisjoint(absent)
