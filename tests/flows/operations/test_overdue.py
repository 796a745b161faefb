"""Runs that never came: the calendar of the rules, and the command on a lake without any server."""

import json
import subprocess
from datetime import UTC, date, datetime
from pathlib import Path

import in_process
import pytest
from conftest import REPOSITORY, environment
from lake_of_runs import NEW, OLD, OTHER, lake_of_runs
from receivers import alerts_file, mail_receiver, web_receiver

from flows.operations.overdue import due_of_lake, rule_of
from flows.runs.index import digest
from schemas.audit.limits import Expected
from schemas.errors import SpecError
from schemas.terms import ExitCode
from tasks.lake.store import Lake

QUARTER = {"every": "quarter", "by": "10 days"}
SPEC = """\
name: loans
year: 2023
source: {kind: csv, path: loans.csv}
decision: {column: approved, favourable: ['yes'], unfavourable: ['no']}
protected: [{name: race, columns: [race], reference: white}]
columns: {income: {type: continuous}}
"""


@pytest.mark.parametrize(
    ("rule", "now", "late", "expected_by", "next_by"),
    [
        (QUARTER, "2026-04-10T23:59", False, "2026-01-10", "2026-04-10"),
        (QUARTER, "2026-04-11T00:00", True, "2026-04-10", "2026-07-10"),
        ({"every": "day"}, "2026-01-03T12:00", False, "2026-01-02", "2026-01-03"),
        ({"every": "day"}, "2026-01-05T00:00", True, "2026-01-04", "2026-01-05"),
        ({"every": "week", "by": "1 day"}, "2026-01-05T12:00", False, "2025-12-29", "2026-01-05"),
        ({"every": "week", "by": "1 day"}, "2026-01-06T12:00", True, "2026-01-05", "2026-01-12"),
        ({"every": "day"}, "2026-01-04T23:59", False, "2026-01-03", "2026-01-04"),
        ({"every": "month"}, "2028-02-29T12:00", True, "2028-02-01", "2028-03-01"),
        ({"every": "month", "by": "0 days"}, "2028-02-29T12:00", True, "2028-01-31", "2028-02-29"),
        ({"every": "month", "by": "40 days"}, "2026-03-13T12:00", True, "2026-03-12", "2026-04-09"),
        ({"every": "year", "by": "90 days"}, "2026-12-31T12:00", False, "2026-03-31", "2027-03-31"),
    ],
)
def test_a_run_is_due_once_its_period_and_the_days_of_grace_are_over(
    rule: dict[str, str], now: str, late: bool, expected_by: str, next_by: str, tmp_path: Path
) -> None:
    """The last run of `loans` is of 3 January 2026, in the forenoon."""
    lake = lake_of_runs(tmp_path / "lake", spec={"expected": rule})
    found = due_of_lake(lake, datetime.fromisoformat(now).replace(tzinfo=UTC))
    [loans] = [each for each in found if each.audit == "loans"]
    assert (loans.overdue, loans.expected_by, loans.next_by) == (
        late,
        date.fromisoformat(expected_by),
        date.fromisoformat(next_by),
    )
    told = f"no run since 2026-01-03; expected by {expected_by}" if late else f"the next is expected by {next_by}"
    assert loans.message.startswith("loans: ")
    assert loans.message.endswith(told)


def test_a_day_of_grace_is_the_default_and_no_days_names_the_time(tmp_path: Path) -> None:
    assert Expected(every="day").days == 1
    lake = lake_of_runs(tmp_path / "lake", spec={"expected": {"every": "day", "by": "0 days"}})
    [_, loans] = due_of_lake(lake, datetime(2026, 1, 4, 7, tzinfo=UTC))
    assert loans.overdue
    assert loans.message == (
        "loans: no run since 2026-01-03 10:00 UTC; expected at 2026-01-04 00:00 UTC, when the period ended"
    )


def _altered(lake: Lake, run: str, **news: object) -> None:
    """A manifest with other values, sealed as the real one is."""
    manifest = lake.root / "runs" / run / "manifest.json"
    said = {**json.loads(manifest.read_text()), **news}
    del said["sha256"]
    manifest.write_text(json.dumps({**said, "sha256": digest(said)}))


def test_a_run_of_the_future_does_not_count_and_is_named(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake", spec={"expected": QUARTER})
    _altered(lake, NEW, finished="2027-06-01T10:00:00Z")
    [_, loans] = due_of_lake(lake, datetime(2026, 4, 11, tzinfo=UTC))
    assert (loans.overdue, loans.run, loans.future) == (True, OLD, (NEW,))
    assert loans.message == (
        "loans: no run since 2026-01-01; expected by 2026-04-10 "
        f"({NEW} says that it ended in the future, and does not count)"
    )
    [_, loans] = due_of_lake(lake, datetime(2026, 1, 20, tzinfo=UTC))
    assert not loans.overdue
    assert NEW in loans.warnings[0]
    _altered(lake, NEW, finished="2026-04-11T00:05:00Z")  # clocks of two machines differ by minutes
    [_, loans] = due_of_lake(lake, datetime(2026, 4, 11, tzinfo=UTC))
    assert (loans.overdue, loans.future) == (False, ())


def test_a_manifest_that_cannot_be_read_is_told_each_time_and_silences_no_other_audit(tmp_path: Path) -> None:
    made = lake_of_runs(tmp_path / "lake", spec={"expected": {"every": "day"}})
    (made.root / "runs" / OTHER / "manifest.json").write_text('{"run": ')
    with mail_receiver() as mail, web_receiver() as web, web_receiver() as heart:
        file = alerts_file(tmp_path / "alerts.yaml", mail, web)
        given = environment(None) | {"EVENHAND_ALERTS": str(file), "EVENHAND_LAKE": made.location}
        given["EVENHAND_HEARTBEAT_URL"] = f"http://127.0.0.1:{heart.port}/"
        done = [in_process.run(("overdue",), given, REPOSITORY) for _ in "12"]
    assert [each.returncode for each in done] == [ExitCode.INTEGRITY] * 2, done[0].stderr
    assert "loans: no run since 2026-01-03; expected by " in done[0].stdout
    assert f"cards: nobody can tell whether a run came: {made.root}/runs/{OTHER}/manifest.json" in done[0].stdout
    assert sorted(web.subjects()) == ["Evenhand: overdue: cards"] * 2 + ["Evenhand: overdue: loans"]
    assert heart.bodies == []


def test_a_damaged_manifest_that_is_not_needed_is_a_warning(tmp_path: Path) -> None:
    made = lake_of_runs(tmp_path / "lake")
    (made.root / "runs" / OTHER / "manifest.json").write_text("null")
    (made.root / "runs" / OLD / "manifest.json").write_text("null")
    (tmp_path / "loans.yaml").write_text(f"{SPEC}expected: {{every: year, by: 999 days}}\n")
    done = in_process.run(("overdue", "loans.yaml"), environment(None) | {"EVENHAND_LAKE": made.location}, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"loans 2023: run of 2026-01-03 ({NEW})")
    assert f"{OLD}/manifest.json" in done.stderr
    assert OTHER not in done.stderr, "of another audit"


def test_the_words_of_a_rule() -> None:
    assert rule_of("quarter, 10 days") == rule_of("quarter + 10 days") == Expected(every="quarter", by="10 days")
    assert rule_of(" month ") == Expected(every="month")
    for words in ("", "10 days", "quarterly", "quarter 10", "day, 9999 days"):
        with pytest.raises(SpecError, match="expected day, week, month, quarter or year"):
            rule_of(words)


def test_the_command_tells_who_is_overdue_once_and_reports_all_well_to_the_heartbeat(tmp_path: Path) -> None:
    """No server runs; `PREFECT_API_URL` names a port where nobody listens."""
    lake = lake_of_runs(tmp_path / "lake").location
    spec = tmp_path / "loans.yaml"
    with mail_receiver() as mail, web_receiver() as web, web_receiver() as heart:
        file = alerts_file(tmp_path / "alerts.yaml", mail, web)
        given = environment(None) | {"EVENHAND_ALERTS": str(file), "EVENHAND_LAKE": lake}
        given |= {
            "EVENHAND_HEARTBEAT_URL": f"http://127.0.0.1:{heart.port}/",
            "PREFECT_API_URL": "http://127.0.0.1:1/api",
        }

        def overdue(rule: str) -> "subprocess.CompletedProcess[str]":
            spec.write_text(f"{SPEC}expected: {rule}\n")
            return in_process.run(("overdue", str(spec), "--json"), given, REPOSITORY)

        late = [overdue("{every: day}") for _ in "12"]
        assert [done.returncode for done in late] == [5, 5], late[0].stderr
        assert heart.bodies == []
        well = overdue("{every: year, by: 999 days}")
    [said] = json.loads(late[0].stdout)
    assert said["message"].startswith("loans 2023: no run since 2026-01-03; expected by ")
    assert mail.subjects() == web.subjects() == ["Evenhand: overdue: loans 2023"]
    assert (well.returncode, heart.bodies) == (0, [b""]), well.stderr


def test_a_lake_that_is_not_there_is_told_and_is_no_pass(tmp_path: Path) -> None:
    (tmp_path / "loans.yaml").write_text(f"{SPEC}expected: {{every: day}}\n")
    with mail_receiver() as mail, web_receiver() as web:
        file = alerts_file(tmp_path / "alerts.yaml", mail, web)
        given = environment(None) | {"EVENHAND_ALERTS": str(file)}
        done = in_process.run(("overdue", "loans.yaml", "--lake", "gone"), given, tmp_path)
    assert done.returncode == 2
    assert web.subjects() == ["Evenhand: overdue: loans"]
    assert not (tmp_path / "gone").exists()
