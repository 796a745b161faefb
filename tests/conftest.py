"""Shared by all tests: a synthetic table of 500 loans, its audit spec, the command, and one real Prefect server."""

import gc
import logging
import math
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import hypothesis
import in_process
import numpy as np
import pandas as pd
import pytest
from shared_server import served

from schemas.audit.spec import AuditSpec
from tasks.pipeline.registry import read_spec

if TYPE_CHECKING:
    from distribution import Groups
    from xdist.remote import Producer

REPOSITORY = Path(__file__).parents[1]
DATA_VARIABLE = "EVENHAND_TEST_DATA"
SHARED = Path(os.environ.get(DATA_VARIABLE, "no-test-data")).absolute()
"""Real data and reference outputs, which are not part of this project. Only tests marked `data` may read them."""

os.environ.setdefault("EVENHAND_JOBS", "1")  # processes cost each small audit some seconds; tests of them say how many

hypothesis.settings.register_profile("ci", max_examples=25, derandomize=True, deadline=None)
hypothesis.settings.register_profile("nightly", max_examples=100, deadline=None)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
hypothesis.settings.load_profile(PROFILE)


def pytest_collection_finish() -> None:
    """Leave what is loaded out of the garbage collection: of some thousand modules each full one takes a second.

    Nor need it be often: the usual thresholds take one second in thirty.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def examples(nightly: int) -> int:
    """How many examples of a test are tried: fewer in the usual run, and the same ones each time."""
    return nightly if PROFILE == "nightly" else max(nightly // 4, 4)


def fingerprint(result: object) -> dict[str, float]:
    """A number of each field of a result, which moves when any of its values, names, shapes or places does.

    For results that are held to what they are: a sum of all values on a scale of logarithms, so that small values count
    beside large ones, each with a weight of its own place. Equal to 1e-5 on any processor (OpenBLAS for Prescott,
    Sandybridge, Haswell, Zen and SkylakeX, NumPy with AVX and without), unless a field counts or ranks rounding errors:
    round such a field where it is made.
    """
    return {name: round(_weighted(part), 6) for name, part in _parts(result)}


def _parts(result: object) -> list[tuple[str, object]]:
    if isinstance(result, Mapping):
        return [(str(name), part) for name, part in result.items()]
    if is_dataclass(result):
        return [(field.name, getattr(result, field.name)) for field in fields(result)]
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return list(zip(result._fields, result, strict=True))
    listed = list(result) if isinstance(result, Iterable) and not isinstance(result, str) else [result]
    return [(str(place), part) for place, part in enumerate(listed)]


def _weighted(part: object) -> float:
    values = np.array(list(_values(part)), dtype=float)
    weights = 1 + np.arange(len(values)) * 0.6180339887 % 1
    return float(weights @ (np.sign(values) * np.log1p(100 * np.abs(values)))) + len(values)


def _values(part: object) -> Iterator[float]:
    if part is None or isinstance(part, str):
        yield 0.125 if part is None else crc32(part.encode()) / 2**32
    elif isinstance(part, np.ndarray):
        yield from part.shape
        yield from _values(part.tolist())
    elif isinstance(part, int | float | np.number | np.bool_):
        number = float(part)
        yield number if math.isfinite(number) else 7.5 if math.isnan(number) else math.copysign(8.5, number)
    elif isinstance(part, Iterable) or is_dataclass(part):
        for name, inner in _parts(part):
            yield from _values(name)
            yield from _values(inner)


SPEC = """\
name: loans
title: Synthetic loans
year: 2024
source: {kind: csv, path: loans.csv}
row_id: id
decision: {column: approved, favourable: ['yes'], unfavourable: ['no']}
protected:
  - name: race
    columns: [race]
    groups: {white: [w], Black: [b]}
    reference: white
columns:
  income: {type: continuous, constraint: up}
  amount: {type: continuous, constraint: down}
  purpose: {type: nominal, constraint: immutable}
  history: {type: ordinal, order: [bad, fair, good], constraint: up}
causal_graph: {edges: [[race, income], [race, history], [income, amount]]}
model: {kind: logistic_regression, folds: 5}
methods:
  fgce: {size_matched_draws: 5, ablation_draws: 2, k: 4, resolves: 20}
  cst: {ks: [5, 10], k: 5, null_permutations: 3, null_complainants: 50}
thresholds:
  - {measure: approval_rate_ratio, decision_maker: lender, minimum: 0.9}
disclosure: {profile: public}
bootstrap: {draws: 200}
"""


def loans(rows: int = 500, seed: int = 7) -> pd.DataFrame:
    """A table of loans in which approval depends on income, amount and history, and a little on race."""
    rng = np.random.default_rng(seed)
    race = rng.choice(["w", "b", ""], rows, p=[0.65, 0.3, 0.05])
    income = np.round(rng.lognormal(4, 0.5, rows), 1)
    amount = np.round(rng.lognormal(5, 0.4, rows), 0)
    history = rng.choice(["bad", "fair", "good"], rows)
    merit = (
        0.03 * income
        - 0.01 * amount
        + np.select([history == "bad", history == "good"], [-1.0, 1.0])
        - 0.8 * (race == "b")
    )
    approved = np.where(merit + rng.logistic(0, 1, rows) > -0.6, "yes", "no")
    return pd.DataFrame(
        {
            "id": [f"L{i:04d}" for i in range(rows)],
            "race": race,
            "income": income,
            "amount": amount,
            "purpose": rng.choice(["buy", "refinance"], rows),
            "history": history,
            "approved": approved,
        }
    )


def spec_of(place: Path, text: str = SPEC, **overrides: str) -> AuditSpec:
    """The spec of the loans in a directory; overrides are dotted keys with ``__`` for the dot."""
    dotted = {key.replace("__", "."): value for key, value in overrides.items()}
    return read_spec(text, "loans.yaml", {"source.path": str(place / "loans.csv"), **dotted}).spec


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """A command that a test runs in its own process sets the program's log up; the next test finds it as it was."""
    log = logging.getLogger("evenhand")
    before = log.handlers[:], log.propagate, log.level
    yield
    log.handlers[:], log.propagate, level = before
    if log.level != level:
        log.setLevel(level)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with loans.csv and loans.yaml in it."""
    loans().to_csv(tmp_path / "loans.csv", index=False)
    (tmp_path / "loans.yaml").write_text(SPEC.replace("path: loans.csv", f"path: {tmp_path / 'loans.csv'}"))
    return tmp_path


def evenhand(*arguments: str, server: str | None = None, cwd: Path = REPOSITORY) -> "subprocess.CompletedProcess[str]":
    """Run the command as a user would; in this process, which gives the same (test_in_process) and takes no start."""
    return in_process.run(arguments, environment(server), cwd)


def evenhand_process(
    *arguments: str, server: str | None = None, cwd: Path = REPOSITORY, answers: str | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run the command in a process of its own: with an embedded Prefect, or where the process is the subject."""
    return subprocess.run(
        [sys.executable, "-m", "flows.cli", *arguments],
        env=environment(server),
        cwd=cwd,
        input=answers,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def environment(server: str | None) -> dict[str, str]:
    """The environment of a command: the session's server where one is given."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
    extra = {
        "PYTHONPATH": str(REPOSITORY),
        "COLUMNS": "200",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
    return {**kept, **extra, **({"PREFECT_API_URL": server} if server else {})}


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[str]:
    """A real Prefect server that all workers share; gives the URL of its API."""
    own = tmp_path_factory.getbasetemp()
    with served(own if worker_id == "master" else own.parent, environment(None)) as url:
        yield url


FIRST = (
    "test_audit",
    "test_backfill",
    "test_boston",
    "test_serving_browser",
    "test_starts",
    "test_start_browser",
    "test_back_fill_deployed",
    "test_stopped_while_starting",
    "test_stopped_in_stages",
    "test_bench_twin",
    "test_embedded_api",
    "test_backfill_stopped",
    "test_dask",
    "test_report",
    "test_rerank",
    "test_file_modes",
)
"""Files with the longest groups of tests: what begins last must not be long."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without a slow test where those are asked for: to load all takes each worker half a minute."""
    asks = config.option.markexpr.startswith("slow") and collection_path.match("test_*.py")
    return True if asks and not may_be_slow(collection_path) else None


@cache
def may_be_slow(file: Path) -> bool:
    """Whether a file of tests names one of the marks that make a test slow."""
    text = file.read_text(encoding="utf-8")
    return "slow" in text or "mark.data(" in text


@pytest.hookimpl(tryfirst=True)  # before -m selects by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Make tests of real data slow, and skip those whose files are missing; then put the longest files first."""
    for item in items:
        if item.get_closest_marker("slow") and not may_be_slow(item.path):
            raise pytest.UsageError(f"{item.nodeid} is slow, and its file does not say so: `-m slow` would not find it")
        files = [file for mark in item.iter_markers("data") for file in mark.args]
        if not files:
            continue
        if not item.get_closest_marker("long"):
            item.add_marker("slow")
        missing = [file for file in files if not (SHARED / file).exists()]
        if missing:
            item.add_marker(pytest.mark.skip(reason=f"{DATA_VARIABLE} names no folder with {missing[0]} in it"))
    items.sort(key=lambda item: FIRST.index(item.path.stem) if item.path.stem in FIRST else len(FIRST))


def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> "Groups":
    from distribution import Groups

    return Groups(config, log)
