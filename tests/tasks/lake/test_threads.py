"""Threads and memory of a process, and threads of every DuckDB connection that computes: a worker's share."""

import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from few_loans import few_loans

from schemas.terms import ExitCode
from tasks.lake.storage import connected, cores, group_memory, threads

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


@pytest.mark.parametrize(
    ("own", "folder", "names"),
    [
        ("0::/system.slice/evenhand.service", "", ("memory.max", "memory.current")),
        ("4:memory:/system.slice/evenhand.service", "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")),
    ],
)
def test_the_tightest_of_the_groups_around_a_process_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str, folder: str, names: tuple[str, str]
) -> None:
    (tmp_path / "own").write_text(f"9:name=systemd:/\n{own}\n")
    monkeypatch.setattr("tasks.lake.storage._OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr("tasks.lake.storage._GROUPS", tmp_path / "cgroup")
    assert group_memory() == (math.inf, math.inf)
    service = tmp_path / "cgroup" / folder / "system.slice/evenhand.service"
    service.mkdir(parents=True)
    for group, most, used in ((service, "max", 100), (service.parent, "4000", 1000), (service.parents[1], "3000", 50)):
        (group / names[0]).write_text(f"{most}\n")
        (group / names[1]).write_text(f"{used}\n")
    assert group_memory() == (3000, 2950)
    (service / names[0]).write_text("900\n")
    assert group_memory() == (900, 800)
    (service / names[0]).write_text("9223372036854771712\n")
    assert group_memory().limit == 3000


@contextmanager
def limited(mb: int) -> Iterator[list[str]]:
    """The words that begin a command within a real limit of memory, by a control group of its own or by systemd."""
    group = Path(f"/sys/fs/cgroup/memory/evenhand-test-{os.getpid()}")
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(f"{mb}M")
    except OSError:
        words = ["systemd-run", "--scope", "--quiet", "-p", f"MemoryMax={mb}M"]
        if shutil.which(words[0]) is None or subprocess.run([*words, "true"], capture_output=True).returncode:
            pytest.skip("neither a control group nor systemd that limits memory here")
        yield words
        return
    try:
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
    finally:
        group.rmdir()


@pytest.mark.slow
def test_a_real_limit_of_memory_counts_and_one_too_small_for_any_audit_is_named(tmp_path: Path) -> None:
    code = "from tasks.lake.storage import group_memory; print(group_memory().limit)"
    with limited(400) as words:
        done = subprocess.run(
            [*words, sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert int(done.stdout) == 400 * 2**20
        spec = few_loans(tmp_path)
        audit = [sys.executable, "-m", "flows.cli", "audit", str(spec), "--lake", str(tmp_path / "lake")]
        refused = subprocess.run([*words, *audit], cwd=ROOT, capture_output=True, text=True)
    assert refused.returncode == ExitCode.INFRASTRUCTURE, refused.stderr
    assert "MB of memory are free and an audit needs 500 MB or more" in refused.stderr
