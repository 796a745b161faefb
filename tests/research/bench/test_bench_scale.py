"""``evenhand bench scale``: processes under watch, the estimate, and the whole of it on a small year."""

import json
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from conftest import REPOSITORY, evenhand

from flows.partitions.year_plan import expected_steps
from research.bench import scale, timed_scale
from research.bench import timed_scale as work
from research.bench.timed_scale import Partition, chain, makespan, watched, year
from schemas.errors import InfrastructureError, SpecError

NOTHING = work.Told("", 0.0, 0.0, 0.0)
WORKING = """
import time
held = bytearray(120_000_000)
while time.process_time() < 1.2: pass
time.sleep(0.4)
"""


def partition(usable: int, cpu_s: float, value: str = "") -> Partition:
    steps = {"ingest": 0.1 * cpu_s, "adjust": 0.7 * cpu_s, "report": 0.2 * cpu_s}
    waits: dict[str, tuple[str, ...]] = {"adjust": ("ingest",), "report": ("ingest",)}
    return Partition(value or str(usable), "run", 2 * usable, usable, cpu_s, steps, dict.fromkeys(steps, 900.0), waits)


@pytest.fixture
def settings(tmp_path: Path) -> scale.Asked:
    work.write_spec(tmp_path, scale.ROWS, gcfn=False)
    return scale.Asked(tmp_path, scale.ROWS, 2, "processes", gcfn=False, kill=False)


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


def test_the_worker_of_a_lender_is_killed_once_enough_are_measured(tmp_path: Path) -> None:
    process, other = (psutil.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) for _ in range(2))
    kill = work.Kill(tmp_path, 1)
    for value, pid, state in (("all", other.pid, "running"), ("A", other.pid, "done"), ("B", process.pid, "running")):
        file = tmp_path / "backfills" / "national" / "2022" / value / "0001.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"value": value, "pid": pid, "state": state, "stage": "adjust"}), encoding="utf-8")
    with watched([process.pid]) as watch, watched([other.pid]) as beside:
        kill.look([beside, watch])
        assert kill.value == ""
        (tmp_path / "stages" / "measure" / "key").mkdir(parents=True)
        (tmp_path / "stages" / "measure" / "key" / "partition.json").touch()
        kill.look([beside, watch])
    assert kill.value == "B"
    assert process.wait() == -9
    assert other.poll() is None
    other.kill()
    other.wait()


def test_a_lender_costs_what_plan_expects_after_those_that_were_measured(settings: scale.Asked) -> None:
    measured = [partition(1_000, 10.0), partition(1_010, 14.0), partition(16_000, 48.0)]
    size = np.array([160_000, 32_000, 8_020, 2_010, 999])
    estimate = year(size, 0.5, 500, settings.audit, measured)
    largest = sum(expected_steps(settings.audit, list(measured[0].steps), 80_000, [measured[-1].past]))
    assert estimate.costs == pytest.approx([largest, 48.0, 24.0, 12.0], rel=0.01)
    assert 48.0 < largest < 48.0 * 5
    assert estimate.lenders == 5
    assert estimate.covered == pytest.approx(size[:-1].sum() / size.sum())
    assert estimate.beyond == pytest.approx(estimate.costs[0] / estimate.costs.sum())


def test_the_longest_chain_follows_the_steps_that_wait() -> None:
    seconds = {"ingest": 1.0, "connect": 5.0, "mediate": 2.0, "detect": 4.0, "report": 1.0}
    waits = {"connect": ["ingest"], "mediate": ["ingest"], "detect": ["mediate"], "report": ["connect", "detect"]}
    assert chain(seconds, waits) == (8.0, ["ingest", "mediate", "detect", "report"])


def test_real_years_are_all_their_rows_and_end_with_their_longest_task(settings: scale.Asked) -> None:
    every = partition(2_000_000, 1_000.0, "all")  # more than the shipped table has: time grows as rows do
    added = work.Told("", 1.0, 20.0, 500.0)
    measured = [partition(1_000, 10.0), partition(100_000, 400.0), every]
    rows = {line["what"]: line for line in scale._estimated(settings, measured, added, 1_440.0, 2.0)}
    growth, of_all = 16_080_210 / 2_000_000, 16_080_210 / 4_000_000
    assert rows["2022: longest audit"]["cpu_s"] == pytest.approx(1_000 * of_all + 10, rel=1e-4)  # 10 a partition beside
    assert rows["2022: longest audit"]["found"].startswith("`all`, ")
    assert rows["2022: critical path"]["cpu_s"] == pytest.approx(20 * growth + 800 * of_all, rel=1e-4)
    assert "stages of `all` (ingest, adjust)" in rows["2022: critical path"]["found"]
    total, two = rows["2022: every task"], rows["2022: on 2 workers"]
    assert two["seconds"] == pytest.approx((total["cpu_s"] + 20 * growth) / 2, rel=0.01)
    assert two["found"] == f"{two['seconds'] / 3600:.1f} h; {two['seconds'] / 7200:.1f} h of the reference"
    assert " of 4,460 lenders, " in total["found"]
    assert rows["2020: every task"]["cpu_s"] > total["cpu_s"]


def test_the_page_has_the_table_that_the_command_writes(settings: scale.Asked) -> None:
    lenders = [partition(usable, 10.0) for usable in (400, 1_000, 4_000, 20_000, 80_000)]
    measured = [*lenders, partition(1_000_000, 1_000.0, "all")]
    estimated = scale.markdown([*scale._estimated(settings, measured, NOTHING, 0.0, 1.0)]).splitlines()
    page = (REPOSITORY / "docs" / "scale.md").read_text(encoding="utf-8")
    on_page = page.partition(estimated[0])[2].partition("\n\n")[0].splitlines()[2:]
    whats = [line.split(" | ")[0].removeprefix("| ") for line in on_page]
    names = [line.split(" | ")[0].removeprefix("| ") for line in estimated[2:]]
    first = whats.index(names[0])
    assert whats[first:] == [*names, "this machine"]
    printed = {row["what"] for row in scale._by_size(settings, measured)}
    source = Path(scale.__file__).read_text(encoding="utf-8")
    before = whats[:first]
    assert len(before) > 10
    assert [what for what in before if what not in printed and f'"{what}"' not in source] == []


def test_a_year_ends_no_earlier_than_its_longest_task() -> None:
    costs = np.array([3.0, 10.0, 2.0, 4.0, 1.0])
    assert [makespan(costs, workers) for workers in (1, 2, 16)] == [20.0, 10.0, 10.0]


def test_stages_of_one_audit_go_first_and_wait_for_each_other() -> None:
    stages, waits = {"ingest": 2.0, "mediate": 6.0, "adjust": 5.0, "report": 1.0}, {"mediate": ["ingest"]}
    waits |= {"adjust": ["ingest"], "report": ["mediate", "adjust"]}
    assert makespan(np.array([]), 1, stages, waits) == 14.0
    assert makespan(np.array([]), 2, stages, waits) == 9.0
    assert makespan(np.array([2.0, 3.0]), 2, stages, waits) == 10.0  # 3.0 first, and adjust waits for it
    assert makespan(np.array([30.0]), 2, stages, waits) == 30.0


def test_a_command_that_fails_is_told_in_its_own_words(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match=r"evenhand show ended with 2: evenhand: no lake at"):
        work.evenhand(["show", "none", "--lake", str(tmp_path)])


def test_without_dask_the_other_runner_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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
    assert rows["backfill: every partition"]["found"].endswith(" on 2 workers (processes)")
    assert rows["this machine"]["found"].endswith("times the CPU time of the reference, by a yardstick a minute")
    assert {rows[what]["met"] for what in ("backfill: every partition", "short report of a lender")} == {"met"}
    assert rows["partition `all`"]["rows"] == 10_000
    assert rows["league"]["cpu_s"] > 0
    assert rows["backfill again: nothing left"]["ratio"] < 0.5
    assert rows["2020: every task"]["cpu_s"] > rows["2022: every task"]["cpu_s"] > 0
    page = (REPOSITORY / "docs" / "scale.md").read_text(encoding="utf-8")
    sizes_differ = ("a lender of", "partition ")
    assert [what for what in rows if f"| {what} | " not in page and not what.startswith(sizes_differ)] == []
