"""Record of audits that came to no run: ``failures/<audit>-<year>-<id>.json``, one file each, for metrics.

Years and partitions of a back-fill have records of their own: ``flows.partitions.attempts``.
"""

import logging
from datetime import UTC, datetime
from enum import StrEnum
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, ValidationError

from schemas.audit.partition import slug
from schemas.errors import EvenhandError, IntegrityError
from tasks.lake.store import Lake

log = logging.getLogger("evenhand")

FOLDER = "failures"


class Ended(StrEnum):
    """How an audit ended that came to no run, in the words of a back-fill's years."""

    FAILED = "failed"
    INTERRUPTED = "interrupted"
    """Its process died."""


class Failure(BaseModel):
    """One audit that came to no run. It holds no message: those may quote a spec."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    audit: str
    year: str = ""
    """Empty where the spec could not be read."""
    state: Ended
    name: str
    """Of the state on the server, such as ``Data quality``."""
    time: str
    """When it was noted, UTC."""


def note_failure(lake: Lake, audit: str, year: str, state: Ended, name: str) -> None:
    """Record a failure. It raises nothing: a full disk, which is one, leaves no record."""
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    failure = Failure(audit=audit, year=year, state=state, name=name, time=now)
    try:
        lake.add_file(f"{FOLDER}/{slug(audit)}-{uuid4().hex}.json", failure.model_dump_json(indent=1).encode())
    except (EvenhandError, OSError) as error:
        log.warning("the failure of %s is not recorded in the lake: %s", audit, type(error).__name__)


def paths(lake: Lake) -> list[str]:
    """Where the records lie; they never change."""
    return list(lake.storage.glob(f"{FOLDER}/*.json"))


def read_failure(lake: Lake, path: str) -> Failure:
    """One record.

    Raises:
        IntegrityError: it is not one that this version wrote.
    """
    try:
        return Failure.model_validate_json(lake.storage.read(path) or b"")
    except ValidationError as error:
        where = lake.storage.where(path)
        raise IntegrityError(f"{where} is no record of a failed audit; remove it: only a metric counts it") from error
