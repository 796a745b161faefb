"""Record of every alert in the lake: ``alerts/<id>.json``, one file for an ending and an address.

The id follows from the run, the state and the address, so that the same state of the same run is told once. Records
hold names of addresses, never the addresses.
"""

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, ValidationError

from flows.outcome.ending import Ending, Name
from schemas.errors import IntegrityError
from tasks.lake.store import Lake

FOLDER = "alerts"
_STUCK = timedelta(minutes=10)
"""A record that says ``sending`` for so long belongs to a process that died, or to another machine's that did."""


class Outcome(StrEnum):
    """What became of an alert."""

    SENDING = "sending"
    SENT = "sent"
    NOT_DELIVERED = "not delivered"
    WAITING = "waiting"
    """For the digest of its day."""
    SETTLED = "settled"
    """It had no address, as the file of addresses was not usable; its ending was told to those of the mended file."""


class Alert(BaseModel):
    """One alert: an ending, told to one address."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    time: str
    """When it was first to be sent, UTC."""
    rule: str
    """The rule in words; empty where the file of rules was not usable."""
    to: str
    """Name of the address."""
    ending: Ending
    outcome: Outcome
    tries: int = 0
    reason: str = ""
    """Why it was not delivered."""
    sent: str = ""
    """When it was delivered, UTC."""

    @property
    def id(self) -> str:
        """Name of the record."""
        return f"{digest(self.ending)}-{hashlib.sha256(self.to.encode()).hexdigest()[:8]}"

    @property
    def path(self) -> str:
        """Where the record lies in the lake."""
        return f"{FOLDER}/{self.id}.json"

    @property
    def is_lost(self) -> bool:
        """Whether it did not arrive and nobody is sending it: its process may have died while it did."""
        stuck = datetime.fromisoformat(self.time) < datetime.now(UTC) - _STUCK
        return self.outcome is Outcome.NOT_DELIVERED or (self.outcome is Outcome.SENDING and stuck)


def digest(ending: Ending) -> str:
    """What makes two endings the same: run and state; without a run its flow run, else subject and message."""
    about = ending.run or ending.flow_run or f"{ending.subject}: {ending.message}"
    return hashlib.sha256(f"{ending.name}\n{about}".encode()).hexdigest()[:16]


def found(lake: Lake, alert: Alert) -> Alert | None:
    """The record of an alert, if there is one that can be read: better told twice than not at all."""
    return _readable(lake, alert.path)


def write(lake: Lake, alert: Alert) -> None:
    """Write a record over the one that was there.

    Raises:
        InfrastructureError: the disk is full or fails.
    """
    lake.write_file(alert.path, alert.model_dump_json(indent=1).encode(), draft=f"tmp/alert-{alert.id}.json")


def alerts(lake: Lake) -> list[Alert]:
    """All alerts of a lake, the oldest first; a record that cannot be read is left out: ``unreadable``."""
    read = [_readable(lake, path) for path in paths(lake)]
    return sorted((each for each in read if each is not None), key=lambda each: (each.time, each.to))


def unreadable(lake: Lake) -> list[str]:
    """Of each record that cannot be read: its file, and the next step."""
    found = []
    for path in paths(lake):
        try:
            read_alert(lake, path)
        except IntegrityError as error:
            found.append(str(error))
    return found


def undelivered(lake: Lake) -> list[Alert]:
    """Alerts that did not arrive, or that nobody sends any more, the oldest first."""
    return [each for each in alerts(lake) if each.is_lost]


def rows(told: list[Alert]) -> Iterator[dict[str, object]]:
    """The alerts as a table: time, state, what it was about, rule, to, run, outcome, reason."""
    for each in told:
        yield {
            "time": each.time,
            "state": Name(each.ending.name).value,
            "subject": each.ending.subject,
            "rule": each.rule,
            "to": each.to,
            "run": each.ending.run,
            "outcome": each.outcome.value,
            "tries": each.tries,
            "reason": each.reason,
        }


def now() -> str:
    """The time as records write it."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def paths(lake: Lake) -> list[str]:
    """Where the records lie."""
    return list(lake.storage.glob(f"{FOLDER}/*.json"))


def read_alert(lake: Lake, path: str) -> Alert | None:
    """One record; None where there is none.

    Raises:
        IntegrityError: it is not one that this version wrote.
    """
    try:
        content = lake.storage.read(path)
    except FileNotFoundError:  # removed between the look and the reading
        content = None
    except OSError as error:
        raise IntegrityError(f"{lake.storage.where(path)} cannot be read ({error.strerror})") from error
    if content is None:
        return None
    try:
        return Alert.model_validate_json(content)
    except ValidationError as error:
        raise IntegrityError(
            f"{lake.storage.where(path)} is no record of an alert that this version wrote; remove it: its alert is "
            "then sent once more"
        ) from error


def _readable(lake: Lake, path: str) -> Alert | None:
    with suppress(IntegrityError):
        return read_alert(lake, path)
    return None
