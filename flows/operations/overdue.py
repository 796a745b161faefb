"""Audits whose expected run never came, told from the lake alone: the server may be the part that is down.

A rule (``expected`` of the spec) names a period and days of grace. A run is due once the period and the grace are over:
then one has to have been finished since the period ended. Days are those of UTC.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final, Protocol

from pydantic import ValidationError

from flows.outcome.alerts.sending import send_waiting, tell
from flows.outcome.ending import Ending, Name
from flows.partitions.years import YEAR
from flows.runs.index import Run, runs_of
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


@dataclass(frozen=True)
class Due:
    """One audit against its rule."""

    audit: str
    year: int | None
    """Of the runs that count; None where those of every year do."""
    last: str
    """When the last of them was finished, as its manifest has it; empty without any."""
    run: str
    expected_by: date
    """The last day on which the run that is due could come."""
    next_by: date
    """The last day for the run after it."""
    overdue: bool

    @property
    def subject(self) -> str:
        """The audit, and its year."""
        return self.audit if self.year is None else f"{self.audit} {self.year}"

    @property
    def message(self) -> str:
        """One line."""
        if self.overdue:
            since = f"no run since {self.last[:10]}" if self.last else "no run yet"
            return f"{self.subject}: {since}; expected by {self.expected_by}"
        return f"{self.subject}: run of {self.last[:10]} ({self.run}); the next is expected by {self.next_by}"


def rule_of(words: str) -> Expected:
    """A rule in the words of ``--by``, such as ``quarter, 10 days``.

    Raises:
        SpecError: it is none.
    """
    said = _RULE.fullmatch(words.strip())
    try:
        return Expected.model_validate({key: each for key, each in said.groupdict().items() if each} if said else {})
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
        IntegrityError: a manifest is not the one that was written.
    """
    asked = rule or spec.expected
    if asked is None:
        message = f"{spec.name}: nothing says when a run is due; add {_EXAMPLE} to the spec, or give --by"
        raise SpecError(message, ("expected",))
    years = spec.source.vintage is not None or any(YEAR in path for path in spec.source.paths)
    year = None if years else spec.year
    return held_against(asked, spec.name, year, runs_of(lake, spec.name, year), now or datetime.now(UTC))


def due_of_lake(lake: Lake, now: datetime | None = None) -> list[Due]:
    """Every audit of a lake whose last run names a rule; runs of every year count.

    Raises:
        IntegrityError: a manifest is not the one that was written.
    """
    of: dict[str, list[Run]] = {}
    for run in runs_of(lake):
        of.setdefault(run.audit, []).append(run)
    found = []
    for audit, runs in of.items():
        said = max(runs, key=lambda run: run.finished).spec.get("expected")
        if said:
            rule = Expected.model_validate(said)
            found.append(held_against(rule, audit, None, runs, now or datetime.now(UTC)))
    return found


def tell_overdue(lake: Lake, found: Sequence[Due]) -> None:
    """Send an alert for each overdue audit, and the digests of earlier days; each missed day is told once."""
    for each in found:
        if each.overdue:
            tell(lake, Ending(Name.OVERDUE, each.subject, each.message))
    send_waiting(lake)


def heartbeat() -> str:
    """Ask for the URL in EVENHAND_HEARTBEAT_URL, so that silence is noticed outside; why that failed, else empty."""
    url = os.environ.get(HEARTBEAT)
    if not url:
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
    """A run, as far as it is told here."""

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
    grace, one = timedelta(days=rule.days), timedelta(days=1)
    since = _beginning(rule.every, now.astimezone(UTC).date() - grace)
    following = _beginning(rule.every, since + _LONGEST[rule.every])
    last = max(runs, key=lambda run: run.finished, default=None)
    return Due(
        audit,
        year,
        last.finished if last else "",
        last.run if last else "",
        expected_by=since - one + grace,
        next_by=following - one + grace,
        overdue=last is None or datetime.fromisoformat(last.finished).date() < since,
    )


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
