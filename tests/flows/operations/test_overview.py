"""A lake at a glance: ages, what is overdue by the spec's rule, who is at work, and what waits for a person."""

import json
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from conftest import evenhand
from lake_of_runs import NEW, OLD, OTHER, RUNS, lake_of_runs

from flows.operations.overview import overview
from flows.operations.status import status
from flows.outcome import alerts
from flows.outcome.alerts import Alert, Outcome
from flows.outcome.ending import Ending, Name
from flows.partitions.attempts import Recorder
from flows.runs import review
from flows.runs.index import digest
from flows.runs.review import Note, SignOff, open_remediation, sign_off
from flows.supervision.presence import at_work
from schemas.terms import ExitCode
from tasks.lake.store import Lake

QUARTERLY = {"expected": {"every": "quarter", "by": "10 days"}}
FINISHED = datetime.fromisoformat(RUNS[NEW])


def glance(lake: Lake, now: datetime | None = None):
    return overview(lake, status(lake), now)


def test_an_audit_is_told_with_age_and_becomes_overdue_by_its_rule(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake", spec=QUARTERLY)
    found = {audit.audit: audit for audit in glance(lake, FINISHED + timedelta(days=3)).audits}
    assert {name: (audit.run, audit.age_days, audit.overdue) for name, audit in found.items()} == {
        "loans": (NEW, 3.0, ""),
        "cards": (OTHER, 4.0, ""),
    }
    late = glance(lake, datetime(2026, 4, 11, tzinfo=UTC))
    assert late.overdue
    assert {audit.overdue for audit in late.audits} == {
        "no run since 2026-01-03; expected by 2026-04-10", "no run since 2026-01-02; expected by 2026-04-10",
    }  # fmt: skip
    assert not glance(lake, datetime(2026, 4, 10, tzinfo=UTC)).overdue, "the last day is not over"


def test_what_waits_for_a_person_is_told(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    sign_off(lake, OTHER, SignOff("Ann Lee", "prepared"))
    ending = Ending(Name.OUTSIDE, "loans 2023", "2 of 6 outside the limit", run=NEW)
    alert = Alert(time=alerts.now(), rule="outside", to="desk", ending=ending, outcome=Outcome.NOT_DELIVERED)
    alerts.write(lake, alert.model_copy(update={"reason": "the relay refused it"}))
    with at_work(lake, "command-1"):
        found = glance(lake)
        assert [lock.who.split(":")[0] for lock in found.locks] == ["command-1"]
    assert found.undelivered == ("loans 2023, to desk: the relay refused it",)
    assert OTHER not in found.unsigned
    assert {OLD, NEW} & {*found.unsigned}
    assert 0 < found.disk_free < found.disk
    assert "PREFECT_API_URL" in found.server
    assert glance(lake).locks == ()


def test_the_command_ends_with_5_if_a_run_is_overdue_and_says_why(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake", spec=QUARTERLY)
    told = evenhand("status", "--lake", lake.location)
    assert told.returncode == ExitCode.INFRASTRUCTURE, told.stderr
    assert "no run since 2026-01-03; expected by " in told.stdout
    for words in ("disk: ", "runs nobody signed: 2 (", "years of loans"):
        assert words in told.stdout
    without = lake_of_runs(tmp_path / "without")
    assert evenhand("status", "--lake", without.location).returncode == 0


def _remediation(lake: Lake, due: date) -> None:
    open_remediation(lake, NEW, Note("Ann Lee", "retrain the model"), "Bob Ray", due.isoformat())


def test_what_is_in_review_is_listed(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    sign_off(lake, OTHER, SignOff("Ann Lee", "prepared"))
    assert "no remediation is open" in evenhand("status", "--review", "--lake", lake.location).stdout
    _remediation(lake, datetime.now(UTC).date() + timedelta(days=2))
    done = evenhand("status", "--review", "--lake", lake.location)
    assert done.returncode == 0, done.stderr
    for words in ("valid runs that nobody approved", "prepared by Ann Lee", "remediations that are open", "Bob Ray"):
        assert words in done.stdout
    assert "remediations that are open" not in evenhand("status", "--lake", lake.location).stdout
    said = json.loads(evenhand("status", "--review", "--json", "--lake", lake.location).stdout)["review"]
    assert [(row["run"], row["state"]) for row in said["runs"]][-1] == (OTHER, "prepared")
    assert {row["state"] for row in said["runs"][:-1]} == {"unsigned"}
    assert [(row["owner"], row["state"], row["text"]) for row in said["remediations"]] == [
        ("Bob Ray", "open", "retrain the model")
    ]


def test_a_remediation_that_is_overdue_ends_with_5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    past = datetime.now(UTC).date() - timedelta(days=2)
    monkeypatch.setattr(review, "_today", lambda: past)
    _remediation(lake, past)
    monkeypatch.undo()
    for words in ((), ("--strict",), ("--review",), ("--json",)):
        done = evenhand("status", *words, "--lake", lake.location)
        assert done.returncode == ExitCode.INFRASTRUCTURE, done.stderr
        assert "retrain the model" in done.stdout
    assert json.loads(done.stdout)["overdue"]


def test_what_ends_in_the_future_is_named(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    [told] = [line for line in glance(lake, FINISHED - timedelta(minutes=11)).future if NEW in line]
    assert told == f"loans 2023 {NEW} says that it ended at {RUNS[NEW]}"
    assert not glance(lake, FINISHED - timedelta(minutes=9)).future, "clocks differ by minutes"


def test_json_has_the_memory_of_the_last_run_and_what_is_known_of_a_failed_attempt(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    manifest = lake.root / "runs" / NEW / "manifest.json"
    kept = json.loads(manifest.read_text())
    kept["lineage"][0]["peak_memory_mb"] = 812.5
    del kept["sha256"]
    manifest.write_text(json.dumps({**kept, "sha256": digest(kept)}))
    died = Recorder(lake, "loans", 2024)  # its record says that it runs, and nobody holds its lock
    died.tell(stage="publish")
    seen = "process 7 on here is gone: killed; stage publish was seen to hold 3.20 GB of the 4.00 GB that there was"
    crash = Ending(Name.CRASHED, "loans 2024", seen)
    alerts.write(lake, Alert(time=alerts.now(), rule="crashed", to="desk", ending=crash, outcome=Outcome.SENT))
    said = json.loads(evenhand("status", "--json", "--lake", lake.location).stdout)
    memory = {(year["audit"], year["year"]): year["memory"] for year in said["years"]}
    assert memory["loans", 2023] == {"run": NEW, "peak_mb": {"publish": 812.5}, "failed": None, "seen": ""}
    failed = memory["loans", 2024]
    assert (failed["run"], failed["peak_mb"], failed["seen"]) == (NEW, {"publish": 812.5}, seen)
    assert (failed["failed"]["state"], failed["failed"]["stage"]) == ("interrupted", "publish")
    assert "died during publish" in failed["failed"]["message"]
    assert said["memory"]["free_mb"] > 0
    assert said["memory"]["died"] == []


def test_a_server_that_is_down_takes_nothing_else_away(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    began = time.monotonic()
    told = evenhand("status", "--lake", lake.location, "--json", server="http://127.0.0.1:9/api")
    assert told.returncode == 0, told.stderr
    said = json.loads(told.stdout)
    assert "does not answer (ConnectError): start it" in said["server"]
    assert {audit["audit"] for audit in said["audits"]} == {"loans", "cards"}
    assert time.monotonic() - began < 60
