"""A back-fill on a real Prefect server: the event of a change arrives there, and an automation acts on it."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from conftest import environment, evenhand_process, loans
from shared_server import QUICK, served
from test_one_sign import SPEC

from flows.outcome.artifacts import CHANGED

EVENTS = ("PREFECT_SERVER_SERVICES_EVENT_PERSISTER_ENABLED", "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED")
"""Services that a server of one command leaves out."""
TRIGGERED = "prefect.automation.triggered"
YEARS = tuple(range(2020, 2025))


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[str]:
    """The URL of a server with events and automations."""
    with served(tmp_path, environment(None), {**QUICK, **dict.fromkeys(EVENTS, "true")}) as url:
        yield url


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """Five years of a lender that denies half of the Black applicants it would approve in the last one alone."""
    for year in YEARS:
        table = loans(2000, seed=year)
        table = table[table["race"] != ""].reset_index(drop=True)
        denied = (table["race"] == "b") & (np.random.default_rng(year).random(len(table)) < 0.5)
        if year == YEARS[-1]:
            table = table.assign(approved=table["approved"].mask(denied, "no"))
        table.to_csv(tmp_path / f"loans_{year}.csv", index=False)
    path = tmp_path / "banks.yaml"
    path.write_text(SPEC.replace("PLACE", str(tmp_path)).replace("by: {column: lender, minimum: 100}\n", ""))
    return path


def events(url: str, name: str) -> list[dict[str, Any]]:
    """Events of a name that the server has, as soon as there is one."""
    for _ in range(60):
        answer = httpx.post(f"{url}/events/filter", json={"filter": {"event": {"name": [name]}}})
        answer.raise_for_status()
        if arrived := answer.json()["events"]:
            return list(arrived)
        time.sleep(1)
    return []


@pytest.mark.slow
def test_a_server_has_the_event_of_a_change_and_an_automation_acts_on_it(listening: str, spec: Path) -> None:
    trigger = {"type": "event", "posture": "Reactive", "expect": [CHANGED], "threshold": 1, "within": 0}
    automation = {"name": "fair lending", "trigger": trigger, "actions": [{"type": "do-nothing"}]}
    httpx.post(f"{listening}/automations/", json=automation).raise_for_status()
    words = ("--years", ",".join(map(str, YEARS)), "--lake", str(spec.parent / "lake"))
    done = evenhand_process("backfill", str(spec), *words, server=listening)
    assert done.returncode == 1, done.stderr
    changes = events(listening, CHANGED)
    adjusted = [event["payload"] for event in changes if event["payload"]["measure"] == "adjusted_effect"]
    assert [(series["group"], series["year"]) for series in adjusted] == [("Black", "2024")]
    resources = {event["resource"]["prefect.resource.id"] for event in changes}
    assert "evenhand.series.banks.similar_applicants.race.Black.lender" in resources
    assert not {"n", "value", "events", "low", "high"} & set(adjusted[0])
    assert len(events(listening, TRIGGERED)) >= 1
    assert json.dumps(adjusted).count("loans_") == 0
