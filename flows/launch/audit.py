"""Starts an audit: checks what the lake holds, and starts Prefect only if a stage is left."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from flows.concurrency.schedule import check_disk, check_memory, expected_seconds
from flows.concurrency.schedule import until as steps_until
from flows.concurrency.workers import default_jobs, start_loading, worthwhile
from flows.execution import check_evidence
from flows.partitions.forecast import expected_rows, shipped_seconds
from flows.partitions.part_spec import spec_to_audit
from flows.partitions.years import not_judged
from flows.runs.record import Summary, planned_in, publish_once, summarise
from flows.runs.signatures import trusted_signer
from flows.supervision.prefect_server import prefect_api
from flows.supervision.presence import at_work, command_id, killed
from schemas.artifact import Partition
from schemas.audit.partition import ALL, Sampling
from schemas.audit.spec import AuditSpec, check_decided
from schemas.errors import TooLittleEvidenceError
from tasks.ingest.registry import check_columns, unnamed_columns
from tasks.lake.store import Lake, of_record
from tasks.metrics.limits import check_limits
from tasks.pipeline.progress import course_of, forecast, stop_requested
from tasks.pipeline.resources import require_memory
from tasks.plan import Plan, held

# --------------------------------------------------------------------------------------------------------------------
# What `sampling: null` costs, said before an audit: how much longer stages take than with the default sample.


_GRAPH = {"connect": 1.1, "ablate": 1.5, "detect fgce": 1.0}
_ASKED = {"detect cst": 1.0, "detect cec": 1.0, "detect gcfn": 1.0}
"""Exponents by which CPU time grows with the rows: of the graph as measured from 20,000 to 418,000 rows (scale.md 9);
of questions in proportion to the rows, which bounds them from above."""


def cost_of_everybody(spec: AuditSpec, rows: int | None) -> str:
    """A sentence; empty where the spec samples, follows a paper, or has no method that would ask a sample.

    Args:
        spec: of the audit.
        rows: of its source, where they are known before it is read.
    """
    running = spec.methods.running()
    of_graph = list(_GRAPH) if "fgce" in running else []
    stages = [*of_graph, *(name for name in _ASKED if name.removeprefix("detect ") in running)]
    if spec.sampling is not None or spec.profile == "paper" or not stages:
        return ""
    sampling = Sampling()
    if rows is None:
        listed = stages[0] if len(stages) == 1 else f"{', '.join(stages[:-1])} and {stages[-1]}"
        return (
            f"sampling: null asks everybody: beyond {sampling.queries:,} complainants, or {sampling.graph_rows:,} rows "
            f"of a graph, {listed} take longer than with the default sample, and more memory"
        )
    times = {name: _times(name, rows, sampling) for name in stages}
    longer = [f"{name} {ratio:.1f} times" for name, ratio in times.items() if ratio >= 1.1]
    if not longer:
        return ""
    return (
        f"sampling: null asks everybody: by the growth with rows, {rows:,} rows take at most about so much longer than "
        f"with the default sample: {', '.join(longer)}"
    )


def _times(name: str, rows: int, sampling: Sampling) -> float:
    most, exponent = (sampling.graph_rows, _GRAPH[name]) if name in _GRAPH else (sampling.queries, _ASKED[name])
    return float(max(1.0, rows / most) ** exponent)


# --------------------------------------------------------------------------------------------------------------------
# Starts an audit: checks what the lake holds, and starts Prefect only if a stage is left to compute.


log = logging.getLogger("evenhand")
_SHOWN = 6
"""Names in a warning."""


def run_audit(
    spec: AuditSpec, lake_root: Path | str, jobs: int | None = None, *, force: bool = False, value: str | None = None
) -> Summary:
    """Run one audit; compute nothing if the lake holds all of it.

    Args:
        spec: of the audit.
        lake_root: directory or URI of the lake.
        jobs: stages at the same time; the default of ``default_jobs`` if left out.
        force: whether to go on where the forecast of memory says that it will not fit.
        value: the partition, of a spec with ``by``; every row of the year if left out.

    Raises:
        EvenhandError: as the stages say.
    """
    lake = Lake(lake_root)
    _tell_of_killed(lake)
    with at_work(lake, command_id()):  # so that nothing that this run counts on is removed meanwhile
        given_spec, spec = spec, spec_to_audit(spec, lake, value)
        summary = _audited(spec, lake, jobs or default_jobs(), force=force)
    warnings = [*_whole(given_spec, spec, value), *not_judged(given_spec, spec), *_unconfirmed(spec), *_unnamed(spec)]
    return replace(summary, warnings=[*summary.warnings, *warnings])


def run_until(
    spec: AuditSpec,
    lake_root: Path | str,
    stage: str,
    jobs: int | None = None,
    *,
    force: bool = False,
    value: str | None = None,
) -> list[dict[str, Any]]:
    """Run one stage and those that it needs; no verdict, manifest or report. Returns a row for each stage.

    Raises:
        SpecError: the audit has no such stage.
        EvenhandError: as the stages say.
    """
    lake = Lake(lake_root)
    _tell_of_killed(lake)
    with at_work(lake, command_id()):
        spec = spec_to_audit(spec, lake, value)
        planned = _checked(spec, lake)
        planned = replace(planned, steps=tuple(steps_until(planned.steps, stage)))
        done = held(lake, planned.steps)
        if len(done) < len(planned.steps):
            _, done = _computed(spec, lake, planned, done, Asked(jobs or default_jobs(), stage, force))
    steps = zip(planned.steps, done, strict=True)
    return [of_record(step.name, part.key, lake.lineage(part), part.reused) for step, part in steps]


def _tell_of_killed(lake: Lake) -> None:
    """Log which commands on this lake were killed before: they could not say so."""
    for words in killed(lake):
        log.warning(words)


def _whole(given_spec: AuditSpec, spec: AuditSpec, value: str | None) -> Iterator[str]:
    """Warns that an audit of a spec with ``by`` covered every row, where no partition was named."""
    if given_spec.by is not None and value is None and spec.source.part is None:
        yield (
            f"this is the partition `{ALL}`, every row of {spec.year}: --by-value VALUE audits one of "
            f"{given_spec.by.column}, `evenhand backfill` every one"
        )


def _unconfirmed(spec: AuditSpec) -> Iterator[str]:
    """The guesses of a drafted spec that the results rest on."""
    if spec.unconfirmed:
        advice = "`evenhand init --check SPEC` lists them, and the first page of the report says so"
        yield f"the spec has {len(spec.unconfirmed)} keys marked CHECK ({_shown(spec.unconfirmed)}); {advice}"


def _unnamed(spec: AuditSpec) -> Iterator[str]:
    """Warns of columns that the spec does not mention: a forgotten feature, or the decision under another name."""
    names = unnamed_columns(spec)
    if names:
        are = "column of the table is" if len(names) == 1 else "columns of the table are"
        yield f"{len(names)} {are} not in the spec: {_shown(names)}"


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _audited(spec: AuditSpec, lake: Lake, jobs: int, *, force: bool) -> Summary:
    planned = _checked(spec, lake)
    done = held(lake, planned.steps)
    if len(done) < len(planned.steps):
        trusted_signer(lake)  # before the stages: their result could not be published
        return summarise(lake, spec, *_computed(spec, lake, planned, done, Asked(jobs, force=force)))
    log.info("all %d stages are in the lake already: nothing to compute", len(done))
    publish_once(lake, planned, done)
    return summarise(lake, spec, planned.run, done)


def _checked(spec: AuditSpec, lake: Lake) -> Plan:
    check_decided(spec)
    check_columns(spec)
    check_limits(spec)
    return planned_in(lake, spec)


@dataclass(frozen=True)
class Asked:
    """How what is left is to run."""

    jobs: int
    """Stages at a time."""
    until: str = ""
    """The stage after which it ends; all if empty."""
    force: bool = False
    """Whether it goes on where the forecast of memory says that it will not fit."""


def _computed(
    spec: AuditSpec, lake: Lake, planned: Plan, done: list[Partition], settings: Asked
) -> tuple[str, list[Partition]]:
    """Run what is left; the run id and the partitions of all steps."""
    check_evidence(lake, planned.spec, done[:1])
    remaining_names = {step.name for step in planned.steps[len(done) :]}
    for name in spec.methods.running():  # a long stage logs nothing until its end
        why = spec.methods.named(name).takes_long() if f"detect {name}" in remaining_names else ""
        if why:
            log.info(why)
    rows = done[0].tables[0].rows if done else expected_rows(planned, lake)
    if longer := cost_of_everybody(spec, rows):
        log.info(longer)
    seconds = expected_seconds(lake, planned, len(done))
    settings = replace(settings, jobs=worthwhile(settings.jobs, seconds))
    if not settings.force:  # the flow warns, when it knows the rows
        check_memory(lake, planned, done, jobs=settings.jobs)
        check_disk(lake, planned, done, rows=rows)
    by_table = shipped_seconds(planned, None if done else rows, rows if done else None) if None in seconds else None
    with course_of([step.name for step in planned.steps], seconds, beside=settings.jobs > 1):
        if by_table is not None:
            forecast(by_table)
        return _orchestrated(spec, lake, settings)


def _orchestrated(spec: AuditSpec, lake: Lake, settings: Asked) -> tuple[str, list[Partition]]:
    """Run the flow; the run id is the flow's, as the source may have changed meanwhile."""
    lake.require_space(0, "an audit")  # Prefect's database is on that disk, too
    if not settings.force:
        require_memory("an audit")
    with _loading_meanwhile(settings.jobs) as load, prefect_api(lake, meanwhile=load):
        from flows.audit import audit  # starts Prefect, and only when there is work
        from flows.outcome.run_state import INSUFFICIENT, BreachError

        try:
            summary = audit(spec=spec.model_dump(mode="json"), lake=lake.location, **asdict(settings))
        except BreachError as error:  # the flow run fails where that is asked for; the command ends as it always does
            summary = error.summary
    if INSUFFICIENT in summary:
        raise TooLittleEvidenceError(summary[INSUFFICIENT])
    return summary["run"], [Partition.model_validate(entry) for entry in summary["partitions"]]


@contextmanager
def _loading_meanwhile(jobs: int) -> Iterator[Callable[[], object]]:
    """Load what the stages will need while the API starts in a separate process: both take seconds.

    With several jobs the stages run in other processes, and these load it at once. Else a thread does, when what this
    gives is called: a process is not forked while a thread loads.
    """
    if jobs > 1:
        start_loading(jobs)
        yield bool
        return
    loading = threading.Thread(target=_load, daemon=True)
    try:
        yield loading.start
    finally:
        if loading.ident is not None and not stop_requested():
            loading.join()  # an audit that fails at once would end the process in the middle of an import


def _load() -> None:
    from tasks.pipeline.validation import prepare_engine  # loads what judges tables, and a plan writes none

    prepare_engine()
