"""The command with stages side by side: the same bytes at any number of jobs and threads, Ctrl-C, and --until."""

import json
import os
import signal
from pathlib import Path

import psutil
import pytest
from conftest import environment, evenhand, evenhand_process
from stopping import AIM, LIMIT, MESSAGE, spec_of_all_methods, started

from tasks.lake.store import Lake

_COMPARED = {"tallies", "draws", "measures", "verdicts"}


def digests(lake: Path) -> dict[str, str]:
    """Path -> sha256 of the tables of a lake whose numbers may not depend on how many processes computed them."""
    records = [json.loads(path.read_text()) for path in lake.glob("stages/*/*/partition.json")]
    tables = [table for record in records for table in record["tables"]]
    assert {table["table"] for table in tables} >= _COMPARED - {"draws"}
    return {table["path"]: table["sha256"] for table in tables}


@pytest.mark.long
def test_jobs_and_threads_change_no_byte_of_any_table(tmp_path: Path, server: str) -> None:
    spec, found = spec_of_all_methods(tmp_path), []
    for jobs, threads in ((1, 1), (2, 2)):
        lake = tmp_path / f"{jobs}-{threads}"
        given = {**environment(server), "NUMBA_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
        words = ["audit", str(spec), "--lake", str(lake), "--jobs", str(jobs), "--quiet"]
        running = started(words, given, tmp_path / f"{jobs}-{threads}.txt")
        assert running.process.wait(timeout=1800) in (0, 1, 3), running.said()
        found.append(digests(lake))
    assert found[0] == found[1]


@pytest.mark.slow
def test_ctrl_c_ends_the_command_and_its_workers_with_one_line(tmp_path: Path, server: str) -> None:
    words = ["audit", str(spec_of_all_methods(tmp_path)), "--lake", str(tmp_path / "lake"), "--jobs", "2"]
    running = started(words, environment(server), tmp_path / "said.txt")
    running.until_said(r"^\d+ of \d+ generate begins")
    ended = running.stop()
    assert ended.code == 130, ended.said
    assert ended.said.count(MESSAGE) == 1
    assert "Traceback" not in ended.said
    assert ended.left == []
    assert ended.seconds < LIMIT, f"the aim is {AIM} s"


@pytest.mark.long
def test_a_stage_whose_process_is_killed_is_computed_again(place: Path, server: str) -> None:
    words = ["audit", str(place / "loans.yaml"), "--lake", str(place / "lake"), "--jobs", "2"]
    running = started(words, environment(server), place / "said.txt")
    running.until_said(r"^\d+ of \d+ (generate|ablate|adjust) begins")
    os.kill(_computing(running.process), signal.SIGKILL)
    assert running.process.wait(timeout=900) in (0, 1, 3), running.said()
    assert digests(place / "lake")
    assert Lake(place / "lake").storage.glob("runs/*/manifest.json")


def _computing(command: psutil.Process) -> int:
    """A process of stages: the server that they are forked from is its parent, and no child of anybody else."""
    forked = [each for each in command.children(recursive=True) if "forkserver" in " ".join(each.cmdline())]
    return next(each.pid for each in forked if each.ppid() != command.pid)


def test_until_a_stage_no_report_is_made_and_nothing_is_judged(place: Path, server: str) -> None:
    words = ("audit", str(place / "loans.yaml"), "--lake", str(place / "lake"), "--until", "preprocess", "--json")
    done = evenhand(*words, server=server)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [(row["stage"], row["source"]) for row in rows] == [("ingest", "computed"), ("preprocess", "computed")]
    assert rows[0]["rows_out"] == 500
    lake = Lake(place / "lake")
    assert not lake.storage.glob("runs/*/manifest.json")
    assert not lake.storage.glob("reports/*/report.html")
    again = json.loads(evenhand(*words, server=server).stdout)
    assert [row["source"] for row in again] == ["lake", "lake"]


@pytest.mark.long
def test_processes_say_nothing_at_their_end(tmp_path: Path) -> None:
    """Bindings print what they take for leaked, forty lines below the answer."""
    words = ["audit", "--until", "ingest", "--jobs", "2", "--lake", str(tmp_path / "lake")]
    done = evenhand_process(*words)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1].startswith("ingest: "), done.stderr
