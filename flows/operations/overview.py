"""What an operator looks at first: each audit's last run, its age and next date, and what waits for a person.

The lake is asked, and the server for its schedules alone: one that is down takes nothing else away. Years and stages:
``operations.status``.
"""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from flows.operations.overdue import Due, due_of_lake
from flows.outcome.alerts.record import undelivered
from flows.runs.trust.review import outstanding
from flows.supervision.leftovers import Holder, holders
from schemas.audit.text import parse, spec_text
from schemas.errors import EvenhandError
from tasks.lake.store import Lake

if TYPE_CHECKING:
    from flows.operations.schedules.planned import Planned
    from flows.operations.status import Standing

_HASTE_SECONDS = 3
"""A server that takes longer to answer is told not to answer."""


@dataclass(frozen=True)
class AuditAtAGlance:
    """One audit of the lake."""

    audit: str
    year: int
    """Of its newest run."""
    run: str
    state: str
    ended: str
    age_days: float | None
    """Since the newest run ended; None where none did."""
    next_run: str
    """By the server's schedules; empty where none plans it, or the server was not asked."""
    overdue: str
    """Why it is overdue, by the rule of its spec or by the server's schedule; empty where it is not."""


@dataclass(frozen=True)
class Overview:
    """A lake at a glance."""

    audits: tuple[AuditAtAGlance, ...]
    disk_free: int
    """Bytes, on the disk of the lake or of its drafts."""
    disk: int
    locks: tuple[Holder, ...]
    """Those that somebody holds."""
    undelivered: tuple[str, ...]
    """Alerts that did not arrive, each in a line."""
    unsigned: tuple[str, ...]
    """Valid runs that nobody signed."""
    remediations_overdue: tuple[str, ...]
    server: str
    """What is amiss with the server, or that none is named; empty where it answered."""

    @property
    def overdue(self) -> bool:
        """Whether a run is overdue."""
        return any(audit.overdue for audit in self.audits)


def overview(lake: Lake, years: "Sequence[Standing]", now: datetime | None = None) -> Overview:
    """The lake at a glance.

    Args:
        lake: to be told of.
        years: as ``operations.status.status`` gives them.
        now: the time by which ages and dates are counted; the clock's if left out.

    Raises:
        IntegrityError: a manifest, an entry of the log or a record of an alert is not as it was written.
    """
    when = now or datetime.now(UTC)
    planned, server = _schedules(when)
    by_audit = {audit: [each for each in planned if _is_of(each, lake, audit)] for audit in {y.audit for y in years}}
    rules = {each.audit: each for each in due_of_lake(lake, when)}
    audits = [
        _at_a_glance(max((y for y in years if y.audit == audit), key=_newest), rules.get(audit), by_audit[audit], when)
        for audit in sorted(by_audit)
    ]
    usage, waiting = shutil.disk_usage(lake.storage.local), outstanding(lake)
    return Overview(
        audits=tuple(audits),
        disk_free=usage.free,
        disk=usage.total,
        locks=tuple(holders(lake)),
        undelivered=tuple(f"{each.ending.subject}, to {each.to}: {each.reason}" for each in undelivered(lake)),
        unsigned=waiting.unsigned,
        remediations_overdue=tuple(f"{each.run}: {each.text}" for each in waiting.overdue),
        server=server,
    )


def _newest(year: "Standing") -> tuple[str, int]:
    return year.ended, year.year


def _at_a_glance(year: "Standing", rule: Due | None, planned: "Sequence[Planned]", now: datetime) -> AuditAtAGlance:
    dates = sorted(each.next for each in planned if each.active and each.next)
    late = [f"{each.name}: {each.overdue}" for each in planned if each.overdue]
    missed = (
        [f"no run since {rule.last[:10] or 'ever'}; expected by {rule.expected_by}"] if rule and rule.overdue else []
    )
    age = (now - datetime.fromisoformat(year.ended)).total_seconds() / (24 * 3600) if year.ended else None
    return AuditAtAGlance(
        audit=year.audit,
        year=year.year,
        run=year.run,
        state=year.state,
        ended=year.ended,
        age_days=None if age is None else round(age, 2),
        next_run=dates[0] if dates else "",
        overdue="; ".join([*missed, *late]),
    )


def _is_of(planned: "Planned", lake: Lake, audit: str) -> bool:
    """Whether a deployment audits this lake by a spec of this name."""
    return planned.lake in (lake.location, str(lake.storage.local)) and _name_in(planned.spec) == audit


def _name_in(path: str) -> str:
    """The audit's name in a spec; empty where this machine cannot read it, as on a server's own paths."""
    try:
        said = parse(spec_text(Path(path))).value if path else None
    except (OSError, UnicodeDecodeError, EvenhandError):
        return ""
    return str(said.get("name", "")) if isinstance(said, dict) else ""


def _schedules(now: datetime) -> "tuple[list[Planned], str]":
    """The schedules of the server that is named, and why they are not known."""
    if not os.environ.get("PREFECT_API_URL"):
        return [], "none named: next dates are not known (PREFECT_API_URL)"
    from httpx import HTTPError
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_REQUEST_TIMEOUT, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

    from flows.operations.schedules.planned import planned

    try:
        hasty = {PREFECT_API_REQUEST_TIMEOUT: _HASTE_SECONDS, PREFECT_CLIENT_MAX_RETRIES: 0}
        with temporary_settings(hasty), get_client(sync_client=True) as client:
            return planned(client, now), ""
    except HTTPError as error:
        return [], f"does not answer ({type(error).__name__}): next dates are not known; evenhand doctor"
