"""How the partitions of a year stand."""

from dataclasses import dataclass
from typing import Final

FEW: Final = 11
"""Rows without a partition are counted from here on: the smallest count of the strictest disclosure profile."""


@dataclass(frozen=True)
class Census:
    """How many partitions a year has, by how they stand; None where the year's data are not at hand."""

    done: int
    too_few: int | None = None
    """Listed, and never audited: too few rows, one decision only, or no groups to compare."""
    failed: int | None = None
    not_begun: int | None = None
    without_value: int | None = None
    """Rows of the year that belong to no partition."""
    stale: int = 0
    """Of those done: partitions whose rows have changed since their run."""
    restricted: bool = False
    """Whether the spec names some partitions alone, so that there are others."""

    @property
    def is_known(self) -> bool:
        """Whether the year's data were at hand to count partitions without a run."""
        return self.too_few is not None

    @property
    def is_complete(self) -> bool:
        """Whether every row of the year is known to be in a partition with a run."""
        others = self.too_few or self.failed or self.not_begun or self.without_value or self.restricted
        return self.is_known and not others

    @property
    def words(self) -> str:
        """All counts in a sentence."""
        if not self.is_known:
            return f"{self.done} have a run; how many have none is not known here, as the year's data are not at hand."
        rest = f"{self.failed} failed, {self.not_begun} not begun"
        n = self.without_value or 0
        outside = f" {n:,} rows belong to none." if n >= FEW else " A few rows belong to none." if n else ""
        stale = (
            f" {self.stale} of the runs are of rows that have changed since; audit them again." if self.stale else ""
        )
        return f"{self.done} have a run, {self.too_few} have too few people, {rest}.{outside}{stale}"
