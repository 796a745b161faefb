"""The signature of a run as `evenhand verify` judges it: whose it is, whether it holds, and what is said of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.runs.trust.certificate import SignedManifest, signed_by
from tasks.lake import log
from tasks.lake.signatures import holds, trusted
from tasks.lake.store import Lake


@dataclass(frozen=True)
class Demand:
    """What is asked of a run's signature."""

    key: Path | None = None
    """Public key that has to have signed; one of EVENHAND_TRUSTED_KEYS if None."""
    signed: bool = False
    """Whether a run without a signature fails."""


NOTHING_ASKED = Demand()


@dataclass(frozen=True)
class Signed:
    """A run's signature, and the keys that are trusted."""

    run: str
    made: SignedManifest | None
    trusted: frozenset[str]
    """Fingerprints; empty where nobody said which keys are trusted."""
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

    def problems(self, manifest: Mapping[str, Any], found: Sequence[log.Entry]) -> Iterator[str]:
        """What is wrong with it; of a run that nobody signed nothing, unless a signature is asked for.

        Args:
            manifest: of the run.
            found: the log's entries about the run.
        """
        if self.made is None:
            if self.demanded or self.trusted:
                yield f"the manifest of {self.run} is not signed, and a signature is asked for"
            return
        key, entry = self.made.signature.key, log.newest(found, ("run published",))
        if not holds(self.made.signature, "manifest", manifest):
            yield f"the signature of {self.run} is not one of its manifest by the key {key}"
        if self.trusted and key not in self.trusted:
            known = ", ".join(sorted(self.trusted))
            yield f"{self.run} is signed by {key}, which is none of the trusted keys ({known})"
        if entry is not None and entry.signature is not None and entry.signature.key != key:
            yield f"{self.run} is signed by {key}, and its entry {entry.n} of the log by {entry.signature.key}"
        if entry is not None and entry.signature is None and (self.trusted or entry.files):
            yield f"{self.run} is signed by {key}, and its entry {entry.n} of the log has no signature: who wrote it?"
        if key in self.retired and (entry is None or entry.n > self.retired[key].n):
            yield f"{self.run} is signed by {key}, a key that was retired before (entry {self.retired[key].n})"

    def words(self, found: Sequence[log.Entry]) -> str:
        """What is said of the signature of a run in which nothing is amiss."""
        if self.made is None:
            return "the manifest is NOT SIGNED, so that this shows damage, not forgery"
        key, entry = self.made.signature.key, log.newest(found, ("run published",))
        if key not in self.trusted:
            return f"signed by {key} (key not in your trusted keys): give --key, or EVENHAND_TRUSTED_KEYS"
        when = f" on {entry.time[:10]}, entry {entry.n} of the log" if entry else ", without an entry in the log"
        return f"signed by {key}{when}"
