"""Room on the disk of a lake: asked for before an audit begins, by what earlier runs wrote, and told where it runs out.

A stage writes what it wrote in the run of the same audit that is nearest in rows, in proportion to them; where nothing
is known of one, nothing is forecast. That a disk may hold less than a forecast says is seen when a stage writes.
"""

import errno
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from flows.concurrency.memory import refuse
from flows.runs.index import Run, runs_of
from schemas.artifact import Partition
from schemas.errors import EvenhandError, InfrastructureError
from tasks.lake.store import Lake
from tasks.plan import Plan, Step

SPARE_MB = 64.0
"""Left free whatever is written, as ``tasks.lake.store`` has it."""
_MB = 1e6
_FULL = (errno.ENOSPC, errno.EDQUOT)


def check_disk(
    lake: Lake, planned: Plan, done: Sequence[Partition], *, rows: int | None = None, force: bool = False
) -> None:
    """Refuse an audit that would not fit on the disk of its lake; a lake at a URI has none here.

    Args:
        lake: of the audit; its earlier runs tell what stages wrote.
        planned: the audit.
        done: partitions of its first steps that the lake holds.
        rows: of its source, as far as they are known before ingest has counted them.
        force: whether it goes on all the same, with a warning.

    Raises:
        InfrastructureError: the forecast is above what is left.
    """
    counted = done[0].tables[0].rows if done else rows
    if counted is None or not Path(lake.location).is_dir():
        return
    try:
        runs = runs_of(lake, planned.spec.name)
    except EvenhandError:  # a manifest that was altered is told by who reads it for its sake
        return
    donors = sorted((run for run in runs if run.rows), key=lambda run: abs(run.rows - counted))
    needed, room = 0.0, free_mb(lake) - SPARE_MB
    for step in planned.steps[len(done) :]:
        needed += _of_stage(lake, step, donors, counted)
        if needed > room:
            refuse(_words(lake, step.name, needed), force=force)
            return


def check_years_on_disk(lake: Lake, needed: Sequence[int | None], *, force: bool) -> None:
    """Refuse a back-fill whose years would not fit together.

    Args:
        lake: of the back-fill.
        needed: bytes of each year that is left; None where nothing is known.
        force: whether it goes on all the same, with a warning.

    Raises:
        InfrastructureError: the forecast is above what is left.
    """
    total = sum(each or 0 for each in needed) / _MB
    if Path(lake.location).is_dir() and total > free_mb(lake) - SPARE_MB:
        refuse(_words(lake, f"{len(needed)} years", total), force=force)


def free_mb(lake: Lake) -> float:
    """What is left on the disk where the lake keeps files on this machine."""
    return shutil.disk_usage(lake.storage.local).free / _MB


@contextmanager
def telling_full_disk(lake: Lake, stage: str) -> Iterator[None]:
    """Tell of a disk that fills while a stage writes, by the names of the lake and of the stage.

    Raises:
        InfrastructureError: the disk is full.
    """
    try:
        yield
    except (OSError, InfrastructureError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if not (isinstance(cause, OSError) and cause.errno in _FULL):
            raise
        raise InfrastructureError(
            f"{lake.location} has {free_mb(lake):,.0f} MB left and {stage} needs more; nothing of it was kept: free "
            "some (`evenhand gc`), or give a larger disk, and run again: finished stages are kept"
        ) from cause


def _of_stage(lake: Lake, step: Step, donors: Sequence[Run], rows: int) -> float:
    """MB that a stage writes; 0 where no run has it."""
    for run in donors:
        sizes = [_size(lake, partition) for partition in run.partitions if partition.stage == step.stage.name]
        if sizes:
            return max(sizes) / _MB * rows / run.rows
    return 0.0


def _size(lake: Lake, partition: Partition) -> int:
    files = [Path(lake.location, path) for path in (*(a.path for a in partition.tables), *partition.files)]
    return sum(file.stat().st_size for file in files if file.is_file())


def _words(lake: Lake, what: str, mb: float) -> str:
    return (
        f"{lake.location} has {free_mb(lake):,.0f} MB left and {what} needs about {mb + SPARE_MB:,.0f} MB; free some "
        "space (`evenhand gc --keep N`), or give a larger disk with --lake; --force goes on"
    )
