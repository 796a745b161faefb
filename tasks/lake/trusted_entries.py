"""Which entries of the log count where keys are trusted, and which key may sign such an entry.

With EVENHAND_TRUSTED_KEYS an entry that counts needs the signature of a trusted key. Without trusted keys anybody who
can write to the lake can write the log anew: names are claims then, and the log shows damage, not forgery.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from schemas.errors import SpecError
from tasks.lake import log
from tasks.lake.signatures import KEY, TRUSTED, Signer, fingerprint, holds, signer, trusted
from tasks.lake.store import Lake

COUNTING: Final[tuple[log.Event, ...]] = (
    "run published",
    "signed off",
    "key added",
    "key retired",
    "protected",
    "unprotected",
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
    who, keys = signer(key), trusted()
    if who is None:
        if keys:
            raise SpecError(
                f"{TRUSTED} is set and no key signs: without a signature this entry of the log would not count, and "
                f"`evenhand log verify` would fail. Set {KEY} to the file of a trusted private key, or unset {TRUSTED}"
            )
        return None
    own = fingerprint(who.public)
    if keys and own not in keys:
        raise SpecError(
            f"the key {own} signs, and {TRUSTED} trusts {_listed(keys)} alone: this entry of the log would not count. "
            f"Sign with a trusted key, or add the public key of {own} to {TRUSTED}"
        )
    if own in log.retired(lake):
        raise SpecError(
            f"the key {own} was retired (entry {log.retired(lake)[own]} of the log): nothing that it signs now counts. "
            f"Set {KEY} to the key that follows it"
        )
    return who


def counting(entries: Sequence[log.Entry], keys: frozenset[str]) -> list[log.Entry]:
    """The entries without those that do not count, see ``faults``.

    A rejection or withdrawal stays, whoever signed it: to strip its signature must not bring an approval back.
    """
    wrong = faults(entries, keys)
    return [entry for entry in entries if entry.n not in wrong or entry.role in ENDING]


def faults(entries: Sequence[log.Entry], keys: frozenset[str]) -> dict[int, str]:
    """Entries that do not count: number of each -> a sentence with the reason.

    Args:
        entries: all entries of the log, in their order.
        keys: fingerprints of the trusted keys; without any an unsigned entry counts.
    """
    found: dict[int, str] = {}
    retired: dict[str, log.Entry] = {}
    for entry in entries:
        reason = _fault(entry, keys, retired)
        if reason:
            about = " ".join(part for part in (entry.role or entry.event, entry.run) if part)
            found[entry.n] = f"{entry.words()} ({about}{f' by {entry.by}' if entry.by else ''}) {reason}"
        elif entry.event == "key retired":
            retired[entry.key] = entry
    return found


def _fault(entry: log.Entry, keys: frozenset[str], retired: Mapping[str, log.Entry]) -> str:
    """Why an entry does not count; empty where it does."""
    counts, made = entry.event in COUNTING, entry.signature
    if made is None:
        if entry.event == "key retired":
            return "has no signature: only the key that is retired can sign it"
        return "has no signature, and it needs the signature of a trusted key" if keys and counts else ""
    if not holds(made, "log", entry.content()):
        return "has a signature that is not of it: it was altered"
    if made.key in retired:
        return f"is signed by {made.key}, a key that was retired before ({retired[made.key].words()})"
    if entry.event == "key retired" and made.key != entry.key:
        return f"is signed by {made.key}: only the key that is retired ({entry.key}) can sign it"
    if keys and counts and made.key not in keys:
        return f"is signed by {made.key}, which is none of the trusted keys ({_listed(keys)})"
    return ""


def _listed(keys: frozenset[str]) -> str:
    return ", ".join(sorted(keys))
