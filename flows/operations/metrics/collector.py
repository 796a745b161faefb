"""Gives the metrics of a lake each time that Prometheus asks; what a run told once is kept.

A run that cannot be read is counted, and takes no other away: ``evenhand verify`` says what is amiss with it.
"""

import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from flows.operations.metrics.run_figures import RunFigures, StageFigures, run_figures
from flows.outcome.alerts.record import alerts
from flows.partitions.attempts.reading import as_it_stands, attempts, interrupted
from flows.partitions.attempts.record import Attempt, YearState
from flows.runs.naming import run_ids
from flows.supervision.failures import Failure, paths, read_failure
from flows.supervision.presence import alive
from schemas.errors import EvenhandError
from tasks.lake.store import Lake

_SIZE_SECONDS = 60.0
"""For so long the size of the lake is not counted again."""
_ENDED_WITHOUT_RUN = (YearState.FAILED, YearState.INTERRUPTED)
_STAGE = ("stage", "method")


@dataclass(eq=False)
class LakeCollector(Collector):
    """The metrics of one lake."""

    lake: Lake
    known: dict[str, RunFigures | None] = field(default_factory=dict)
    """Of each run that was read; None of one that could not be."""
    failed: dict[str, Failure | None] = field(default_factory=dict)
    """Of each record of a failed audit, by its path; None of one that cannot be read."""
    size: tuple[float, int] = (float("-inf"), 0)
    """When the lake was measured, by a monotonic clock, and its bytes."""

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        runs = self._runs()
        yield from _of_runs(runs, self._without_run())
        yield from _of_stages(runs)
        yield _gauge("evenhand_runs_at_work", "Runs whose process is alive.", len(alive(self.lake)))
        yield _gauge("evenhand_runs_unreadable", "Runs that cannot be read.", list(self.known.values()).count(None))
        told = CounterMetricFamily("evenhand_alerts", "Alerts, by what became of them.", labels=["outcome"])
        for outcome, count in Counter(each.outcome.value for each in alerts(self.lake)).items():
            told.add_metric([outcome], count)
        yield told
        yield from self._of_disk()

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand: the lake is read when Prometheus asks."""
        return ()

    def _runs(self) -> list[RunFigures]:
        there = set(run_ids(self.lake))
        self.known = {run: figures for run, figures in self.known.items() if run in there}
        for run in there - self.known.keys():
            try:
                self.known[run] = run_figures(self.lake, run)
            except EvenhandError:
                self.known[run] = None
        return sorted((each for each in self.known.values() if each is not None), key=lambda each: each.finished)

    def _without_run(self) -> Counter[tuple[str, str]]:
        """Audit and state of audits, and of attempts of back-fills, that came to no run."""
        years = ((each.audit, each.state.value) for each in _by_now(self.lake) if each.state in _ENDED_WITHOUT_RUN)
        return Counter(years) + Counter((each.audit, each.state.value) for each in self._failures())

    def _failures(self) -> list[Failure]:
        there = set(paths(self.lake))
        self.failed = {path: failure for path, failure in self.failed.items() if path in there}
        for path in there - self.failed.keys():
            try:
                self.failed[path] = read_failure(self.lake, path)
            except EvenhandError:
                self.failed[path] = None
        return [each for each in self.failed.values() if each is not None]

    def _of_disk(self) -> Iterator[Metric]:
        measured, size = self.size
        local = self.lake.storage.local
        if time.monotonic() - measured > _SIZE_SECONDS:
            size = sum(path.stat().st_size for path in local.rglob("*") if path.is_file() and not path.is_symlink())
            self.size = time.monotonic(), size
        disk = shutil.disk_usage(local)
        yield _gauge("evenhand_lake_bytes", "Size of the lake's files on this machine.", size)
        yield _gauge("evenhand_disk_free_bytes", "Free on the disk of the lake.", disk.free)
        yield _gauge("evenhand_disk_bytes", "Size of the disk of the lake.", disk.total)


def _by_now(lake: Lake) -> Iterator[Attempt]:
    """The attempts of years as they stand: one that says it runs is over where a later one began, or nobody works."""
    for _, mine in groupby(attempts(lake), key=lambda each: (each.audit, each.year)):
        *earlier, last = mine
        yield from (each if each.ended else interrupted(each) for each in earlier)
        yield as_it_stands(lake, last)


def _of_runs(runs: Sequence[RunFigures], without: Counter[tuple[str, str]]) -> Iterator[Metric]:
    ended = CounterMetricFamily("evenhand_runs", "Runs, by how they ended.", labels=["dataset", "state"])
    for (audit, state), count in (Counter((run.audit, run.state) for run in runs) + without).items():
        ended.add_metric([audit, state], count)
    took = SummaryMetricFamily("evenhand_run_seconds", "Time that the stages of a run took.", labels=["dataset"])
    success = "When the last run with a result ended, in seconds since 1970."
    last = GaugeMetricFamily("evenhand_last_success_timestamp_seconds", success, labels=["dataset"])
    for audit, mine in _by_audit(runs).items():
        took.add_metric([audit], count_value=len(mine), sum_value=sum(run.seconds for run in mine))
        last.add_metric([audit], mine[-1].finished)
    checks = GaugeMetricFamily(
        "evenhand_checks", "Checks against limits in the last run of a year.", labels=["dataset", "year", "state"]
    )
    for (audit, year), run in {(run.audit, run.year): run for run in runs if run.whole}.items():
        for state, count in run.checks.items():
            checks.add_metric([audit, str(year), state], count)
    yield from (ended, took, last, checks)


def _of_stages(runs: Sequence[RunFigures]) -> Iterator[Metric]:
    took = SummaryMetricFamily("evenhand_stage_seconds", "Time of computed stages.", labels=_STAGE)
    peak = GaugeMetricFamily("evenhand_stage_peak_bytes", "Peak memory when last computed.", labels=_STAGE)
    rows = CounterMetricFamily("evenhand_rows", "Rows, to two digits a run.", labels=["stage", "fate"])
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    peaks: dict[tuple[str, str], float] = {}
    counted: Counter[tuple[str, str]] = Counter()
    for stage in (stage for run in runs for stage in run.stages):
        seconds[stage.stage, stage.method].append(stage.seconds)
        peaks[stage.stage, stage.method] = stage.peak_bytes
        counted.update({(stage.stage, fate): count for fate, count in stage.rows.items()})
    for name, each in seconds.items():
        took.add_metric(name, count_value=len(each), sum_value=sum(each))
        peak.add_metric(name, peaks[name])
    for label, count in counted.items():
        rows.add_metric(label, count)
    yield from (took, peak, rows, *_against_forecast(runs))


def _against_forecast(runs: Sequence[RunFigures]) -> Iterator[Metric]:
    """The newest time of each stage of an audit, and what the run before nearest in rows made expect."""
    labels = ["dataset", *_STAGE]
    last = GaugeMetricFamily("evenhand_stage_last_seconds", "Time of a stage when last computed.", labels=labels)
    expected = GaugeMetricFamily("evenhand_stage_expected_seconds", "By the run before, for its rows.", labels=labels)
    for audit, mine in _by_audit([run for run in runs if run.stages]).items():
        newest, *_ = reversed(mine)
        for stage in newest.stages:
            name = [audit, stage.stage, stage.method]
            last.add_metric(name, stage.seconds)
            if (forecast := _forecast(newest, stage, mine[:-1])) is not None:
                expected.add_metric(name, forecast)
    yield from (last, expected)


def _forecast(newest: RunFigures, stage: StageFigures, before: Sequence[RunFigures]) -> float | None:
    found = [
        (abs(run.rows - newest.rows), each.seconds * (max(1.0, newest.rows / run.rows) if run.rows else 1.0))
        for run in before
        for each in run.stages
        if (each.stage, each.method) == (stage.stage, stage.method)
    ]
    return min(found)[1] if found else None


def _by_audit(runs: Iterable[RunFigures]) -> dict[str, list[RunFigures]]:
    found: dict[str, list[RunFigures]] = defaultdict(list)
    for run in runs:
        found[run.audit].append(run)
    return found


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)
