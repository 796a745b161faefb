"""`evenhand backfill --fan-out`: a flow run a year on a real server, audited by a real worker, and nothing twice."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import evenhand_process
from restartable_server import Server, deployed, until
from shaken_years import YEARS, digests, left_alone, write_four_years

from schemas.terms import ExitCode
from tasks.lake.store import Lake

SPAN = f"{YEARS[0]}-{YEARS[1]}"


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_four_years(tmp_path_factory.mktemp("fan"))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "prefect").mkdir()
    server = Server(tmp_path / "prefect")
    server.start()
    try:
        yield server
    finally:
        server.end()


@pytest.mark.long
def test_each_year_is_a_run_of_its_own_and_a_second_call_begins_none(spec: Path, served: Server) -> None:
    lake = served.home.parent / "lake"
    words = ("backfill", str(spec), "--years", SPAN, "--lake", str(lake), "--fan-out", "backfill/living")
    with deployed(served, "flows.backfill.backfill") as deployment:
        worker = served.worker(lake)
        done = served.run(*words)
        assert done.returncode == ExitCode.WITHIN, done.stderr + served.log()
        assert "2 years are left: 2 flow runs of backfill/living" in done.stderr
        runs = deployment.client.read_flow_runs()
        assert sorted(run.parameters["years"] for run in runs) == [[YEARS[0]], [YEARS[1]]]
        expected = left_alone(spec, served.home.parent / "quiet")
        assert digests(Lake(lake)) == {year: expected[year] for year in YEARS[:2]}
        again = served.run(*words)
        assert again.returncode == ExitCode.WITHIN, again.stderr
        assert "0 years are left" in again.stderr
        assert len(deployment.client.read_flow_runs()) == 2
        unknown = served.run(*words[:-1], "backfill/livin")
        assert unknown.returncode == ExitCode.USAGE
        assert "no such deployment; did you mean 'backfill/living'" in unknown.stderr
        worker.terminate()
        worker.wait(timeout=45)


@pytest.mark.long
def test_a_server_that_goes_away_is_told_and_the_runs_are_left(spec: Path, served: Server, tmp_path: Path) -> None:
    words = ("backfill", str(spec), "--years", SPAN, "--lake", str(tmp_path / "lake"), "--fan-out", "backfill/living")
    with deployed(served, "flows.backfill.backfill") as deployment, ThreadPoolExecutor(1) as pool:
        served.more["PREFECT_CLIENT_MAX_RETRIES"] = "1"
        waiting = pool.submit(served.run, *words)  # no worker takes them
        until("both are begun", lambda: len(deployment.client.read_flow_runs()) == 2)
        served.kill()
        done = waiting.result()
    assert done.returncode == ExitCode.INFRASTRUCTURE
    assert "the server does not answer any more" in done.stderr
    assert "runs at work go on without this command" in done.stderr


def test_without_a_server_or_with_partitions_it_says_what_to_do(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("backfill", str(spec), "--years", SPAN, "--lake", str(tmp_path / "lake"), "--fan-out", "backfill/by-hand")
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    done = evenhand_process(*words)
    assert done.returncode == ExitCode.USAGE
    assert "--fan-out begins runs on a server: name it, as in PREFECT_API_URL=" in done.stderr
    parted = evenhand_process(*words, "--set", "by={column: region}")
    assert parted.returncode == ExitCode.USAGE
    assert "partitions of a spec with `by` are spread by --runner dask" in parted.stderr
