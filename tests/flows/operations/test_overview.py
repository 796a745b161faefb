"""A lake at a glance: ages, what is overdue by the spec's rule, who is at work, and what waits for a person."""

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from conftest import evenhand
from lake_of_runs import NEW, OLD, OTHER, RUNS, lake_of_runs

from flows.operations.overview import overview
from flows.operations.status import status
from flows.outcome.alerts import record
from flows.outcome.alerts.record import Alert, Outcome
from flows.outcome.ending import Ending, Name
from flows.runs.trust.signoff import SignOff, sign_off
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
    ending = Ending(Name.BREACH, "loans 2023", "2 of 6 limits breached", run=NEW)
    alert = Alert(time=record.now(), rule="breach", to="desk", ending=ending, outcome=Outcome.NOT_DELIVERED)
    record.write(lake, alert.model_copy(update={"reason": "the relay refused it"}))
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


def test_a_server_that_is_down_takes_nothing_else_away(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    began = time.monotonic()
    told = evenhand("status", "--lake", lake.location, "--json", server="http://127.0.0.1:9/api")
    assert told.returncode == 0, told.stderr
    said = json.loads(told.stdout)
    assert said["server"].startswith("does not answer")
    assert {audit["audit"] for audit in said["audits"]} == {"loans", "cards"}
    assert time.monotonic() - began < 60
