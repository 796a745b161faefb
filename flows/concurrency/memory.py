"""Forecast of the memory that stages need, alone and side by side, and the refusal of what will not fit.

A stage needs what it took in the run of the same audit that is nearest in rows, in proportion to them, and at least
what it says of itself by a measured line in rows. Where neither is known of a stage, nothing is forecast. What an audit
may take: ``tasks.pipeline.lineage.memory``.
"""

import logging
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from flows.concurrency.graph import waits_for
from flows.runs.index import Run, runs_of
from schemas.artifact import Partition
from schemas.audit.partition import Size
from schemas.errors import EvenhandError, InfrastructureError
from tasks.lake.store import Lake
from tasks.pipeline.lineage.memory import NAME, allowed_mb
from tasks.plan import Plan, Step

log = logging.getLogger("evenhand")

IMPORTS_MB = 400.0
"""What a process of stages holds before it reads a row; workers share it with the server that they are forked from."""
FURTHEST = 4.0
"""Times as many rows, or as few, of which a run's memory still tells something."""


class Need(NamedTuple):
    """Stages that need the most memory at the same time, of those left to run."""

    stage: str
    """The one that needs most."""
    mb: float
    """All of them together, with what their processes hold."""
    rows: int
    """Of the source, that it is forecast for."""
    beside: tuple[str, ...] = ()
    """The others, largest first."""


class YearNeed(Protocol):
    """What is forecast of a year."""

    @property
    def year(self) -> int:
        """The year."""

    @property
    def need(self) -> Need | None:
        """Its memory; None where nothing is known of any stage."""


def need_of(planned: Plan, left: Sequence[Step], runs: Sequence[Run], rows: int | None, jobs: int = 1) -> Need | None:
    """The stages of those left that need the most memory at the same time; None where nothing is known of any.

    Args:
        planned: the audit.
        left: steps to run.
        runs: earlier runs of the same audit.
        rows: of its source; None where they are not known.
        jobs: stages at a time.
    """
    if rows is None:
        return None
    near = [run for run in runs if run.rows and max(rows / run.rows, run.rows / rows if rows else 0) <= FURTHEST]
    donors = sorted(near, key=lambda run: abs(run.rows - rows))
    size = Size.of(rows, planned.spec.sampling)
    grown = [max(_by_runs(step, planned, donors, rows), _own(step, planned, size)) for step in left]
    if not any(grown):
        return None
    if jobs == 1:
        most = grown.index(max(grown))  # the first of equal ones: a peak may be the process's
        return Need(left[most].name, IMPORTS_MB + grown[most], rows)
    return _side_by_side(left, grown, rows, jobs)


def _by_runs(step: Step, planned: Plan, donors: Sequence[Run], rows: int) -> float:
    """MB that a stage took beyond imports in an earlier run, in proportion to rows; 0 where none has it."""
    names = [each.stage.name for each in planned.steps]
    for run in donors:
        of_stage = [at for at, each in enumerate(run.partitions) if each.stage == step.stage.name]
        if [each.stage for each in run.partitions] == names:
            of_stage = [planned.steps.index(step)]
        peaks = [float(run.lineage[at].get("peak_memory_mb", 0.0)) for at in of_stage]
        if peaks:
            return max(max(peaks) - IMPORTS_MB, 0.0) * rows / run.rows
    return 0.0


def _own(step: Step, planned: Plan, size: Size) -> float:
    """MB beyond imports that a stage says it needs, of a detection its method; 0 where it says nothing."""
    name = step.name.removeprefix("detect ")
    return (step.settings if name == step.name else planned.spec.methods.named(name)).forecast_mb(size)


def _side_by_side(left: Sequence[Step], grown: Sequence[float], rows: int, jobs: int) -> Need:
    """The heaviest stages of which none waits for another, at most ``jobs``; the command itself beside their server."""
    heaviest = max(_independent(_before(left), jobs), key=lambda steps: sum(grown[at] for at in steps))
    first, *others = sorted(heaviest, key=lambda at: -grown[at])
    mb = 2 * IMPORTS_MB + sum(grown[at] for at in heaviest)
    return Need(left[first].name, mb, rows, tuple(left[at].name for at in others))


def _before(steps: Sequence[Step]) -> list[frozenset[int]]:
    """For each step, the places of all that have to end before it starts."""
    found: list[frozenset[int]] = []
    for direct in waits_for(steps):
        found.append(direct.union(*(found[at] for at in direct)))
    return found


def _independent(
    before: Sequence[frozenset[int]], most: int, chosen: tuple[int, ...] = ()
) -> Iterator[tuple[int, ...]]:
    """Every set of at most so many steps of which none waits for another, as places in order."""
    if chosen:
        yield chosen
    if len(chosen) < most:
        for at in range(chosen[-1] + 1 if chosen else 0, len(before)):
            if before[at].isdisjoint(chosen):
                yield from _independent(before, most, (*chosen, at))


def check_memory(
    lake: Lake, planned: Plan, done: Sequence[Partition], *, rows: int | None = None, jobs: int = 1, force: bool = False
) -> None:
    """Refuse an audit of which stages that are left would not fit.

    Args:
        lake: of the audit; its earlier runs tell what stages took.
        planned: the audit.
        done: partitions of its first steps that the lake holds.
        rows: of its source, as far as they are known before ingest has counted them.
        jobs: stages at a time.
        force: whether it goes on all the same, with a warning.

    Raises:
        InfrastructureError: the forecast is above what the audit may take, or EVENHAND_MEMORY is no size.
    """
    allowed = allowed_mb()
    try:
        runs = runs_of(lake, planned.spec.name)
    except EvenhandError:  # a manifest that was altered is told by who reads it for its sake
        return
    counted = done[0].tables[0].rows if done else rows
    need = need_of(planned, planned.steps[len(done) :], runs, counted, jobs)
    if need is not None and need.mb > allowed:
        refuse(_words(need, allowed, _changes(planned, need)), force=force)


def check_years(left: Sequence[YearNeed], workers: int, *, force: bool) -> None:
    """Refuse a back-fill whose largest years at the same time would not fit.

    Args:
        left: years of which something is to be computed.
        workers: years at a time.
        force: whether it goes on all the same, with a warning.

    Raises:
        InfrastructureError: the forecast is above what the back-fill may take, or EVENHAND_MEMORY is no size.
    """
    allowed = allowed_mb()
    known = sorted(((year.need, year.year) for year in left if year.need), key=lambda each: -each[0].mb)[:workers]
    total = sum(need.mb for need, _ in known)
    if total > allowed:
        need, year = known[0]
        at_once = f" ({len(known)} years at a time take {_gb(total)})" * (len(known) > 1)
        fewer = ("fewer --workers",) * (len(known) > 1) + ("fewer --jobs",) * bool(need.beside)
        changes = (*fewer, "fewer rows by source.keep", f"more by {NAME}")
        refuse(f"{year}: {_words(need, allowed, changes)}{at_once}", force=force)


def refuse(why: str, *, force: bool) -> None:
    """Refuse what will not fit, or warn of it where it is asked to go on.

    Raises:
        InfrastructureError: it will not fit.
    """
    if not force:
        raise InfrastructureError(why)
    log.warning("%s; it goes on, as --force asks", why)


def _words(need: Need, allowed: float, changes: Sequence[str]) -> str:
    beside = f" beside {', '.join(need.beside)}" if need.beside else ""
    given = f"stage {need.stage}{beside} will need about {_gb(need.mb)} for {need.rows:,} rows"
    return f"{given}, and the audit may take {_gb(allowed)}; {', or '.join(changes)}; --force goes on"


def _changes(planned: Plan, need: Need) -> tuple[str, ...]:
    narrower = "a narrower source.keep" if planned.spec.source.keep else "fewer rows by source.keep"
    return ("fewer --jobs",) * bool(need.beside) + (narrower, f"more by {NAME}")


def _gb(mb: float) -> str:
    return f"{mb / 1000:.1f} GB"
