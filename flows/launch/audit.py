"""Starts an audit: checks what the lake holds, and starts Prefect only if a stage is left to compute."""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from flows.partitions.years import spec_as_held
from flows.runs.record import Summary, is_published, publish, summarise
from flows.supervision.embedded_api import prefect_api
from flows.supervision.presence import at_work
from schemas.artifact import Partition
from schemas.audit.spec import AuditSpec
from tasks.ingest.registry import check_columns
from tasks.lake.store import Lake
from tasks.metrics.limits import check_limits
from tasks.pipeline.stop_request import stop_requested
from tasks.pipeline.validation import prepare_engine
from tasks.plan import held, plan

log = logging.getLogger("evenhand")


def run_audit(spec: AuditSpec, lake_root: Path | str) -> Summary:
    """Run one audit; compute nothing if the lake holds all of it.

    Raises:
        EvenhandError: as the stages say.
    """
    lake = Lake(lake_root)
    with at_work(lake, f"command-{os.getpid()}"):  # so that nothing that this run counts on is removed meanwhile
        return _audited(spec_as_held(spec, lake), lake)


def _audited(spec: AuditSpec, lake: Lake) -> Summary:
    check_columns(spec)
    check_limits(spec)
    planned = plan(spec)
    done = held(lake, planned.steps)
    if len(done) < len(planned.steps):
        _announce(spec, {step.name for step in planned.steps[len(done) :]})
        return summarise(lake, spec, *_orchestrated(spec, lake))
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
