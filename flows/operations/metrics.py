"""Metrics of a lake for Prometheus, and memory peaks of stages."""

import logging
import os
import shutil
import stat
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector
from pydantic import TypeAdapter, ValidationError

from flows.operations.lake_records import KINDS, RUN, Records, Unreadable, without
from flows.outcome.alerts import alerts
from flows.outcome.ending import Name, roughly
from flows.partitions.attempts import YearState, as_it_stands, attempts, interrupted, latest
from flows.runs.index import read_manifest
from flows.runs.run_names import audit_and_year, run_ids
from flows.supervision.failed_audits import Failure, paths, read_failure
from flows.supervision.presence import alive, dead
from schemas.artifact import Partition
from schemas.audit.partition import ALL
from schemas.errors import EvenhandError, InfrastructureError, SpecError
from schemas.questions import state_now
from schemas.tables.verdicts import PUBLISHED_VERDICTS
from tasks.lake import log
from tasks.lake.store import LAKE, Lake, stage_runs
from tasks.pipeline.resources import free_mb

if TYPE_CHECKING:
    from flows.operations.status import Standing


# --------------------------------------------------------------------------------------------------------------------
# Memory of the stages of a year, for ``evenhand status --json``: peaks of its last run, and how an attempt failed.
#
# A process that was killed leaves no peak of its own. What is known of it is its stage, by its record, and what a
# worker saw it hold, which the alert of its end tells.


_ENDED = (Name.CRASHED, Name.INFRASTRUCTURE)
_FAILED = (YearState.FAILED, YearState.INTERRUPTED)


@dataclass(frozen=True)
class Failed:
    """The last attempt of a year, which came to nothing."""

    state: str
    stage: str
    """At which it ended; empty where it did at its start."""
    message: str
    began: str


@dataclass(frozen=True)
class YearMemory:
    """Memory of the stages of one year."""

    run: str
    """Whose stages these are: the last run of the year, else of the audit; empty where there is none."""
    peak_mb: dict[str, float]
    """Stage -> its peak when it was computed."""
    failed: Failed | None
    seen: str
    """What the last alert of a crash, or of a want of memory, says; empty without one."""


@dataclass(frozen=True)
class MachineMemory:
    """Memory of this machine, and dead runs of this machine that are not handled yet."""

    free_mb: float
    died: tuple[str, ...]
    """Process, when it began and its stage, each in a line."""


def machine_memory(lake: Lake) -> MachineMemory:
    """What there is for a run that begins now."""
    return MachineMemory(round(free_mb(), 1), tuple(map(str, dead(lake))))


def memory_of(lake: Lake, years: "Sequence[Standing]") -> list[YearMemory]:
    """The memory of some years, in their order.

    Args:
        lake: without the records that cannot be read.
        years: as ``operations.status.status`` gives them.
    """
    alert_messages = {
        alert.ending.subject: alert.ending.message for alert in alerts(lake) if alert.ending.name in _ENDED
    }
    last: dict[tuple[str, str], str] = {}
    numbers = log.published(lake)
    for run in sorted(run_ids(lake), key=lambda name: (numbers.get(name, 0), name)):
        audit, of_year = audit_and_year(run)
        last[audit, of_year] = last[audit, ""] = run
    memory = []
    for standing in years:
        last_run = last.get((standing.audit, str(standing.year))) or last.get((standing.audit, ""))
        is_held = standing.run and lake.storage.exists(f"runs/{standing.run}/manifest.json")
        source = standing.run if is_held else last_run
        attempt = latest(lake, standing.audit, standing.year, standing.partition)
        failed = None
        if attempt is not None and attempt.state in _FAILED:
            failed = Failed(attempt.state.value, attempt.stage, attempt.message, attempt.began)
        rows = stage_runs(read_manifest(lake, source)) if source else ()
        peaks = {row["stage"]: float(row["peak_memory_mb"]) for row in rows if row["peak_memory_mb"] is not None}
        alert_message = alert_messages.get(f"{standing.audit} {standing.year}", "")
        memory.append(YearMemory(source or "", peaks, failed, alert_message))
    return memory


# --------------------------------------------------------------------------------------------------------------------
# What one run tells as metrics, by its manifest and its published verdicts; both never change, so it is read once.


_DETECT = "detect "


@dataclass(frozen=True)
class StageFigures:
    """A stage that a run computed."""

    stage: str
    method: str
    """Of a detection; empty of other stages."""
    seconds: float
    peak_bytes: float
    rows: Mapping[str, int]
    """Fate -> rows, to two digits: in, out, refused."""


@dataclass(frozen=True)
class RunFigures:
    """A finished run."""

    audit: str
    year: int
    state: str
    finished: float
    """Seconds since 1970."""
    rows: int
    """Of the source, to two digits."""
    all_rows: bool
    """Whether it is about every row, and not about one partition."""
    stages: tuple[StageFigures, ...]
    """Those that it computed, and did not find in the lake."""
    checks: Mapping[str, int]
    """State -> judged rows with a limit, of a run about every row."""

    @property
    def seconds(self) -> float:
        """That its stages took."""
        return sum(stage.seconds for stage in self.stages)


def run_figures(lake: Lake, run: str, *, checks: bool = True) -> RunFigures:
    """The figures of a run.

    Args:
        lake: that holds it.
        run: its id.
        checks: whether its published verdicts are read.

    Raises:
        SpecError: the lake holds no such run.
        IntegrityError: a file is not the one that was written.
    """
    manifest = read_manifest(lake, run)
    stages = []
    for row in stage_runs(manifest):
        if row["source"] != LAKE:
            name, fates = row["stage"], {"in": row["rows_in"], "out": row["rows_out"], "refused": row["refused"]}
            stage = StageFigures(
                stage="detect" if name.startswith(_DETECT) else name,
                method=name.removeprefix(_DETECT) if name.startswith(_DETECT) else "",
                seconds=float(row["seconds"] or 0.0),
                peak_bytes=float(row["peak_memory_mb"] or 0.0) * 2**20,
                rows={fate: roughly(count) for fate, count in fates.items() if count is not None},
            )
            stages.append(stage)
    part = manifest.get("partition")  # an earlier version had none
    is_whole = part is None or part["value"] == ALL
    judged: Mapping[str, int] = {}  # rows with a limit, by their published state
    partitions = map(Partition.model_validate, manifest["partitions"] if is_whole and checks else ())
    tables = {artifact.table: artifact for partition in partitions for artifact in partition.tables}
    if PUBLISHED_VERDICTS.name in tables:
        columns = lake.read(tables[PUBLISHED_VERDICTS.name], ["role", "limit", "state"]).to_pydict()
        cells = zip(columns["role"], columns["limit"], columns["state"], strict=True)
        judged = Counter(state for role, limit, state in cells if role != "theory" and limit is not None)
    lineage = manifest["lineage"]
    return RunFigures(
        audit=manifest["dataset"],
        year=manifest["year"],
        state=state_now(manifest["state"]),
        finished=datetime.fromisoformat(manifest["finished"]).timestamp(),
        rows=roughly(lineage[0]["rows"]["in"]) if lineage else 0,
        all_rows=is_whole,
        stages=tuple(stages),
        checks=judged,
    )


# --------------------------------------------------------------------------------------------------------------------
# Figures of runs that retention removed: ``removed/<run>.json``, one small file each, so that counters do not fall.
#
# A file holds what the metrics tell of a run, with rows to two digits. It names no group and holds no result but the
# state. The run's entry in the lake's log is its record; this file serves metrics alone.


FOLDER: Final = "removed"
_FILE: Final = TypeAdapter(RunFigures)


def keep_figures(lake: Lake, run: str) -> None:
    """Keep the figures of a run before its removal; nothing of a run with an earlier, unfinished removal.

    It raises nothing: a full disk, for which runs are removed, must not keep them.
    """
    with suppress(EvenhandError, OSError, ValueError, KeyError, TypeError):
        figures = replace(run_figures(lake, run, checks=False), checks={})
        lake.write_file(f"{FOLDER}/{run}.json", _FILE.dump_json(figures))


def removed(lake: Lake, known_runs: Collection[str] = ()) -> dict[str, RunFigures]:
    """Run -> its figures, of every run that was removed but those that are known; what cannot be read is left out."""
    figures = {}
    for path in lake.storage.glob(f"{FOLDER}/*.json"):
        run = PurePosixPath(path).stem
        if run not in known_runs:
            with suppress(ValidationError, OSError):
                figures[run] = _FILE.validate_json(lake.storage.read(path) or b"")
    return figures


# --------------------------------------------------------------------------------------------------------------------
# Metrics of runs and stages for Prometheus, made of the figures of runs.
#
# Counters hold the runs that retention removed, too: a counter that falls is taken for one that began again. Gauges
# are about the runs that the lake holds.


_STAGE = ("stage", "method")


def of_runs(
    every: Sequence[RunFigures], readable_runs: Sequence[RunFigures], without: Counter[tuple[str, str]]
) -> list[Metric]:
    """Metrics of runs.

    Args:
        every: the runs of the lake and those that it had, the last one last.
        readable_runs: those of them that are there.
        without: audit and state of audits that came to no run.
    """
    ended = CounterMetricFamily("evenhand_runs", "Runs, by how they ended.", labels=["dataset", "state"])
    for (audit, state), count in (Counter((run.audit, run.state) for run in every) + without).items():
        ended.add_metric([audit, state], count)
    took = SummaryMetricFamily("evenhand_run_seconds", "Time that the stages of a run took.", labels=["dataset"])
    success = "When the last run with a result ended, in seconds since 1970."
    last = GaugeMetricFamily("evenhand_last_success_timestamp_seconds", success, labels=["dataset"])
    for audit, runs_of_audit in _by_audit(every).items():
        took.add_metric([audit], count_value=len(runs_of_audit), sum_value=sum(run.seconds for run in runs_of_audit))
        last.add_metric([audit], runs_of_audit[-1].finished)
    checks = GaugeMetricFamily(
        "evenhand_checks", "Checks against limits in the last run of a year.", labels=["dataset", "year", "state"]
    )
    for (audit, year), run in {(run.audit, run.year): run for run in readable_runs if run.all_rows}.items():
        for state, count in run.checks.items():
            checks.add_metric([audit, str(year), state], count)
    return [ended, took, last, checks]


def of_stages(every: Sequence[RunFigures], readable_runs: Sequence[RunFigures]) -> list[Metric]:
    """Metrics of stages; the arguments are those of ``of_runs``."""
    took = SummaryMetricFamily("evenhand_stage_seconds", "Time of computed stages.", labels=_STAGE)
    peak = GaugeMetricFamily("evenhand_stage_peak_bytes", "Peak memory when last computed.", labels=_STAGE)
    rows = CounterMetricFamily("evenhand_rows", "Rows, to two digits a run.", labels=["stage", "fate"])
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    peaks: dict[tuple[str, str], float] = {}
    row_counts: Counter[tuple[str, str]] = Counter()
    for stage in (stage for run in every for stage in run.stages):
        seconds[stage.stage, stage.method].append(stage.seconds)
        peaks[stage.stage, stage.method] = stage.peak_bytes
        row_counts.update({(stage.stage, fate): count for fate, count in stage.rows.items()})
    for name, durations in seconds.items():
        took.add_metric(name, count_value=len(durations), sum_value=sum(durations))
        peak.add_metric(name, peaks[name])
    for label, count in row_counts.items():
        rows.add_metric(label, count)
    # The newest time of each stage of an audit, and the time that the earlier run nearest in rows makes expect.
    labels = ["dataset", *_STAGE]
    last = GaugeMetricFamily("evenhand_stage_last_seconds", "Time of a stage when last computed.", labels=labels)
    expected = GaugeMetricFamily("evenhand_stage_expected_seconds", "By the run before, for its rows.", labels=labels)
    for audit, runs_of_audit in _by_audit([run for run in readable_runs if run.stages]).items():
        *earlier_runs, newest = runs_of_audit
        for stage in newest.stages:
            last.add_metric([audit, stage.stage, stage.method], stage.seconds)
            candidates = [
                (abs(run.rows - newest.rows), before.seconds * (max(1.0, newest.rows / run.rows) if run.rows else 1.0))
                for run in earlier_runs
                for before in run.stages
                if (before.stage, before.method) == (stage.stage, stage.method)
            ]
            if candidates:
                expected.add_metric([audit, stage.stage, stage.method], min(candidates)[1])
    return [took, peak, rows, last, expected]


def gauge(name: str, text: str, value: float) -> Metric:
    """A gauge without labels."""
    return GaugeMetricFamily(name, text, value=value)


def gauge_by(name: str, text: str, label: str, values: Iterable[tuple[str, float]]) -> Metric:
    """A gauge with one label."""
    family = GaugeMetricFamily(name, text, labels=[label])
    for label_value, value in values:
        family.add_metric([label_value], value)
    return family


def _by_audit(runs: Iterable[RunFigures]) -> dict[str, list[RunFigures]]:
    runs_by_audit: dict[str, list[RunFigures]] = defaultdict(list)
    for run in runs:
        runs_by_audit[run.audit].append(run)
    return runs_by_audit


# --------------------------------------------------------------------------------------------------------------------
# Gives the metrics of a lake each time that Prometheus asks; the figures of a run are read once and kept.
#
# A record that cannot be read is counted, and takes no other away: ``evenhand status`` names it. A part that fails as a
# whole, such as a lake out of reach, is left out and logged.


collector_log = logging.getLogger("evenhand")
T = TypeVar("T")

_SIZE_SECONDS = 60.0
"""For so long the size of the lake is not counted again."""
_UNUSABLE = (EvenhandError, OSError, ValueError, KeyError, TypeError)
"""What reading a record or a file of a run may raise."""


@dataclass(eq=False)
class LakeCollector(Collector):
    """The metrics of one lake."""

    lake: Lake
    figures: dict[str, RunFigures] = field(default_factory=dict)
    """Of each run that was ever read: one that goes, or is damaged later, has been counted."""
    gone: dict[str, RunFigures] = field(default_factory=dict)
    """Of each run that retention removed."""
    failed: dict[str, Failure] = field(default_factory=dict)
    """Of each record of a failed audit, by its path."""
    size: tuple[float, int] = (float("-inf"), 0)
    """When the lake was measured, by a monotonic clock, and its bytes."""

    def __post_init__(self) -> None:
        """Remember which records are sound."""
        self._records = Records(self.lake)

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        hidden = self._results_of(self._records.unreadable)
        visible_lake = without(self.lake, hidden)
        yield from self._results_of(lambda: self._of_runs(visible_lake, hidden))
        kinds = Counter(record.kind for record in hidden)
        text = "Records of the lake that cannot be read: evenhand status names them."
        yield gauge_by("evenhand_records_unreadable", text, "kind", [(kind, kinds[kind]) for kind in KINDS])
        yield from self._results_of(
            lambda: [gauge("evenhand_runs_at_work", "Runs whose process is alive.", len(alive(self.lake)))]
        )
        # A gauge by type: an alert that was sent at last is no longer one that was not delivered.
        text = "Alerts, by what became of them by now."
        outcomes = self._results_of(lambda: [Counter(alert.outcome.value for alert in alerts(visible_lake))])
        yield from (gauge_by("evenhand_alerts_total", text, "outcome", counts.items()) for counts in outcomes)
        yield from self._results_of(self._of_disk)

    def describe(self) -> Iterable[Metric]:
        """No metric in advance: the lake is read at each scrape."""
        return ()

    def _results_of(self, part: Callable[[], Iterable[T]]) -> list[T]:
        """Results of a part; none where it fails as a whole."""
        try:
            return [*part()]
        except _UNUSABLE as error:
            collector_log.warning(
                "metrics: a part of %s is left out (%s: %s)", self.lake.location, type(error).__name__, error
            )
            return []

    def _of_runs(self, lake: Lake, hidden: list[Unreadable]) -> Iterator[Metric]:
        ids = run_ids(lake)
        for run in ids:
            if run not in self.figures:
                with suppress(*_UNUSABLE):
                    self.figures[run] = run_figures(lake, run)
        readable_runs = _in_order(self.figures[run] for run in ids if run in self.figures)
        self.gone |= removed(lake, self.gone)
        every = _in_order({**self.gone, **self.figures}.values())
        yield from of_runs(every, readable_runs, self._without_run(lake))
        yield from of_stages(every, readable_runs)
        faults = len(ids) - len(readable_runs) + sum(record.kind == RUN for record in hidden)
        yield gauge("evenhand_runs_unreadable", "Runs that cannot be read.", faults)

    def _without_run(self, lake: Lake) -> Counter[tuple[str, str]]:
        """Audit and state of audits, and of attempts of back-fills, that ended without a run."""
        for path in paths(lake):
            if path not in self.failed:
                with suppress(*_UNUSABLE):
                    self.failed[path] = read_failure(lake, path)
        counts = Counter((failure.audit, failure.state.value) for failure in self.failed.values())
        for _, year_attempts in groupby(attempts(lake), key=lambda attempt: (attempt.audit, attempt.year)):
            # As they are now: a running attempt is over if a later one began, or its process is gone.
            *earlier, last = year_attempts
            current = [attempt if attempt.ended else interrupted(attempt) for attempt in earlier]
            current.append(as_it_stands(lake, last))
            counts.update((attempt.audit, attempt.state.value) for attempt in current if attempt.state in _FAILED)
        return counts

    def _of_disk(self) -> Iterator[Metric]:
        measured, size = self.size
        local = self.lake.storage.local
        if time.monotonic() - measured > _SIZE_SECONDS:
            size = bytes_below(local)
            self.size = time.monotonic(), size
        disk = shutil.disk_usage(local)
        yield gauge("evenhand_lake_bytes", "Size of the lake's files on this machine.", size)
        yield gauge("evenhand_disk_free_bytes", "Free on the disk of the lake.", disk.free)
        yield gauge("evenhand_disk_bytes", "Size of the disk of the lake.", disk.total)


def bytes_below(place: Path) -> int:
    """Bytes of the files below a directory; those that come or go meanwhile count or do not."""
    total = 0
    for folder, _, names in os.walk(place):
        for name in names:
            with suppress(OSError):
                file_stat = (Path(folder) / name).lstat()
                total += file_stat.st_size if stat.S_ISREG(file_stat.st_mode) else 0
    return total


def _in_order(runs: Iterable[RunFigures]) -> list[RunFigures]:
    return sorted(runs, key=lambda run: run.finished)


# --------------------------------------------------------------------------------------------------------------------
# Serves the metrics of a lake at the address of EVENHAND_METRICS while a worker works.


VARIABLE: Final = "EVENHAND_METRICS"
_MOST_PORT = 65535


@contextmanager
def metrics_served(lake: Lake) -> Iterator[None]:
    """Serve them at ``http://HOST:PORT/metrics`` while the block runs; nothing where EVENHAND_METRICS is not set.

    Raises:
        SpecError: the variable is no address.
        InfrastructureError: nothing can listen there.
    """
    address_text = os.environ.get(VARIABLE)
    if not address_text:
        yield
        return
    host, port = address(address_text)
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry()
    registry.register(LakeCollector(lake))
    try:
        server, thread = start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise InfrastructureError(
            f"{VARIABLE}: nothing can listen at {address_text} ({error}); give a free port"
        ) from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def address(text: str) -> tuple[str, int]:
    """Host and port.

    Raises:
        SpecError: it is none.
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) <= _MOST_PORT:
        raise SpecError(f"{VARIABLE}: {text!r} is no address; give HOST:PORT, such as 127.0.0.1:9464")
    return host.strip("[]"), int(port)
