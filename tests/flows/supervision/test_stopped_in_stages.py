"""One Ctrl-C at 30 moments inside the stages of an audit, which goes on each time: none is lost."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import environment, evenhand
from stopping import AFTERWARDS, Ended, EndedBeforeError, Running, Stops, Warm, few_of

from schemas.terms import ExitCode
from tasks.lake.store import Lake

pytestmark = pytest.mark.slow

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
def stops(tmp_path_factory: pytest.TempPathFactory) -> Stops:
    return Stops.of(tmp_path_factory.mktemp("stopped"))


@pytest.fixture(scope="module")
def warm(stops: Stops, server: str) -> Iterator[Warm]:
    process = Warm(environment(server), stops.lake)
    yield process
    process.close()


def test_there_are_thirty_moments() -> None:
    assert len(MOMENTS) == 30


@pytest.mark.parametrize("moment", few_of(MOMENTS, usual=1, slow=2), ids=str)
def test_ctrl_c_inside_a_stage(moment: tuple[str, float], warm: Warm, stops: Stops, tmp_path: Path) -> None:
    stops.add(_stopped(warm, stops.words, tmp_path, *moment))


def _stopped(warm: Warm, words: list[str], place: Path, stage: str, delay: float) -> Ended:
    """A quick machine may be at the end before the delay is over: half of it is tried then."""
    for attempt in range(4):
        running: Running = warm.started(words, place / f"{attempt}.txt")
        try:
            running.until_said(rf"^\d+ of \d+ {stage}: ")
            time.sleep(delay / 2**attempt)
            return running.stop()
        except EndedBeforeError:
            running.wait()
    raise AssertionError("the audit always ended before its signal")


@pytest.mark.parametrize("after", AFTERWARDS)
def test_the_ends_came_within_five_seconds(after: str, stops: Stops) -> None:
    stops.check_promise()


@pytest.mark.slow
def test_the_audit_that_was_stopped_so_often_ends_as_ever(stops: Stops, server: str) -> None:
    done = evenhand(*stops.words, server=server)
    assert done.returncode == ExitCode.OUTSIDE, done.stderr
    assert Lake(stops.lake).storage.glob("runs/*/manifest.json")
