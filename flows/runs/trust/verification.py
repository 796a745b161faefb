"""Verifies a run: its folders hold every file that its manifest names, unaltered by sha256, and no other file.

The manifest is held against the log of the lake, and against its signature where it has one. Scope: the run's
partitions, its report and its manifest. Other files of the lake belong to no run; the whole chain of the log is
``flows.runs.trust.chain``.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from flows.runs.index import mark_of
from flows.runs.manifest import made_later, read_manifest, record_of, report_named
from flows.runs.summary import NAMED, summary_path
from flows.runs.trust import certificate
from flows.runs.trust.signed import NOTHING_ASKED, Demand, Signed
from schemas.artifact import Partition
from schemas.errors import IntegrityError
from tasks.lake import log
from tasks.lake.store import Lake, open_lake


def verify_run(
    root: str, run: str, demand: Demand = NOTHING_ASKED, logged: Sequence[log.Entry] | None = None
) -> dict[str, Any]:
    """Check a run's files, its entry in the log and its signature; returns the counts, and the signature in words.

    ``by_content`` counts the records of partitions that the manifest of an earlier version holds without their sha256.

    Args:
        root: of the lake.
        run: its id.
        demand: what is asked of its signature.
        logged: all entries of the log, where they were read for several runs; they are read if None.

    Raises:
        SpecError: the lake has no such run, or a file of a key holds none.
        IntegrityError: files are missing, altered or not named by the manifest, or the manifest is not the one that
            was logged and signed; all of it is listed.
    """
    lake = open_lake(root)
    _require_manifest(lake, run)
    manifest = read_manifest(lake, run)
    partitions = [Partition.model_validate(entry) for entry in manifest["partitions"]]
    records = manifest.get("records", {})
    unsealed = [p for p in partitions if record_of(p) not in records]
    wanted = {a.path: a.sha256 for p in partitions for a in p.tables} | records
    wanted |= {path: digest for p in partitions for path, digest in p.files.items()}
    wanted |= {summary_path(run): manifest[NAMED]} if NAMED in manifest else {}
    problems = [problem for path, digest in sorted(wanted.items()) if (problem := _problem(lake, path, digest))]
    problems += [str(lake.altered(record_of(p))) for p in unsealed if not _says(lake, p)]
    problems += _altered_report(lake, run, manifest)
    problems += _rewritten(lake, run)
    problems += [
        f"{lake.storage.where(path)} is not named by the manifest; find out who put it there, and move it elsewhere"
        for path in _unnamed(lake, run, partitions, manifest)
    ]
    every = log.entries(lake) if logged is None else logged
    found = [entry for entry in every if entry.run == run]
    problems += certificate.problems(lake, run, manifest, found)
    signature = Signed.of(lake, run, demand, every)
    problems += signature.problems(manifest, found)
    files = len(wanted) + len(unsealed) + len(manifest["exported"]) + 1
    if problems:
        head = f"run {run}: its files are not as they were written; {len(problems)} problems in {files} files:"
        raise IntegrityError("\n".join([head, *problems]))
    return {
        "run": run,
        "files": files,
        "partitions": len(partitions),
        "altered": 0,
        "by_content": len(unsealed),
        "signed_by": signature.made.signature.key if signature.made else None,
        "signature": signature.words(found),
    }


def verify_every_run(root: str, demand: Demand = NOTHING_ASKED) -> Iterator[tuple[str, str, bool]]:
    """Check every run of a lake: its id, what was found in words, and whether it is whole.

    Raises:
        SpecError: there is no lake, or a file of a key holds none.
    """
    lake = open_lake(root)
    logged = log.entries(lake)
    for run in sorted(path.split("/")[1] for path in lake.storage.glob("runs/*/manifest.json")):
        try:
            outcome = verify_run(root, run, demand, logged)
        except IntegrityError as error:
            yield run, str(error), False
        else:
            yield run, f"all {outcome['files']} files are as they were written; {outcome['signature']}", True


def _require_manifest(lake: Lake, run: str) -> None:
    """Raise if a run lost its manifest, as opposed to one that never existed."""
    named = run not in ("", "..") and PurePosixPath(run).name == run
    manifest = f"runs/{run}/manifest.json"
    if not named or lake.storage.exists(manifest):
        return
    if lake.storage.exists(f"runs/{run}") or lake.storage.exists(f"reports/{run}"):
        raise IntegrityError(
            f"{lake.storage.where(manifest)} is missing; restore it from a copy, or run that audit again to rewrite "
            "it. If `evenhand gc` was stopped while it removed this run, run it again"
        )


def _problem(lake: Lake, path: str, digest: str) -> str | None:
    try:
        lake.require(path, digest)
    except IntegrityError as error:
        return str(error)
    return None


def _rewritten(lake: Lake, run: str) -> Iterator[str]:
    """A manifest that says the same in other bytes, such as other blanks: its seal is of what it says."""
    path = f"runs/{run}/manifest.json"
    content = lake.storage.read(path) or b""
    if content != json.dumps(json.loads(content), indent=1).encode():
        yield f"{lake.storage.where(path)} says the same in other bytes than were written; run that audit again"


def _says(lake: Lake, partition: Partition) -> bool:
    """Whether the record of a partition in the lake agrees with the manifest."""
    try:
        return Partition.model_validate_json(lake.storage.read(record_of(partition)) or b"") == partition
    except ValueError:
        return False


def _altered_report(lake: Lake, run: str, manifest: Mapping[str, Any]) -> Iterator[str]:
    storage, folder = report_named(lake, run, manifest)
    for name, digest in manifest["exported"].items():
        if not storage.intact(f"{folder}/{name}", digest):
            where = storage.where(f"{folder}/{name}")
            yield f"{where} is missing or is not the file that was written; run the audit again"


def _unnamed(lake: Lake, run: str, partitions: list[Partition], manifest: Mapping[str, Any]) -> Iterator[str]:
    """Files in the run's folders that the manifest does not name.

    Four are no part of it: signature, number of the log's entry, mark of protection, and the list of later files.
    """
    known = {f"reports/{run}/{name}" for name in manifest["exported"]}
    known |= {f"runs/{run}/manifest.json", mark_of(run), made_later(run)}
    known |= {certificate.signature_path(run), certificate.logged_path(run)}
    known |= {summary_path(run)} if NAMED in manifest else set()
    for folder in (f"runs/{run}", f"reports/{run}"):
        yield from (path for path in lake.storage.below(folder) if path not in known)
    for partition in partitions:
        named = {a.path for a in partition.tables} | {*partition.files} | {record_of(partition)}
        yield from (path for path in _own(lake, partition) if path not in named)


def _own(lake: Lake, partition: Partition) -> Iterator[str]:
    """All files of a partition's folder but those of other writers.

    On an object store every writer has a folder of its own in there, and only the record says whose files count.
    """
    folder = PurePosixPath(record_of(partition)).parent
    home = PurePosixPath(partition.tables[0].path).parent
    for path in lake.storage.below(str(folder)):
        place = PurePosixPath(path)
        if home == folder or place.parent == folder or place.is_relative_to(home):
            yield path
