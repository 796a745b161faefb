"""One Ctrl-C at 20 moments of an audit that starts cold, with Prefect embedded: none is lost, and no process stays."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest
from conftest import environment, evenhand_process
from loans_by_year import WITHIN, write_years
from stopping import AFTERWARDS, Running, Stops, few_of, started

from schemas.terms import ExitCode

Moment = Callable[[Running, Path], None]


def listening(running: Running, _: Path) -> None:
    """The command heeds signals: a process without a handler for SIGTERM has not come so far."""
    status = Path(f"/proc/{running.process.pid}/status")

    def heeds() -> bool:
        caught = next(line for line in status.read_text().splitlines() if line.startswith("SigCgt"))
        return bool(int(caught.split()[1], 16) & 1 << 14)

    running.until(heeds)


def starting_prefect(running: Running, lake: Path) -> None:
    running.until((lake / "locks" / "embedded-api.lock").is_file)
    running.until(lambda: bool(_children(running.process)))


def at_prefect(running: Running, lake: Path) -> None:
    record = lake / "locks" / "embedded-api.json"
    running.until(lambda: record.is_file() and f'"pid": {running.process.pid}' not in record.read_text())


def after(stage: str, running: Running, _: Path) -> None:
    running.until_said(rf"^\d+ of \d+ {stage}: ")


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


MOMENTS = [
    *((listening, delay) for delay in (0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5)),
    *((starting_prefect, delay) for delay in (0.0, 0.4, 1.0)),
    *((at_prefect, delay) for delay in (0.0, 0.5, 1.0)),
    *((partial(after, "ingest"), delay) for delay in (0.0, 0.5)),
    *((partial(after, "score"), delay) for delay in (0.0, 0.5)),
    (partial(after, "generate"), 0.5),
    (partial(after, "ablate"), 1.0),
]


@pytest.fixture(scope="module")
def stops(tmp_path_factory: pytest.TempPathFactory) -> Stops:
    return Stops.of(tmp_path_factory.mktemp("stopped"))


def test_there_are_twenty_moments() -> None:
    assert len(MOMENTS) == 20


@pytest.mark.parametrize("number", few_of(range(len(MOMENTS)), usual=1, slow=1))
def test_ctrl_c_while_an_audit_starts(number: int, stops: Stops, tmp_path: Path) -> None:
    moment, delay = MOMENTS[number]
    (stops.lake / "locks" / "embedded-api.lock").unlink(missing_ok=True)  # it is waited for
    (stops.lake / "locks" / "embedded-api.json").unlink(missing_ok=True)
    kernels = {"NUMBA_CACHE_DIR": str(stops.place / "kernels")}  # so that they are compiled once more
    running = started(stops.words, environment(None) | kernels, tmp_path / "said.txt")
    moment(running, stops.lake)
    time.sleep(delay)
    stops.add(running.stop())


@pytest.mark.parametrize("after", AFTERWARDS)
def test_the_ends_came_within_five_seconds(after: str, stops: Stops) -> None:
    stops.check_promise()


@pytest.mark.slow
def test_the_lake_is_sound_afterwards(stops: Stops, tmp_path: Path) -> None:
    spec = str(write_years(tmp_path))
    quick = ["audit", spec, "--set", f"source.path={tmp_path / f'loans_{WITHIN}.csv'}", "--lake", str(stops.lake)]
    done = evenhand_process(*quick)
    assert done.returncode == ExitCode.WITHIN, done.stderr
    assert not (stops.lake / "locks" / "embedded-api.json").exists()
