"""Lock files go with their holders; those that a killed process left go after a day, and held ones are told."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flows.supervision.presence import at_work, free_locks, holders, remove_free_locks
from tasks.lake.store import Lake

HOLDS = """\
import sys, time
from tasks.lake.store import Lake
with Lake(sys.argv[1]).lock("detect-7"):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def locks(lake: Lake) -> list[str]:
    return sorted(path.name for path in (lake.root / "locks").rglob("*.lock") if path.name != "gate.lock")


def aged(lake: Lake, name: str, days: float) -> None:
    path = lake.root / "locks" / f"{name}.lock"
    path.touch()
    before = time.time() - days * 24 * 3600
    os.utime(path, (before, before))


def test_a_lock_file_goes_with_its_holder_and_waiting_ones_take_turns(lake: Lake) -> None:
    with lake.lock("score-1"), lake.lock("year-loans-2024"):
        assert locks(lake) == ["score-1.lock", "year-loans-2024.lock"]
    assert locks(lake) == []


def test_no_two_hold_a_lock_whose_file_goes_each_time(lake: Lake, tmp_path: Path) -> None:
    counts = """\
import sys, time
from pathlib import Path
from tasks.lake.store import Lake
lake, file = Lake(sys.argv[1]), Path(sys.argv[2])
for _ in range(60):
    with lake.lock("count"):
        n = int(file.read_text() or 0)
        time.sleep(0.0005)
        file.write_text(str(n + 1))
"""
    file = tmp_path / "count"
    file.write_text("0")
    words = [sys.executable, "-c", counts, lake.location, str(file)]
    both = [subprocess.Popen(words) for _ in range(2)]
    assert [each.wait(timeout=120) for each in both] == [0, 0]
    assert file.read_text() == "120"
    assert locks(lake) == []


def test_free_lock_files_older_than_a_day_go_and_no_others(lake: Lake) -> None:
    aged(lake, "score-1", 2)
    aged(lake, "score-2", 0.5)
    aged(lake, "score-3", 2)
    with lake.lock("score-3"):
        assert [path.name for path in free_locks(lake)] == ["score-1.lock"]
        assert [path.name for path in remove_free_locks(lake)] == ["score-1.lock"]
        assert locks(lake) == ["score-2.lock", "score-3.lock"]


def test_who_holds_what_is_told_and_a_killed_holder_holds_nothing(lake: Lake) -> None:
    process = subprocess.Popen([sys.executable, "-c", HOLDS, lake.location], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    with at_work(lake, "command-7"):
        told = {each.lock: each.who for each in holders(lake)}
        assert told.pop("detect-7") == ""
        (words,) = told.values()
        assert words.startswith(f"command-7: process {os.getpid()} on ")
    process.kill()
    process.wait()
    process.stdout.close()
    assert holders(lake) == []
    assert locks(lake) == ["detect-7.lock"], "the killed one could not remove it"
    with lake.lock("detect-7"):
        pass
    assert locks(lake) == [], "the next holder did"
