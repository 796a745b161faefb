"""Starts a back-fill: checks which years are left, and starts Prefect only if there is something to compute."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from flows.concurrency.disk import check_years_on_disk
from flows.concurrency.memory import check_years
from flows.partitions.attempts.reading import latest
from flows.partitions.attempts.record import Attempt, YearsFailedError, summed_up
from flows.partitions.forecast import Forecast, forecast
from flows.partitions.lenders.outlook import Choice, outlooks
from flows.partitions.lenders.records import seconds_left
from flows.partitions.year_audit import audit_year
from flows.supervision.embedded_api import prefect_api
from flows.supervision.presence import at_work, command_id
from schemas.audit.spec import AuditSpec
from schemas.errors import EvenhandError, SpecError
from tasks.lake.store import Lake
from tasks.pipeline.progress import PARTITIONS, YEARS, course_of

log = logging.getLogger("evenhand")


@dataclass(frozen=True)
class Backfill:
    """Settings of a back-fill."""

    spec: AuditSpec
    years: Sequence[int]
    lake: str
    runner: dict[str, Any]
    """Where years run, as ``flows.partitions.runners.task_runners.RunnerSettings`` dumps it."""
    force: bool = False
    jobs: int = 1
    """Stages of a year at a time."""
    choice: Choice = field(default_factory=Choice)
    """Of a spec with ``by``: which partitions."""


def run_backfill(asked: Backfill) -> dict[str, Any]:
    """Audit the years; gives the record of each and the exit code of the most serious one.

    Raises:
        InfrastructureError: the lake cannot be written.
    """
    lake = Lake(asked.lake)
    with at_work(lake, command_id()):  # so that nothing that counts as finished is removed meanwhile
        if asked.spec.by is not None:
            return _partitions(asked, lake)
        if asked.choice != Choice():
            raise SpecError("--by-value and --limit choose among partitions, and the spec has no `by`")
        found = forecast(asked.spec, asked.years, lake, asked.jobs)
        if any(year.is_left(asked.force) for year in found):
            left = [year for year in found if year.is_left(asked.force)]
            check_years(left, _workers(asked), force=asked.force)
            check_years_on_disk(lake, [year.cost.bytes for year in left], force=asked.force)
            seconds = _seconds(asked, left)
            with course_of([YEARS], [seconds], only=YEARS):
                return _orchestrated(asked, lake)
        log.info("all %d years are in the lake already: nothing to compute", len(found))
        return summed_up([stands(asked, year.year, lake) for year in found])


def _partitions(asked: Backfill, lake: Lake) -> dict[str, Any]:
    """The same of a spec with ``by``."""
    found, failed = outlooks(asked.spec, asked.years, lake, asked.choice, force=asked.force)
    left = [listed.rows for year in found for listed, _ in year.to_do]
    if left:
        known = [record for year in found for record in year.known]
        with course_of([PARTITIONS], [seconds_left(known, left, _workers(asked))], only=PARTITIONS):
            return _orchestrated(asked, lake)
    stand = [record for year in found for record in (*year.standing, *year.set_aside)]
    log.info("nothing is left to compute of %d partitions", len(stand))
    return summed_up(sorted([*stand, *failed], key=lambda record: (record.year, record.value)))


def _seconds(asked: Backfill, left: Sequence[Forecast]) -> float | None:
    """What the years take by earlier runs, as many at a time as there are workers; None where a year has none."""
    each = [year.cost.seconds for year in left]
    known = [seconds for seconds in each if seconds is not None]
    return sum(known) / _workers(asked) if len(known) == len(each) else None


def _workers(asked: Backfill) -> int:
    return max(int(asked.runner.get("workers") or 1), 1)


def _orchestrated(asked: Backfill, lake: Lake) -> dict[str, Any]:
    with prefect_api(lake):
        from flows.backfill import backfill  # starts Prefect
        from flows.outcome.state import BreachError

        try:
            said: dict[str, Any] = backfill(
                spec=asked.spec.model_dump(mode="json"),
                years=list(asked.years),
                lake=lake.location,
                runner=asked.runner,
                force=asked.force,
                jobs=asked.jobs,
                by_value=list(asked.choice.values) or None,
                limit=asked.choice.limit,
            )
        except (YearsFailedError, BreachError) as error:
            return error.summary
    return said


def stands(asked: Backfill, year: int, lake: Lake) -> Attempt:
    """The record of a year of which nothing is left to compute; its files are held against their digests."""
    try:
        return audit_year(asked.spec, year, lake, asked.force)
    except EvenhandError:
        last = latest(lake, asked.spec.name, year)
        if last is None:
            raise
        return last
