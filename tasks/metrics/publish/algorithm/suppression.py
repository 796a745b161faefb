"""Secondary disclosure control, and the ledger of what is published."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tasks.metrics.publish.algorithm import primary
from tasks.metrics.publish.algorithm.audit import Auditor, Interval, SpentError, cells_of
from tasks.metrics.publish.algorithm.populations import ALL, Count, Place, Population, Published, rests
from tasks.metrics.publish.algorithm.profiles import learned, ranged, rounded, small
from tasks.numerics.arrays import Floats, Longs

# --------------------------------------------------------------------------------------------------------------------
# The ledger: how much of each population is published, the bounds that follow, and the counts to protect.
#
# Scope: bookkeeping. What is given up is chosen in ``suppression``.


class Limits(NamedTuple):
    """Bounds of some rows of the auditor, ``(k,)`` each."""

    rows: Longs
    low: Floats
    high: Floats


class Ledger:
    """What is published so far, and what a reader learns from it."""

    def __init__(self, request: primary.Request) -> None:
        self.request = request
        people, policy = request.people, request.policy
        self.subjects = primary.subjects_of(people, policy, request.counts, request.adverse)
        # those who are of no group, or of no part, with the events that are printed of the others
        remainders = [
            Count(rest, event)
            for population, subject in self.subjects.items()
            for rest in rests([population])
            for event in ("", *subject.events)
        ]
        unprinted = primary.subjects_of(people, policy, remainders, ())
        hidden = [subject for subject in unprinted.values() if subject.small]
        every = [count for subject in (*self.subjects.values(), *hidden) for count in subject.counts]
        every += [count for statement in request.beside for count in (statement.count, *statement.other_counts)] + list(
            request.protect
        )
        counts = list(dict.fromkeys(every))
        self.auditor = Auditor(cells_of(people, counts), counts)
        self.withheld = {population for population, subject in self.subjects.items() if subject.small}
        self.bases: dict[tuple[Place, str], int] = {}
        """What n (the empty event) and events are rounded to, in places where more is asked for than the profile."""
        self.implied: set[tuple[Population, str]] = set()
        """Counts that follow from others as closely as the profile prints them: a coarser base would hide nothing."""
        self._limits: dict[tuple[Population, frozenset[tuple[str, int]] | None], Limits] = {}
        self.fixed: list[Limits] = []
        """What is published beside the populations: by earlier runs, and of merged groups."""
        candidates = [
            target for subject in [*self.subjects.values(), *hidden] for target in primary.targets_of(policy, subject)
        ]
        sizes = {count: self.auditor.truth[self.auditor.rows[count]] for count in request.protect}
        candidates += [
            primary.Target(count, policy.wanted) for count, size in sizes.items() if 0 < size < policy.smallest
        ]
        # Sums that the profile shows as numerators of large populations, however small: they are not protected.
        numerators = {
            self.auditor.rows[count]
            for subject in self.subjects.values()
            if not subject.small and not policy.events_too
            for count in subject.counts
            if count.event and count.event not in subject.ranges
        }
        out: dict[int, primary.Target] = {}
        for target in candidates:
            row = self.auditor.rows[target.count]
            if row not in numerators and (row not in out or out[row].least_width < target.least_width):
                out[row] = target
        self.targets = list(out.values())

    def base(self, population: Population, event: str = "") -> int:
        """What n of a population, or those with an event, are rounded to, were it shown.

        The same people in two places have one number: two roundings of one count would narrow it.
        """
        if (population, event) in self.implied:
            return self.request.policy.round_to
        places = self._places.get((population, event), (population.place,))
        return max(self.bases.get((place, event), self.request.policy.round_to) for place in places)

    @cached_property
    def _places(self) -> Mapping[tuple[Population, str], Sequence[Place]]:
        """Places in which a group has as many people, or as many with an event; alone where it has none."""
        alike: dict[tuple[object, ...], list[Place]] = {}
        out: dict[tuple[Population, str], list[Place]] = {}
        for population, subject in self.subjects.items():
            for event, size in (("", subject.n), *subject.events.items()):
                whose = Count(population, event).happening if event else None
                key = (
                    population.attribute,
                    population.group,
                    population.part,
                    whose,
                    size,
                    population.place if size == 0 else None,
                )
                out[population, event] = alike.setdefault(key, [])
                out[population, event].append(population.place)
        return out

    def coarser(self, place: Place) -> int | None:
        """The next coarser base of a place; None where there is none."""
        bases = self.request.policy.bases
        following = bases.index(self.bases.get((place, ""), bases[0])) + 1
        return bases[following] if following < len(bases) else None

    def coarsen(self, place: Place, base: int) -> None:
        """Round all counts of a place to a base."""
        subjects = (subject for population, subject in self.subjects.items() if population.place == place)
        events = {event for subject in subjects for event in subject.events}
        self.bases.update({(place, event): base for event in ("", *events)})

    def bounds(self) -> tuple[Floats, Floats]:
        """Bounds of the auditor's rows that a reader knows, infinite where there are none."""
        low = np.full(self.auditor.truth.size, -np.inf)
        high = np.full(self.auditor.truth.size, np.inf)
        parts = []
        for population in self.subjects:
            key = population, None if population in self.withheld else frozenset(self._rounding(population).items())
            if key not in self._limits:
                self._limits[key] = self.limits(self._published(population))
            parts.append(self._limits[key])
        parts += self.fixed
        rows = np.concatenate([part.rows for part in parts])
        np.maximum.at(low, rows, np.concatenate([part.low for part in parts]))
        np.minimum.at(high, rows, np.concatenate([part.high for part in parts]))
        return low, high

    def limits(self, published: Sequence[Published]) -> Limits:
        """Published counts as bounds of the auditor's rows."""
        sums = (
            self.auditor.added([statement.count, *statement.other_counts])
            if statement.other_counts
            else self.auditor.rows[statement.count]
            for statement in published
        )
        rows = np.array(list(sums), dtype=np.int64)
        low = np.array([statement.low for statement in published], dtype=np.float64)
        return Limits(rows, low, np.array([statement.high for statement in published], dtype=np.float64))

    def showing(self, row: int) -> list[Population]:
        """Published populations with numbers that contain information on a row."""
        return [population for population in self._named.get(row, []) if population not in self.withheld]

    @cached_property
    def _named(self) -> dict[int, list[Population]]:
        """Populations by the rows that they disclose when they are published."""
        out: dict[int, list[Population]] = {}
        for population, subject in self.subjects.items():
            counts = [] if subject.small else primary.told(self.request.policy, subject)
            for row in dict.fromkeys(self.auditor.rows[statement.count] for statement in counts):
                out.setdefault(row, []).append(population)
        return out

    def published(self) -> Iterator[Published]:
        """What a reader learns of every population."""
        for population in self.subjects:
            yield from self._published(population)

    def entries(self) -> Iterator[primary.Entry]:
        """Every number as it is published."""
        for population, subject in self.subjects.items():
            for count in (count for count in subject.counts if not count.rest):
                if population in self.withheld:
                    yield primary.Entry(
                        count, primary.Fate.WITHHELD_SMALL if subject.small else primary.Fate.WITHHELD_WITH, None, ""
                    )
                elif count.event in subject.ranges:
                    yield primary.Entry(count, primary.Fate.RANGE, None, subject.ranges[count.event].text)
                else:
                    base = self.base(population, count.event)
                    number = rounded(self.request.policy, subject.size(count), base)
                    yield primary.Entry(count, primary.Fate.ROUNDED if base > 1 else primary.Fate.SHOWN, number, "")

    def _published(self, population: Population) -> list[Published]:
        subject = self.subjects[population]
        if population in self.withheld:
            return [primary.withheld(subject)]
        return list(primary.told(self.request.policy, subject, self._rounding(population)))

    def _rounding(self, population: Population) -> dict[str, int]:
        return {event: self.base(population, event) for event in ("", *self.subjects[population].events)}


# --------------------------------------------------------------------------------------------------------------------
# Secondary disclosure control: withholds or rounds more, until no protected count follows from what is published.
#
# Greedy. For a count that the auditor calls closed, a linear programme finds the published counts that have to give way
# at least loss. They go, and the next count is looked at. Afterwards each of them is put back, the dearest first, where
# the auditor still calls all counts open. Source: rules 6 and 7 of the disclosure pass; decision 0034.


class Sacrifice(NamedTuple):
    """The price of disclosing less of one sum: populations withheld, or places rounded."""

    loss: primary.Loss
    empty: bool
    people: int
    populations: tuple[Population, ...]
    bases: tuple[tuple[Place, int], ...]
    """What the counts of places are rounded to."""

    @property
    def cost(self) -> float:
        """Price for each person that a bound is missed by: the step of loss decides, then how many people."""
        return STEEP**self.loss * (2 if self.empty else 1 + self.people / (self.people + 1000))


EFFORT = 1_200_000
"""Work (half a minute) after which nothing more is put back or merged: less is shown, never more."""
PROTECT = 600_000
"""Work (a quarter of a minute) after which whole attributes are withheld, in place of what closes each count."""
CEILINGS = (np.inf, 1000, 200, 0)
"""Most cells that the attributes tell apart, one ceiling tried after another; 0 leaves everybody alone."""
STEEP = 6.0
"""A sum of this many counts is given up rather than one of the next step of loss."""


def suppress(request: primary.Request) -> primary.Outcome:
    """Decide what is published, so that no small count is disclosed.

    Raises:
        ValueError: ``beside`` contradicts the people.
    """
    tried: list[tuple[Sequence[Count], Sequence[Published]]] = []
    for ceiling in CEILINGS:
        audited = request
        if ceiling < np.inf:
            # Everybody, and as many attributes, in their order, as leave no more cells than the ceiling. What earlier
            # runs disclose of the other attributes is left out with them.
            names = set[str]()
            for attribute in request.people.attributes if ceiling else ():
                candidate_names = names | {attribute.name}
                if cells_of(request.people, request.narrowed(candidate_names).every).size <= ceiling:
                    names = candidate_names
            audited = request.narrowed(names)
        if (audited.counts, audited.beside) not in tried:
            tried.append((audited.counts, audited.beside))
            outcome = _suppressed(request, audited, last=not ceiling)
            if outcome is not None:
                return outcome
    raise AssertionError("everybody alone is always audited")


def _suppressed(request: primary.Request, audited: primary.Request, last: bool) -> primary.Outcome | None:
    """The outcome where all counts but those audited are withheld; None where that takes too long or discloses one.

    The ``last`` takes what it takes, and withholds everything where that discloses one.
    """
    ledger = Ledger(audited)
    ledger.auditor.allow(np.inf if last else PROTECT)
    disclosures = 0
    try:
        closed = protect(ledger)
        if audited.beside:
            ledger.fixed.append(ledger.limits(audited.beside))
            disclosures = len(list(_disclosed(ledger, closed)))
            closed = protect(ledger)
    except SpentError:
        return None
    ledger.auditor.allow(np.inf if last else EFFORT)
    restore(ledger, closed)
    merged = merge(ledger, closed)
    find_implied(ledger)
    audited_counts = set(audited.counts)
    unaudited = [count for count in request.counts if count not in audited_counts]
    gone = primary.subjects_of(request.people, request.policy, unaudited, request.adverse)
    targets = [target for subject in gone.values() for target in primary.targets_of(request.policy, subject)]
    unsaid = _unaudited_bounds(ledger, targets)
    if unsaid is None and not last:
        return None
    if unsaid is None:
        ledger.withheld.update(ledger.subjects)
        merged, unsaid = [], {}
    outcome = _outcome(ledger, merged, closed, disclosures)
    counts = [count for subject in gone.values() for count in subject.counts if not count.rest]
    entries = [primary.Entry(count, primary.Fate.WITHHELD_UNAUDITED, None, "") for count in counts]
    return replace(
        outcome, entries=(*outcome.entries, *entries), intervals=(*outcome.intervals, *unsaid.values()),
        published=(*outcome.published, *(primary.withheld(subject) for subject in gone.values())),
    )  # fmt: skip


def _unaudited_bounds(ledger: Ledger, targets: Sequence[primary.Target]) -> dict[Count, Interval] | None:
    """Bounds of the counts that are withheld unaudited; None where those of one count are too narrow."""
    bounds, out = ledger.bounds(), dict[Count, Interval]()
    for target in targets:
        try:
            interval = ledger.auditor.unsaid(target.count, *bounds)
        except (KeyError, SpentError):
            return None
        if interval.width < target.least_width:
            return None
        out[target.count] = interval
    return out


def protect(ledger: Ledger) -> list[primary.Target]:
    """Give up what closes the targets; the targets that stay closed all the same.

    All are looked at again until nothing more is given up: a coarser base can tell what a finer one left open.
    """
    if not ledger.targets:
        return []
    auditor = ledger.auditor
    auditor.explore(
        np.array([auditor.rows[target.count] for target in ledger.targets], dtype=np.int64), *ledger.bounds()
    )
    closed: list[primary.Target] = []
    changed = True
    while changed:
        changed = False
        for target in [candidate for candidate in ledger.targets if candidate not in closed]:
            while not auditor.open(auditor.rows[target.count], target.least_width, *(bounds := ledger.bounds())):
                sacrifices = _cheapest(ledger, target, *bounds)
                if not sacrifices:
                    closed.append(target)
                    break
                changed = True
                for sacrifice in sacrifices:
                    ledger.withheld.update(sacrifice.populations)
                    for place, base in sacrifice.bases:
                        ledger.coarsen(place, base)
    return closed


def _cheapest(ledger: Ledger, target: primary.Target, low: Floats, high: Floats) -> list[Sacrifice]:
    """What is best given up for a target; nothing where nothing helps.

    Where the linear programme already finds the count open, and only whole people close it, the cheapest count beside.
    """
    row, auditor = ledger.auditor.rows[target.count], ledger.auditor
    options: dict[int, Sacrifice | None] = {
        option_row: _sacrifice(ledger, option_row, target) for option_row in range(low.size)
    }
    costs = np.array([np.inf if option is None else option.cost for option in options.values()])
    rows = auditor.cheapest(row, target.least_width, low, high, costs)
    if rows is None:
        return []
    chosen = [options[int(option_row)] for option_row in rows]
    if not chosen:
        near = [options[int(option_row)] for option_row in auditor.neighbours(row, low, high)]
        chosen = [min((option for option in near if option is not None), default=None)]
    return [option for option in chosen if option is not None]


def _sacrifice(ledger: Ledger, row: int, target: primary.Target) -> Sacrifice | None:
    """The sacrifice after which no population discloses anything about a row."""
    showing = ledger.showing(row)
    if not showing:
        return None
    beside = target.count.population
    loss = max(ledger.request.losses.of(population, ledger.subjects[population].n, beside) for population in showing)
    people = sum(ledger.subjects[population].n for population in showing)
    coarser = {place: base for place in {population.place for population in showing} if (base := ledger.coarser(place))}
    if loss > primary.Loss.ROUND and coarser:
        return Sacrifice(primary.Loss.ROUND, people == 0, people, (), tuple(sorted(coarser.items())))
    return Sacrifice(loss, people == 0, people, tuple(sorted(showing)), ())


def restore(ledger: Ledger, closed: Sequence[primary.Target]) -> None:
    """Put back what was given up for nothing, the dearest first; then the exact counts of places."""
    gone = [population for population in ledger.withheld if not ledger.subjects[population].small]
    losses = {population: ledger.request.losses.of(population, ledger.subjects[population].n) for population in gone}
    for population in sorted(gone, key=lambda p: (-losses[p], -ledger.subjects[p].n, p)):
        if ledger.auditor.effort > EFFORT:
            return
        ledger.withheld.remove(population)
        if _tells(ledger, closed):
            ledger.withheld.add(population)
    for key in sorted(ledger.bases, key=lambda sized: (not sized[1], sized)):  # events first: shares are made of few
        if ledger.auditor.effort > EFFORT:
            return
        # round n, or the events, of a place no more than it takes
        chosen = ledger.bases[key]
        for base in ledger.request.policy.bases:
            ledger.bases[key] = base
            if base == chosen or not _tells(ledger, closed):
                break


def merge(ledger: Ledger, closed: Sequence[primary.Target]) -> list[primary.Merged]:
    """Publish the withheld groups of an attribute as one group, wherever that discloses nothing."""
    together: dict[Population, list[Population]] = {}
    for population in sorted(ledger.withheld):
        if not population.part and population.group != ALL and ledger.subjects[population].n:
            together.setdefault(replace(population, group=ALL), []).append(population)
    out = []
    for groups in together.values():
        tried = _merged(ledger, groups) if len(groups) > 1 and ledger.auditor.effort <= EFFORT else None
        if tried is None:
            continue
        ledger.fixed.append(ledger.limits(tried.published))
        if _tells(ledger, closed):
            ledger.fixed.pop()
        else:
            out.append(tried)
    return out


def _merged(ledger: Ledger, groups: Sequence[Population]) -> primary.Merged | None:
    """Groups as one; None where they are few. Events that would be printed as a range are left out."""
    policy, subjects = ledger.request.policy, [ledger.subjects[group] for group in groups]
    sizes = {"": sum(subject.n for subject in subjects)}
    if small(policy, sizes[""]):
        return None
    for event in sorted(set.intersection(*(set(subject.events) for subject in subjects))):
        having = sum(subject.events[event] for subject in subjects)
        if ranged(policy, sizes[""], having, event in ledger.request.adverse) is None:
            sizes[event] = having
    base = max(ledger.base(groups[0], event) for event in sizes)
    published = []
    for event, size in sizes.items():
        first, *other_counts = (Count(group, event) for group in groups)
        span = learned(policy, size, base, not event or policy.events_too)
        published.append(Published(first, *span, tuple(other_counts)))
    numbers = {event: rounded(policy, size, base) for event, size in sizes.items()}
    return primary.Merged(tuple(groups), numbers, base, tuple(published))


def find_implied(ledger: Ledger) -> None:
    """Find the coarsely rounded counts that follow from what is published: their rounding costs for nothing.

    To print them as the profile does tells nothing new.
    """
    policy, bounds = ledger.request.policy, ledger.bounds()
    for population, subject in ledger.subjects.items():
        if population in ledger.withheld:
            continue
        for event, size in (("", subject.n), *subject.events.items()):
            if event in subject.ranges or ledger.base(population, event) == policy.round_to:
                continue
            ends = learned(policy, size, policy.round_to, not event or policy.events_too)
            try:
                follows = ledger.auditor.lies_in(ledger.auditor.rows[Count(population, event)], ends, *bounds)
            except SpentError:
                return
            if follows:
                ledger.implied.add((population, event))


def _tells(ledger: Ledger, closed: Sequence[primary.Target]) -> bool:
    """Whether the numbers published now disclose a target, other than those that nothing can open.

    That target is asked about first the next time, since it is likely to be told again.
    """
    try:
        disclosed = next(_disclosed(ledger, closed), None)
    except SpentError:
        return True
    if disclosed is not None:
        ledger.targets.remove(disclosed)
        ledger.targets.insert(0, disclosed)
    return disclosed is not None


def _disclosed(ledger: Ledger, closed: Sequence[primary.Target]) -> Iterator[primary.Target]:
    """Targets that the numbers published now disclose, other than those that nothing can open."""
    low, high = ledger.bounds()
    auditor = ledger.auditor
    for target in ledger.targets:
        if target not in closed and not auditor.open(auditor.rows[target.count], target.least_width, low, high):
            yield target


def _outcome(
    ledger: Ledger, merged: Sequence[primary.Merged], closed: Sequence[primary.Target], disclosures: int
) -> primary.Outcome:
    low, high = ledger.bounds()
    gone = [population for population in ledger.subjects if population in ledger.withheld]
    counts = dict.fromkeys([*(Count(population) for population in gone), *(target.count for target in ledger.targets)])
    intervals = {}
    for count in counts:
        try:
            intervals[count] = ledger.auditor.interval(count, low, high, ledger.request.exact)
        except SpentError:  # no work remains to find the ends
            intervals[count] = ledger.auditor.interval(count, low, high, exact=False)
    entries = tuple(ledger.entries())
    shown_counts = [entry.count for entry in entries if entry.count.population not in ledger.withheld]
    return primary.Outcome(
        entries=entries,
        merged=tuple(merged),
        bases={count: ledger.base(*count[:2]) for count in shown_counts},
        intervals=tuple(intervals.values()),
        closed=tuple(intervals[target.count] for target in closed),
        beside=disclosures,
        warnings=tuple(
            p for p in gone if p in ledger.request.losses.verdict_populations and not ledger.subjects[p].small
        ),
        published=(*ledger.published(), *(statement for group in merged for statement in group.published)),
    )
