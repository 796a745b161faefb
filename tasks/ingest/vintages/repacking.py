"""Rewrites a vintage of version 1, one file of rows in no order, into version 2, files by state sorted by lender.

The rows are the same, and so is what an audit knows the vintage by. Until the new record has its name, readers see
version 1; a process that is killed leaves a draft, or files that no record names, and the next one removes them.
"""

import os
import shutil
from pathlib import Path, PurePosixPath

from schemas.artifact import Partition
from schemas.errors import IntegrityError
from schemas.vintages import Vintage
from tasks.ingest.hmda.conversion import APPLICATIONS_FILE
from tasks.ingest.hmda.identity import RECORD, digest_of_rows
from tasks.ingest.vintages.drafts import drafting, recorded, sort_draft
from tasks.ingest.vintages.records import PARTITION, partition_of, read, rows_of
from tasks.lake.store import Lake


def repack(lake: Lake, vintage: Vintage) -> Vintage | None:
    """Rewrite a vintage; None where it is of version 2, and nothing has to be done.

    Raises:
        IntegrityError: its files are not the ones that were written, so that nobody knows what would be sorted.
        InfrastructureError: memory or disk is not enough; version 1 stays.
    """
    name = f"vintage-{vintage.sha256[:12]}"
    with lake.lock(name):
        record = f"{vintage.folder}/{PARTITION}"
        held = read(lake, record)  # another process may have been here before
        if held.version == 1:
            rows = rows_of(lake, held)
            _require_written(rows, held)
            with drafting(lake, name) as draft:
                made = _drafted(lake, draft, held, rows)
                partition = recorded(draft, lake.storage.home_beside(held.folder), made)
                lake.storage.supersede(draft, partition, held.folder)
        _clear(lake, record)
        return read(lake, record) if held.version == 1 else None


def _require_written(rows: Path, held: Vintage) -> None:
    """Rows that somebody exchanged together with their record would get a record that says they are as delivered."""
    if held.rows_sha256 not in ("", digest_of_rows(rows)):
        raise IntegrityError(f"the rows of {held} are not those that were converted; add the delivered file again")


def _drafted(lake: Lake, draft: Path, held: Vintage, rows: Path) -> Vintage:
    """Everything of a vintage but its rows as it is, and these sorted."""
    kept = partition_of(lake, f"{held.folder}/{PARTITION}")
    for path, digest in _digests(kept).items():
        name = PurePosixPath(path).name
        file = lake.storage.checked(path, digest) if name not in (APPLICATIONS_FILE, RECORD) else None
        if file is not None:
            _link(file, draft / name)
    return held.model_copy(update={"rows_sha256": sort_draft(lake, draft, rows), "version": 2})


def _digests(kept: Partition) -> dict[str, str]:
    return {table.path: table.sha256 for table in kept.tables} | kept.files


def _link(file: Path, name: Path) -> None:
    """A second name for a file; a copy where the file system has none."""
    try:
        os.link(file, name)
    except OSError:
        shutil.copyfile(file, name)


def _clear(lake: Lake, record: str) -> None:
    """Remove the files of a vintage's folder that its record does not name: those of version 1, or of a killed one."""
    named = {record, *_digests(partition_of(lake, record))}
    for path in lake.storage.below(str(PurePosixPath(record).parent)):
        if path not in named:
            lake.storage.discard(path)
