"""Reads report.json of a finished run, and what was left out of it, for the first page in the terminal."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from flows.runs.disclosure import withheld_groups
from flows.runs.first_page.lines import Said
from flows.runs.manifest import read_manifest, report_named
from schemas.artifact import Artifact
from schemas.errors import IntegrityError, SpecError
from schemas.tables.publication import PREFIX, PUBLICATION
from schemas.terms import EVERYBODY
from tasks.lake.store import Lake

_FILE = "report.json"


def first_page(lake: Lake, run: str) -> tuple[Said, str]:
    """The content of a run's report.json, and where its first page is.

    Raises:
        SpecError: the lake holds no such run, or its report is of an earlier version.
        IntegrityError: the file is missing, or not the one that was written.
    """
    manifest = read_manifest(lake, run)
    storage, folder = report_named(lake, run, manifest)
    content = storage.read(f"{folder}/{_FILE}")
    if content is None or hashlib.sha256(content).hexdigest() != manifest["exported"].get(_FILE):
        was = "missing" if content is None else "not the one that was written"
        raise IntegrityError(f"{storage.where(f'{folder}/{_FILE}')} is {was}; run that audit again to rewrite it")
    said: Said = json.loads(content)
    if "headline" not in said:
        raise SpecError(f"run {run} is of an earlier version, whose report has no first page; run that audit again")
    return said, storage.where(f"{folder}/report.html")


def left_out(lake: Lake, run: str) -> str:
    """Rows that a stage refused as published, in words; empty where that is withheld, or not known.

    Raises:
        IntegrityError: the table is not the one that was written.
    """
    for partition in read_manifest(lake, run)["partitions"]:
        for table in partition["tables"]:
            if table["table"] == f"{PREFIX}waterfall":
                return _outside(lake.read(Artifact.model_validate(table)).to_pylist())
    return ""


def remarks(lake: Lake, run: str) -> list[str]:
    """Sentences on what did not run, and on which groups are withheld, as its audit printed them.

    Raises:
        IntegrityError: a table is not the one that was written.
    """
    manifest = read_manifest(lake, run)
    spec, said = manifest["spec"], []
    if off := [name for name, settings in spec.get("methods", {}).items() if settings is None]:
        graph = "" if spec["causal_graph"]["edges"] else ", or without a `causal_graph`"
        said.append(f"Not run: {', '.join(off)} (not in `methods` of the spec{graph}).")
    tables = {each["table"]: each for partition in manifest["partitions"] for each in partition["tables"]}
    if PUBLICATION.name in tables:
        rows = lake.read(Artifact.model_validate(tables[PUBLICATION.name])).to_pylist()
        said += withheld_groups(rows, spec["disclosure"]["profile"])
    return said


def _outside(rows: Iterable[Mapping[str, Any]]) -> str:
    of = [row for row in rows if row["group"] == EVERYBODY and row["kind"] == "refused"]
    first = {row["protected_attribute"] for row in of[:1]}  # every attribute has the same rows
    counts = [row["n"] for row in of if row["protected_attribute"] in first]
    if None in counts or not sum(counts):
        return ""
    return f"{sum(counts):,} of the rows read"
