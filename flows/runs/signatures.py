"""Signatures of a run, entries of the log that count, keys, persons, and checks of the log and of a run."""

import hashlib
import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from flows.runs.control_characters import controls
from flows.runs.index import LIST, made_later, mark_of, marked, read_manifest, record_of, report_named
from flows.runs.summary import NAMED, summary_path
from flows.supervision.presence import gate
from schemas.artifact import Partition
from schemas.errors import IntegrityError, SpecError
from tasks.lake import log
from tasks.lake.log import (
    KEY,
    TRUSTED,
    Signature,
    Signer,
    digest_of,
    fingerprint,
    holds,
    public_key,
    required_signer,
    signer,
    trusted,
)
from tasks.lake.store import Lake, open_lake

# --------------------------------------------------------------------------------------------------------------------
# Which entries of the log count where keys are trusted, and which key may sign such an entry.
#
# With EVENHAND_TRUSTED_KEYS an entry that counts needs the signature of a trusted key. Without trusted keys anybody who
# can write to the lake can write the log anew: names are claims then, and the log shows damage, not forgery.


COUNTING: Final[tuple[log.Event, ...]] = (
    "run published",
    "signed off",
    "key added",
    "key retired",
    "protected",
    "unprotected",
    "released",
)
"""Events on which the state of a run rests: which run is valid, and who signed it with which key."""
ENDING: Final = ("rejected", "withdrawn")
"""Roles that take what was signed before back; they need a text."""


def trusted_signer(lake: Lake, key: Path | None = None) -> Signer | None:
    """Signer of an entry that counts; None where no key is set up and none is trusted.

    Args:
        lake: whose log gets the entry.
        key: file of a private key; the key that the environment names if None.

    Raises:
        SpecError: keys are trusted, and no key or another key signs; the key was retired; or a file holds no key.
    """
    chosen, keys = signer(key), trusted()
    if chosen is None:
        if keys:
            raise SpecError(
                f"{TRUSTED} is set and no key signs: without a signature this entry of the log would not count, and "
                f"`evenhand log verify` would fail. Set {KEY} to the file of a trusted private key, or unset {TRUSTED}"
            )
        return None
    name = fingerprint(chosen.public)
    if keys and name not in keys:
        raise SpecError(
            f"the key {name} signs, and {TRUSTED} trusts {_listed(keys)} alone: this entry of the log would not count. "
            f"Sign with a trusted key, or add the public key of {name} to {TRUSTED}"
        )
    if entry := log.retired(lake).get(name):
        raise SpecError(
            f"the key {name} was retired (entry {entry} of the log): nothing that it signs now counts. "
            f"Set {KEY} to the key that follows it"
        )
    return chosen


def counting(entries: Sequence[log.Entry], keys: frozenset[str]) -> list[log.Entry]:
    """The entries without those that do not count, see ``faults``.

    A rejection or withdrawal stays, whoever signed it: to strip its signature must not bring an approval back.
    """
    wrong = faults(entries, keys)
    return [entry for entry in entries if entry.n not in wrong or entry.role in ENDING]


def faults(entries: Sequence[log.Entry], keys: frozenset[str], *, checked: bool = False) -> dict[int, str]:
    """Entries that do not count: number of each -> a sentence with the reason.

    Args:
        entries: all entries of the log, in their order.
        keys: fingerprints of the trusted keys; without any an unsigned entry counts.
        checked: whether each signature is known to be of its entry, by ``read_whole``.
    """
    out: dict[int, str] = {}
    retired: dict[str, log.Entry] = {}
    for entry in entries:
        reason = _fault(entry, keys, retired, checked=checked)
        if reason:
            about = " ".join(part for part in (entry.role or entry.event, entry.run) if part)
            out[entry.n] = f"{entry.words()} ({about}{f' by {entry.by}' if entry.by else ''}) {reason}"
        elif entry.event == "key retired":
            retired[entry.key] = entry
    return out


def _fault(entry: log.Entry, keys: frozenset[str], retired: Mapping[str, log.Entry], *, checked: bool) -> str:
    """Why an entry does not count; empty where it does."""
    counts, signature = entry.event in COUNTING, entry.signature
    if signature is None:
        if entry.event == "key retired":
            return "has no signature: only the key that is retired, or another trusted one, can sign it"
        return "has no signature, and it needs the signature of a trusted key" if keys and counts else ""
    if not checked and not holds(signature, "log", entry.content()):
        return "has a signature that is not of it: it was altered"
    if signature.key in retired:
        return f"is signed by {signature.key}, a key that was retired before ({retired[signature.key].words()})"
    if entry.event == "key retired" and signature.key != entry.key and signature.key not in keys:
        return (
            f"is signed by {signature.key}: only the key that is retired ({entry.key}), or another trusted one, can "
            "sign it"
        )
    if keys and counts and signature.key not in keys:
        return f"is signed by {signature.key}, which is none of the trusted keys ({_listed(keys)})"
    return ""


def _listed(keys: frozenset[str]) -> str:
    return ", ".join(sorted(keys))


# --------------------------------------------------------------------------------------------------------------------
# Protection of a published run: an entry of the log, and a mark in the run's folder.


def protect(lake: Lake, run: str, protected: bool) -> None:
    """Protect a run, or remove its protection.

    Raises:
        SpecError: the lake holds no such run, it was released, or keys are trusted and no trusted key signs.
    """
    if not protected and (n := log.released(lake).get(run)):
        raise SpecError(f"{run} was released (entry {n} of the log), and stays protected: later releases need it")
    with gate(lake):  # a run that is being removed is not there any more, rather than protected
        entry = log.append(
            lake,
            "protected" if protected else "unprotected",
            trusted_signer(lake),
            run=run,
            manifest_sha256=digest_of(read_manifest(lake, run)),
        )
        if protected:
            lake.write_file(mark_of(run), mark_content(entry))
        else:
            lake.storage.remove(marked(run))


def mark_content(entry: log.Entry) -> bytes:
    """What the mark of a protected run holds, by its entry in the log."""
    return json.dumps({"run": entry.run, "since": entry.time}).encode()


# --------------------------------------------------------------------------------------------------------------------
# Keys in the log of a lake: one that is added, and one that is retired by signing its successor.


def add_key(lake: Lake, public: Path, why: str = "") -> log.Entry:
    """Add a key to the log; the entry is signed by the key that is set up, if there is one.

    Args:
        lake: that has the log.
        public: file of the public key.
        why: such as that the key before it was lost.

    Raises:
        SpecError: the file holds no public key, or keys are trusted and no trusted key signs.
    """
    return log.append(lake, "key added", trusted_signer(lake), key=fingerprint(public_key(public)), text=why)


def retire_key(lake: Lake, old: Path, new: Path) -> log.Entry:
    """Retire a key in favour of another: the entry is signed by the old one, or by another trusted key.

    What the old key signed stays valid where the log had it before.

    Args:
        lake: that has the log.
        old: file of the private key that goes; of its public key where the private one is lost or in wrong hands, and
            another trusted key is set up to sign.
        new: file of the public key that comes.

    Raises:
        SpecError: a file holds no key, or both are the same key, or the old one is retired already or not trusted.
    """
    successor, signer = fingerprint(public_key(new)), None
    try:
        old_fingerprint = fingerprint(required_signer(old).public)
    except SpecError:
        if not trusted():
            raise
        old_fingerprint, signer = fingerprint(public_key(old)), trusted_signer(lake)
    if old_fingerprint == successor:
        raise SpecError(
            f"{new} is the key that is to be retired ({old_fingerprint}); make another with `evenhand keys new`"
        )
    if old_fingerprint in log.retired(lake):
        raise SpecError(f"the key {old_fingerprint} is retired already; `evenhand log` shows when")
    signer = signer or trusted_signer(lake, old)
    return log.append(lake, "key retired", signer, key=old_fingerprint, successor=successor)


# --------------------------------------------------------------------------------------------------------------------
# What people say of themselves and of a run: names and texts that an entry of the log may hold.
#
# A name is a claim. Only a key shows the author of an entry.


MOST_NAME = 100
_UNPRINTED = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Categories of characters that no page shows: controls, marks of direction, separators of lines."""
_FIELDS = {"--as": "by", "--owner": "owner"}


class FieldError(SpecError):
    """The content of one field is refused; the command and a form each have a message for it."""

    def __init__(self, field: str, message: str, reason: str) -> None:
        """Keep what a form needs.

        Args:
            field: text, owner, due, role, closes or by.
            message: as the command says it, with the option.
            reason: as a form says it after the label of the field.
        """
        super().__init__(message)
        self.field, self.reason = field, reason


def name(person: str, option: str = "--as") -> str:
    """A name as it is kept: without blanks around it, and of characters that are seen.

    Raises:
        FieldError: it is empty, too long, or has characters that are not printed.
    """
    full_name, field = person.strip(), _FIELDS.get(option, "by")
    if not full_name:
        raise FieldError(field, f"{option} is empty: give a name, such as {option} 'Ann Lee'", "give a name")
    if len(full_name) > MOST_NAME:
        why = f"has {len(full_name):,} letters, and at most {MOST_NAME} are kept"
        raise FieldError(field, f"{option} {why}", f"the name {why}")
    if any(unicodedata.category(letter) in _UNPRINTED for letter in full_name):
        why = f"{full_name!r} has characters that no page shows; give the name in letters"
        raise FieldError(field, f"{option} {why}", why)
    return full_name


def text(raw_text: str, option: str) -> str:
    """A text as it is kept.

    Raises:
        FieldError: it is too long, or has characters that work a terminal or turn what a page shows.
    """
    cleaned = raw_text.replace("\r\n", "\n").strip()
    if len(cleaned) > log.MOST_TEXT:
        why = f"has {len(cleaned):,} letters, and at most {log.MOST_TEXT:,} are kept"
        raise FieldError("text", f"{option} {why}", f"the text {why}")
    if wrong := controls(cleaned):
        why = f"has control characters ({wrong}), which are not kept; newlines and tabs are"
        raise FieldError("text", f"{option} {why}", f"the text {why}")
    return cleaned


def same(first_name: str, other: str) -> bool:
    """Whether two names belong to one person, regardless of capitals, blanks and width of letters."""
    return plain(first_name) == plain(other)


def plain(person: str) -> str:
    """A name in one form of its capitals, blanks and width of letters."""
    return " ".join(unicodedata.normalize("NFKC", person).casefold().split())


# --------------------------------------------------------------------------------------------------------------------
# Checks the whole log of a lake: chain, signatures, a head that was kept elsewhere, and an entry for every run.


@dataclass(frozen=True)
class CheckedLog:
    """A log without faults."""

    entries: int
    remarks: tuple[str, ...]
    """Sentences on facts that a reader has to know and that are no faults."""


def check_log(lake: Lake, known_head: str | None = None, signed_after: str | None = None) -> CheckedLog:
    """Check the log; where keys are trusted, every entry that counts needs the signature of a trusted key.

    Args:
        lake: that has the log.
        known_head: a head as `evenhand log head` printed it, ``N:SHA256``.
        signed_after: the head of the time when keys were set up; entries up to it need no trusted signature.

    Raises:
        SpecError: ``known_head`` or ``signed_after`` is no head, or EVENHAND_TRUSTED_KEYS names no key.
        IntegrityError: the chain is broken or cut, an entry does not count, or a run has no entry; all of it is listed.
    """
    heads = {"--head": known_head, "--signed-after": signed_after}
    anchors = {option: _head_of(option, text) for option, text in heads.items() if text}
    keys = trusted()
    entries, broken = log.read_whole(lake)
    problems = [broken] if broken else []
    problems += [why for anchor in anchors.values() if (why := log.kept_head(lake, anchor.n, anchor.sha256))]
    if problems:
        raise _faulty(lake, problems)
    wrong, always_wrong = (faults(entries, trusted_keys, checked=True) for trusted_keys in (keys, frozenset[str]()))
    last_unsigned = anchors["--signed-after"].n if signed_after else 0
    accepted = [n for n in wrong if n <= last_unsigned and n not in always_wrong]
    problems += [why for n, why in wrong.items() if n not in accepted]
    if any(n not in always_wrong and n not in accepted for n in wrong):
        problems.append(
            f"Next step: find out who wrote these entries. If they are older than your keys, publish the runs again "
            f"with {KEY}, sign them off again with --key, and give --signed-after N:SHA256, the head of that time"
        )
    problems += _without_entry(lake, entries)
    false_times, times = _times_back(entries, anchors["--head"].n if known_head else 0)
    problems += false_times
    if problems:
        raise _faulty(lake, problems)
    return CheckedLog(len(entries), (*_remarks(entries, keys, len(accepted)), *times))


def _times_back(entries: Sequence[log.Entry], confirmed: int) -> tuple[list[str], list[str]]:
    """Times before that of the entry before them, which count for nothing in the order: faults, and remarks.

    A writer whose clock is behind says so in the entry. A false time says nothing. Nor does an entry of an earlier
    version, which is a remark up to the entry ``confirmed``, the head that somebody kept after it.
    """
    problems, remarks = list[str](), list[str]()
    for before, entry in pairwise(entries):
        seconds = entry.behind_of(before)
        words = f"{entry.words()} is {seconds:,} s earlier than the entry before it ({before.time})"
        if seconds and seconds == entry.behind:
            remarks.append(f"{words}, as it says: the clock of its writer was behind")
        elif seconds != entry.behind and entry.n <= confirmed:
            remarks.append(f"{words}, and the head that you kept is a later entry")
        elif seconds != entry.behind:
            problems.append(
                f"{words}, and says {entry.behind:,} s: a time is false, or an earlier version wrote it after a clock "
                "was set back. If its writer confirms it, keep `evenhand log head` and give --head from now on"
            )
    return problems, remarks


def _faulty(lake: Lake, problems: Sequence[str]) -> IntegrityError:
    return IntegrityError("\n".join([f"the log of {lake.location}: {len(problems)} problems:", *problems]))


def sound_entries(lake: Lake) -> list[log.Entry]:
    """All entries of a log with an unbroken chain.

    Raises:
        IntegrityError: the chain is broken.
    """
    # a listing that is read while somebody adds entries may lack one of them: a broken chain is so twice
    entries, broken = log.read_whole(lake)
    if broken:
        entries, broken = log.read_whole(lake)
    if broken:
        raise IntegrityError(
            f"the log of {lake.location} cannot be relied on, and no state of review is shown: {broken}"
        )
    return entries


def require_chain(lake: Lake) -> None:
    """Refuse to add to a log with a broken chain: new statements would depend on entries that are not reliable.

    Runs, removals and readings of persons' rows are entered all the same: that they happened must not be lost.

    Raises:
        IntegrityError: the chain is broken.
    """
    # a listing that is read while somebody adds entries may lack one of them: a broken chain is so twice
    broken = next(log.problems(lake), None) and next(log.problems(lake), None)
    if broken:
        raise IntegrityError(f"the log of {lake.location} cannot be gone on with: {broken}")


def _without_entry(lake: Lake, entries: Sequence[log.Entry]) -> Iterator[str]:
    """Runs that the log does not have as they are."""
    entry_by_run = {entry.run: entry for entry in entries if entry.event == "run published"}
    for path in lake.storage.glob("runs/*/manifest.json"):
        run = path.split("/")[1]
        if run not in entry_by_run:
            yield f"{run} has no entry in the log; find out who put the run there, or whether the log was cut short"
        elif entry_by_run[run].manifest_sha256 != digest_of(read_manifest(lake, run)):
            yield f"manifest of {run} is not the one that was logged ({entry_by_run[run].words()})"


def _remarks(entries: Sequence[log.Entry], keys: frozenset[str], accepted: int) -> Iterator[str]:
    """What the signatures of a sound log do not show."""
    if not keys:
        yield f"no key is trusted ({TRUSTED}): a log that was written anew passes too, and names are claims"
        return
    loose = sum(entry.signature is None or entry.signature.key not in keys for entry in entries) - accepted
    if loose:
        yield f"{loose} entries (notes, readings, remediations, reports, removals) have no trusted signature: claims"
    if accepted:
        yield f"{accepted} entries from before your keys have no trusted signature: they do not count in a review"
    names: dict[str, dict[str, str]] = {}
    for entry in entries:
        if entry.event == "signed off" and entry.signature is not None:
            names.setdefault(entry.signature.key, {}).setdefault(plain(entry.by), entry.by)
    for key, of in names.items():
        if len(of) > 1:
            yield f"the key {key} signed as {', '.join(of.values())}: one key stands for one person"


def _head_of(option: str, text: str) -> log.Head:
    number, _, digest = text.partition(":")
    if not number.isdecimal() or len(digest) != 64:
        raise SpecError(f"{option} {text!r} is no head; give what `evenhand log head` printed, such as 12:3f9c...")
    return log.Head(n=int(number), sha256=digest)


# --------------------------------------------------------------------------------------------------------------------
# Certificate of a run: the signature of its manifest where there is a key, and the run's entry in the lake's log.
#
# ``runs/RUN/manifest.sig.json`` holds the signature. ``runs/RUN/logged.json`` holds the number of the entry, so that
# no reader needs the whole log to find it; the log alone counts.


SIGNATURE = "manifest.sig.json"


class SignedManifest(BaseModel):
    """The signature of a manifest, and when it was made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    signature: Signature
    time: str


def signature_path(run: str) -> str:
    """Where the signature of a run's manifest lies."""
    return f"runs/{run}/{SIGNATURE}"


def logged_path(run: str) -> str:
    """Where the number of a run's entry lies."""
    return f"runs/{run}/logged.json"


def certify(lake: Lake, run: str) -> log.Entry:
    """Sign the manifest of a run that was just written, if there is a key, and enter the run in the log.

    Raises:
        SpecError: the key that is set up is none, or keys are trusted and no trusted key signs.
        InfrastructureError: the lake cannot be written, or the signing failed.
        IntegrityError: the log cannot be gone on with.
    """
    content, key = read_manifest(lake, run), trusted_signer(lake)
    files: dict[str, str] = {}
    if key is None:
        lake.storage.discard(signature_path(run))
    else:
        signature = key.sign("manifest", content)
        time = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        signed_manifest = SignedManifest(signature=signature, time=time).model_dump_json(indent=1).encode()
        lake.write_file(signature_path(run), signed_manifest, f"tmp/{run}-signature.json")
        files = {SIGNATURE: hashlib.sha256(signed_manifest).hexdigest()}
    entry = log.append(lake, "run published", key, run=run, manifest_sha256=digest_of(content), files=files)
    lake.write_file(logged_path(run), _note(entry), f"tmp/{run}-logged.json")
    return entry


def is_certified(lake: Lake, run: str) -> bool:
    """Whether the log holds the manifest of a run as it is, or there is no log yet.

    Where keys are trusted, a trusted key has to have signed the entry: a run of before is published again, signed.
    """
    keys = trusted()
    try:
        if not keys and not lake.storage.exists(logged_path(run)) and not log.head(lake).n:
            return True
        noted = json.loads(lake.storage.read(logged_path(run)) or b"null")
        entry = log.entry_of(lake, int(noted["n"])) if noted else None
        if not noted:  # a run that was there before the log
            entry = log.newest(log.entries(lake, run), ("run published",))
            entry = entry if entry and entry.text == log.BEFORE_THE_LOG else None
        if entry is None or (keys and (entry.signature is None or entry.signature.key not in keys)):
            return False
        return entry.run == run and entry.manifest_sha256 == digest_of(read_manifest(lake, run))
    except (ValueError, TypeError, KeyError, IntegrityError):
        return False


def certificate_problems(lake: Lake, run: str, manifest: dict[str, Any], log_entries: list[log.Entry]) -> Iterator[str]:
    """What of a run does not agree with the log.

    Args:
        lake: that holds it.
        run: its id.
        manifest: as it is now.
        log_entries: the log's entries about the run.
    """
    entry = log.newest(log_entries, ("run published",))
    if entry is None:
        if log.head(lake).n or lake.storage.exists(logged_path(run)):
            yield f"{run} has no entry in the log of {lake.location}; who put it there, or took the entry?"
        return
    if entry.manifest_sha256 != digest_of(manifest):
        yield f"manifest of {run} is not the one that was logged on {entry.time[:10]} (entry {entry.n})"
    noted = lake.storage.read(logged_path(run))
    # without it, and without a later entry, an audit ended between its entry and this file: the log alone counts
    is_open = noted is None and entry.n == log.last_number(lake)
    if entry.text != log.BEFORE_THE_LOG and noted != _note(entry) and not is_open:
        where = lake.storage.where(logged_path(run))
        yield f"{where} is missing or is not the file that was written; run the audit again"
    mark, marks_marked = lake.storage.read(mark_of(run)), log.newest(log_entries, ("protected", "unprotected"))
    if (
        mark is not None
        and marks_marked is not None
        and (marks_marked.event == "unprotected" or mark != mark_content(marks_marked))
    ):
        yield f"{lake.storage.where(mark_of(run))} is not the mark that was logged; protect the run again"
    files_entry, listed = log.newest(log_entries, ("report made",)), lake.storage.read(made_later(run))
    if files_entry is not None and hashlib.sha256(listed or b"").hexdigest() != files_entry.files[LIST]:
        yield f"{lake.storage.where(made_later(run))} is not the list that was logged (entry {files_entry.n})"
    signature = hashlib.sha256(lake.storage.read(signature_path(run)) or b"").hexdigest()
    if SIGNATURE in entry.files and entry.files[SIGNATURE] != signature:
        where = lake.storage.where(signature_path(run))
        yield f"{where} is missing or is not the signature that was logged (entry {entry.n})"


def signed_by(lake: Lake, run: str) -> SignedManifest | None:
    """The signature of a run's manifest; None of one that is not signed.

    Raises:
        IntegrityError: the file holds none.
    """
    content = lake.storage.read(signature_path(run))
    if content is None:
        return None
    try:
        return SignedManifest.model_validate_json(content)
    except ValidationError as error:
        raise IntegrityError(f"{lake.storage.where(signature_path(run))} holds no signature") from error


def _note(entry: log.Entry) -> bytes:
    return json.dumps({"n": entry.n}).encode()


# --------------------------------------------------------------------------------------------------------------------
# The signature of a run as `evenhand verify` judges it: its key, whether it is valid, and its words.


@dataclass(frozen=True)
class Demand:
    """What is required of a run's signature."""

    key: Path | None = None
    """Public key that has to have signed; one of EVENHAND_TRUSTED_KEYS if None."""
    signed: bool = False
    """Whether a run without a signature fails."""


NOTHING_ASKED = Demand()


@dataclass(frozen=True)
class Signed:
    """A run's signature, and the keys that are trusted."""

    run: str
    manifest: SignedManifest | None
    trusted: frozenset[str]
    """Fingerprints; empty if no trusted keys are set."""
    demanded: bool
    retired: Mapping[str, log.Entry]
    """Fingerprint -> the entry that retired the key."""

    @classmethod
    def of(cls, lake: Lake, run: str, demand: Demand, logged: Sequence[log.Entry]) -> "Signed":
        """That of a run.

        Raises:
            SpecError: a file of a key holds none.
            IntegrityError: the file of the signature holds none.
        """
        gone = {entry.key: entry for entry in logged if entry.event == "key retired"}
        return cls(run, signed_by(lake, run), trusted(demand.key), demand.signed, gone)

    def problems(self, manifest: Mapping[str, Any], entries: Sequence[log.Entry]) -> Iterator[str]:
        """Problems of the signature; a run without a signature has none, unless a signature is required.

        Args:
            manifest: of the run.
            entries: the log's entries about the run.
        """
        if self.manifest is None:
            if self.demanded or self.trusted:
                yield f"the manifest of {self.run} is not signed, and a signature is asked for"
            return
        key, entry = self.manifest.signature.key, log.newest(entries, ("run published",))
        if not holds(self.manifest.signature, "manifest", manifest):
            yield f"the signature of {self.run} is not one of its manifest by the key {key}"
        if self.trusted and key not in self.trusted:
            trusted_keys = ", ".join(sorted(self.trusted))
            yield f"{self.run} is signed by {key}, which is none of the trusted keys ({trusted_keys})"
        if entry is not None and entry.signature is not None and entry.signature.key != key:
            yield f"{self.run} is signed by {key}, and its entry {entry.n} of the log by {entry.signature.key}"
        if entry is not None and entry.signature is None and (self.trusted or entry.files):
            yield f"{self.run} is signed by {key}, and its entry {entry.n} of the log has no signature: who wrote it?"
        if key in self.retired and (entry is None or entry.n > self.retired[key].n):
            yield f"{self.run} is signed by {key}, a key that was retired before (entry {self.retired[key].n})"

    def words(self, entries: Sequence[log.Entry]) -> str:
        """The text about the signature of a run without problems."""
        if self.manifest is None:
            return "the manifest is NOT SIGNED, so that this shows damage, not forgery"
        key, entry = self.manifest.signature.key, log.newest(entries, ("run published",))
        if key not in self.trusted:
            return f"signed by {key} (key not in your trusted keys): give --key, or EVENHAND_TRUSTED_KEYS"
        when = f" on {entry.time[:10]}, entry {entry.n} of the log" if entry else ", without an entry in the log"
        return f"signed by {key}{when}"


# --------------------------------------------------------------------------------------------------------------------
# Verifies a run: its folders hold every file that its manifest names, unaltered by sha256, and no other file.
#
# The manifest is held against the log of the lake, and against its signature where it has one. Scope: the run's
# partitions, its report and its manifest. Other files of the lake belong to no run; the whole chain of the log is
# ``flows.runs.signatures``.


def verify_run(
    root: str, run: str, demand: Demand = NOTHING_ASKED, logged: Sequence[log.Entry] | None = None
) -> dict[str, Any]:
    """Check a run's files, its entry in the log and its signature; returns the counts, and the signature in words.

    ``by_content`` counts the records of partitions that the manifest of an earlier version holds without their sha256.

    Args:
        root: of the lake.
        run: its id.
        demand: what is required of its signature.
        logged: all entries of the log, where they were read for several runs; they are read if None.

    Raises:
        SpecError: the lake has no such run, or a file of a key holds none.
        IntegrityError: files are missing, altered or not named by the manifest, or the manifest is not the one that
            was logged and signed; all of it is listed.
    """
    lake = open_lake(root)
    _require_manifest(lake, run)
    manifest = read_manifest(lake, run)
    partitions = [Partition.model_validate(entry) for entry in manifest["partitions"]]
    records = manifest.get("records", {})
    unsealed = [p for p in partitions if record_of(p) not in records]
    digests = {a.path: a.sha256 for p in partitions for a in p.tables} | records
    digests |= {path: digest for p in partitions for path, digest in p.files.items()}
    digests |= {summary_path(run): manifest[NAMED]} if NAMED in manifest else {}
    problems = []
    for path, digest in sorted(digests.items()):
        try:
            lake.require(path, digest)
        except IntegrityError as error:
            problems.append(str(error))
    for partition in unsealed:
        record = None
        with suppress(ValueError):
            record = Partition.model_validate_json(lake.storage.read(record_of(partition)) or b"")
        if record != partition:
            problems.append(str(lake.altered(record_of(partition))))
    homes = {str(PurePosixPath(record_of(partition)).parent) for partition in partitions}
    for folder in (f"runs/{run}", f"reports/{run}", *sorted(homes)):
        problems += [f"{place} is a link, a pipe or a device: Evenhand makes none" for place in lake.odd(folder)]
    problems += _altered_files(lake, run, manifest)
    problems += [
        f"{lake.storage.where(path)} is not named by the manifest; find out who put it there, and move it elsewhere"
        for path in _unnamed(lake, run, partitions, manifest)
    ]
    every = log.entries(lake) if logged is None else logged
    entries = [entry for entry in every if entry.run == run]
    problems += certificate_problems(lake, run, manifest, entries)
    signature = Signed.of(lake, run, demand, every)
    problems += signature.problems(manifest, entries)
    files = len(digests) + len(unsealed) + len(manifest["exported"]) + 1
    if problems:
        head = f"run {run}: its files are not as they were written; {len(problems)} problems in {files} files:"
        raise IntegrityError("\n".join([head, *problems]))
    return {
        "run": run,
        "files": files,
        "partitions": len(partitions),
        "altered": 0,
        "by_content": len(unsealed),
        "signed_by": signature.manifest.signature.key if signature.manifest else None,
        "signature": signature.words(entries),
    }


def verify_every_run(root: str, demand: Demand = NOTHING_ASKED) -> Iterator[tuple[str, str, bool]]:
    """Check every run of a lake: its id, what was found in words, and whether it is whole.

    Raises:
        SpecError: there is no lake, or a file of a key holds none.
    """
    lake = open_lake(root)
    logged = log.entries(lake)
    for run in sorted(path.split("/")[1] for path in lake.storage.glob("runs/*/manifest.json")):
        try:
            outcome = verify_run(root, run, demand, logged)
        except IntegrityError as error:
            yield run, str(error), False
        else:
            yield run, f"all {outcome['files']} files are as they were written; {outcome['signature']}", True


def _require_manifest(lake: Lake, run: str) -> None:
    """Raise if a run lost its manifest, as opposed to one that never existed."""
    named = run not in ("", "..") and PurePosixPath(run).name == run
    manifest = f"runs/{run}/manifest.json"
    if not named or lake.storage.glob(manifest):
        return
    if lake.storage.exists(f"runs/{run}") or lake.storage.exists(f"reports/{run}"):
        state = "is no file" if lake.storage.exists(manifest) else "is missing"
        raise IntegrityError(
            f"{lake.storage.where(manifest)} {state}; restore it from a copy, or run that audit again to rewrite "
            "it. If `evenhand gc` was stopped while it removed this run, run it again"
        )


def _altered_files(lake: Lake, run: str, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Problems of the files of the report, and of a manifest in other bytes, such as blanks, which its seal ignores."""
    storage, folder = report_named(lake, run, manifest)
    for name, digest in manifest["exported"].items():
        if not storage.intact(f"{folder}/{name}", digest):
            where = storage.where(f"{folder}/{name}")
            yield f"{where} is missing or is not the file that was written; run the audit again"
    path = f"runs/{run}/manifest.json"
    content = lake.storage.read(path) or b""
    if content != json.dumps(json.loads(content), indent=1).encode():
        yield f"{lake.storage.where(path)} says the same in other bytes than were written; run that audit again"


def _unnamed(lake: Lake, run: str, partitions: list[Partition], manifest: Mapping[str, Any]) -> Iterator[str]:
    """Files in the run's folders that the manifest does not name.

    Four are no part of it: signature, number of the log's entry, mark of protection, and the list of later files.
    On an object store every writer has a folder of its own in a partition's folder, and only the record names the
    writer whose files count.
    """
    known_paths = {f"reports/{run}/{name}" for name in manifest["exported"]}
    known_paths |= {f"runs/{run}/manifest.json", mark_of(run), made_later(run)}
    known_paths |= {signature_path(run), logged_path(run)}
    known_paths |= {summary_path(run)} if NAMED in manifest else set()
    for folder in (f"runs/{run}", f"reports/{run}"):
        yield from (path for path in lake.storage.below(folder) if path not in known_paths)
    for partition in partitions:
        named = {a.path for a in partition.tables} | {*partition.files} | {record_of(partition)}
        home, writer = PurePosixPath(record_of(partition)).parent, PurePosixPath(partition.tables[0].path).parent
        for path in lake.storage.below(str(home)):
            place = PurePosixPath(path)
            is_own = writer == home or place.parent == home or place.is_relative_to(writer)
            if is_own and path not in named:
                yield path
