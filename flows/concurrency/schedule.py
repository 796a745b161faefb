"""Order of the steps of an audit, and the forecast of their time, memory and disk."""

import errno
import logging
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from statistics import fmean
from typing import Any, NamedTuple, Protocol

from flows.runs.index import Run, in_order, runs_of
from flows.supervision.shutdown import end_if_leaving, leaving
from schemas.artifact import Partition
from schemas.audit.partition import Size
from schemas.errors import EvenhandError, InfrastructureError, SpecError, nearest
from schemas.tables.applications import REFUSALS, VALIDATIONS
from tasks.lake.store import Lake
from tasks.pipeline.progress import raise_if_stopped
from tasks.pipeline.resources import NAME, allowed_mb
from tasks.plan import Inputs, Plan, Step, inputs

# --------------------------------------------------------------------------------------------------------------------
# Graph of an audit's steps, by the tables that their stages declare: what each step waits for, what a step needs.
#
# Nothing is listed by hand: a step waits for every earlier step that writes a table it reads.


_OF_EVERY_STAGE = {REFUSALS.name, VALIDATIONS.name}


def waits_for(steps: Sequence[Step]) -> list[frozenset[int]]:
    """For each step, the places in ``steps`` of the earlier ones that write a table it reads."""
    written = [{table.name for table in step.stage.writes} | _OF_EVERY_STAGE for step in steps]
    reads = [{table.name for table in step.stage.reads} - {table.name for table in step.unread} for step in steps]
    return [frozenset(earlier for earlier in range(at) if written[earlier] & reads[at]) for at in range(len(steps))]


def until(steps: Sequence[Step], name: str) -> list[Step]:
    """A step and those that it needs, in order.

    Args:
        steps: of an audit.
        name: of a step, such as "detect cst", or of a stage: then of all its steps.

    Raises:
        SpecError: the audit has no such step.
    """
    matches = [at for at, step in enumerate(steps) if name in (step.name, step.stage.name)]
    if not matches:
        step_names = list(dict.fromkeys(step_name for step in steps for step_name in (step.name, step.stage.name)))
        raise SpecError(f"--until {name}: this audit has no such stage; {nearest(name, step_names)}")
    before = waits_for(steps)
    required: set[int] = set()
    remaining = list(matches)
    while remaining:
        at = remaining.pop()
        if at not in required:
            required.add(at)
            remaining += before[at]
    return [steps[at] for at in sorted(required)]


# --------------------------------------------------------------------------------------------------------------------
# Runs steps: each as soon as what it reads is there, of several at a time those that take longest first.
#
# A step that fails does not end the others: what runs goes on to its end and is kept, nothing new starts, and the first
# error in the order of the plan is raised. Scope: the order. Who computes a step: ``flows.execution``.


log = logging.getLogger("evenhand")

_LOOK_SECONDS = 0.2
"""Between two looks at whether the command was asked to stop."""


class Running(Protocol):
    """A step at work, such as a future of Python."""

    def add_done_callback(self, fn: Callable[[Any], object], /) -> None:
        """Call when it ends."""

    def result(self) -> Any:
        """Its partition, or its error raised."""


Start = Callable[[int, Inputs], Running]
"""Starts the step at a place on its artifacts."""
End = Callable[[int, Partition], None]
"""Called with the place of a step that ended; an error that it raises counts as one of that step."""


@dataclass
class Schedule:
    """Steps of an audit, several at a time or one."""

    steps: Sequence[Step]
    seconds: Sequence[float | None]
    """What each takes by earlier runs; steps of which nothing is known go first, in the order of the plan."""
    jobs: int
    done: dict[int, Partition] = field(default_factory=dict)
    errors: dict[int, Exception] = field(default_factory=dict)

    def run(self, start: Start, on_end: End) -> list[Partition]:
        """Run all steps; the partitions in the order of the plan.

        Raises:
            Exception: the first error in the order of the plan.
        """
        running: dict[int, Running] = {}
        ended: SimpleQueue[int] = SimpleQueue()
        while True:
            raise_if_stopped()
            for at in self.ready(running)[: self.jobs - len(running)]:
                running[at] = start(at, inputs(self.steps[at], self.before(at)))
                running[at].add_done_callback(partial(_put, ended, at))
            if not running:
                end_if_leaving()
                break
            at = _next(ended)
            self._keep(at, running.pop(at), on_end)
        if self.errors:
            raise self._first_error()
        return [self.done[at] for at in sorted(self.done)]

    def ready(self, running: Collection[int]) -> list[int]:
        """Steps that may start, longest first, or in the order of the plan; none after an error or while leaving."""
        if self.errors or leaving():
            return []
        waits = waits_for(self.steps)
        free = [at for at in range(len(self.steps)) if at not in self.done and at not in running]
        return sorted((at for at in free if waits[at] <= self.done.keys()), key=self._urgency)

    def _urgency(self, at: int) -> tuple[float, int]:
        seconds = self.seconds[at] if self.jobs > 1 else None
        return (float("-inf") if seconds is None else -seconds), at

    def before(self, at: int) -> list[Partition]:
        """What earlier steps wrote, in the order of the plan: a step reads the same at any number of jobs."""
        return [self.done[place] for place in sorted(self.done) if place < at]

    def _keep(self, at: int, ended: Running, on_end: End) -> None:
        try:
            self.done[at] = ended.result()
            on_end(at, self.done[at])
        except Exception as error:
            self.errors[at] = error

    def _first_error(self) -> Exception:
        first, *other_places = sorted(self.errors)
        if self.jobs == 1:
            return self.errors[first]
        for at in other_places:
            error = self.errors[at]
            # of errors that are not ours the kind, since their words may hold values of rows
            words = str(error).split("\n")[0] if isinstance(error, EvenhandError) else type(error).__name__
            log.info("stage %s failed, too: %s", self.steps[at].name, words)
        log.info("stage %s failed; %d of %d stages are kept", self.steps[first].name, len(self.done), len(self.steps))
        return self.errors[first]


def _put(ended: "SimpleQueue[int]", at: int, _: object) -> None:
    ended.put(at)


def _next(ended: "SimpleQueue[int]") -> int:
    while True:
        try:
            return ended.get(timeout=_LOOK_SECONDS)
        except Empty:
            raise_if_stopped()


# --------------------------------------------------------------------------------------------------------------------
# How long each stage of an audit took before, from the manifests of the lake.


def expected_seconds(lake: Lake, planned: Plan, cached_count: int) -> list[float | None]:
    """Seconds of every step, by the newest run of the same audit, or of the same data if there is one.

    Args:
        lake: of the audit.
        planned: the audit.
        cached_count: number of first steps that the lake holds already: they take no time.

    Returns:
        One entry for each step; None where no earlier run has such a stage, or a manifest cannot be read.
    """
    try:
        runs = runs_of(lake, planned.spec.name)
    except EvenhandError:
        return [None] * len(planned.steps)
    donor = max(runs, key=lambda run: (run.source_sha256 == planned.source_sha256, *in_order(run)), default=None)
    stages = [step.stage.name for step in planned.steps]
    recorded = [None] * len(stages) if donor is None else _of_run(donor, stages)
    return [0.0 if at < cached_count else seconds for at, seconds in enumerate(recorded)]


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
    known_seconds = [duration for duration in seconds if duration is not None]
    total = sum(known_seconds)
    if len(known_seconds) < len(seconds) or total == 0.0:
        return len(done) / len(seconds)
    return sum(seconds[at] or 0.0 for at in done) / total


# --------------------------------------------------------------------------------------------------------------------
# Forecast of the memory that stages need, alone and side by side, and the refusal of what will not fit.
#
# A stage needs what it took in the run of the same audit that is nearest in rows, in proportion to them, and at least
# what it says of itself by a measured line in rows. Where neither is known of a stage, nothing is forecast. What an
# audit may take: ``tasks.pipeline.resources``.


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


def need_of(
    planned: Plan, remaining_steps: Sequence[Step], runs: Sequence[Run], rows: int | None, jobs: int = 1
) -> Need | None:
    """The stages of those left that need the most memory at the same time; None where nothing is known of any.

    Args:
        planned: the audit.
        remaining_steps: steps to run.
        runs: earlier runs of the same audit.
        rows: of its source; None where they are not known.
        jobs: stages at a time.
    """
    if rows is None:
        return None
    near = [run for run in runs if run.rows and max(rows / run.rows, run.rows / rows if rows else 0) <= FURTHEST]
    donors = sorted(near, key=lambda run: abs(run.rows - rows))
    size = Size.of(rows, planned.spec.sampling)
    grown = [max(_by_runs(step, planned, donors, rows), _own(step, planned, size)) for step in remaining_steps]
    if not any(grown):
        return None
    if jobs == 1:
        most = grown.index(max(grown))  # the first of equal ones: a peak may be the process's
        return Need(remaining_steps[most].name, IMPORTS_MB + grown[most], rows)
    # the heaviest independent stages, at most ``jobs``, plus the command and its server process
    heaviest = max(_independent(_before(remaining_steps), jobs), key=lambda steps: sum(grown[at] for at in steps))
    first, *other_places = sorted(heaviest, key=lambda at: -grown[at])
    mb = 2 * IMPORTS_MB + sum(grown[at] for at in heaviest)
    return Need(remaining_steps[first].name, mb, rows, tuple(remaining_steps[at].name for at in other_places))


def _by_runs(step: Step, planned: Plan, donors: Sequence[Run], rows: int) -> float:
    """MB that a stage took beyond imports in an earlier run, in proportion to rows; 0 where none has it."""
    names = [planned_step.stage.name for planned_step in planned.steps]
    for run in donors:
        of_stage = [at for at, partition in enumerate(run.partitions) if partition.stage == step.stage.name]
        if [partition.stage for partition in run.partitions] == names:
            of_stage = [planned.steps.index(step)]
        peaks = [float(run.lineage[at].get("peak_memory_mb", 0.0)) for at in of_stage]
        if peaks:
            return max(max(peaks) - IMPORTS_MB, 0.0) * rows / run.rows
    return 0.0


def _own(step: Step, planned: Plan, size: Size) -> float:
    """Forecast of a stage in MB beyond imports, of a detection its method's; 0 where a stage makes none."""
    name = step.name.removeprefix("detect ")
    return (step.settings if name == step.name else planned.spec.methods.named(name)).forecast_mb(size)


def _before(steps: Sequence[Step]) -> list[frozenset[int]]:
    """For each step, the places of all that have to end before it starts."""
    predecessors: list[frozenset[int]] = []
    for direct in waits_for(steps):
        predecessors.append(direct.union(*(predecessors[at] for at in direct)))
    return predecessors


def _independent(
    before: Sequence[frozenset[int]], most: int, chosen: tuple[int, ...] = ()
) -> Iterator[tuple[int, ...]]:
    """Every set of at most so many mutually independent steps, as places in order."""
    if chosen:
        yield chosen
    if len(chosen) < most:
        for at in range(chosen[-1] + 1 if chosen else 0, len(before)):
            if before[at].isdisjoint(chosen):
                yield from _independent(before, most, (*chosen, at))


def side_by_side(steps: Sequence[Step], most: int) -> int:
    """How many of the steps can run at the same time at most, up to ``most``."""
    return max((len(places) for places in _independent(_before(steps), most)), default=0)


def check_memory(
    lake: Lake, planned: Plan, done: Sequence[Partition], *, rows: int | None = None, jobs: int = 1, force: bool = False
) -> None:
    """Refuse an audit if its remaining stages do not fit in memory.

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
    row_count = done[0].tables[0].rows if done else rows
    need = need_of(planned, planned.steps[len(done) :], runs, row_count, jobs)
    if need is not None and need.mb > allowed:
        narrower = "a narrower source.keep" if planned.spec.source.keep else "fewer rows by source.keep"
        changes = ("fewer --jobs",) * bool(need.beside) + (narrower, f"more by {NAME}")
        refuse(_memory_words(need, allowed, changes), force=force)


def check_years(remaining_years: Sequence[YearNeed], workers: int, *, force: bool) -> None:
    """Refuse a back-fill if its largest years, run at the same time, do not fit in memory.

    Args:
        remaining_years: years of which something is to be computed.
        workers: years at a time.
        force: whether it goes on all the same, with a warning.

    Raises:
        InfrastructureError: the forecast is above what the back-fill may take, or EVENHAND_MEMORY is no size.
    """
    allowed = allowed_mb()
    known_needs = sorted(
        ((year.need, year.year) for year in remaining_years if year.need), key=lambda pair: -pair[0].mb
    )[:workers]
    total = sum(need.mb for need, _ in known_needs)
    if total > allowed:
        need, year = known_needs[0]
        at_once = f" ({len(known_needs)} years at a time take {_gb(total)})" * (len(known_needs) > 1)
        fewer = ("fewer --workers",) * (len(known_needs) > 1) + ("fewer --jobs",) * bool(need.beside)
        changes = (*fewer, "fewer rows by source.keep", f"more by {NAME}")
        refuse(f"{year}: {_memory_words(need, allowed, changes)}{at_once}", force=force)


def refuse(why: str, *, force: bool) -> None:
    """Refuse what will not fit, or with --force only warn of it.

    Raises:
        InfrastructureError: it will not fit.
    """
    if not force:
        raise InfrastructureError(why)
    log.warning("%s; it goes on, as --force is given", why)


def _memory_words(need: Need, allowed: float, changes: Sequence[str]) -> str:
    beside = f" beside {', '.join(need.beside)}" if need.beside else ""
    forecast_text = f"stage {need.stage}{beside} will need about {_gb(need.mb)} for {need.rows:,} rows"
    return f"{forecast_text}, and the audit may take {_gb(allowed)}; {', or '.join(changes)}; --force goes on"


def _gb(mb: float) -> str:
    return f"{mb / 1000:.1f} GB"


# --------------------------------------------------------------------------------------------------------------------
# Room on the disk of a lake: asked for before an audit begins, by what earlier runs wrote, and told where it runs out.
#
# A stage writes what it wrote in the run of the same audit that is nearest in rows, in proportion to them; where
# nothing is known of one, nothing is forecast. That a disk may hold less than a forecast says is seen when a stage
# writes.


SPARE_MB = 64.0
"""Left free whatever is written, as ``tasks.lake.store`` has it."""
_MB = 1e6
_FULL = (errno.ENOSPC, errno.EDQUOT)


def check_disk(
    lake: Lake, planned: Plan, done: Sequence[Partition], *, rows: int | None = None, force: bool = False
) -> None:
    """Refuse an audit that would not fit on the disk of its lake; a lake at a URI has none here.

    Args:
        lake: of the audit; its earlier runs tell what stages wrote.
        planned: the audit.
        done: partitions of its first steps that the lake holds.
        rows: of its source, as far as they are known before ingest has counted them.
        force: whether it goes on all the same, with a warning.

    Raises:
        InfrastructureError: the forecast is above what is left.
    """
    row_count = done[0].tables[0].rows if done else rows
    if row_count is None or not Path(lake.location).is_dir():
        return
    try:
        runs = runs_of(lake, planned.spec.name)
    except EvenhandError:  # a manifest that was altered is told by who reads it for its sake
        return
    donors = sorted((run for run in runs if run.rows), key=lambda run: abs(run.rows - row_count))
    required, room = 0.0, free_mb(lake) - SPARE_MB
    for step in planned.steps[len(done) :]:
        required += _of_stage(lake, step, donors, row_count)
        if required > room:
            refuse(_disk_words(lake, step.name, required), force=force)
            return


def check_years_on_disk(lake: Lake, sizes: Sequence[int | None], *, force: bool) -> None:
    """Refuse a back-fill if its years together do not fit on the disk.

    Args:
        lake: of the back-fill.
        sizes: bytes of each year that is left; None where nothing is known.
        force: whether it goes on all the same, with a warning.

    Raises:
        InfrastructureError: the forecast is above what is left.
    """
    total = sum(size or 0 for size in sizes) / _MB
    if Path(lake.location).is_dir() and total > free_mb(lake) - SPARE_MB:
        refuse(_disk_words(lake, f"{len(sizes)} years", total), force=force)


def free_mb(lake: Lake) -> float:
    """What is left on the disk where the lake keeps files on this machine."""
    return shutil.disk_usage(lake.storage.local).free / _MB


@contextmanager
def telling_full_disk(lake: Lake, stage: str) -> Iterator[None]:
    """Reports a disk that is full while a stage writes, with the names of the lake and of the stage.

    Raises:
        InfrastructureError: the disk is full.
    """
    try:
        yield
    except (OSError, InfrastructureError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if not (isinstance(cause, OSError) and cause.errno in _FULL):
            raise
        raise InfrastructureError(
            f"{lake.location} has {free_mb(lake):,.0f} MB left and {stage} needs more; nothing of it was kept: free "
            "some (`evenhand gc`), or give a larger disk, and run again: finished stages are kept"
        ) from cause


def _of_stage(lake: Lake, step: Step, donors: Sequence[Run], rows: int) -> float:
    """MB that a stage writes; 0 where no run has it."""
    for run in donors:
        sizes = [_size(lake, partition) for partition in run.partitions if partition.stage == step.stage.name]
        if sizes:
            return max(sizes) / _MB * rows / run.rows
    return 0.0


def _size(lake: Lake, partition: Partition) -> int:
    files = [Path(lake.location, path) for path in (*(a.path for a in partition.tables), *partition.files)]
    return sum(file.stat().st_size for file in files if file.is_file())


def _disk_words(lake: Lake, what: str, mb: float) -> str:
    return (
        f"{lake.location} has {free_mb(lake):,.0f} MB left and {what} needs about {mb + SPARE_MB:,.0f} MB; free some "
        "space (`evenhand gc --keep N`), or give a larger disk with --lake; --force goes on"
    )
