"""One Ctrl-C at 20 moments of an audit that starts cold, with Prefect embedded: none is lost, and no process stays."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest
from conftest import environment, evenhand
from loans_by_year import WITHIN, write_years
from stopping import LIMIT, MESSAGE, Running, promise_kept, spec_of_all_methods, started

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
    running.until_said(f"^{stage} ")


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
def seconds() -> list[float]:
    """From each signal to the end."""
    return []


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stopped")


@pytest.fixture(scope="module")
def words(place: Path) -> list[str]:
    return ["audit", str(spec_of_all_methods(place)), "--lake", str(place / "lake")]


def test_there_are_twenty_moments() -> None:
    assert len(MOMENTS) == 20


@pytest.mark.parametrize("number", range(len(MOMENTS)))
def test_ctrl_c_while_an_audit_starts(
    number: int, words: list[str], place: Path, tmp_path: Path, seconds: list[float]
) -> None:
    moment, delay = MOMENTS[number]
    (place / "lake" / "locks" / "embedded-api.lock").unlink(missing_ok=True)  # it is waited for
    (place / "lake" / "locks" / "embedded-api.json").unlink(missing_ok=True)
    kernels = {"NUMBA_CACHE_DIR": str(place / "kernels")}  # so that they are compiled once more
    running = started(words, environment(None) | kernels, tmp_path / "said.txt")
    moment(running, place / "lake")
    time.sleep(delay)
    ended = running.stop()
    assert ended.code == 130, ended.said
    assert ended.said.count(MESSAGE) == 1
    assert "Traceback" not in ended.said
    assert ended.left == []
    assert ended.seconds < LIMIT
    seconds.append(ended.seconds)


def test_the_ends_came_within_five_seconds(seconds: list[float]) -> None:
    assert promise_kept(seconds), sorted(seconds)


def test_the_lake_is_sound_afterwards(words: list[str], tmp_path: Path) -> None:
    spec = str(write_years(tmp_path))
    quick = ["audit", spec, "--set", f"source.path={tmp_path / f'loans_{WITHIN}.csv'}", "--lake", words[-1]]
    done = evenhand(*quick)
    assert done.returncode == ExitCode.WITHIN, done.stderr
    assert not (Path(words[-1]) / "locks" / "embedded-api.json").exists()
