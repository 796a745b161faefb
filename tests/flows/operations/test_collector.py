"""Metrics of a lake as Prometheus reads them: figures of runs, what cannot be read, and no exact number of rows."""

import shutil
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from lake_of_runs import NEW, OLD, lake_of_runs
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from flows.operations import metrics as collecting
from flows.operations.metrics import VARIABLE, LakeCollector, address, bytes_below, metrics_served
from flows.operations.retention import Keeping, collect
from flows.outcome import alerts
from flows.outcome.alerts import Alert, Outcome
from flows.outcome.ending import Ending, Name, roughly
from flows.partitions.attempts import Recorder, recorded
from flows.supervision.failed_audits import Ended, note_failure
from flows.supervision.presence import at_work
from schemas.errors import InfrastructureError, SpecError
from tasks.lake.store import Lake


def figures(collector: LakeCollector) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for metric in collector.collect()
        for sample in metric.samples
    }


def of(found: dict[Any, float], name: str, **labels: str) -> float:
    return found[name, tuple(sorted(labels.items()))]


def test_runs_checks_rows_and_stages_are_told(tmp_path: Path) -> None:
    collector = LakeCollector(lake_of_runs(tmp_path / "lake"))
    found = figures(collector)
    assert of(found, "evenhand_runs_total", dataset="loans", state="outside") == 1
    assert of(found, "evenhand_runs_total", dataset="loans", state="within") == 1
    assert of(found, "evenhand_run_seconds_count", dataset="loans") == 2
    assert of(found, "evenhand_last_success_timestamp_seconds", dataset="loans") == 1767434400
    assert of(found, "evenhand_checks", dataset="loans", year="2023", state="outside") == 12
    assert of(found, "evenhand_rows_total", stage="publish", fate="in") == 1500
    assert of(found, "evenhand_stage_seconds_count", stage="publish", method="") == 3
    assert of(found, "evenhand_stage_expected_seconds", dataset="loans", stage="publish", method="") == 1.0
    assert not [name for name, labels in found if "evenhand_stage_expected" in name and ("dataset", "cards") in labels]
    assert of(found, "evenhand_lake_bytes") > 10_000
    assert 0 < of(found, "evenhand_disk_free_bytes") < of(found, "evenhand_disk_bytes")
    assert figures(collector).keys() == found.keys(), "a second time, from what is known"


def test_alerts_runs_at_work_and_runs_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    ending = Ending(Name.OUTSIDE, "loans 2023", "2 of 6 outside the limit", run=NEW)
    alerts.write(lake, Alert(time=alerts.now(), rule="outside", to="desk", ending=ending, outcome=Outcome.SENT))
    manifest = lake.root / "runs" / OLD / "manifest.json"
    manifest.write_text(manifest.read_text().replace("within", "outside"))
    with at_work(lake, "command-1"):
        found = figures(LakeCollector(lake))
    assert of(found, "evenhand_alerts_total", outcome="sent") == 1
    assert of(found, "evenhand_runs_at_work") == 1
    assert of(found, "evenhand_runs_unreadable") == 1
    assert of(found, "evenhand_run_seconds_count", dataset="loans") == 1, "and the others are told"


def test_audits_and_years_that_came_to_no_run_are_counted(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    note_failure(lake, "loans", "2023", Ended.FAILED, "Data quality")
    note_failure(lake, "loans", "2023", Ended.INTERRUPTED, "Crashed")
    collector = LakeCollector(lake)
    assert of(figures(collector), "evenhand_runs_total", dataset="loans", state="failed") == 1
    note_failure(lake, "loans", "2023", Ended.FAILED, "Spec")
    (lake.root / "failures" / "odd.json").write_text("{}")
    for _ in range(2):  # killed: its record says that it runs, and nobody holds its lock
        Recorder(lake, "history", 2019)
    found = figures(collector)
    assert of(found, "evenhand_runs_total", dataset="loans", state="failed") == 2
    assert of(found, "evenhand_runs_total", dataset="loans", state="interrupted") == 1
    assert of(found, "evenhand_runs_total", dataset="history", state="interrupted") == 2
    with recorded(lake, "history", 2019):
        assert of(figures(collector), "evenhand_runs_total", dataset="history", state="interrupted") == 2


def test_counters_do_not_fall_where_runs_are_removed_or_a_worker_starts_again(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    collector = LakeCollector(lake)
    before = figures(collector)
    collect(lake, Keeping(1))
    assert not (lake.root / "runs" / OLD).exists()
    for after in (figures(collector), figures(LakeCollector(lake))):
        counted = {key for key in before if key[0].endswith(("_total", "_sum", "_count"))}
        assert {key: after[key] for key in counted} == {key: before[key] for key in counted}
        assert of(after, "evenhand_runs_unreadable") == 0
    assert OLD in {path.stem for path in (lake.root / "removed").iterdir()}


def test_files_that_come_and_go_do_not_end_a_scrape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, over, turns = lake_of_runs(tmp_path / "lake"), threading.Event(), [0]
    monkeypatch.setattr(collecting, "_SIZE_SECONDS", -1.0)

    def shake() -> None:
        while not over.is_set():
            turns[0] += 1
            folder = lake.root / "tmp" / f"draft-{turns[0] % 7}"
            folder.mkdir(exist_ok=True)
            for name in map(str, range(20)):
                (folder / name).write_bytes(b"x")
            shutil.rmtree(folder)

    shaking = threading.Thread(target=shake)
    shaking.start()
    try:
        collector = LakeCollector(lake)
        assert all(of(figures(collector), "evenhand_lake_bytes") > 10_000 for _ in range(60))
    finally:
        over.set()
        shaking.join()
    assert turns[0] > 5


def test_a_link_and_a_file_that_is_gone_count_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    assert bytes_below(tmp_path) == 5
    monkeypatch.setattr(collecting.os, "walk", lambda _: [(str(tmp_path), [], ["file", "removed-this-moment"])])
    assert bytes_below(tmp_path) == 5


def test_a_part_that_fails_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lake = lake_of_runs(tmp_path / "lake")

    def away(_: object) -> None:
        raise OSError("the disk is away")

    monkeypatch.setattr(collecting.shutil, "disk_usage", away)
    monkeypatch.setattr(collecting, "alerts", away)
    found = figures(LakeCollector(lake))
    assert of(found, "evenhand_runs_total", dataset="loans", state="outside") == 1
    assert caplog.text.count("a part of ") == 2


def test_a_run_of_one_partition_has_no_checks_of_its_own(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    import json

    from flows.runs.index import digest

    manifest = lake.root / "runs" / NEW / "manifest.json"
    said = json.loads(manifest.read_text())
    del said["sha256"]
    said["partition"] = {"column": "lender_id", "value": "7H6G"}
    manifest.write_text(json.dumps({**said, "sha256": digest(said)}))
    collector = LakeCollector(lake)
    told = " ".join(f"{name}{labels}" for name, labels in figures(collector))
    assert "7H6G" not in told
    assert of(figures(collector), "evenhand_checks", dataset="loans", year="2023", state="outside") == 12, "of OLD"


@pytest.mark.parametrize(
    ("rows", "told"), [(0, 0), (99, 0), (100, 100), (147, 100), (12_345, 12_000), (12_999, 13_000)]
)
def test_rows_are_told_to_two_digits_and_in_hundreds(rows: int, told: int) -> None:
    assert roughly(rows) == told


def test_they_are_served_while_the_worker_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        monkeypatch.setenv(VARIABLE, f"127.0.0.1:{port}")
        with pytest.raises(InfrastructureError, match="give a free port"), metrics_served(Lake(tmp_path / "lake")):
            pass
    with metrics_served(lake_of_runs(tmp_path / "runs")):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            names = {metric.name for metric in text_string_to_metric_families(answer.read().decode())}
        assert {"evenhand_runs", "evenhand_checks", "evenhand_stage_peak_bytes"} <= names
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10)
    monkeypatch.delenv(VARIABLE)
    with metrics_served(Lake(tmp_path / "lake")):
        pass


@pytest.mark.parametrize("said", ["9464", "127.0.0.1:", ":9464", "127.0.0.1:http", "127.0.0.1:0", "127.0.0.1:70000"])
def test_what_is_no_address_is_refused(said: str) -> None:
    with pytest.raises(SpecError, match="give HOST:PORT"):
        address(said)


def test_two_lakes_have_registries_of_their_own(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    registry.register(LakeCollector(Lake(tmp_path / "lake")))
    assert {metric.name for metric in registry.collect()} >= {"evenhand_lake_bytes"}
