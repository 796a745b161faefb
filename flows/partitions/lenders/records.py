"""All partitions of a year at once: which there are, as the last back-fill listed them, and the newest record of each.

One listing of the folder and one small file a partition are read, so that thousands take a second.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import PurePosixPath

from flows.partitions.attempts.reading import LISTING, as_it_stands, folder_of, read_record
from flows.partitions.attempts.record import Attempt
from flows.partitions.lenders.listing import Listed
from tasks.lake.store import Lake


def keep_listing(lake: Lake, audit: str, year: int, column: str, listed: Iterable[Listed]) -> None:
    """Write down the partitions of a year, which ``status`` reads: those that nobody began with are known by it."""
    path = f"{folder_of(audit, year)}/{LISTING}"
    content = json.dumps({"column": column, "partitions": [asdict(each) for each in listed]}).encode()
    if lake.storage.read(path) != content:
        lake.write_file(path, content, f"tmp/{path.replace('/', '-')}")


def kept_listing(lake: Lake, audit: str, year: int) -> tuple[str, tuple[Listed, ...]] | None:
    """Column and partitions of a year, as the last back-fill listed them; None of a year without partitions."""
    content = lake.storage.read(f"{folder_of(audit, year)}/{LISTING}")
    if content is None:
        return None
    said = json.loads(content)
    return said["column"], tuple(Listed(**each) for each in said["partitions"])


def years_by_partition(lake: Lake) -> list[tuple[str, int]]:
    """Audits and years that were back-filled by partitions, in order."""
    found = (path.split("/") for path in lake.storage.glob(f"backfills/*/*/{LISTING}"))
    return sorted((audit, int(year)) for _, audit, year, _ in found)


def newest(lake: Lake, audit: str, year: int) -> dict[str, Attempt]:
    """Value -> the last attempt of the partition, interrupted if its process is gone.

    Raises:
        IntegrityError: a record is not as a back-fill of this version writes them.
    """
    last: dict[str, str] = {}
    for path in lake.storage.glob(f"{folder_of(audit, year)}/*/*.json"):  # sorted, so that the last one stays
        last[str(PurePosixPath(path).parent)] = path
    records = (read_record(lake, path) for path in last.values())
    return {each.value: as_it_stands(lake, each) for each in records if each is not None}


def before(lake: Lake, attempt: Attempt) -> Attempt | None:
    """The attempt of the same partition before one."""
    folder = folder_of(attempt.audit, attempt.year, attempt.value)
    return read_record(lake, f"{folder}/{attempt.attempt - 1:04d}.json")


def seconds_left(done: Sequence[Attempt], rows: Sequence[int], workers: int) -> float | None:
    """Seconds that partitions of so many rows take, each as the audited one nearest in rows; None where none is.

    Args:
        done: last attempts; those that computed something tell.
        rows: of each partition that is left.
        workers: partitions at a time.
    """
    known = sorted((a.rows, a.seconds) for a in done if a.run and a.computed and a.rows is not None and a.seconds)
    if not known or not rows:
        return None if rows else 0.0
    each = [min(known, key=lambda pair: abs(pair[0] - n))[1] for n in rows]
    return max(sum(each) / max(workers, 1), max(each))
