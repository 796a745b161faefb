"""Threads of a process, and of every DuckDB connection that computes: a worker's share, not all cores."""

import subprocess
from pathlib import Path

import pytest

from tasks.lake.storage import connected, cores, threads

ROOT = Path(__file__).parents[3]
OPENS = {"tasks/lake/storage.py"}
"""Where DuckDB is opened."""


@pytest.mark.parametrize(("given", "found"), [("3", 3), ("", None), ("all", None)])
def test_threads_are_those_of_a_worker_else_all_cores(
    monkeypatch: pytest.MonkeyPatch, given: str, found: int | None
) -> None:
    monkeypatch.setenv("NUMBA_NUM_THREADS", given)
    assert threads() == (found or cores())


@pytest.mark.parametrize("share", [1, 3])
def test_a_connection_takes_no_more_threads_than_its_process_may(monkeypatch: pytest.MonkeyPatch, share: int) -> None:
    monkeypatch.setenv("NUMBA_NUM_THREADS", str(share))
    with connected() as connection:
        assert connection.execute("SELECT current_setting('threads')").fetchone() == (share,)


def test_no_stage_opens_duckdb_past_its_share() -> None:
    found = subprocess.run(
        ["grep", "-rlE", r"duckdb\.connect\(", "tasks", "--include=*.py"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    assert set(found) == OPENS
