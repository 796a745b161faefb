"""Memory of the stages of a year, for ``evenhand status --json``: peaks of its last run, and how an attempt failed.

A process that was killed leaves no peak of its own. What is known of it is its stage, by its record, and what a worker
saw it hold, which the alert of its end tells.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flows.outcome.alerts.record import alerts
from flows.outcome.ending import Name
from flows.partitions.attempts.reading import latest
from flows.partitions.attempts.record import YearState
from flows.runs.manifest import read_manifest
from flows.runs.naming import audit_and_year, run_ids
from flows.supervision.presence import dead
from tasks.lake import log
from tasks.lake.stage_runs import stage_runs
from tasks.lake.store import Lake
from tasks.pipeline.lineage.memory import free_mb

if TYPE_CHECKING:
    from flows.operations.status import Standing

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
    """Memory of this machine, and runs that died here and that nobody has seen to yet."""

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
    told = {each.ending.subject: each.ending.message for each in alerts(lake) if each.ending.name in _ENDED}
    last = _last_runs(lake)
    return [_of(lake, year, last, told.get(f"{year.audit} {year.year}", "")) for year in years]


def _of(lake: Lake, year: "Standing", last: Mapping[tuple[str, str], str], seen: str) -> YearMemory:
    known = last.get((year.audit, str(year.year))) or last.get((year.audit, ""))
    run = year.run if year.run and lake.storage.exists(f"runs/{year.run}/manifest.json") else known
    attempt = latest(lake, year.audit, year.year, year.partition)
    failed = None
    if attempt is not None and attempt.state in _FAILED:
        failed = Failed(attempt.state.value, attempt.stage, attempt.message, attempt.began)
    return YearMemory(run or "", _peaks(lake, run) if run else {}, failed, seen)


def _last_runs(lake: Lake) -> dict[tuple[str, str], str]:
    """The last run of each audit and year by the lake's log, and of each audit under an empty year."""
    found: dict[tuple[str, str], str] = {}
    numbers = log.published(lake)
    for run in sorted(run_ids(lake), key=lambda name: (numbers.get(name, 0), name)):
        audit, year = audit_and_year(run)
        found[audit, year] = found[audit, ""] = run
    return found


def _peaks(lake: Lake, run: str) -> dict[str, float]:
    rows = stage_runs(read_manifest(lake, run))
    return {row["stage"]: float(row["peak_memory_mb"]) for row in rows if row["peak_memory_mb"] is not None}
