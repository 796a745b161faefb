"""Certificate of a run: the signature of its manifest where there is a key, and the run's entry in the lake's log.

``runs/RUN/manifest.sig.json`` holds the signature. ``runs/RUN/logged.json`` holds the number of the entry, so that
nobody reads the whole log to find it; the log alone counts.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from flows.runs.index import mark_of
from flows.runs.manifest import LIST, made_later, read_manifest
from flows.runs.trust.protection import mark_content
from schemas.errors import IntegrityError
from tasks.lake import log
from tasks.lake.signatures import Signature, digest_of, trusted
from tasks.lake.store import Lake
from tasks.lake.trusted_entries import trusted_signer

SIGNATURE = "manifest.sig.json"


class SignedManifest(BaseModel):
    """The signature of a manifest, and when it was made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    signature: Signature
    time: str


def signature_path(run: str) -> str:
    """Where the signature of a run's manifest lies."""
    return f"runs/{run}/{SIGNATURE}"


def logged_path(run: str) -> str:
    """Where the number of a run's entry lies."""
    return f"runs/{run}/logged.json"


def certify(lake: Lake, run: str) -> log.Entry:
    """Sign the manifest of a run that was just written, if there is a key, and enter the run in the log.

    Raises:
        SpecError: the key that is set up is none, or keys are trusted and no trusted key signs.
        InfrastructureError: the lake cannot be written, or the signing failed.
        IntegrityError: the log cannot be gone on with.
    """
    content, who = read_manifest(lake, run), trusted_signer(lake)
    files: dict[str, str] = {}
    if who is None:
        lake.storage.discard(signature_path(run))
    else:
        made = SignedManifest(signature=who.sign("manifest", content), time=_now()).model_dump_json(indent=1).encode()
        lake.write_file(signature_path(run), made, f"tmp/{run}-signature.json")
        files = {SIGNATURE: hashlib.sha256(made).hexdigest()}
    entry = log.append(lake, "run published", who, run=run, manifest_sha256=digest_of(content), files=files)
    lake.write_file(logged_path(run), _note(entry), f"tmp/{run}-logged.json")
    return entry


def is_certified(lake: Lake, run: str) -> bool:
    """Whether the log holds the manifest of a run as it is, or there is no log yet.

    Where keys are trusted, a trusted key has to have signed the entry: a run of before is published again, signed.
    """
    keys = trusted()
    try:
        if not keys and not lake.storage.exists(logged_path(run)) and not log.head(lake).n:
            return True
        noted = json.loads(lake.storage.read(logged_path(run)) or b"null")
        entry = log.entry_of(lake, int(noted["n"])) if noted else _adopted(lake, run)
        if entry is None or (keys and (entry.signature is None or entry.signature.key not in keys)):
            return False
        return entry.run == run and entry.manifest_sha256 == digest_of(read_manifest(lake, run))
    except (ValueError, TypeError, KeyError, IntegrityError):
        return False


def _adopted(lake: Lake, run: str) -> log.Entry | None:
    """The entry of a run that was there before the log."""
    entry = log.newest(log.entries(lake, run), ("run published",))
    return entry if entry and entry.text == log.BEFORE_THE_LOG else None


def problems(lake: Lake, run: str, manifest: dict[str, Any], found: list[log.Entry]) -> Iterator[str]:
    """What of a run does not agree with the log.

    Args:
        lake: that holds it.
        run: its id.
        manifest: as it is now.
        found: the log's entries about the run.
    """
    entry = log.newest(found, ("run published",))
    if entry is None:
        if log.head(lake).n or lake.storage.exists(logged_path(run)):
            yield f"{run} has no entry in the log of {lake.location}; who put it there, or took the entry?"
        return
    if entry.manifest_sha256 != digest_of(manifest):
        yield f"manifest of {run} is not the one that was logged on {entry.time[:10]} (entry {entry.n})"
    noted = lake.storage.read(logged_path(run))
    if entry.text != log.BEFORE_THE_LOG and noted != _note(entry):
        where = lake.storage.where(logged_path(run))
        yield f"{where} is missing or is not the file that was written; run the audit again"
    yield from _marks(lake, run, found)
    signature = hashlib.sha256(lake.storage.read(signature_path(run)) or b"").hexdigest()
    if SIGNATURE in entry.files and entry.files[SIGNATURE] != signature:
        where = lake.storage.where(signature_path(run))
        yield f"{where} is missing or is not the signature that was logged (entry {entry.n})"


def _marks(lake: Lake, run: str, found: Sequence[log.Entry]) -> Iterator[str]:
    """What of a run was written after it and is not as the log says: the mark of protection, the list of files."""
    mark, marked = lake.storage.read(mark_of(run)), log.newest(found, ("protected", "unprotected"))
    if mark is not None and marked is not None and (marked.event == "unprotected" or mark != mark_content(marked)):
        yield f"{lake.storage.where(mark_of(run))} is not the mark that was logged; protect the run again"
    made, listed = log.newest(found, ("report made",)), lake.storage.read(made_later(run))
    if made is not None and hashlib.sha256(listed or b"").hexdigest() != made.files[LIST]:
        yield f"{lake.storage.where(made_later(run))} is not the list that was logged (entry {made.n})"


def signed_by(lake: Lake, run: str) -> SignedManifest | None:
    """The signature of a run's manifest; None of one that is not signed.

    Raises:
        IntegrityError: the file holds none.
    """
    content = lake.storage.read(signature_path(run))
    if content is None:
        return None
    try:
        return SignedManifest.model_validate_json(content)
    except ValidationError as error:
        raise IntegrityError(f"{lake.storage.where(signature_path(run))} holds no signature") from error


def _note(entry: log.Entry) -> bytes:
    return json.dumps({"n": entry.n}).encode()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
