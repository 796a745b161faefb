"""Audits one year of a back-fill: runs every stage through the lake and keeps the record of the attempt.

It is a plain function, so that any task runner can run it in any process or thread. It reuses what the lake holds, so
that an attempt continues where the last one stopped.
"""

import time

from flows.concurrency.disk import telling_full_disk
from flows.concurrency.durations import expected_seconds
from flows.concurrency.plain import side_by_side
from flows.concurrency.schedule import Schedule
from flows.concurrency.workers import worthwhile
from flows.outcome.run_log import tell_run
from flows.outcome.words.plain import stage_words
from flows.partitions.attempts.record import OF_VERDICT, Attempt, YearState
from flows.partitions.attempts.recorder import Recorder, recorded
from flows.partitions.lenders.listing import Listed
from flows.partitions.lenders.part_spec import spec_of_part
from flows.partitions.sufficiency import check_ended
from flows.partitions.years import spec_of_year
from flows.runs.index import Run, last_run, vintage_words
from flows.runs.manifest import read_manifest
from flows.runs.record import Summary, exit_code_of, is_published, planned_in, publish_once, summarise
from flows.runs.trust.verification import verify_run
from flows.supervision.processes.leaving import end_if_leaving
from schemas.artifact import Partition
from schemas.audit.spec import AuditSpec
from schemas.terms import State
from tasks.ingest.registry import check_columns
from tasks.lake.store import Lake
from tasks.lake.trusted_entries import trusted_signer
from tasks.metrics.limits import check_limits
from tasks.pipeline.lineage.memory import telling_short_memory
from tasks.plan import Inputs, Plan, Step, held, walk


def audit_year(spec: AuditSpec, year: int, lake: Lake, force: bool = False, jobs: int = 1) -> Attempt:
    """Audit one year, unless the lake holds all of it; returns the record, which is also in the lake.

    A year with a protected run is left alone unless ``force``: its record then names that run. Of its stages ``jobs``
    run at a time, each in a process of its own.

    Raises:
        EvenhandError: as ``spec_of_year`` and the stages say; it is recorded first.
    """
    with recorded(lake, spec.name, year) as recorder, telling_short_memory(f"{spec.name} {year}"):
        standing = last_run(lake, spec.name, year)
        if standing is not None and standing.protected and not force:
            _leave_alone(recorder, standing, lake)
        else:
            _end(recorder, _audited(_planned(spec, year, lake, recorder), lake, recorder, jobs, force=force))
    return recorder.attempt


def audit_partition(
    spec: AuditSpec, year: int, listed: Listed, lake: Lake, conditions: str, force: bool = False
) -> Attempt:
    """Audit one partition of a year, stage after stage; as ``audit_year`` does a year.

    Args:
        spec: with ``by``.
        year: of the partition.
        listed: the partition.
        lake: of the audit.
        conditions: digest of what decides the result (``lenders.outlook``).
        force: whether one with a protected run is audited again.

    Raises:
        EvenhandError: as ``spec_of_part`` and the stages say; it is recorded first.
    """
    with (
        recorded(lake, spec.name, year, listed.value, rows=listed.rows, conditions=conditions) as recorder,
        telling_short_memory(f"{spec.name} {year} {listed.value}"),
    ):
        standing = last_run(lake, spec.name, year, listed.value)
        if standing is not None and standing.protected and not force:
            _leave_alone(recorder, standing, lake)
        else:
            planned = _plan_of(spec_of_part(spec, year, listed, lake), spec, lake, recorder)
            _end(recorder, _audited(planned, lake, recorder, 1, force=force))
    return recorder.attempt


def _planned(spec: AuditSpec, year: int, lake: Lake, recorder: Recorder) -> Plan:
    return _plan_of(spec_of_year(spec, year, lake), spec, lake, recorder)


def _plan_of(of_year: AuditSpec, asked: AuditSpec, lake: Lake, recorder: Recorder) -> Plan:
    vintage = vintage_words(of_year.source.model_dump(mode="json"))
    recorder.tell(vintage=vintage, lacking=of_year.source.lacking)
    check_columns(of_year)
    check_limits(asked)
    planned = planned_in(lake, of_year)
    stages = tuple(step.name for step in planned.steps)
    recorder.tell(source_sha256=planned.source_sha256, stages=stages)
    return planned


def _leave_alone(recorder: Recorder, run: Run, lake: Lake) -> None:
    verify_run(lake.location, run.run)  # what is not computed again has to be there as it was
    read = read_manifest(lake, run.run).get("read")  # an earlier version did not keep it
    recorder.tell(run=run.run, source_sha256=run.source_sha256, vintage=run.vintage, read=read)
    state, message = State(run.state), "protected: this run was left as it is; --force audits the year again"
    recorder.end(OF_VERDICT.get(state, YearState.INSUFFICIENT), exit_code_of(state), message)


def _audited(planned: Plan, lake: Lake, recorder: Recorder, jobs: int, *, force: bool = False) -> Summary:
    if not is_published(lake, planned.run):
        trusted_signer(lake)  # before the stages: their result could not be published
    done = _executed(planned, lake, recorder, jobs, force=force)
    publish_once(lake, planned, done)
    return summarise(lake, planned.spec, planned.run, done)


class _Told:
    """Tells of the stages of a year: in its record, and in the log of the run at work."""

    def __init__(self, lake: Lake, recorder: Recorder) -> None:
        self._lake, self._recorder = lake, recorder
        self._clocks: dict[str, float] = {}

    def began(self, step: Step) -> None:
        """Tell that a stage begins."""
        self._recorder.tell(stage=step.name)
        self._clocks[step.name] = time.perf_counter()

    def ended(self, step: Step, partition: Partition) -> None:
        """Tell that it ended."""
        attempt, seconds = self._recorder.attempt, time.perf_counter() - self._clocks[step.name]
        of = " ".join(filter(None, (attempt.audit, str(attempt.year), attempt.value)))
        tell_run(f"{of} stage {step.name}: {stage_words(partition, seconds, self._lake)}")


def _executed(planned: Plan, lake: Lake, recorder: Recorder, jobs: int, *, force: bool) -> list[Partition]:
    tell = _Told(lake, recorder)

    def ended(step: Step, partition: Partition, jobs: int = 1) -> None:
        tell.ended(step, partition)
        check_ended(lake, planned, partition, jobs=jobs, force=force)

    def execute(step: Step, given: Inputs) -> Partition:
        end_if_leaving()
        tell.began(step)
        with telling_full_disk(lake, f"stage {step.name}"):
            partition: Partition = step.stage.run(lake, given, step.settings, step.modules)
        ended(step, partition)
        return partition

    if jobs > 1:
        seconds = expected_seconds(lake, planned, len(held(lake, planned.steps)))
        if worthwhile(jobs, seconds) > 1:
            schedule = Schedule(planned.steps, seconds, jobs)
            return side_by_side(schedule, lake, tell.began, lambda at, done: ended(planned.steps[at], done, jobs))
    return walk(planned.steps, execute)


def _end(recorder: Recorder, summary: Summary) -> None:
    recorder.tell(run=summary.run, stage="", computed=summary.computed, read=summary.read)
    state = OF_VERDICT.get(summary.state, YearState.INSUFFICIENT)
    recorder.end(state, summary.exit_code, _why(summary) if state is YearState.INSUFFICIENT else "")


def _why(summary: Summary) -> str:
    """The reasons of the theories with too little evidence."""
    wholes = [row for row in summary.verdicts if row["role"] == "theory"]
    few = [f"{row['theory']}: {row['reason']}" for row in wholes if row["state"] == State.INSUFFICIENT_EVIDENCE]
    return "; ".join(few) or "no theory that counts was judged, so that nothing was checked"
