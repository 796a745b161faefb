"""Prefect flow of an audit: one task per stage; the lake decides which stages are already computed.

Arguments and results are plain values, so that ``flows.audit.audit`` can be deployed. Tasks exchange artifacts only.
The cache key of a task is the key of its stage, and is valid only while the lake holds the partition: Prefect's record
of a result does not prove that the files exist.
"""

import hashlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, replace
from functools import partial
from logging import INFO, WARNING
from typing import Any

from prefect import flow, task
from prefect.context import TaskRunContext
from prefect.runtime import flow_run

from flows.concurrency import schedule
from flows.concurrency.schedule import Running, Schedule, expected_seconds, share_done
from flows.concurrency.tracing import RunTrace, traced_run
from flows.concurrency.workers import Given, StageCall, Workers, default_jobs, workers, worthwhile
from flows.outcome.alerts import ALERTED
from flows.outcome.artifacts import Progress, show_verdict
from flows.outcome.conclusion import ending_of_checks, ending_of_error
from flows.outcome.ending import Ending, Subject, checks_of, run_name, stage_words, subject_of, words_of
from flows.outcome.run_log import InOwnWords, in_own_words, in_plain_words, may_pass, tell_run
from flows.outcome.run_state import announced, concluded
from flows.partitions.part_spec import spec_to_audit
from flows.partitions.year_audit import check_ended
from flows.runs.given import given_spec
from flows.runs.index import run_of
from flows.runs.record import planned_in, publish, published_read
from flows.supervision.failed_audits import Ended, note_failure
from flows.supervision.presence import in_stage
from flows.supervision.shutdown import end_if_leaving, lift_limit, limit_life
from schemas.artifact import Partition
from schemas.errors import TooLittleEvidenceError
from schemas.tables.applications import read_words
from schemas.tables.verdicts import state_of_row
from schemas.terms import State
from tasks.lake.log import trusted_signer
from tasks.lake.store import Lake
from tasks.pipeline.progress import raise_if_stopped, stage_began, stage_ended, stop_requested
from tasks.plan import Inputs, Plan, Step, held, inputs


def _verdict(parameters: Mapping[str, Any], result: dict[str, Any], _: Subject, __: Collection[str]) -> Ending | None:
    """The ending of an audit: its checks that are not within are logged, and the verdict is shown on the server."""
    if parameters.get("until"):
        return None
    lake = Lake(parameters["lake"])
    run = run_of(lake, result["run"])
    checks = checks_of(lake, run)
    ending = ending_of_checks(lake, run, checks)
    for row in checks.open:
        tell_run(f"{state_of_row(row)}: {words_of(row)}", WARNING if row["state"] == State.BREACH else INFO)
    show_verdict(ending, run, checks)
    return ending


@flow(
    name="audit",
    flow_run_name=run_name,
    result_serializer="json",
    validate_parameters=False,
    log_prints=False,
    **ALERTED,
)
@announced
@concluded(_verdict)
def audit(
    spec: dict[str, Any] | str, lake: str, jobs: int | None = None, until: str = "", force: bool = False
) -> dict[str, Any]:
    """Run every stage of one audit, write its manifest and export its report.

    Args:
        spec: an audit spec, as ``AuditSpec`` dumps it, or the path of one.
        lake: absolute path of the lake, or its URI.
        jobs: stages at the same time, each in a process of its own; EVENHAND_JOBS if left out, else the number of
            cores, at most four.
        until: a stage: then only it and those that it needs run, and neither manifest nor report is written.
        force: whether it goes on where the forecast of memory says that it will not fit.

    Returns:
        The run id, and the partition of every stage in order.
    """
    with _followed(spec, Lake(lake)) as trace:
        if not until:
            trusted_signer(Lake(lake))  # before the stages: their result could not be published
        planned = planned_in(Lake(lake), spec_to_audit(given_spec(spec), Lake(lake)))
        trace.run = planned.run
        if until:
            planned = replace(planned, steps=tuple(schedule.until(planned.steps, until)))
        done = _executed(planned, lake, jobs or default_jobs(), trace, force=force)
        raise_if_stopped()
        if not until:
            publish(Lake(lake), planned, done)
            tell_run(f"read {read_words(published_read(Lake(lake), done))}")
    return {"run": planned.run, "partitions": [partition.model_dump(mode="json") for partition in done]}


@contextmanager
def _followed(spec: dict[str, Any] | str, lake: Lake) -> Iterator[RunTrace]:
    """Trace the run; if it fails before a run exists, record the failure in the lake."""
    about = subject_of({"spec": spec})
    try:
        with traced_run(lake, about.name, about.year) as trace:
            yield trace
    except TooLittleEvidenceError:
        raise  # which is no failure
    except Exception as error:
        if not stop_requested():
            note_failure(lake, about.name, about.year, Ended.FAILED, ending_of_error(error, about.words).name)
        raise


def _executed(planned: Plan, lake: str, jobs: int, trace: RunTrace, *, force: bool) -> list[Partition]:
    computed = _computed_here()
    alone = jobs == 1
    seconds = expected_seconds(Lake(lake), planned, 0 if alone else len(held(Lake(lake), planned.steps)))
    telling = _Course(planned, seconds, lambda name, partition: trace.done.append((name, _told(partition, computed))))
    return [_told(partition, computed) for partition in _all_steps(planned, lake, jobs, telling, force=force)]


def _all_steps(planned: Plan, lake: str, jobs: int, telling: "_Course", *, force: bool) -> list[Partition]:
    seconds = telling.seconds
    if jobs == 1 or worthwhile(jobs, seconds) == 1:
        return _one_by_one(planned, lake, telling, force=force)
    return _side_by_side(planned, lake, telling, jobs, force=force)


def _one_by_one(planned: Plan, lake: str, telling: "_Course", *, force: bool) -> list[Partition]:
    done: list[Partition] = []
    for number, step in enumerate(planned.steps, 1):
        raise_if_stopped()
        end_if_leaving()
        stage_began(number)
        in_stage(Lake(lake), step.name)
        clock = time.perf_counter()
        done.append(_execute(step, inputs(step, done), lake))
        _tell_ended(step.name, stage_words(done[-1], time.perf_counter() - clock, Lake(lake)))
        check_ended(Lake(lake), planned, done[-1], force=force)
        telling.ended(number - 1, done[-1])
    return done


def _tell_ended(stage: str, message: str, number: int | None = None) -> None:
    stage_ended(message, number)
    tell_run(f"stage {stage}: {message}")


def _side_by_side(planned: Plan, lake: str, telling: "_Course", jobs: int, *, force: bool) -> list[Partition]:
    """Each task waits in a thread for a worker process, which holds neither Prefect nor the flow."""
    clocks: dict[int, float] = {}

    def start(at: int, artifacts: Inputs) -> Running:
        stage_began(at + 1)
        clocks[at] = time.perf_counter()
        in_stage(Lake(lake), ", ".join(planned.steps[position].name for position in sorted(clocks)))
        return _submitted(planned.steps[at], at, artifacts, lake)

    def told(at: int, partition: Partition) -> None:
        message = stage_words(partition, time.perf_counter() - clocks.pop(at), Lake(lake))
        _tell_ended(planned.steps[at].name, message, at + 1)
        check_ended(Lake(lake), planned, partition, jobs=jobs, force=force)
        telling.ended(at, partition)

    with workers(jobs) as processes:
        before = _pool.set(processes)
        try:
            return Schedule(planned.steps, telling.seconds, jobs, restored=Partition.model_validate).run(start, told)
        finally:
            _pool.reset(before)


_pool: ContextVar[Workers | None] = ContextVar("workers", default=None)
"""Who computes the stages of this flow run; None: its own process. Prefect hands the context to its threads."""


class _Course(Progress):
    """How far the audit is: the share of the expected seconds that is done, of stages where none are known."""

    def __init__(self, planned: Plan, seconds: list[float | None], tell: Callable[[str, Partition], None]) -> None:
        """Start with no finished step; the callback gets the name and partition of each step that ends."""
        super().__init__(f"stages of {planned.run}")
        self.seconds, self._tell = seconds, tell
        self._names = [step.name for step in planned.steps]
        self._done: set[int] = set()

    def ended(self, at: int, partition: Partition) -> None:
        """Count the step at a place as done."""
        self._done.add(at)
        self._tell(self._names[at], partition)
        self.reached(share_done(self.seconds, self._done))


def _stage_key(_: TaskRunContext, parameters: dict[str, Any]) -> str | None:
    """The stage's key while the lake holds its partition, else None: a lost partition is computed again."""
    call = StageCall(**{name: value for name, value in parameters.items() if name != "at"})
    stage, artifacts, settings = call.restored()
    key, lake = stage.key(artifacts, settings, call.modules), Lake(call.lake)
    where = hashlib.sha256(lake.location.encode()).hexdigest()[:12]  # one server may serve several lakes
    return f"{stage.name}-{key}-{where}" if lake.find(stage.name, key) else None


def _is_transient(_: Any, __: Any, state: Any) -> bool:
    """Whether a retry could help: not after a stop request, nor after a permanent error."""
    return not stop_requested() and may_pass(state.result(raise_on_failure=False))


@task(
    cache_key_fn=_stage_key,
    persist_result=True,
    result_serializer="json",
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=_is_transient,
)
def run_stage(
    stage: str, given: Given, settings: dict[str, Any], modules: list[str], lake: str, at: int = 0
) -> dict[str, Any]:
    """Run one stage on its artifacts; returns its partition. ``at`` is the place of the step in the plan."""
    call, processes = StageCall(stage, given, settings, modules, lake), _pool.get()
    lift_limit()
    with in_plain_words():
        try:
            partition = call.run() if processes is None else processes.compute(at, call)
        except Exception as error:
            error.add_note(f"stage {stage}")  # where it failed, for those who read the state of the run
            limit_life(error)
            raise
    called = _computed.get()
    if called is not None:
        called.add(partition.key)
    return partition.model_dump(mode="json")


def _execute(step: Step, artifacts: Inputs, lake: str) -> Partition:
    call = partial(_named(step), **asdict(StageCall.of(step, artifacts, lake)))
    return Partition.model_validate(in_own_words(call))


def _named(step: Step) -> Any:
    """The task of a step; on the server its run has the name of the flow run before it: ``loans 2024 detect cst``."""
    return run_stage.with_options(name=step.name, task_run_name=lambda: f"{flow_run.name} {step.name}")


def _submitted(step: Step, at: int, artifacts: Inputs, lake: str) -> Running:
    return InOwnWords(_named(step).submit(**asdict(StageCall.of(step, artifacts, lake)), at=at))


def _told(partition: Partition, computed: Collection[str]) -> Partition:
    """The partition, as reused if this run did not compute it: Prefect's cache answers with what an earlier one got."""
    return partition.model_copy(update={"reused": partition.reused or partition.key not in computed})


_computed: ContextVar[set[str] | None] = ContextVar("computed", default=None)
"""Keys of the stages that this flow run called; Prefect hands the context to its threads."""


def _computed_here() -> set[str]:
    """An empty set, which ``run_stage`` fills."""
    keys: set[str] = set()
    _computed.set(keys)
    return keys
