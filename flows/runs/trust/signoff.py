"""Sign-off of a run: who prepared, reviewed, approved, rejected or withdrew it, as an entry of the lake's log.

What is signed is the manifest of the run, and so the run as it is. An approval needs two people: two names, and where
keys are trusted two keys. Where the run stands: ``review``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from flows.runs.manifest import read_manifest
from flows.runs.trust import persons
from flows.runs.trust.chain import require_chain
from flows.runs.trust.persons import FieldError
from flows.runs.trust.verification import verify_run
from schemas.errors import nearest
from tasks.lake import log
from tasks.lake.signatures import Signer, digest_of, fingerprint, trusted
from tasks.lake.store import Lake
from tasks.lake.trusted_entries import ENDING, counting, trusted_signer

Role = Literal["prepared", "reviewed", "approved", "rejected", "withdrawn"]
ROLES: tuple[str, ...] = get_args(Role)


@dataclass(frozen=True)
class SignOff:
    """What somebody signs."""

    by: str
    role: str
    text: str = ""
    key: Path | None = None
    """Private key; that of the environment if None."""


def sign_off(lake: Lake, run: str, said: SignOff) -> log.Entry:
    """Add a signature to the log.

    Raises:
        SpecError: no such run or role, no name, no trusted key where keys are trusted, or a rule of review is not kept.
        IntegrityError: the log's chain is broken, or an approval, and files of the run are not as they were written.
    """
    digest, by, text = digest_of(read_manifest(lake, run)), persons.name(said.by), persons.text(said.text, "--note")
    _check_role(said.role, text)
    require_chain(lake)
    who, keys = trusted_signer(lake, said.key), trusted()
    key = fingerprint(who.public) if who and keys else ""
    if said.role == "approved":
        _check_prepared(run, by, key, _signed_now(lake, run, digest, keys))
        verify_run(lake.location, run)
    with lake.lock(f"signing-{run}"):
        _check_new(run, by, said.role, who, _signed_now(lake, run, digest, keys), trusts=bool(keys))
        return log.append(lake, "signed off", who, run=run, manifest_sha256=digest, by=by, role=said.role, text=text)


def signed(found: Sequence[log.Entry], manifest_sha256: str) -> list[log.Entry]:
    """The signatures of a manifest, in their order; those of an earlier manifest of the run are none of it.

    Args:
        found: the log's entries about the run.
        manifest_sha256: of the manifest as it is.
    """
    return [entry for entry in found if entry.event == "signed off" and entry.manifest_sha256 == manifest_sha256]


def _signed_now(lake: Lake, run: str, digest: str, keys: frozenset[str]) -> list[log.Entry]:
    return signed([entry for entry in counting(log.entries(lake), keys) if entry.run == run], digest)


def standing(found: Sequence[log.Entry]) -> list[log.Entry]:
    """The signatures that count: all since the run was prepared anew after the last rejection or withdrawal.

    Where nobody prepared it anew, that rejection or withdrawal alone.
    """
    ends = [place for place, entry in enumerate(found) if entry.role in ENDING]
    if not ends:
        return list(found)
    after = list(found[ends[-1] + 1 :])
    anew = next((place for place, entry in enumerate(after) if entry.role == "prepared"), None)
    return [found[ends[-1]]] if anew is None else after[anew:]


def _check_role(role: str, text: str) -> None:
    if role not in ROLES:
        why = f"{role!r} is none; {nearest(role, ROLES)}"
        raise FieldError("role", f"--role {why}", why)
    if role in ENDING and not text:
        raise FieldError("text", f"{role} needs a reason; give it with --note", f"{role} needs a reason; write it here")


def _check_new(run: str, by: str, role: str, who: Signer | None, found: Sequence[log.Entry], *, trusts: bool) -> None:
    """What stands is not signed a second time, but for a key that the first signature lacks."""
    valid = standing(found)
    for place, entry in enumerate(valid):
        is_mine = entry.role == role and persons.same(entry.by, by)
        key = entry.signature.key if entry.signature else ""
        counts = role != "approved" or prepared_by_another(by, key if trusts else "", valid[:place])
        if is_mine and counts and (who is None or fingerprint(who.public) == key):
            why = f"{run} is signed as {role} by {entry.by} already ({entry.words()}), and that stands"
            raise FieldError("role", why, why)


def _check_prepared(run: str, by: str, key: str, found: Sequence[log.Entry]) -> None:
    """An approval needs that somebody else prepared the run, and that nobody rejected or withdrew it since."""
    valid = standing(found)
    if valid and valid[0].role in ENDING:
        why = f"{run} was {valid[0].role} after it was prepared; it has to be prepared again first"
        raise FieldError("role", why, why)
    if not prepared_by_another(by, "", valid):
        own = any(entry.role == "prepared" for entry in valid)
        who = f"was prepared by {by} alone" if own else "was prepared by nobody"
        way = f"an approval needs `evenhand signoff {run} --role prepared` by another name before it"
        plain = "before an approval somebody of another name signs it as prepared"
        raise FieldError("role", f"{run} {who}: {way}", f"{run} {who}; {plain}")
    if not prepared_by_another(by, key, valid):
        why = f"{run} was prepared with the same key ({key}): an approval needs two keys, one of each person"
        raise FieldError("role", f"{why}; give your own with --key", why)


def prepared_by_another(by: str, key: str, found: Sequence[log.Entry]) -> bool:
    """Whether some signature says that somebody else prepared the run.

    Args:
        by: name that approves.
        key: fingerprint of the key that approves, where keys are trusted: another key has to have prepared the run.
            Empty where names alone are compared.
        found: signatures that count.
    """
    return any(
        entry.role == "prepared"
        and not persons.same(entry.by, by)
        and not (key and (entry.signature is None or entry.signature.key == key))
        for entry in found
    )
