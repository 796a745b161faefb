"""Status of every year and partition in a lake, stage by stage."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import ValidationError

from flows.partitions.attempts import OF_VERDICT, YearState, attempts, latest
from flows.partitions.forecast import StageState, Stand, stands, told
from flows.partitions.part_spec import spec_today
from flows.partitions.partition_list import kept_listing, newest, seconds_left, years_by_partition
from flows.runs.given import where_it_lies
from flows.runs.index import Run, numbered, run_of, standing
from flows.runs.record import planned_in
from flows.runs.run_names import audit_and_year, run_ids
from schemas.audit.spec import AuditSpec
from schemas.errors import EvenhandError, SpecError
from schemas.terms import State
from tasks.lake.store import Lake
from tasks.pipeline.registry import validated

# --------------------------------------------------------------------------------------------------------------------
# Status of the partitions of a year, by their records alone: `evenhand status` of an audit with `by`.
#
# Data, code and libraries of today are not looked at: 1,200 partitions take a second. The back-fill does look.


NOT_BEGUN = "not begun"


@dataclass(frozen=True)
class PartStatus:
    """Status of one partition."""

    value: str
    rows: int
    state: str
    run: str = ""
    seconds: float | None = None
    message: str = ""


@dataclass(frozen=True)
class YearOfPartitions:
    """Status of a year by its partitions."""

    audit: str
    year: int
    column: str
    states: dict[str, int]
    """State -> partitions."""
    done: int
    """Of all: audited, or of too few people."""
    total: int
    seconds_left: float | None
    """Expected, at as many at a time as run now; None where no partition was audited yet."""
    per_hour: float | None
    """Partitions audited an hour, from the first record to the last end; None where none was."""
    partitions: tuple[PartStatus, ...]
    """Those that failed first, then the largest first."""


def partition_status(lake: Lake, audit: str | None = None) -> list[YearOfPartitions]:
    """Every audit and year of a lake, or of one audit, that was back-filled by partitions."""
    return [_year(lake, name, year) for name, year in years_by_partition(lake) if audit in (None, name)]


def _year(lake: Lake, audit: str, year: int) -> YearOfPartitions:
    column, listed = kept_listing(lake, audit, year) or ("", ())
    records = newest(lake, audit, year)
    parts = []
    for partition in listed:
        part = PartStatus(partition.value, partition.rows, NOT_BEGUN)
        if record := records.get(partition.value):
            words = (record.state.value, record.run or "", record.seconds, record.message)
            part = PartStatus(partition.value, partition.rows, *words)
        parts.append(part)
    failed = {YearState.FAILED.value, YearState.INTERRUPTED.value}
    parts.sort(key=lambda part: (part.state not in failed, -part.rows, part.value))
    states = Counter(part.state for part in parts)
    to_come = {NOT_BEGUN, YearState.RUNNING.value, YearState.INTERRUPTED.value}
    remaining_rows = [part.rows for part in parts if part.state in to_come]
    done = len(parts) - len(remaining_rows) - states[YearState.FAILED.value]
    expected = seconds_left(list(records.values()), remaining_rows, max(states[YearState.RUNNING.value], 1))
    audited = [
        (datetime.fromisoformat(record.began).astimezone(UTC).timestamp(), record.seconds)
        for record in records.values()
        if record.run and record.computed and record.seconds
    ]
    per_hour = None
    if audited:
        span = max(began + seconds for began, seconds in audited) - min(began for began, _ in audited)
        per_hour = round(3600 * len(audited) / span, 1) if span > 0 else None
    return YearOfPartitions(audit, year, column, dict(states), done, len(parts), expected, per_hour, tuple(parts))


# --------------------------------------------------------------------------------------------------------------------
# Status of every year in a lake, stage by stage: `evenhand status`.
#
# An unfinished last attempt is reported as it is. Otherwise the year's run is compared with today's data, code and
# libraries. `evenhand plan` lists the years that were never run.


UNFINISHED = (YearState.RUNNING, YearState.FAILED, YearState.INTERRUPTED)
BARRED = "not to be audited again as things are"
"""What the reason of a year begins with that today's data or code cannot audit."""
_SECONDS = len("2026-01-01T00:00:00")
"""Times are compared by seconds, whatever way their zone is written."""


@dataclass(frozen=True)
class Standing:
    """Status of one year of one audit."""

    audit: str
    year: int
    state: str
    """running, within, outside, inconclusive, failed, interrupted, or stale."""
    stages: tuple[Stand, ...]
    message: str
    run: str
    vintage: str
    attempts: int
    protected: bool
    ended: str = ""
    """When the run was finished, or the last attempt began."""
    seconds: float | None = None
    """That the stages of the run took, or the last attempt."""
    partition: str = ""
    """Value of the partition that the run is about, of an audit with ``by``."""

    @property
    def barred(self) -> bool:
        """Whether today's data or code cannot be looked at, or cannot audit the year."""
        return self.message.startswith(BARRED)


def status(lake: Lake, audit: str | None = None, damaged: list[str] | None = None) -> list[Standing]:
    """Every audit and year of a lake, or the years of one audit, in order; a line for each partition that was audited.

    Args:
        lake: whose audits are listed.
        audit: alone.
        damaged: gets the runs whose manifest cannot be read; if None, the first of them ends it.

    Raises:
        IntegrityError: a manifest, or a record of an attempt, is not the one that was written.
    """
    runs: dict[tuple[str, int, str], list[Run]] = defaultdict(list)
    by_partition = set(years_by_partition(lake))  # operations.partition_status is about these
    parted = {(name, str(year)) for name, year in by_partition}
    named = {name: audit_and_year(name) for name in run_ids(lake)}
    readable_runs = []
    for name in [name for name, of in named.items() if of not in parted and audit in (None, of[0])]:
        try:
            readable_runs.append(run_of(lake, name))
        except (EvenhandError, KeyError, ValueError) as error:
            if damaged is None:
                raise
            if not isinstance(error, SpecError):  # which is one that was removed meanwhile
                damaged.append(name)
    for run in numbered(lake, readable_runs):
        runs[run.audit, run.year, run.value if run.partition else ""].append(run)
    tried = {(a.audit, a.year, "") for a in attempts(lake, audit) if (a.audit, a.year) not in by_partition}
    return [_standing(lake, key, standing(runs[key])) for key in sorted({*runs, *tried})]


def never(audit: str, year: int) -> Standing:
    """Status of a year without an attempt."""
    return Standing(audit, year, "never audited", (), "", "", "", 0, protected=False)


def _standing(lake: Lake, key: tuple[str, int, str], run: Run | None) -> Standing:
    audit, year, value = key
    last = latest(lake, audit, year, value)
    tries = last.attempt if last else 0
    # The last attempt counts if it began after the last run and did not produce it.
    counts = last is not None
    if last is not None and run is not None:
        came_to_nothing = last.state in UNFINISHED or (last.run != run.run and not run.protected)
        # By the lake's log, as clocks are set back; by the clock where an earlier version wrote one of the two.
        if last.after is not None and run.number:
            began_after = last.after >= run.number
        else:
            began_after = last.began[:_SECONDS] >= run.finished[:_SECONDS]
        counts = came_to_nothing and began_after
    if last is not None and counts:
        stages = told(last)
        words = (last.state.value, stages, last.message, last.run or "", last.vintage)
        return Standing(audit, year, *words, tries, run.protected if run else False, last.began, last.seconds, value)
    if run is None:
        raise AssertionError("a year is known by an attempt or by a run")
    # The stages by today's data, code and libraries, and why one is not current.
    stages, why = tuple(Stand(p.stage, StageState.OK) for p in run.partitions), ""
    if not run.protected:
        try:
            spec = where_it_lies(lake, run.run, validated(AuditSpec, run.spec))
            stages = stands(planned_in(lake, spec_today(spec, run.year, lake)), lake, run, last)
            why = next((stage.reason for stage in stages if stage.state is not StageState.OK), "")
        except ValidationError:
            why = f"{BARRED}: its spec is not one of this version"
        except EvenhandError as error:
            why = f"{BARRED}: {error}"
    verdict = OF_VERDICT.get(State(run.state), YearState.INCONCLUSIVE).value
    state = verdict if run.protected or not why else "stale"
    message = why or (last.message if last and last.run == run.run else "")
    seconds = round(sum(float(cost.get("seconds", 0)) for cost in run.lineage), 1)
    words = (state, stages, message, run.run, run.vintage)
    return Standing(audit, year, *words, tries, run.protected, run.finished, seconds, value)
