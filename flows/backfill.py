"""Prefect flow of a back-fill: one task per year, with a limit on concurrent tasks.

Arguments and results are plain values, so that ``flows.backfill.backfill`` can be deployed. The result of a year is
read from its record in the lake, not from Prefect; a task reuses what earlier attempts computed. There is one flow with
many tasks, because a flow costs a second and a task some milliseconds.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children
from typing import Any, cast
from uuid import UUID

from prefect import flow, task
from prefect.artifacts import create_progress_artifact, create_table_artifact, update_progress_artifact
from prefect.cache_policies import NO_CACHE
from prefect.futures import as_completed
from prefect.task_runners import TaskRunner

from flows.audit import run_stage
from flows.concurrency.worker import end_with_parent
from flows.partitions.attempts import Attempt, Recorder, YearsFailedError, YearState, latest, lock_of, summed_up
from flows.partitions.runners import task_runner
from flows.partitions.year_audit import audit_year
from flows.partitions.years import given_years
from flows.runs.given import given_spec
from flows.supervision.announcement import announced
from flows.supervision.file_modes import restrict
from flows.supervision.interruption import shielded_children
from schemas.audit.spec import AuditSpec
from schemas.terms import ExitCode
from tasks.lake.store import Lake
from tasks.pipeline.progress import YEARS, stage_began, stepped
from tasks.pipeline.specs import validated
from tasks.pipeline.stop_request import raise_if_stopped, stop_requested

log = logging.getLogger("evenhand")


@flow(name="backfill", result_serializer="json", validate_parameters=False, log_prints=False)
@announced
def backfill(
    spec: dict[str, Any] | str,
    years: list[int] | str,
    lake: str,
    workers: int = 1,
    runner: dict[str, Any] | None = None,
    force: bool = False,
    jobs: int = 1,
) -> dict[str, Any]:
    """Audit every year; a failed year does not stop the others.

    Args:
        spec: an audit spec with ``{year}`` in its path or a vintage, as ``AuditSpec`` dumps it, or where its file is.
        years: the years, or words such as ``2010-2024``.
        lake: absolute path of the lake, or its URI.
        workers: years that are audited at the same time, each in a process of its own, where no runner is given.
        runner: where tasks run, as ``flows.partitions.runners.RunnerSettings`` dumps it.
        force: whether years with a protected run are audited, too.
        jobs: stages of a year at the same time, each in a process of its own.

    Returns:
        The record of every year in order, and the exit code of the most serious one.

    Raises:
        SpecError: the spec or the years are not usable.
        YearsFailedError: a year could not be audited; the others were. The flow run ends as failed, so that whoever
            watches the server is told. A breach is a finding, and no failure.
    """
    read, asked_for = given_spec(spec), given_years(years)
    plain = read.model_dump(mode="json")  # read once, so that every year is audited by the same one
    asked = [Asked(plain, year, lake, force, jobs, _attempts_before(read.name, year, lake)) for year in asked_for]
    progress = cast("UUID", create_progress_artifact(progress=0.0, description=f"years of {read.name}"))
    ended: dict[int, Attempt] = {}

    def tell(record: Attempt) -> None:
        ended[record.year] = record
        _log_year(record, len(ended), len(asked))
        stepped(YEARS, len(ended), len(asked))
        update_progress_artifact(progress, 100 * len(ended) / len(asked))

    stage_began(1)
    stepped(YEARS, 0, len(asked))
    settings = runner or {"kind": "processes", "workers": workers}
    lost = _round(asked, task_runner(settings, lake), tell)
    for one in lost:  # a process that dies takes those of its pool with it: each of them once more, by itself
        if _round([one], task_runner(settings, lake), tell):
            tell(_never_ended(one))
    records = [ended[year] for year in sorted(ended)]
    create_table_artifact(key="years", table=rows(records), description=f"years of {read.name}")
    if any(record.state is YearState.FAILED for record in records):
        raise YearsFailedError(records)
    return summed_up(records)


@dataclass(frozen=True)
class Asked:
    """One year to audit."""

    spec: dict[str, Any]
    year: int
    lake: str
    force: bool
    jobs: int
    before: int
    """Number of the last attempt before this back-fill."""

    def ended(self) -> Attempt | None:
        """The record of this back-fill's attempt; None if none has ended."""
        last = latest(Lake(self.lake), self.spec["name"], self.year)
        return last if last and last.attempt > self.before and last.state is not YearState.INTERRUPTED else None


def _attempts_before(audit: str, year: int, lake: str) -> int:
    last = latest(Lake(lake), audit, year)
    return last.attempt if last else 0


def _round(asked: Sequence[Asked], runner: TaskRunner[Any], tell: Callable[[Attempt], None]) -> list[Asked]:
    """Audit years in parallel; returns those whose process died or could not start."""
    raise_if_stopped()
    lost = []
    with runner as running, _killing_workers():
        futures = {}
        for one in asked:
            named = audit_of_year.with_options(task_run_name=f"{one.spec['name']} {one.year}")
            given = {"spec": one.spec, "year": one.year, "lake": one.lake, "force": one.force, "jobs": one.jobs}
            with shielded_children():
                futures[running.submit(named, given)] = one
        for future in as_completed(list(futures)):
            record = futures[future].ended()
            if record is not None and record.ended:
                tell(record)
            else:
                lost.append(futures[future])
    return lost


@contextmanager
def _killing_workers() -> Iterator[None]:
    """Kill the pool's processes if the command was asked to stop; the pool would wait until each year is audited."""
    try:
        yield
    finally:
        if stop_requested():
            for worker in active_children():
                worker.kill()


def _never_ended(one: Asked) -> Attempt:
    """The record of a year whose process died twice or could not start."""
    lake, audit = Lake(one.lake), one.spec["name"]
    last = latest(lake, audit, one.year)
    told = last.message if last and last.attempt > one.before else "no process could begin with it"
    with lake.lock(lock_of(audit, one.year)):
        message = f"{told}; is there memory enough? Try fewer --workers, or narrow source.keep"
        return Recorder(lake, audit, one.year).end(YearState.FAILED, ExitCode.INFRASTRUCTURE, message)


@task(
    name="year",
    cache_policy=NO_CACHE,
    persist_result=False,
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=run_stage.retry_condition_fn,
)
def audit_of_year(spec: Mapping[str, Any], year: int, lake: str, force: bool, jobs: int = 1) -> dict[str, Any]:
    """Audit one year; a year that cannot be audited fails here, and is recorded in the lake."""
    end_with_parent()
    restrict()  # a worker of Dask has the umask of its shell
    return audit_year(validated(AuditSpec, spec), year, Lake(lake), force, jobs).model_dump(mode="json")


def rows(records: Sequence[Attempt]) -> list[dict[str, Any]]:
    """The records as a table for people: aggregates only."""
    return [
        {
            "year": r.year,
            "state": r.state.value,
            "run": r.run or "",
            "read": r.source_words,
            "lacks": len(r.lacking),
            "computed": r.computed,
            "seconds": r.seconds,
            "message": r.message,
        }
        for r in records
    ]


def _log_year(record: Attempt, done: int, of: int) -> None:
    seconds = "" if record.seconds is None else f"{record.seconds:8.1f} s"
    log.info(
        "%d  %-12s %s   %d of %d   %s", record.year, record.state, seconds, done, of, record.message.split("\n")[0]
    )
