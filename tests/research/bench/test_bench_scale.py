"""``evenhand bench scale``: processes under watch, the estimate, and the whole of it on a small year."""

import json
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest
from conftest import evenhand

from research.bench import scale, timed_scale
from research.bench import timed_scale as work
from research.bench.timed_scale import Partition, makespan, of_rows, watched, year
from schemas.errors import InfrastructureError, SpecError
from tasks.ingest.synthetic.algorithm.twin import sizes

WORKING = """
import time
held = bytearray(120_000_000)
while time.process_time() < 1.2: pass
time.sleep(0.4)
"""


def partition(rows: int, cpu_s: float) -> Partition:
    return Partition(str(rows), "run", rows, cpu_s, cpu_s, 900.0, 400.0, {"ingest": 0.1, "report": 0.2})


def test_memory_and_time_of_a_process_and_of_its_children_are_seen() -> None:
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {WORKING!r}])"
    process = psutil.Popen([sys.executable, "-c", code])
    with watched([process.pid]) as watch:
        process.wait()
    assert 120 < watch.peak_mb < 300
    assert 0.8 < watch.cpu_s < 2.0


def test_what_was_used_before_the_watch_does_not_count() -> None:
    process = psutil.Popen([sys.executable, "-c", WORKING.replace("0.4", "3")])
    while sum(process.cpu_times()[:2]) < 1.1:
        time.sleep(0.1)
    with watched([process.pid]) as watch:
        time.sleep(0.6)
    process.kill()
    process.wait()
    assert watch.cpu_s < 0.4


def test_of_the_processes_that_work_the_one_that_has_worked_most_is_killed() -> None:
    code = (
        "import multiprocessing, time\n"
        "started = multiprocessing.get_context('spawn').Process(target=time.sleep, args=(60,))\n"
        "started.start()\nstarted.join()\nprint(started.exitcode)"
    )
    process = psutil.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    with watched([process.pid]) as watch:
        while (worker := watch.working()) is None:
            time.sleep(0.1)
        worker.kill()
        out, _ = process.communicate()
    assert worker.pid != process.pid
    assert out.strip() == "-9"


def test_a_lender_costs_what_one_as_large_took_and_a_larger_one_by_its_rows() -> None:
    measured = [partition(1_000, 10.0), partition(1_010, 14.0), partition(16_000, 48.0)]
    assert of_rows(np.array([500.0, 1_005.0, 4_010.0, 16_000.0, 160_000.0]), measured) == pytest.approx(
        [12.0, 12.0, 24.0, 48.0, 480.0], rel=0.01
    )
    estimate = year(2_000_000, 0.5, 500, measured)
    assert len(estimate.costs) == (sizes(2_000_000) >= 1_000).sum()
    assert 0.5 < estimate.beyond < 1.0
    assert estimate.costs.sum() > 12.0 * len(estimate.costs)


def test_a_year_ends_no_earlier_than_its_longest_task() -> None:
    costs = np.array([3.0, 10.0, 2.0, 4.0, 1.0])
    assert [makespan(costs, workers) for workers in (1, 2, 16)] == [20.0, 10.0, 10.0]


def test_a_command_that_fails_is_told_in_its_own_words(tmp_path) -> None:
    with pytest.raises(InfrastructureError, match=r"evenhand show ended with 2: evenhand: no lake at"):
        work.evenhand(["show", "none", "--lake", str(tmp_path)])


def test_without_dask_the_other_runner_is_named(monkeypatch, tmp_path) -> None:
    monkeypatch.setitem(sys.modules, "prefect_dask", None)
    with (
        pytest.raises(InfrastructureError, match=r"evenhand\[dask\]'.*--runner processes"),
        timed_scale.cluster(tmp_path, 1, one_large=False),
    ):
        pass


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(SpecError, match="--rows 100: bench scale needs 5000 rows at least"):
        scale.BENCH.run(rows=100)


def test_options_of_scale_are_refused_by_other_benches() -> None:
    done = evenhand("bench", "ingest", "--kill")
    assert done.returncode == 2
    assert "takes no --kill; bench scale does" in " ".join(done.stderr.split())


@pytest.mark.long
def test_a_small_year_from_the_file_to_the_league() -> None:
    done = evenhand("bench", "scale", "--rows", "10000", "--runner", "processes", "--workers", "2", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    rows = {each["what"]: each for each in found}
    assert "partitions, 2 workers (processes)" in rows["backfill: every partition"]["found"]
    assert {rows[what]["met"] for what in ("backfill: every partition", "short report of a lender")} == {"met"}
    assert rows["partition `all`"]["rows"] == 10_000
    assert rows["league"]["cpu_s"] > 0
    assert rows["backfill again: nothing left"]["ratio"] < 0.5
    first, second = (each for each in found if each["data"].endswith("estimated"))
    assert "lenders; " in first["found"]
    assert "the longest task takes" in first["found"]
    assert second["cpu_s"] > first["cpu_s"] > 0
