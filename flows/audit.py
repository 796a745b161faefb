"""Prefect flow of an audit: one task per stage; the lake decides which stages are already computed.

Arguments and results are plain values, so that ``flows.audit.audit`` can be deployed. Tasks exchange artifacts only.
The cache key of a task is the key of its stage, and is valid only while the lake holds the partition: Prefect's record
of a result does not prove that the files exist.
"""

import hashlib
import time
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

from flows.partitions.sufficiency import check_evidence
from flows.partitions.years import spec_as_held
from flows.runs.given import given_spec
from flows.runs.manifest import report_of
from flows.runs.record import headline, publish, published_read
from flows.supervision.announcement import announced
from flows.supervision.file_modes import restrict
from schemas.artifact import Artifact, Partition
from schemas.tables.source import read_words
from tasks.lake.store import Lake
from tasks.pipeline.progress import stage_began, stage_ended
from tasks.pipeline.specs import validated
from tasks.pipeline.stop_request import raise_if_stopped
from tasks.plan import STAGES, Inputs, Step, inputs, plan

LEAST_TOLD = 100
"""Fewer rows than this are not counted in a log."""
Given = dict[str, list[dict[str, Any]]]


@flow(name="audit", result_serializer="json", validate_parameters=False, log_prints=False)
@announced
def audit(spec: dict[str, Any] | str, lake: str) -> dict[str, Any]:
    """Run every stage of one audit, write its manifest and export its report.

    Args:
        spec: an audit spec, as ``AuditSpec`` dumps it, or the path of one.
        lake: absolute path of the lake, or its URI.

    Returns:
        The run id, and the partition of every stage in order.
    """
    planned = plan(spec_as_held(given_spec(spec), Lake(lake)))
    progress = cast("UUID", create_progress_artifact(progress=0.0, description=f"stages of {planned.run}"))
    done: list[Partition] = []
    for number, step in enumerate(planned.steps, 1):
        raise_if_stopped()
        stage_began(number)
        clock = time.perf_counter()
        done.append(_execute(step, inputs(step, done), lake))
        stage_ended(_said(done[-1], time.perf_counter() - clock))
        check_evidence(Lake(lake), planned.spec, done)
        update_progress_artifact(progress, 100 * number / len(planned.steps))
    raise_if_stopped()
    publish(Lake(lake), planned, done)
    # for those who watch a deployed run: a worker shows no other logger, a command prints it in its summary
    get_run_logger().info("read %s", read_words(published_read(Lake(lake), done)))
    _show(planned.run, Lake(lake), done)
    return {"run": planned.run, "partitions": [partition.model_dump(mode="json") for partition in done]}


def _stage_key(_: TaskRunContext, parameters: dict[str, Any]) -> str | None:
    """The stage's key while the lake holds its partition, else None: a lost partition is computed again."""
    stage, given, settings = _restored(parameters["stage"], parameters["given"], parameters["settings"])
    key = stage.key(given, settings, parameters["modules"])
    lake = Lake(parameters["lake"])
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
def run_stage(stage: str, given: Given, settings: dict[str, Any], modules: list[str], lake: str) -> dict[str, Any]:
    """Run one stage on its artifacts; returns its partition."""
    restrict()  # a worker of Dask has the umask of its shell
    declared, artifacts, stage_settings = _restored(stage, given, settings)
    partition: Partition = declared.run(Lake(lake), artifacts, stage_settings, modules)
    return partition.model_dump(mode="json")


def _restored(name: str, given: Given, settings: dict[str, Any]) -> tuple[Any, Inputs, Any]:
    stage = STAGES[name]
    artifacts = {table: [Artifact.model_validate(a) for a in entries] for table, entries in given.items()}
    return stage, artifacts, validated(stage.settings, settings)


def _execute(step: Step, given: Inputs, lake: str) -> Partition:
    return Partition.model_validate(
        run_stage.with_options(name=step.name, task_run_name=step.name)(
            stage=step.stage.name,
            given={table: [a.model_dump() for a in artifacts] for table, artifacts in given.items()},
            settings=step.settings.model_dump(mode="json"),
            modules=list(step.modules),
            lake=lake,
        )
    )


def _said(partition: Partition, seconds: float) -> str:
    """What is said of a stage at its end."""
    refused = partition.table("refusals").rows
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
