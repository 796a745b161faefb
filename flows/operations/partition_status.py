"""Status of the partitions of a year, by their records alone: `evenhand status` of an audit with `by`.

Data, code and libraries of today are not looked at: 1,200 partitions take a second. The back-fill does look.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from flows.partitions.attempts.record import Attempt, YearState
from flows.partitions.lenders.records import kept_listing, newest, seconds_left, years_by_partition
from tasks.lake.store import Lake

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
    of = [_of(records.get(each.value), each.value, each.rows) for each in listed]
    failed = {YearState.FAILED.value, YearState.INTERRUPTED.value}
    of.sort(key=lambda part: (part.state not in failed, -part.rows, part.value))
    states = Counter(part.state for part in of)
    to_come = {NOT_BEGUN, YearState.RUNNING.value, YearState.INTERRUPTED.value}
    left = [part.rows for part in of if part.state in to_come]
    workers = max(states[YearState.RUNNING.value], 1)
    known = list(records.values())
    done = len(of) - len(left) - states[YearState.FAILED.value]
    expected = seconds_left(known, left, workers)
    return YearOfPartitions(audit, year, column, dict(states), done, len(of), expected, _per_hour(known), tuple(of))


def _of(record: Attempt | None, value: str, rows: int) -> PartStatus:
    if record is None:
        return PartStatus(value, rows, NOT_BEGUN)
    return PartStatus(value, rows, record.state.value, record.run or "", record.seconds, record.message)


def _per_hour(records: Sequence[Attempt]) -> float | None:
    audited = [(_time(r), r.seconds) for r in records if r.run and r.computed and r.seconds]
    if not audited:
        return None
    span = max(began + seconds for began, seconds in audited) - min(began for began, _ in audited)
    return round(3600 * len(audited) / span, 1) if span > 0 else None


def _time(record: Attempt) -> float:
    return datetime.fromisoformat(record.began).astimezone(UTC).timestamp()
