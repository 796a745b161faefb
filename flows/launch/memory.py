"""Refuses beforehand what will not fit into the memory that an audit may take (EVENHAND_MEMORY).

The forecast is ``flows.partitions.forecast``. Where nothing is known of a stage nothing is refused.
"""

import logging
from collections.abc import Sequence

from flows.partitions.forecast import Forecast, Need, need_of
from flows.runs.index import runs_of
from flows.supervision.memory import NAME, allowed_mb
from schemas.artifact import Partition
from schemas.errors import EvenhandError, InfrastructureError
from tasks.lake.store import Lake
from tasks.plan import Plan

log = logging.getLogger("evenhand")


def check_memory(lake: Lake, planned: Plan, done: Sequence[Partition], *, force: bool) -> None:
    """Refuse an audit of which a stage that is left would not fit.

    Args:
        lake: of the audit; its earlier runs tell what stages took.
        planned: the audit.
        done: partitions of its first steps that the lake holds.
        force: whether it goes on all the same, with a warning.

    Raises:
        InfrastructureError: the forecast of a stage is above what the audit may take, or EVENHAND_MEMORY is no size.
    """
    allowed = allowed_mb()
    try:
        runs = runs_of(lake, planned.spec.name)
    except EvenhandError:  # a manifest that was altered is told by who reads it for its sake
        return
    need = need_of(planned, planned.steps[len(done) :], runs, done[0].tables[0].rows if done else None)
    if need is not None and need.mb > allowed:
        _refuse(_said(need, allowed, _changes(planned)), force=force)


def check_years(left: Sequence[Forecast], workers: int, *, force: bool) -> None:
    """Refuse a back-fill whose largest years at the same time would not fit.

    Args:
        left: years of which something is to be computed.
        workers: years at a time.
        force: whether it goes on all the same, with a warning.

    Raises:
        InfrastructureError: the forecast is above what the back-fill may take, or EVENHAND_MEMORY is no size.
    """
    allowed = allowed_mb()
    known = sorted(((year.need, year.year) for year in left if year.need), key=lambda each: -each[0].mb)[:workers]
    total = sum(need.mb for need, _ in known)
    if total > allowed:
        need, year = known[0]
        at_once = f" ({len(known)} years at a time take {_gb(total)})" * (len(known) > 1)
        changes = ("fewer --workers",) * (len(known) > 1) + ("fewer rows by source.keep", f"more by {NAME}")
        _refuse(f"{year}: {_said(need, allowed, changes)}{at_once}", force=force)


def _refuse(why: str, *, force: bool) -> None:
    if not force:
        raise InfrastructureError(why)
    log.warning("%s; it goes on, as --force asks", why)


def _said(need: Need, allowed: float, changes: Sequence[str]) -> str:
    given = f"stage {need.stage} will need about {_gb(need.mb)} for {need.rows:,} rows"
    return f"{given}, and the audit may take {_gb(allowed)}; {', or '.join(changes)}; --force goes on"


def _changes(planned: Plan) -> tuple[str, ...]:
    sample = "" if planned.spec.source.keep else "fewer rows by source.keep"
    return tuple(each for each in (sample or "a narrower source.keep", f"more by {NAME}") if each)


def _gb(mb: float) -> str:
    return f"{mb / 1000:.1f} GB"
