"""Keys in the log of a lake: one that is added, and one that is retired by signing its successor."""

from pathlib import Path

from schemas.errors import SpecError
from tasks.lake import log
from tasks.lake.signatures import fingerprint, public_key, required_signer
from tasks.lake.store import Lake
from tasks.lake.trusted_entries import trusted_signer


def add_key(lake: Lake, public: Path, why: str = "") -> log.Entry:
    """Tell the log of a key; signed by the key that is set up, if there is one.

    Args:
        lake: whose log.
        public: file of the public key.
        why: such as that the key before it was lost.

    Raises:
        SpecError: the file holds no public key, or keys are trusted and no trusted key signs.
    """
    return log.append(lake, "key added", trusted_signer(lake), key=fingerprint(public_key(public)), text=why)


def retire_key(lake: Lake, old: Path, new: Path) -> log.Entry:
    """Retire a key in favour of another: the entry that names the new one is signed by the old one.

    What the old key signed stays valid where the log had it before.

    Args:
        lake: whose log.
        old: file of the private key that goes.
        new: file of the public key that comes.

    Raises:
        SpecError: a file holds no key, or both are the same key, or the old one is retired already or not trusted.
    """
    successor, who = fingerprint(public_key(new)), required_signer(old)
    own = fingerprint(who.public)
    if own == successor:
        raise SpecError(f"{new} is the key that is to be retired ({own}); make another with `evenhand keys new`")
    if own in log.retired(lake):
        raise SpecError(f"the key {own} is retired already; `evenhand log` shows when")
    return log.append(lake, "key retired", trusted_signer(lake, old), key=own, successor=successor)
