"""Starts an audit: checks what the lake holds, and starts Prefect only if a stage is left to compute."""

import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from flows.launch.durations import expected_seconds
from flows.partitions.sufficiency import check_evidence
from flows.partitions.years import spec_as_held
from flows.runs.record import Summary, is_published, publish, summarise
from flows.supervision.embedded_api import prefect_api
from flows.supervision.presence import at_work
from schemas.artifact import Partition
from schemas.audit.spec import AuditSpec
from tasks.ingest.registry import check_columns, unnamed_columns
from tasks.lake.store import Lake
from tasks.metrics.limits import check_limits
from tasks.pipeline.progress import course_of
from tasks.pipeline.stop_request import stop_requested
from tasks.pipeline.validation import prepare_engine
from tasks.plan import held, plan

log = logging.getLogger("evenhand")
_SHOWN = 6
"""Names in a warning."""


def run_audit(spec: AuditSpec, lake_root: Path | str) -> Summary:
    """Run one audit; compute nothing if the lake holds all of it.

    Raises:
        EvenhandError: as the stages say.
    """
    lake = Lake(lake_root)
    with at_work(lake, f"command-{os.getpid()}"):  # so that nothing that this run counts on is removed meanwhile
        spec = spec_as_held(spec, lake)
        summary = _audited(spec, lake)
    return replace(summary, warnings=[*summary.warnings, *_unconfirmed(spec), *_unnamed(spec)])


def _unconfirmed(spec: AuditSpec) -> Iterator[str]:
    """The guesses of a drafted spec that the results rest on."""
    if spec.unconfirmed:
        told = "`evenhand init --check SPEC` lists them, and the first page of the report says so"
        yield f"the spec has {len(spec.unconfirmed)} keys marked CHECK ({_shown(spec.unconfirmed)}); {told}"


def _unnamed(spec: AuditSpec) -> Iterator[str]:
    """The columns that nobody said anything of: a feature forgotten, or the decision under another name."""
    names = unnamed_columns(spec)
    if names:
        are = "column of the table is" if len(names) == 1 else "columns of the table are"
        yield f"{len(names)} {are} not in the spec: {_shown(names)}"


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _audited(spec: AuditSpec, lake: Lake) -> Summary:
    check_columns(spec)
    check_limits(spec)
    planned = plan(spec)
    done = held(lake, planned.steps)
    if len(done) < len(planned.steps):
        check_evidence(lake, planned.spec, done[:1])
        _announce(spec, {step.name for step in planned.steps[len(done) :]})
        with course_of([step.name for step in planned.steps], expected_seconds(lake, planned, len(done))):
            found = _orchestrated(spec, lake)
        return summarise(lake, spec, *found)
    log.info("all %d stages are in the lake already: nothing to compute", len(done))
    if not is_published(lake, planned.run):
        publish(lake, planned, done)
    return summarise(lake, spec, planned.run, done)


def _announce(spec: AuditSpec, left: set[str]) -> None:
    """Log before a long stage, which logs nothing until its end."""
    for name in spec.methods.running():
        why = spec.methods.named(name).takes_long() if f"detect {name}" in left else ""
        if why:
            log.info(why)


def _orchestrated(spec: AuditSpec, lake: Lake) -> tuple[str, list[Partition]]:
    """Run the flow; the run id is the flow's, as the source may have changed meanwhile."""
    with _loading_meanwhile(), prefect_api(lake):
        from flows.audit import audit  # starts Prefect, and only when there is work

        found = audit(spec=spec.model_dump(mode="json"), lake=lake.location)
    return found["run"], [Partition.model_validate(entry) for entry in found["partitions"]]


@contextmanager
def _loading_meanwhile() -> Iterator[None]:
    """Load what the stages will need while the API starts, which is a process of its own: both take seconds."""
    loading = threading.Thread(target=_load, daemon=True)
    loading.start()
    try:
        yield
    finally:
        if not stop_requested():
            loading.join()  # an audit that fails at once would end the process in the middle of an import


def _load() -> None:
    prepare_engine()
    import_module("skops.io")
