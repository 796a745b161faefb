"""One Ctrl-C at 30 moments inside the stages of an audit, which goes on each time: none is lost."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import environment, evenhand
from stopping import LIMIT, MESSAGE, Ended, EndedBeforeError, Running, Warm, promise_kept, spec_of_all_methods

from schemas.terms import ExitCode
from tasks.lake.store import Lake

STAGES = (
    "ingest",
    "preprocess",
    "score",
    "connect",
    "generate",
    "ablate",
    "mediate",
    "detect fgce",
    "detect cst",
    "detect cec",
    "detect gcfn",
    "measure",
    "report",
)
DELAYS = {"score": (0.0, 0.4, 1.0), "ablate": (0.0, 0.5, 1.0, 2.0), "measure": (0.0, 0.3, 0.6, 1.0), "report": (0.0,)}
MOMENTS = [(stage, delay) for stage in STAGES for delay in DELAYS.get(stage, (0.0, 0.3))]
"""Seconds after the line of a stage: inside the next one, or while the run is published. The last makes charts."""


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


@pytest.fixture(scope="module")
def warm(place: Path, server: str) -> Iterator[Warm]:
    process = Warm(environment(server), place / "lake")
    yield process
    process.close()


def test_there_are_thirty_moments() -> None:
    assert len(MOMENTS) == 30


@pytest.mark.parametrize(("stage", "delay"), MOMENTS)
def test_ctrl_c_inside_a_stage(
    stage: str, delay: float, warm: Warm, words: list[str], tmp_path: Path, seconds: list[float]
) -> None:
    ended = _stopped(warm, words, tmp_path, stage, delay)
    assert ended.code == 130, ended.said
    assert ended.said.count(MESSAGE) == 1
    assert "Traceback" not in ended.said
    assert ended.left == []
    assert ended.seconds < LIMIT
    seconds.append(ended.seconds)


def _stopped(warm: Warm, words: list[str], place: Path, stage: str, delay: float) -> Ended:
    """A quick machine may be at the end before the delay is over: half of it is tried then."""
    for attempt in range(4):
        running: Running = warm.started(words, place / f"{attempt}.txt")
        try:
            running.until_said(f"^{stage} ")
            time.sleep(delay / 2**attempt)
            return running.stop()
        except EndedBeforeError:
            running.wait()
    raise AssertionError("the audit always ended before its signal")


def test_the_ends_came_within_five_seconds(seconds: list[float]) -> None:
    assert promise_kept(seconds), sorted(seconds)


def test_the_audit_that_was_stopped_so_often_ends_as_ever(words: list[str], place: Path, server: str) -> None:
    done = evenhand(*words, server=server)
    assert done.returncode == ExitCode.BREACH, done.stderr
    assert Lake(place / "lake").storage.glob("runs/*/manifest.json")
