"""Checks the whole log of a lake: its chain, a head that was kept elsewhere, and that every run has its entry."""

from collections.abc import Iterator

from flows.runs.manifest import read_manifest
from schemas.errors import IntegrityError, SpecError
from tasks.lake import log
from tasks.lake.signatures import digest_of
from tasks.lake.store import Lake


def check_log(lake: Lake, kept: str | None = None) -> int:
    """Check the log; gives the number of its entries.

    Args:
        lake: whose log.
        kept: a head as `evenhand log head` printed it, ``N:SHA256``.

    Raises:
        SpecError: ``kept`` is no head.
        IntegrityError: the chain is broken or cut, or a run has no entry; all of it is listed.
    """
    anchor = _head_of(kept) if kept else None
    problems = list(log.problems(lake))
    if anchor and (said := log.kept_head(lake, anchor.n, anchor.sha256)):
        problems.append(said)
    if not problems:
        problems += [*_without_entry(lake), *_by_retired_keys(lake)]
    if problems:
        raise IntegrityError("\n".join([f"the log of {lake.location}: {len(problems)} problems:", *problems]))
    return log.head(lake).n


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


def _by_retired_keys(lake: Lake) -> Iterator[str]:
    """Entries that a key signed after it was retired."""
    retired: dict[str, log.Entry] = {}
    for entry in log.entries(lake):
        key = entry.signature.key if entry.signature else ""
        if key in retired:
            yield f"{entry.words()} is signed by {key}, a key that was retired before ({retired[key].words()})"
        if entry.event == "key retired":
            retired[entry.key] = entry


def _head_of(kept: str) -> log.Head:
    number, _, digest = kept.partition(":")
    if not number.isdecimal() or len(digest) != 64:
        raise SpecError(f"--head {kept!r} is no head; give what `evenhand log head` printed, such as 12:3f9c...")
    return log.Head(n=int(number), sha256=digest)
