"""Audits one year or partition of a back-fill."""

import time
from collections.abc import Sequence

from flows.concurrency.schedule import Schedule, check_disk, check_memory, expected_seconds, telling_full_disk
from flows.concurrency.workers import side_by_side, worthwhile
from flows.outcome.ending import stage_words
from flows.outcome.run_log import tell_run
from flows.partitions.attempts import OF_VERDICT, Attempt, Recorder, YearState, recorded
from flows.partitions.part_spec import spec_of_part
from flows.partitions.partition_list import Listed
from flows.partitions.years import spec_of_year
from flows.runs.index import Run, last_run, read_manifest, vintage_words
from flows.runs.record import Summary, exit_code_of, is_published, planned_in, publish_once, summarise
from flows.runs.signatures import verify_run
from flows.supervision.shutdown import end_if_leaving
from schemas.artifact import Partition
from schemas.audit.spec import AuditSpec
from schemas.tables.applications import APPLICATIONS, MEMBERSHIPS
from schemas.terms import State
from tasks.ingest.registry import check_columns
from tasks.lake.log import trusted_signer
from tasks.lake.store import Lake
from tasks.metrics.limits import check_limits
from tasks.metrics.verdicts import check
from tasks.pipeline.resources import telling_short_memory
from tasks.plan import Inputs, Plan, Step, held, walk

# --------------------------------------------------------------------------------------------------------------------
# Ends an audit after its first stage where no group has people enough for a verdict, or memory or disk will not do.


_STAGE = "ingest"
"""Stage after which decisions and groups are known."""
_MOST_ROWS = 200_000
"""Of a table that is counted here: counting a larger one takes long, and it seldom has too few of everybody."""


def check_evidence(lake: Lake, spec: AuditSpec, done: Sequence[Partition]) -> None:
    """Check the people of every group, right after the stage that tells them; at any other moment do nothing.

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
# Audits one year of a back-fill: runs every stage through the lake and keeps the record of the attempt.
#
# It is a plain function, so that any task runner can run it in any process or thread. It reuses what the lake holds, so
# that an attempt continues where the last one stopped.


def audit_year(spec: AuditSpec, year: int, lake: Lake, force: bool = False, jobs: int = 1) -> Attempt:
    """Audit one year, unless the lake holds all of it; returns the record, which is also in the lake.

    A year with a protected run is left alone unless ``force``: its record then names that run. Of its stages ``jobs``
    run at a time, each in a process of its own.

    Raises:
        EvenhandError: as ``spec_of_year`` and the stages say; it is recorded first.
    """
    with recorded(lake, spec.name, year) as recorder, telling_short_memory(f"{spec.name} {year}"):
        current_run = last_run(lake, spec.name, year)
        if current_run is not None and current_run.protected and not force:
            _leave_alone(recorder, current_run, lake)
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
        current_run = last_run(lake, spec.name, year, listed.value)
        if current_run is not None and current_run.protected and not force:
            _leave_alone(recorder, current_run, lake)
        else:
            planned = _plan_of(spec_of_part(spec, year, listed, lake), spec, lake, recorder)
            _end(recorder, _audited(planned, lake, recorder, 1, force=force))
    return recorder.attempt


def _planned(spec: AuditSpec, year: int, lake: Lake, recorder: Recorder) -> Plan:
    return _plan_of(spec_of_year(spec, year, lake), spec, lake, recorder)


def _plan_of(of_year: AuditSpec, requested_spec: AuditSpec, lake: Lake, recorder: Recorder) -> Plan:
    vintage = vintage_words(of_year.source.model_dump(mode="json"))
    recorder.tell(vintage=vintage, lacking=of_year.source.lacking)
    check_columns(of_year)
    check_limits(requested_spec)
    planned = planned_in(lake, of_year)
    stages = tuple(step.name for step in planned.steps)
    recorder.tell(source_sha256=planned.source_sha256, stages=stages)
    return planned


def _leave_alone(recorder: Recorder, run: Run, lake: Lake) -> None:
    verify_run(lake.location, run.run)  # what is not computed again has to be there as it was
    source_read = read_manifest(lake, run.run).get("read")  # an earlier version did not keep it
    recorder.tell(run=run.run, source_sha256=run.source_sha256, vintage=run.vintage, read=source_read)
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

    def execute(step: Step, artifacts: Inputs) -> Partition:
        end_if_leaving()
        tell.began(step)
        with telling_full_disk(lake, f"stage {step.name}"):
            partition: Partition = step.stage.run(lake, artifacts, step.settings, step.modules)
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
