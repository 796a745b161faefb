"""The ledger: how much of each population is published, the bounds that follow, and the counts to protect.

Scope: bookkeeping. What is given up is chosen in ``suppression``.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tasks.metrics.publish.algorithm.audit.auditor import Auditor
from tasks.metrics.publish.algorithm.audit.cells import cells_of
from tasks.metrics.publish.algorithm.outcome import Entry, Fate, Request
from tasks.metrics.publish.algorithm.populations import Count, Place, Population, Published, rests
from tasks.metrics.publish.algorithm.primary import Subject, Target, subjects_of, targets_of, told, withheld
from tasks.metrics.publish.algorithm.profiles import rounded
from tasks.numerics.arrays import Floats, Longs


class Limits(NamedTuple):
    """Bounds of some rows of the auditor, ``(k,)`` each."""

    rows: Longs
    low: Floats
    high: Floats


class Ledger:
    """What is published so far, and what a reader learns from it."""

    def __init__(self, request: Request) -> None:
        self.request = request
        people, policy = request.people, request.policy
        self.subjects = subjects_of(people, policy, request.counts, request.adverse)
        unprinted = subjects_of(people, policy, list(_left_over(self.subjects)), ())
        hidden = [each for each in unprinted.values() if each.small]
        every = [count for each in (*self.subjects.values(), *hidden) for count in each.counts]
        every += [count for each in request.beside for count in (each.count, *each.more)] + list(request.protect)
        counts = list(dict.fromkeys(every))
        self.auditor = Auditor(cells_of(people, counts), counts)
        self.withheld = {each for each, subject in self.subjects.items() if subject.small}
        self.bases: dict[tuple[Place, str], int] = {}
        """What n (the empty event) and events are rounded to, in places where more is asked for than the profile."""
        self._limits: dict[tuple[Population, frozenset[tuple[str, int]] | None], Limits] = {}
        self.fixed: list[Limits] = []
        """What is published beside the populations: by earlier runs, and of merged groups."""
        self.targets = self._targets([*self.subjects.values(), *hidden])

    def base(self, population: Population, event: str = "") -> int:
        """What n of a population, or those with an event, are rounded to, were it shown.

        The same people in two places have one number: two roundings of one count would narrow it.
        """
        places = self._places.get((population, event), (population.place,))
        return max(self.bases.get((place, event), self.request.policy.round_to) for place in places)

    @cached_property
    def _places(self) -> Mapping[tuple[Population, str], Sequence[Place]]:
        """Places in which a group has as many people, or as many with an event; alone where it has none."""
        alike: dict[tuple[object, ...], list[Place]] = {}
        out: dict[tuple[Population, str], list[Place]] = {}
        for each, subject in self.subjects.items():
            for event, size in (("", subject.n), *subject.events.items()):
                whose = Count(each, event).happening if event else None
                key = (each.attribute, each.group, each.part, whose, size, each.place if size == 0 else None)
                out[each, event] = alike.setdefault(key, [])
                out[each, event].append(each.place)
        return out

    def coarser(self, place: Place) -> int | None:
        """The next coarser base of a place; None where there is none."""
        bases = self.request.policy.bases
        following = bases.index(self.bases.get((place, ""), bases[0])) + 1
        return bases[following] if following < len(bases) else None

    def coarsen(self, place: Place, base: int) -> None:
        """Round all counts of a place to a base."""
        self.bases.update({(place, event): base for event in ("", *self._events[place])})

    @cached_property
    def _events(self) -> dict[Place, set[str]]:
        """Events that are printed of each place."""
        out: dict[Place, set[str]] = {}
        for population, subject in self.subjects.items():
            out.setdefault(population.place, set()).update(subject.events)
        return out

    def bounds(self) -> tuple[Floats, Floats]:
        """Bounds of the auditor's rows that a reader knows, infinite where there are none."""
        low = np.full(self.auditor.truth.size, -np.inf)
        high = np.full(self.auditor.truth.size, np.inf)
        parts = [*(self._learned(each) for each in self.subjects), *self.fixed]
        rows = np.concatenate([part.rows for part in parts])
        np.maximum.at(low, rows, np.concatenate([part.low for part in parts]))
        np.minimum.at(high, rows, np.concatenate([part.high for part in parts]))
        return low, high

    def limits(self, published: Sequence[Published]) -> Limits:
        """Published counts as bounds of the auditor's rows."""
        rows = np.array([self._row(each) for each in published], dtype=np.int64)
        low = np.array([each.low for each in published], dtype=np.float64)
        return Limits(rows, low, np.array([each.high for each in published], dtype=np.float64))

    def _row(self, published: Published) -> int:
        if published.more:
            return self.auditor.added([published.count, *published.more])
        return self.auditor.rows[published.count]

    def showing(self, row: int) -> list[Population]:
        """Populations that are shown and whose numbers tell something of a row."""
        return [each for each in self._named.get(row, []) if each not in self.withheld]

    @cached_property
    def _named(self) -> dict[int, list[Population]]:
        """Populations by the rows that they tell of when they are shown."""
        out: dict[int, list[Population]] = {}
        for population, subject in self.subjects.items():
            counts = [] if subject.small else told(self.request.policy, subject)
            for row in dict.fromkeys(self.auditor.rows[each.count] for each in counts):
                out.setdefault(row, []).append(population)
        return out

    def published(self) -> Iterator[Published]:
        """What a reader learns of every population."""
        for each in self.subjects:
            yield from self._published(each)

    def entries(self) -> Iterator[Entry]:
        """Every number as it is published."""
        for population, subject in self.subjects.items():
            for count in (each for each in subject.counts if not each.rest):
                yield self._entry(count, subject, population)

    def _entry(self, count: Count, subject: Subject, population: Population) -> Entry:
        if population in self.withheld:
            return Entry(count, Fate.WITHHELD_SMALL if subject.small else Fate.WITHHELD_WITH, None, "")
        if count.event in subject.ranges:
            return Entry(count, Fate.RANGE, None, subject.ranges[count.event].text)
        base = self.base(population, count.event)
        number = rounded(self.request.policy, subject.size(count), base)
        return Entry(count, Fate.ROUNDED if base > 1 else Fate.SHOWN, number, "")

    def _published(self, population: Population) -> list[Published]:
        subject = self.subjects[population]
        if population in self.withheld:
            return [withheld(subject)]
        return list(told(self.request.policy, subject, self._rounding(population)))

    def _rounding(self, population: Population) -> dict[str, int]:
        return {event: self.base(population, event) for event in ("", *self.subjects[population].events)}

    def _learned(self, population: Population) -> Limits:
        key = population, None if population in self.withheld else frozenset(self._rounding(population).items())
        if key not in self._limits:
            self._limits[key] = self.limits(self._published(population))
        return self._limits[key]

    def _targets(self, subjects: Sequence[Subject]) -> list[Target]:
        """The counts to protect, one for each sum of cells, the widest wish each."""
        policy = self.request.policy
        wanted = [each for subject in subjects for each in targets_of(policy, subject)]
        sizes = {count: self.auditor.truth[self.auditor.rows[count]] for count in self.request.protect}
        wanted += [Target(count, policy.wanted) for count, size in sizes.items() if 0 < size < policy.smallest]
        numerators = set() if policy.events_too else self._numerators()
        out: dict[int, Target] = {}
        for each in wanted:
            row = self.auditor.rows[each.count]
            if row not in numerators and (row not in out or out[row].wanted < each.wanted):
                out[row] = each
        return list(out.values())

    def _numerators(self) -> set[int]:
        """Sums that the profile shows as numerators of large populations, however small: they are not protected."""
        shown = [each for each in self.subjects.values() if not each.small]
        counts = [c for each in shown for c in each.counts if c.event and c.event not in each.ranges]
        return {self.auditor.rows[count] for count in counts}


def _left_over(subjects: Mapping[Population, Subject]) -> Iterator[Count]:
    """Counts of those who are of no group, or of no part, with the events that are printed of the others."""
    for population, subject in subjects.items():
        for each in rests([population]):
            yield Count(each)
            yield from (Count(each, event) for event in subject.events)
