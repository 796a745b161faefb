"""What an operator looks at first: each audit's last run, its age and next date, and what waits for a person.

Reads the lake, and the server for its schedules alone: where the server is down, the rest is still printed. Years and
stages: ``operations.status``.
"""

import os
import shutil
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from flows.operations.lake_records import LOG, Unreadable, without
from flows.operations.overdue import SKEW, Due, due_of_lake
from flows.outcome.alerts import undelivered
from flows.runs.review import Outstanding, outstanding
from flows.runs.signatures import sound_entries
from flows.supervision.presence import Holder, holders
from schemas.audit.file import parse, spec_text
from schemas.errors import EvenhandError, InfrastructureError, IntegrityError
from tasks.lake import log
from tasks.lake.store import Lake

if TYPE_CHECKING:
    from flows.operations.schedules import Planned
    from flows.operations.status import Standing

_LOG = "log"
_HASTE_SECONDS = 3
"""Within which the server has to answer."""


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
    future: tuple[str, ...]
    """What says that it ended in the future, each in a line: the clock of its machine was wrong."""
    unreadable: tuple[Unreadable, ...]
    """Records that cannot be read; what they hold is in no line."""

    @property
    def log_altered(self) -> bool:
        """Whether an entry of the log was changed after it was written, so that the state of the runs is unknown."""
        return any(record.kind == LOG for record in self.unreadable)

    @property
    def overdue(self) -> bool:
        """Whether a run or a remediation is overdue."""
        return any(audit.overdue for audit in self.audits) or bool(self.remediations_overdue)


def overview(
    lake: Lake, years: "Sequence[Standing]", now: datetime | None = None, hidden: Sequence[Unreadable] = ()
) -> Overview:
    """The lake at a glance.

    Args:
        lake: that is described.
        years: as ``operations.status.status`` gives them.
        now: the time by which ages and dates are counted; the clock's if left out.
        hidden: the records of the lake that cannot be read.

    Raises:
        IntegrityError: a record that is not hidden is not as it was written.
    """
    when, visible_lake = now or datetime.now(UTC), without(lake, hidden)
    planned, server = _schedules(lake, when)
    rules = {due.audit: due for due in due_of_lake(lake, when, hidden)}
    audits = []
    for audit in sorted({year.audit for year in years}):
        newest = max((year for year in years if year.audit == audit), key=lambda year: (year.ended, year.year))
        audits.append(_at_a_glance(newest, rules.get(audit), planned.get(audit, []), when))
    usage = shutil.disk_usage(lake.storage.local)
    altered: tuple[Unreadable, ...] = ()
    # The chain of a log with hidden entries is not checked: ``hidden`` names the fault.
    has_gaps = any(record.kind == LOG for record in hidden)
    try:
        waiting = outstanding(visible_lake, log.entries(visible_lake) if has_gaps else sound_entries(visible_lake))
    except IntegrityError as error:  # the chain is broken, so that nothing waits for certain
        waiting, altered = Outstanding((), (), ()), (Unreadable(LOG, _LOG, str(error)),)
    return Overview(
        audits=tuple(audits),
        disk_free=usage.free,
        disk=usage.total,
        locks=tuple(holders(lake)),
        undelivered=tuple(
            f"{alert.ending.subject}, to {alert.to}: {alert.reason}" for alert in undelivered(visible_lake)
        ),
        unsigned=waiting.unsigned,
        remediations_overdue=tuple(f"{remediation.run}: {remediation.text}" for remediation in waiting.overdue),
        server=server,
        future=tuple(
            f"{year.audit} {year.year} {year.run}".rstrip() + f" says that it ended at {year.ended}"
            for year in years
            if year.ended and datetime.fromisoformat(year.ended) > when + SKEW
        ),
        unreadable=(*hidden, *altered),
    )


def _at_a_glance(year: "Standing", rule: Due | None, planned: "Sequence[Planned]", now: datetime) -> AuditAtAGlance:
    dates = sorted(schedule.next for schedule in planned if schedule.active and schedule.next)
    late = [f"{schedule.name}: {schedule.overdue}" for schedule in planned if schedule.overdue]
    missed = [rule.why] if rule and rule.overdue and not rule.unknown else []
    missed += ["nobody can tell whether a run came: one cannot be read"] if rule and rule.unknown else []
    age = (now - datetime.fromisoformat(year.ended)).total_seconds() / (24 * 3600) if year.ended else None
    return AuditAtAGlance(
        audit=year.audit,
        year=year.year,
        run=year.run,
        state=year.state,
        ended=year.ended,
        age_days=age,
        next_run=dates[0] if dates else "",
        overdue="; ".join([*missed, *late]),
    )


def _schedules(lake: Lake, now: datetime) -> "tuple[dict[str, list[Planned]], str]":
    """Audit -> its schedules on the server that is named, and why they are not known."""
    if not os.environ.get("PREFECT_API_URL"):
        return {}, "none named: next dates are not known (PREFECT_API_URL)"
    from flows.operations.schedules import hasty_client, planned

    try:
        with hasty_client(_HASTE_SECONDS, retries=0) as client:
            schedules = planned(client, now)
    except InfrastructureError as error:
        return {}, f"{error}. Next dates are not known: evenhand doctor"
    by_audit: dict[str, list[Planned]] = defaultdict(list)
    for schedule in schedules:
        if schedule.spec and schedule.lake in (lake.location, str(lake.storage.local)):
            # This machine cannot read a spec on a server's own paths.
            with suppress(OSError, UnicodeDecodeError, EvenhandError):
                content = parse(spec_text(Path(schedule.spec))).value
                if isinstance(content, dict):
                    by_audit[str(content.get("name", ""))].append(schedule)
    return by_audit, ""
