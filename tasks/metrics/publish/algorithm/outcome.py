"""What the pass is asked, and what it answers: the fate of every number.

Scope: types. The decisions are made in ``suppression``.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from tasks.metrics.publish.algorithm.audit.auditor import Interval
from tasks.metrics.publish.algorithm.losses import Losses
from tasks.metrics.publish.algorithm.populations import ALL, Count, People, Population, Published
from tasks.metrics.publish.algorithm.profiles import Policy


class Fate(StrEnum):
    """What happens to a number."""

    SHOWN = "shown"
    ROUNDED = "rounded"
    RANGE = "range"
    WITHHELD_SMALL = "withheld_small"
    WITHHELD_WITH = "withheld_with"
    WITHHELD_UNAUDITED = "withheld_unaudited"
    """With its whole attribute: to audit all that is linked with it would take too long."""


@dataclass(frozen=True, eq=False)
class Request:
    """What is to be published, and what else a reader has."""

    people: People
    policy: Policy
    counts: Sequence[Count]
    """Counts to be published; n of each of their populations goes with them, a zero too."""
    losses: Losses
    """What populations are worth."""
    adverse: Collection[str] = frozenset({"denied"})
    """Events that harm whom they happen to."""
    beside: Sequence[Published] = ()
    """What earlier runs have published."""
    protect: Sequence[Count] = ()
    """Further counts to protect where they are small, such as those that earlier runs withheld."""
    exact: bool = False
    """Whether the intervals of the outcome are sought to their ends; otherwise as far as the pass had to."""

    @property
    def every(self) -> list[Count]:
        """Every count that is published, protected, or told by earlier runs."""
        return [*self.counts, *self.protect, *(c for each in self.beside for c in (each.count, *each.more))]

    def narrowed(self, attributes: Collection[str]) -> "Request":
        """The same about everybody and some attributes alone."""
        beside = [each for each in self.beside if _of([each.count], attributes)]
        counts, protect = _of(self.counts, attributes), _of(self.protect, attributes)
        return replace(self, counts=counts, beside=beside, protect=protect)


@dataclass(frozen=True)
class Entry:
    """One (population, event) as it is published."""

    count: Count
    fate: Fate
    number: int | None
    """The count as printed; None where it is withheld or a range stands in its place."""
    text: str
    """The range in words, else empty."""


def _of(counts: Sequence[Count], attributes: Collection[str]) -> list[Count]:
    return [each for each in counts if each.population.group == ALL or each.population.attribute in attributes]


class Merged(NamedTuple):
    """Withheld groups that are shown as one."""

    populations: tuple[Population, ...]
    numbers: Mapping[str, int]
    """Count as printed, by event; the empty event is n."""
    base: int
    """What these counts are rounded to."""
    published: tuple[Published, ...]
    """What a reader learns from them."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """Fate of every number, and what a reader can tell of those that are not shown."""

    entries: tuple[Entry, ...]
    merged: tuple[Merged, ...]
    bases: Mapping[Count, int]
    """What each count of a shown population is rounded to."""
    intervals: tuple[Interval, ...]
    """What can be told of the n of each withheld population, and of each other protected count: at least this wide."""
    closed: tuple[Interval, ...]
    """Protected counts that stay told whatever this run withholds: earlier runs tell them, or nobody else can occur."""
    beside: int
    """Protected counts that would be told beside earlier runs, had this run not withheld more."""
    warnings: tuple[Population, ...]
    """Populations with a verdict that are withheld although they are large enough."""
    published: tuple[Published, ...]
    """What a reader learns of each count: later runs take it as what this run has published."""

    @property
    def fates(self) -> dict[Count, Fate]:
        """Fate of each count."""
        return {entry.count: entry.fate for entry in self.entries}
