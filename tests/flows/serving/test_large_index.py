"""Ten thousand runs, each of them signed: what a page costs, what a look reads, and what it asks of an object store."""

import hashlib
import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from lake_of_runs import NEW, lake_of_runs
from seaweed import s3_server
from served_lake import Clock, served

from flows.runs.summary import Summary, summary_path, written
from flows.serving import index as serving_index
from flows.serving.index import Index
from tasks.lake import log
from tasks.lake.storage import Storage
from tasks.lake.store import Lake, open_lake

ROLES = ("prepared", "reviewed")


def copies(lake: Lake, number: int) -> None:
    """Runs that are there as manifest and summary alone, each of them published and signed twice."""
    said = Index(lake.location).known().runs[NEW]
    for n in range(number):
        run = f"loans-{1000 + n % 1000}-{n:010d}"
        one = Summary(**{**said.model_dump(), "run": run, "year": 1000 + n % 1000})
        put(lake, f"runs/{run}/manifest.json", json.dumps({"run": run}).encode())
        put(lake, summary_path(run), written(one))
    events = [("run published", "")] * number + [("signed off", role) for role in ROLES for _ in range(number)]
    before = log.FIRST
    for n, (event, role) in enumerate(events, 1):
        run = f"loans-{1000 + (n - 1) % number % 1000}-{(n - 1) % number:010d}"
        more = {"role": role, "by": "Ann Lee"} if role else {}
        entry = {"n": n, "time": "2026-01-01T00:00:00Z", "event": event, "run": run, **more}
        content = json.dumps({**entry, "manifest_sha256": "ab" * 32, "previous": before}).encode()
        put(lake, log.path_of(n), content)
        before = hashlib.sha256(content).hexdigest()


def put(lake: Lake, path: str, content: bytes) -> None:
    """Write a file without waiting for the disk."""
    file = lake.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def seconds(work: object) -> float:
    """CPU seconds of a call, the least of three: other work of the machine is not counted."""
    assert callable(work)
    taken = []
    for _ in range(3):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


def follows(index: Index) -> None:
    """All that is made of a look."""
    known = index.known()
    known.__dict__.pop("signed", None)
    known.log.__dict__.pop("by_run", None)
    assert len(known.signed) > 0
    assert known.valid
    assert known.protected == frozenset()


def test_states_of_review_take_time_that_grows_as_the_runs_do(tmp_path: Path) -> None:
    taken = {}
    for number in (100, 800):
        lake = lake_of_runs(tmp_path / str(number))
        copies(lake, number)
        index = Index(lake.location)
        assert set(index.known().signed.values()) == {"reviewed"}
        taken[number] = seconds(lambda index=index: follows(index))
    assert taken[800] < 24 * taken[100], "8 times the runs; a scan for each would take 64 times as long"


def test_a_look_reads_no_entry_and_no_summary_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, clock = lake_of_runs(tmp_path / "lake"), Clock()
    copies(lake, 20)
    index = Index(lake.location, clock)
    index.known()
    read: list[str] = []
    monkeypatch.setattr(serving_index, "read_summary", lambda _, run: read.append(run))
    monkeypatch.setattr(type(lake.storage), "read", lambda _, path: read.append(path))
    clock.now += 6
    assert len(index.known().runs) == 23
    assert read == []


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of a file system of fsspec: the place is listed, or one path is asked for."""
    found: list[str] = []
    for name in ("info", "find", "ls"):
        own = getattr(MemoryFileSystem, name)

        def noted(self: Any, path: str = "", *args: Any, own: Any = own, name: str = name, **more: Any) -> Any:
            found.append(f"{name} {path}")
            return own(self, path, *args, **more)

        monkeypatch.setattr(MemoryFileSystem, name, noted)
    return found


def test_an_object_store_is_asked_as_often_for_many_runs_as_for_few(
    tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    requests = {}
    for number in (3, 60):
        place = f"memory://lakes/{tmp_path.name}-{number}"
        lake = Lake(place)
        copied(lake_of_runs(tmp_path / str(number)), lake, number)
        clock = Clock()
        index = Index(place, clock)
        assert len(index.known().runs) == number + 3
        asked.clear()
        clock.now += 6
        index.known()
        requests[number] = sum(
            not each.startswith("ls ") for each in asked
        )  # `find` lists by `ls`, a folder each, here
    assert requests[60] == requests[3], asked
    assert requests[60] < 12


def copied(one: Lake, other: Lake, number: int) -> None:
    """Copy a lake with some runs to another place."""
    copies(one, number)
    for folder in ("runs", "log", "reports", "stages"):
        for path in one.storage.below(folder):
            other.storage.write(path, one.storage.read(path) or b"")


@pytest.mark.slow
def test_an_s3_lake_is_listed_and_a_manifest_that_was_written_again_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with s3_server(tmp_path) as environment:
        for name, value in {**environment, "XDG_STATE_HOME": str(tmp_path / "state")}.items():
            monkeypatch.setenv(name, value)
        one = Lake("s3://lakes/served")
        copied(lake_of_runs(tmp_path / "lake"), one, 5)

        def never(self: Storage, path: str) -> int:
            raise AssertionError(f"asked for the time of {path} alone")

        monkeypatch.setattr(type(one.storage), "modified", never)
        clock = Clock()
        index = Index("s3://lakes/served", clock)
        assert len(index.known().runs) == 8
        assert set(index.known().signed.values()) == {"reviewed"}
        assert not index.known().log.broken
        run = "loans-1000-0000000000"
        again = index.known().runs[run].model_copy(update={"title": "Anew"})
        one.storage.write(summary_path(run), written(again))
        one.storage.write(f"runs/{run}/manifest.json", b'{"run": "again"}')
        clock.now += 6
        assert index.known().runs[run].title == "Anew"
        one.storage.remove(f"runs/{run}")
        clock.now += 6
        assert run not in index.known().runs


@pytest.mark.long
def test_ten_thousand_signed_runs_are_listed(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    copies(lake, 10_000)
    one = served(lake.location)
    page = one.get("/runs?page=3&signed=reviewed")
    assert "10,000 of 10,003 runs fit" in page.text
    assert len(page.content) < 150_000
    one.clock.now += 6
    assert seconds(lambda: one.get("/runs?page=4")) < 2
    one.clock.now += 6
    assert seconds(lambda: one.get("/")) < 2
    shutil.rmtree(lake.root / "runs" / NEW)
    one.clock.now += 6
    assert seconds(lambda: one.get("/runs/loans-1000-0000000000/review")) < 2
    assert open_lake(lake.location).location == lake.location
