"""Protection of a published run: an entry of the log, and a mark in the run's folder."""

import json

from flows.runs.index import mark_of, marked
from flows.runs.manifest import read_manifest
from flows.supervision.presence import gate
from tasks.lake import log
from tasks.lake.signatures import digest_of
from tasks.lake.store import Lake
from tasks.lake.trusted_entries import trusted_signer


def protect(lake: Lake, run: str, protected: bool) -> None:
    """Protect a run, or remove its protection.

    Raises:
        SpecError: the lake holds no such run, or keys are trusted and no trusted key signs.
    """
    with gate(lake):  # a run that is being removed is not there any more, rather than protected
        entry = log.append(
            lake,
            "protected" if protected else "unprotected",
            trusted_signer(lake),
            run=run,
            manifest_sha256=digest_of(read_manifest(lake, run)),
        )
        if protected:
            lake.write_file(mark_of(run), mark_content(entry))
        else:
            lake.storage.remove(marked(run))


def mark_content(entry: log.Entry) -> bytes:
    """What the mark of a protected run holds, by its entry in the log."""
    return json.dumps({"run": entry.run, "since": entry.time}).encode()
