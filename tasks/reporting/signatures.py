"""Sign-off on a report's first page: who prepared, reviewed and approved the run, when, and what they signed.

The report that a run makes is a draft. One that is made later is given what the log of the lake has by then.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

DRAFT = "draft"
ENDED = ("rejected", "withdrawn")
_ROLES = ("prepared", "reviewed", "approved")
_STATES = {"prepared": "draft, prepared", "reviewed": "draft, reviewed"}
_MOST_NAMES = 3
"""Of a role; the page has room for no more."""
_MOST_WORDS = 20
"""Of a reason."""


@dataclass(frozen=True)
class Signature:
    """One signature."""

    by: str
    role: str
    """prepared, reviewed, approved, rejected or withdrawn."""
    day: str
    """Such as 2027-01-31."""
    sha256: str
    """Of the manifest that was signed."""
    text: str = ""
    key: str = ""
    """Fingerprint of the key; empty where the name is as given, and not verified."""


@dataclass(frozen=True)
class Signed:
    """Where a run stands in its review."""

    state: str = DRAFT
    """draft, or the highest role that counts."""
    signatures: tuple[Signature, ...] = ()
    before: str = ""
    """A sentence on the run before; empty without one that was approved."""
    head: str = ""
    """Number and sha256 of the last of these entries of the log."""
    trusted: bool = True
    """Whether keys were trusted where the page was made; without trusted keys a name is a claim, with a key too."""

    @property
    def short(self) -> str:
        """The state in the line above the headline."""
        return _STATES.get(self.state, self.state)

    @property
    def words(self) -> str:
        """What the page says of it."""
        return " ".join(part for part in (*self._said(), self.before, *self._proof()) if part)

    def _said(self) -> Iterator[str]:
        if self.state in ENDED:
            [last] = self.signatures
            yield f"{self.state.capitalize()} by {last.by}, {last.day}: {_cut(last.text)}"
            return
        known = [_STATES.get(self.state, self.state).capitalize()]
        known += [f"{role.capitalize()} by: {_names(self.signatures, role)}" for role in _ROLES]
        yield ". ".join(known) + "."

    def _proof(self) -> Iterator[str]:
        """Whether keys vouch for the names, what was signed, and which entry of the log says so."""
        unverified = [each for each in self.signatures if not each.key]
        if unverified:
            every = len(unverified) == len(self.signatures)
            yield "Names as given, not verified." if every else "Names without a key are as given, not verified."
        if len(unverified) < len(self.signatures) and not self.trusted:
            yield "No key is trusted here: names are claims."
        for digest in sorted({each.sha256 for each in self.signatures}):
            yield f"Signed manifest: {digest}."
        if self.head:
            yield f"Log: {self.head}."


NOT_SIGNED = Signed()


def _names(signatures: Sequence[Signature], role: str) -> str:
    found = [each for each in signatures if each.role == role]
    told = [f"{each.by}, {each.day}" + (f" (key {each.key})" if each.key else "") for each in found[-_MOST_NAMES:]]
    more = [f"{len(found) - _MOST_NAMES} more"] if len(found) > _MOST_NAMES else []
    return "; ".join((*told, *more)) or "open"


def _cut(text: str) -> str:
    words = text.split()
    return " ".join(words) if len(words) <= _MOST_WORDS else " ".join(words[:_MOST_WORDS]) + " ..."
