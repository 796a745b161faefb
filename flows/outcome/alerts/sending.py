"""Sends alerts for an ending: by the rules, once for each state of a run, and recorded in the lake.

An alert that fails is logged and recorded. It never changes how a run ended.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime

from flows.outcome.alerts import record
from flows.outcome.alerts.delivery import deliver
from flows.outcome.alerts.record import Alert, Outcome
from flows.outcome.alerts.settings import VARIABLE, Alerts, configured
from flows.outcome.alerts.wording import digest_of, line, subject_of, text_of
from flows.outcome.ending import Ending
from schemas.errors import EvenhandError, SpecError
from tasks.lake.store import Lake

log = logging.getLogger("evenhand")


def tell(lake: Lake, ending: Ending) -> None:
    """Tell an ending to those whom the rules name; nothing where EVENHAND_ALERTS is not set. It raises nothing.

    The same state of the same run is told once to each address. A digest is recorded as waiting, and sent with the
    first alert of a later day, by ``evenhand alerts send`` or by ``evenhand overdue``.
    """
    try:
        settings = configured()
    except SpecError as error:
        with _recording():
            _fault(lake, ending, str(error))
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
    """Tell an ending where no lake can be opened: nothing records that it was told. It raises nothing."""
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
    if not lake.storage.exists(record.FOLDER):
        return []
    with _locked(lake, "alerts-digest"):
        waiting = [each for each in record.alerts(lake) if each.outcome is Outcome.WAITING and each.time[:10] < today]
        batches = sorted({(each.to, each.time[:10]) for each in waiting})
        return [
            alert
            for batch in batches
            for alert in _send_digest(lake, settings, [e for e in waiting if (e.to, e.time[:10]) == batch])
        ]


def send_again(lake: Lake, settings: Alerts) -> list[Alert]:
    """Send what was not delivered; what became of each."""
    found = []
    for alert in record.undelivered(lake):
        if not alert.to:  # the file of addresses was not usable then
            _tell(lake, settings, alert.ending)
            found.append(alert.model_copy(update={"outcome": Outcome.SETTLED, "reason": ""}))
            record.write(lake, found[-1])
        else:
            found += _deliver(lake, settings, [alert], subject_of(alert.ending), text_of(alert.ending))
    return found


def _tell(lake: Lake, settings: Alerts, ending: Ending) -> None:
    time = record.now()
    named = settings.of(ending.name)
    due = [
        Alert(time=time, rule=rule.words(), to=to, ending=ending, outcome=Outcome.SENDING)
        for to, rule in named.items()
        if rule.digest is None
    ]
    if due:
        with _locked(lake, f"alert-{record.digest(ending)}"):
            mine = _claimed(lake, due)
            _deliver(lake, settings, mine, subject_of(ending), text_of(ending))
    for to, rule in named.items():
        if rule.digest is not None:
            _keep_for_digest(lake, Alert(time=time, rule=rule.words(), to=to, ending=ending, outcome=Outcome.WAITING))


def _keep_for_digest(lake: Lake, alert: Alert) -> None:
    with _locked(lake, f"alert-{alert.id}"), _recording():
        if record.found(lake, alert) is None:
            record.write(lake, alert)


def _claimed(lake: Lake, due: Sequence[Alert]) -> list[Alert]:
    """Those of the alerts that nobody has sent, recorded as being sent."""
    mine = [claimed for each in due if (claimed := _unsent(lake, each)) is not None]
    for each in mine:
        with _recording():
            record.write(lake, each)
    return mine


def _unsent(lake: Lake, alert: Alert) -> Alert | None:
    """The alert, with the tries so far; None if it was sent or is being sent.

    Where the lake does not answer, it is sent: better told twice than not at all.
    """
    try:
        before = record.found(lake, alert)
    except (EvenhandError, OSError):
        return alert
    if before is None:
        return alert
    if before.is_lost:
        return alert.model_copy(update={"time": before.time, "tries": before.tries})
    return None


def _send_digest(lake: Lake, settings: Alerts, waiting: Sequence[Alert]) -> list[Alert]:
    subject, text = digest_of([each.ending for each in waiting], waiting[0].time[:10])
    return _deliver(lake, settings, waiting, subject, text)


def _deliver(lake: Lake, settings: Alerts, due: Sequence[Alert], subject: str, text: str) -> list[Alert]:
    """Send one message to the addresses of some alerts, and record what became of them."""
    known = {each.to: settings.to[each.to] for each in due if each.to in settings.to}
    came = deliver(known, subject, text) if known else {}
    ended = []
    for each in due:
        back = came.get(each.to)
        reason = f"no address is called {each.to!r} any more" if back is None else back.reason
        news: Mapping[str, object] = (
            {"outcome": Outcome.NOT_DELIVERED, "reason": reason}
            if reason
            else {"outcome": Outcome.SENT, "reason": "", "sent": record.now()}
        )
        ended.append(each.model_copy(update={**news, "tries": each.tries + (back.tries if back else 0)}))
        _log_delivery(each.to, reason, subject)
        with _recording():
            record.write(lake, ended[-1])
    return ended


def _log_delivery(to: str, reason: str, subject: str) -> None:
    if reason:
        log.warning("alert not delivered: %s (to %s): %s", reason, to, subject)
    else:
        log.info("alert sent to %s: %s", to, subject)


def _fault(lake: Lake, ending: Ending, reason: str) -> None:
    """Record that the file of addresses is not usable, so that ``status`` shows it."""
    log.warning("alert not delivered: %s", reason)
    alert = Alert(
        time=record.now(), rule="", to="", ending=ending, outcome=Outcome.NOT_DELIVERED, reason=f"{VARIABLE}: {reason}"
    )
    if record.found(lake, alert) is None:
        record.write(lake, alert)


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
