"""Spans of OpenTelemetry for a run: run, year, stage. They are made when it has ended, from the records in the lake.

Stages run in processes of their own, which need neither an SDK nor a parent's context for that. Nothing is sent, and no
SDK is loaded, unless the usual ``OTEL_*`` variables or the process itself configure one.
"""

import logging
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final

from flows.outcome.words.plain import roughly
from flows.runs.manifest import read_manifest
from schemas.artifact import Partition
from schemas.errors import EvenhandError
from tasks.lake.store import Lake

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

log = logging.getLogger("evenhand")

ASKING: Final = ("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
"""Variables by which somebody asks for traces."""
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
    """Whether somebody wants traces: by a variable, or by a provider that this process has."""
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


def trace_run(lake: Lake, about: tuple[str, int], run: str, done: Steps, began: float) -> None:
    """Trace a run of one audit and year, once its stages have ended.

    Args:
        lake: of the audit.
        about: its name and year.
        run: the run's id.
        done: names of the steps, each with its partition.
        began: when the run did, in seconds since 1970.
    """
    if asked():
        (name, year), took = about, time.time() - began
        said: dict[str, Value] = {"evenhand.run": run}
        inside = Traced(f"{name} {year}", began, took, said, tuple(_stages(lake, done, began)))
        send(Traced(f"audit {name}", began, took, said, (inside,)))


def trace_years(lake: Lake, name: str, years: Iterable[Year]) -> None:
    """Trace a back-fill, once its years have ended."""
    if asked():
        found = tuple(_year(lake, year) for year in years)
        began = min((year.began for year in found), default=time.time())
        send(Traced(f"backfill {name}", began, time.time() - began, {"evenhand.years": len(found)}, found))


def _year(lake: Lake, year: Year) -> Traced:
    began = datetime.fromisoformat(year.began).timestamp()
    inside: tuple[Traced, ...] = ()
    try:
        if year.run:
            manifest = read_manifest(lake, year.run)
            done = [
                (step["name"], Partition.model_validate({**each, "reused": step["reused"]}))
                for step, each in zip(manifest["steps"], manifest["partitions"], strict=True)
            ]
            inside = tuple(_stages(lake, done, began))
    except (EvenhandError, KeyError):
        log.debug("the stages of %s are not traced", year.run)  # `evenhand verify` tells of it; or an earlier version
    return Traced(year.name, began, year.seconds, {"evenhand.state": year.state, "evenhand.run": year.run}, inside)


def _stages(lake: Lake, done: Steps, began: float) -> Iterator[Traced]:
    """A span for each stage; of one that was in the lake before, a moment when the run began."""
    for name, partition in done:
        record = lake.lineage(partition)
        rows = record["rows"]
        said: dict[str, Value] = {
            "evenhand.key": partition.key,
            "evenhand.reused": partition.reused,
            "evenhand.rows.in": roughly(rows["in"]),
            "evenhand.rows.out": roughly(rows["out"]),
            "evenhand.bytes": sum(_bytes(lake, artifact.path) for artifact in partition.tables),
        }
        when = (began, 0.0) if partition.reused else (float(record["started"]), float(record["seconds"]))
        yield Traced(name, *when, said)


def _bytes(lake: Lake, path: str) -> int:
    """Of a file of the lake; 0 where the lake does not lie on this machine."""
    file = lake.storage.local / path
    return file.stat().st_size if file.is_file() else 0


def _emit(tracer: "Tracer", span: Traced) -> None:
    from opentelemetry.trace import use_span

    began, ended = int(span.began * 1e9), int((span.began + span.seconds) * 1e9)
    made = tracer.start_span(span.name, attributes=span.attributes, start_time=began)
    with use_span(made, end_on_exit=False):
        for each in span.inside:
            _emit(tracer, each)
    made.end(end_time=ended)


def _tracer() -> "Tracer | None":
    """A tracer of the provider that is configured; of an SDK that the variables configure where none is."""
    from opentelemetry import trace

    if not _configured():
        exporter = _exporter()
        if exporter is None:
            log.warning("traces are asked for and cannot be sent: pip install %s", _NEEDED)
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
    installed = {each.name: each for each in entry_points(group="opentelemetry_traces_exporter")}
    found = next((installed[name] for name in (names if named == "otlp" else [named]) if name in installed), None)
    return None if found is None else found.load()()


def _configured() -> bool:
    """Whether this process has a provider of its own, which an SDK or whoever embeds us has set."""
    from opentelemetry import trace

    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def _flush() -> None:
    from opentelemetry import trace

    flush = getattr(trace.get_tracer_provider(), "force_flush", None)
    if flush is not None:
        flush(_FLUSH_MILLISECONDS)
