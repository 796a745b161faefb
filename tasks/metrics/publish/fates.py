"""What became of every population, looked up by what a table says of it.

A table names an attribute, a group and a decision maker, and gives a number of people. A number that is that of a
population of this group is printed as the population's is; one of a withheld population is not printed.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from schemas.tables.publication import PUBLICATION
from tasks.metrics.publish.algorithm import digits
from tasks.metrics.publish.algorithm.outcome import Entry, Fate, Outcome
from tasks.metrics.publish.algorithm.populations import ALL, Base, Count, People, Place, Population, Published
from tasks.metrics.publish.algorithm.profiles import Policy, Span, is_coarse, learned, rounded, small
from tasks.metrics.publish.people.crowd import DENIED, LENDER, Crowd, decided_place, whole_of

_NEAR = 1e-4
"""How near estimators that hold nothing constant come to the difference of two shares."""
GONE = (Fate.WITHHELD_SMALL, Fate.WITHHELD_WITH, Fate.WITHHELD_UNAUDITED)
UNTOLD = (*GONE, Fate.RANGE)


@dataclass(frozen=True, eq=False)
class Fates:
    """The answer of the disclosure pass."""

    crowd: Crowd
    people: People
    policy: Policy
    outcome: Outcome

    @cached_property
    def _entries(self) -> Mapping[Count, Entry]:
        return {entry.count: entry for entry in self.outcome.entries}

    def entry(self, population: Population, event: str = "") -> Entry:
        """What became of a count."""
        return self._entries[Count(population, event)]

    def number(self, population: Population, event: str = "") -> int | None:
        """A count as published; None where it is withheld or a range."""
        return self.entry(population, event).number

    def is_gone(self, attribute: str, group: str, maker: str = "") -> bool:
        """Whether a group is withheld as a whole: in the source, or among those used, by this or any decision maker."""
        return (attribute, group) in self._gone[maker]

    @cached_property
    def _gone(self) -> Mapping[str, set[tuple[str, str]]]:
        out: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for count, entry in self._entries.items():
            each = count.population
            if entry.fate in GONE and not each.reason and each.base is not Base.REFUSED:
                for maker in {"", each.decision_maker} if each.decision_maker else {"", *self.crowd.makers}:
                    out[maker].add((each.attribute, each.group))
        return out

    def is_ranged(self, attribute: str, group: str, maker: str = "") -> bool:
        """Whether a range stands for the denied of a group, by this or any decision maker: they are all or nearly all.

        What rests on these decisions is withheld with them: an effect, a ratio of 0, the number of the denied.
        """
        return (attribute, group) in self._ranged[maker]

    @cached_property
    def _ranged(self) -> Mapping[str, set[tuple[str, str]]]:
        out: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for count, entry in self._entries.items():
            each = count.population
            if entry.fate is Fate.RANGE and not each.reason and each.base is not Base.REFUSED:
                for maker in ("", each.decision_maker):
                    out[maker].add((each.attribute, each.group))
        return out

    def base(self, maker: str = "") -> int:
        """What n of a decision maker's populations is rounded to, the coarsest of all, and events with it."""
        whose = ("", maker) if maker else self._bases
        return max((self._bases[of] for of in whose if of in self._bases), default=self.policy.round_to)

    @cached_property
    def _bases(self) -> Mapping[str, int]:
        """The coarsest base by decision maker."""
        out: dict[str, int] = {}
        for count, base in self.outcome.bases.items():
            maker = count.population.decision_maker
            out[maker] = max(base, out.get(maker, base))
        return out

    def printed(self, attribute: str, group: str, maker: str, count: int) -> int | None:
        """A number of people of a group as published; None where it tells a withheld one, or is rounded to zero."""
        if not self.policy.protects or count == 0:
            return count
        if 0 < count < self.policy.smallest:
            return None
        alike = self._alike(attribute, group, maker, count)
        if any(entry.fate in UNTOLD for entry in alike):
            return None
        shown = [entry.number for entry in alike if entry.number is not None]
        return (shown[0] if shown else rounded(self.policy, count, self.base(maker))) or None

    def base_of(self, attribute: str, group: str, maker: str, count: int) -> int:
        """What a number of people is rounded to: that of the population whose number it is, else the coarsest."""
        bases = [self.outcome.bases.get(entry.count) for entry in self._alike(attribute, group, maker, count)]
        return next((base for base in bases if base is not None), self.base(maker))

    def _alike(self, attribute: str, group: str, maker: str, count: int) -> list[Entry]:
        """Populations of a group that have a number of people, those that methods look at first."""
        found = [entry for entry in self._sized[attribute, group].get(count, ()) if _concerns(entry, maker)]
        return sorted(found, key=_nearest)

    @cached_property
    def _sized(self) -> Mapping[tuple[str, str], Mapping[int, list[Entry]]]:
        """Entries by (attribute, group) and their true number."""
        out: dict[tuple[str, str], dict[int, list[Entry]]] = defaultdict(lambda: defaultdict(list))
        for count, entry in self._entries.items():
            out[count.population.attribute, count.population.group][self.people.size(count)].append(entry)
        return out

    def of_all(self, count: int) -> int | None:
        """A number of people of no single group as published."""
        first = self.people.attributes[0].name if self.people.attributes else ""
        return self.printed(first, ALL, "", count)

    def share_denied(self, attribute: str, group: str, place: Place) -> float | None:
        """Share denied of a population, of its counts as printed; None where one of them is not, or is too coarse."""
        population = whole_of(attribute, group, place)
        n, events = self.number(population), self.number(population, DENIED)
        if n is None or events is None or self.is_coarse(population):
            return None
        return digits.share(events, n) if n else None

    def is_coarse(self, population: Population) -> bool:
        """Whether secondary control rounds n or the denied so coarsely that their share could be any other one.

        By n as printed: what is withheld tells no more of it.
        """
        n = self.number(population)
        bases = [self.outcome.bases.get(Count(population, event)) or self.policy.round_to for event in ("", DENIED)]
        return n is not None and is_coarse(self.policy, max(bases), n)

    def decided(self, attribute: str, group: str, maker: str) -> tuple[int | None, int | None, str]:
        """Decisions on a group as printed: n, the denied, and a range in words in their place.

        Nobody, or everybody, is not said by a number that is rounded to it and stands for a few as well. The denied are
        None, too, where n or they are rounded so coarsely that a share of them would mislead.
        """
        population = whole_of(attribute, group, decided_place(maker))
        denied, n = self.entry(population, DENIED), self.number(population)
        told = None if self.is_coarse(population) else denied.number
        if n and told in (0, n):
            base = self.outcome.bases.get(denied.count, 0)
            low, high = learned(self.policy, told, base, self.policy.events_too)
            told = told if low == high else None
        return n, told, denied.text

    def alike(self, attribute: str, group: str, maker: str) -> tuple[Span, Span]:
        """The numbers of people decided on, and of the denied, that are printed as those of this group are."""
        population = whole_of(attribute, group, decided_place(maker))
        return self._span(Count(population), True), self._span(Count(population, DENIED), self.policy.events_too)

    def _span(self, count: Count, never_small: bool) -> Span:
        size = self.people.size(count)
        never_small &= not small(self.policy, size)  # of a small one nothing is printed
        return learned(self.policy, size, self.outcome.bases.get(count, 0), never_small)

    def plainly(self, attribute: str, group: str, maker: str, value: float) -> float | None:
        """A number that is how much more often a group is denied than another, by counts as printed.

        None of any other number, and where counts are printed to the last person; NaN where it is not told.
        """
        if self.base(maker) == 1:
            return None
        place = Place(Base.USED, maker)
        mine = self._denied(attribute, group, place)
        for other in self.people.attribute(attribute).groups:
            theirs = self._denied(attribute, other, place)
            if other == group or not math.isclose(mine - theirs, value, abs_tol=_NEAR):
                continue
            own, against = self.share_denied(attribute, group, place), self.share_denied(attribute, other, place)
            return math.nan if own is None or against is None else round(own - against, 3)
        return None

    def of_lender(self, attribute: str, group: str, decision: str) -> int | None:
        """True number of a group that the lender ``approved`` or ``denied`` among those used; None where nobody is."""
        population = whole_of(attribute, group, Place(Base.USED, LENDER))
        if Count(population, DENIED) not in self._entries:
            return None
        return self.people.size(Count(population, DENIED, rest=decision == "approved")) or None

    def _denied(self, attribute: str, group: str, place: Place) -> float:
        """The true share denied; NaN where there is no such population, or it is empty."""
        population = whole_of(attribute, group, place)
        if Count(population, DENIED) not in self._entries:
            return math.nan
        n = self.people.size(Count(population))
        return self.people.size(Count(population, DENIED)) / n if n else math.nan

    def table(self, more: Iterable[Mapping[str, object]] = ()) -> pa.Table:
        """In the shape of ``PUBLICATION``, with further rows."""
        told = {interval.count: interval for interval in self.outcome.intervals}
        known = _known(self.outcome.published)
        ends = {count: (each.least, each.largest) for count, each in told.items()}
        rows = [*(row | _span_of(known, count) for count, row in self._rows(ends)), *more]
        return PUBLICATION.build(**{c.name: [row[c.name] for row in rows] for c in PUBLICATION.columns})

    def _rows(self, told: Mapping[Count, tuple[int, int]]) -> Iterator[tuple[Count, dict[str, object]]]:
        for count, entry in self._entries.items():
            each, (least, largest) = count.population, told.get(count, (None, None))
            yield (
                count,
                {
                    "protected_attribute": each.attribute,
                    **{name: getattr(each, name) for name in ("group", "part", "decision_maker", "reason")},
                    **{"base": each.base.value, "event": count.event, "fate": entry.fate.value},
                    **{"number": entry.number, "text": entry.text, "least": least, "largest": largest, "groups": ""},
                },
            )


def _known(published: Sequence[Published]) -> dict[Count, tuple[float, float]]:
    """From where to where a reader knows each count to lie."""
    out: dict[Count, tuple[float, float]] = {}
    for each in published:
        if not each.more:
            low, high = out.get(each.count, (-math.inf, math.inf))
            out[each.count] = max(low, each.low), min(high, each.high)
    return out


def _span_of(known: Mapping[Count, tuple[float, float]], count: Count) -> dict[str, int | None]:
    """The columns of a count that later runs take its bounds from."""
    ends = [*known.get(count, (-math.inf, math.inf)), -math.inf, math.inf]
    if count.event:
        ends[2:] = known.get(count._replace(rest=True), (-math.inf, math.inf))
    names = ("low", "high", "rest_low", "rest_high")
    return {name: int(end) if math.isfinite(end) else None for name, end in zip(names, ends, strict=True)}


def _concerns(entry: Entry, maker: str) -> bool:
    """Whether a number about a decision maker may be that of a population."""
    return not maker or entry.count.population.decision_maker in ("", maker)


def _nearest(entry: Entry) -> tuple[bool, bool]:
    """Populations of those used before others, since methods look at these; n before events."""
    return entry.count.population.base is not Base.USED, bool(entry.count.event)
