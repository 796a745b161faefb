"""Primary disclosure control: what each population's own size asks for, and which counts need protection.

Source: rules 3 and 4 of the disclosure pass; decision 0034.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tasks.metrics.publish.algorithm.populations import Count, People, Population, Published
from tasks.metrics.publish.algorithm.profiles import Policy, Range, learned, ranged, small


@dataclass(frozen=True)
class Target:
    """A count that a reader must not be able to tell."""

    count: Count
    wanted: int
    """Least width between the least and the largest value that a reader can tell."""


@dataclass(frozen=True)
class Subject:
    """One population with the true counts that are printed of it."""

    population: Population
    n: int
    events: Mapping[str, int]
    """True count of each event that is printed beside n."""
    ranges: Mapping[str, Range]
    """Events of which a range is printed, unless the population is withheld."""
    small: bool
    """Whether the population is withheld for its own size."""

    @property
    def counts(self) -> list[Count]:
        """n, and each event with its complement."""
        both = [Count(self.population, event, rest) for event in self.events for rest in (False, True)]
        return [Count(self.population), *both]

    def size(self, count: Count) -> int:
        """The true value of one of the counts."""
        if not count.event:
            return self.n
        return self.n - self.events[count.event] if count.rest else self.events[count.event]


def subjects_of(
    people: People, policy: Policy, counts: Sequence[Count], adverse: Collection[str]
) -> dict[Population, Subject]:
    """The populations of the counts; n of each is printed too. ``adverse`` names events that harm, such as denied."""
    events: dict[Population, dict[str, int]] = {}
    for count in counts:
        printed = events.setdefault(count.population, {})
        if count.event:
            printed[count.event] = people.size(Count(count.population, count.event))
    return {each: _subject(policy, each, people.size(Count(each)), events[each], adverse) for each in events}


def _subject(
    policy: Policy, population: Population, n: int, events: Mapping[str, int], adverse: Collection[str]
) -> Subject:
    ranges = {event: ranged(policy, n, having, event in adverse) for event, having in events.items()}
    told = {event: each for event, each in ranges.items() if each is not None}
    return Subject(population, n, events, told, small(policy, n))


def told(policy: Policy, subject: Subject, bases: Mapping[str, int] = MappingProxyType({})) -> Iterator[Published]:
    """What a reader learns of a population that is shown, n and events rounded to ``bases``, else the profile's."""
    people = Count(subject.population)
    yield Published(people, *learned(policy, subject.n, bases.get("", 0), never_small=policy.protects))
    for event, having in subject.events.items():
        if event in subject.ranges:
            each = subject.ranges[event]
            yield Published(Count(subject.population, event, each.rest), *each.span)
            if each.sizes is not None:
                yield Published(people, *each.sizes)
            continue
        span = learned(policy, having, bases.get(event, 0), policy.events_too)
        yield Published(Count(subject.population, event), *span)
        if policy.events_too:
            # a range would stand there if a few were without the event
            without = subject.n - having
            ends = (policy.smallest, np.inf) if without else (0, 0)
            yield Published(Count(subject.population, event, True), *ends)


def withheld(subject: Subject) -> Published:
    """What a reader learns of a population that is withheld: it has someone, since a zero would be shown."""
    return Published(Count(subject.population), float(min(subject.n, 1)), np.inf)


def targets_of(policy: Policy, subject: Subject) -> Iterator[Target]:
    """The counts of a population that need protection."""
    for count in subject.counts:
        if subject.small:
            if 0 < subject.size(count) < policy.smallest:
                yield Target(count, policy.wanted)
        elif count.event in subject.ranges:
            each = subject.ranges[count.event]
            if each.rest == count.rest:
                yield Target(count, each.wanted)
            elif policy.events_too and 0 < subject.size(count) < policy.smallest:
                yield Target(count, policy.wanted - 1)
