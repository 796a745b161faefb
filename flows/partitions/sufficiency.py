"""Ends an audit after its first stage where no group has the people that a verdict needs."""

from collections.abc import Sequence

from schemas.artifact import Partition
from schemas.audit.spec import AuditSpec
from schemas.tables.applications import APPLICATIONS, MEMBERSHIPS
from tasks.lake.store import Lake
from tasks.metrics.sufficiency import check

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
