"""Verify a run: its manifest, every file of the lake that it names, and the exported report, against their sha256."""

from typing import Any

from flows.record import read_manifest, reports
from schemas.artifact import Partition
from schemas.errors import IntegrityError
from tasks._store import Lake, open_lake


def verify_run(root: str, run: str) -> dict[str, Any]:
    """Check a run's files; returns the counts.

    Raises:
        SpecError: the lake has no such run.
        IntegrityError: files are missing or altered; all of them are named.
    """
    lake = open_lake(root)
    manifest = read_manifest(lake, run)
    partitions = [Partition.model_validate(entry) for entry in manifest["partitions"]]
    wanted = {a.path: a.sha256 for p in partitions for a in p.tables}
    wanted |= {path: digest for p in partitions for path, digest in p.files.items()}
    problems = [problem for path, digest in sorted(wanted.items()) if (problem := _problem(lake, path, digest))]
    exported = reports(lake)
    for name, digest in manifest["exported"].items():
        if not exported.intact(f"{run}/{name}", digest):
            where = exported.where(f"{run}/{name}")
            problems.append(f"{where} is missing or is not the file that was written; run the audit again")
    files = len(wanted) + len(manifest["exported"]) + 1
    if problems:
        head = f"run {run}: {len(problems)} of {files} files are not as they were written:"
        raise IntegrityError("\n".join([head, *problems]))
    return {"run": run, "files": files, "partitions": len(partitions), "altered": 0}


def _problem(lake: Lake, path: str, digest: str) -> str | None:
    try:
        lake.require(path, digest)
    except IntegrityError as error:
        return str(error)
    return None
