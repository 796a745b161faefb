"""Secondary disclosure control: withholds or rounds more, until no protected count follows from what is published.

Greedy. For a count that the auditor calls closed, a linear programme finds the published counts that have to give way
at least loss. They go, and the next count is looked at. Afterwards each of them is put back, the dearest first, where
the auditor still calls all counts open. Source: rules 6 and 7 of the disclosure pass; decision 0034.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tasks.metrics.publish.algorithm.audit.auditor import Interval
from tasks.metrics.publish.algorithm.audit.cells import cells_of
from tasks.metrics.publish.algorithm.audit.programme import SpentError
from tasks.metrics.publish.algorithm.ledger import Ledger
from tasks.metrics.publish.algorithm.losses import Loss
from tasks.metrics.publish.algorithm.outcome import Entry, Fate, Merged, Outcome, Request
from tasks.metrics.publish.algorithm.populations import ALL, Count, Place, Population, Published
from tasks.metrics.publish.algorithm.primary import Target, subjects_of, targets_of, withheld
from tasks.metrics.publish.algorithm.profiles import learned, ranged, rounded, small
from tasks.numerics.arrays import Floats, Longs


class Sacrifice(NamedTuple):
    """What it takes that nothing, or less, is told of one sum: populations withheld, or places rounded."""

    loss: Loss
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


def suppress(request: Request) -> Outcome:
    """Decide what is published, so that no small count is told. ValueError where ``beside`` contradicts the people."""
    tried: list[tuple[Sequence[Count], Sequence[Published]]] = []
    for ceiling in CEILINGS:
        kept = _audited(request, ceiling)
        if (kept.counts, kept.beside) not in tried:
            tried.append((kept.counts, kept.beside))
            outcome = _suppressed(request, kept, last=not ceiling)
            if outcome is not None:
                return outcome
    raise AssertionError("everybody alone is always audited")


def _audited(request: Request, ceiling: float) -> Request:
    """Everybody, and as many attributes, in their order, as leave no more cells than a ceiling.

    What earlier runs tell of the other attributes is left out with them.
    """
    if ceiling == np.inf:
        return request
    names = set[str]()
    for attribute in request.people.attributes if ceiling else ():
        more = names | {attribute.name}
        if cells_of(request.people, request.narrowed(more).every).size <= ceiling:
            names = more
    return request.narrowed(names)


def _suppressed(request: Request, audited: Request, last: bool) -> Outcome | None:
    """The outcome where all counts but those audited are withheld; None where that takes too long or tells one.

    The ``last`` takes what it takes, and withholds everything where that tells one.
    """
    ledger, kept = Ledger(audited), audited.counts
    ledger.auditor.allow(np.inf if last else PROTECT)
    told = 0
    try:
        closed = protect(ledger)
        if audited.beside:
            ledger.fixed.append(ledger.limits(audited.beside))
            told = len(list(_told(ledger, closed)))
            closed = protect(ledger)
    except SpentError:
        return None
    ledger.auditor.allow(np.inf if last else EFFORT)
    restore(ledger, closed)
    merged = merge(ledger, closed)
    unsaid = _unsaid(ledger, request, kept)
    if unsaid is None and not last:
        return None
    if unsaid is None:
        ledger.withheld.update(ledger.subjects)
        merged, unsaid = [], {}
    return _beside(_outcome(ledger, merged, closed, told), request, kept, unsaid)


def _unsaid(ledger: Ledger, request: Request, kept: Sequence[Count]) -> dict[Count, Interval] | None:
    """What can be told of the counts that are withheld unaudited; None where that is too much of one of them."""
    gone = subjects_of(request.people, request.policy, _left(request, kept), request.adverse)
    bounds, out = ledger.bounds(), dict[Count, Interval]()
    for target in (target for subject in gone.values() for target in targets_of(request.policy, subject)):
        try:
            found = ledger.auditor.unsaid(target.count, *bounds)
        except (KeyError, SpentError):
            return None
        if found.width < target.wanted:
            return None
        out[target.count] = found
    return out


def _left(request: Request, kept: Sequence[Count]) -> list[Count]:
    shown = set(kept)
    return [each for each in request.counts if each not in shown]


def _beside(outcome: Outcome, request: Request, kept: Sequence[Count], unsaid: dict[Count, Interval]) -> Outcome:
    """An outcome together with the counts that are withheld unaudited."""
    gone = subjects_of(request.people, request.policy, _left(request, kept), request.adverse)
    counts = [count for subject in gone.values() for count in subject.counts if not count.rest]
    entries = [Entry(each, Fate.WITHHELD_UNAUDITED, None, "") for each in counts]
    return replace(
        outcome, entries=(*outcome.entries, *entries), intervals=(*outcome.intervals, *unsaid.values()),
        published=(*outcome.published, *(withheld(each) for each in gone.values())),
    )  # fmt: skip


def protect(ledger: Ledger) -> list[Target]:
    """Give up what closes the targets; the targets that stay closed all the same.

    All are looked at again until nothing more is given up: a coarser base can tell what a finer one left open.
    """
    if not ledger.targets:
        return []
    ledger.auditor.explore(_rows(ledger, ledger.targets), *ledger.bounds())
    closed: list[Target] = []
    changed = True
    while changed:
        changed = False
        for each in [each for each in ledger.targets if each not in closed]:
            changed |= _opened(ledger, each, closed)
    return closed


def _opened(ledger: Ledger, target: Target, closed: list[Target]) -> bool:
    """Give up what closes a target, and say whether that took anything; it is ``closed`` where nothing helps."""
    changed, row = False, ledger.auditor.rows[target.count]
    while not ledger.auditor.open(row, target.wanted, *(bounds := ledger.bounds())):
        sacrifices = _cheapest(ledger, target, *bounds)
        if not sacrifices:
            closed.append(target)
            break
        changed = True
        for each in sacrifices:
            ledger.withheld.update(each.populations)
            for place, base in each.bases:
                ledger.coarsen(place, base)
    return changed


def _cheapest(ledger: Ledger, target: Target, low: Floats, high: Floats) -> list[Sacrifice]:
    """What is best given up for a target; nothing where nothing helps.

    Where the linear programme already finds the count open, and only whole people close it, the cheapest count beside.
    """
    row, auditor = ledger.auditor.rows[target.count], ledger.auditor
    options: dict[int, Sacrifice | None] = {one: _sacrifice(ledger, one, target) for one in range(low.size)}
    costs = np.array([np.inf if each is None else each.cost for each in options.values()])
    rows = auditor.cheapest(row, target.wanted, low, high, costs)
    if rows is None:
        return []
    chosen = [options[int(one)] for one in rows]
    if not chosen:
        near = [options[int(one)] for one in auditor.neighbours(row, low, high)]
        chosen = [min((each for each in near if each is not None), default=None)]
    return [each for each in chosen if each is not None]


def _sacrifice(ledger: Ledger, row: int, target: Target) -> Sacrifice | None:
    """What it takes that no population tells anything of a row."""
    showing = ledger.showing(row)
    if not showing:
        return None
    beside = target.count.population
    loss = max(ledger.request.losses.of(each, ledger.subjects[each].n, beside) for each in showing)
    people = sum(ledger.subjects[each].n for each in showing)
    coarser = {place: base for place in {each.place for each in showing} if (base := ledger.coarser(place))}
    if loss > Loss.ROUND and coarser:
        return Sacrifice(Loss.ROUND, people == 0, people, (), tuple(sorted(coarser.items())))
    return Sacrifice(loss, people == 0, people, tuple(sorted(showing)), ())


def restore(ledger: Ledger, closed: Sequence[Target]) -> None:
    """Put back what was given up for nothing, the dearest first; then the exact counts of places."""
    gone = [each for each in ledger.withheld if not ledger.subjects[each].small]
    losses = {each: ledger.request.losses.of(each, ledger.subjects[each].n) for each in gone}
    for each in sorted(gone, key=lambda p: (-losses[p], -ledger.subjects[p].n, p)):
        if ledger.auditor.effort > EFFORT:
            return
        ledger.withheld.remove(each)
        if _tells(ledger, closed):
            ledger.withheld.add(each)
    for key in sorted(ledger.bases, key=lambda each: (not each[1], each)):  # events first: shares are made of few
        if ledger.auditor.effort <= EFFORT:
            _sharpen(ledger, key, closed)


def _sharpen(ledger: Ledger, key: tuple[Place, str], closed: Sequence[Target]) -> None:
    """Round n, or the events, of a place no more than it takes."""
    chosen = ledger.bases[key]
    for base in ledger.request.policy.bases:
        ledger.bases[key] = base
        if base == chosen or not _tells(ledger, closed):
            return


def merge(ledger: Ledger, closed: Sequence[Target]) -> list[Merged]:
    """Show the withheld groups of an attribute as one group, wherever that tells nothing."""
    together: dict[Population, list[Population]] = {}
    for each in sorted(ledger.withheld):
        if not each.part and each.group != ALL and ledger.subjects[each].n:
            together.setdefault(replace(each, group=ALL), []).append(each)
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


def _merged(ledger: Ledger, groups: Sequence[Population]) -> Merged | None:
    """Groups as one; None where they are few. Events of which a range would be printed are left out."""
    policy, subjects = ledger.request.policy, [ledger.subjects[each] for each in groups]
    sizes = {"": sum(each.n for each in subjects)}
    if small(policy, sizes[""]):
        return None
    for event in sorted(set.intersection(*(set(each.events) for each in subjects))):
        having = sum(each.events[event] for each in subjects)
        if ranged(policy, sizes[""], having, event in ledger.request.adverse) is None:
            sizes[event] = having
    base = max(ledger.base(groups[0], event) for event in sizes)
    published = []
    for event, size in sizes.items():
        first, *more = (Count(each, event) for each in groups)
        span = learned(policy, size, base, not event or policy.events_too)
        published.append(Published(first, *span, tuple(more)))
    numbers = {event: rounded(policy, size, base) for event, size in sizes.items()}
    return Merged(tuple(groups), numbers, base, tuple(published))


def _tells(ledger: Ledger, closed: Sequence[Target]) -> bool:
    """Whether a target is told by what is published now, other than those that nothing can open.

    That target is asked about first the next time, since it is likely to be told again.
    """
    try:
        told = next(_told(ledger, closed), None)
    except SpentError:
        return True
    if told is not None:
        ledger.targets.remove(told)
        ledger.targets.insert(0, told)
    return told is not None


def _told(ledger: Ledger, closed: Sequence[Target]) -> Iterator[Target]:
    """Targets that are told by what is published now, other than those that nothing can open."""
    low, high = ledger.bounds()
    auditor = ledger.auditor
    for each in ledger.targets:
        if each not in closed and not auditor.open(auditor.rows[each.count], each.wanted, low, high):
            yield each


def _rows(ledger: Ledger, targets: Sequence[Target]) -> Longs:
    return np.array([ledger.auditor.rows[each.count] for each in targets], dtype=np.int64)


def _interval(ledger: Ledger, count: Count, low: Floats, high: Floats) -> Interval:
    """What can be told of a count, to its ends while work is left for it."""
    try:
        return ledger.auditor.interval(count, low, high, ledger.request.exact)
    except SpentError:
        return ledger.auditor.interval(count, low, high, exact=False)


def _outcome(ledger: Ledger, merged: Sequence[Merged], closed: Sequence[Target], told: int) -> Outcome:
    low, high = ledger.bounds()
    gone = [each for each in ledger.subjects if each in ledger.withheld]
    asked = dict.fromkeys([*(Count(each) for each in gone), *(each.count for each in ledger.targets)])
    intervals = {each: _interval(ledger, each, low, high) for each in asked}
    entries = tuple(ledger.entries())
    shown = [each.count for each in entries if each.count.population not in ledger.withheld]
    return Outcome(
        entries=entries,
        merged=tuple(merged),
        bases={each: ledger.base(*each[:2]) for each in shown},
        intervals=tuple(intervals.values()),
        closed=tuple(intervals[each.count] for each in closed),
        beside=told,
        warnings=tuple(p for p in gone if p in ledger.request.losses.judged and not ledger.subjects[p].small),
        published=(*ledger.published(), *(each for group in merged for each in group.published)),
    )
