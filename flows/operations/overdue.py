"""Audits with a missing expected run, found from the lake alone: the server itself may be down.

A rule (``expected`` of the spec) names a period and days of grace. A run is due once the period and the grace are over:
then one has to have been finished since the period ended. Days are those of UTC. A run that says it was finished in the
future does not count: a wrong clock would silence the rule until then.

A manifest that cannot be read may be that of the run that is missed. Where no readable run came in time, nobody can
tell: that is an answer of its own (``Due.unknown``), and takes no other audit away.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Final, Protocol

from pydantic import ValidationError

from flows.operations.lake_records import RUN, Unreadable, maybe_later, run_in, unreadable, without
from flows.outcome.alerts import send_waiting, tell, tell_unrecorded
from flows.outcome.ending import Ending, Name
from flows.partitions.years import YEAR
from flows.runs.index import Run, in_order, runs_of
from flows.runs.run_names import audit_of
from schemas.audit.limits import Expected
from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from tasks.lake.store import Lake

_LONGEST: Final = {
    name: timedelta(days=days) for name, days in {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}.items()
}
"""Length of the longest period; so long after the first day of one, the next one has just begun."""
HEARTBEAT: Final = "EVENHAND_HEARTBEAT_URL"
"""Environment variable with the address that is asked for when nothing is overdue."""
_HEARTBEAT_SECONDS: Final = 10
_RULE: Final = re.compile(r"(?P<every>[a-z]+)(?:[,+ ]+(?P<by>\d+ days?))?")
_EXAMPLE: Final = "`expected: {every: quarter, by: 10 days}`"


SKEW: Final = timedelta(minutes=10)
"""Clocks of two machines may differ by so much."""


@dataclass(frozen=True)
class Due:
    """One audit against its rule."""

    audit: str
    year: int | None
    """Of the runs that count; None where those of every year do."""
    last: str
    """When the last of them was finished, as its manifest has it; empty without any."""
    run: str
    expected_by: date | None
    """The last day on which the run that is due could come; None where no rule can be read."""
    next_by: date | None
    """The last day for the run after it."""
    overdue: bool
    future: tuple[str, ...] = ()
    """Runs that say they were finished in the future."""
    unreadable: tuple[str, ...] = ()
    """Of each manifest that cannot be read, and may be of a later run: its file, and the next step."""

    @property
    def unknown(self) -> bool:
        """Whether the answer is unknown: no readable run came in time, and some run cannot be read."""
        return bool(self.unreadable) and (self.overdue or self.expected_by is None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Other faults, which do not change the result here."""
        odd = [
            f"{self.subject}: {run} says that it ended in the future; look at the clock that it ran by"
            for run in self.future
        ]
        return (*odd, *(() if self.unknown else self.unreadable))

    @property
    def subject(self) -> str:
        """The audit, and its year."""
        return self.audit if self.year is None else f"{self.audit} {self.year}"

    @property
    def message(self) -> str:
        """One line."""
        if self.unknown:
            return f"{self.subject}: nobody can tell whether a run came: {self.unreadable[0]}"
        if self.overdue:
            return f"{self.subject}: {self.why}"
        return f"{self.subject}: run of {self.last[:10]} ({self.run}); the next is expected by {self.next_by}"

    @property
    def why(self) -> str:
        """What is overdue."""
        ignored = f" ({self.future[0]} says that it ended in the future, and does not count)" if self.future else ""
        if not self.last or self.expected_by is None:
            return f"no run yet; expected by {self.expected_by}{ignored}"
        if self.last[:10] < str(self.expected_by):
            return f"no run since {self.last[:10]}; expected by {self.expected_by}{ignored}"
        last, end = self.last[:16].replace("T", " "), self.expected_by + timedelta(days=1)  # without a day of grace
        return f"no run since {last} UTC; expected at {end} 00:00 UTC, when the period ended{ignored}"


def rule_of(words: str) -> Expected:
    """A rule in the words of ``--by``, such as ``quarter, 10 days``.

    Raises:
        SpecError: it is none.
    """
    match = _RULE.fullmatch(words.strip())
    try:
        return Expected.model_validate({key: text for key, text in match.groupdict().items() if text} if match else {})
    except ValidationError as error:
        raise SpecError(
            f"--by {words}: expected day, week, month, quarter or year, and days of grace, such as 'quarter, 10 days'"
        ) from error


def due(lake: Lake, spec: AuditSpec, rule: Expected | None = None, now: datetime | None = None) -> Due:
    """One audit against a rule: the spec's where none is given.

    The runs that count are those of the spec's year; of a spec for many years (``{year}`` in a path, a vintage) those
    of every year.

    Raises:
        SpecError: there is no rule.
    """
    expected = rule or spec.expected
    if expected is None:
        message = f"{spec.name}: nothing says when a run is due; add {_EXAMPLE} to the spec, or give --by"
        raise SpecError(message, ("expected",))
    years = spec.source.vintage is not None or any(YEAR in path for path in spec.source.paths)
    year, hidden = None if years else spec.year, unreadable(lake, (RUN,))
    runs = runs_of(without(lake, hidden), spec.name, year)
    due_state = held_against(expected, spec.name, year, runs, now or datetime.now(UTC))
    return replace(due_state, unreadable=maybe_later(lake, hidden, spec.name, year, _newest(runs)))


def due_of_lake(
    lake: Lake, now: datetime | None = None, unreadable_records: Sequence[Unreadable] | None = None
) -> list[Due]:
    """Every audit of a lake that has a rule in its last run, or may have one: runs of every year count.

    Args:
        lake: to be told of.
        now: the time by which dates are counted; the clock's if left out.
        unreadable_records: the records that cannot be read, where somebody looked; they are looked for if left out.
    """
    due_audits, when = [], now or datetime.now(UTC)
    hidden = [
        record
        for record in (unreadable(lake, (RUN,)) if unreadable_records is None else unreadable_records)
        if record.kind == RUN
    ]
    of: dict[str, list[Run]] = {audit_of(run_in(record)): [] for record in hidden}
    for run in runs_of(without(lake, hidden)):
        of.setdefault(run.audit, []).append(run)
    for audit, runs in sorted(of.items()):
        later = maybe_later(lake, hidden, audit, None, _newest(runs))
        expected = max(runs, key=in_order).spec.get("expected") if runs else None
        if expected:
            due_state = held_against(Expected.model_validate(expected), audit, None, runs, when)
            due_audits.append(replace(due_state, unreadable=later))
        elif later:
            due_audits.append(Due(audit, None, "", "", None, None, overdue=False, unreadable=later))
    return due_audits


def _newest(runs: Sequence[Run]) -> int:
    """Number in the log of the last run; 0 of none."""
    return max((run.number for run in runs), default=0)


def tell_overdue(lake: Lake, due_audits: Sequence[Due]) -> None:
    """Send alerts of overdue audits, once a missed day, or each time if a record is unreadable; and waiting digests."""
    for due_audit in due_audits:
        ending = Ending(Name.OVERDUE, due_audit.subject, due_audit.message)
        if due_audit.unknown:
            tell_unrecorded(ending)
        elif due_audit.overdue:
            tell(lake, ending)
    send_waiting(lake)


def heartbeat() -> str:
    """Ask for the URL in EVENHAND_HEARTBEAT_URL, so that silence is noticed outside; why that failed, else empty."""
    if not (url := os.environ.get(HEARTBEAT)):
        return ""
    import httpx  # takes a tenth of a second, and most calls need none

    try:
        httpx.get(url, timeout=_HEARTBEAT_SECONDS, follow_redirects=True).raise_for_status()
    except httpx.HTTPStatusError as error:
        return f"{HEARTBEAT}: the address answered {error.response.status_code}"
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"{HEARTBEAT}: the address does not answer ({type(error).__name__}); see that this machine reaches it"
    return ""


class Finished(Protocol):
    """The fields of a run that are used here."""

    @property
    def run(self) -> str:
        """Its id."""

    @property
    def finished(self) -> str:
        """When it was finished."""


def held_against(rule: Expected, audit: str, year: int | None, runs: Sequence[Finished], now: datetime) -> Due:
    """The runs of an audit against its rule.

    Args:
        rule: by which a run is due.
        audit: its name.
        year: of which the runs are; None of every year.
        runs: in any order.
        now: the time by which dates are counted.
    """
    grace, one_day = timedelta(days=rule.days), timedelta(days=1)
    since = _beginning(rule.every, now.astimezone(UTC).date() - grace)
    following = _beginning(rule.every, since + _LONGEST[rule.every])
    future = tuple(run.run for run in runs if _time(run) > now + SKEW)
    last = max((run for run in runs if run.run not in future), key=_time, default=None)
    return Due(
        audit,
        year,
        last.finished if last else "",
        last.run if last else "",
        expected_by=since - one_day + grace,
        next_by=following - one_day + grace,
        overdue=last is None or _time(last).date() < since,
        future=future,
    )


def _time(run: Finished) -> datetime:
    return datetime.fromisoformat(run.finished).astimezone(UTC)


def _beginning(every: str, day: date) -> date:
    """The first day of the period that a day is in."""
    firsts = {
        "day": day,
        "week": day - timedelta(days=day.weekday()),
        "month": day.replace(day=1),
        "quarter": day.replace(month=day.month - (day.month - 1) % 3, day=1),
        "year": day.replace(month=1, day=1),
    }
    return firsts[every]
