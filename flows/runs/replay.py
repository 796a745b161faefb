"""Replays a run: recomputes it from its manifest in a separate lake, and compares all tables.

Differences of source, code and libraries are reported first. Equal inputs must give equal tables, byte for byte.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from flows.runs.given import where_it_lies
from flows.runs.index import began_at, read_manifest, spec_of
from schemas.artifact import Partition
from schemas.audit.spec import AuditSpec
from schemas.errors import IntegrityError, SpecError
from tasks.ingest.registry import digest_of_part
from tasks.lake.store import Lake, open_lake
from tasks.pipeline.digests import versions
from tasks.pipeline.registry import validated
from tasks.plan import Plan, plan, walk

_RECORDS_OF_COST = ("lineage.json",)
"""They say when a run was computed and how long it took, which no other run repeats."""
_OTHER_VERSION = "install the version that wrote it, which its manifest names, to replay it"


def replay_run(root: Path | str, run: str) -> list[dict[str, Any]]:
    """Recompute a run; one row for every step: whether its tables and files are as they were.

    Raises:
        SpecError: the lake has no such run, or it is of another version.
        InfrastructureError: its source is not there.
        IntegrityError: the source is not the one that the run read.
    """
    lake = open_lake(root)
    manifest, planned = planned_again(lake, run)
    before = [Partition.model_validate(entry) for entry in manifest["partitions"]]
    if [p.stage for p in before] != [step.stage.name for step in planned.steps]:
        raise SpecError(f"run {run} went through other stages than this version has; {_OTHER_VERSION}")
    with tempfile.TemporaryDirectory(prefix="replay-", dir=lake.storage.local / "tmp") as scratch:
        again = Lake(Path(scratch))
        for artifact in (artifact for step in planned.steps for artifact in step.artifacts):
            again.write_file(artifact.path, lake.check(artifact.path, artifact.sha256).read_bytes())
        after = walk(
            planned.steps,
            lambda step, artifacts: step.stage.run(again, artifacts, step.settings, step.modules),
        )
    now = versions()
    other = [name for name, version in manifest["versions"].items() if now.get(name) != version]
    code = ["the code of evenhand"] if planned.code != manifest["code"] else []
    cause = ", ".join([*code, *other])
    rows = []
    for step, old, new in zip(planned.steps, before, after, strict=True):
        old_digests, new_digests = _digests(old), _digests(new)
        names = sorted(old_digests.keys() | new_digests.keys())
        changed = [name for name in names if old_digests.get(name) != new_digests.get(name)]
        row = {"step": step.name, "compared": len(names), "equal": not changed, "changed": ", ".join(changed)}
        rows.append({**row, "input_changed": cause})
    return rows


def planned_again(lake: Lake, run: str) -> tuple[dict[str, Any], Plan]:
    """The manifest of a run, and the steps that this version would take to it.

    Raises:
        SpecError: the lake has no such run, or it is of another version.
        InfrastructureError: its source is not there.
        IntegrityError: the source is not the one that the run read.
    """
    manifest = read_manifest(lake, run)
    planned = plan(where_it_lies(lake, run, spec_of_run(manifest, run)), began_at(manifest))
    source = planned.spec.source
    now = planned.source_sha256 if source.part is None else digest_of_part(source)  # the spec itself names the digest
    if now != manifest["source_sha256"]:
        raise IntegrityError(
            f"the source of run {run} has changed since (sha256 {now[:12] or 'of no row'}, then "
            f"{manifest['source_sha256'][:12]}); bring back the file that it read"
        )
    return manifest, planned


def spec_of_run(manifest: Mapping[str, Any], run: str) -> AuditSpec:
    """The spec of a run.

    Raises:
        SpecError: it is of another version.
    """
    try:
        return validated(AuditSpec, spec_of(manifest))
    except ValidationError as error:
        raise SpecError(f"the spec of run {run} is not one of this version; {_OTHER_VERSION}") from error


def _digests(partition: Partition) -> dict[str, str]:
    """Name of each table and file of a partition -> its digest."""
    named = {artifact.table: artifact.sha256 for artifact in partition.tables}
    named |= {partition.within(path): digest for path, digest in partition.files.items()}
    return {name: digest for name, digest in named.items() if name not in _RECORDS_OF_COST}
