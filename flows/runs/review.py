"""Review of a run: notes, sign-off, and the state of the review."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Literal, get_args

from flows.runs import signatures
from flows.runs.index import read_manifest
from flows.runs.run_names import audit_of, run_ids
from flows.runs.signatures import ENDING, FieldError, counting, faults, require_chain, trusted_signer, verify_run
from schemas.errors import IntegrityError, nearest
from tasks.lake import log
from tasks.lake.log import (
    TRUSTED,
    Signer,
    digest_of,
    fingerprint,
    holds,
    signer,
    trusted,
)
from tasks.lake.store import Lake

# --------------------------------------------------------------------------------------------------------------------
# Notes of people on a run, as entries of the log: a text, that they read it, what has to be remedied and when.


@dataclass(frozen=True)
class Note:
    """A person's remark about a run."""

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


def note(lake: Lake, run: str, remark: Note) -> log.Entry:
    """Add a note.

    Raises:
        SpecError: no such run, no name, or no text.
        IntegrityError: the log's chain is broken.
    """
    return _append(lake, run, remark, "note", _text(remark))


def note_read(lake: Lake, run: str, remark: Note) -> log.Entry | None:
    """Log that a person read a run, once for each run, name and day (UTC); None if the log has the entry already.

    Raises:
        SpecError: no such run, or no name.
        IntegrityError: the log's chain is broken.
    """
    by, today = signatures.name(remark.by), _today().isoformat()
    with lake.lock(f"run-{run}"):
        for entry in log.entries(lake, run):
            if entry.event == "read" and entry.time[: len(today)] == today and signatures.same(entry.by, by):
                return None
        return _append(lake, run, remark, "read", signatures.text(remark.text, "the text"))


def note_view(lake: Lake, run: str, remark: Note) -> log.Entry:
    """Log that a person saw rows of persons, each time; the text names the page.

    Raises:
        SpecError: no such run, no name, or no text.
    """
    return _enter(lake, run, remark, "read", _text(remark))


def open_remediation(lake: Lake, run: str, remark: Note, owner: str, due: str) -> log.Entry:
    """Log what has to be remedied, by which person, and until which day.

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
    owner_name = signatures.name(owner, "--owner")
    return _append(lake, run, remark, "remediation", _text(remark), owner=owner_name, due=last.isoformat())


def close_remediation(lake: Lake, run: str, remark: Note, n: int) -> log.Entry:
    """Enter that something is remedied, by a run of the same audit that shows it.

    Raises:
        SpecError: no such run, no name, or no open remediation of the audit has that number.
        IntegrityError: the log's chain is broken.
    """
    open_remediations = [
        remediation for remediation in remediations(log.entries(lake)) if audit_of(remediation.run) == audit_of(run)
    ]
    if n not in {remediation.n for remediation in open_remediations}:
        open_numbers = ", ".join(
            f"{remediation.n} ({remediation.owner}, {remediation.due})" for remediation in open_remediations
        )
        listed_open = f"open are {open_numbers}" if open_remediations else "none is open"
        why = f"{n} is no open remediation of {audit_of(run)}: {listed_open}"
        raise FieldError("closes", f"--done {why}", f"entry {why}")
    return _append(lake, run, remark, "remediation", signatures.text(remark.text, "the text"), closes=n)


def remediations(entries: Sequence[log.Entry]) -> list[Remediation]:
    """What is open, by the entries of a log; what was found in a run that is removed stays open."""
    every = [entry for entry in entries if entry.event == "remediation"]
    done = {entry.closes for entry in every}
    return [
        Remediation(entry.n, entry.run, entry.text, entry.by, entry.owner, entry.due)
        for entry in every
        if not entry.closes and entry.n not in done
    ]


def _append(lake: Lake, run: str, remark: Note, event: log.Event, text: str, **fields: str | int) -> log.Entry:
    require_chain(lake)
    return _enter(lake, run, remark, event, text, **fields)


def _enter(lake: Lake, run: str, remark: Note, event: log.Event, text: str, **fields: str | int) -> log.Entry:
    digest, by = digest_of(read_manifest(lake, run)), signatures.name(remark.by)
    return log.append(lake, event, signer(remark.key), run=run, manifest_sha256=digest, by=by, text=text, **fields)


def _text(remark: Note) -> str:
    text = signatures.text(remark.text, "the text")
    if not text:
        why = "the text is empty; say what is to be noted"
        raise FieldError("text", why, why)
    return text


def _today() -> date:
    return datetime.now(UTC).date()


# --------------------------------------------------------------------------------------------------------------------
# Sign-off of a run: who prepared, reviewed, approved, rejected or withdrew it, as an entry of the lake's log.
#
# What is signed is the manifest of the run, and so the run as it is. An approval needs two people: two names, and where
# keys are trusted two keys. The state of the run: ``review``.


Role = Literal["prepared", "reviewed", "approved", "rejected", "withdrawn"]
ROLES: tuple[str, ...] = get_args(Role)


@dataclass(frozen=True)
class SignOff:
    """A person's sign-off."""

    by: str
    role: str
    text: str = ""
    key: Path | None = None
    """Private key; that of the environment if None."""


def sign_off(lake: Lake, run: str, decision: SignOff) -> log.Entry:
    """Add a signature to the log.

    Raises:
        SpecError: no such run or role, no name, no trusted key where keys are trusted, or a rule of review is not kept.
        IntegrityError: the log's chain is broken, or an approval, and files of the run are not as they were written.
    """
    digest, by, text = (
        digest_of(read_manifest(lake, run)),
        signatures.name(decision.by),
        signatures.text(decision.text, "--note"),
    )
    role = decision.role
    if role not in ROLES:
        why = f"{role!r} is none; {nearest(role, ROLES)}"
        raise FieldError("role", f"--role {why}", why)
    if role in ENDING and not text:
        raise FieldError("text", f"{role} needs a reason; give it with --note", f"{role} needs a reason; write it here")
    require_chain(lake)
    signing_key, keys = trusted_signer(lake, decision.key), trusted()
    key = fingerprint(signing_key.public) if signing_key and keys else ""
    if decision.role == "approved":
        _check_prepared(run, by, key, _signed_now(lake, run, digest, keys))
        verify_run(lake.location, run)
    with lake.lock(f"signing-{run}"):
        _check_new(run, by, decision.role, signing_key, _signed_now(lake, run, digest, keys), trusts=bool(keys))
        return log.append(
            lake, "signed off", signing_key, run=run, manifest_sha256=digest, by=by, role=decision.role, text=text
        )


def signed(entries: Sequence[log.Entry], manifest_sha256: str) -> list[log.Entry]:
    """The signatures of a manifest, in their order; those of an earlier manifest of the run are none of it.

    Args:
        entries: the log's entries about the run.
        manifest_sha256: of the manifest as it is.
    """
    return [entry for entry in entries if entry.event == "signed off" and entry.manifest_sha256 == manifest_sha256]


def _signed_now(lake: Lake, run: str, digest: str, keys: frozenset[str]) -> list[log.Entry]:
    return signed([entry for entry in counting(log.entries(lake), keys) if entry.run == run], digest)


def standing(signatures: Sequence[log.Entry]) -> list[log.Entry]:
    """The valid signatures: all since the run was prepared again after the last rejection or withdrawal.

    Where the run was not prepared again, that rejection or withdrawal alone.
    """
    ends = [place for place, entry in enumerate(signatures) if entry.role in ENDING]
    if not ends:
        return list(signatures)
    after = list(signatures[ends[-1] + 1 :])
    again = next((place for place, entry in enumerate(after) if entry.role == "prepared"), None)
    return [signatures[ends[-1]]] if again is None else after[again:]


def _check_new(
    run: str, by: str, role: str, signing_key: Signer | None, entries: Sequence[log.Entry], *, trusts: bool
) -> None:
    """Refuse to repeat a valid signature, unless it adds a key that the first one does not have."""
    valid = standing(entries)
    for place, entry in enumerate(valid):
        is_mine = entry.role == role and signatures.same(entry.by, by)
        key = entry.signature.key if entry.signature else ""
        counts = role != "approved" or prepared_by_another(by, key if trusts else "", valid[:place])
        if is_mine and counts and (signing_key is None or fingerprint(signing_key.public) == key):
            why = f"{run} is signed as {role} by {entry.by} already ({entry.words()}), and that stands"
            raise FieldError("role", why, why)


def _check_prepared(run: str, by: str, key: str, signatures: Sequence[log.Entry]) -> None:
    """Refuse an approval unless another person prepared the run, with no rejection or withdrawal since."""
    valid = standing(signatures)
    if valid and valid[0].role in ENDING:
        why = f"{run} was {valid[0].role} after it was prepared; it has to be prepared again first"
        raise FieldError("role", why, why)
    if not prepared_by_another(by, "", valid):
        is_own_preparation = any(entry.role == "prepared" for entry in valid)
        preparation = f"was prepared by {by} alone" if is_own_preparation else "was prepared by nobody"
        way = f"an approval needs `evenhand signoff {run} --role prepared` by another name before it"
        plain = "before an approval somebody of another name signs it as prepared"
        raise FieldError("role", f"{run} {preparation}: {way}", f"{run} {preparation}; {plain}")
    if not prepared_by_another(by, key, valid):
        why = f"{run} was prepared with the same key ({key}): an approval needs two keys, one of each person"
        raise FieldError("role", f"{why}; give your own with --key", why)


def prepared_by_another(by: str, key: str, entries: Sequence[log.Entry]) -> bool:
    """Whether a signature shows that another person prepared the run.

    Args:
        by: name that approves.
        key: fingerprint of the key that approves, where keys are trusted: another key has to have prepared the run.
            Empty where names alone are compared.
        entries: signatures that count.
    """
    return any(
        entry.role == "prepared"
        and not signatures.same(entry.by, by)
        and not (key and (entry.signature is None or entry.signature.key == key))
        for entry in entries
    )


# --------------------------------------------------------------------------------------------------------------------
# State of runs in their review, by the entries of the lake's log: signatures, and open remediations.
#
# What people may sign: ``signoff``. Notes and remediations: ``notes``. Nothing is written here.


UNSIGNED = "unsigned"
_RISING = ("prepared", "reviewed", "approved")


@dataclass(frozen=True)
class Review:
    """State of the review of a run."""

    run: str
    state: str
    """unsigned, prepared, reviewed, approved, rejected or withdrawn."""
    signatures: tuple[log.Entry, ...]
    """Those that count, in their order."""
    manifest_sha256: str
    """What they are of; empty where the log has no entry of the run."""
    open: tuple[Remediation, ...]
    """Remediations that are open, of this run and of earlier ones of the same audit, year and partition."""

    @property
    def overdue(self) -> tuple[Remediation, ...]:
        """Open remediations after their last day."""
        return tuple(remediation for remediation in self.open if remediation.overdue())


@dataclass(frozen=True)
class Outstanding:
    """What people still have to do in a lake."""

    unsigned: tuple[str, ...]
    """Unsigned runs among the valid ones: the protected one of a year, else the last."""
    open: tuple[Remediation, ...]
    overdue: tuple[Remediation, ...]


def review_of(lake: Lake, run: str, logged: Sequence[log.Entry] | None = None) -> Review:
    """State of the review of one run, by its current manifest.

    Args:
        lake: that holds it.
        run: its id.
        logged: all entries of the log, where they were read; they are read if None.

    Raises:
        SpecError: no such run, or EVENHAND_TRUSTED_KEYS names no key.
        IntegrityError: the manifest is not the one that was written, or a signature is not one of its entry.
    """
    entries, keys = log.entries(lake) if logged is None else logged, trusted()
    open_ = tuple(remediation for remediation in remediations(entries) if _stem(remediation.run) == _stem(run))
    digest, run_entries = digest_of(read_manifest(lake, run)), _counting(entries, keys).get(run, [])
    if keys and _logged(run_entries) != digest:  # no trusted key says that the run was published as it is
        run_entries = []
    return _review(run, run_entries, digest, open_, keys)


def reviews(lake: Lake, logged: Sequence[log.Entry] | None = None) -> list[Review]:
    """State of the review of the valid run of every audit, year and partition, by the log alone.

    Args:
        lake: that holds them.
        logged: all entries of the log, where they were read; they are read if None.

    Raises:
        SpecError: EVENHAND_TRUSTED_KEYS names no key.
        IntegrityError: a file of the log is no entry, or a signature is not one of its entry.
    """
    every, keys = log.entries(lake) if logged is None else logged, trusted()
    by_run = _counting(every, keys)
    by_stem: dict[str, list[str]] = defaultdict(list)
    open_: dict[str, list[Remediation]] = defaultdict(list)
    for run in run_ids(lake):
        by_stem[_stem(run)].append(run)
    for remediation in remediations(every):
        open_[_stem(remediation.run)].append(remediation)
    valid = {stem: max(runs, key=lambda run: _rank(by_run[run])) for stem, runs in by_stem.items()}
    return [_review(run, by_run[run], _logged(by_run[run]), tuple(open_[stem]), keys) for stem, run in valid.items()]


def outstanding(lake: Lake, logged: Sequence[log.Entry] | None = None) -> Outstanding:
    """What people still have to do: runs without a signature, remediations that are open, and those that are overdue.

    Args:
        lake: that holds the runs.
        logged: all entries of the log, where they were read; they are read if None.

    Raises:
        IntegrityError: as ``reviews`` says.
    """
    every = log.entries(lake) if logged is None else logged
    open_ = tuple(remediations(every))
    unsigned = tuple(review.run for review in reviews(lake, every) if review.state == UNSIGNED)
    return Outstanding(unsigned, open_, tuple(remediation for remediation in open_ if remediation.overdue()))


def remarks(lake: Lake, review: Review, every: Sequence[log.Entry]) -> list[str]:
    """Sentences on what else is to be known of a review: the run before, names that no key vouches for, old reports.

    Args:
        lake: that holds the run.
        review: of the run.
        every: all entries of the log.
    """
    sentences = [] if review.state == "approved" else [approved_before(lake, review.run, every)]
    sentences += _claims(review, trusted())
    about = {entry.n for entry in every if entry.run == review.run}
    sentences += [f"Does not count: {why}." for n, why in faults(every, trusted()).items() if n in about]
    report_entry = log.newest([entry for entry in every if entry.run == review.run], ("report made",))
    last = review.signatures[-1] if review.signatures else None
    if last is not None and (report_entry is None or report_entry.n < last.n):
        was = f"the one made later (entry {report_entry.n})" if report_entry else "the one in the lake, a draft"
        sentences.append(f"No report shows entry {last.n} yet, the newest is {was}: evenhand report {review.run}")
    return [sentence for sentence in sentences if sentence]


def _claims(review: Review, keys: frozenset[str]) -> Iterator[str]:
    """Names of the signatures that no trusted key vouches for."""
    unverified = dict.fromkeys(entry.by for entry in review.signatures if entry.signature is None)
    if unverified:
        yield f"{', '.join(unverified)}: name as given, not verified."
    names: dict[str, dict[str, None]] = defaultdict(dict)
    for entry in review.signatures:
        if entry.signature is not None:
            names[entry.signature.key][entry.by] = None
    if keys or not names:
        return
    signed_by = dict.fromkeys(name for of in names.values() for name in of)
    yield f"{', '.join(signed_by)}: signed with a key, and no key is trusted here ({TRUSTED}), so names are claims."
    for key, of in names.items():
        if len(of) > 1:
            yield f"{' and '.join(of)} signed with one key ({key}): nothing shows that they are two people."


def approved_before(lake: Lake, run: str, every: Sequence[log.Entry]) -> str:
    """A sentence on the run before of the same audit, year and partition, if it was approved; empty if not.

    Args:
        lake: that holds the runs.
        run: that is not approved.
        every: all entries of the log.
    """
    published = {entry.run: entry.n for entry in every if entry.event == "run published"}
    published_at = published.get(run, len(every) + 1)
    earlier = [name for name in run_ids(lake) if name != run and _stem(name) == _stem(run)]
    before = max(
        (name for name in earlier if published.get(name, 0) < published_at),
        key=lambda n: published.get(n, 0),
        default=None,
    )
    if before is None:
        return ""
    review = review_of(lake, before, every)
    approved = next((entry for entry in reversed(review.signatures) if entry.role == "approved"), None)
    if review.state != "approved" or approved is None:
        return ""
    manifest, other = read_manifest(lake, run), read_manifest(lake, before)
    difference = "by another spec" if manifest["spec"] != other["spec"] else "by other code"
    difference = "on other data" if manifest["source_sha256"] != other["source_sha256"] else difference
    return f"The run before, {before}, was approved by {approved.by}, {difference}."


def states(every: Sequence[log.Entry]) -> dict[str, str]:
    """Run -> state of its review by the log alone, for each signed run.

    Args:
        every: all entries of the log.

    Raises:
        SpecError: EVENHAND_TRUSTED_KEYS names no key.
        IntegrityError: a signature is not one of its entry.
    """
    keys = trusted()
    return {
        run: _review(run, run_entries, _logged(run_entries), (), keys).state
        for run, run_entries in _counting(every, keys).items()
        if any(entry.event == "signed off" for entry in run_entries)
    }


def _counting(every: Sequence[log.Entry], keys: frozenset[str]) -> dict[str, list[log.Entry]]:
    """Run -> the entries about it that count.

    Raises:
        IntegrityError: a signature of a sign-off is not one of its entry.
    """
    for entry in every:
        if entry.event == "signed off" and entry.signature and not holds(entry.signature, "log", entry.content()):
            raise IntegrityError(
                f"{entry.words()} ({entry.role} by {entry.by}) has a signature that is not of it: it was altered; "
                "`evenhand log verify` looks at the whole log"
            )
    entries_by_run: dict[str, list[log.Entry]] = defaultdict(list)
    for entry in counting(every, keys):
        entries_by_run[entry.run].append(entry)
    return entries_by_run


def _review(
    run: str,
    entries: Sequence[log.Entry],
    manifest_sha256: str,
    open_: tuple[Remediation, ...],
    keys: frozenset[str],
) -> Review:
    """The review of a run in the highest valid role; an approval counts only if another person prepared the run."""
    valid = standing(signed(entries, manifest_sha256))
    if valid and valid[0].role in ENDING:
        return Review(run, valid[0].role, tuple(valid), manifest_sha256, open_)
    reached = {
        entry.role
        for place, entry in enumerate(valid)
        if entry.role != "approved"
        or prepared_by_another(entry.by, entry.signature.key if keys and entry.signature else "", valid[:place])
    }
    state = next((role for role in reversed(_RISING) if role in reached), UNSIGNED)
    return Review(run, state, tuple(valid), manifest_sha256, open_)


def _rank(entries: Sequence[log.Entry]) -> tuple[bool, int]:
    """Whether the run is protected, and when it was published: the greatest of several is the valid one."""
    mark, published = log.newest(entries, ("protected", "unprotected")), log.newest(entries, ("run published",))
    return mark is not None and mark.event == "protected", published.n if published else 0


def _logged(entries: Sequence[log.Entry]) -> str:
    published = log.newest(entries, ("run published",))
    return published.manifest_sha256 if published else ""


def _stem(run: str) -> str:
    """What the ids of all runs of one audit, year and partition begin with."""
    return run.rpartition("-")[0]
