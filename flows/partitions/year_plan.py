"""What a back-fill by partition would run, with expected time and memory."""

import hashlib
import json
import logging
import math
import os
import re
import socket
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from flows.concurrency.schedule import FURTHEST, IMPORTS_MB, side_by_side
from flows.partitions.attempts import Attempt, Recorder, YearState, latest, lock_of
from flows.partitions.part_spec import spec_of_part
from flows.partitions.partition_list import Listed, before, by_of, keep_listing, listing, newest, without_value
from flows.partitions.runners import at_a_time, identity, least_divided
from flows.runs.index import Run, read_manifest, runs_of
from flows.runs.signatures import verify_run
from schemas.audit.partition import ALL, By
from schemas.audit.spec import AuditSpec, without_places
from schemas.errors import EvenhandError, InfrastructureError, SpecError, nearest
from schemas.terms import ExitCode
from tasks.lake import log
from tasks.lake.store import Lake, stage_runs
from tasks.pipeline.registry import validated
from tasks.pipeline.resources import NAME, allowed_mb
from tasks.plan import Plan, plan

if TYPE_CHECKING:
    from flows.partitions.runners import Capacity


# --------------------------------------------------------------------------------------------------------------------
# One year, or one partition of it, that a back-fill has to audit.


@dataclass(frozen=True)
class Asked:
    """One year to audit, or one partition of it."""

    spec: dict[str, Any]
    year: int
    lake: str
    force: bool
    jobs: int
    before: int = 0
    """Number of the last attempt before this back-fill."""
    listed: dict[str, Any] | None = None
    """The partition, as ``Listed``; None of a whole year."""
    conditions: str = ""
    large: bool = False
    """Whether it is for Dask workers with the resource ``large`` alone."""
    goes_on: int = 0
    """Number of the attempt that its stages began as tasks, with which its audit goes on; 0 without one."""

    @property
    def value(self) -> str:
        """The partition; empty of a whole year."""
        return str(self.listed["value"]) if self.listed else ""

    def begun(self) -> bool:
        """Whether this back-fill has begun with it; the stages that ran as tasks do not count."""
        last = latest(Lake(self.lake), self.spec["name"], self.year, self.value)
        if last is None or last.attempt != self.goes_on:
            return last is not None and last.attempt > self.before
        return (last.pid, last.host) != (os.getpid(), socket.gethostname())

    def ended(self) -> Attempt | None:
        """The record of this back-fill's attempt; None if none has ended."""
        last = latest(Lake(self.lake), self.spec["name"], self.year, self.value)
        return last if last and last.attempt > self.before and last.state is not YearState.INTERRUPTED else None

    def where(self) -> AbstractContextManager[Any]:
        """Within it the task is submitted to the workers that it is for; prefect-dask takes annotations along."""
        if not self.large:
            return nullcontext()
        import dask

        annotated: AbstractContextManager[Any] = dask.annotate(  # type: ignore[attr-defined]
            resources={"large": 1}
        )
        return annotated


def attempts_before(audit: str, year: int, lake: str, value: str = "") -> int:
    """Number of the last attempt at a year or a partition; 0 without one."""
    last = latest(Lake(lake), audit, year, value)
    return last.attempt if last else 0


# --------------------------------------------------------------------------------------------------------------------
# Expected CPU time and memory of an audit, before it is run.
#
# Between two runs of the same audit a stage lies on the line through the logarithms of rows and seconds. Beyond them it
# grows from the nearest run as in a table of several sizes, which `evenhand bench forecast --write` measures. A stage
# that no run of the lake has is taken from the table, scaled by groups and by how fast this machine is. Beyond the
# table it goes on as between its last two sizes, up to ``BEND``. It is a guide, and no promise.


BEND: Final = 20_000
"""Usable rows at which growth was measured to change."""
GROWTH: Final[Mapping[str, tuple[float, float]]] = {
    "connect": (0.6, 1.1),
    "generate": (0.3, 1.0),
    "ablate": (1.1, 1.5),
    "rerank": (0.3, 1.0),
    "detect fgce": (0.0, 1.0),
    "detect cst": (0.5, 1.0),
    "detect cec": (0.4, 1.0),
    "detect raguel": (0.1, 1.0),
}
"""Step -> exponents of rows below and above ``BEND``: Texas 2022, 10,000 to 20,000 and 20,000 to 418,000 rows."""
_OTHERS: Final = (0.6, 1.0)
BY_GROUP: Final = frozenset(
    {"detect fgce", "detect cst", "detect cec", "adjust", "follow", "rerank", "measure", "publish"}
)
"""Steps that do most of their work once a group; `evenhand bench forecast` prints how well that holds."""
_OF_GRAPH: Final = ("connect", "ablate", "detect fgce")
"""Steps that look at ``sampling.graph_rows`` rows at most, and where there are more, five times."""
_OF_QUERIES: Final = ("detect gcfn",)
"""Steps that query ``sampling.queries`` applicants outside the reference group at most, about half of the rows."""
_OF_POOL: Final = ("detect cst", "detect cec")
"""Steps that compare with ``sampling.pool_rows`` rows at most."""
SAMPLED: Final = frozenset({*_OF_GRAPH, *_OF_QUERIES, *_OF_POOL})
"""Steps with time that a sample bounds: of more rows a run says nothing about an audit without a sample."""
_DRAWS: Final = 5
_STEEPEST: Final = 1.5
"""Exponent of rows beyond the sizes of the table, at most."""
COSTS: Final = Path(__file__).with_name("costs.json")


@dataclass(frozen=True)
class Past:
    """A run: what its steps took."""

    usable: int
    cpu_seconds: Mapping[str, float]
    peak_mb: Mapping[str, float]


@dataclass(frozen=True)
class Measured:
    """Runs of lenders of several sizes on one machine, which are shipped."""

    yardstick_seconds: float
    """What a fixed piece of work took there."""
    groups: int
    """Of the audit spec that was run."""
    runs: tuple[Past, ...]
    """Partitions, whose report is short."""
    full_runs: tuple[Past, ...]
    """The same lenders in full, as an audit without partitions is."""
    usable_share: float = 1.0
    """Share of the rows of a source of HMDA that is usable."""
    fixed: Mapping[str, float] = field(default_factory=dict)
    """Seconds of a step of ``BY_GROUP`` that it takes however few groups there are."""

    @classmethod
    @cache
    def shipped(cls) -> "Measured":
        """The table of this version."""
        table = json.loads(COSTS.read_bytes())
        short, full = (tuple(Past(**run) for run in table[name]) for name in ("runs", "full_runs"))
        head = table["yardstick_seconds"], table["groups"]
        return cls(*head, short, full, table["usable_share"], table["fixed"])

    def of(self, spec: AuditSpec) -> tuple[Past, ...]:
        """Runs that compute as much as an audit by this spec does."""
        return self.runs if spec.by and not spec.by.full else self.full_runs


@dataclass(frozen=True)
class Cost:
    """Expected cost of one audit."""

    cpu_seconds: float
    peak_mb: float
    measured_here: bool
    """Whether a run of this lake tells, and not a table."""


def past_runs(lake: Lake, runs: Sequence[Run]) -> list[Past]:
    """What the steps of runs took, a run for each power of two of usable rows: the newest.

    Raises:
        IntegrityError: a manifest is not the one that was written.
    """
    sizes = {round(math.log2(_usable(run))): run for run in runs if _usable(run)}  # the oldest first, by the index
    return [past_of(lake, run) for run in sizes.values()]


def past_of(lake: Lake, run: Run) -> Past:
    """What the steps of a run took.

    Raises:
        IntegrityError: its manifest is not the one that was written.
    """
    rows = list(stage_runs(read_manifest(lake, run.run)))
    cpu = {row["stage"]: float(row["cpu_seconds"]) for row in rows if row["cpu_seconds"] is not None}
    peak = {row["stage"]: float(row["peak_memory_mb"]) for row in rows if row["peak_memory_mb"] is not None}
    return Past(_usable(run), cpu, peak)


def expected_cost(
    spec: AuditSpec, steps: Sequence[str], usable: int, past: Sequence[Past], measured: Measured | None = None
) -> Cost:
    """Expected cost of the steps of an audit.

    Args:
        spec: of the audit, whose sampling bounds what some steps look at.
        steps: names, as in a plan.
        usable: rows.
        past: earlier runs of the same audit; those around it in rows that have a step tell of it.
        measured: what tells of steps that no earlier run has; the shipped table if left out.
    """
    measured = measured or Measured.shipped()
    seconds = sum(expected_steps(spec, steps, usable, past, measured))
    table = [run for run in measured.of(spec) if run.peak_mb]
    peak = _peak_mb(steps, usable, table)
    if with_peaks := [run for run in past if run.peak_mb]:
        run = min(with_peaks, key=lambda run: abs(math.log(run.usable / max(usable, 1))))
        peak += _peak_mb(steps, run.usable, [run]) - _peak_mb(steps, run.usable, table)
        if apart := _apart(with_peaks, usable):
            peak = _peak_mb(steps, usable, apart)
    return Cost(round(seconds, 1), round(max(peak, IMPORTS_MB), 1), bool(past))


def expected_steps(
    spec: AuditSpec, steps: Sequence[str], usable: int, past: Sequence[Past] = (), measured: Measured | None = None
) -> list[float]:
    """Expected CPU seconds of each step; arguments as of ``expected_cost``."""
    measured = measured or Measured.shipped()
    speed, groups = yardstick_seconds() / measured.yardstick_seconds, group_count(spec) / measured.groups
    seconds = []
    for step in steps:
        of_lake = _step_seconds(step, usable, spec, past, shape=measured.of(spec))
        of_table = None if of_lake is not None else _step_seconds(step, usable, spec, measured.of(spec), goes_on=True)
        took = of_table or 0.0  # without both it is a step of milliseconds, or a stage of the user's own
        fixed = min(measured.fixed.get(step, 0.0), took)
        took = fixed + (took - fixed) * groups if step in BY_GROUP else took
        seconds.append(of_lake if of_lake is not None else took * speed)
    return seconds


def _apart(runs: Sequence[Past], usable: int) -> tuple[Past, Past] | None:
    """Two runs for a line through so many rows: the next larger one, or the largest, and one of far fewer rows.

    None where the largest is far smaller: the memory that a process was left with would then count as growth.
    """
    by_rows = sorted(runs, key=lambda run: run.usable)
    if usable > FURTHEST * by_rows[-1].usable:
        return None
    high = next((run for run in by_rows if run.usable >= usable), by_rows[-1])
    low = next((run for run in reversed(by_rows) if run.usable * FURTHEST <= high.usable), None)
    return (low, high) if low is not None and low.usable <= usable else None


def _peak_mb(steps: Sequence[str], usable: int, runs: Sequence[Past]) -> float:
    """Peak of steps: on the line through the two sizes around it, or through the last two; it never falls."""
    peaks = sorted((run.usable, max(run.peak_mb.get(step, 0.0) for step in steps)) for run in runs)
    low, high = _around([of for of, _ in peaks], usable)
    (low_rows, low_mb), (high_rows, high_mb) = peaks[low], peaks[high]
    a_row = max(high_mb - low_mb, 0.0) / max(high_rows - low_rows, 1)
    return max(low_mb + a_row * (usable - low_rows), 0.0)


def _step_seconds(
    step: str,
    usable: int,
    spec: AuditSpec,
    runs: Sequence[Past],
    *,
    shape: Sequence[Past] = (),
    goes_on: bool = False,
) -> float | None:
    """CPU seconds of a step by runs of several sizes; None where none of them has it.

    Args:
        step: its name.
        usable: rows of the audit.
        spec: of the audit, whose sampling bounds what some steps look at.
        runs: of several sizes.
        shape: runs of the table, by which it grows beyond the sizes; by ``GROWTH`` where they do not have it.
        goes_on: whether beyond the sizes and below ``BEND`` it grows as between the last two, and not by ``GROWTH``.
    """
    sizes = {
        run.usable: run.cpu_seconds[step] / _draws(step, run.usable, spec) for run in runs if step in run.cpu_seconds
    }
    if not sizes:
        return None
    rows, draws = max(_looked_at(step, usable, spec), 1), _draws(step, usable, spec)
    looked_at = sorted({max(_looked_at(step, of, spec), 1): seconds for of, seconds in sorted(sizes.items())}.items())
    low, high = _around([of for of, _ in looked_at], rows)
    (low_rows, low_seconds), (high_rows, high_seconds) = looked_at[low], looked_at[high]
    nearest_rows, seconds = min((looked_at[low], looked_at[high]), key=lambda size: abs(math.log(size[0] / rows)))
    between = low_rows < rows < high_rows
    if high_rows == low_rows or not (between or goes_on) or min(low_seconds, high_seconds) <= 0:
        at, to = (_step_seconds(step, size, spec, shape, goes_on=True) or 0.0 for size in (nearest_rows, rows))
        return draws * seconds * (to / at if at and to else grown(step, nearest_rows, rows))
    exponent = math.log(high_seconds / low_seconds) / math.log(high_rows / low_rows)
    if between:
        return draws * seconds * float((rows / nearest_rows) ** exponent)
    exponent = min(max(exponent, 0.0), _STEEPEST)
    _, above = GROWTH.get(step, _OTHERS)
    below_bend = (min(rows, BEND) / min(nearest_rows, BEND)) ** exponent
    return draws * seconds * float(below_bend * (max(rows, BEND) / max(nearest_rows, BEND)) ** above)


def _around(sizes: Sequence[int], size: int) -> tuple[int, int]:
    """Places of the two sizes, in ascending order, around one; of the first or the last two beyond them."""
    high = min(max(bisect_left(sizes, size), 1), len(sizes) - 1)
    return max(high - 1, 0), max(high, 0)


def timed_yardstick() -> float:
    """CPU seconds that a fixed piece of work of Python and NumPy takes now: the least of five times."""
    times = []
    for _ in range(5):
        began, values = time.process_time(), np.random.default_rng(1).random(200_000)
        np.cumsum(np.exp(-np.sort(values)))
        sum(number & 7 for number in range(200_000))
        times.append(time.process_time() - began)
    return min(times)


yardstick_seconds = cache(timed_yardstick)
"""The same, timed once in a process."""


def group_count(spec: AuditSpec) -> int:
    """Groups of all protected attributes of a spec."""
    return sum(max(len(attribute.groups) + len(attribute.band_names), 2) for attribute in spec.protected)


def grown(step: str, of: int, to: int) -> float:
    """How many times as long a step takes of ``to`` usable rows as of ``of``."""
    below, above = GROWTH.get(step, _OTHERS)
    of, to = max(of, 1), max(to, 1)
    return float((min(to, BEND) / min(of, BEND)) ** below * (max(to, BEND) / max(of, BEND)) ** above)


def _looked_at(step: str, usable: int, spec: AuditSpec) -> int:
    if spec.sampling is None:
        return usable
    if step in _OF_QUERIES:
        return min(usable, 2 * spec.sampling.queries)
    if step in _OF_POOL:
        return min(usable, spec.sampling.pool_rows or usable)
    return min(usable, spec.sampling.graph_rows) if step in _OF_GRAPH else usable


def _draws(step: str, usable: int, spec: AuditSpec) -> int:
    return _DRAWS if step in _OF_GRAPH and _looked_at(step, usable, spec) < usable else 1


def _cpu_seconds(run: Run) -> float:
    return float(sum(record.get("cpu_seconds") or 0.0 for record in run.lineage))


def _usable(run: Run) -> int:
    return int(run.lineage[0]["rows"]["out"])


# --------------------------------------------------------------------------------------------------------------------
# What is left of a year's partitions: those done under today's conditions are not begun with again.
#
# A partition's conditions are what decides its result: the spec without other partitions, its own rows, the code, the
# libraries, and the published runs of the lake. A record under the same conditions whose run is in the lake as it was
# written stands, and costs neither a plan nor a process. One that failed twice alike under them is set aside.


@dataclass(frozen=True)
class Choice:
    """The partitions of a year that a command names."""

    values: tuple[str, ...] = ()
    """By their values; all without any."""
    limit: int | None = None
    """At most so many, the largest first, beside ``ALL``."""

    def of(self, listed: Sequence[Listed], year: int) -> list[Listed]:
        """Those of a year.

        Raises:
            SpecError: the year does not have one, or the limit is below 1.
        """
        if self.limit is not None and self.limit < 1:
            raise SpecError(f"--limit {self.limit}: expected 1 partition or more")
        values = [partition.value for partition in listed]
        for value in self.values:
            if value not in values:
                raise SpecError(f"--by-value {value}: {year} has no such partition; {nearest(value, values)}")
        if self.values:
            return [partition for partition in listed if partition.value in self.values]
        if self.limit is None:
            return list(listed)
        largest = [partition for partition in listed if not partition.too_few and partition.value != ALL][: self.limit]
        return [*(partition for partition in listed if partition.value == ALL), *largest]


@dataclass(frozen=True)
class Outlook:
    """The partitions of a year, by what is to be done with them."""

    year: int
    to_do: tuple[tuple[Listed, str], ...] = ()
    """Each with its conditions, the largest first."""
    settled: tuple[Attempt, ...] = ()
    """Done, or of too few people."""
    set_aside: tuple[Attempt, ...] = ()
    """Failed twice alike."""
    last_attempts: tuple[Attempt, ...] = field(default=(), repr=False)
    """Last attempts of all partitions, which tell how long they take."""


def outlook(spec: AuditSpec, year: int, listed: Sequence[Listed], lake: Lake, *, force: bool = False) -> Outlook:
    """What is left of some partitions of a year; writes the records of those with too few people.

    Args:
        spec: with ``by``.
        year: of the partitions.
        listed: the partitions.
        lake: of the audit.
        force: whether protected runs and partitions that were set aside are done again.
    """
    last, base = newest(lake, spec.name, year), _base(spec, year, lake)
    to_do, done_attempts, aside = [], [], []
    logged = log.entries(lake)
    for partition in sorted(listed, key=lambda partition: -partition.rows):
        conditions = hashlib.sha256(
            f"{base} {partition.value} {partition.rows_sha256} {partition.too_few}".encode()
        ).hexdigest()[:24]
        attempt = last.get(partition.value)
        same = attempt is not None and attempt.conditions == conditions
        if partition.too_few and same and attempt:
            done_attempts.append(attempt)
        elif partition.too_few:
            with lake.lock(lock_of(spec.name, year, partition.value)):
                recorder = Recorder(lake, spec.name, year, partition.value, rows=partition.rows, conditions=conditions)
                ended = recorder.end(YearState.TOO_FEW, ExitCode.INCONCLUSIVE, partition.too_few)
            done_attempts.append(ended)
        elif same and attempt and not force and _stands(attempt, lake, logged):
            done_attempts.append(attempt)
        elif same and attempt and not force and _failed_twice(attempt, lake):
            aside.append(attempt)
        else:
            to_do.append((partition, conditions))
    return Outlook(year, tuple(to_do), tuple(done_attempts), tuple(aside), tuple(last.values()))


def _base(spec: AuditSpec, year: int, lake: Lake) -> str:
    """Digest of the conditions that all partitions of a year share."""
    spec_by_column = spec.model_copy(update={"by": By(column=by_of(spec).column, full=by_of(spec).full)})
    published = lake.storage.glob("runs/*/protected/mark.json")
    model = Path(spec.model.file.path) if spec.model.file else None
    model_digest = hashlib.sha256(model.read_bytes()).hexdigest() if model and model.is_file() else ""
    conditions = [
        spec_by_column.model_dump(mode="json")
        | without_places(spec_by_column.source, spec_by_column.model, spec_by_column.protected),
        year,
        identity(),
        model_digest,
        published,
    ]
    return hashlib.sha256(json.dumps(conditions, sort_keys=True).encode()).hexdigest()


def _stands(attempt: Attempt, lake: Lake, logged: Sequence[log.Entry]) -> bool:
    """Whether it was audited and its run is as it was written, or holds nothing to compare."""
    if attempt.run is None:
        return attempt.state is YearState.INCONCLUSIVE
    if attempt.state is YearState.FAILED or not attempt.ended:
        return False
    try:
        verify_run(lake.location, attempt.run, logged=logged)
    except EvenhandError:
        return False  # the attempt that follows reports the fault
    return True


def _failed_twice(attempt: Attempt, lake: Lake) -> bool:
    if attempt.state is not YearState.FAILED:
        return False
    earlier = before(lake, attempt)
    return (
        earlier is not None
        and (earlier.state, earlier.conditions) == (attempt.state, attempt.conditions)
        and _alike(earlier.message) == _alike(attempt.message)
    )


def _alike(message: str) -> str:
    """A message without its numbers, such as the id of a process."""
    return re.sub(r"\d+", "0", message)


def outlooks(
    spec: AuditSpec, years: Sequence[int], lake: Lake, choice: Choice, *, force: bool = False
) -> tuple[list[Outlook], list[Attempt]]:
    """The partitions that remain of years, and the records of years with partitions that cannot be listed.

    Raises:
        SpecError: a chosen value is missing in a year.
    """
    year_outlooks, failed = [], []
    for year in years:
        try:
            listed = listing(spec, year, lake)
        except EvenhandError as error:
            with lake.lock(lock_of(spec.name, year)):
                failed.append(Recorder(lake, spec.name, year).end(YearState.FAILED, error.exit_code, str(error)))
            continue
        keep_listing(lake, spec.name, year, by_of(spec).column, listed)
        year_outlooks.append(outlook(spec, year, choice.of(listed, year), lake, force=force))
    return year_outlooks, failed


# --------------------------------------------------------------------------------------------------------------------
# What a back-fill of a spec with ``by`` would run, year by year: partitions to audit, held, too few, and the cost.


PartState = Literal["to audit", "held", "too few"]


@dataclass(frozen=True)
class PlannedPart:
    """One partition of a year."""

    value: str
    rows: int
    usable: int
    state: PartState
    why: str = ""
    """Of one that is too few."""
    run: str = ""
    """Of one that is held."""
    cost: Cost | None = None
    """Of one to be audited."""
    took: float | None = None
    """CPU seconds of the run of one that is held."""


@dataclass(frozen=True)
class PlannedYear:
    """The partitions of a year, ``ALL`` first, then the largest first."""

    year: int
    parts: tuple[PlannedPart, ...] = ()
    without_value: int = 0
    """Rows without a value of the column, and lines that could not be read; they are in ``ALL`` alone."""
    blocked: str = ""
    """Why the year cannot be audited as things are."""
    exit_code: ExitCode = ExitCode.WITHIN
    """Of what blocks it."""

    def count(self, state: PartState) -> int:
        """How many partitions there are in a state, ``ALL`` not among them."""
        return sum(part.state == state for part in self.parts if part.value != ALL)

    @property
    def cpu_seconds(self) -> float:
        """Expected, of all that is to be audited."""
        return sum(part.cost.cpu_seconds for part in self.parts if part.cost)

    @property
    def peak_mb(self) -> float:
        """Expected, of the partition that needs most."""
        return max((part.cost.peak_mb for part in self.parts if part.cost), default=0.0)

    @property
    def measured_here(self) -> bool:
        """Whether the cost is by runs of this lake, and not by a table."""
        return all(part.cost.measured_here for part in self.parts if part.cost)


def year_plans(spec: AuditSpec, years: Sequence[int], lake: Lake) -> list[PlannedYear]:
    """The partitions of each year; nothing is run and, but for what was counted, nothing written.

    Raises:
        IntegrityError: a manifest is not the one that was written.
    """
    runs = runs_of(lake, spec.name)
    past = past_runs(lake, runs)
    plans = []
    for year in years:
        try:
            planning = _Planning(spec, year, lake, [run for run in runs if run.year == year], past)
            parts = tuple(planning.part(partition) for partition in listing(spec, year, lake))
            plans.append(PlannedYear(year, parts, without_value(spec, year, lake).rows))
        except EvenhandError as error:
            plans.append(PlannedYear(year, blocked=str(error), exit_code=error.exit_code))
    return plans


def forecasts(
    spec: AuditSpec, year: int, listed: Sequence[Listed], lake: Lake, past: Sequence[Past]
) -> Iterator[tuple[Listed, Cost]]:
    """Expected cost of partitions of a year; without those that cannot be planned: their audit reports the reason."""
    planning, blocked = _Planning(spec, year, lake, (), past), set()
    for partition in listed:
        is_all = partition.value == ALL
        if is_all in blocked:
            continue
        try:
            yield partition, planning.cost(partition)
        except EvenhandError:
            blocked.add(is_all)  # planning each of a thousand would take long


@dataclass
class _Planning:
    """One year, with the steps that its partitions share."""

    spec: AuditSpec
    year: int
    lake: Lake
    runs: Sequence[Run]
    """Of the year."""
    past: Sequence[Past]

    def __post_init__(self) -> None:
        self._steps: dict[bool, list[str]] = {}

    def part(self, partition: Listed) -> PlannedPart:
        words = (partition.value, partition.rows, partition.usable)
        if partition.too_few:
            return PlannedPart(*words, "too few", partition.too_few)
        own_runs = {
            run.run: run
            for run in self.runs
            if run.value == partition.value and run.source_sha256 == partition.rows_sha256
        }
        # planning each of a thousand would take long
        if own_runs and (run := own_runs.get(self._planned(partition).run)):
            return PlannedPart(*words, "held", run=run.run, took=_cpu_seconds(run))
        return PlannedPart(*words, "to audit", cost=self.cost(partition))

    def cost(self, partition: Listed) -> Cost:
        is_all = partition.value == ALL
        if is_all not in self._steps:
            self._steps[is_all] = [step.name for step in self._planned(partition).steps]
        # the report of all rows is whole
        spec = self.spec.model_copy(update={"by": None}) if is_all else self.spec
        return expected_cost(spec, self._steps[is_all], partition.usable, self.past)

    def _planned(self, partition: Listed) -> Plan:
        return plan(spec_of_part(self.spec, self.year, partition, self.lake))


# --------------------------------------------------------------------------------------------------------------------
# What partitions will need beside what workers may take, before the first of them runs.
#
# The forecast is that of ``evenhand plan``. On this machine the largest partitions at a time share EVENHAND_MEMORY. On
# Dask a partition above the limit of a worker is for workers with the resource ``large``.


memory_log = logging.getLogger("evenhand")


class Expected(NamedTuple):
    """Memory that a partition will need."""

    named: str
    """Year and value."""
    mb: float
    usable: int
    measured_here: bool
    """Whether a run of this lake tells, and not a table of another machine."""
    at_once: int = 1
    """How many of its stages can run at the same time, each a task."""

    def words(self) -> str:
        """The partition and its figure."""
        return f"{self.named} will need about {_gb(self.mb)} for {self.usable:,} usable rows"


def fitted(tasks: Sequence[Asked], settings: Mapping[str, Any]) -> list[Asked]:
    """The partitions, those marked ``large`` that an ordinary Dask worker cannot take.

    Args:
        tasks: partitions of one audit.
        settings: of the runner, as ``RunnerSettings`` dumps it.

    Raises:
        InfrastructureError: the memory does not suffice, and none of them is forced.
    """
    workers = at_a_time(settings) if settings.get("address") is None else 1  # each worker of Dask has its own limit
    expected = _expected(tasks, workers)
    force = any(partition_task.force for partition_task in tasks)
    if settings.get("address") is None:
        check_together(list(expected.values()), workers, force=force)
        return list(tasks)
    from flows.partitions.runners import capacities

    address = str(settings["address"])
    large = for_large(list(expected.values()), capacities(address), address, force=force)
    large_keys = {key for key, forecast in expected.items() if forecast.named in large}
    return [
        replace(partition_task, large=(partition_task.year, partition_task.value) in large_keys)
        for partition_task in tasks
    ]


def check_together(expected: Sequence[Expected], workers: int, *, force: bool) -> None:
    """Refuse partitions where the largest that run at a time do not fit; only warn if the figure is of a table.

    One whose stages are tasks counts as often as stages of it can run at the same time.

    Raises:
        InfrastructureError: they do not fit by what runs of this lake took, or EVENHAND_MEMORY is no size.
    """
    tasks = [forecast for forecast in expected for _ in range(forecast.at_once)]
    most = sorted(tasks, key=lambda forecast: -forecast.mb)[:workers]
    total, allowed = sum(forecast.mb for forecast in most), allowed_mb()
    if total <= allowed:
        return
    kind = "partitions or stages" if any(forecast.at_once > 1 for forecast in most) else "partitions"
    at_once = f" ({len(most)} {kind} at a time take {_gb(total)})" * (len(most) > 1)
    fewer = "fewer --workers, or " * (len(most) > 1)
    why = (
        f"{most[0].words()}{at_once}, and the back-fill may take {_gb(allowed)}; {fewer}without the largest by "
        f"by.values, or fewer rows by source.keep, or more by {NAME}"
    )
    if not most[0].measured_here:
        memory_log.warning("%s; it goes on, since the figure is of a table: the lake has no run of this audit yet", why)
    else:
        _refuse(why, force=force)


def for_large(expected: Sequence[Expected], workers: "Sequence[Capacity]", address: str, *, force: bool) -> set[str]:
    """Names of the partitions that are for workers with the resource ``large``.

    Raises:
        InfrastructureError: there are some, and no such worker.
    """
    free = [worker.worker for worker in workers if math.isinf(worker.mb)]
    if free:
        memory_log.warning("the Dask worker %s has no memory limit: start workers with --memory-limit", free[0])
    usual = [worker for worker in workers if not worker.large] or workers
    least = min(usual, key=lambda worker: worker.mb, default=None)
    above = sorted(
        (forecast for forecast in expected if least and forecast.mb > least.mb), key=lambda forecast: -forecast.mb
    )
    if not above or least is None:
        return set()
    most = max((worker.mb for worker in workers if worker.large), default=0.0)
    if not most:
        start = (
            f"dask worker {address} --nthreads 1 --memory-limit {math.ceil(above[0].mb / 1000)}GB --resources large=1"
        )
        beside = f"and the Dask worker {least.worker} may take {_gb(least.mb)}"
        _refuse(f"{above[0].words()}, {beside}: start a larger one with `{start}`", force=force)
        return set()
    if above[0].mb > most:
        memory_log.warning(
            "%s, and no Dask worker with the resource large may take more than %s", above[0].words(), _gb(most)
        )
    return {forecast.named for forecast in above}


def _expected(tasks: Sequence[Asked], workers: int) -> dict[tuple[int, str], Expected]:
    """The forecasts by year and value; none where runs of the lake cannot be read, which their readers report."""
    spec, lake = validated(AuditSpec, tasks[0].spec), Lake(tasks[0].lake)
    try:
        past = past_runs(lake, runs_of(lake, spec.name))
    except EvenhandError:
        return {}
    forecasts_by_key = {}
    for year, of in groupby(
        sorted(tasks, key=lambda partition_task: partition_task.year), key=lambda partition_task: partition_task.year
    ):
        listed = [Listed(**partition_task.listed) for partition_task in of if partition_task.listed]
        for partition, cost in forecasts(spec, year, listed, lake, past):
            words = f"{year} {partition.value}", cost.peak_mb, partition.usable, cost.measured_here
            at_once = 1
            if workers > 1 and partition.rows >= least_divided():
                at_once = side_by_side(plan(spec_of_part(spec, year, partition, lake)).steps, workers)
            forecasts_by_key[year, partition.value] = Expected(*words, at_once)
    return forecasts_by_key


def _refuse(why: str, *, force: bool) -> None:
    if not force:
        raise InfrastructureError(f"{why}; --force goes on")
    memory_log.warning("%s; it goes on because of --force", why)


def _gb(mb: float) -> str:
    return f"{mb / 1000:.1f} GB"
