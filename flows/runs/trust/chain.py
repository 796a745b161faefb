"""Checks the whole log of a lake: chain, signatures, a head that was kept elsewhere, and an entry for every run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from flows.runs.manifest import read_manifest
from flows.runs.trust import persons
from schemas.errors import IntegrityError, SpecError
from tasks.lake import log
from tasks.lake.signatures import KEY, TRUSTED, digest_of, trusted
from tasks.lake.store import Lake
from tasks.lake.trusted_entries import faults


@dataclass(frozen=True)
class CheckedLog:
    """A log without faults."""

    entries: int
    remarks: tuple[str, ...]
    """Sentences on what is no fault, and what a reader has to know."""


def check_log(lake: Lake, kept: str | None = None, signed_after: str | None = None) -> CheckedLog:
    """Check the log; where keys are trusted, every entry that counts needs the signature of a trusted key.

    Args:
        lake: whose log.
        kept: a head as `evenhand log head` printed it, ``N:SHA256``.
        signed_after: the head of the time when keys were set up; entries up to it may lack a trusted signature.

    Raises:
        SpecError: ``kept`` or ``signed_after`` is no head, or EVENHAND_TRUSTED_KEYS names no key.
        IntegrityError: the chain is broken or cut, an entry does not count, or a run has no entry; all of it is listed.
    """
    heads = {"--head": kept, "--signed-after": signed_after}
    anchors = {option: _head_of(option, text) for option, text in heads.items() if text}
    keys = trusted()
    problems = list(log.problems(lake))
    problems += [why for anchor in anchors.values() if (why := log.kept_head(lake, anchor.n, anchor.sha256))]
    if problems:
        raise _faulty(lake, problems)
    entries = log.entries(lake)
    wrong, always_wrong = faults(entries, keys), faults(entries, frozenset())
    before = anchors["--signed-after"].n if signed_after else 0
    accepted = [n for n in wrong if n <= before and n not in always_wrong]
    problems += [why for n, why in wrong.items() if n not in accepted]
    if any(n not in always_wrong and n not in accepted for n in wrong):
        problems.append(
            f"Next step: find out who wrote these entries. If they are older than your keys, publish the runs again "
            f"with {KEY}, sign them off again with --key, and give --signed-after N:SHA256, the head of that time"
        )
    problems += _without_entry(lake)
    if problems:
        raise _faulty(lake, problems)
    return CheckedLog(len(entries), (*_remarks(entries, keys, len(accepted)), *_times_back(entries)))


def _faulty(lake: Lake, problems: Sequence[str]) -> IntegrityError:
    return IntegrityError("\n".join([f"the log of {lake.location}: {len(problems)} problems:", *problems]))


def sound_entries(lake: Lake) -> list[log.Entry]:
    """All entries of a log whose chain is whole.

    Raises:
        IntegrityError: the chain is broken.
    """
    # a listing that is read while somebody adds entries may lack one of them: a broken chain is so twice
    broken = next(log.problems(lake), None) and next(log.problems(lake), None)
    if broken:
        raise IntegrityError(
            f"the log of {lake.location} cannot be relied on, and no state of review is told: {broken}"
        )
    return log.entries(lake)


def require_chain(lake: Lake) -> None:
    """Refuse to add to a log whose chain is broken: what people say would stand on entries that nobody can rely on.

    Runs, removals and readings of persons' rows are entered all the same: that they happened must not be lost.

    Raises:
        IntegrityError: the chain is broken.
    """
    # a listing that is read while somebody adds entries may lack one of them: a broken chain is so twice
    broken = next(log.problems(lake), None) and next(log.problems(lake), None)
    if broken:
        raise IntegrityError(f"the log of {lake.location} cannot be gone on with: {broken}")


def _without_entry(lake: Lake) -> Iterator[str]:
    """Runs that the log does not have as they are."""
    found = {entry.run: entry for entry in log.entries(lake) if entry.event == "run published"}
    for path in lake.storage.glob("runs/*/manifest.json"):
        run = path.split("/")[1]
        if run not in found:
            yield f"{run} has no entry in the log; find out who put the run there, or whether the log was cut short"
        elif found[run].manifest_sha256 != digest_of(read_manifest(lake, run)):
            yield f"manifest of {run} is not the one that was logged ({found[run].words()})"


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
            names.setdefault(entry.signature.key, {}).setdefault(persons.plain(entry.by), entry.by)
    for key, of in names.items():
        if len(of) > 1:
            yield f"the key {key} signed as {', '.join(of.values())}: one key stands for one person"


def _times_back(entries: Sequence[log.Entry]) -> Iterator[str]:
    """Entries with a time before that of the entry before: the order of the log counts, and no clock does."""
    for before, entry in pairwise(entries):
        if entry.time < before.time:
            yield (
                f"{entry.words()} is earlier than the entry before it ({before.time}): a clock was set back, or a time "
                "is false"
            )


def _head_of(option: str, kept: str) -> log.Head:
    number, _, digest = kept.partition(":")
    if not number.isdecimal() or len(digest) != 64:
        raise SpecError(f"{option} {kept!r} is no head; give what `evenhand log head` printed, such as 12:3f9c...")
    return log.Head(n=int(number), sha256=digest)
