"""Status of each stage of a year: cached, missing or stale, with the reason.

A stage is cached if its partition is in the lake under today's key. The keys of the stages after the first missing one
are unknown until that one has run. Files are looked up and not read; ``evenhand verify`` reads them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from flows.partitions.attempts.record import Attempt, YearState
from flows.runs.index import Run, vintage_words
from schemas.artifact import Partition
from tasks.lake.store import Lake
from tasks.pipeline.lineage.digests import versions
from tasks.plan import Inputs, Plan, Step, walk


class StageState(StrEnum):
    """State of one stage of a year."""

    OK = "ok"
    MISSING = "missing"
    STALE_INPUT = "stale input"
    STALE_CODE = "stale code"
    STALE_SPEC = "stale spec"
    FAILED = "failed"
    RUNNING = "running"
    INSUFFICIENT = "insufficient"


_UNDONE = {
    YearState.RUNNING: StageState.RUNNING,
    YearState.FAILED: StageState.FAILED,
    YearState.INTERRUPTED: StageState.FAILED,
    YearState.INSUFFICIENT: StageState.INSUFFICIENT,
}
"""How the stage stands at which an attempt ended, or is, without a run to show for it."""


@dataclass(frozen=True)
class Stand:
    """One stage of a year: its state and the reason."""

    stage: str
    state: StageState
    reason: str = ""


def stands(planned: Plan, lake: Lake, before: Run | None, last: Attempt | None) -> tuple[Stand, ...]:
    """States of the stages of a plan.

    Args:
        planned: the year's plan as it is today.
        lake: where partitions are looked for.
        before: the run of the year that was finished last.
        last: the last attempt of the year by a back-fill.
    """
    held = len(walk(planned.steps, lambda step, given: _recorded(lake, step, given)))
    names = [step.name for step in planned.steps]
    ok = [Stand(name, StageState.OK) for name in names[:held]]
    if held == len(names):
        return tuple(ok)
    first = _first(names[held], planned, before, last)
    later = StageState.MISSING if first.state in _UNDONE.values() else first.state
    return (*ok, first, *(Stand(name, later, f"after {first.stage}") for name in names[held + 1 :]))


def told(attempt: Attempt) -> tuple[Stand, ...]:
    """States of the stages of a year, from the record of an attempt."""
    if attempt.run is not None:
        return tuple(Stand(name, StageState.OK) for name in attempt.stages)
    at = attempt.stages.index(attempt.stage) if attempt.stage in attempt.stages else -1
    own = Stand(attempt.stage, _UNDONE.get(attempt.state, StageState.OK), attempt.message)
    return tuple(
        own if place == at else Stand(name, StageState.OK if place < at else StageState.MISSING)
        for place, name in enumerate(attempt.stages)
    )


def _recorded(lake: Lake, step: Step, given: Inputs) -> Partition | None:
    key = step.stage.key(given, step.settings, step.modules)
    record = lake.storage.read(f"stages/{step.stage.name}/{key}/partition.json")
    return Partition.model_validate_json(record) if record is not None else None


def _first(stage: str, planned: Plan, before: Run | None, last: Attempt | None) -> Stand:
    """The first missing or stale stage, and the reason."""
    same_data = last is not None and last.source_sha256 in (None, planned.source_sha256)
    if last is not None and same_data and last.run is None and last.stage in (stage, ""):
        return Stand(stage, _UNDONE[last.state], last.message)
    if before is None:
        return Stand(stage, StageState.MISSING, "never run")
    found = list(_changes(planned, before))
    if not found:
        return Stand(stage, StageState.MISSING, f"the files of {before.run} were removed from the lake")
    return Stand(stage, found[0][0], "; ".join(reason for _, reason in found))


def _changes(planned: Plan, before: Run) -> Iterator[tuple[StageState, str]]:
    """Differences of today's data, code, libraries and spec from an earlier run."""
    if planned.source_sha256 != before.source_sha256:
        now = vintage_words(planned.spec.source.model_dump(mode="json")) or f"sha256 {planned.source_sha256[:12]}"
        yield StageState.STALE_INPUT, f"the data are now {now}, and were {before.vintage}"
    if planned.code != before.code:
        yield StageState.STALE_CODE, f"the code has changed since {before.run}"
    libraries = versions()
    moved = [
        f"{name} {before.versions.get(name)} -> {now}"
        for name, now in libraries.items()
        if before.versions.get(name) != now
    ]
    if moved:
        yield StageState.STALE_CODE, f"other libraries: {', '.join(moved)}"
    keys = _differing(planned.spec.model_dump(mode="json"), before.spec)
    if keys:
        yield StageState.STALE_SPEC, f"the spec has changed: {', '.join(keys)}"


def _differing(now: Mapping[str, Any], then: Mapping[str, Any]) -> Sequence[str]:
    """The keys of two specs that differ; where a file lies tells nothing of what is in it."""
    found = []
    for name in sorted({*now, *then} - {"path", "vintage_file", "expected"}):  # the last one decides no result
        mine, other = now.get(name), then.get(name)
        if name in ("source", "model", "file") and isinstance(mine, Mapping) and isinstance(other, Mapping):
            found += [f"{name}.{key}" for key in _differing(mine, other)]
        elif mine != other:
            found.append(name)
    return found
