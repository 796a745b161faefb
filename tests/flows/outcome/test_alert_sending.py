"""Alerts as they arrive: by mail and by HTTP, once, three tries, digests, and what the lake records of them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from conftest import REPOSITORY
from receivers import RULES, Received, alerts_file, hostile_receiver, mail_receiver, web_receiver
from small_lake import small_lake

from flows.outcome import alerts
from flows.outcome.alert_process import send_apart
from flows.outcome.alert_settings import read_alerts
from flows.outcome.alerts import Outcome, send_again, send_alerts, send_digests, tell
from flows.outcome.conclusion import ending_of_error
from flows.outcome.ending import Ending, Name
from flows.supervision.presence import leave_stopped
from schemas.errors import SpecError
from tasks.lake.store import Lake
from tasks.lake.views import open_views

BREACH = Ending(
    Name.OUTSIDE,
    "loans 2024",
    "2 of 6 outside the limit; Approval rates, race: Black & other 0.743 [0.668, 0.812], at least 0.9",
    run="loans-2024-0123456789",
    flow_run="6f1c",
    report="https://reports.example.org/loans-2024-0123456789/report.html",
)
QUALITY = Ending(Name.DATA_QUALITY, "loans 2024", "stage ingest: 3 rows refused", flow_run="7a2d")


@pytest.fixture
def mail() -> Iterator[Received]:
    with mail_receiver() as received:
        yield received


@pytest.fixture
def web() -> Iterator[Received]:
    with web_receiver() as received:
        yield received


@pytest.fixture
def file(tmp_path: Path, mail: Received, web: Received, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = alerts_file(tmp_path / "alerts.yaml", mail, web)
    monkeypatch.setenv("EVENHAND_ALERTS", str(place))
    monkeypatch.setattr(alerts, "WAITS", (0.0, 0.01, 0.02))
    return place


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def test_a_breach_arrives_by_mail_with_figures_report_and_what_to_do(file: Path, lake: Lake, mail: Received) -> None:
    tell(lake, BREACH)
    assert mail.subjects() == ["Evenhand: outside the limit in loans 2024"]
    for words in ("Black & other 0.743", BREACH.report, f"evenhand verdicts {BREACH.run}"):
        assert words in mail.text()
    [row] = alerts.rows(alerts.alerts(lake))
    assert row | {"time": ""} == {
        **{
            "time": "",
            "state": "Outside the limit",
            "subject": "loans 2024",
            "rule": "outside",
            "to": "desk",
            "tries": 1,
        },
        **{"run": BREACH.run, "outcome": "sent", "reason": ""},
    }
    small_lake(lake.root)
    with open_views(lake) as views:
        assert views.sql('SELECT state, "to", run FROM alerts').fetchall() == [
            ("Outside the limit", "desk", BREACH.run)
        ]


def test_the_same_state_of_the_same_run_is_told_once_by_whoever_tells_it(
    file: Path, lake: Lake, mail: Received, web: Received
) -> None:
    """Two processes at the same moment, a later one, and another flow run with the same published run."""
    program = (
        "import sys; from tasks.lake.store import Lake; from flows.outcome.ending import Ending; from flows.outcome.ending import Name\n"  # noqa: E501
        "from flows.outcome.alerts import tell\n"
        f"tell(Lake(sys.argv[1]), Ending(Name.DATA_QUALITY, 'loans 2024', {QUALITY.message!r}, flow_run='7a2d'))"
    )
    words = [sys.executable, "-c", program, lake.location]
    beside = [subprocess.Popen(words, cwd=REPOSITORY, env=os.environ | {"PYTHONPATH": str(REPOSITORY)}) for _ in "12"]
    assert [each.wait(240) for each in beside] == [0, 0]
    tell(lake, QUALITY)
    tell(lake, replace(QUALITY, flow_run="8b3e"))
    tell(lake, BREACH)
    tell(lake, replace(BREACH, flow_run="another"))
    of_quality = "Evenhand: data quality in loans 2024"
    assert mail.subjects() == [of_quality, of_quality, "Evenhand: outside the limit in loans 2024"]
    assert web.subjects() == [of_quality, of_quality]


def test_a_receiver_that_answers_500_twice_gets_the_third_try_and_no_other_is_told_again(
    file: Path, lake: Lake, mail: Received, web: Received
) -> None:
    web.answers += [500, 500]
    tell(lake, QUALITY)
    assert (len(mail.bodies), len(web.bodies)) == (1, 1)
    assert {each.to: (each.tries, each.outcome) for each in alerts.alerts(lake)} == {
        "desk": (1, Outcome.SENT),
        "pager": (3, Outcome.SENT),
    }


def test_what_is_not_delivered_is_logged_recorded_and_sent_again(
    file: Path, lake: Lake, mail: Received, web: Received, caplog: pytest.LogCaptureFixture
) -> None:
    mail.answers += [451] * 3
    web.answers += [500] * 3
    tell(lake, QUALITY)
    assert "alert not delivered: Failed to send JSON POST notification: Internal server error" in caplog.text
    assert [each.to for each in alerts.undelivered(lake)] == ["desk", "pager"]
    assert [each.outcome for each in send_again(lake, read_alerts(file))] == [Outcome.SENT, Outcome.SENT]
    assert alerts.undelivered(lake) == []
    assert len(mail.bodies) == len(web.bodies) == 1


def test_a_reason_holds_neither_address_nor_password(
    tmp_path: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "alerts.yaml"
    file.write_text(
        "to: {pager: 'json://user:${SECRET}@127.0.0.1:1/token-of-the-pager', other: 'json://127.0.0.1:1/a-secret-token'}\n"
        "rules: [{when: outside, tell: [pager, other]}]"
    )
    file.chmod(0o600)
    monkeypatch.setenv("EVENHAND_ALERTS", str(file))
    monkeypatch.setenv("SECRET", "word of the house")
    monkeypatch.setattr(alerts, "WAITS", (0.0,))
    tell(lake, BREACH)
    assert len(alerts.undelivered(lake)) == 2
    said = "".join((lake.root / path).read_text() for path in lake.storage.glob("alerts/*.json"))
    assert not any(secret in said for secret in ("token-of", "house", "secret", "127.0.0.1:1"))


def test_a_digest_waits_for_its_day_to_end_and_is_one_message(
    file: Path, lake: Lake, mail: Received, web: Received
) -> None:
    alerts_file(file, mail, web, RULES.replace("tell: desk}", "tell: desk, digest: daily}"))
    other = replace(BREACH, run="loans-2025-9876543210", subject="loans 2025")
    for ending in (BREACH, other, BREACH):
        tell(lake, ending)
    assert mail.bodies == []
    assert send_digests(lake, read_alerts(file)) == []
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    assert len(send_digests(lake, read_alerts(file), tomorrow)) == 2
    assert send_digests(lake, read_alerts(file), tomorrow) == []
    [subject] = mail.subjects()
    assert subject == f"Evenhand: 2 outside the limit on {datetime.now(UTC):%Y-%m-%d}"
    assert mail.text().count("Evenhand: outside the limit in loans 202") >= 2


def test_a_file_that_is_not_usable_is_recorded_and_its_alerts_come_when_it_is_mended(
    file: Path, lake: Lake, mail: Received, web: Received
) -> None:
    good = file.read_text()
    file.write_text(good.replace("outside", "outsid"))
    tell(lake, BREACH)
    [missed] = alerts.undelivered(lake)
    assert "line 5: rules.0.when: 'outsid' is no ending of a run" in missed.reason
    file.write_text(good)
    send_again(lake, read_alerts(file))
    assert mail.subjects() == ["Evenhand: outside the limit in loans 2024"]
    assert alerts.undelivered(lake) == []


def test_an_alert_whose_process_died_while_it_sent_is_undelivered_and_sent_again(
    file: Path, lake: Lake, mail: Received
) -> None:
    def sending(minutes: int) -> None:
        time = (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat(timespec="seconds")
        alerts.write(lake, alerts.Alert(time=time, rule="outside", to="desk", ending=BREACH, outcome=Outcome.SENDING))

    sending(1)
    assert alerts.undelivered(lake) == [], "somebody may be sending it this moment"
    sending(11)
    [lost] = alerts.undelivered(lake)
    assert lost.to == "desk"
    send_again(lake, read_alerts(file))
    assert mail.subjects() == ["Evenhand: outside the limit in loans 2024"]
    assert alerts.undelivered(lake) == []


def test_a_digest_whose_record_cannot_be_written_keeps_no_alert_back(
    file: Path, lake: Lake, mail: Received, web: Received
) -> None:
    rules = "rules:\n  - {when: outside, tell: desk, digest: daily}\n  - {when: outside, tell: pager}\n"
    alerts_file(file, mail, web, rules)
    waits = alerts.Alert(time=alerts.now(), rule="", to="desk", ending=BREACH, outcome=Outcome.WAITING)
    (lake.root / waits.path).mkdir(parents=True)
    tell(lake, BREACH)
    assert web.subjects() == ["Evenhand: outside the limit in loans 2024"]


def test_a_run_whose_lake_cannot_be_opened_is_told_of_all_the_same(file: Path, mail: Received, web: Received) -> None:
    from prefect.client.schemas.objects import FlowRun
    from prefect.states import Failed

    from flows.audit import audit

    run = FlowRun(flow_id=uuid4(), parameters={"spec": "loans.yaml", "lake": "/proc/no-lake"})
    send_alerts(audit, run, Failed(name="Infrastructure", message="/proc/no-lake cannot be made"))
    assert web.subjects() == mail.subjects() == ["Evenhand: infrastructure in loans"]


def test_a_lake_that_cannot_be_written_is_told_of_all_the_same(
    file: Path, lake: Lake, mail: Received, web: Received
) -> None:
    """A full disk is what the alert is about. A file stands where the folder of records would be."""
    (lake.root / "alerts").write_text("")
    tell(lake, Ending(Name.INFRASTRUCTURE, "loans 2024", "the disk is full", flow_run="1"))
    assert mail.subjects() == web.subjects() == ["Evenhand: infrastructure in loans 2024"]


def test_control_characters_and_lines_of_a_message_make_no_header(
    file: Path, lake: Lake, mail: Received, web: Received
) -> None:
    tell(lake, Ending(Name.CRASHED, "loans\r\nBcc: all@example.org", "one\x1b[31m\nsecond", flow_run="1"))
    assert mail.subjects() == ["Evenhand: crashed in loans Bcc: all@example.org"]
    assert b"\nBcc:" not in mail.bodies[0]
    assert "\x1b" not in json.loads(web.bodies[0])["message"]


def test_what_a_stage_says_of_a_spec_quotes_no_cell() -> None:
    error = SpecError("no row of 'approved' holds any of ['yes']; known: 'Ms Applicant'")
    error.add_note("stage ingest")
    ending = ending_of_error(error, "loans 2024", {"approved", "yes"})
    assert (ending.name, ending.message) == (
        Name.SPEC,
        "stage ingest: no row of 'approved' holds any of ['yes']; known: …",
    )


def test_a_run_that_left_as_it_was_asked_to_is_no_crash(file: Path, lake: Lake, mail: Received, web: Received) -> None:
    from prefect.client.schemas.objects import FlowRun
    from prefect.states import Crashed

    from flows.audit import audit

    runs = [FlowRun(flow_id=uuid4(), parameters={"spec": "loans.yaml", "lake": lake.location}) for _ in range(2)]
    leave_stopped(lake, str(runs[0].id))
    for run in runs:
        send_alerts(audit, run, Crashed(message="Process exited with status code 143"))
    assert {each.ending.flow_run for each in alerts.alerts(lake)} == {str(runs[1].id)}
    assert len(mail.bodies) == len(web.bodies) == 1


@pytest.mark.slow
def test_a_hostile_web_hook_gets_no_more_than_its_time_and_leads_nowhere(web: Received) -> None:
    with hostile_receiver() as hostile:
        address = f"json://127.0.0.1:{hostile.port}"
        addresses = {
            "elsewhere": f"{address}/elsewhere/{web.port}",
            "drip": f"{address}/drip",
            "endless": f"{address}/endless",
            "sound": f"json://127.0.0.1:{web.port}/evenhand",
        }
        reasons = send_apart(addresses, "subject", "text", seconds=10)
        assert web.subjects() == ["subject"]
        assert hostile.sent < 2**26
    assert "307" in reasons["elsewhere"]
    assert reasons["drip"] == "it took longer than 10 s, or ended the process that sends"
    assert (reasons["endless"], reasons["sound"]) == ("", "")
