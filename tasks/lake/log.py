"""The log of a lake: one small file an entry, ``log/000001.json`` and on, each with the digest of the one before.

An entry is written whole under another name and then linked to the next number, which fails where somebody else took
it; who comes second reads the new head, and makes and signs the entry anew. Nothing is ever changed or removed here. A
chain shows what was altered or taken out of its middle; that its end was cut off is shown only by a head that somebody
kept elsewhere (``evenhand log head``).
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from schemas.errors import IntegrityError
from tasks.lake.signatures import Signature, Signer, digest_of, holds
from tasks.lake.storage import mapping_of
from tasks.lake.store import Lake

Event = Literal[
    "run published",
    "report made",
    "note",
    "signed off",
    "read",
    "remediation",
    "protected",
    "unprotected",
    "removed",
    "key added",
    "key retired",
]
FIRST: Final = "0" * 64
"""What stands before the first entry."""
MOST_TEXT: Final = 4000
BEFORE_THE_LOG: Final = "in the lake before its log began"


class Entry(BaseModel):
    """One entry."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: int = Field(ge=1)
    time: str = Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
    """By the clock of the machine that wrote it, in UTC; times of this form are in the order of their text."""
    event: Event
    run: str = ""
    manifest_sha256: str = ""
    """Of the canonical JSON of the run's manifest."""
    by: str = ""
    """As somebody said it; a signature tells whose key it was."""
    role: str = ""
    text: str = Field("", max_length=MOST_TEXT)
    key: str = ""
    """Of an event of keys: its fingerprint; of one that was retired, with ``successor`` beside it."""
    successor: str = ""
    files: dict[str, str] = {}
    """Of a report that was made later: name -> sha256."""
    owner: str = ""
    """Of a remediation: who has to see to it."""
    due: str = ""
    """Of a remediation: the last day, such as 2027-01-31."""
    closes: int = Field(0, ge=0)
    """Of a remediation that is done: the number of the entry that opened it."""
    previous: str = Field(pattern=r"^[0-9a-f]{64}$")
    """sha256 of the bytes of the entry before."""
    signature: Signature | None = None

    def content(self) -> dict[str, Any]:
        """What is signed: all but the signature."""
        return self.model_dump(mode="json", exclude={"signature"}, exclude_defaults=True)

    def words(self) -> str:
        """The entry by its number and time, for messages."""
        return f"entry {self.n} of {self.time}"


class Head(BaseModel):
    """The last entry: its number, and the sha256 of its bytes. Of an empty log 0 and zeros."""

    model_config = ConfigDict(frozen=True)

    n: int
    sha256: str


def path_of(n: int) -> str:
    """Where an entry lies in the lake."""
    return f"log/{n:06d}.json"


def head(lake: Lake) -> Head:
    """The head of the log.

    Raises:
        IntegrityError: its last file is no entry.
    """
    numbers = _numbers(lake)
    if not numbers:
        return Head(n=0, sha256=FIRST)
    content = _content(lake, numbers[-1])
    _read(lake, numbers[-1], content)
    return Head(n=numbers[-1], sha256=hashlib.sha256(content).hexdigest())


def last_number(lake: Lake) -> int:
    """The number of the last entry, unread; 0 of an empty log."""
    numbers = _numbers(lake)
    return numbers[-1] if numbers else 0


def append(lake: Lake, event: Event, signer: Signer | None = None, **said: Any) -> Entry:
    """Add an entry; whoever adds one at the same moment gets a number of their own.

    Before the first one go the runs that are in the lake already, of a version that kept no log.

    Args:
        lake: whose log.
        event: what happened.
        signer: who signs it, if anybody.
        said: fields of ``Entry``, such as ``run``, ``by`` and ``text``.

    Raises:
        IntegrityError: the last file of the log is no entry.
        InfrastructureError: the lake cannot be written, or the signing failed.
    """
    if not _numbers(lake):
        _adopt(lake, signer, but=said.get("run", "") if event == "run published" else "")
    return _append(lake, event, signer, said)


def _append(lake: Lake, event: Event, signer: Signer | None, said: Mapping[str, Any]) -> Entry:
    while True:
        before = head(lake)
        entry = Entry(n=before.n + 1, time=_now(), event=event, previous=before.sha256, **said)
        if signer is not None:
            entry = entry.model_copy(update={"signature": signer.sign("log", entry.content())})
        if lake.add_file(path_of(entry.n), entry.model_dump_json(indent=1, exclude_defaults=True).encode()):
            return entry


def _adopt(lake: Lake, signer: Signer | None, but: str) -> None:
    """Enter the runs of a lake whose log is empty."""
    for path in lake.storage.glob("runs/*/manifest.json"):
        run = path.split("/")[1]
        try:
            manifest = mapping_of(lake.storage.read(path))
            digest = digest_of({name: value for name, value in manifest.items() if name != "sha256"})
        except ValueError:  # `evenhand verify` tells of it
            continue
        if run != but:
            said = {"run": run, "manifest_sha256": digest, "text": BEFORE_THE_LOG}
            _append(lake, "run published", signer, said)


def entries(lake: Lake, run: str | None = None) -> list[Entry]:
    """All entries, or those about a run, in their order.

    Raises:
        IntegrityError: a file is no entry.
    """
    found = [_read(lake, n, _content(lake, n)) for n in _numbers(lake)]
    return [entry for entry in found if run in (None, entry.run)]


def published(lake: Lake) -> dict[str, int]:
    """Run -> number of the last entry that tells of its being published: the order of runs, whatever clocks said.

    A run that was there before the log has none, as its entry says nothing of when it was published. Entries never
    change, so that each is read once by a process. One that cannot be read is told by who verifies.
    """
    return {run: n for n, (run, _) in sorted(_facts(lake).items()) if run}


def retired(lake: Lake) -> dict[str, int]:
    """Fingerprint of each retired key -> number of the entry that retired it, which that key has to sign itself."""
    return {key: n for n, (_, key) in sorted(_facts(lake).items(), reverse=True) if key}


def _facts(lake: Lake) -> dict[int, tuple[str, str]]:
    """Number of each entry -> the run that it publishes and the key that it retires; empty where it does neither."""
    known = _read_once.setdefault(lake.location, {})
    for n in _numbers(lake):
        if n not in known:
            said = _said(lake, n)
            event, key, made = said.get("event"), said.get("key"), said.get("signature")
            publishes = event == "run published" and said.get("text") != BEFORE_THE_LOG
            retires = event == "key retired" and isinstance(made, dict) and made.get("key") == key
            known[n] = (str(said.get("run", "")) if publishes else "", str(key) if retires else "")
    return known


_read_once: dict[str, dict[int, tuple[str, str]]] = {}
"""Of each lake what ``_facts`` found in its entries."""


def _said(lake: Lake, n: int) -> dict[str, Any]:
    with suppress(ValueError, IntegrityError):
        read = json.loads(_content(lake, n))
        return read if isinstance(read, dict) else {}
    return {}


def entry_of(lake: Lake, n: int) -> Entry | None:
    """The entry of a number; None where there is none.

    Raises:
        IntegrityError: the file is no entry.
    """
    content = lake.storage.read(path_of(n))
    return None if content is None else _read(lake, n, content)


def digest_at(lake: Lake, n: int) -> str:
    """The sha256 of the bytes of an entry: with its number an anchor, as the head is."""
    return hashlib.sha256(_content(lake, n)).hexdigest()


def problems(lake: Lake) -> Iterator[str]:
    """What is wrong with the chain, the first that does not fit first; nothing of a sound one."""
    before = FIRST
    for place, n in enumerate(_numbers(lake), 1):
        where = lake.storage.where(path_of(n))
        if n != place:
            yield f"{lake.storage.where(path_of(place))} is missing: the log was cut in its middle"
            return
        content = _content(lake, n)
        try:
            entry = _read(lake, n, content)
        except IntegrityError as error:
            yield str(error)
            return
        if entry.previous != before:
            yield f"{where} does not follow the entry before it: one of the two was altered"
            return
        if entry.signature is not None and not holds(entry.signature, "log", entry.content()):
            yield f"{where} has a signature that is not of this entry"
            return
        before = hashlib.sha256(content).hexdigest()


def kept_head(lake: Lake, n: int, sha256: str) -> str:
    """What is wrong if an entry has not the digest that somebody kept elsewhere; empty where it has."""
    content = lake.storage.read(path_of(n))
    if content is None:
        return f"{lake.storage.where(path_of(n))} is missing, and was the head once: the log was cut short"
    if hashlib.sha256(content).hexdigest() != sha256:
        return f"{lake.storage.where(path_of(n))} is not the head that was kept: the log was written anew"
    return ""


def newest(found: Sequence[Entry], events: Mapping[str, object] | Sequence[str]) -> Entry | None:
    """The last of some entries that is of one of these events."""
    return next((entry for entry in reversed(found) if entry.event in events), None)


def _numbers(lake: Lake) -> list[int]:
    names = [path.rsplit("/", 1)[1].removesuffix(".json") for path in lake.storage.glob("log/*.json")]
    return sorted(int(name) for name in names if name.isdecimal())


def _content(lake: Lake, n: int) -> bytes:
    return lake.storage.read(path_of(n)) or b""


def _read(lake: Lake, n: int, content: bytes) -> Entry:
    where = lake.storage.where(path_of(n))
    try:
        entry = Entry.model_validate_json(content)
    except ValidationError as error:
        raise IntegrityError(f"{where} is no entry of a log; restore it from a copy") from error
    if entry.n != n:
        raise IntegrityError(f"{where} says that it is entry {entry.n}; restore it from a copy")
    return entry


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
