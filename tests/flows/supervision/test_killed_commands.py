"""A command that was killed left no word: the next one on the lake tells which stage it was in, once."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from flows.supervision.presence import at_work, command_id, in_stage, killed, recorded
from tasks.lake.store import Lake

AT_WORK = """
import sys, time
from flows.supervision.presence import at_work; from flows.supervision.presence import command_id; from flows.supervision.presence import in_stage
from tasks.lake.store import Lake
lake = Lake(sys.argv[1])
with at_work(lake, command_id()):
    in_stage(lake, "detect cst")
    print("in it", flush=True)
    time.sleep(60)
"""  # noqa: E501


def test_a_killed_command_is_told_with_its_stage_by_the_next_one(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    process = subprocess.Popen([sys.executable, "-c", AT_WORK, str(tmp_path / "lake")], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"in it\n"
    assert list(killed(lake)) == [], "it is at work"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    (words,) = killed(lake)
    assert words.startswith(f"process {process.pid} on ")
    assert "in stage detect cst, ended without a word, as when it is killed: was there memory enough?" in words
    assert list(killed(lake)) == [], "told once"


def test_a_command_that_ends_in_order_is_not_told(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    with at_work(lake, command_id()):
        in_stage(lake, "score")
        assert [presence.stage for presence in recorded(lake)] == ["score"]
    assert list(killed(lake)) == []
    assert list((tmp_path / "lake" / "locks" / "alive").iterdir()) == []
