"""Mediate, stopped: killed, damaged, of another run, diverged. It goes on where it was, or says what to do."""

import hashlib
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from conftest import REPOSITORY, environment, loans
from test_mediate import GCFN, asked, steps_of

from schemas.artifact import Partition
from schemas.errors import DataQualityError, IntegrityError
from tasks.counterfactuals import gan
from tasks.lake.store import Lake
from tasks.numerics.networks.training import of_bytes, to_bytes
from tasks.pipeline import progress
from tasks.pipeline.stage import Scratch
from tasks.plan import inputs

KILLED = """
import os, signal, sys
from pathlib import Path
import test_mediate_stopped as own
from tasks.counterfactuals import gan as ensembles
from tasks.pipeline.stage import Scratch
ensembles._KEPT_EVERY_S = 0.0
write, left = Scratch.write, [2]
def counted(self, name, content):
    write(self, name, content)
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
Scratch.write = counted
own.run(Path(sys.argv[1]), "killed")
"""


def run(place: Path, lake: str, gcfn: dict[str, object] = GCFN) -> Partition:
    """The stage and those before it on a lake."""
    store, done = Lake(place / lake), list[Partition]()
    for step in steps_of(asked(place, gcfn)):
        done.append(step.stage.run(store, inputs(step, done), step.settings, step.modules))
    return done[-1]


def digests(partition: Partition) -> str:
    return hashlib.sha256("".join(a.sha256 for a in partition.tables).encode()).hexdigest()


def states(place: Path, lake: str) -> Path:
    (home,) = (place / lake / "unfinished").iterdir()
    return home


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Loans with a lake on which training was killed in its second epoch, and the digest of a run nobody stopped."""
    place = tmp_path_factory.mktemp("stopped")
    loans(200).to_csv(place / "loans.csv", index=False)
    paths = os.pathsep.join(
        map(str, (REPOSITORY, REPOSITORY / "tests", REPOSITORY / "tests" / "material", Path(__file__).parent))
    )
    env = {**environment(None), "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(place)], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == -9, done.stderr
    return place, digests(run(place, "untouched"))


@pytest.mark.slow
def test_the_state_is_kept_by_the_clock_at_the_end_and_when_asked_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loans(200).to_csv(tmp_path / "loans.csv", index=False)
    kept: list[int] = []
    write = Scratch.write

    def noted(self: Scratch, name: str, content: bytes) -> None:
        kept.append(of_bytes(content).epoch)
        write(self, name, content)

    monkeypatch.setattr(Scratch, "write", noted)
    whole = digests(run(tmp_path, "undisturbed"))
    assert kept == [3]
    monkeypatch.setattr(gan, "_KEPT_EVERY_S", 0.0)
    assert digests(run(tmp_path, "often")) == whole
    assert kept == [3, 1, 2, 3]
    monkeypatch.setattr(gan, "_KEPT_EVERY_S", 15.0)
    with monkeypatch.context() as during:
        during.setattr(progress._Request, "made", False)
        during.setattr(gan, "stop_requested", lambda: progress.request_stop() or True)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, "stopped")
    assert kept == [3, 1, 2, 3, 1]
    assert digests(run(tmp_path, "stopped")) == whole
    assert kept == [3, 1, 2, 3, 1, 3]


@pytest.mark.long
class TestStopped:
    def copy(self, place: Path, lake: str) -> Path:
        shutil.copytree(place / "killed", place / lake)
        return states(place, lake)

    def test_a_run_that_was_killed_goes_on_to_the_same_tables(
        self, stopped: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place, whole = stopped
        (kept,) = self.copy(place, "resumed").glob("*.safetensors")
        assert of_bytes(kept.read_bytes()).epoch == 2
        written: list[str] = []
        write = Scratch.write
        monkeypatch.setattr(Scratch, "write", lambda self, *args: written.append(args[0]) or write(self, *args))
        assert digests(run(place, "resumed")) == whole
        assert len(written) == 1
        assert not list((place / "resumed" / "unfinished").iterdir())

    def test_a_damaged_state_is_trained_anew_and_said_to_be(
        self, stopped: tuple[Path, str], caplog: pytest.LogCaptureFixture
    ) -> None:
        place, whole = stopped
        (kept,) = self.copy(place, "damaged").glob("*.safetensors")
        content = bytearray(kept.read_bytes())
        content[-1] ^= 1
        kept.write_bytes(bytes(content))
        with caplog.at_level(logging.WARNING, logger="evenhand"):
            assert digests(run(place, "damaged")) == whole
        assert str(kept) in caplog.text

    def test_a_state_of_another_run_is_refused_and_its_place_named(self, stopped: tuple[Path, str]) -> None:
        place, _ = stopped
        (kept,) = self.copy(place, "foreign").glob("*.safetensors")
        other = next((place / "untouched").glob("stages/mediate/*/generators.parquet"))
        state = of_bytes(pq.read_table(other)["content"][0].as_py())
        kept.write_bytes(to_bytes(type(state)(1, state.tensors, "other")))
        with pytest.raises(IntegrityError, match="race: the checkpoint is of a training run on other rows") as refused:
            run(place, "foreign")
        assert f"remove {kept}" in str(refused.value)

    @pytest.mark.filterwarnings("ignore::RuntimeWarning")
    def test_a_loss_that_is_no_number_stops_with_the_last_good_state_on_disk(self, stopped: tuple[Path, str]) -> None:
        place, _ = stopped
        with pytest.raises(DataQualityError, match="race: training of the generators diverged") as stop:
            run(place, "diverged", {**GCFN, "learning_rate": 1e38})
        (kept,) = states(place, "diverged").glob("*.safetensors")
        assert str(kept) in str(stop.value)
        assert "methods.gcfn" in str(stop.value)
        assert of_bytes(kept.read_bytes()).epoch == 0
