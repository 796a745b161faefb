"""Makes the files of a run's report again from the tables that its manifest names; no stage is computed.

Files made later belong to no manifest and never lie in the run's folder: ``files.json`` there lists their digests.
"""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from flows.runs.index import LIST, began_at, made_later, read_manifest, spec_of
from flows.runs.record import measures_file
from flows.runs.released import OPEN, Door
from flows.runs.review import UNSIGNED, approved_before, review_of
from schemas.artifact import Partition
from schemas.audit.spec import AuditSpec
from schemas.errors import IntegrityError, SpecError
from tasks.lake import log
from tasks.lake.log import signer, trusted
from tasks.lake.store import Lake
from tasks.pipeline.digests import code_digest
from tasks.pipeline.registry import validated
from tasks.plan import STAGES, Step, inputs, report_settings
from tasks.reporting.exports.single_file import picture
from tasks.reporting.first_page.page import decide, run_of
from tasks.reporting.material import DRAFT, ReportSettings, Signature, Signed
from tasks.reporting.stage import material_of

_OTHER_VERSION = "it was made by another version of evenhand: run that audit again, or install that version"


def report_anew(lake: Lake, run: str, door: Door = OPEN) -> dict[str, bytes]:
    """All files of a run's report, path -> content, with its measures as Parquet; the rest as of ``read_anew``.

    They are all of them also where the run itself has the short report of one partition of many.
    """
    from tasks.reporting.pages import files  # loads what makes pages

    tables, settings = read_anew(lake, run, door)
    return {
        **files(replace(material_of(tables, settings), signed=signed_of(lake, run))),
        "measures.parquet": measures_file(run, tables[0], settings.disclosure.profile),
    }


def picture_anew(lake: Lake, run: str) -> bytes:
    """The first page of a run as a drawing; errors as of ``read_anew``."""
    tables, settings = read_anew(lake, run)
    material = material_of(tables, settings)
    return picture(material.rephrase_all(decide(run_of(material))), material.title)


def read_anew(lake: Lake, run: str, door: Door = OPEN) -> tuple[list[pa.Table], ReportSettings]:
    """The published tables that the report of a run is made of, and its settings.

    Args:
        lake: that holds it.
        run: its id.
        door: what stays in the house.

    Raises:
        SpecError: the lake has no such run, or it is of another version.
        IntegrityError: a table is missing or has been altered.
    """
    manifest, stage = read_manifest(lake, run), STAGES["report"]
    try:
        spec = validated(AuditSpec, spec_of(manifest))
    except ValidationError as error:
        raise SpecError(f"the report of run {run} cannot be made again: {_OTHER_VERSION}") from error
    settings = report_settings(spec, run, manifest["source_sha256"], manifest["code"], began_at(manifest))
    partitions = [Partition.model_validate(entry) for entry in manifest["partitions"]]
    before = list(takewhile(lambda partition: partition.stage != stage.name, partitions))
    artifacts = inputs(Step(stage.name, stage, settings), before)
    if not artifacts[stage.reads[0].name]:
        raise SpecError(f"run {run} has no table {stage.reads[0].name}: {_OTHER_VERSION}")
    tables = stage.read(lake, artifacts)
    named = zip(stage.reads, tables, strict=True)
    return [door.through(read.name, table) for read, table in named], settings


def signed_of(lake: Lake, run: str, checked: Sequence[log.Entry] | None = None) -> Signed:
    """The current signatures of a run, as its first page shows them.

    Args:
        lake: that holds it.
        run: its id.
        checked: all entries of the log, by a caller that checked its chain; read and checked here if None.

    Raises:
        SpecError: no such run.
        IntegrityError: the log's chain is broken, or a signature is not one of its entry.
    """
    every = log.entries(lake) if checked is None else checked
    run_review = review_of(lake, run, every)
    if checked is None and run_review.signatures and (broken := next(log.problems(lake), None)):
        raise IntegrityError(f"the log of {lake.location} is not to be shown: {broken}")
    before = "" if run_review.state == "approved" else approved_before(lake, run, every)
    head = f"{(last := run_review.signatures[-1]).n}:{log.digest_at(lake, last.n)}" if run_review.signatures else ""
    state = DRAFT if run_review.state == UNSIGNED else run_review.state
    rows = []
    for entry in run_review.signatures:
        key = entry.signature.key if entry.signature else ""
        rows.append(Signature(entry.by, entry.role, entry.time[:10], entry.manifest_sha256, entry.text, key))
    return Signed(state, tuple(rows), before, head, trusted=bool(trusted()))


def note_made(lake: Lake, run: str, files: Mapping[str, bytes]) -> str:
    """Add files that were made later to the list in the run's folder; returns its place.

    What the manifest names with the same content is left out; what is in the list already keeps its time.

    Raises:
        SpecError: the lake holds no such run.
    """
    stage = STAGES["report"]
    path, code = made_later(run), code_digest([stage.function.__module__], stage.files())
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with lake.lock(f"run-{run}"):
        listed: list[dict[str, Any]] = json.loads(lake.storage.read(path) or b'{"files": []}')["files"]
        listed_files = {(file["file"], file["sha256"]) for file in listed} | {
            *read_manifest(lake, run)["exported"].items()
        }
        for name, content in files.items():
            digest = hashlib.sha256(content).hexdigest()
            if (name, digest) not in listed_files:
                listed.append({"file": name, "sha256": digest, "bytes": len(content), "made": now, "code": code})
        content = json.dumps({"run": run, "files": listed}, indent=1).encode()
        where = lake.write_file(path, content, draft=f"tmp/{run}-files.json")
        digests = {
            name: hashlib.sha256(file_content).hexdigest() for name, file_content in {**files, LIST: content}.items()
        }
        log.append(lake, "report made", signer(), run=run, files=digests)
        return where
