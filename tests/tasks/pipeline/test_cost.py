"""What a stage run is said to have cost: its own peak of memory, CPU time of threads and children, its threads."""

import gc
import os
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from conftest import loans, spec_of
from threadpoolctl import threadpool_info, threadpool_limits

from tasks.in_memory import call_plainly
from tasks.lake.store import Lake
from tasks.pipeline import resources
from tasks.pipeline.resources import cpu_seconds, measured
from tasks.pipeline.stage import Produced
from tasks.plan import plan

linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the peak is the process's")


def held(megabytes: int) -> float:
    """Peak of a block that holds so much memory for a moment."""
    with measured() as found:
        np.ones(megabytes * 2**17)
    peak: float = found["peak_memory_mb"]
    return peak


@linux
def test_the_peak_is_the_stages_own_and_not_that_of_the_process() -> None:
    small, large, after = held(1), held(300), held(1)
    assert large - small == pytest.approx(300, abs=30)
    assert after - small < 60, "what an earlier stage held does not count"


@linux
@pytest.mark.parametrize(("least", "is_gone"), [(0, True), (10**6, False)])
def test_a_large_process_lets_go_of_circles_before_a_stage(
    least: int, *, is_gone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small ones wait for Python's own collector, which takes no time then."""
    monkeypatch.setattr(resources, "_LARGE_MB", least)
    gc.collect()
    gc.disable()
    circle = Circle()
    circle.itself, table = circle, weakref.ref(circle)
    del circle
    try:
        with measured():
            assert (table() is None) is is_gone
    finally:
        gc.enable()


class Circle:
    """What holds itself."""

    itself: "Circle"


def test_where_the_peak_cannot_be_reset_it_is_the_processes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pytest.TempPathFactory
) -> None:
    held(300)
    monkeypatch.setattr(resources, "_CLEAR", tmp_path)  # a directory cannot be written
    assert held(1) > 300


def test_cpu_time_has_that_of_ended_children_and_none_of_waiting() -> None:
    before = cpu_seconds()
    time.sleep(0.3)
    waited = cpu_seconds() - before
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.4: pass"], check=True)
    assert waited < 0.2
    assert cpu_seconds() - before > 0.35


LISTED = Path(f"/proc/self/task/{os.getpid()}/children").is_file()
ASKS = "import time; held = bytearray({mb} * 2**20); print('held', flush=True); time.sleep({seconds})"


def started(mb: int, seconds: float) -> "subprocess.Popen[bytes]":
    """A process of its own that holds so much memory for a while."""
    words = [sys.executable, "-S", "-E", "-c", ASKS.format(mb=mb, seconds=seconds)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


@pytest.mark.skipif(not LISTED, reason="the system lists no children")
def test_the_peak_counts_a_process_that_the_stage_starts_and_none_that_was_there_before() -> None:
    before = started(600, 60)
    try:
        with measured() as alone:
            time.sleep(0.5)
        with measured() as both, started(300, 0.6) as child:
            child.wait(timeout=30)
    finally:
        before.kill()
        before.wait(timeout=30)
        before.stdout.close()  # type: ignore[union-attr]
    grown = both["peak_memory_mb"] - alone["peak_memory_mb"]
    assert 280 < grown < 500


def test_a_stage_that_is_called_plainly_computes_on_one_thread_as_in_an_audit(tmp_path: Path) -> None:
    loans(60).to_csv(tmp_path / "loans.csv", index=False)
    threads: list[int] = []

    def keep(_: object, produced: Produced, __: int) -> Mapping[str, pa.Table]:
        threads.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return produced.unheld()

    with threadpool_limits(2, user_api="blas"):
        call_plainly(plan(spec_of(tmp_path)).steps[:2], keep)
    assert threads
    assert set(threads) == {1}


def test_every_stage_of_a_lake_computes_on_one_thread_whatever_was_set_between(tmp_path: Path) -> None:
    loans(60).to_csv(tmp_path / "loans.csv", index=False)
    step = plan(spec_of(tmp_path)).steps[0]
    for number in range(3):  # from the second on no library is loaded for the first time
        with threadpool_limits(2, user_api="blas"):
            step.stage.run(Lake(tmp_path / f"lake {number}"), {}, step.settings, step.modules)
            threads = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
        assert threads == {1}
