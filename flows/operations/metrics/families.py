"""Metrics of runs and stages for Prometheus, made of the figures of runs.

Counters hold the runs that retention removed, too: a counter that falls is taken for one that began anew. Gauges tell
of the runs that are there.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

from flows.operations.metrics.run_figures import RunFigures, StageFigures

_STAGE = ("stage", "method")


def of_runs(
    every: Sequence[RunFigures], there: Sequence[RunFigures], without: Counter[tuple[str, str]]
) -> list[Metric]:
    """Metrics of runs.

    Args:
        every: the runs of the lake and those that it had, the last one last.
        there: those of them that are there.
        without: audit and state of audits that came to no run.
    """
    ended = CounterMetricFamily("evenhand_runs", "Runs, by how they ended.", labels=["dataset", "state"])
    for (audit, state), count in (Counter((run.audit, run.state) for run in every) + without).items():
        ended.add_metric([audit, state], count)
    took = SummaryMetricFamily("evenhand_run_seconds", "Time that the stages of a run took.", labels=["dataset"])
    success = "When the last run with a result ended, in seconds since 1970."
    last = GaugeMetricFamily("evenhand_last_success_timestamp_seconds", success, labels=["dataset"])
    for audit, mine in _by_audit(every).items():
        took.add_metric([audit], count_value=len(mine), sum_value=sum(run.seconds for run in mine))
        last.add_metric([audit], mine[-1].finished)
    checks = GaugeMetricFamily(
        "evenhand_checks", "Checks against limits in the last run of a year.", labels=["dataset", "year", "state"]
    )
    for (audit, year), run in {(run.audit, run.year): run for run in there if run.whole}.items():
        for state, count in run.checks.items():
            checks.add_metric([audit, str(year), state], count)
    return [ended, took, last, checks]


def of_stages(every: Sequence[RunFigures], there: Sequence[RunFigures]) -> list[Metric]:
    """Metrics of stages; the arguments are those of ``of_runs``."""
    took = SummaryMetricFamily("evenhand_stage_seconds", "Time of computed stages.", labels=_STAGE)
    peak = GaugeMetricFamily("evenhand_stage_peak_bytes", "Peak memory when last computed.", labels=_STAGE)
    rows = CounterMetricFamily("evenhand_rows", "Rows, to two digits a run.", labels=["stage", "fate"])
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    peaks: dict[tuple[str, str], float] = {}
    counted: Counter[tuple[str, str]] = Counter()
    for stage in (stage for run in every for stage in run.stages):
        seconds[stage.stage, stage.method].append(stage.seconds)
        peaks[stage.stage, stage.method] = stage.peak_bytes
        counted.update({(stage.stage, fate): count for fate, count in stage.rows.items()})
    for name, each in seconds.items():
        took.add_metric(name, count_value=len(each), sum_value=sum(each))
        peak.add_metric(name, peaks[name])
    for label, count in counted.items():
        rows.add_metric(label, count)
    return [took, peak, rows, *_against_forecast(there)]


def gauge(name: str, text: str, value: float) -> Metric:
    """A gauge without labels."""
    return GaugeMetricFamily(name, text, value=value)


def gauge_by(name: str, text: str, label: str, values: Iterable[tuple[str, float]]) -> Metric:
    """A gauge with one label."""
    found = GaugeMetricFamily(name, text, labels=[label])
    for said, value in values:
        found.add_metric([said], value)
    return found


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
