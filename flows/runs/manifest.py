"""Manifest of a run: reads it, verifies its seal, and tells where the run's records and report lie."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from schemas.artifact import Partition
from schemas.errors import IntegrityError, SpecError, nearest
from tasks.lake.storage import Storage, mapping_of
from tasks.lake.store import Lake

LIST = "files.json"
"""Name of the list of files that were made after a run."""


def read_manifest(lake: Lake, run: str) -> dict[str, Any]:
    """The manifest of a run.

    Raises:
        SpecError: the lake holds no such run.
        IntegrityError: it is not the manifest that was written.
    """
    path = f"runs/{run}/manifest.json"
    sealed = None if "/" in run else lake.storage.read(path)
    if sealed is None:
        known = [p.split("/")[1] for p in lake.storage.glob("runs/*/manifest.json")]
        raise SpecError(f"the lake {lake.location} holds no run {run!r}; {nearest(run, known)}")
    where = lake.storage.where(path)
    try:
        content = mapping_of(sealed)
        written = content.pop("sha256")
    except (ValueError, KeyError) as error:
        raise IntegrityError(f"{where} cannot be read as a manifest; run that audit again to rewrite it") from error
    if written != digest(content) or content.get("run") != run:
        raise IntegrityError(f"{where} is not the manifest that was written; run that audit again to rewrite it")
    return content


def began_at(manifest: Mapping[str, Any]) -> str:
    """When a run began; earlier versions recorded its end alone."""
    return str(manifest.get("started") or manifest["finished"])


def digest(content: Mapping[str, Any]) -> str:
    """The seal of a manifest's content, or of a spec: its sha256, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def report_of(lake: Lake, run: str) -> tuple[Storage, str]:
    """Storage and folder of a run's report: in the lake, or beside it if an earlier version wrote it there."""
    inside, former = f"reports/{run}", former_reports(lake)
    moved = lake.storage.exists(inside) or not former.exists(run)
    return (lake.storage, inside) if moved else (former, run)


def report_named(lake: Lake, run: str, manifest: Mapping[str, Any]) -> tuple[Storage, str]:
    """Storage and folder of the report that a manifest names.

    Only a manifest of an earlier version accepts the former place: a copy of the lake must be whole by itself.
    """
    return (lake.storage, f"reports/{run}") if "records" in manifest else report_of(lake, run)


def former_reports(lake: Lake) -> Storage:
    """Where earlier versions exported reports, each into the folder of its run: beside the lake."""
    return lake.storage.beside("reports")


def made_later(run: str) -> str:
    """Path of the list of a run's files that were made after it: no manifest names it, nor the files."""
    return f"reports/{run}/{LIST}"


def places_path(run: str) -> str:
    """Path of the record of where the files of a run's spec lie.

    It is no part of the run, whose folder may be handed on: paths of this machine stay in the house.
    """
    return f"places/{run}.json"


def record_of(partition: Partition) -> str:
    """Path of the record that names a partition's tables and files."""
    return f"stages/{partition.stage}/{partition.key}/partition.json"
