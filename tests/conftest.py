"""Shared by all tests: a synthetic table of 500 loans, its audit spec, and one real Prefect server for the session."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from schemas.audit.spec import AuditSpec
from tasks.pipeline.specs import read_spec

REPOSITORY = Path(__file__).parents[1]
SHARED = REPOSITORY.parent / "shared"

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
  fgce: {size_matched_draws: 5, ablation_draws: 2, k: 4}
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


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with loans.csv and loans.yaml in it."""
    loans().to_csv(tmp_path / "loans.csv", index=False)
    (tmp_path / "loans.yaml").write_text(SPEC.replace("path: loans.csv", f"path: {tmp_path / 'loans.csv'}"))
    return tmp_path


def evenhand(*arguments: str, server: str | None = None, cwd: Path = REPOSITORY) -> "subprocess.CompletedProcess[str]":
    """Run the command as a user would, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "flows.cli", *arguments],
        env=environment(server),
        cwd=cwd,
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
def server(tmp_path_factory: pytest.TempPathFactory) -> "object":
    """A real Prefect server on a free loopback port; gives the URL of its API."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home = tmp_path_factory.mktemp("prefect")
    with (home / "server.log").open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)],
            env={**environment(None), "PREFECT_HOME": str(home)},
            stdout=output,
            stderr=output,
        )
        try:
            _wait_for(f"http://127.0.0.1:{port}/api/health", process, home / "server.log")
            yield f"http://127.0.0.1:{port}/api"
        finally:
            process.terminate()
            process.wait(timeout=30)


def _wait_for(url: str, process: "subprocess.Popen[bytes]", output: Path) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended: {output.read_text()[-2000:]}")
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.3)
    raise RuntimeError(f"the server did not answer within two minutes: {output.read_text()[-2000:]}")
