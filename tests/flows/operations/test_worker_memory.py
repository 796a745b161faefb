"""What a worker remembers of runs that were killed: how much they held, and where each year of a back-fill was."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil

from flows.operations.worker import Memory, years_at_work
from flows.partitions.attempts import Recorder, YearState
from flows.supervision.presence import Presence, at_work, in_stage
from tasks.lake.store import Lake

DEAD = Presence("1b2c", socket.gethostname(), 1, "2026-11-24T00:00:00Z", "record")


def test_an_audit_is_told_with_its_stage_and_a_back_fill_with_those_of_its_years(tmp_path: Path) -> None:
    lake, memory = Lake(tmp_path), Memory()
    Recorder(lake, "loans", 2018).end(YearState.WITHIN, 0)
    Recorder(lake, "loans", 2019).tell(stage="detect cst")
    Recorder(lake, "loans", 2019, "FIRST BANK").tell(stage="score")
    with at_work(lake, "6f1c") as presence:
        memory.look(lake)
        told = memory.words(lake, presence)
        assert told.startswith("2019 detect cst, 2019 FIRST BANK score was seen to hold "), told
        in_stage(lake, "mediate")
        memory.look(lake)
        assert memory.words(lake, presence).startswith("stage mediate was seen to hold ")
    assert memory.words(lake, DEAD) == ""


def test_years_of_other_processes_and_files_that_are_no_records_are_left_out(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    Recorder(lake, "loans", 2019).tell(stage="ingest")
    lake.write_file("backfills/loans/2020/0001.json", b'{"half')
    assert list(years_at_work(lake, [os.getpid()])) == ["2019 ingest"]
    assert list(years_at_work(lake, [1])) == []


def test_what_a_run_started_counts(tmp_path: Path) -> None:
    lake, memory = Lake(tmp_path), Memory()
    held = "data = b'x' * 300_000_000; print(len(data), flush=True); input()"
    with (
        at_work(lake, "6f1c") as presence,
        subprocess.Popen([sys.executable, "-c", held], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child,
    ):
        child.stdout.readline()
        memory.look(lake)
        seen = memory.peaks[presence.name]
        own = psutil.Process().memory_info().rss
        assert seen.peak_mb > (own + 200e6) / 1e6
        child.communicate(b"\n")
