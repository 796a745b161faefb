"""The soak: what is read off its runs by hand on three of them, and all of it for some minutes."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from benches import operations
from benches.soak import EVERY, RUN, SERVER, SLOTS, Act, Dated, Dates, begun_after, growth, resumed_after

from tasks.pipeline.registry import read_spec

FIRST = datetime(2026, 11, 24, 1, 0, tzinfo=UTC)


def run_of(number: int, *states: tuple[str, float]) -> Dated:
    """A run of a date, by its states and the seconds after the date at which it came into them."""
    due = FIRST + number * EVERY
    told = tuple((kind, due + timedelta(seconds=after)) for kind, after in states)
    return Dated(number, f"run-{number}", states[-1][0], "", due, told)


QUIET = run_of(0, ("SCHEDULED", -300), ("PENDING", 3), ("RUNNING", 6), ("COMPLETED", 40))
KILLED = run_of(1, ("RUNNING", 5), ("CRASHED", 30), ("SCHEDULED", 30), ("RUNNING", 52), ("COMPLETED", 130))
BEHIND = run_of(2, ("RUNNING", 11), ("COMPLETED", 30))
"""Its worker was busy with the one before when it was due."""


def test_only_dates_with_an_idle_worker_tell_how_soon_a_run_begins() -> None:
    runs = [QUIET, KILLED, BEHIND]
    assert begun_after(runs, []) == [6.0, 5.0]
    killed = Act(SERVER, QUIET.due + timedelta(seconds=-50))
    assert begun_after(runs, [killed]) == [5.0], "what was done to the server before the date may delay its run"


def test_a_killed_run_is_resumed_when_it_runs_again() -> None:
    act = Act(RUN, KILLED.due + timedelta(seconds=28), "run-1")
    assert resumed_after([QUIET, KILLED], [act]) == [24.0]
    assert resumed_after([QUIET], [act]) == []
    assert resumed_after([KILLED], [Act(SERVER, act.time, "run-1")]) == [], "it went on"


def test_memory_is_compared_after_it_has_settled() -> None:
    """Of ten looks two settle; of the other eight the first two and the last two are compared."""
    looks = [(float(at), {"server": mb}) for at, mb in enumerate([50, 90, 100, 102, 300, 1, 1, 1, 110, 112])]
    assert growth(looks) == {"server": (101.0, 111.0)}
    assert growth([]) == {}


def test_the_rows_of_a_date_are_drawn_by_its_number_into_the_file_of_its_slot(tmp_path: Path) -> None:
    dates = Dates(tmp_path, SLOTS + 1, FIRST)
    dates.draw(0)
    spec = read_spec(dates.spec(0).read_text(), "soak-0.yaml").spec
    (path,) = spec.source.paths
    file = Path(path.replace("{year}", str(spec.year)))
    before = file.read_bytes()
    dates.draw(SLOTS)
    assert dates.spec(SLOTS) == dates.spec(0)
    assert file.read_bytes() != before
    dates.draw(0)
    assert file.read_bytes() == before


@pytest.mark.long
def test_nothing_is_lost_in_three_dates() -> None:
    """Some eight minutes; the memory of so short a time is not judged."""
    rows = {row["what"]: row for row in operations.BENCH.run(reps=3)}
    judged = {what: row for what, row in rows.items() if row["target"] and not what.startswith("memory")}
    assert {what: row["found"] for what, row in judged.items() if row["met"] != "met"} == {}
    assert {"runs", "tables of an undisturbed audit", "processes left", "locks, drafts and records left"} <= set(judged)
