"""Scratch: what a stopped stage leaves is whole or not there, is found again, and goes once the stage is published."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import REPOSITORY

from schemas.audit.spec import StageSettings
from schemas.errors import DataQualityError
from schemas.tables.applications import TRAINED_NETS
from tasks.lake.store import Lake
from tasks.pipeline.stage import NOWHERE, Produced, Scratch, stage


class Settings(StageSettings):
    """Whether the stage fails on its way."""

    fails: bool = False


SEEN: list[bytes | None] = []
"""What each call of the stage below found."""


@stage(writes=(TRAINED_NETS,), balanced=False, resumable=True)
def half(*, settings: Settings, scratch: Scratch = NOWHERE) -> Produced:
    """Leaves something, and then fails where it is told to and where nothing was left before."""
    found = scratch.read("so far")
    SEEN.append(found)
    scratch.write("so far", b"half")
    if settings.fails and found is None:
        raise DataQualityError("stopped")
    return Produced({TRAINED_NETS.name: TRAINED_NETS.empty()}, rows_in=0)


half.function.__module__ = "tasks.methods.cec.train.stage"  # keys are made of the code of the project, and of no other


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    SEEN.clear()
    return Lake(tmp_path / "lake")


def test_what_is_written_is_read_by_the_next_process_and_nothing_is_made_before(lake: Lake) -> None:
    scratch = Scratch(lake, "train", "k")
    assert scratch.read("a") is None
    assert not (lake.root / "unfinished").exists()
    scratch.write("a", b"one")
    scratch.write("a", b"two")
    again = Scratch(Lake(lake.root), "train", "k")
    assert again.read("a") == b"two"
    assert again.path("a") == lake.root / "unfinished" / "train-k" / "a"
    assert Scratch(lake, "train", "other").read("a") is None
    again.clear()
    assert again.read("a") is None
    assert not list((lake.root / "tmp").iterdir())


def test_without_a_lake_nothing_is_kept() -> None:
    NOWHERE.write("a", b"one")
    assert NOWHERE.read("a") is None
    assert NOWHERE.path("a") is None
    NOWHERE.clear()


def test_a_writer_killed_before_it_gives_the_name_leaves_what_was_there(lake: Lake) -> None:
    code = """
import os, signal, sys
from pathlib import Path
from tasks.pipeline.stage import Scratch
from tasks.lake.store import Lake
scratch = Scratch(Lake(Path(sys.argv[1])), "train", "k")
scratch.write("a", b"one")
Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
scratch.write("a", b"two")
"""
    done = subprocess.run([sys.executable, "-c", code, str(lake.root)], cwd=REPOSITORY, check=False)
    assert done.returncode == -9
    scratch = Scratch(lake, "train", "k")
    assert scratch.read("a") == b"one"
    scratch.clear()  # the draft of the one that was killed goes with it
    assert not list((lake.root / "unfinished").iterdir())


def test_a_stage_that_failed_finds_what_it_left_and_leaves_nothing_once_it_is_published(lake: Lake) -> None:
    with pytest.raises(DataQualityError, match="stopped"):
        half.run(lake, {}, Settings(fails=True))
    key = half.key({}, Settings(fails=True))
    assert Scratch(lake, "half", key).read("so far") == b"half"
    assert half.run(lake, {}, Settings(fails=True)).stage == "half"
    assert SEEN == [None, b"half"]
    assert Scratch(lake, "half", key).read("so far") is None


def test_what_is_left_of_a_published_stage_is_removed_when_it_is_found_again(lake: Lake) -> None:
    half.run(lake, {}, Settings())
    left = Scratch(lake, "half", half.key({}, Settings()))
    left.write("so far", b"killed between the two")
    assert half.run(lake, {}, Settings()).reused
    assert left.read("so far") is None
    assert SEEN == [None]


def test_a_resumable_stage_is_also_a_plain_function() -> None:
    found = half.function(settings=Settings())
    assert isinstance(found.tables[TRAINED_NETS.name], pa.Table)
