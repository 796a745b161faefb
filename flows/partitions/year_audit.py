"""Audits one year or partition of a back-fill."""

from collections.abc import Sequence
from logging import WARNING

from flows.concurrency.openlineage import followed
from flows.concurrency.schedule import expected_seconds
from flows.execution import Execution
from flows.outcome.run_log import tell_run
from flows.partitions.attempts import OF_VERDICT, Attempt, Recorder, YearState, recorded
from flows.partitions.part_spec import spec_of_part
from flows.partitions.partition_list import Listed
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
from schemas.terms import State
from tasks.ingest.registry import check_columns
from tasks.lake.store import Lake
from tasks.metrics.limits import check_limits
from tasks.pipeline.resources import telling_short_memory
from tasks.plan import Plan, held

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
            _end(recorder, _audited(planned, lake, recorder, 1, force=force, as_tasks=as_tasks))
    return recorder.attempt


def _plan_of(of_year: AuditSpec, requested_spec: AuditSpec, lake: Lake, recorder: Recorder) -> Plan:
    vintage = vintage_words(of_year.source.model_dump(mode="json"))
    recorder.tell(vintage=vintage, lacking=of_year.source.lacking)
    check_columns(of_year)
    check_limits(requested_spec)
    for line in not_judged(requested_spec, of_year):
        _warn(recorder, line)
    planned = planned_in(lake, of_year)
    stages = tuple(step.name for step in planned.steps)
    recorder.tell(source_sha256=planned.source_sha256, stages=stages)
    return planned


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
    recorder.tell(run=summary.run, stage="", computed=summary.computed, read=summary.source_summary)
    state = OF_VERDICT.get(summary.state, YearState.INCONCLUSIVE)
    why = ""
    if state is YearState.INCONCLUSIVE:
        wholes = [row for row in summary.verdicts if row["role"] == "theory"]
        few = [f"{row['theory']}: {row['reason']}" for row in wholes if row["state"] == State.INCONCLUSIVE]
        why = "; ".join(few) or "no theory that counts was judged, so that nothing was checked"
    recorder.end(state, summary.exit_code, why)
