"""What partitions will need beside what workers may take, before the first of them runs.

The forecast is that of ``evenhand plan``. On this machine the largest partitions at a time share EVENHAND_MEMORY. On
Dask a partition above the limit of a worker is for workers with the resource ``large``.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from flows.partitions.lenders.expected_cost import past_runs
from flows.partitions.lenders.listing import Listed
from flows.partitions.lenders.year_plan import forecasts
from flows.partitions.runners.asked import Asked
from flows.partitions.runners.task_runners import at_a_time
from flows.runs.index import runs_of
from schemas.audit.spec import AuditSpec
from schemas.errors import EvenhandError, InfrastructureError
from tasks.lake.store import Lake
from tasks.pipeline.lineage.memory import NAME, allowed_mb
from tasks.pipeline.specs import validated

if TYPE_CHECKING:
    from flows.partitions.runners.dask_workers import Capacity  # imports Dask

log = logging.getLogger("evenhand")


class Expected(NamedTuple):
    """Memory that a partition will need."""

    named: str
    """Year and value."""
    mb: float
    usable: int
    measured_here: bool
    """Whether a run of this lake tells, and not a table of another machine."""

    def words(self) -> str:
        """The partition and its figure."""
        return f"{self.named} will need about {_gb(self.mb)} for {self.usable:,} usable rows"


def fitted(asked: Sequence[Asked], settings: Mapping[str, Any]) -> list[Asked]:
    """The partitions, those marked ``large`` that an ordinary Dask worker cannot take.

    Args:
        asked: partitions of one audit.
        settings: of the runner, as ``RunnerSettings`` dumps it.

    Raises:
        InfrastructureError: the memory does not suffice, and none of them is forced.
    """
    expected = _expected(asked)
    force = any(one.force for one in asked)
    if settings.get("address") is None:
        check_together(list(expected.values()), at_a_time(settings), force=force)
        return list(asked)
    from flows.partitions.runners.dask_workers import capacities

    address = str(settings["address"])
    large = for_large(list(expected.values()), capacities(address), address, force=force)
    told = {key for key, each in expected.items() if each.named in large}
    return [replace(one, large=(one.year, one.value) in told) for one in asked]


def check_together(expected: Sequence[Expected], workers: int, *, force: bool) -> None:
    """Refuse partitions of which the largest, as many as run at a time, do not fit; by a table's figure only warn.

    Raises:
        InfrastructureError: they do not fit by what runs of this lake took, or EVENHAND_MEMORY is no size.
    """
    most = sorted(expected, key=lambda each: -each.mb)[:workers]
    total, allowed = sum(each.mb for each in most), allowed_mb()
    if total <= allowed:
        return
    at_once = f" ({len(most)} partitions at a time take {_gb(total)})" * (len(most) > 1)
    fewer = "fewer --workers, or " * (len(most) > 1)
    why = (
        f"{most[0].words()}{at_once}, and the back-fill may take {_gb(allowed)}; {fewer}without the largest by "
        f"by.values, or fewer rows by source.keep, or more by {NAME}"
    )
    if not most[0].measured_here:
        log.warning("%s; it goes on, since the figure is of a table: the lake has no run of this audit yet", why)
    else:
        _refuse(why, force=force)


def for_large(expected: Sequence[Expected], workers: "Sequence[Capacity]", address: str, *, force: bool) -> set[str]:
    """Names of the partitions that are for workers with the resource ``large``.

    Raises:
        InfrastructureError: there are some, and no such worker.
    """
    free = [each.worker for each in workers if math.isinf(each.mb)]
    if free:
        log.warning("the Dask worker %s has no memory limit: start workers with --memory-limit", free[0])
    usual = [each for each in workers if not each.large] or workers
    least = min(usual, key=lambda each: each.mb, default=None)
    above = sorted((each for each in expected if least and each.mb > least.mb), key=lambda each: -each.mb)
    if not above or least is None:
        return set()
    most = max((each.mb for each in workers if each.large), default=0.0)
    if not most:
        start = (
            f"dask worker {address} --nthreads 1 --memory-limit {math.ceil(above[0].mb / 1000)}GB --resources large=1"
        )
        beside = f"and the Dask worker {least.worker} may take {_gb(least.mb)}"
        _refuse(f"{above[0].words()}, {beside}: start a larger one with `{start}`", force=force)
        return set()
    if above[0].mb > most:
        log.warning("%s, and no Dask worker with the resource large may take more than %s", above[0].words(), _gb(most))
    return {each.named for each in above}


def _expected(asked: Sequence[Asked]) -> dict[tuple[int, str], Expected]:
    """What is forecast, by year and value; nothing where runs of the lake cannot be read: who needs them tells."""
    spec, lake = validated(AuditSpec, asked[0].spec), Lake(asked[0].lake)
    try:
        past = past_runs(lake, runs_of(lake, spec.name))
    except EvenhandError:
        return {}
    found = {}
    for year, of in groupby(sorted(asked, key=lambda one: one.year), key=lambda one: one.year):
        listed = [Listed(**one.listed) for one in of if one.listed]
        for each, cost in forecasts(spec, year, listed, lake, past):
            words = f"{year} {each.value}", cost.peak_mb, each.usable, cost.measured_here
            found[year, each.value] = Expected(*words)
    return found


def _refuse(why: str, *, force: bool) -> None:
    if not force:
        raise InfrastructureError(f"{why}; --force goes on")
    log.warning("%s; it goes on, as --force asks", why)


def _gb(mb: float) -> str:
    return f"{mb / 1000:.1f} GB"
