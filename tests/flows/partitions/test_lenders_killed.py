"""A back-fill by partitions whose worker is killed: the partition is done once more, and everything is as without.

So it is where the stages of the partition of every row are tasks of their own.
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager

import psutil
import pytest
from conftest import REPOSITORY, environment
from lenders_of_loans import LARGE, MIDDLE, SMALL, YEAR, write_lenders

from flows.partitions.partition_list import listing, newest
from flows.partitions.year_audit import audit_partition
from flows.runs.index import last_run
from research.bench.timed_scale import cluster
from schemas.audit.partition import ALL
from tasks.lake.store import Lake
from tasks.pipeline.registry import read_spec


def digests(lake):
    """Path -> sha256 of every table of the stages of a lake."""
    records = [json.loads(path.read_text()) for path in lake.root.glob("stages/*/*/partition.json")]
    return {table["path"]: table["sha256"] for record in records for table in record["tables"]}


def kill_one(lake, process):
    """Kill -9 the first worker that is at a stage of a partition; gives the partition."""
    until = time.monotonic() + 240
    while time.monotonic() < until and process.poll() is None:
        for path in lake.root.glob(f"backfills/lenders/{YEAR}/*/0001.json"):
            record = json.loads(path.read_text())
            if record["state"] == "running" and record["stage"]:
                os.kill(record["pid"], signal.SIGKILL)
                return record["value"]
        time.sleep(0.02)
    raise AssertionError("no worker was at a stage")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The spec by lender, and the digests of its partitions audited one after the other, without Prefect."""
    path = write_lenders(tmp_path_factory.mktemp("lenders"))
    alone, spec = Lake(path.parent / "alone"), read_spec(path.read_text(), "lenders.yaml", {}).spec
    for listed in listing(spec, YEAR, alone)[:3]:
        audit_partition(spec, YEAR, listed, alone, "")
    return path, digests(alone)


def survives(path, place, server, *where):
    """Back-fill with one worker killed midway; gives the lake, in which all is done, that one at its second attempt."""
    lake = Lake(place / "lake")
    words = ["backfill", str(path), "--years", str(YEAR), "--lake", lake.location, *where]
    process = subprocess.Popen([sys.executable, "-m", "flows.cli", *words], env=environment(server), cwd=REPOSITORY)
    try:
        killed = kill_one(lake, process)
        assert process.wait(timeout=300) == 0
    finally:
        process.kill()
        process.wait()
    records = newest(lake, "lenders", YEAR)
    assert {value: record.state.value for value, record in records.items()} == {
        "all": "within",
        LARGE: "within",
        MIDDLE: "within",
        SMALL: "too_few",
    }
    assert records[killed].attempt == 2
    return lake


@pytest.mark.long
def test_a_killed_worker_costs_one_more_attempt_and_changes_no_table(written, tmp_path, server):
    path, expected = written
    assert digests(survives(path, tmp_path, server, "--workers", "2")) == expected


@pytest.mark.long
def test_a_killed_dask_worker_costs_one_more_attempt_and_changes_no_table(written, tmp_path, server):
    path, expected = written
    with cluster(tmp_path / "dask", 2, one_large=False) as (address, _):
        lake = survives(path, tmp_path, server, "--runner", "dask", "--address", address)
    assert digests(lake) == expected


STAGES_AS_TASKS = {"EVENHAND_SUB_FLOW_ROWS": "60"}
"""Each stage of a partition of 600 rows is a task then: of `all`, and of no lender."""


@contextmanager
def in_stages(path, place, server, *where):
    """A back-fill with the stages of `all` as tasks: its process and the lake."""
    lake = Lake(place / "lake")
    words = ["backfill", str(path), "--years", str(YEAR), "--lake", lake.location, *where]
    command = [sys.executable, "-m", "flows.cli", *words]
    process = subprocess.Popen(command, env=environment(server) | STAGES_AS_TASKS, cwd=REPOSITORY)
    try:
        yield process, lake
    finally:
        process.kill()
        process.wait()


def computed(lake):
    """Partition -> number of its last attempt, and how many stages that computed."""
    return {value: (r.attempt, r.computed) for value, r in newest(lake, "lenders", YEAR).items() if value != SMALL}


@pytest.mark.long
@pytest.mark.parametrize("dask", [False, True])
def test_stages_as_tasks_change_no_table(written, tmp_path, server, dask):
    path, expected = written
    with ExitStack() as running:
        where = ["--workers", "2"]
        if dask:
            address, _ = running.enter_context(cluster(tmp_path / "dask", 2, one_large=False))
            where = ["--runner", "dask", "--address", address]
        process, lake = running.enter_context(in_stages(path, tmp_path, server, *where))
        assert process.wait(timeout=300) == 0
    assert digests(lake) == expected
    attempts = computed(lake)
    of_all = newest(lake, "lenders", YEAR)[ALL]
    assert attempts.pop(ALL) == (1, len(of_all.stages))  # by its tasks, which the last audit only gathers
    records = [lake.root / "stages" / p.stage / p.key for p in last_run(lake, "lenders", YEAR, ALL).partitions]
    lineages = [json.loads((folder / "lineage.json").read_text()) for folder in records]
    assert of_all.seconds > max(float(lineage["seconds"]) for lineage in lineages)
    first, last = (pick(float(lineage["started"]) for lineage in lineages) for pick in (min, max))
    assert of_all.seconds > last - first
    assert all(attempt == 1 and stages > 0 for attempt, stages in attempts.values())


@pytest.mark.long
def test_a_worker_killed_at_a_stage_costs_that_stage_alone(written, tmp_path, server):
    path, expected = written
    with in_stages(path, tmp_path, server, "--workers", "2") as (process, lake):
        until = time.monotonic() + 240
        while not list(lake.root.glob("stages/score/*/partition.json")):
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.02)
        at_work = newest(lake, "lenders", YEAR)[ALL]
        assert (at_work.state.value, at_work.pid) == ("running", process.pid)
        assert at_work.stage in at_work.stages
        kept = {path: path.stat().st_mtime_ns for path in lake.root.glob("stages/*/*/partition.json")}
        children = psutil.Process(process.pid).children()
        workers = [child for child in children if "spawn_main" in str(child.cmdline())]
        max(workers, key=lambda child: child.cpu_times().user).kill()  # the pool has a process for messages, too
        assert process.wait(timeout=300) == 0
        assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert digests(lake) == expected
    attempt, stages = computed(lake)[ALL]
    assert attempt == 1
    assert 2 in {last for last, _ in computed(lake).values()}  # of a lender at work in the pool that broke
    partitions = last_run(lake, "lenders", YEAR, ALL).partitions
    of_all = [lake.root / "stages" / partition.stage / partition.key / "partition.json" for partition in partitions]
    finished = sum(path in kept for path in of_all)
    assert finished >= 1
    assert len(partitions) - finished <= stages <= len(partitions)


@pytest.mark.long
def test_a_back_fill_killed_at_a_stage_of_all_rows_goes_on_at_its_next_attempt(written, tmp_path, server):
    path, expected = written
    with in_stages(path, tmp_path, server, "--workers", "2") as (process, lake):
        until = time.monotonic() + 240
        while not list(lake.root.glob("stages/score/*/partition.json")):
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
        process.wait()
        died = newest(lake, "lenders", YEAR)[ALL]
    assert (died.attempt, died.state.value) == (1, "interrupted")
    assert f"process {died.pid} on" in died.message
    with in_stages(path, tmp_path, server, "--workers", "2") as (process, _):
        assert process.wait(timeout=300) == 0
    assert digests(lake) == expected
    attempt, stages = computed(lake)[ALL]
    assert attempt == 2
    assert 0 < stages < len(died.stages)
