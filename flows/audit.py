"""Prefect flow of an audit: one task per stage; the lake decides which stages are already computed.

Arguments and results are plain values, so that ``flows.audit.audit`` can be deployed. Tasks exchange artifacts only.
The cache key of a task is the key of its stage, and is valid only while the lake holds the partition: Prefect's record
of a result does not prove that the files exist.
"""

import hashlib
import time
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from prefect import flow, get_run_logger, task
from prefect.artifacts import (
    create_link_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.context import TaskRunContext

from flows.concurrency import graph
from flows.concurrency.call import Given, StageCall
from flows.concurrency.durations import expected_seconds, share_done
from flows.concurrency.schedule import Running, Schedule
from flows.concurrency.workers import Workers, default_jobs, workers, worthwhile
from flows.partitions.lenders.part_spec import spec_to_audit
from flows.partitions.sufficiency import check_ended
from flows.runs.given import given_spec
from flows.runs.manifest import report_of
from flows.runs.record import headline, publish, published_read
from flows.supervision.announcement import announced
from flows.supervision.presence import in_stage
from schemas.artifact import Partition
from schemas.tables.source import read_words
from tasks.lake.store import Lake
from tasks.pipeline.progress import stage_began, stage_ended
from tasks.pipeline.stop_request import raise_if_stopped
from tasks.plan import Inputs, Plan, Step, held, inputs, plan

LEAST_TOLD = 100
"""Fewer rows than this are not counted in a log."""


@flow(name="audit", result_serializer="json", validate_parameters=False, log_prints=False)
@announced
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
    began = time.time()
    planned = plan(spec_to_audit(given_spec(spec), Lake(lake)))
    if until:
        planned = replace(planned, steps=tuple(graph.until(planned.steps, until)))
    done = [_since(began, each, Lake(lake)) for each in _executed(planned, lake, jobs or default_jobs(), force=force)]
    raise_if_stopped()
    if not until:
        publish(Lake(lake), planned, done)
        # for those who watch a deployed run: a worker shows no other logger, a command prints it in its summary
        get_run_logger().info("read %s", read_words(published_read(Lake(lake), done)))
        _show(planned.run, Lake(lake), done)
    return {"run": planned.run, "partitions": [partition.model_dump(mode="json") for partition in done]}


def _executed(planned: Plan, lake: str, jobs: int, *, force: bool) -> list[Partition]:
    if jobs == 1:
        return _one_by_one(planned, lake, _Progress(planned, expected_seconds(Lake(lake), planned, 0)), force=force)
    seconds = expected_seconds(Lake(lake), planned, len(held(Lake(lake), planned.steps)))
    telling = _Progress(planned, seconds)
    if worthwhile(jobs, seconds) == 1:
        return _one_by_one(planned, lake, telling, force=force)
    return _side_by_side(planned, lake, telling, jobs, force=force)


def _one_by_one(planned: Plan, lake: str, telling: "_Progress", *, force: bool) -> list[Partition]:
    done: list[Partition] = []
    for number, step in enumerate(planned.steps, 1):
        raise_if_stopped()
        stage_began(number)
        in_stage(Lake(lake), step.name)
        clock = time.perf_counter()
        done.append(_execute(step, inputs(step, done), lake))
        stage_ended(_said(done[-1], time.perf_counter() - clock, Lake(lake)))
        check_ended(Lake(lake), planned, done[-1], force=force)
        telling.ended(number - 1)
    return done


def _side_by_side(planned: Plan, lake: str, telling: "_Progress", jobs: int, *, force: bool) -> list[Partition]:
    """Each task waits in a thread for a worker process, which holds neither Prefect nor the flow."""
    clocks: dict[int, float] = {}

    def start(at: int, given: Inputs) -> Running:
        stage_began(at + 1)
        clocks[at] = time.perf_counter()
        return cast("Running", _submitted(planned.steps[at], at, given, lake))

    def told(at: int, partition: Partition) -> None:
        stage_ended(_said(partition, time.perf_counter() - clocks[at], Lake(lake)), at + 1)
        check_ended(Lake(lake), planned, partition, jobs=jobs, force=force)
        telling.ended(at)

    with workers(jobs) as processes:
        before = _pool.set(processes)
        try:
            return Schedule(planned.steps, telling.seconds, jobs, restored=Partition.model_validate).run(start, told)
        finally:
            _pool.reset(before)


_pool: ContextVar[Workers | None] = ContextVar("workers", default=None)
"""Who computes the stages of this flow run; None: its own process. Prefect hands the context to its threads."""


@dataclass
class _Progress:
    """Prefect's progress artifact: the share of the expected seconds that is done, of stages where none are known."""

    planned: Plan
    seconds: list[float | None]

    def __post_init__(self) -> None:
        self._artifact = cast(
            "UUID", create_progress_artifact(progress=0.0, description=f"stages of {self.planned.run}")
        )
        self._done: set[int] = set()

    def ended(self, at: int) -> None:
        """Count the step at a place as done."""
        self._done.add(at)
        update_progress_artifact(self._artifact, 100 * share_done(self.seconds, self._done))


def _stage_key(_: TaskRunContext, parameters: dict[str, Any]) -> str | None:
    """The stage's key while the lake holds its partition, else None: a lost partition is computed again."""
    call = StageCall(**{name: value for name, value in parameters.items() if name != "at"})
    stage, given, settings = call.restored()
    key, lake = stage.key(given, settings, call.modules), Lake(call.lake)
    where = hashlib.sha256(lake.location.encode()).hexdigest()[:12]  # one server may serve several lakes
    return f"{stage.name}-{key}-{where}" if lake.find(stage.name, key) else None


def _is_transient(_: Any, __: Any, state: Any) -> bool:
    """Whether a retry could help: an operating system's error may be a passing fault of a network drive."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, OSError) or isinstance(getattr(error, "__cause__", None), OSError)


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
    partition = call.run() if processes is None else processes.compute(at, call)
    return partition.model_dump(mode="json")


def _execute(step: Step, given: Inputs, lake: str) -> Partition:
    named = run_stage.with_options(name=step.name, task_run_name=step.name)
    return Partition.model_validate(named(**asdict(StageCall.of(step, given, lake))))


def _submitted(step: Step, at: int, given: Inputs, lake: str) -> Any:
    named = run_stage.with_options(name=step.name, task_run_name=step.name)
    return named.submit(**asdict(StageCall.of(step, given, lake)), at=at)


def _since(began: float, partition: Partition, lake: Lake) -> Partition:
    """The partition, as reused if an earlier run computed it: Prefect's cache answers with what that run got."""
    return partition.model_copy(update={"reused": partition.reused or lake.lineage(partition)["started"] < began})


def _said(partition: Partition, seconds: float, lake: Lake) -> str:
    """What is said of a stage at its end."""
    refused = lake.lineage(partition)["rows"]["refused"]
    how = "from the lake" if partition.reused else f"{seconds:.1f} s"
    return f"{about(partition.tables[0].rows)} rows, {about(refused)} refused, {how}"


def about(rows: int) -> str:
    """A number of rows in a log: to two digits, since rows are counted here before it is decided what may be told.

    Rows that a stage refused are withheld where they are few, and they are what two exact numbers differ by.
    """
    if rows < LEAST_TOLD:
        return "0" if rows == 0 else f"< {LEAST_TOLD}"
    return f"{int(float(f'{rows:.1e}')):,}"


def _show(run: str, lake: Lake, done: list[Partition]) -> None:
    """Prefect artifacts: aggregates only."""
    rows = headline(lake, done)
    create_table_artifact(key="findings", table=rows, description=f"headline measures of {run}")
    storage, folder = report_of(lake, run)
    report = storage.where(f"{folder}/report.html")
    link = report if "://" in report else Path(report).as_uri()
    create_link_artifact(key="report", link=link, link_text=f"report of {run}")
