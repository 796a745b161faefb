"""Notes of people on a run, as entries of the log: a text, that they read it, what has to be remedied and when."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from flows.runs.manifest import read_manifest
from flows.runs.naming import audit_of
from flows.runs.trust import persons
from flows.runs.trust.chain import require_chain
from flows.runs.trust.persons import FieldError
from tasks.lake import log
from tasks.lake.signatures import digest_of, signer
from tasks.lake.store import Lake


@dataclass(frozen=True)
class Note:
    """What somebody says of a run."""

    by: str
    text: str = ""
    key: Path | None = None
    """Private key; that of the environment if None."""


@dataclass(frozen=True)
class Remediation:
    """Something that has to be remedied."""

    n: int
    """Of the entry that opened it."""
    run: str
    text: str
    by: str
    owner: str
    due: str
    """The last day, such as 2027-01-31."""

    def overdue(self, today: date | None = None) -> bool:
        """Whether the last day is over; days are those of UTC."""
        return self.due < (today or _today()).isoformat()


def note(lake: Lake, run: str, said: Note) -> log.Entry:
    """Add a note.

    Raises:
        SpecError: no such run, no name, or no text.
        IntegrityError: the log's chain is broken.
    """
    return _append(lake, run, said, "note", _text(said))


def note_read(lake: Lake, run: str, said: Note) -> log.Entry | None:
    """Enter that somebody read a run, once for a run, a name and a day (UTC); None where the log has it already.

    Raises:
        SpecError: no such run, or no name.
        IntegrityError: the log's chain is broken.
    """
    by, today = persons.name(said.by), _today().isoformat()
    with lake.lock(f"run-{run}"):
        for entry in log.entries(lake, run):
            if entry.event == "read" and entry.time[: len(today)] == today and persons.same(entry.by, by):
                return None
        return _append(lake, run, said, "read", persons.text(said.text, "the text"))


def note_view(lake: Lake, run: str, said: Note) -> log.Entry:
    """Enter that somebody was shown rows of persons, each time; the text says which page.

    Raises:
        SpecError: no such run, no name, or no text.
    """
    return _enter(lake, run, said, "read", _text(said))


def open_remediation(lake: Lake, run: str, said: Note, owner: str, due: str) -> log.Entry:
    """Enter what has to be remedied, by whom, and until when.

    Raises:
        SpecError: no such run, no name, no text, or the day is none or over.
        IntegrityError: the log's chain is broken.
    """
    try:
        last = date.fromisoformat(due)
    except ValueError as error:
        why = f"{due!r} is no day; give one such as 2027-01-31"
        raise FieldError("due", f"--due {why}", why) from error
    if last < _today():
        why = f"{last.isoformat()} is over; give a day to come, such as {_today().isoformat()}"
        raise FieldError("due", f"--due {why}", why)
    who = persons.name(owner, "--owner")
    return _append(lake, run, said, "remediation", _text(said), owner=who, due=last.isoformat())


def close_remediation(lake: Lake, run: str, said: Note, n: int) -> log.Entry:
    """Enter that something is remedied, by a run of the same audit that shows it.

    Raises:
        SpecError: no such run, no name, or no open remediation of the audit has that number.
        IntegrityError: the log's chain is broken.
    """
    mine = [each for each in remediations(log.entries(lake)) if audit_of(each.run) == audit_of(run)]
    if n not in {each.n for each in mine}:
        known = ", ".join(f"{each.n} ({each.owner}, {each.due})" for each in mine)
        told = f"open are {known}" if mine else "none is open"
        why = f"{n} is no open remediation of {audit_of(run)}: {told}"
        raise FieldError("closes", f"--done {why}", f"entry {why}")
    return _append(lake, run, said, "remediation", persons.text(said.text, "the text"), closes=n)


def remediations(found: Sequence[log.Entry]) -> list[Remediation]:
    """What is open, by the entries of a log; what was found in a run that is removed stays open."""
    every = [entry for entry in found if entry.event == "remediation"]
    done = {entry.closes for entry in every}
    return [
        Remediation(entry.n, entry.run, entry.text, entry.by, entry.owner, entry.due)
        for entry in every
        if not entry.closes and entry.n not in done
    ]


def _append(lake: Lake, run: str, said: Note, event: log.Event, text: str, **more: str | int) -> log.Entry:
    require_chain(lake)
    return _enter(lake, run, said, event, text, **more)


def _enter(lake: Lake, run: str, said: Note, event: log.Event, text: str, **more: str | int) -> log.Entry:
    digest, by = digest_of(read_manifest(lake, run)), persons.name(said.by)
    return log.append(lake, event, signer(said.key), run=run, manifest_sha256=digest, by=by, text=text, **more)


def _text(said: Note) -> str:
    kept = persons.text(said.text, "the text")
    if not kept:
        why = "the text is empty; say what is to be noted"
        raise FieldError("text", why, why)
    return kept


def _today() -> date:
    return datetime.now(UTC).date()
