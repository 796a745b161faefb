"""One year, or one partition of it, that a back-fill has to audit."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from flows.partitions.attempts.reading import latest
from flows.partitions.attempts.record import Attempt, YearState
from tasks.lake.store import Lake


@dataclass(frozen=True)
class Asked:
    """One year to audit, or one partition of it."""

    spec: dict[str, Any]
    year: int
    lake: str
    force: bool
    jobs: int
    before: int = 0
    """Number of the last attempt before this back-fill."""
    listed: dict[str, Any] | None = None
    """The partition, as ``Listed``; None of a whole year."""
    conditions: str = ""
    large: bool = False
    """Whether it is for Dask workers with the resource ``large`` alone."""

    @property
    def value(self) -> str:
        """The partition; empty of a whole year."""
        return str(self.listed["value"]) if self.listed else ""

    def begun(self) -> bool:
        """Whether this back-fill has begun with it."""
        return attempts_before(self.spec["name"], self.year, self.lake, self.value) > self.before

    def ended(self) -> Attempt | None:
        """The record of this back-fill's attempt; None if none has ended."""
        last = latest(Lake(self.lake), self.spec["name"], self.year, self.value)
        return last if last and last.attempt > self.before and last.state is not YearState.INTERRUPTED else None

    def where(self) -> AbstractContextManager[Any]:
        """Within it the task is submitted to the workers that it is for; prefect-dask takes annotations along."""
        if not self.large:
            return nullcontext()
        import dask

        annotated: AbstractContextManager[Any] = dask.annotate(  # type: ignore[attr-defined]
            resources={"large": 1}
        )
        return annotated


def attempts_before(audit: str, year: int, lake: str, value: str = "") -> int:
    """Number of the last attempt at a year or a partition; 0 without one."""
    last = latest(Lake(lake), audit, year, value)
    return last.attempt if last else 0
