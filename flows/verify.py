"""Verify a run: every file that its manifest names, against its sha256."""

import json
from pathlib import Path
from typing import Any

from schemas.artifact import Partition
from schemas.errors import IntegrityError, SpecError, nearest
from tasks._store import Lake


def verify_run(root: Path, run: str) -> dict[str, Any]:
    """Check a run's files; returns the counts.

    Raises:
        SpecError: the lake has no such run.
        IntegrityError: files are missing or altered; all of them are named.
    """
    lake = Lake(root)
    known = sorted(path.parent.name for path in (lake.root / "runs").glob("*/manifest.json"))
    if run not in known:
        raise SpecError(f"the lake {lake.root} holds no run {run!r}; {nearest(run, known)}")
    try:
        manifest = json.loads((lake.root / "runs" / run / "manifest.json").read_text(encoding="utf-8"))
        partitions = [Partition.model_validate(entry) for entry in manifest["partitions"]]
    except (ValueError, KeyError) as error:
        raise IntegrityError(
            f"the manifest of {run} cannot be read: it has been altered; run the audit again"
        ) from error
    wanted = {a.path: a.sha256 for p in partitions for a in p.tables} | {
        k: v for p in partitions for k, v in p.files.items()
    }
    problems = []
    for path, digest in sorted(wanted.items()):
        try:
            lake.check(path, digest)
        except IntegrityError as error:
            problems.append(str(error))
    if problems:
        raise IntegrityError(
            f"run {run}: {len(problems)} of {len(wanted)} files are not as they were written:\n" + "\n".join(problems)
        )
    return {"run": run, "files": len(wanted), "partitions": len(partitions), "altered": 0}
