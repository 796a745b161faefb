"""The time that each stage of an audit takes, by earlier runs of it in the lake."""

from types import SimpleNamespace
from typing import Any

import pytest

from flows.concurrency import schedule
from flows.launch.backfill import Backfill, _seconds
from schemas.errors import IntegrityError

STAGES = ("ingest", "detect", "detect", "report")


def run(finished: str, source: str = "other", stages: tuple[str, ...] = STAGES, **seconds: float) -> Any:
    """A finished run; the second of two stages of one name takes ten times as long."""
    took = [seconds.get(name, 1.0) * (10 if name in stages[:at] else 1) for at, name in enumerate(stages)]
    return SimpleNamespace(
        finished=finished,
        run=finished,
        number=0,
        source_sha256=source,
        partitions=[SimpleNamespace(stage=name) for name in stages],
        lineage=[{"seconds": each} for each in took],
    )


def expected(monkeypatch: pytest.MonkeyPatch, *runs: Any, held: int = 0) -> list[float | None]:
    monkeypatch.setattr(schedule, "runs_of", lambda lake, audit: list(runs))
    steps = [SimpleNamespace(stage=SimpleNamespace(name=name)) for name in STAGES]
    planned: Any = SimpleNamespace(spec=SimpleNamespace(name="loans"), source_sha256="same", steps=steps)
    nothing: Any = None
    return schedule.expected_seconds(nothing, planned, held)


def test_without_an_earlier_run_nothing_is_known_but_what_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    assert expected(monkeypatch) == [None] * 4
    assert expected(monkeypatch, held=1) == [0.0, None, None, None]


def test_the_newest_run_counts_stage_by_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = run("2026-01-02", detect=5.0), run("2026-01-01", detect=7.0)
    assert expected(monkeypatch, *runs) == [1.0, 5.0, 50.0, 1.0]
    assert expected(monkeypatch, *runs, held=2) == [0.0, 0.0, 50.0, 1.0]


def test_a_run_on_the_same_data_counts_before_a_newer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = run("2026-01-02", detect=5.0), run("2026-01-01", "same", detect=7.0)
    assert expected(monkeypatch, *runs) == [1.0, 7.0, 70.0, 1.0]


def test_a_run_with_other_stages_counts_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    other = run("2026-01-01", stages=("ingest", "detect", "train"), detect=5.0)
    assert expected(monkeypatch, other) == [1.0, 5.0, 5.0, None]


def test_a_lake_that_cannot_be_read_is_no_reason_to_stop_an_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(*_: Any) -> Any:
        raise IntegrityError("altered")

    monkeypatch.setattr(schedule, "runs_of", unreadable)
    planned: Any = SimpleNamespace(spec=SimpleNamespace(name="loans"), source_sha256="same", steps=[None])
    nothing: Any = None
    assert schedule.expected_seconds(nothing, planned, 0) == [None]


@pytest.mark.parametrize(
    ("each", "workers", "seconds"), [((60.0, 30.0), 1, 90.0), ((60.0, 30.0), 2, 45.0), ((60.0, None), 1, None)]
)
def test_years_share_their_time_among_workers(
    each: tuple[float | None, ...], workers: int, seconds: float | None
) -> None:
    nothing: Any = None
    asked = Backfill(nothing, (), "lake", {"workers": workers})
    years: Any = [SimpleNamespace(cost=SimpleNamespace(seconds=one)) for one in each]
    assert _seconds(asked, years) == seconds
