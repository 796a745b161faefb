"""Audits that a back-fill tried and that have no run: what their records say, as no list of runs shows them."""

from collections.abc import Collection, Mapping

from flows.partitions.attempts.reading import latest
from flows.partitions.attempts.record import Attempt, YearState
from flows.partitions.lenders.records import kept_listing, newest
from flows.serving.index import written
from schemas.errors import EvenhandError
from tasks.lake.store import Lake

_SERIOUS = (YearState.FAILED, YearState.INTERRUPTED, YearState.RUNNING)


def tried(lake: Lake, with_runs: Collection[str]) -> Mapping[str, tuple[Attempt, ...]]:
    """Audit -> the last attempt of each year, of audits that have records and no run.

    Args:
        lake: whose records are read.
        with_runs: audits that have a run.
    """
    audits = [audit for audit in written.folders(lake, "backfills") if audit not in with_runs]
    found = {audit: tuple(_years(lake, audit)) for audit in audits}
    return {audit: attempts for audit, attempts in found.items() if attempts}


def _years(lake: Lake, audit: str) -> list[Attempt]:
    years = [int(year) for year in written.folders(lake, f"backfills/{audit}") if year.isdecimal()]
    return [attempt for year in years if (attempt := _last(lake, audit, year)) is not None]


def _last(lake: Lake, audit: str, year: int) -> Attempt | None:
    """The last attempt of a year; of a year by partitions the gravest of theirs. None where none can be read."""
    try:
        if kept_listing(lake, audit, year) is None:
            return latest(lake, audit, year)
        parts = newest(lake, audit, year).values()
    except (EvenhandError, OSError, ValueError, KeyError, TypeError):
        return None
    return min(parts, key=_gravity, default=None)


def _gravity(attempt: Attempt) -> tuple[int, str]:
    place = _SERIOUS.index(attempt.state) if attempt.state in _SERIOUS else len(_SERIOUS)
    return place, attempt.value
