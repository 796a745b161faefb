"""Makes the files of a run's report anew from the tables that its manifest names; no stage is computed.

Files made later belong to no manifest and never lie in the run's folder: ``files.json`` there lists their digests.
"""

import hashlib
import json
import time
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from pydantic import ValidationError

from flows.runs.index import spec_of
from flows.runs.record import made_later, measures_file, read_manifest
from schemas.artifact import Partition
from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from tasks.lake.store import Lake
from tasks.pipeline.lineage.digests import code_digest
from tasks.pipeline.specs import validated
from tasks.plan import STAGES, Step, inputs, report_settings

_OTHER_VERSION = "it was made by another version of evenhand: run that audit again, or install that version"


def report_anew(lake: Lake, run: str) -> dict[str, bytes]:
    """The files of a run's report, path -> content, with its measures as Parquet.

    Raises:
        SpecError: the lake has no such run, or it is of another version.
        IntegrityError: a table is missing or has been altered.
    """
    manifest, stage = read_manifest(lake, run), STAGES["report"]
    try:
        spec = validated(AuditSpec, spec_of(manifest))
    except ValidationError as error:
        raise SpecError(f"the report of run {run} cannot be made anew: {_OTHER_VERSION}") from error
    settings = report_settings(spec, run, manifest["source_sha256"], manifest["code"])
    found = [Partition.model_validate(entry) for entry in manifest["partitions"]]
    before = list(takewhile(lambda partition: partition.stage != stage.name, found))
    given = inputs(Step(stage.name, stage, settings), before)
    if not given[stage.reads[0].name]:
        raise SpecError(f"run {run} has no table {stage.reads[0].name}: {_OTHER_VERSION}")
    tables = stage.read(lake, given)
    files = dict(stage.function(*tables, settings=settings).files)
    return {**files, "measures.parquet": measures_file(run, tables[0], spec.disclosure.profile)}


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
        known = {(each["file"], each["sha256"]) for each in listed} | {*read_manifest(lake, run)["exported"].items()}
        for name, content in files.items():
            digest = hashlib.sha256(content).hexdigest()
            if (name, digest) not in known:
                listed.append({"file": name, "sha256": digest, "bytes": len(content), "made": now, "code": code})
        said = {"run": run, "files": listed}
        return lake.write_file(path, json.dumps(said, indent=1).encode(), draft=f"tmp/{run}-files.json")
