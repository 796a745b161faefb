"""Review of a run: who prepared, reviewed, approved, rejected or withdrew it, by entries of the lake's log.

What is signed is the run's manifest. A name is what somebody said; only a key tells whose entry it is (ui.md 6 of the
specs has the rules).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from flows.runs.manifest import read_manifest
from flows.runs.trust.verification import verify_run
from schemas.errors import SpecError, nearest
from tasks.lake import log
from tasks.lake.signatures import digest_of, signer
from tasks.lake.store import Lake

Role = Literal["prepared", "reviewed", "approved", "rejected", "withdrawn"]
ROLES: tuple[str, ...] = get_args(Role)
WITH_TEXT = ("rejected", "withdrawn")


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
        SpecError: no such run or role, no name, or a rule of review is not kept.
        IntegrityError: an approval of a run whose files are not as they were written.
    """
    manifest = read_manifest(lake, run)
    _check(said)
    if said.role == "approved":
        _check_prepared(run, said.by, log.entries(lake, run))
        verify_run(lake.location, run)
    return log.append(
        lake,
        "signed off",
        signer(said.key),
        run=run,
        manifest_sha256=digest_of(manifest),
        by=said.by.strip(),
        role=said.role,
        text=said.text,
    )


def _check(said: SignOff) -> None:
    if said.role not in ROLES:
        raise SpecError(f"--role {said.role!r} is none; {nearest(said.role, ROLES)}")
    if not said.by.strip():
        raise SpecError("--as is empty: give the name of who signs")
    if said.role in WITH_TEXT and not said.text.strip():
        raise SpecError(f"{said.role} needs a reason; give it with --note")
    if len(said.text) > log.MOST_TEXT:
        raise SpecError(f"--note has {len(said.text):,} letters, and at most {log.MOST_TEXT:,} are kept")


def _check_prepared(run: str, by: str, found: Sequence[log.Entry]) -> None:
    """An approval needs that somebody else prepared the run, and did not withdraw since."""
    signed = [entry for entry in found if entry.event == "signed off"]
    others = [entry for entry in signed if entry.role == "prepared" and _name(entry.by) != _name(by)]
    if not others:
        raise SpecError(
            f"{run} was not prepared by anybody but {by}: an approval needs `evenhand signoff {run} --role prepared` "
            "by another name before it"
        )
    last = max(entry.n for entry in others)
    if any(entry.role in WITH_TEXT and entry.n > last for entry in signed):
        raise SpecError(f"{run} was {signed[-1].role} after it was prepared; it has to be prepared again first")


def _name(by: str) -> str:
    return " ".join(by.casefold().split())
