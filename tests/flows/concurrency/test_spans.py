"""Spans of a run by OpenTelemetry's own interface: who is inside whom, how long, and that nothing is made unasked."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from lake_of_runs import NEW, lake_of_runs
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, Tracer, TracerProvider

from flows.concurrency import tracing
from flows.concurrency.tracing import ASKING, Traced, Year, asked, send, trace_dead, trace_years, traced_run
from flows.runs.index import run_of
from flows.supervision.dead_runs import Marked
from schemas.errors import DataQualityError, TooLittleEvidenceError
from tasks.lake.store import Lake


@dataclass
class Recorded(TracerProvider, Tracer):
    """A provider that keeps what is sent."""

    ended: list[tuple[str, str, float, dict[str, Any]]] = field(default_factory=list)
    """Name, name of the span around it, seconds, attributes."""
    failed: dict[str, str] = field(default_factory=dict)
    """Name of a span with the status ERROR -> what the status says."""
    names: dict[int, str] = field(default_factory=dict)

    def get_tracer(self, *_: Any, **__: Any) -> Tracer:
        return self

    def start_as_current_span(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    def start_span(self, name: str, *_: Any, attributes: Any = None, start_time: Any = None, **__: Any) -> Any:
        number, ended, names, failed = len(self.names) + 1, self.ended, self.names, self.failed
        around = names.get(trace.get_current_span().get_span_context().span_id, "")
        names[number] = name

        class Span(NonRecordingSpan):
            def set_status(self, status: Any, description: Any = None) -> None:
                failed[name] = status.description

            def end(self, end_time: int | None = None) -> None:
                ended.append((name, around, ((end_time or 0) - start_time) / 1e9, dict(attributes)))

        return Span(SpanContext(1, number, False, TraceFlags(1)))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_of_runs(tmp_path / "lake")


@pytest.fixture(autouse=True)
def unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*ASKING, "OTEL_SDK_DISABLED"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    provider = Recorded()
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", provider)
    return provider


def test_spans_are_inside_each_other_with_their_own_times(recorded: Recorded) -> None:
    stage = Traced("detect cst", 1002.0, 3.5, {"evenhand.reused": False, "evenhand.rows.in": 500})
    send(Traced("audit loans", 1000.0, 9.0, {}, (Traced("loans 2024", 1000.0, 8.0, {}, (stage,)),)))
    assert [each[:3] for each in recorded.ended] == [
        ("detect cst", "loans 2024", 3.5),
        ("loans 2024", "audit loans", 8.0),
        ("audit loans", "", 9.0),
    ]
    assert recorded.ended[0][3] == {"evenhand.reused": False, "evenhand.rows.in": 500}


def test_nothing_is_made_unless_somebody_asks(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not asked()
    monkeypatch.setattr(tracing, "_tracer", lambda: pytest.fail("nobody asked"))
    with traced_run(lake, "loans", "2023"):
        pass
    trace_years(lake, "loans", [])
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    assert asked()
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert not asked()


def test_a_trace_that_cannot_be_sent_fails_no_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none-that-is-installed")
    send(Traced("audit loans", 0.0, 1.0, {}))
    assert "pip install opentelemetry-sdk" in caplog.text


def test_years_are_traced_and_one_without_a_run_has_no_stages(recorded: Recorded, lake: Lake) -> None:
    began = "2026-01-03T09:59:00+00:00"
    failed = Year("2022", began, 2.0, "failed", "")
    trace_years(lake, "loans", [Year("2023", began, 5.0, "outside", run_of(lake, NEW).run), failed])
    found = {name: (around, seconds, said) for name, around, seconds, said in recorded.ended}
    assert found["2023"][:2] == ("backfill loans", 5.0)
    assert found["2022"][2] == {"evenhand.state": "failed", "evenhand.run": ""}
    assert found["backfill loans"][2] == {"evenhand.years": 2}
    assert recorded.failed == {"2022": "failed"}


def test_a_run_that_fails_is_traced_as_far_as_it_came_without_what_the_error_says(
    recorded: Recorded, lake: Lake
) -> None:
    record = {"rows": {"in": 512, "out": 498}, "started": 1000.0, "seconds": 2.5}
    done = lake.publish("ingest", "1" * 32, {}, {}, record)

    def fail() -> None:
        with traced_run(lake, "loans", "2023") as trace:
            trace.run, trace.done = NEW, [("ingest", done)]
            raise DataQualityError("row 17 holds Mr Smith")

    with pytest.raises(DataQualityError, match="Smith"):
        fail()
    inner, year, run = recorded.ended
    assert (inner[:3], year[:2], run[:2]) == (
        ("ingest", "loans 2023", 2.5),
        ("loans 2023", "audit loans"),
        ("audit loans", ""),
    )
    assert recorded.failed == {"loans 2023": "Data quality", "audit loans": "Data quality"}
    assert year[3] == {"evenhand.run": NEW, "evenhand.state": "Data quality"}
    assert "Smith" not in str(recorded.ended)


def test_a_stage_whose_record_cannot_be_read_takes_nothing_from_the_error_of_the_run(
    recorded: Recorded, lake: Lake
) -> None:
    trace = traced_run(lake, "loans", "2023")
    trace.__enter__().done = [("publish", run_of(lake, NEW).partitions[0])]  # whose record is empty
    error = DataQualityError("the run's own")
    assert not trace.__exit__(DataQualityError, error, None)
    assert [each[0] for each in recorded.ended] == ["loans 2023", "audit loans"]


@pytest.mark.parametrize(("error", "told"), [(KeyboardInterrupt(), "Stopped"), (ZeroDivisionError(), "Infrastructure")])
def test_a_run_that_is_stopped_or_meets_a_fault_is_traced(
    recorded: Recorded, lake: Lake, error: BaseException, told: str
) -> None:
    with pytest.raises(type(error)), traced_run(lake, "loans", "2023"):
        raise error
    assert recorded.failed == {"loans 2023": told, "audit loans": told}


def test_too_little_evidence_is_no_failure(recorded: Recorded, lake: Lake) -> None:
    with pytest.raises(TooLittleEvidenceError), traced_run(lake, "loans", "2023"):
        raise TooLittleEvidenceError("every group is too small")
    assert recorded.failed == {}


def test_a_run_that_was_killed_is_traced_by_who_finds_it(recorded: Recorded) -> None:
    dead = Marked("loans 2023", "f" * 8, "killed", resumed=True, flow="audit", parameters={"spec": {"name": "loans"}})
    trace_dead(dead)
    assert recorded.ended == [], "it never began"
    trace_dead(replace(dead, began="2026-01-03T09:59:00Z", stage="detect cst"))
    trace_dead(replace(dead, began="2026-01-03T09:59:00Z", stopped=True))
    assert [each[:2] for each in recorded.ended] == [("loans", "audit loans"), ("audit loans", "")]
    assert recorded.failed == {"loans": "Crashed", "audit loans": "Crashed"}
    assert recorded.ended[0][3] == {"evenhand.state": "Crashed", "evenhand.stage": "detect cst"}
