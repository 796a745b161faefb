"""Reads records: ``backfills/<audit>/<year>/<attempt>.json``, of a partition ``.../<year>/<slug>/<attempt>.json``.

A record that says ``running`` while its lock is free belongs to an interrupted attempt. Scope: one year or one
partition. All partitions of a year at once: ``flows.partitions.lenders.records``.
"""

import hashlib
from collections.abc import Sequence

from pydantic import ValidationError

from flows.partitions.attempts.record import Attempt, YearState
from flows.supervision.presence import held
from schemas.audit.partition import slug
from schemas.errors import IntegrityError
from schemas.terms import ExitCode
from tasks.lake.store import Lake

LISTING = "listing.json"
"""Beside the records of a year: the partitions that it has."""


def folder_of(audit: str, year: int, value: str = "") -> str:
    """Folder of the records of a year, or of a partition."""
    return f"backfills/{audit}/{year}" + (f"/{place_of(value)}" if value else "")


def place_of(value: str) -> str:
    """A partition's part of a path: its slug, which other values may share, with a digest where it is not the value."""
    plain = slug(value)
    return plain if plain == value else f"{plain}-{hashlib.sha256(value.encode()).hexdigest()[:6]}"


def lock_of(audit: str, year: int, value: str = "") -> str:
    """Name of the lock that is held while the year or partition is audited."""
    return f"year-{audit}-{year}" + (f"-{place_of(value)}" if value else "")


def attempts(lake: Lake, audit: str | None = None, year: int | None = None, value: str = "") -> list[Attempt]:
    """All records of an audit and year as a whole, or of one partition, in order of time.

    Raises:
        IntegrityError: one is not as a back-fill of this version writes them.
    """
    own = f"/{place_of(value)}" if value else ""
    paths = lake.storage.glob(f"backfills/{audit or '*'}/{year or '*'}{own}/*.json")
    found = [read for path in paths if not path.endswith(LISTING) and (read := read_record(lake, path)) is not None]
    return sorted(found, key=lambda a: (a.audit, a.year, a.attempt))


def read_record(lake: Lake, path: str) -> Attempt | None:
    """One record; None where there is none.

    Raises:
        IntegrityError: it is not as a back-fill of this version writes them.
    """
    try:
        content = lake.storage.read(path)
    except FileNotFoundError:  # removed between the look and the reading
        content = None
    if content is None:
        return None
    try:
        return Attempt.model_validate_json(content)
    except ValidationError as error:
        raise IntegrityError(
            f"{lake.storage.where(path)} is not a record that this version wrote; restore it from a copy, or remove "
            "it: what the year's audits found is not in it, and stays"
        ) from error


def latest(lake: Lake, audit: str, year: int, value: str = "") -> Attempt | None:
    """The last attempt of a year or partition: interrupted if its process is gone; None without any."""
    last = _last(lake, audit, year, value)
    if last is None or last.ended or _works(lake, last):
        return last
    if _last(lake, audit, year, value) != last:  # it ended, or went on, between the two looks
        return latest(lake, audit, year, value)
    return interrupted(last)


def _works(lake: Lake, attempt: Attempt) -> bool:
    """Whether somebody holds the lock of what it is about."""
    return held(lake.storage.local / "locks" / f"{lock_of(attempt.audit, attempt.year, attempt.value)}.lock")


def as_it_stands(lake: Lake, attempt: Attempt) -> Attempt:
    """A record that was just read, interrupted if its process is gone."""
    if attempt.ended or _works(lake, attempt):
        return attempt
    return latest(lake, attempt.audit, attempt.year, attempt.value) or attempt


def interrupted(attempt: Attempt) -> Attempt:
    """The record of an attempt whose process is gone."""
    at = f"process {attempt.pid} on {attempt.host} died during {attempt.stage or 'its start'}"
    message = f"{at}; run the back-fill again, which goes on there"
    return attempt.model_copy(
        update={"state": YearState.INTERRUPTED, "message": message, "exit_code": int(ExitCode.INFRASTRUCTURE)}
    )


def _last(lake: Lake, audit: str, year: int, value: str) -> Attempt | None:
    found: Sequence[Attempt] = attempts(lake, audit, year, value)
    return found[-1] if found else None
