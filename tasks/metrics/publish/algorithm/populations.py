"""Populations: whom a published number is about, and what is known of each person.

A count is a population with or without an event (denied by the model, say). It is a sum of cells: ``audit.cells``.
Source: rule 2 of the disclosure pass, decision 0034.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from schemas.terms import EVERYBODY
from tasks.numerics.arrays import Bools, Longs

ALL = EVERYBODY
"""Group of everybody."""
REST = "(none of the groups)"
"""Group of those who are of no group of an attribute."""
REST_PART = -1
"""Part of those who are of no part of their group."""


class Base(StrEnum):
    """Which rows a population is taken from."""

    SOURCE = "source"
    """All records of the source."""
    USED = "used"
    """Records with every column that the model needs."""
    FACTUALS = "factuals"
    """Denied applicants that a method starts from."""
    CANDIDATES = "candidates"
    """Approved applicants that a method may point to."""
    IMAGINED = "imagined"
    """Applicants with a generated counterfactual."""
    IDENTIFIED = "identified"
    """Applicants about whom the generators agree."""
    REFUSED = "refused"
    """Records that were left out; the reason stands beside."""


class Place(NamedTuple):
    """Where a population is taken from: a base, as one decision maker has it, in one run."""

    base: Base
    decision_maker: str = ""
    reason: str = ""
    run: str = ""


@dataclass(frozen=True, order=True)
class Population:
    """Whom a number is about. All numbers about one population share one fate."""

    attribute: str
    group: str
    """A group of the attribute, ``ALL`` or ``REST``."""
    part: int = 0
    """Subgroup from 1 on; 0 is the whole group, ``REST_PART`` who is in no subgroup."""
    decision_maker: str = ""
    base: Base = Base.SOURCE
    reason: str = ""
    """Why the records were refused, for the base ``refused``."""
    run: str = ""
    """An earlier published run; empty for the run that is being published."""

    @property
    def place(self) -> Place:
        """Base, decision maker, reason and run."""
        return Place(self.base, self.decision_maker, self.reason, self.run)


class Count(NamedTuple):
    """A number of people: of a population, with an event, or (``rest``) without it."""

    population: Population
    event: str = ""
    """Empty: all people of the population."""
    rest: bool = False

    @property
    def happening(self) -> "Event":
        """The event, as the population's decision maker and run have it."""
        return Event(self.event, self.population.decision_maker, self.population.run)


class Event(NamedTuple):
    """What may hold of a person: being denied by a decision maker, say, as one run has it."""

    name: str
    decision_maker: str = ""
    run: str = ""


@dataclass(frozen=True)
class Published:
    """What a reader learns about a count: it lies from ``low`` to ``high``, both included."""

    count: Count
    low: float
    high: float
    more: tuple[Count, ...] = ()
    """Counts of other groups, of the same attribute, that are published with it as one sum."""


@dataclass(frozen=True, eq=False)
class Attribute:
    """A protected attribute: the columns that it is made of, and the group of each row."""

    name: str
    columns: tuple[str, ...]
    groups: tuple[str, ...]
    codes: Longs
    """``(rows,)``: index into ``groups``, -1 where a row is of none. A function of the columns."""


@dataclass(frozen=True, eq=False)
class People:
    """All people whom any published number counts, a row each.

    A row of weight 0 is a combination that might occur. Give one for each decision, of used and of refused applicants,
    that none of them got: else the auditor takes it for known that nobody can get it.
    """

    columns: Mapping[str, Longs]
    """Code of each row, ``(rows,)``, for each column of an attribute."""
    attributes: tuple[Attribute, ...]
    bases: Mapping[Place, Bools]
    """Rows in each place, ``(rows,)``."""
    events: Mapping[Event, Bools] = field(default_factory=dict)
    """Rows with an event, ``(rows,)``."""
    parts: Mapping[tuple[str, str], Longs] = field(default_factory=dict)
    """Part of each row, ``(rows,)``, from 1 on, 0 for none, by attribute and decision maker."""
    weights: Longs | None = None
    """People that each row stands for; one each where it is None."""

    def attribute(self, name: str) -> Attribute:
        """The attribute of that name; KeyError where there is none."""
        for each in self.attributes:
            if each.name == name:
                return each
        raise KeyError(f"no attribute {name!r}")

    def of(self, population: Population) -> Bools:
        """Which rows are of the population, ``(rows,)``."""
        return self.bases[population.place] & self.of_group(population)

    def of_group(self, population: Population) -> Bools:
        """Which rows are of the population's group and part, wherever they are, ``(rows,)``."""
        inside = np.ones_like(self.bases[population.place])
        if population.group != ALL:
            inside = self.attribute(population.attribute).codes == self.code(population)
        if population.part:
            parts = self.parts[population.attribute, population.decision_maker]
            inside = inside & (parts == max(population.part, 0))
        return inside

    def code(self, population: Population) -> int:
        """Index of the population's group; ValueError where the attribute has no such group."""
        return -1 if population.group == REST else self.attribute(population.attribute).groups.index(population.group)

    def having(self, count: Count) -> Bools:
        """Which rows a count counts, ``(rows,)``."""
        inside = self.of(count.population)
        if not count.event:
            return inside
        event = self.events[count.happening]
        return inside & (~event if count.rest else event)

    def size(self, count: Count) -> int:
        """The true number of people that a count counts."""
        having = self.having(count)
        return int(having.sum() if self.weights is None else self.weights[having].sum())


def populations_of(people: People) -> Iterator[Population]:
    """Everybody, each group and each part, of every attribute, in every place."""
    for attribute in people.attributes:
        for place in people.bases:
            whole = Population(attribute.name, ALL, 0, place.decision_maker, place.base, place.reason, place.run)
            yield whole
            parts = people.parts.get((attribute.name, place.decision_maker))
            for code, group in enumerate(attribute.groups):
                yield replace(whole, group=group)
                if parts is not None:
                    inside = people.bases[place] & (attribute.codes == code) & (parts > 0)
                    yield from (replace(whole, group=group, part=int(part)) for part in np.unique(parts[inside]))


def rests(populations: Iterable[Population]) -> list[Population]:
    """Who is left when groups are taken from everybody, and parts from a group: not printed, but easily computed."""
    out = set()
    for each in populations:
        if each.group not in (ALL, REST):
            out.add(replace(each, group=REST, part=0))
            if each.part > 0:
                out.add(replace(each, part=REST_PART))
    return sorted(out)
