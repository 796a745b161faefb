"""Runs the stages of an audit: the one loop of audits, of years of a back-fill and of partitions.

A stage starts as soon as the stages have ended that write what it reads. On a Prefect server it is a task run, whose
inputs are the task runs of those stages. With several jobs its work is done in a process of the pool
(``flows.concurrency.workers``), and the task waits for it in a thread.
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from flows.concurrency.schedule import Running, Schedule, check_disk, check_memory, waits_for
from flows.concurrency.workers import StageCall, Workers, workers, worthwhile
from flows.outcome.ending import stage_words
from flows.outcome.run_log import in_own_words, in_plain_words, may_pass
from flows.supervision.shutdown import lift_limit, limit_life
from schemas.artifact import Partition
from schemas.audit.spec import AuditSpec
from schemas.tables.applications import APPLICATIONS, MEMBERSHIPS
from tasks.lake.store import Lake
from tasks.metrics.verdicts import check
from tasks.pipeline.progress import stop_requested
from tasks.plan import Inputs, Plan, held

if TYPE_CHECKING:
    from prefect import Task
    from prefect.context import TaskRunContext
    from prefect.futures import PrefectFuture

# --------------------------------------------------------------------------------------------------------------------
# Ends an audit after its first stage where no group has people enough for a verdict, or memory or disk will not do.


_STAGE = "ingest"
"""Stage after which decisions and groups are known."""
_MOST_ROWS = 200_000
"""Of a table that is counted here: counting a larger one takes long, and it seldom has too few of everybody."""


def check_evidence(lake: Lake, spec: AuditSpec, done: Sequence[Partition]) -> None:
    """Check the people of every group, right after the stage that counts them; at any other moment do nothing.

    Args:
        lake: of the audit.
        spec: of the audit.
        done: partitions so far, in order.

    Raises:
        TooLittleEvidenceError: no verdict can come out.
        IntegrityError: a table is not the one that was written.
    """
    if done and done[-1].stage == _STAGE and done[-1].table(APPLICATIONS.name).rows <= _MOST_ROWS:
        applications, memberships = (lake.read(done[-1].table(table.name)) for table in (APPLICATIONS, MEMBERSHIPS))
        check(applications, memberships, spec)


def check_ended(lake: Lake, planned: Plan, ended: Partition, *, jobs: int = 1, force: bool = False) -> None:
    """Check evidence, memory and disk, right after the stage that counts people and rows; else do nothing.

    Args:
        lake: of the audit.
        planned: the audit.
        ended: partition of the stage that has just ended.
        jobs: stages at a time.
        force: whether it goes on where memory or disk will not suffice, with a warning.

    Raises:
        TooLittleEvidenceError: no verdict can come out.
        InfrastructureError: what is left will not fit into memory, or on the disk.
    """
    check_evidence(lake, planned.spec, [ended])
    if ended.stage == _STAGE:
        done = held(lake, planned.steps)
        check_memory(lake, planned, done, jobs=jobs, force=force)
        check_disk(lake, planned, done, force=force)


# --------------------------------------------------------------------------------------------------------------------
# The loop.


class Watcher(Protocol):
    """Whom the loop informs of its stages, by their places in the plan."""

    def began(self, at: int, at_work: Sequence[str]) -> None:
        """A stage begins; ``at_work`` has the names of all that run now."""

    def ended(self, at: int, partition: Partition, message: str) -> None:
        """A stage has ended; the message has its rows and its time."""


@dataclass(frozen=True)
class Execution:
    """The stages of an audit, and how they run."""

    planned: Plan
    lake: Lake
    jobs: int = 1
    """Stages at the same time; one where earlier runs took less time than processes are worth."""
    seconds: Sequence[float | None] = ()
    """What each stage takes by earlier runs, as ``schedule.expected_seconds`` gives it; needed for several jobs."""
    force: bool = False
    """Whether it goes on where memory or disk will not suffice, with a warning."""
    as_tasks: bool = True
    """Whether each stage is a task run of the flow run at work; if not, plain calls in this process."""

    def run(self, watcher: Watcher) -> list[Partition]:
        """Run all stages; returns their partitions in the order of the plan.

        Raises:
            TooLittleEvidenceError: no verdict can come out.
            InfrastructureError: what is left will not fit into memory, or on the disk.
            EvenhandError: as the first stage in the plan says that failed.
        """
        steps, jobs = self.planned.steps, worthwhile(self.jobs, self.seconds) if self.as_tasks else 1
        waits = waits_for(steps)
        clocks: dict[int, float] = {}
        task_runs: dict[int, _TaskRun] = {}

        def start(at: int, artifacts: Inputs) -> Running:
            clocks[at] = time.perf_counter()
            watcher.began(at, [steps[place].name for place in sorted(clocks)])
            call = StageCall.of(steps[at], artifacts, self.lake.location)
            if not self.as_tasks:
                return _called(call)
            earlier = [task_runs[place] for place in sorted(waits[at])]
            task_runs[at] = _TaskRun.of(steps[at].name, call, at, earlier, in_thread=jobs > 1)
            return task_runs[at]

        def ended(at: int, partition: Partition) -> None:
            seconds = time.perf_counter() - clocks.pop(at)
            watcher.ended(at, partition, stage_words(partition, seconds, self.lake))
            check_ended(self.lake, self.planned, partition, jobs=jobs, force=self.force)

        with ExitStack() as stack:
            if jobs > 1:
                before = _pool.set(stack.enter_context(workers(jobs)))
                stack.callback(_pool.reset, before)
            return Schedule(steps, self.seconds, jobs).run(start, ended)


def _called(call: StageCall) -> "Future[Partition]":
    """A stage that ran in this process, as a future that has ended."""
    future: Future[Partition] = Future()
    try:
        future.set_result(call.run())
    except Exception as error:
        future.set_exception(error)
    return future


# --------------------------------------------------------------------------------------------------------------------
# A stage as a task run. Prefect is loaded with the first one: whoever only looks at a lake imports this module, too.


_pool: ContextVar[Workers | None] = ContextVar("workers", default=None)
"""The processes that compute the stages of this flow run; None: its own process. Prefect hands it to its threads."""
_CACHED = "Cached"
"""Prefect's name of the state of a task run that took the result of an earlier one."""


@dataclass(frozen=True)
class _TaskRun:
    """The task run of a stage."""

    future: "PrefectFuture[Any]"

    @classmethod
    def of(cls, name: str, call: StageCall, at: int, earlier: Sequence["_TaskRun"], *, in_thread: bool) -> "_TaskRun":
        """Run a stage here, or begin with it in a thread, after earlier task runs."""
        from prefect.futures import PrefectConcurrentFuture
        from prefect.runtime import flow_run
        from prefect.utilities.annotations import quote

        named = _task().with_options(name=name, task_run_name=lambda: f"{flow_run.name} {name}")
        # In values Prefect finds more edges: by the addresses of results, which Python uses again. A future has none.
        quoted, wait_for = quote(call), [task_run.future for task_run in earlier]
        if in_thread:
            return cls(named.submit(quoted, at, wait_for=wait_for))
        state = named(quoted, at, wait_for=wait_for, return_state=True)
        ended: Future[Any] = Future()
        ended.set_result(state)
        return cls(PrefectConcurrentFuture(state.state_details.task_run_id, ended))

    def add_done_callback(self, fn: Callable[[Any], object], /) -> None:
        """Call when it has ended."""

        def call(_: object) -> None:
            fn(self)

        self.future.add_done_callback(call)

    def result(self) -> Partition:
        """Its partition: reused if this run did not compute it, as where Prefect's cache had the result.

        Raises:
            Exception: what the stage raised.
        """
        partition = Partition.model_validate(in_own_words(self.future.result))
        return partition.model_copy(update={"reused": partition.reused or self.future.state.name == _CACHED})


@cache
def _task() -> "Task[..., dict[str, Any]]":
    from prefect import task

    return task(
        cache_key_fn=_stage_key,
        persist_result=True,
        result_serializer="json",
        retry_condition_fn=is_transient,
        **RETRIES,
    )(run_stage)


RETRIES: dict[str, Any] = {"retries": 2, "retry_delay_seconds": [1, 5]}
"""Of every task of ours."""


def is_transient(_: Any, __: Any, state: Any) -> bool:
    """Whether a retry could help: not after a stop request, nor after a permanent error."""
    return not stop_requested() and may_pass(state.result(raise_on_failure=False))


def _stage_key(_: "TaskRunContext", parameters: dict[str, Any]) -> str | None:
    """The stage's key while the lake holds its partition, else None: a lost partition is computed again.

    Prefect's record of a result does not prove that the files exist.
    """
    call: StageCall = parameters["call"]
    stage, artifacts, settings = call.restored()
    key, lake = stage.key(artifacts, settings, call.modules), Lake(call.lake)
    where = hashlib.sha256(lake.location.encode()).hexdigest()[:12]  # one server may serve several lakes
    return f"{stage.name}-{key}-{where}" if lake.find(stage.name, key) else None


def run_stage(call: StageCall, at: int) -> dict[str, Any]:
    """Run one stage; returns its partition, as it is dumped. ``at`` is the place of the step in the plan."""
    processes = _pool.get()
    lift_limit()
    with in_plain_words():
        try:
            partition = call.run() if processes is None else processes.compute(at, call)
        except Exception as error:
            error.add_note(f"stage {call.stage}")  # where it failed, for those who read the state of the run
            limit_life(error)
            raise
    return partition.model_dump(mode="json")
