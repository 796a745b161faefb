"""Prefect flow of an audit: one task run a stage; the lake decides which stages are already computed.

Arguments and results are plain values, so that ``flows.audit.audit`` can be deployed. Tasks exchange artifacts only.
How stages run: ``flows.execution``.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from logging import INFO, WARNING
from typing import Any

from prefect import flow

from flows.concurrency.openlineage import followed
from flows.concurrency.schedule import expected_seconds, share_done
from flows.concurrency.schedule import until as steps_until
from flows.concurrency.tracing import RunTrace, traced_run
from flows.concurrency.workers import default_jobs
from flows.execution import Execution
from flows.outcome.alerts import ALERTED
from flows.outcome.artifacts import Progress, show_verdict
from flows.outcome.conclusion import ending_of_checks, ending_of_error
from flows.outcome.ending import Ending, Subject, checks_of, run_name, subject_of
from flows.outcome.run_log import tell_run
from flows.outcome.run_state import announced, concluded
from flows.partitions.forecast import shipped_seconds
from flows.partitions.part_spec import spec_to_audit
from flows.runs.given import given_spec
from flows.runs.index import run_of
from flows.runs.record import planned_in, publish_once, published_read
from flows.runs.signatures import trusted_signer
from flows.supervision.failed_audits import Ended, note_failure
from flows.supervision.presence import in_stage
from schemas.artifact import Partition
from schemas.errors import TooLittleEvidenceError
from schemas.questions import state_words
from schemas.tables.applications import read_words
from schemas.tables.verdicts import row_words, state_of_row
from schemas.terms import State
from tasks.lake.store import Lake
from tasks.pipeline.progress import forecast, raise_if_stopped, stage_began, stage_ended, stop_requested
from tasks.plan import Plan, held


def _verdict(parameters: Mapping[str, Any], result: dict[str, Any], _: Subject, __: Collection[str]) -> Ending | None:
    """The ending of an audit: its checks that are not within are logged, and the verdict is shown on the server."""
    if parameters.get("until"):
        return None
    lake = Lake(parameters["lake"])
    run = run_of(lake, result["run"])
    checks = checks_of(lake, run)
    ending = ending_of_checks(lake, run, checks)
    for row in checks.open:
        tell_run(
            f"{state_words(state_of_row(row))}: {row_words(row)}", WARNING if row["state"] == State.OUTSIDE else INFO
        )
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
            planned = replace(planned, steps=tuple(steps_until(planned.steps, until)))
        jobs = jobs or default_jobs()
        seconds = expected_seconds(Lake(lake), planned, 0 if jobs == 1 else len(held(Lake(lake), planned.steps)))
        execution = Execution(planned, Lake(lake), jobs, seconds, force)
        with followed(Lake(lake), planned, _Course(planned, Lake(lake), seconds, trace)) as watcher:
            done = execution.run(watcher)
            raise_if_stopped()
        if not until:
            publish_once(Lake(lake), planned, done, watcher.summary)
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


class _Course(Progress):
    """How far the audit is: the share of the expected seconds that is done, of stages where none are known."""

    def __init__(self, planned: Plan, lake: Lake, seconds: Sequence[float | None], trace: RunTrace) -> None:
        """Start with no finished stage; ``trace`` gets each that ends."""
        super().__init__(f"stages of {planned.run}")
        self._planned, self._lake, self._seconds, self._trace = planned, lake, seconds, trace
        self._names = [step.name for step in planned.steps]
        self._done: set[int] = set()

    def began(self, at: int, at_work: Sequence[str]) -> None:
        """Show that a stage begins, and note it where a worker looks if this process is killed."""
        stage_began(at + 1)
        in_stage(self._lake, ", ".join(at_work))

    def ended(self, at: int, partition: Partition, message: str) -> None:
        """Count the stage at a place as done."""
        stage_ended(message, at + 1)
        if at == 0 and None in self._seconds:  # the rows are known now
            by_table = shipped_seconds(self._planned, None, partition.tables[0].rows)
            if by_table is not None:
                forecast(by_table)
        tell_run(f"stage {self._names[at]}: {message}")
        self._done.add(at)
        self._trace.done.append((self._names[at], partition))
        self.reached(share_done(self._seconds, self._done))
