"""Worker processes: the same bytes at any number of jobs and threads, errors as they were raised, and their end."""

import os
import pickle
import signal
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from conftest import SPEC, loans, spec_of

from flows.concurrency import workers as pools
from flows.concurrency.schedule import Schedule
from flows.concurrency.workers import StageCall, portable, threads_of, workers, worthwhile
from schemas.artifact import Partition
from schemas.errors import EvenhandError, InfrastructureError, IntegrityError, SpecError, SpecFaultsError
from tasks.lake.store import Lake
from tasks.plan import Inputs, Plan, plan, walk

_SMALL = {
    "methods__fgce": "null",
    "methods__adjusted": "null",
    "methods__cst": "{ks: [5], k: 5, null_permutations: 1, null_complainants: 5}",
    "thresholds": "[]",
}


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    place = tmp_path_factory.mktemp("loans")
    loans(150).to_csv(place / "loans.csv", index=False)
    return plan(spec_of(place, SPEC, bootstrap__draws="100", **_SMALL))


def digests(done: list[Partition]) -> list[str]:
    return [artifact.sha256 for partition in done for artifact in partition.tables]


@pytest.mark.parametrize(("jobs", "threads"), [(2, 1), pytest.param(1, 2, marks=pytest.mark.slow)])
def test_tables_are_the_same_bytes_in_one_process_and_in_several(
    planned: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int, threads: int
) -> None:
    here, there, steps = Lake(tmp_path / "here"), Lake(tmp_path / "there"), planned.steps[:-3]
    alone = walk(steps, lambda step, given: step.stage.run(here, given, step.settings, step.modules))
    monkeypatch.setattr(pools, "threads_of", lambda _: threads)
    with workers(jobs) as processes, ThreadPoolExecutor(jobs) as pool:

        def start(at: int, read: Inputs) -> Future[Partition]:
            return pool.submit(processes.compute, at, StageCall.of(steps[at], read, there.location))

        done = Schedule(steps, [None] * len(steps), jobs).run(start, lambda *_: None)
    assert digests(done) == digests(alone)
    records = [there.lineage(each) for each in done]
    assert {record["threads"] for record in records} == {threads}
    assert all(record["peak_memory_mb"] > 50 for record in records)


def test_the_error_of_a_stage_arrives_as_it_was_raised_with_its_frames(planned: Plan, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    made = planned.steps[0].stage.run(lake, {}, planned.steps[0].settings)
    for file in tmp_path.glob("stages/ingest/*/applications.parquet"):
        file.write_bytes(b"altered")
    given = {table.name: [a for a in made.tables if a.table == table.name] for table in planned.steps[1].stage.reads}
    with workers(1) as processes, pytest.raises(IntegrityError, match=r"applications\.parquet is missing") as raised:
        processes.compute(1, StageCall.of(planned.steps[1], given, str(tmp_path)))
    assert any("in read" in frame for frame in raised.value.frames)  # type: ignore[attr-defined]


def test_a_killed_worker_is_an_error_that_names_the_stage(planned: Plan, tmp_path: Path) -> None:
    call = StageCall.of(planned.steps[0], {}, str(tmp_path))
    Lake(tmp_path)
    held = Lake(tmp_path).lock(f"ingest-{planned.steps[0].stage.key({}, planned.steps[0].settings)}")
    with workers(1) as processes, ThreadPoolExecutor(1) as threads, held:
        asked = threads.submit(processes.compute, 0, call)  # it waits for the lock
        [process] = _eventually_workers(1)
        process.kill()
        with pytest.raises(InfrastructureError, match="killed while stage ingest ran"):
            asked.result(timeout=60)


def test_a_request_to_stop_ends_workers_at_once(planned: Plan, tmp_path: Path) -> None:
    call = StageCall.of(planned.steps[0], {}, str(tmp_path))
    ended: list[float] = []
    with Lake(tmp_path).lock(f"ingest-{planned.steps[0].stage.key({}, planned.steps[0].settings)}"):
        with pytest.raises(KeyboardInterrupt):
            _stopped(call, ended)
        assert time.monotonic() - ended[0] < 5
        for _ in range(50):
            time.sleep(0.1 if _workers() else 0)
        assert _workers() == []


def _stopped(call: StageCall, ended: list[float]) -> None:
    """Ask for a stage that waits for its lock, and be stopped, as by Ctrl-C, which workers get as well."""
    with workers(1) as processes:
        waiting = threading.Thread(target=_asked, args=(processes, call))
        waiting.start()
        [process] = _eventually_workers(1)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert process.is_running(), "it is the command that ends it"
        ended.append(time.monotonic())
        raise KeyboardInterrupt


def _asked(processes: pools.Workers, call: StageCall) -> None:
    with pytest.raises(InfrastructureError):
        processes.compute(0, call)


def _eventually_workers(number: int) -> list[psutil.Process]:
    """Processes of the pool, as soon as there are so many."""
    for _ in range(600):
        if len(found := _workers()) == number:
            return found
        time.sleep(0.1)
    raise AssertionError("no worker started")


def _workers() -> list[psutil.Process]:
    return [each for each in psutil.Process().children(recursive=True) if _is_worker(each)]


def _is_worker(process: psutil.Process) -> bool:
    """A grandchild: the fork server is the child."""
    try:
        return process.ppid() != os.getpid() and any("forkserver" in word for word in process.cmdline())
    except psutil.Error:
        return False


@pytest.mark.parametrize(
    ("seconds", "jobs"), [([3.0, 10.0], 1), ([3.0, 30.0], 4), ([3.0, None], 4), ([], 1), ([19.9], 1), ([20.0], 4)]
)
def test_little_work_stays_in_the_process(seconds: list[float | None], jobs: int) -> None:
    assert worthwhile(4, seconds) == jobs


def test_workers_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    monkeypatch.setattr(pools, "cores", lambda: 8)
    assert [threads_of(jobs) for jobs in (1, 2, 3, 8, 20)] == [8, 4, 2, 1, 1]
    monkeypatch.setenv("NUMBA_NUM_THREADS", "3")
    assert threads_of(2) == 3


def test_every_error_of_ours_reaches_another_process() -> None:
    kinds = [EvenhandError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    for kind in (kind for kind in kinds if kind.__module__ == EvenhandError.__module__):
        error = SpecFaultsError([SpecError("a fault", ("year",))]) if kind is SpecFaultsError else kind("a fault")
        back = pickle.loads(pickle.dumps(portable(error)))
        assert str(back) == "a fault"
        assert type(back) is kind
