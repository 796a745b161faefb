"""Gives the metrics of a lake each time that Prometheus asks; what a run told once is kept.

A record that cannot be read is counted, and takes no other away: ``evenhand status`` names it. A part that fails as a
whole, such as a lake out of reach, is left out and logged.
"""

import logging
import os
import shutil
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from flows.operations.doctor.records import KINDS, RUN, Records, Unreadable, without
from flows.operations.metrics.families import gauge, gauge_by, of_runs, of_stages
from flows.operations.metrics.removed import removed
from flows.operations.metrics.run_figures import RunFigures, run_figures
from flows.outcome.alerts.record import alerts
from flows.partitions.attempts.reading import as_it_stands, attempts, interrupted
from flows.partitions.attempts.record import Attempt, YearState
from flows.runs.naming import run_ids
from flows.supervision.failures import Failure, paths, read_failure
from flows.supervision.presence import alive
from schemas.errors import EvenhandError
from tasks.lake.store import Lake

log = logging.getLogger("evenhand")
T = TypeVar("T")

_SIZE_SECONDS = 60.0
"""For so long the size of the lake is not counted again."""
_ENDED_WITHOUT_RUN = (YearState.FAILED, YearState.INTERRUPTED)
_UNUSABLE = (EvenhandError, OSError, ValueError, KeyError, TypeError)
"""What reading a record or a file of a run may raise."""


@dataclass(eq=False)
class LakeCollector(Collector):
    """The metrics of one lake."""

    lake: Lake
    known: dict[str, RunFigures] = field(default_factory=dict)
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
        hidden = [*self._told(self._records.unreadable)]
        seen = without(self.lake, hidden)
        yield from self._told(lambda: self._of_runs(seen, hidden))
        yield from self._told(lambda: [_of_records(hidden)])
        yield from self._told(lambda: [_at_work(self.lake)])
        yield from self._told(lambda: [_of_alerts(seen)])
        yield from self._told(self._of_disk)

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand: the lake is read when Prometheus asks."""
        return ()

    def _told(self, part: Callable[[], Iterable[T]]) -> list[T]:
        """What a part gives; nothing where it fails as a whole."""
        try:
            return [*part()]
        except _UNUSABLE as error:
            log.warning("metrics: a part of %s is left out (%s: %s)", self.lake.location, type(error).__name__, error)
            return []

    def _of_runs(self, lake: Lake, hidden: list[Unreadable]) -> Iterator[Metric]:
        ids = run_ids(lake)
        there = _in_order(self._read(lake, run) for run in ids)
        self.gone |= removed(lake, self.gone)
        every = _in_order({**self.gone, **self.known}.values())
        yield from of_runs(every, there, self._without_run(lake))
        yield from of_stages(every, there)
        amiss = len(ids) - len(there) + sum(each.kind == RUN for each in hidden)
        yield gauge("evenhand_runs_unreadable", "Runs that cannot be read.", amiss)

    def _read(self, lake: Lake, run: str) -> RunFigures | None:
        if run not in self.known:
            with suppress(*_UNUSABLE):
                self.known[run] = run_figures(lake, run)
        return self.known.get(run)

    def _without_run(self, lake: Lake) -> Counter[tuple[str, str]]:
        """Audit and state of audits, and of attempts of back-fills, that came to no run."""
        years = ((each.audit, each.state.value) for each in _by_now(lake) if each.state in _ENDED_WITHOUT_RUN)
        return Counter(years) + Counter((each.audit, each.state.value) for each in self._failures(lake))

    def _failures(self, lake: Lake) -> Iterable[Failure]:
        for path in paths(lake):
            if path not in self.failed:
                with suppress(*_UNUSABLE):
                    self.failed[path] = read_failure(lake, path)
        return self.failed.values()

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
                found = (Path(folder) / name).lstat()
                total += found.st_size if stat.S_ISREG(found.st_mode) else 0
    return total


def _of_records(hidden: list[Unreadable]) -> Metric:
    counted = Counter(each.kind for each in hidden)
    text = "Records of the lake that cannot be read: evenhand status names them."
    return gauge_by("evenhand_records_unreadable", text, "kind", [(kind, counted[kind]) for kind in KINDS])


def _at_work(lake: Lake) -> Metric:
    return gauge("evenhand_runs_at_work", "Runs whose process is alive.", len(alive(lake)))


def _of_alerts(lake: Lake) -> Metric:
    """A gauge by type, as an alert that was sent at last is no longer one that was not delivered."""
    counted = Counter(each.outcome.value for each in alerts(lake))
    return gauge_by("evenhand_alerts_total", "Alerts, by what became of them by now.", "outcome", counted.items())


def _by_now(lake: Lake) -> Iterator[Attempt]:
    """The attempts of years as they stand: one that says it runs is over where a later one began, or nobody works."""
    for _, mine in groupby(attempts(lake), key=lambda each: (each.audit, each.year)):
        *earlier, last = mine
        yield from (each if each.ended else interrupted(each) for each in earlier)
        yield as_it_stands(lake, last)


def _in_order(runs: Iterable[RunFigures | None]) -> list[RunFigures]:
    return sorted((each for each in runs if each is not None), key=lambda each: each.finished)
