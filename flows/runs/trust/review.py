"""Where runs stand in their review, by the entries of the lake's log: who signed what, and what is open.

What people may sign: ``signoff``. Notes and remediations: ``notes``. Nothing is written here.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flows.runs.manifest import read_manifest
from flows.runs.naming import run_ids
from flows.runs.trust.notes import Remediation, remediations
from flows.runs.trust.signoff import prepared_by_another, signed, standing
from schemas.errors import IntegrityError
from tasks.lake import log
from tasks.lake.signatures import TRUSTED, digest_of, holds, trusted
from tasks.lake.store import Lake
from tasks.lake.trusted_entries import ENDING, counting, faults

UNSIGNED = "unsigned"
_RISING = ("prepared", "reviewed", "approved")


@dataclass(frozen=True)
class Review:
    """Where a run stands."""

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
        """Those of them whose last day is over."""
        return tuple(each for each in self.open if each.overdue())


@dataclass(frozen=True)
class Outstanding:
    """What people still have to do in a lake."""

    unsigned: tuple[str, ...]
    """Runs that nobody signed, of those that are valid: the protected one of a year, else the last."""
    open: tuple[Remediation, ...]
    overdue: tuple[Remediation, ...]


def review_of(lake: Lake, run: str, logged: Sequence[log.Entry] | None = None) -> Review:
    """Where one run stands, by its manifest as it is now.

    Args:
        lake: that holds it.
        run: its id.
        logged: all entries of the log, where they were read; they are read if None.

    Raises:
        SpecError: no such run, or EVENHAND_TRUSTED_KEYS names no key.
        IntegrityError: the manifest is not the one that was written, or a signature is not one of its entry.
    """
    found, keys = log.entries(lake) if logged is None else logged, trusted()
    open_ = tuple(each for each in remediations(found) if _stem(each.run) == _stem(run))
    digest, mine = digest_of(read_manifest(lake, run)), _counting(found, keys).get(run, [])
    if keys and _logged(mine) != digest:  # no trusted key says that the run was published as it is
        mine = []
    return _review(run, mine, digest, open_, keys)


def reviews(lake: Lake, logged: Sequence[log.Entry] | None = None) -> list[Review]:
    """Where the valid run of every audit, year and partition stands, by the log alone.

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
    for each in remediations(every):
        open_[_stem(each.run)].append(each)
    valid = {stem: max(runs, key=lambda run: _rank(by_run[run])) for stem, runs in by_stem.items()}
    return [_review(run, by_run[run], _logged(by_run[run]), tuple(open_[stem]), keys) for stem, run in valid.items()]


def outstanding(lake: Lake, logged: Sequence[log.Entry] | None = None) -> Outstanding:
    """What people still have to do: runs without a signature, remediations that are open, and those that are overdue.

    Args:
        lake: of which it is told.
        logged: all entries of the log, where they were read; they are read if None.

    Raises:
        IntegrityError: as ``reviews`` says.
    """
    every = log.entries(lake) if logged is None else logged
    open_ = tuple(remediations(every))
    unsigned = tuple(each.run for each in reviews(lake, every) if each.state == UNSIGNED)
    return Outstanding(unsigned, open_, tuple(each for each in open_ if each.overdue()))


def remarks(lake: Lake, found: Review, every: Sequence[log.Entry]) -> list[str]:
    """Sentences on what else is to be known of a review: the run before, names that no key vouches for, old reports.

    Args:
        lake: that holds the run.
        found: where it stands.
        every: all entries of the log.
    """
    said = [] if found.state == "approved" else [approved_before(lake, found.run, every)]
    said += _claims(found, trusted())
    about = {entry.n for entry in every if entry.run == found.run}
    said += [f"Does not count: {why}." for n, why in faults(every, trusted()).items() if n in about]
    made = log.newest([entry for entry in every if entry.run == found.run], ("report made",))
    last = found.signatures[-1] if found.signatures else None
    if last is not None and (made is None or made.n < last.n):
        was = f"the one made later (entry {made.n})" if made else "the one in the lake, a draft"
        said.append(f"No report shows entry {last.n} yet, the newest is {was}: evenhand report {found.run}")
    return [each for each in said if each]


def _claims(found: Review, keys: frozenset[str]) -> Iterator[str]:
    """Names of the signatures that no trusted key vouches for."""
    unverified = dict.fromkeys(entry.by for entry in found.signatures if entry.signature is None)
    if unverified:
        yield f"{', '.join(unverified)}: name as given, not verified."
    names: dict[str, dict[str, None]] = defaultdict(dict)
    for entry in found.signatures:
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
        run: one that nobody approved.
        every: all entries of the log.
    """
    published = {entry.run: entry.n for entry in every if entry.event == "run published"}
    own = published.get(run, len(every) + 1)
    earlier = [name for name in run_ids(lake) if name != run and _stem(name) == _stem(run)]
    before = max(
        (name for name in earlier if published.get(name, 0) < own), key=lambda n: published.get(n, 0), default=None
    )
    if before is None:
        return ""
    review = review_of(lake, before, every)
    approved = next((entry for entry in reversed(review.signatures) if entry.role == "approved"), None)
    if review.state != "approved" or approved is None:
        return ""
    return f"The run before, {before}, was approved by {approved.by}, {_difference(lake, run, before)}."


def _difference(lake: Lake, run: str, before: str) -> str:
    one, other = read_manifest(lake, run), read_manifest(lake, before)
    if one["source_sha256"] != other["source_sha256"]:
        return "on other data"
    return "by another spec" if one["spec"] != other["spec"] else "by other code"


def states(every: Sequence[log.Entry]) -> dict[str, str]:
    """Run -> state of its review by the log alone, for each run that somebody signed.

    Args:
        every: all entries of the log.

    Raises:
        SpecError: EVENHAND_TRUSTED_KEYS names no key.
        IntegrityError: a signature is not one of its entry.
    """
    keys = trusted()
    return {
        run: _review(run, mine, _logged(mine), (), keys).state
        for run, mine in _counting(every, keys).items()
        if any(entry.event == "signed off" for entry in mine)
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
    found: dict[str, list[log.Entry]] = defaultdict(list)
    for entry in counting(every, keys):
        found[entry.run].append(entry)
    return found


def _review(
    run: str,
    found: Sequence[log.Entry],
    manifest_sha256: str,
    open_: tuple[Remediation, ...],
    keys: frozenset[str],
) -> Review:
    valid = standing(signed(found, manifest_sha256))
    return Review(run, _state(valid, keys), tuple(valid), manifest_sha256, open_)


def _state(found: Sequence[log.Entry], keys: frozenset[str]) -> str:
    """The highest of what counts; an approval counts after somebody else has prepared the run."""
    if found and found[0].role in ENDING:
        return found[0].role
    reached = {
        entry.role
        for place, entry in enumerate(found)
        if entry.role != "approved"
        or prepared_by_another(entry.by, entry.signature.key if keys and entry.signature else "", found[:place])
    }
    return next((role for role in reversed(_RISING) if role in reached), UNSIGNED)


def _rank(found: Sequence[log.Entry]) -> tuple[bool, int]:
    """Whether the run is protected, and when it was published: the greatest of several is the valid one."""
    mark, published = log.newest(found, ("protected", "unprotected")), log.newest(found, ("run published",))
    return mark is not None and mark.event == "protected", published.n if published else 0


def _logged(found: Sequence[log.Entry]) -> str:
    published = log.newest(found, ("run published",))
    return published.manifest_sha256 if published else ""


def _stem(run: str) -> str:
    """What the ids of all runs of one audit, year and partition begin with."""
    return run.rpartition("-")[0]
