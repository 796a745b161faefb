"""Alerts for an ending: text, rules, delivery and record."""

import hashlib
import logging
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from flows.outcome.alert_process import send_apart
from flows.outcome.alert_settings import VARIABLE, Alerts, configured
from flows.outcome.ending import Ending, Name
from schemas.errors import EvenhandError, IntegrityError, SpecError
from tasks.lake.store import Lake

if TYPE_CHECKING:
    from prefect import Flow
    from prefect.client.schemas.objects import FlowRun, State

    from flows.outcome.run_log import RunLog


# --------------------------------------------------------------------------------------------------------------------
# Words of an alert: subject, text, report and what to do. Published figures only, as the ending has them.


_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_MOST_TEXT: Final = 2000
"""Characters of a message."""

STEPS: Mapping[Name, str] = {
    Name.WITHIN: "Nothing. `evenhand verdicts RUN` prints the state of every group.",
    Name.OUTSIDE: "`evenhand verdicts RUN`; an analyst reads the report and signs it: `evenhand signoff RUN --as NAME "
    "--role prepared --note TEXT`.",
    Name.INCONCLUSIVE: "`evenhand verdicts RUN`; then fewer groups, more rows, or a sign-off that accepts it.",
    Name.SPEC: "Mend the spec where the message says; `evenhand plan SPEC` lists the stages of a sound one.",
    Name.DATA_QUALITY: "`evenhand audit SPEC` at a terminal prints the whole message, with the rows; a corrected file "
    "is a new vintage.",
    Name.INFRASTRUCTURE: "`evenhand doctor` and `evenhand status` name disk, memory or server; mend it and run again: "
    "finished stages are kept.",
    Name.INTEGRITY: "Stop the worker. `evenhand verify RUN` and `evenhand log verify` name the files; restore them.",
    Name.CRASHED: "Nothing if a worker takes the run up again. Else run it again: finished stages are kept. Twice at "
    "one stage: more memory, or fewer stages at a time (EVENHAND_JOBS=1); the message says what it held.",
    Name.CANCELLED: "Nothing if you know who cancelled it. Else run it again: finished stages are kept.",
    Name.OVERDUE: "`evenhand schedules`; then look for a server or worker that is down, a paused schedule, or a file "
    "that did not come.",
}
"""First step of the runbook (deployments/README.md) for each ending."""


def subject_of(ending: Ending) -> str:
    """The subject line: ``Evenhand: breach in loans 2024``."""
    joined = ":" if ending.name is Name.OVERDUE else " in"
    return line(f"Evenhand: {ending.name.lower()}{joined} {ending.subject}")


def text_of(ending: Ending) -> str:
    """The text of one alert."""
    return "\n".join([*_facts(ending), f"What to do: {_step(ending)}"])


def digest_of(endings: Sequence[Ending], day: str) -> tuple[str, str]:
    """Subject and text of the message about all endings of a day."""
    if len(endings) == 1:
        return subject_of(endings[0]), text_of(endings[0])
    counts = {name: sum(ending.name is name for ending in endings) for name in Name}
    counts_text = ", ".join(f"{count} {name.lower()}" for name, count in counts.items() if count)
    parts = ["\n".join([subject_of(ending), *_facts(ending), f"What to do: {_step(ending)}"]) for ending in endings]
    return f"Evenhand: {counts_text} on {day}", "\n\n".join(parts)


def line(text: str) -> str:
    """A text without control characters, in one line."""
    return _CONTROL.sub(" ", text).strip()[:_MOST_TEXT]


def _facts(ending: Ending) -> list[str]:
    named = {"Run": ending.run, "Report": ending.report}
    message = "\n".join(line(text) for text in ending.message.split("\n"))[:_MOST_TEXT]
    return [message, *(f"{name}: {line(value)}" for name, value in named.items() if value)]


def _step(ending: Ending) -> str:
    step = STEPS[ending.name]
    return step.replace("RUN", ending.run) if ending.run else step


# --------------------------------------------------------------------------------------------------------------------
# Record of every alert in the lake: ``alerts/<id>.json``, one file for an ending and an address.
#
# The id follows from the run, the state and the address, so that the same state of the same run is sent once. Records
# hold names of addresses, never the addresses.


FOLDER = "alerts"
_STUCK = timedelta(minutes=10)
"""A record in the state ``sending`` for so long belongs to a process that died, here or on another machine."""


class Outcome(StrEnum):
    """What became of an alert."""

    SENDING = "sending"
    SENT = "sent"
    NOT_DELIVERED = "not delivered"
    WAITING = "waiting"
    """For the digest of its day."""
    SETTLED = "settled"
    """It had no address, as the file was not usable; its ending was sent to the addresses of the corrected file."""


class Alert(BaseModel):
    """One alert: an ending, sent to one address."""

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
        """Whether it did not arrive and no process is sending it: the sending process may have died."""
        stuck = datetime.fromisoformat(self.time) < datetime.now(UTC) - _STUCK
        return self.outcome is Outcome.NOT_DELIVERED or (self.outcome is Outcome.SENDING and stuck)


def digest(ending: Ending) -> str:
    """What makes two endings the same: run and state; without a run its flow run, else subject and message."""
    about = ending.run or ending.flow_run or f"{ending.subject}: {ending.message}"
    return hashlib.sha256(f"{ending.name}\n{about}".encode()).hexdigest()[:16]


def found(lake: Lake, alert: Alert) -> Alert | None:
    """The record of an alert, if a readable one exists: an alert sent twice is better than none."""
    return _readable(lake, alert.path)


def write(lake: Lake, alert: Alert) -> None:
    """Write a record over the one that was there.

    Raises:
        InfrastructureError: the disk is full or fails.
    """
    lake.write_file(alert.path, alert.model_dump_json(indent=1).encode(), draft=f"tmp/alert-{alert.id}.json")


def alerts(lake: Lake) -> list[Alert]:
    """All alerts of a lake, the oldest first; a record that cannot be read is left out: ``unreadable``."""
    records = [_readable(lake, path) for path in paths(lake)]
    return sorted((alert for alert in records if alert is not None), key=lambda alert: (alert.time, alert.to))


def unreadable(lake: Lake) -> list[str]:
    """Of each record that cannot be read: its file, and the next step."""
    messages = []
    for path in paths(lake):
        try:
            read_alert(lake, path)
        except IntegrityError as error:
            messages.append(str(error))
    return messages


def undelivered(lake: Lake) -> list[Alert]:
    """Alerts that did not arrive and that no process is sending any more, the oldest first."""
    return [alert for alert in alerts(lake) if alert.is_lost]


def rows(alert_records: list[Alert]) -> Iterator[dict[str, object]]:
    """The alerts as a table: time, state, what it was about, rule, to, run, outcome, reason."""
    for alert in alert_records:
        yield {
            "time": alert.time,
            "state": Name(alert.ending.name).value,
            "subject": alert.ending.subject,
            "rule": alert.rule,
            "to": alert.to,
            "run": alert.ending.run,
            "outcome": alert.outcome.value,
            "tries": alert.tries,
            "reason": alert.reason,
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


# --------------------------------------------------------------------------------------------------------------------
# Delivery of one message to several addresses, by apprise: three tries, and the reason where it does not arrive.


WAITS: Final = (0.0, 1.0, 4.0)
"""Seconds before each try."""


@dataclass(frozen=True)
class Delivered:
    """What came back from one address."""

    tries: int
    reason: str = ""
    """Why the message did not arrive; empty where it did."""

    @property
    def outcome(self) -> str:
        """In one word or two."""
        return "not delivered" if self.reason else "sent"


def deliver(addresses: Mapping[str, str], subject: str, text: str) -> dict[str, Delivered]:
    """Send a message to named addresses; the second and third try are for those that it did not reach.

    Args:
        addresses: name -> address, as apprise writes it.
        subject: of the message.
        text: plain text.

    Returns:
        What came back from each, by name. It raises nothing: what an address or a library raises is its reason.
    """
    deliveries: dict[str, Delivered] = {}
    for tried, wait in enumerate(WAITS, 1):
        remaining = [name for name in addresses if name not in deliveries or deliveries[name].reason]
        if remaining:
            time.sleep(wait)
            reasons = send_apart({name: addresses[name] for name in remaining}, subject, text)
            deliveries |= {name: Delivered(tried, reason) for name, reason in reasons.items()}
    return deliveries


# --------------------------------------------------------------------------------------------------------------------
# Sends alerts for an ending: by the rules, once for each state of a run, and recorded in the lake.
#
# An alert that fails is logged and recorded. It never changes how a run ended.


log = logging.getLogger("evenhand")


def tell(lake: Lake, ending: Ending) -> None:
    """Send an ending to the addresses of the rules; nothing where EVENHAND_ALERTS is not set. It raises nothing.

    The same state of the same run is sent once to each address. A digest is recorded as waiting, and sent with the
    first alert of a later day, by ``evenhand alerts send`` or by ``evenhand overdue``.
    """
    try:
        settings = configured()
    except SpecError as error:
        with _recording():
            # Record that the file of addresses is not usable, so that `status` shows it.
            reason = str(error)
            log.warning("alert not delivered: %s", reason)
            alert = Alert(
                time=now(), rule="", to="", ending=ending, outcome=Outcome.NOT_DELIVERED, reason=f"{VARIABLE}: {reason}"
            )
            if found(lake, alert) is None:
                write(lake, alert)
        return
    if settings is not None:
        try:
            _tell(lake, settings, ending)
        except Exception as error:
            log.warning("alert not delivered: %s", line(f"{type(error).__name__}: {error}"))
        send_waiting(lake)


def send_waiting(lake: Lake) -> None:
    """Send the digests of the days before today, where a rule of EVENHAND_ALERTS has one. It raises nothing."""
    try:
        settings = configured()
        if settings is not None and any(rule.digest for rule in settings.rules):  # it reads all records
            send_digests(lake, settings)
    except Exception as error:
        log.warning("alert not delivered: %s", line(f"{type(error).__name__}: {error}"))


def tell_unrecorded(ending: Ending) -> None:
    """Send an ending where no lake can be opened: no record shows that it was sent. It raises nothing."""
    try:
        settings = configured()
        if settings is not None:
            subject, addresses = subject_of(ending), {to: settings.to[to] for to in settings.of(ending.name)}
            for to, back in deliver(addresses, subject, text_of(ending)).items():
                _log_delivery(to, back.reason, subject)
    except Exception as error:
        log.warning("alert not delivered: %s", line(f"{type(error).__name__}: {error}"))


def send_digests(lake: Lake, settings: Alerts, now: datetime | None = None) -> list[Alert]:
    """Send the digests of the days before today (UTC); what became of each alert in them."""
    today = f"{now or datetime.now(UTC):%Y-%m-%d}"
    if not lake.storage.exists(FOLDER):
        return []
    with _locked(lake, "alerts-digest"):
        waiting = [alert for alert in alerts(lake) if alert.outcome is Outcome.WAITING and alert.time[:10] < today]
        batches = sorted({(alert.to, alert.time[:10]) for alert in waiting})
        sent = []
        for to, day in batches:
            batch = [alert for alert in waiting if (alert.to, alert.time[:10]) == (to, day)]
            subject, text = digest_of([alert.ending for alert in batch], day)
            sent += _deliver(lake, settings, batch, subject, text)
        return sent


def send_again(lake: Lake, settings: Alerts) -> list[Alert]:
    """Send what was not delivered; what became of each."""
    resent = []
    for alert in undelivered(lake):
        if not alert.to:  # the file of addresses was not usable then
            _tell(lake, settings, alert.ending)
            resent.append(alert.model_copy(update={"outcome": Outcome.SETTLED, "reason": ""}))
            write(lake, resent[-1])
        else:
            resent += _deliver(lake, settings, [alert], subject_of(alert.ending), text_of(alert.ending))
    return resent


def _tell(lake: Lake, settings: Alerts, ending: Ending) -> None:
    time = now()
    named = settings.of(ending.name)
    due = [
        Alert(time=time, rule=rule.words(), to=to, ending=ending, outcome=Outcome.SENDING)
        for to, rule in named.items()
        if rule.digest is None
    ]
    if due:
        with _locked(lake, f"alert-{digest(ending)}"):
            claimed_alerts = [claimed for alert in due if (claimed := _unsent(lake, alert)) is not None]
            for claimed_alert in claimed_alerts:
                with _recording():
                    write(lake, claimed_alert)
            _deliver(lake, settings, claimed_alerts, subject_of(ending), text_of(ending))
    for to, rule in named.items():
        if rule.digest is not None:
            alert = Alert(time=time, rule=rule.words(), to=to, ending=ending, outcome=Outcome.WAITING)
            with _locked(lake, f"alert-{alert.id}"), _recording():
                if found(lake, alert) is None:
                    write(lake, alert)


def _unsent(lake: Lake, alert: Alert) -> Alert | None:
    """The alert, with the tries so far; None if it was sent or is being sent.

    Where the lake does not answer, it is sent: better twice than not at all.
    """
    try:
        before = found(lake, alert)
    except (EvenhandError, OSError):
        return alert
    if before is None:
        return alert
    if before.is_lost:
        return alert.model_copy(update={"time": before.time, "tries": before.tries})
    return None


def _deliver(lake: Lake, settings: Alerts, due: Sequence[Alert], subject: str, text: str) -> list[Alert]:
    """Send one message to the addresses of some alerts, and record what became of them."""
    addresses = {alert.to: settings.to[alert.to] for alert in due if alert.to in settings.to}
    came = deliver(addresses, subject, text) if addresses else {}
    ended = []
    for alert in due:
        back = came.get(alert.to)
        reason = f"no address is called {alert.to!r} any more" if back is None else back.reason
        news: Mapping[str, object] = (
            {"outcome": Outcome.NOT_DELIVERED, "reason": reason}
            if reason
            else {"outcome": Outcome.SENT, "reason": "", "sent": now()}
        )
        ended.append(alert.model_copy(update={**news, "tries": alert.tries + (back.tries if back else 0)}))
        _log_delivery(alert.to, reason, subject)
        with _recording():
            write(lake, ended[-1])
    return ended


def _log_delivery(to: str, reason: str, subject: str) -> None:
    if reason:
        log.warning("alert not delivered: %s (to %s): %s", reason, to, subject)
    else:
        log.info("alert sent to %s: %s", to, subject)


@contextmanager
def _locked(lake: Lake, name: str) -> Iterator[None]:
    """Hold a lock, if the lake can hold one."""
    with ExitStack() as stack:
        with _recording():
            stack.enter_context(lake.lock(name))
        yield


@contextmanager
def _recording() -> Iterator[None]:
    """Go on where the lake cannot be written: an alert about a full disk is sent all the same."""
    try:
        yield
    except Exception as error:
        log.warning("the alert is not recorded in the lake: %s", line(str(error)))


# --------------------------------------------------------------------------------------------------------------------
# Hook of flows: sends the alerts of an ended flow run, by its state on the server.


def send_alerts(flow: "Flow[Any, Any]", flow_run: "FlowRun", state: "State[Any]") -> None:
    """Send alerts of how a flow run ended; nothing where EVENHAND_ALERTS is not set. It raises nothing.

    Prefect calls it in the process of the run, and for a crash or a cancellation in the worker that ends that process
    or sees it end. It does so, too, for a run that left because its worker had to stop: that gets no alert.
    """
    if not os.environ.get(VARIABLE):
        return
    from flows.outcome.conclusion import ending_of_state
    from flows.outcome.ending import subject_of
    from flows.supervision.presence import was_stopped

    with _on_server(flow, flow_run):
        try:
            lake = None
            with suppress(EvenhandError, OSError):  # without a lake, no record shows that the alert was sent
                lake = Lake(flow_run.parameters["lake"])
            if lake is not None and state.is_crashed() and was_stopped(lake, str(flow_run.id)):
                return
            ending = ending_of_state(flow_run, state, lake)
            if ending is not None:  # a run that died early has not its own name yet
                ending = replace(ending, subject=subject_of(flow_run.parameters).words)
                tell_unrecorded(ending) if lake is None else tell(lake, ending)
        except Exception as error:
            log.warning("alert not delivered: the ending of %s is not known (%s)", flow_run.name, type(error).__name__)


_ENDINGS: Final = ("on_completion", "on_failure", "on_crashed", "on_cancellation")
ALERTED: Final[dict[str, Any]] = {key: [send_alerts] for key in _ENDINGS}
"""Settings of a flow that sends alerts of its endings."""


class _Lines(logging.Handler):
    """Hands lines of the program to the log of a run that has ended."""

    def __init__(self, run: "RunLog") -> None:
        super().__init__(logging.INFO)
        self._run = run

    def emit(self, record: logging.LogRecord) -> None:
        """Hand over a line."""
        self._run.tell(record.levelno, record.getMessage())


@contextmanager
def _on_server(flow: "Flow[Any, Any]", flow_run: "FlowRun") -> Iterator[None]:
    """Lines of this block are in the run's log on the server, too."""
    from prefect.logging.loggers import flow_run_logger

    from flows.outcome.run_log import RunLog

    run = RunLog(flow_run_logger(flow_run, flow), (), logging.CRITICAL)
    lines = _Lines(run)
    log.addHandler(lines)
    try:
        yield
    finally:
        log.removeHandler(lines)
        run.send()
