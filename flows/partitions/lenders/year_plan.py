"""What a back-fill of a spec with ``by`` would run, year by year: partitions to audit, held, too few, and the cost."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from flows.partitions.lenders.expected_cost import Cost, Past, expected_cost, past_runs
from flows.partitions.lenders.listing import Listed, listing, without_value
from flows.partitions.lenders.part_spec import spec_of_part
from flows.runs.index import Run, runs_of
from schemas.audit.partition import ALL
from schemas.audit.spec import AuditSpec
from schemas.errors import EvenhandError
from schemas.terms import ExitCode
from tasks.lake.store import Lake
from tasks.plan import Plan, plan

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
        """Whether runs of this lake tell the cost, and not a table."""
        return all(part.cost.measured_here for part in self.parts if part.cost)


def year_plans(spec: AuditSpec, years: Sequence[int], lake: Lake) -> list[PlannedYear]:
    """The partitions of each year; nothing is run and, but for what was counted, nothing written.

    Raises:
        IntegrityError: a manifest is not the one that was written.
    """
    runs = runs_of(lake, spec.name)
    past = past_runs(lake, runs)
    return [_of_year(spec, year, lake, [run for run in runs if run.year == year], past) for year in years]


def forecasts(
    spec: AuditSpec, year: int, listed: Sequence[Listed], lake: Lake, past: Sequence[Past]
) -> Iterator[tuple[Listed, Cost]]:
    """Expected cost of partitions of a year; without those that cannot be planned, of which their audit says why."""
    planning, blocked = _Planning(spec, year, lake, (), past), set()
    for each in listed:
        whole = each.value == ALL
        if whole in blocked:
            continue
        try:
            yield each, planning.cost(each)
        except EvenhandError:
            blocked.add(whole)  # planning each of a thousand would take long


def _of_year(spec: AuditSpec, year: int, lake: Lake, runs: Sequence[Run], past: Sequence[Past]) -> PlannedYear:
    try:
        planning = _Planning(spec, year, lake, runs, past)
        parts = tuple(planning.part(each) for each in listing(spec, year, lake))
        return PlannedYear(year, parts, without_value(spec, year, lake).rows)
    except EvenhandError as error:
        return PlannedYear(year, blocked=str(error), exit_code=error.exit_code)


@dataclass
class _Planning:
    """One year, whose partitions share their steps."""

    spec: AuditSpec
    year: int
    lake: Lake
    runs: Sequence[Run]
    """Of the year."""
    past: Sequence[Past]

    def __post_init__(self) -> None:
        self._steps: dict[bool, list[str]] = {}

    def part(self, each: Listed) -> PlannedPart:
        words = (each.value, each.rows, each.usable)
        if each.too_few:
            return PlannedPart(*words, "too few", each.too_few)
        own = {run.run for run in self.runs if run.value == each.value and run.source_sha256 == each.rows_sha256}
        if own and (run := self._planned(each).run) in own:  # planning each of a thousand would take long
            return PlannedPart(*words, "held", run=run)
        return PlannedPart(*words, "to audit", cost=self.cost(each))

    def cost(self, each: Listed) -> Cost:
        whole = each.value == ALL
        if whole not in self._steps:
            self._steps[whole] = [step.name for step in self._planned(each).steps]
        return expected_cost(self.spec, self._steps[whole], each.usable, self.past)

    def _planned(self, each: Listed) -> Plan:
        return plan(spec_of_part(self.spec, self.year, each, self.lake))
