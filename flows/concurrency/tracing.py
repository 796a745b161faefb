"""Spans of OpenTelemetry for a run: run, year, stage. They are made when it has ended, from the records in the lake.

A run that failed or was stopped has the stages that ended before, and the status ERROR. One that was killed is traced
by the worker that finds it.

Stages run in processes of their own, which need neither an SDK nor a parent's context for that. Nothing is sent, and no
SDK is loaded, unless the usual ``OTEL_*`` variables or the process itself configure one.
"""

import logging
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final

from flows.outcome.conclusion import NAMES
from flows.outcome.ending import roughly, subject_of
from flows.runs.index import read_manifest
from flows.supervision.dead_runs import Marked
from schemas.artifact import Partition
from schemas.errors import EvenhandError, TooLittleEvidenceError
from schemas.terms import ExitCode
from tasks.lake.store import Lake

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

log = logging.getLogger("evenhand")

ASKING: Final = ("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
"""Variables by which somebody asks for traces."""
_FAILED: Final = ("failed", "interrupted")
"""States of a year that was not audited."""
_FLUSH_MILLISECONDS = 5000
_OTLP = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
"""Protocol -> the exporter's entry point."""
_NEEDED = "opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"
Value = str | int | float | bool
Steps = Sequence[tuple[str, Partition]]
"""Names of steps, each with its partition."""


@dataclass(frozen=True)
class Traced:
    """A span to be made."""

    name: str
    began: float
    """Seconds since 1970."""
    seconds: float
    attributes: dict[str, Value]
    inside: tuple["Traced", ...] = ()
    failed: str = ""
    """In which state it failed, such as ``Data quality``; empty where it did not. Messages may quote a spec."""


@dataclass(frozen=True)
class Year:
    """A year or partition of a back-fill, by the record of its attempt."""

    name: str
    """Such as ``2019``, or ``2019 7H6GLXDRUGQFU57RNE97``."""
    began: str
    seconds: float
    state: str
    run: str


def asked() -> bool:
    """Whether traces are on: by a variable, or by a provider that this process has."""
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or os.environ.get("OTEL_TRACES_EXPORTER") == "none":
        return False
    return any(os.environ.get(name) for name in ASKING) or _configured()


def send(span: Traced) -> None:
    """Send a span with all inside it. It raises nothing: a run does not fail for its trace."""
    try:
        tracer = _tracer()
        if tracer is not None:
            _emit(tracer, span)
            _flush()
    except Exception as error:
        log.warning("the trace was not sent: %s: %s", type(error).__name__, error)


@dataclass
class RunTrace:
    """A run of one audit and year, as far as it has come."""

    name: str
    year: str
    run: str = ""
    """Its id, once it is known."""
    done: list[tuple[str, Partition]] = field(default_factory=list)
    """Names of the steps that ended, each with its partition."""


@contextmanager
def traced_run(lake: Lake, name: str, year: str) -> Iterator[RunTrace]:
    """Trace what the block runs once it has ended, in order or not; the block fills in how far it has come."""
    trace, began = RunTrace(name, year), time.time()
    try:
        yield trace
    except TooLittleEvidenceError:
        _trace_run(lake, trace, began, "")  # which is no failure
        raise
    except BaseException as error:
        _trace_run(lake, trace, began, _failed_by(error))
        raise
    _trace_run(lake, trace, began, "")


def _failed_by(error: BaseException) -> str:
    """The name of the state by which a run ends that an error stopped."""
    if isinstance(error, Exception):
        return NAMES[error.exit_code if isinstance(error, EvenhandError) else ExitCode.INFRASTRUCTURE].value
    return "Stopped"


def _trace_run(lake: Lake, trace: RunTrace, began: float, failed: str) -> None:
    if not asked():
        return
    try:
        stages = tuple(_stages(lake, trace.done, began))
    except Exception as error:  # the run's own error is the one to be told
        log.warning("the stages of %s are not traced: %s", trace.run, type(error).__name__)
        stages = ()
    took = time.time() - began
    attributes: dict[str, Value] = {"evenhand.run": trace.run, "evenhand.state": failed or "completed"}
    inside = Traced(f"{trace.name} {trace.year}", began, took, attributes, stages, failed)
    send(Traced(f"audit {trace.name}", began, took, attributes, (inside,), failed))


def trace_dead(marked: Marked) -> None:
    """Trace a run of a dead process once it is found; the time of death is unknown, so the span ends now."""
    if asked() and marked.began and not (marked.stopped or marked.mended):
        subject = subject_of(marked.parameters)
        began = datetime.fromisoformat(marked.began).timestamp()
        took, dead = time.time() - began, "Crashed"
        attributes: dict[str, Value] = {"evenhand.state": dead, "evenhand.stage": marked.stage}
        inside = Traced(subject.words, began, took, attributes, failed=dead)
        send(Traced(f"{marked.flow} {subject.name}", began, took, attributes, (inside,), dead))


def trace_years(lake: Lake, name: str, years: Iterable[Year]) -> None:
    """Trace a back-fill, once its years have ended."""
    if asked():
        year_spans = tuple(_year(lake, year) for year in years)
        began = min((year.began for year in year_spans), default=time.time())
        send(Traced(f"backfill {name}", began, time.time() - began, {"evenhand.years": len(year_spans)}, year_spans))


def _year(lake: Lake, year: Year) -> Traced:
    began = datetime.fromisoformat(year.began).timestamp()
    inside: tuple[Traced, ...] = ()
    try:
        if year.run:
            manifest = read_manifest(lake, year.run)
            done = [
                (step["name"], Partition.model_validate({**partition, "reused": step["reused"]}))
                for step, partition in zip(manifest["steps"], manifest["partitions"], strict=True)
            ]
            inside = tuple(_stages(lake, done, began))
    except (EvenhandError, KeyError):
        log.debug("the stages of %s are not traced", year.run)  # `evenhand verify` tells of it; or an earlier version
    attributes: dict[str, Value] = {"evenhand.state": year.state, "evenhand.run": year.run}
    failed = year.state if year.state in _FAILED else ""
    return Traced(year.name, began, year.seconds, attributes, inside, failed)


def _stages(lake: Lake, done: Steps, began: float) -> Iterator[Traced]:
    """A span for each stage; of one that was in the lake before, a moment when the run began."""
    for name, partition in done:
        record = lake.lineage(partition)
        rows = record["rows"]
        files = [lake.storage.local / artifact.path for artifact in partition.tables]  # none if the lake is elsewhere
        attributes: dict[str, Value] = {
            "evenhand.key": partition.key,
            "evenhand.reused": partition.reused,
            "evenhand.rows.in": roughly(rows["in"]),
            "evenhand.rows.out": roughly(rows["out"]),
            "evenhand.bytes": sum(file.stat().st_size for file in files if file.is_file()),
        }
        when = (began, 0.0) if partition.reused else (float(record["started"]), float(record["seconds"]))
        yield Traced(name, *when, attributes)


def _emit(tracer: "Tracer", span: Traced) -> None:
    from opentelemetry.trace import Status, StatusCode, use_span

    began, ended = int(span.began * 1e9), int((span.began + span.seconds) * 1e9)
    new_span = tracer.start_span(span.name, attributes=span.attributes, start_time=began)
    if span.failed:
        new_span.set_status(Status(StatusCode.ERROR, span.failed))
    with use_span(new_span, end_on_exit=False):
        for inner_span in span.inside:
            _emit(tracer, inner_span)
    new_span.end(end_time=ended)


def _tracer() -> "Tracer | None":
    """A tracer of the provider that is configured; of an SDK that the variables configure where none is."""
    from opentelemetry import trace

    if not _configured():
        exporter = _exporter()
        if exporter is None:
            log.warning("traces are requested and cannot be sent: pip install %s", _NEEDED)
            return None
        sdk, export = import_module("opentelemetry.sdk.trace"), import_module("opentelemetry.sdk.trace.export")
        provider = sdk.TracerProvider()
        provider.add_span_processor(export.BatchSpanProcessor(exporter))
        trace.set_tracer_provider(provider)
    return trace.get_tracer("evenhand")


def _exporter() -> Any:
    """The exporter that the variables name, or the one of OTLP that is installed; None where none is."""
    named = os.environ.get("OTEL_TRACES_EXPORTER") or "otlp"
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    names = [_OTLP[protocol]] if protocol in _OTLP else list(_OTLP.values())
    installed = {entry_point.name: entry_point for entry_point in entry_points(group="opentelemetry_traces_exporter")}
    exporter = next((installed[name] for name in (names if named == "otlp" else [named]) if name in installed), None)
    return None if exporter is None else exporter.load()()


def _configured() -> bool:
    """Whether this process has a tracer provider, set by an SDK or by the embedding program."""
    from opentelemetry import trace

    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def _flush() -> None:
    from opentelemetry import trace

    flush = getattr(trace.get_tracer_provider(), "force_flush", None)
    if flush is not None:
        flush(_FLUSH_MILLISECONDS)
