"""What the server knows of runs: none, half-written, removed while it looks, of older versions, ten thousand."""

import os
import shutil
from pathlib import Path

import pytest
from lake_of_runs import NEW, OLD, OTHER, lake_of_runs
from served_lake import Clock, failed, served

from flows.runs.signatures import protect
from flows.runs.summary import Summary
from flows.serving import index as serving_index
from flows.serving.index import Index, LogReader
from schemas.errors import InfrastructureError
from tasks.lake import log
from tasks.lake.store import Lake


def test_an_empty_lake_has_pages(tmp_path: Path) -> None:
    Lake(tmp_path / "lake")
    one = served(str(tmp_path / "lake"))
    assert "no run yet" in one.get("/").text
    for path in ("/runs", "/search?q=loans", "/method", "/glossary"):
        assert one.get(path).status_code == 200
    assert one.get("/audits/loans/years").status_code == 404


def test_runs_of_an_older_version_are_read_from_their_manifests(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    assert not lake.storage.glob("runs/*/summary.json")
    known = Index(lake.location).known()
    assert set(known.runs) == {OLD, NEW, OTHER}
    assert known.runs[NEW].state == "outside"
    assert known.runs[NEW].question_states
    assert [run.run for run in known.newest_first] == [NEW, OTHER, OLD]  # no log: by their clocks


def test_half_written_runs_are_counted_and_the_others_shown(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    (lake.root / "runs" / "half").mkdir()
    (lake.root / "runs" / "half" / "manifest.json").write_text('{"run": "half", "da')
    (lake.root / "runs" / "started").mkdir()
    known = Index(lake.location).known()
    assert known.unreadable == ("half",)
    page = served(lake.location).get("/").text
    assert "Runs that cannot be read" in page
    assert NEW in page


def test_a_name_that_no_page_can_write_and_a_file_that_is_no_entry_break_nothing(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    folder = os.fsencode(lake.root / "runs") + b"/\xff"
    os.mkdir(folder)  # noqa: PTH102
    with open(folder + b"/manifest.json", "w") as file:  # noqa: PTH123
        file.write("{}")
    (lake.root / "log").mkdir(exist_ok=True)
    (lake.root / "log" / "notes.json").write_text("{}")
    one = served(lake.location)
    assert one.get("/").status_code == 200
    assert Index(lake.location).known().log.broken == ""


def test_a_run_that_could_not_be_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    index, read = Index(lake.location), serving_index.read_summary

    def away(lake: Lake, run: str) -> Summary:
        raise InfrastructureError("away")

    monkeypatch.setattr(serving_index, "read_summary", away)
    assert index.known().runs == {}
    monkeypatch.setattr(serving_index, "read_summary", read)
    assert set(index.known(refresh=True).runs) == {OLD, NEW, OTHER}


def test_a_run_that_is_removed_while_it_is_read_is_told_so(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    one = served(lake.location)
    shutil.rmtree(lake.root / "runs" / NEW)
    shutil.rmtree(lake.root / "stages")
    for part in ("", "/measures", "/files", "/compare", "/lineage"):
        assert one.get(f"/runs/{NEW}{part}").status_code in (404, 409)
    one.clock.now += 6
    assert NEW not in one.get("/runs").text


def test_it_looks_again_after_five_seconds_and_after_its_own_entry(tmp_path: Path) -> None:
    lake, clock = lake_of_runs(tmp_path / "lake"), Clock()
    index = Index(lake.location, clock)
    before = index.known()
    log.append(lake, "note", run=NEW, by="Ann Lee", text="seen")
    assert index.known() is before
    assert index.known(refresh=True).log.of(NEW)[-1].text == "seen"
    log.append(lake, "note", run=NEW, by="Ann Lee", text="again")
    clock.now += 5
    assert index.known().log.of(NEW)[-1].text == "again"


def test_the_order_of_runs_and_the_valid_one_are_the_log_s(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    log.append(lake, "run published", run=OLD, text="made again")
    known = Index(lake.location).known()
    assert known.newest_first[0].run == OLD
    assert known.valid == {OLD, OTHER}
    protect(lake, NEW, protected=True)
    assert Index(lake.location).known().valid == {NEW, OTHER}


def test_an_altered_entry_and_one_that_is_gone_are_told(tmp_path: Path) -> None:
    lake, reader = lake_of_runs(tmp_path / "lake"), LogReader()
    for n in range(3):
        log.append(lake, "note", run=NEW, by="Ann Lee", text=f"note {n}")
    assert reader.read(lake).broken == ""
    path = lake.root / log.path_of(4)
    sound = path.read_bytes()
    path.write_bytes(sound.replace(b"Ann Lee", b"Ann Lex"))
    assert "000005.json does not follow" in reader.read(lake).broken
    path.write_bytes(b"{}")
    assert "no entry" in reader.read(lake).broken
    path.unlink()
    assert "000004.json is missing" in reader.read(lake).broken
    path.write_bytes(sound)
    assert reader.read(lake).broken == ""


def test_an_entry_whose_time_was_set_back_is_read_again(tmp_path: Path) -> None:
    lake, reader = lake_of_runs(tmp_path / "lake"), LogReader()
    log.append(lake, "note", run=NEW, by="Ann Lee", text="seen")
    log.append(lake, "note", run=NEW, by="Ann Lee", text="again")
    before = reader.read(lake)
    path = lake.root / log.path_of(before.head.n - 1)
    times, sound = path.stat(), path.read_bytes()
    path.write_bytes(sound.replace(b"Ann Lee", b"Ann Lex"))  # as many bytes
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert "does not follow" in reader.read(lake).broken


def test_what_did_not_change_is_not_made_again(tmp_path: Path) -> None:
    lake, clock = lake_of_runs(tmp_path / "lake"), Clock()
    index = Index(lake.location, clock)
    order, signed, logged = index.known().newest_first, index.known().signed, index.known().log
    clock.now += 6
    known = index.known()
    assert known.newest_first is order
    assert known.signed is signed
    assert known.log is logged
    log.append(lake, "run published", run=OLD)
    clock.now += 6
    assert index.known().newest_first is not order
    shutil.rmtree(lake.root / "runs" / OLD)
    clock.now += 6
    assert OLD not in [run.run for run in index.known().newest_first]


def test_an_audit_that_only_failed_is_known_by_its_records(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    assert Index(lake.location).known().tried == {}
    failed(lake, "mortgages", 2020)
    failed(lake, "loans", 2020)
    assert {name: [each.year for each in of] for name, of in Index(lake.location).known().tried.items()} == {
        "mortgages": [2020]
    }
