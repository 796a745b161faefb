"""Prefect flow of a back-fill, and its page on the server: the records of its years as a table."""

import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack, contextmanager
from contextvars import Context
from dataclasses import asdict, replace
from functools import partial
from multiprocessing import active_children
from queue import SimpleQueue
from typing import Any
from uuid import UUID

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.context import serialize_context
from prefect.flow_engine import run_flow_sync
from prefect.runtime import flow_run
from prefect.states import Completed
from prefect.task_runners import TaskRunner

from flows.concurrency.tracing import Year, trace_years
from flows.concurrency.workers import StageCall, end_with_parent
from flows.execution import RETRIES, is_transient
from flows.outcome.alerts import ALERTED
from flows.outcome.artifacts import Progress, Sheet, announce_changes, show_verdict, unharmed
from flows.outcome.conclusion import ending_of_checks, ending_of_years
from flows.outcome.ending import Ending, Name, Subject, checks_of, run_name, without_cells, words_known
from flows.outcome.run_log import handed_over, in_plain_words, tell_run
from flows.outcome.run_state import announced, concluded
from flows.partitions.attempts import Attempt, YearsFailedError, YearState, latest, summed_up
from flows.partitions.partition_list import Listed, kept_value
from flows.partitions.runners import at_a_time, least_rows, shared_cores, task_runner, task_runners_require_restarts
from flows.partitions.year_audit import (
    Divided,
    StageTask,
    audit_partition,
    audit_year,
    hand_over,
    never_ended,
    next_to_start,
    take_divided,
)
from flows.partitions.year_plan import Asked, Choice, attempts_before, fitted, outlooks
from flows.partitions.years import given_years
from flows.runs.given import given_spec
from flows.runs.index import run_of
from flows.supervision.file_modes import restrict
from flows.supervision.prefect_server import crash_sub_flows
from flows.supervision.shutdown import end_if_leaving, ends_without_memory, leaves_on_word, leaving, shielded_children
from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError, TooLittleEvidenceError
from tasks.lake.store import Lake
from tasks.pipeline.progress import PARTITIONS, YEARS, raise_if_stopped, stage_began, stepped, stop_requested, terminal
from tasks.pipeline.registry import validated

# --------------------------------------------------------------------------------------------------------------------
# The page of a back-fill on the server: the records of its years as a table, written anew after each of them.


_UPDATES = 20
"""Times that the progress of partitions is shown."""
Key = tuple[int, str]
"""A year, and its partition."""


class Page:
    """Shows how far a back-fill is."""

    def __init__(self, of: str, audit: str, lake: Lake, quotable_texts: frozenset[str]) -> None:
        """Show the progress of years or partitions of an audit; a message may quote ``quotable_texts``."""
        self._of, self._audit, self._lake, self._known = of, audit, lake, quotable_texts
        self._progress = Progress(f"{of} of {audit}")
        self._sheet = Sheet(of, f"{of} of {audit}")

    def show(self, ended: Mapping[Key, Attempt], audited_keys: Sequence[Key], total: int) -> None:
        """Show the records that have ended, and of years those at work and to come.

        Args:
            ended: records by year and partition.
            audited_keys: what this back-fill audits.
            total: years or partitions in all.
        """
        is_by_years = self._of == YEARS
        if not is_by_years and len(ended) % max(1, total // _UPDATES) and len(ended) < total:
            return
        self._progress.reached(len(ended) / max(total, 1))
        at_work = self._at_work([key for key in audited_keys if key not in ended]) if is_by_years else iter(())
        table = [*rows([ended[key] for key in sorted(ended)], self._quotable), *at_work]
        self._sheet.show(sorted(table, key=lambda row: (row["year"], row.get("partition", ""))))

    def _at_work(self, remaining: Sequence[Key]) -> Iterator[dict[str, Any]]:
        """Years that have not ended, with the stage at work."""
        for year, value in remaining:
            last = latest(self._lake, self._audit, year, value)
            if last is None or last.ended:
                yield {**dict.fromkeys(_COLUMNS, ""), "year": year, "state": "to come"}
            else:
                yield from rows([last], self._quotable)

    def _quotable(self, message: str) -> str:
        return without_cells(message, self._known)


def rows(records: Sequence[Attempt], message_of: Callable[[str], str] = str) -> list[dict[str, Any]]:
    """The records as a table for people: aggregates only.

    Args:
        records: of years or partitions.
        message_of: what is shown of a message.
    """
    return [
        {
            "year": r.year,
            **({"partition": r.value} if r.value else {}),
            "state": r.state.value,
            "stage": r.stage,
            "run": r.run or "",
            "read": r.source_words,
            "lacks": len(r.lacking),
            "computed": r.computed,
            "seconds": r.seconds,
            "message": message_of(r.message),
        }
        for r in records
    ]


_COLUMNS = ("year", "state", "stage", "run", "read", "lacks", "computed", "seconds", "message")


# --------------------------------------------------------------------------------------------------------------------
# Prefect flow of a back-fill: one task run a year, and in it a sub-flow run with a task run a stage.
#
# Arguments and results are plain values, so that ``flows.backfill.backfill`` can be deployed. The result of a year is
# read from its record in the lake, not from Prefect; a task reuses what earlier attempts computed. The task is what a
# task runner gives to processes or to Dask, and tries again.


log = logging.getLogger("evenhand")

_AHEAD = 4
"""Times as many tasks as workers are submitted."""


def _worst(_: Mapping[str, Any], result: dict[str, Any], subject: Subject, texts: Collection[str]) -> Ending:
    """The ending of a back-fill without a failed year."""
    return ending_of_years(result, subject.words, texts)


@flow(
    name="backfill",
    flow_run_name=run_name,
    result_serializer="json",
    validate_parameters=False,
    log_prints=False,
    **ALERTED,
)
@announced
@concluded(_worst)
def backfill(
    spec: dict[str, Any] | str,
    years: list[int] | str,
    lake: str,
    workers: int = 1,
    runner: dict[str, Any] | None = None,
    force: bool = False,
    jobs: int = 1,
    by_value: list[str] | None = None,
    limit: int | None = None,
) -> dict[str, Any]:
    """Audit every year, or every partition where the spec has `by`; a failed one does not stop the others.

    Args:
        spec: an audit spec with ``{year}`` in its path or a vintage, as ``AuditSpec`` dumps it, or where its file is.
        years: the years, or words such as ``2010-2024``.
        lake: absolute path of the lake, or its URI.
        workers: years that are audited at the same time, each in a process of its own, where no runner is given.
        runner: where tasks run, as ``flows.partitions.runners.RunnerSettings`` dumps it.
        force: whether years with a protected run are audited, too.
        jobs: stages of a year at the same time, each in a process of its own; partitions run one after another.
        by_value: of a spec with ``by``: these partitions alone.
        limit: of a spec with ``by``: so many partitions of a year, the largest first, beside ``all``.

    Returns:
        The record of every year in order, and the exit code of the most serious one.

    Raises:
        SpecError: the spec or the years are not usable.
        YearsFailedError: a year could not be audited; the others were. The flow run ends as failed, so that whoever
            watches the server is told. A breach is a finding, and no failure.
    """
    audit_spec, asked_for = given_spec(spec), given_years(years)
    choice = Choice(tuple(by_value or ()), limit)
    settings = runner or {"kind": "processes", "workers": workers}
    tasks, records_before = _asked(audit_spec, asked_for, Asked({}, 0, lake, force, jobs), choice)
    of = PARTITIONS if audit_spec.by else YEARS
    page = Page(of, audit_spec.name, Lake(lake), words_known({"spec": audit_spec.model_dump(mode="json")}))
    ended = {(record.year, record.value): record for record in records_before}
    total, keys = len(tasks) + len(records_before), [(year_task.year, year_task.value) for year_task in tasks]

    def tell(record: Attempt) -> None:
        ended[record.year, record.value] = record
        _log_record(record, len(ended), total)
        stepped(of, len(ended), total)
        page.show(ended, keys, total)

    stage_began(1)
    stepped(of, len(ended), total)
    page.show(ended, keys, total)
    at_once = int(settings.get("workers") or 1)
    if any(year_task.listed and year_task.listed["rows"] < least_rows() for year_task in tasks):
        tell_run(f"stages of partitions below {least_rows():,} rows are in the log")
    try:
        with shared_cores(at_once * jobs, single_thread=audit_spec.by is not None):
            _all(tasks, settings, lake, tell)
    finally:
        _crash_sub_flows()
        records = [ended[key] for key in sorted(ended)]
        spans = (
            Year(f"{r.year} {r.value}".rstrip(), r.began, r.seconds or 0.0, r.state.value, r.run or "") for r in records
        )
        trace_years(Lake(lake), audit_spec.name, spans)
    if audit_spec.by is None:
        from flows.partitions.trends import changes_of  # pages and charts, for the end alone

        announce_changes(audit_spec.name, partial(changes_of, audit_spec.name, Lake(lake)))
    if any(record.state is YearState.FAILED for record in records):
        raise YearsFailedError(records)
    return summed_up(records)


def _asked(
    spec: AuditSpec, years: Sequence[int], common: Asked, choice: Choice
) -> tuple[list[Asked], Sequence[Attempt]]:
    """What is to be audited, the largest first, and the records of what is not begun with."""
    lake, plain = Lake(common.lake), spec.model_dump(mode="json")  # read once: all are audited by the same one
    common_of_spec = replace(common, spec=plain)
    if spec.by is None:
        if choice != Choice():
            raise SpecError("--by-value and --limit choose among partitions, and the spec has no `by`")
        return [
            replace(common_of_spec, year=y, before=attempts_before(spec.name, y, common_of_spec.lake)) for y in years
        ], ()
    outlooks_of_years, records = outlooks(spec, years, lake, choice, force=common.force)
    tasks = []
    for year in outlooks_of_years:
        records += [*year.settled, *year.set_aside]
        for record in year.set_aside:
            log.warning("%s %s is set aside: it failed twice alike; --force tries again", record.year, record.value)
        for listed, conditions in year.to_do:
            before = attempts_before(spec.name, year.year, common_of_spec.lake, listed.value)
            year_task = replace(
                common_of_spec, year=year.year, before=before, listed=asdict(listed), conditions=conditions
            )
            tasks.append(year_task)
    return sorted(tasks, key=lambda year_task: -(year_task.listed or {})["rows"]), records


def _all(tasks: Sequence[Asked], settings: dict[str, Any], lake: str, tell: Callable[[Attempt], None]) -> None:
    """Audit all partitions; after the death of its process, a partition is audited once more, alone."""
    remaining = deque(tasks)
    if not remaining:
        return
    task_runner(settings, lake)  # says what is amiss with workers
    workers = at_a_time(settings)
    if remaining[0].listed:
        task_runners_require_restarts(settings)
        remaining = deque(fitted(tasks, settings))
    divided = take_divided(remaining, workers) if workers > 1 else []
    with ExitStack() as locks:
        for parts in divided:
            locks.callback(parts.release)
        while remaining or divided:
            count = len(remaining)
            lost = _round(remaining, task_runner(settings, lake), tell, workers, divided)
            if not lost and len(remaining) == count:  # no process could begin
                lost = [remaining.popleft()]
            if lost:
                _crash_sub_flows()
            for lost_task in lost:
                alone = replace(lost_task, goes_on=0)  # a further attempt
                if _round(deque([alone]), task_runner(settings, lake), tell, 1):
                    tell(alone.ended() or never_ended(alone))


def _crash_sub_flows() -> None:
    """Mark the sub-flow runs of processes that died; called where none is at work."""
    with unharmed("which years died"), get_client(sync_client=True) as client:
        crash_sub_flows(client, UUID(str(flow_run.id)), "its process died, or was stopped with the back-fill")


def _round(
    remaining: deque[Asked],
    runner: TaskRunner[Any],
    tell: Callable[[Attempt], None],
    workers: int,
    divided: list[Divided] | None = None,
) -> list[Asked]:
    """Audit in parallel; returns the partitions with a dead process.

    What was not begun with, because the pool broke, is put back. A few tasks a worker are submitted at most, and one
    while there are divided partitions: the next of their stages then waits for the first worker that is free.
    """
    raise_if_stopped()
    end_if_leaving()
    divided = [] if divided is None else divided
    over: SimpleQueue[tuple[Asked | StageTask, float]] = SimpleQueue()
    lost: list[Asked] = []
    untouched: list[Asked | StageTask] = []
    under_way = 0
    with runner as running, _killing_workers():
        while remaining or under_way or divided:
            while under_way < workers * (1 if divided else _AHEAD) and not (lost or untouched or leaving()):
                if (next_task := next_to_start(remaining, divided)) is None:
                    break
                try:
                    with shielded_children(), next_task.where():
                        future = running.submit(*one_task(next_task))
                except BrokenExecutor:
                    untouched.append(next_task)
                    break
                under_way += 1
                began = time.perf_counter()
                if isinstance(next_task, StageTask):
                    next_task.began()
                future.add_done_callback(lambda _, ended=(next_task, began): over.put(ended))
            if not under_way:
                end_if_leaving()
                break
            (ended_task, began), under_way = over.get(), under_way - 1
            if isinstance(ended_task, StageTask):
                ended_task.ended(time.perf_counter() - began)
                hand_over(remaining, divided)
                continue
            record = ended_task.ended()
            if record is not None and record.ended and not record.replaced:
                tell(record)
            else:
                (lost if ended_task.begun() else untouched).append(ended_task)
    for untouched_task in reversed(untouched):
        if isinstance(untouched_task, StageTask):
            untouched_task.of.stopped = True
        else:
            remaining.appendleft(untouched_task)
    hand_over(remaining, divided)
    return lost


def one_task(year_task: Asked | StageTask) -> tuple[Any, dict[str, Any]]:
    """The task of a year, of a partition or of a stage of one, and its parameters."""
    if isinstance(year_task, StageTask):
        named_stage = stage_of_partition.with_options(task_run_name=year_task.name)
        return named_stage, {"spec": year_task.of.year_task.spec, "call": asdict(year_task.call())}
    named = f"{year_task.spec['name']} {year_task.year} {year_task.value}".rstrip()
    common_parameters = {
        "spec": year_task.spec,
        "year": year_task.year,
        "lake": year_task.lake,
        "force": year_task.force,
    }
    if year_task.listed is None:
        return audit_of_year.with_options(task_run_name=named), {**common_parameters, "jobs": year_task.jobs}
    parameters = {**common_parameters, "listed": year_task.listed, "conditions": year_task.conditions}
    parameters["goes_on"] = year_task.goes_on
    return audit_of_partition.with_options(task_run_name=named), parameters


@contextmanager
def _killing_workers() -> Iterator[None]:
    """Kill the pool's processes after a stop request; otherwise the pool would wait until each year is audited."""
    try:
        yield
    finally:
        if stop_requested():
            for worker in active_children():
                worker.kill()


_TRIED: dict[str, Any] = {
    "cache_policy": NO_CACHE,
    "persist_result": False,
    "retry_condition_fn": is_transient,
    **RETRIES,
}
"""Of a task whose result is read from its record in the lake: tried again after passing faults alone."""


@task(name="year", **_TRIED)
def audit_of_year(spec: dict[str, Any], year: int, lake: str, force: bool, jobs: int = 1) -> dict[str, Any]:
    """Audit one year in a sub-flow run; a year that cannot be audited fails here, and is recorded in the lake."""
    return _in_sub_flow({"spec": spec, "year": year, "lake": lake, "force": force, "jobs": jobs})


@task(name="partition", **_TRIED)
def audit_of_partition(
    spec: dict[str, Any], year: int, lake: str, force: bool, listed: dict[str, Any], conditions: str, goes_on: int = 0
) -> dict[str, Any]:
    """Audit one partition of a year; one that cannot be audited fails here, and is recorded in the lake.

    It is one task run, or has a sub-flow run with a task run a stage, by the rule of ``least_rows``.
    """
    if listed["rows"] >= least_rows():
        # the server keeps parameters, and everybody who opens it reads them: no count of rows, and no digest of them
        parameters = {"spec": spec, "year": year, "lake": lake, "force": force, "conditions": conditions}
        return _in_sub_flow({**parameters, "value": listed["value"], "goes_on": goes_on})
    with _working(spec):
        partition, audit_spec = Listed(**listed), validated(AuditSpec, spec)
        record = audit_partition(audit_spec, year, partition, Lake(lake), conditions, force, goes_on=goes_on)
        return record.model_dump(mode="json")


@task(name="stage", **_TRIED)
def stage_of_partition(spec: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    """Run one stage of a divided partition; ``call`` is its ``StageCall``. What it wrote is read from the lake."""
    with _working(spec):
        return StageCall(**call).run().model_dump(mode="json")


def _in_sub_flow(parameters: dict[str, Any]) -> dict[str, Any]:
    """Audit a year or a partition in a sub-flow run of the back-fill; returns its record.

    The task run at work is left out of Prefect's context, which would take log and artifacts of the sub-flow for its.
    """
    context = {name: value for name, value in serialize_context().items() if name != "task_run_context"}
    name = f"{parameters['spec']['name']} {parameters['year']} {parameters.get('value', '')}".rstrip()
    sub_flow = audit_in_sub_flow.with_options(flow_run_name=name)
    run: Callable[[], Any] = partial(run_flow_sync, sub_flow, parameters=parameters, context=context)
    record: dict[str, Any] = Context().run(run)
    return record


@flow(name="year", validate_parameters=False, log_prints=False, persist_result=False)
def audit_in_sub_flow(
    spec: dict[str, Any],
    year: int,
    lake: str,
    force: bool,
    jobs: int = 1,
    value: str = "",
    conditions: str = "",
    goes_on: int = 0,
) -> Any:
    """Audit a year, or a partition of it, with a task run a stage; its state has the name of its verdict."""
    with _working(spec):
        audit_spec, opened = validated(AuditSpec, spec), Lake(lake)
        try:
            if not value:
                record = audit_year(audit_spec, year, opened, force, jobs, as_tasks=True)
            else:
                partition = kept_value(opened, audit_spec.name, year, value)
                record = audit_partition(
                    audit_spec, year, partition, opened, conditions, force, as_tasks=True, goes_on=goes_on
                )
        except TooLittleEvidenceError as error:  # which is no failure
            return Completed(name=Name.INCONCLUSIVE.value, message=str(error), data={})
        run = run_of(opened, record.run or "")
        checks = checks_of(opened, run)
        ending = ending_of_checks(opened, run, checks)
        show_verdict(ending, run, checks)
        return Completed(name=ending.name.value, message=ending.message, data=record.model_dump(mode="json"))


@contextmanager
def _working(spec: dict[str, Any]) -> Iterator[None]:
    """Set up the process that audits a year: its end with the back-fill, its log, its errors."""
    end_with_parent()
    restrict()  # a worker of Dask has the umask of its shell
    with (
        leaves_on_word(),
        handed_over(words_known({"spec": spec})),
        in_plain_words(keep_error=False),
        ends_without_memory(),
    ):
        yield


def _log_record(record: Attempt, done: int, of: int) -> None:
    """A line a year; of partitions one that failed, and some of the others where no terminal shows them."""
    if record.value and record.state is not YearState.FAILED and (terminal() or done % max(1, of // _UPDATES)):
        return
    seconds = "" if record.seconds is None else f"{record.seconds:8.1f} s"
    named = f"{record.year} {record.value}".rstrip()
    log.info("%s  %-12s %s   %d of %d   %s", named, record.state, seconds, done, of, record.message.split("\n")[0])
