"""Commands ``alerts``, ``alerts test`` and ``alerts send``: what they print and how they exit."""

import json
from pathlib import Path

import in_process
import pytest
from conftest import REPOSITORY, environment
from receivers import RULES, alerts_file, mail_receiver, web_receiver

from flows.outcome import alerts
from flows.outcome.alerts import Alert, Outcome, write
from flows.outcome.ending import Ending, Name
from tasks.lake.store import Lake

BREACH = Ending(Name.OUTSIDE, "loans 2024", "1 of 2 outside the limit", run="loans-2024-0123456789")


def test_test_sends_one_to_each_address_and_says_what_came_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alerts, "WAITS", (0.0, 0.01))
    with mail_receiver() as mail, web_receiver() as web:
        web.answers += [500] * 2
        given = environment(None) | {"EVENHAND_ALERTS": str(alerts_file(tmp_path / "alerts.yaml", mail, web))}
        done = in_process.run(("alerts", "test", "--json"), given, REPOSITORY)
        again = in_process.run(("alerts", "test"), given, REPOSITORY)
    assert [(row["to"], row["outcome"], row["tries"]) for row in json.loads(done.stdout)] == [
        ("desk", "sent", 1),
        ("pager", "not delivered", 2),
    ]
    assert "Internal server error" in done.stdout
    assert (done.returncode, again.returncode) == (5, 0)
    assert mail.subjects() == ["Evenhand: test of alerts"] * 2


def test_without_a_file_the_command_says_which_variable_names_it() -> None:
    given = {name: value for name, value in environment(None).items() if name != "EVENHAND_ALERTS"}
    done = in_process.run(("alerts", "test"), given, REPOSITORY)
    assert (done.returncode, "EVENHAND_ALERTS is not set" in done.stderr) == (2, True)


def test_send_sends_what_waited_and_what_failed_and_alerts_lists_it(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    (lake.root / "stages").mkdir(exist_ok=True)
    old = Alert(time="2026-01-02T10:00:00Z", rule="outside daily", to="desk", ending=BREACH, outcome=Outcome.WAITING)
    write(lake, old)
    write(lake, old.model_copy(update={"to": "pager", "outcome": Outcome.NOT_DELIVERED, "tries": 3, "reason": "500"}))
    write(lake, old.model_copy(update={"to": "gone", "outcome": Outcome.NOT_DELIVERED, "tries": 3, "reason": "500"}))
    with mail_receiver() as mail, web_receiver() as web:
        file = alerts_file(tmp_path / "alerts.yaml", mail, web, RULES)
        given = environment(None) | {"EVENHAND_ALERTS": str(file), "EVENHAND_LAKE": lake.location}
        done = in_process.run(("alerts", "send"), given, REPOSITORY)
        listed = in_process.run(("alerts", "--json"), given, REPOSITORY)
    assert done.returncode == 5, done.stdout
    assert mail.subjects() == web.subjects() == ["Evenhand: outside the limit in loans 2024"]
    found = {row["to"]: (row["outcome"], row["reason"]) for row in json.loads(listed.stdout)}
    assert found == {
        "desk": ("sent", ""),
        "pager": ("sent", ""),
        "gone": ("not delivered", "no address is called 'gone' any more"),
    }
