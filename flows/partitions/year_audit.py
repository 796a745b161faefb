"""Audits one year or partition of a back-fill."""

from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from logging import WARNING
from typing import Any, Self

from flows.concurrency.openlineage import followed
from flows.concurrency.schedule import Schedule, expected_seconds
from flows.concurrency.workers import StageCall
from flows.execution import Execution, check_ended
from flows.outcome.ending import stage_words
from flows.outcome.run_log import tell_run
from flows.partitions.attempts import OF_VERDICT, Attempt, Recorder, YearState, latest, lock_of, recorded
from flows.partitions.part_spec import spec_of_part
from flows.partitions.partition_list import Listed
from flows.partitions.runners import least_divided
from flows.partitions.year_plan import Asked, expected_steps
from flows.partitions.years import not_judged, spec_of_year
from flows.runs.index import Run, last_run, read_manifest, vintage_words
from flows.runs.record import (
    Summary,
    exit_code_of,
    expectations_not_held,
    is_published,
    planned_in,
    publish_once,
    summarise,
)
from flows.runs.signatures import trusted_signer, verify_run
from schemas.artifact import Partition
from schemas.audit.spec import AuditSpec
from schemas.errors import EvenhandError
from schemas.terms import ExitCode, State
from tasks.ingest.registry import check_columns
from tasks.lake.store import Lake
from tasks.metrics.limits import check_limits
from tasks.pipeline.registry import validated
from tasks.pipeline.resources import telling_short_memory
from tasks.plan import Plan, held, inputs

# --------------------------------------------------------------------------------------------------------------------
# Audits one year of a back-fill: runs every stage through the lake and keeps the record of the attempt.
#
# It is a plain function, so that any task runner can run it in any process or thread. It reuses what the lake holds, so
# that an attempt continues where the last one stopped.


def audit_year(
    spec: AuditSpec, year: int, lake: Lake, force: bool = False, jobs: int = 1, *, as_tasks: bool = False
) -> Attempt:
    """Audit one year, unless the lake holds all of it; returns the record, which is also in the lake.

    A year with a protected run is left alone unless ``force``: its record then names that run. Of its stages ``jobs``
    run at a time, each in a process of its own. With ``as_tasks`` each is a task run of the flow run at work; without
    it they are plain calls, one after another.

    Raises:
        EvenhandError: as ``spec_of_year`` and the stages say; it is recorded first.
    """
    with recorded(lake, spec.name, year) as recorder, telling_short_memory(f"{spec.name} {year}"):
        current_run = last_run(lake, spec.name, year)
        if current_run is not None and current_run.protected and not force:
            _leave_alone(recorder, current_run, lake)
        else:
            planned = _plan_of(spec_of_year(spec, year, lake), spec, lake, recorder)
            _end(recorder, _audited(planned, lake, recorder, jobs, force=force, as_tasks=as_tasks))
    return recorder.attempt


def audit_partition(
    spec: AuditSpec,
    year: int,
    listed: Listed,
    lake: Lake,
    conditions: str,
    force: bool = False,
    *,
    as_tasks: bool = False,
    goes_on: int = 0,
) -> Attempt:
    """Audit one partition of a year, stage after stage; as ``audit_year`` does a year.

    Args:
        spec: with ``by``.
        year: of the partition.
        listed: the partition.
        lake: of the audit.
        conditions: digest of what decides the result (``lenders.outlook``).
        force: whether one with a protected run is audited again.
        as_tasks: as of ``audit_year``.
        goes_on: number of the attempt that its stages began as tasks; 0 without one.

    Raises:
        EvenhandError: as ``spec_of_part`` and the stages say; it is recorded first.
    """
    with (
        recorded(
            lake, spec.name, year, listed.value, goes_on=goes_on, rows=listed.rows, conditions=conditions
        ) as recorder,
        telling_short_memory(f"{spec.name} {year} {listed.value}"),
    ):
        current_run = last_run(lake, spec.name, year, listed.value)
        if current_run is not None and current_run.protected and not force:
            _leave_alone(recorder, current_run, lake)
        else:
            planned = _plan_of(spec_of_part(spec, year, listed, lake), spec, lake, recorder)
            _end(recorder, _audited(planned, lake, recorder, 1, force=force, as_tasks=as_tasks))
    return recorder.attempt


def _plan_of(of_year: AuditSpec, requested_spec: AuditSpec, lake: Lake, recorder: Recorder) -> Plan:
    recorder.tell(**_source_facts(of_year))
    check_columns(of_year)
    check_limits(requested_spec)
    for line in not_judged(requested_spec, of_year):
        _warn(recorder, line)
    planned = planned_in(lake, of_year)
    recorder.tell(**_stage_facts(planned))
    return planned


def _source_facts(of_year: AuditSpec) -> dict[str, Any]:
    vintage = vintage_words(of_year.source.model_dump(mode="json"))
    return {"vintage": vintage, "lacking": of_year.source.lacking}


def _stage_facts(planned: Plan) -> dict[str, Any]:
    return {"source_sha256": planned.source_sha256, "stages": tuple(step.name for step in planned.steps)}


def _leave_alone(recorder: Recorder, run: Run, lake: Lake) -> None:
    verify_run(lake.location, run.run)  # what is not computed again has to be there as it was
    source_read = read_manifest(lake, run.run).get("read")  # an earlier version did not keep it
    recorder.tell(run=run.run, source_sha256=run.source_sha256, vintage=run.vintage, read=source_read)
    state, message = State(run.state), "protected: this run was left as it is; --force audits the year again"
    recorder.end(OF_VERDICT.get(state, YearState.INCONCLUSIVE), exit_code_of(state), message)


def _audited(planned: Plan, lake: Lake, recorder: Recorder, jobs: int, *, force: bool, as_tasks: bool) -> Summary:
    if not is_published(lake, planned.run):
        trusted_signer(lake)  # before the stages: their result could not be published
    seconds = expected_seconds(lake, planned, len(held(lake, planned.steps))) if jobs > 1 else ()
    with followed(lake, planned, _Watcher(recorder)) as watcher:
        done = Execution(planned, lake, jobs, seconds, force, as_tasks).run(watcher)
    publish_once(lake, planned, done, watcher.summary)
    for line in expectations_not_held(lake, done):
        _warn(recorder, line)
    return summarise(lake, planned.spec, planned.run, done)


def _warn(recorder: Recorder, line: str) -> None:
    """A warning in the log of the run at work, with the year and the partition."""
    attempt = recorder.attempt
    tell_run(f"{attempt.audit} {attempt.year} {attempt.value}".rstrip() + f": {line}", WARNING)


class _Watcher:
    """Keeps the stages of a year in its record, and in the log of the run at work."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def began(self, at: int, _: Sequence[str]) -> None:
        """Keep which stage began last."""
        self._recorder.tell(stage=self._recorder.attempt.stages[at])

    def ended(self, at: int, _: Partition, message: str) -> None:
        """Log that a stage has ended."""
        attempt = self._recorder.attempt
        of = " ".join(filter(None, (attempt.audit, str(attempt.year), attempt.value)))
        tell_run(f"{of} stage {attempt.stages[at]}: {message}")


def _end(recorder: Recorder, summary: Summary) -> None:
    computed = recorder.attempt.computed + summary.computed  # with what its stages computed as tasks
    recorder.tell(run=summary.run, stage="", computed=computed, read=summary.source_summary)
    state = OF_VERDICT.get(summary.state, YearState.INCONCLUSIVE)
    why = ""
    if state is YearState.INCONCLUSIVE:
        wholes = [row for row in summary.verdicts if row["role"] == "theory"]
        few = [f"{row['theory']}: {row['reason']}" for row in wholes if row["state"] == State.INCONCLUSIVE]
        why = "; ".join(few) or "no theory that counts was judged, so that nothing was checked"
    recorder.end(state, summary.exit_code, why)


def never_ended(year_task: Asked) -> Attempt:
    """The record of a failed year: its process died twice or could not start."""
    lake, audit = Lake(year_task.lake), year_task.spec["name"]
    last = latest(lake, audit, year_task.year, year_task.value)
    cause = last.message if last and last.attempt > year_task.before else "no process could begin with it"
    with lake.lock(lock_of(audit, year_task.year, year_task.value)):
        message = f"{cause}; is there memory enough? Try fewer --workers, or narrow source.keep"
        partition_facts = (
            {"rows": year_task.listed["rows"], "conditions": year_task.conditions} if year_task.listed else {}
        )
        return Recorder(lake, audit, year_task.year, year_task.value, **partition_facts).end(
            YearState.FAILED, ExitCode.INFRASTRUCTURE, message
        )


# --------------------------------------------------------------------------------------------------------------------
# The stages of a large partition, each a task of its own, so that one partition does not keep one worker for hours.
#
# What a stage writes is in the lake. The audit of the partition follows as the last task, finds all of it there, and
# makes the same run as an audit in one task. Where a stage fails or its process dies, that audit takes over from what
# the lake holds: it tries the stage again, and reports what is wrong with it. The back-fill's own process begins the
# record and holds the partition's lock until it hands both over to that audit.


@dataclass
class Divided:
    """A partition with its stages as tasks; the back-fill begins each as soon as what it reads is there."""

    year_task: Asked
    planned: Plan
    schedule: Schedule
    at_work: set[int] = field(default_factory=set)
    """Places of the stages that run."""
    stopped: bool = False
    """Whether the audit in one task takes over."""
    recorder: Recorder | None = None
    """Of the attempt, from the first stage on."""
    _lock: ExitStack = field(default_factory=ExitStack)

    @classmethod
    def of(cls, year_task: Asked, workers: int) -> Self | None:
        """The stages of a partition; None where it cannot be planned, or all is held: its audit ends at once.

        So it is while another process audits it: that is waited for by a worker, and not by the whole back-fill.
        """
        spec, lake, partition = (
            validated(AuditSpec, year_task.spec),
            Lake(year_task.lake),
            Listed(**(year_task.listed or {})),
        )
        last = last_run(lake, spec.name, year_task.year, partition.value)
        attempt = latest(lake, spec.name, year_task.year, partition.value)
        if (last is not None and last.protected and not year_task.force) or (attempt and not attempt.ended):
            return None
        try:
            of_part = spec_of_part(spec, year_task.year, partition, lake)
            check_columns(of_part)
            check_limits(spec)
            planned = planned_in(lake, of_part)
            if is_published(lake, planned.run):
                return None
            trusted_signer(lake)
        except EvenhandError:
            return None
        seconds = expected_steps(of_part, [step.name for step in planned.steps], partition.usable)
        return cls(year_task, planned, Schedule(planned.steps, seconds, workers))

    @property
    def over(self) -> bool:
        """Whether the audit in one task is all that is left, and no stage runs."""
        return not self.at_work and (self.stopped or len(self.schedule.done) == len(self.planned.steps))

    def next_stage(self) -> "StageTask | None":
        """The stage to begin with next, the longest first; None while none may start."""
        places = [] if self.stopped else self.schedule.ready(self.at_work)
        if not places:
            return None
        step = self.planned.steps[places[0]]
        key = step.stage.key(inputs(step, self.schedule.before(places[0])), step.settings, step.modules)
        record = Lake(self.year_task.lake).storage.read(f"stages/{step.stage.name}/{key}/partition.json")
        return StageTask(self, places[0], record is not None)

    def record(self) -> Recorder:
        """The record of the attempt, which the first stage begins."""
        if self.recorder is None:
            task, lake = self.year_task, Lake(self.year_task.lake)
            key = task.spec["name"], task.year, task.value
            self._lock.enter_context(lake.lock(lock_of(*key)))
            facts = {"rows": (task.listed or {})["rows"], "conditions": task.conditions}
            facts |= _source_facts(self.planned.spec) | _stage_facts(self.planned)
            self.recorder = Recorder(lake, *key, **facts)
        return self.recorder

    def handed_over(self) -> Asked:
        """The audit of the partition, which goes on with the record of the attempt."""
        if self.recorder is None:
            return self.year_task
        self.recorder.tell(stage="")
        self.release()
        return replace(self.year_task, goes_on=self.recorder.attempt.attempt)

    def release(self) -> None:
        """Let go of the lock of the partition: its attempt counts as interrupted until an audit goes on with it."""
        self._lock.close()


@dataclass(frozen=True)
class StageTask:
    """One stage of a divided partition."""

    of: Divided
    at: int
    """Its place in the plan."""
    held_before: bool
    """Whether the lake had what it writes."""

    @property
    def name(self) -> str:
        """Partition and stage."""
        year_task = self.of.year_task
        return f"{year_task.spec['name']} {year_task.year} {year_task.value} {self.of.planned.steps[self.at].name}"

    def call(self) -> StageCall:
        """The stage on what earlier ones wrote."""
        step = self.of.planned.steps[self.at]
        return StageCall.of(step, inputs(step, self.of.schedule.before(self.at)), self.of.year_task.lake)

    def where(self) -> AbstractContextManager[Any]:
        """The workers that it is for are those of its partition."""
        return self.of.year_task.where()

    def began(self) -> None:
        """Note that it runs, in the record, too."""
        self.of.at_work.add(self.at)
        self.of.record().tell(stage=self.of.planned.steps[self.at].name)

    def ended(self, seconds: float) -> None:
        """Take what it wrote from the lake; where that is not there, or will not do, the whole audit takes over."""
        self.of.at_work.discard(self.at)
        call, lake = self.call(), Lake(self.of.year_task.lake)
        stage, artifacts, settings = call.restored()
        try:
            partition = lake.find(stage.name, stage.key(artifacts, settings, call.modules))
            if partition is not None:
                check_ended(lake, self.of.planned, partition, force=self.of.year_task.force)
        except EvenhandError:
            partition = None  # the audit that takes over meets it again, and reports it
        if partition is None:
            self.of.stopped = True
            tell_run(f"{self.name} did not end: the audit of the partition goes on from what the lake holds", WARNING)
        else:
            self.of.schedule.done[self.at] = partition
            recorder = self.of.record()
            recorder.tell(computed=recorder.attempt.computed + (not self.held_before))
            tell_run(f"{self.name}: {stage_words(partition, seconds, lake)}")


def take_divided(remaining: deque[Asked], workers: int) -> list[Divided]:
    """Take the partitions with a task for each stage out of the others; the largest first.

    One for Dask's large workers is not among them: its stages would wait for each other and keep back what others take.
    """
    many = [y for y in remaining if y.listed and y.listed["rows"] >= least_divided() and not y.large]
    divided = [parts for year_task in many if (parts := Divided.of(year_task, workers))]
    for parts in divided:
        remaining.remove(parts.year_task)
    return divided


def next_to_start(remaining: deque[Asked], divided: Sequence[Divided]) -> Asked | StageTask | None:
    """A stage of a divided partition if one may start, else the next partition; None where nothing may."""
    for parts in divided:
        if (stage_task := parts.next_stage()) is not None:
            return stage_task
    return remaining.popleft() if remaining else None


def hand_over(remaining: deque[Asked], divided: list[Divided]) -> None:
    """Put divided partitions first when all their stages have ended: their audit is left."""
    for parts in [parts for parts in divided if parts.over]:
        divided.remove(parts)
        remaining.appendleft(parts.handed_over())
