"""What is lost when a further population is withheld: the order in which they are given up.

Source: rule 6 of the disclosure pass; decision 0034 for the three steps that it does not name.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

from tasks.metrics.publish.algorithm.populations import ALL, People, Population


class Loss(IntEnum):
    """Steps of loss, the least first."""

    PART = 1
    """A part of a group, or a population that only curves are about."""
    REPEAT = 2
    """A population of an attribute over a column of an earlier attribute, crossed attributes included."""
    MERGE = 3
    """A group below ``minimum_n`` beside the withheld one: both are shown as one group where that tells nothing."""
    FEW = 4
    """Another population below ``minimum_n``."""
    ROUND = 5
    """All counts of a place are rounded to the next coarser base. It is tried before each of the steps below."""
    LARGE = 6
    """A larger population without a verdict of its own."""
    EVERYBODY = 7
    """Everybody."""
    VERDICT = 8
    """A group with a verdict: with a warning."""


@dataclass(frozen=True, eq=False)
class Losses:
    """What populations are worth."""

    people: People
    judged: Collection[Population] = field(default_factory=frozenset)
    """Populations with a verdict."""
    curves: Collection[Population] = field(default_factory=frozenset)
    """Populations that only curves are about."""
    minimum_n: int = 30
    """Groups below this have no verdict."""

    def of(self, population: Population, n: int, beside: Population | None = None) -> Loss:
        """Loss by withholding a population of ``n`` people, in order to protect ``beside``."""
        if population.part or population in self.curves:
            return Loss.PART
        if population.group == ALL:
            return Loss.EVERYBODY
        if population.attribute in self.repeating:
            return Loss.REPEAT
        if population in self.judged:
            return Loss.VERDICT
        if n >= self.minimum_n:
            return Loss.LARGE
        return Loss.MERGE if beside is not None and _alike(population, beside) else Loss.FEW

    @cached_property
    def repeating(self) -> frozenset[str]:
        """Attributes over a column of an earlier one."""
        out, seen = set(), set[str]()
        for attribute in self.people.attributes:
            if seen & set(attribute.columns):
                out.add(attribute.name)
            seen |= set(attribute.columns)
        return frozenset(out)


def _alike(one: Population, other: Population) -> bool:
    """Whether two populations are groups of the same attribute in the same place."""
    return (one.attribute, one.place) == (other.attribute, other.place) and one.group != other.group
