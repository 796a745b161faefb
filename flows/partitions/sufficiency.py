"""Ends an audit after its first stage where no group has people enough for a verdict, or memory or disk will not do."""

from collections.abc import Sequence

from flows.concurrency.disk import check_disk
from flows.concurrency.memory import check_memory
from schemas.artifact import Partition
from schemas.audit.spec import AuditSpec
from schemas.tables.applications import APPLICATIONS, MEMBERSHIPS
from tasks.lake.store import Lake
from tasks.metrics.sufficiency import check
from tasks.plan import Plan, held

_STAGE = "ingest"
"""Stage after which decisions and groups are known."""
_MOST_ROWS = 200_000
"""Of a table that is counted here: counting a larger one takes long, and it seldom has too few of everybody."""


def check_evidence(lake: Lake, spec: AuditSpec, done: Sequence[Partition]) -> None:
    """Check the people of every group, right after the stage that tells them; at any other moment do nothing.

    Args:
        lake: of the audit.
        spec: of the audit.
        done: partitions so far, in order.

    Raises:
        TooLittleEvidenceError: no verdict can come out.
        IntegrityError: a table is not the one that was written.
    """
    if done and done[-1].stage == _STAGE and done[-1].table(APPLICATIONS.name).rows <= _MOST_ROWS:
        applications, memberships = (lake.read(done[-1].table(each.name)) for each in (APPLICATIONS, MEMBERSHIPS))
        check(applications, memberships, spec)


def check_ended(lake: Lake, planned: Plan, ended: Partition, *, jobs: int = 1, force: bool = False) -> None:
    """Check evidence, memory and disk, right after the stage that counts people and rows; else do nothing.

    Args:
        lake: of the audit.
        planned: the audit.
        ended: partition of the stage that has just ended.
        jobs: stages at a time.
        force: whether it goes on where memory or disk will not suffice, with a warning.

    Raises:
        TooLittleEvidenceError: no verdict can come out.
        InfrastructureError: what is left will not fit into memory, or on the disk.
    """
    check_evidence(lake, planned.spec, [ended])
    if ended.stage == _STAGE:
        done = held(lake, planned.steps)
        check_memory(lake, planned, done, jobs=jobs, force=force)
        check_disk(lake, planned, done, force=force)
