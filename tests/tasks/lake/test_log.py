"""The log of a lake: a chain that only grows, whoever writes at the same time."""

import hashlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import REPOSITORY, examples
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import IntegrityError
from tasks.lake import log
from tasks.lake.store import Lake

WRITERS, EACH = 12, 5


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake with three entries."""
    opened = Lake(tmp_path / "lake")
    for number in range(3):
        log.append(opened, "note", run="run-1", by="somebody", text=f"note {number}")
    return opened


def test_entries_follow_each_other_by_digest(lake: Lake) -> None:
    first, second, third = log.entries(lake)
    assert [entry.n for entry in (first, second, third)] == [1, 2, 3]
    assert first.previous == "0" * 64
    assert third.previous == hashlib.sha256((lake.root / log.path_of(2)).read_bytes()).hexdigest()
    assert log.head(lake).n == 3
    assert not list(log.problems(lake))
    assert not [path.name for path in (lake.root / "log").iterdir() if path.suffix != ".json"]


_TOGETHER = f"""
import multiprocessing, sys
from tasks.lake import log
from tasks.lake.store import Lake

def write(who):
    for at in range({EACH}):
        log.append(Lake(sys.argv[1]), "note", by=str(who), text=str(at))

fork = multiprocessing.get_context("fork")
started = [fork.Process(target=write, args=(who,)) for who in range({WRITERS})]
for process in started:
    process.start()
for process in started:
    process.join()
sys.exit(any(process.exitcode for process in started))
"""


def test_writers_at_the_same_time_get_numbers_of_their_own(tmp_path: Path) -> None:
    """Processes, as filling a file after its creation broke the chain under twelve of them."""
    lake = Lake(tmp_path / "lake")
    done = subprocess.run(
        [sys.executable, "-c", _TOGETHER, lake.location], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = log.entries(lake)
    assert not list(log.problems(lake))
    assert sorted((entry.by, entry.text) for entry in found) == sorted(
        (str(who), str(at)) for who in range(WRITERS) for at in range(EACH)
    )


def test_where_there_are_no_hard_links_writers_take_turns(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.lake.local_directory._linked", lambda *_: None)
    with ThreadPoolExecutor(6) as writers:
        list(writers.map(lambda who: log.append(Lake(lake.root), "note", by=str(who)), range(24)))
    assert log.head(lake).n == 27
    assert not list(log.problems(lake))


@settings(max_examples=examples(80))
@given(data=st.data())
def test_a_byte_that_is_altered_breaks_the_chain_or_the_head(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lake = Lake(tmp_path_factory.mktemp("lake"))
    for number in range(3):
        log.append(lake, "note", by="somebody", text=f"note {number}")
    kept = log.head(lake)
    victim = lake.root / log.path_of(data.draw(st.integers(1, 3)))
    content = bytearray(victim.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    victim.write_bytes(content)
    assert list(log.problems(lake)) or log.kept_head(lake, kept.n, kept.sha256)


def test_an_entry_taken_out_of_the_middle_is_named(lake: Lake) -> None:
    (lake.root / log.path_of(2)).unlink()
    assert "000002.json is missing" in next(log.problems(lake))


def test_an_end_that_was_cut_off_is_shown_by_a_head_that_was_kept(lake: Lake) -> None:
    kept = log.head(lake)
    (lake.root / log.path_of(3)).unlink()
    assert not list(log.problems(lake))  # a chain alone cannot show it
    assert "the log was cut short" in log.kept_head(lake, kept.n, kept.sha256)


def test_a_log_that_was_written_anew_is_shown_by_a_head_that_was_kept(lake: Lake) -> None:
    kept = log.head(lake)
    for number in (1, 2, 3):
        (lake.root / log.path_of(number)).unlink()
    for number in range(3):
        log.append(lake, "note", text=f"another {number}")
    assert not list(log.problems(lake))
    assert "written anew" in log.kept_head(lake, kept.n, kept.sha256)


def test_a_signed_entry_that_is_made_anew_without_its_key_is_found(lake: Lake, tmp_path: Path) -> None:
    log.new_key(tmp_path / "key")
    log.append(lake, "signed off", log.signer(tmp_path / "key"), run="run-1", by="Ann", role="prepared")
    assert not list(log.problems(lake))
    file = lake.root / log.path_of(4)
    said = json.loads(file.read_bytes())
    file.write_text(json.dumps({**said, "role": "approved"}, indent=1))
    assert "a signature that is not of this entry" in next(log.problems(lake))


@pytest.mark.parametrize("interpreter", [sys.executable, "/bin/false"])
def test_signatures_are_checked_by_processes_and_again_where_one_of_them_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interpreter: str
) -> None:
    lake = Lake(tmp_path / "lake")
    log.new_key(tmp_path / "key")
    ann = log.signer(tmp_path / "key")
    for number in range(4):
        log.append(lake, "note", ann, run="run-1", by="Ann", text=f"note {number}")
    monkeypatch.setattr(log, "MANY", 4)
    monkeypatch.setattr(log, "cores", lambda: 2)
    monkeypatch.setattr(sys, "executable", interpreter)
    assert log.read_whole(lake)[1] == ""
    file = lake.root / log.path_of(4)
    file.write_text(json.dumps({**json.loads(file.read_bytes()), "text": "another"}, indent=1))
    sound, broken = log.read_whole(lake)
    assert [entry.n for entry in sound] == [1, 2, 3]
    assert broken.endswith("000004.json has a signature that is not of this entry")


def test_a_file_that_is_no_entry_stops_whoever_would_write_after_it(lake: Lake) -> None:
    (lake.root / log.path_of(3)).write_text("{}")
    with pytest.raises(IntegrityError, match=r"000003\.json is no entry of a log"):
        log.append(lake, "note")
