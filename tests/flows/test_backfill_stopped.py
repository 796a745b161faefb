"""A back-fill that a signal stops: its workers end with it, Prefect is told, and it goes on from there."""

import shutil
import signal
from pathlib import Path

import pytest
from conftest import environment, evenhand_process
from loans_by_year import WITHIN, write_years
from stopping import MESSAGE, started

from flows.partitions.attempts import YearState, latest
from flows.supervision.prefect_server import of_lake
from schemas.terms import ExitCode
from tasks.lake.store import Lake

pytestmark = pytest.mark.slow

YEARS = range(WITHIN - 2, WITHIN + 1)
"""One after the other: a signal that comes late on a busy machine still finds a year to come."""
STOPS = (("processes", signal.SIGINT, "ingest", 130), ("threads", signal.SIGTERM, "preprocess", 143))


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    place = tmp_path_factory.mktemp("stopped")
    spec = write_years(place)
    for year in YEARS[:-1]:
        shutil.copyfile(place / f"loans_{WITHIN}.csv", place / f"loans_{year}.csv")
    span = f"{YEARS[0]}-{YEARS[-1]}"
    return ["backfill", str(spec), "--years", span, "--workers", "1", "--lake", str(place / "lake")]


@pytest.mark.parametrize(
    ("runner", "number", "stage", "code"),
    [pytest.param(*stop, id=stop[0]) for stop in STOPS],
)
def test_a_back_fill_ends_with_its_workers(
    runner: str, number: signal.Signals, stage: str, code: int, words: list[str], tmp_path: Path, server: str
) -> None:
    home = Path(words[-1])
    began = len(list(home.glob(f"stages/{stage}/*/partition.json")))
    running = started([*words, "--runner", runner], environment(server), tmp_path / "said.txt")
    running.until(lambda: len(list(home.glob(f"stages/{stage}/*/partition.json"))) > began)
    ended = running.stop(number)
    assert ended.code == code, ended.said
    assert ended.said.count(MESSAGE) == 1
    assert "Traceback" not in ended.said
    assert ended.left == []
    states = [record.state if (record := latest(Lake(home), "yearly", year)) else None for year in YEARS]
    assert YearState.RUNNING not in states
    assert {None, YearState.INTERRUPTED} & set(states), states


def test_a_stopped_back_fill_goes_on(words: list[str], server: str) -> None:
    done = evenhand_process(*words, server=server)
    assert done.returncode == ExitCode.WITHIN, done.stderr
    assert "RUNNING" not in _states(Lake(words[-1]), server)


def _states(lake: Lake, server: str) -> list[str]:
    """Of the flow runs on a lake, the newest first."""
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings

    every = ["RUNNING", "CRASHED", "FAILED", "CANCELLED", "COMPLETED"]
    with temporary_settings({PREFECT_API_URL: server}), get_client(sync_client=True) as client:
        return [run.state.type.value for run in of_lake(client, lake, every) if run.state is not None]
