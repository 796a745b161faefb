"""Drafts of vintages: the sorted rows, the lenders and the records, before they get their place in the lake."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq

from schemas.artifact import Artifact, Partition
from schemas.errors import InfrastructureError
from schemas.vintages import Vintage
from tasks.ingest.hmda.conversion import APPLICATIONS_FILE, REFUSALS_FILE
from tasks.ingest.hmda.identity import RECORD, digest_of_files, once
from tasks.ingest.hmda.sorted_rows import LENDERS_FILE, SORTED
from tasks.ingest.vintages.lenders import write_lenders
from tasks.ingest.vintages.records import PARTITION
from tasks.ingest.vintages.sorting import sort_rows
from tasks.lake.local_directory import clear, flush, write_flushed
from tasks.lake.store import Lake

_TABLES = {"refusals": REFUSALS_FILE, "lenders": LENDERS_FILE}
"""Tables that lie directly in the folder of a vintage."""
_TIMES_ROWS = 12
"""Disk that a sort needs, in sizes of the file of rows: what is put aside of them, and the sorted files."""


@contextmanager
def drafting(lake: Lake, name: str) -> Iterator[Path]:
    """An empty folder beside the lake's other drafts, which is gone afterwards.

    Raises:
        SpecError: the folder is a link, or lies behind one.
        InfrastructureError: the disk is full or fails.
    """
    draft = lake.storage.local / "tmp" / name
    try:
        clear(lake.storage.local, draft)
        draft.mkdir(parents=True)
        yield draft
    except OSError as error:
        why = "is full; free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else f"fails ({error})"
        raise InfrastructureError(f"the disk of the lake {lake.location} {why}, and do this again") from error
    finally:
        clear(lake.storage.local, draft)


def sort_draft(lake: Lake, draft: Path, rows: Path) -> str:
    """Sort rows into a draft of a lake, with the lenders beside them; returns the digest of the sorted files.

    Raises:
        SuiteError: other rows were written than are there.
        InfrastructureError: memory or disk is not enough.
    """
    lake.require_space(_TIMES_ROWS * rows.stat().st_size, "sorting the rows")
    files = sort_rows(rows, draft)
    write_lenders(draft / SORTED, draft)
    return digest_of_files({name.removeprefix(f"{SORTED}/"): once(draft / name) for name in files})


def recorded(draft: Path, home: str, vintage: Vintage) -> Partition:
    """Write the records of a draft that is otherwise complete, and wait until all of it is on disk.

    Args:
        draft: The folder.
        home: Where its files are to lie in the lake.
        vintage: What it is.
    """
    (draft / APPLICATIONS_FILE).unlink(missing_ok=True)  # what was sorted
    write_flushed(draft / RECORD, vintage.model_dump_json(indent=1).encode())
    digests = {p.relative_to(draft).as_posix(): once(p) for p in sorted(draft.rglob("*")) if p.is_file()}
    named = {name: table for table, name in _TABLES.items()}
    named |= {name: "applications" for name in digests if name.startswith(f"{SORTED}/")}
    tables = tuple(
        Artifact(table=table, path=f"{home}/{name}", sha256=digests.pop(name), rows=_rows(draft / name))
        for name, table in named.items()
    )
    files = {f"{home}/{name}": digest for name, digest in digests.items()}
    record = Partition(stage="vintages", key=vintage.sha256[:12], tables=tables, files=files)
    write_flushed(draft / PARTITION, record.model_dump_json(indent=1).encode())
    for path in (*draft.rglob("*"), draft):
        flush(path)
    return record


def _rows(file: Path) -> int:
    return int(pq.read_metadata(file).num_rows)
