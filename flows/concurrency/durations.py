"""How long each stage of an audit took before, from the manifests of the lake."""

from collections.abc import Collection, Sequence
from statistics import fmean

from flows.runs.index import Run, in_order, runs_of
from schemas.errors import EvenhandError
from tasks.lake.store import Lake
from tasks.plan import Plan


def expected_seconds(lake: Lake, planned: Plan, held: int) -> list[float | None]:
    """Seconds of every step, by the newest run of the same audit, or of the same data if there is one.

    Args:
        lake: of the audit.
        planned: the audit.
        held: number of first steps that the lake holds already: they take no time.

    Returns:
        One entry for each step; None where no earlier run has such a stage, or a manifest cannot be read.
    """
    try:
        runs = runs_of(lake, planned.spec.name)
    except EvenhandError:
        return [None] * len(planned.steps)
    donor = max(runs, key=lambda run: (run.source_sha256 == planned.source_sha256, *in_order(run)), default=None)
    stages = [step.stage.name for step in planned.steps]
    known = [None] * len(stages) if donor is None else _of_run(donor, stages)
    return [0.0 if at < held else seconds for at, seconds in enumerate(known)]


def _of_run(donor: Run, stages: Sequence[str]) -> list[float | None]:
    """Step by step where the run had the same stages, else by the mean of a stage's name."""
    took = [(p.stage, float(record["seconds"])) for p, record in zip(donor.partitions, donor.lineage, strict=True)]
    if [stage for stage, _ in took] == list(stages):
        return [seconds for _, seconds in took]
    by_name = {
        name: fmean(seconds for stage, seconds in took if stage == name) for name in {stage for stage, _ in took}
    }
    return [by_name.get(stage) for stage in stages]


def share_done(seconds: Sequence[float | None], done: Collection[int]) -> float:
    """Share of an audit that is done, from 0 to 1: of its expected seconds, or of its steps where not all are known.

    Args:
        seconds: of every step, as ``expected_seconds`` gives them.
        done: places of the steps that have ended.
    """
    known = [each for each in seconds if each is not None]
    total = sum(known)
    if len(known) < len(seconds) or total == 0.0:
        return len(done) / len(seconds)
    return sum(seconds[at] or 0.0 for at in done) / total
