"""Populations and families of statistics, and what rounding does to intervals."""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from schemas.terms import EVERYBODY
from tasks.metrics.algorithm.measures import Family, Given, Plan, Statistic, summarise
from tasks.metrics.publish.algorithm.profiles import Policy, Span, learned, rounded, small
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.statistics.intervals import is_share

# --------------------------------------------------------------------------------------------------------------------
# Populations: the people that a published number counts, and the known attributes of each person.
#
# A count is a population with or without an event (denied by the model, say). It is a sum of cells: ``audit.cells``.
# Source: rule 2 of the disclosure pass, decision 0034.


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
    """The people that a number counts. All numbers about one population share one fate."""

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
    other_counts: tuple[Count, ...] = ()
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
    """All people that any published number counts, a row each.

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
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
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
            everyone = Population(attribute.name, ALL, 0, place.decision_maker, place.base, place.reason, place.run)
            yield everyone
            parts = people.parts.get((attribute.name, place.decision_maker))
            for code, group in enumerate(attribute.groups):
                yield replace(everyone, group=group)
                if parts is not None:
                    inside = people.bases[place] & (attribute.codes == code) & (parts > 0)
                    yield from (replace(everyone, group=group, part=int(part)) for part in np.unique(parts[inside]))


def rests(populations: Iterable[Population]) -> list[Population]:
    """Who is left when groups are taken from everybody, and parts from a group: not printed, but easily computed."""
    out = set()
    for population in populations:
        if population.group not in (ALL, REST):
            out.add(replace(population, group=REST, part=0))
            if population.part > 0:
                out.add(replace(population, part=REST_PART))
    return sorted(out)


# --------------------------------------------------------------------------------------------------------------------
# Families of statistics: which are withheld for their own size, and which because they add up with those.
#
# Scope: numbers that methods make of populations. Counts of people themselves are held against linear programmes
# (``suppression``). Exact counts decide whether a cell is small.


Cell = tuple[Family, str]
"""A family of statistics and a group."""


def coarsened(statistic: Statistic, policy: Policy, base: int = 0) -> Statistic:
    """A share by its counts as they are printed (``base`` 0: that of the profile); other statistics as they are."""
    if (base or policy.round_to) == 1 or not is_share(statistic.values):
        return statistic
    counts = np.array([rounded(policy, int(count), base) for count in statistic.counts], dtype=np.int64)
    return replace(statistic, counts=counts)


def withheld(
    statistics: Sequence[Statistic | Given],
    policy: Policy,
    partitions: Mapping[str, Collection[str]] | None = None,
    without_total: Collection[Family] = (),
) -> set[Cell]:
    """The cells to withhold: small ones, and those by which they could be had from a total.

    Totals are those over the groups of a family, those over the parts of a group, and the shares of a group that add up
    to one. None under ``internal``.

    Args:
        statistics: of all families.
        policy: of the profile.
        partitions: measure -> the parameters over which its shares add up to one.
        without_total: families whose values do not add up over groups, and whose counts are held elsewhere.
    """
    if not policy.protects:
        return set()
    n = {(s.family, s.group): s.n if isinstance(s, Given) else int(s.counts.sum()) for s in statistics}
    hidden = {(s.family, s.group) for s in statistics if _small(s, policy)}
    adding_up = {cell: count for cell, count in n.items() if cell[0] not in without_total}
    hidden |= _complements(adding_up, hidden, lambda cell: cell[0], policy)
    parts, rest = _with_rest(n, hidden, policy)
    hidden |= _complements(parts, hidden | rest, _whole, policy) - rest
    for measure, over in (partitions or {}).items():
        counts = {
            (s.family, s.group): (s.events or 0) if isinstance(s, Given) else int(s.counts[s.values == 1].sum())
            for s in statistics
            if s.family.measure == measure
        }
        hidden |= _complements(counts, hidden, partial(_without, over), policy)
    # Sizes of parts of which anything is withheld, for whichever decision maker: their differences would tell it.
    touched = {(f.method, f.protected_attribute, group, f.subgroup) for f, group in hidden if f.subgroup}
    sizes = {(s.family, s.group) for s in statistics if isinstance(s, Given) and s.family.subgroup and s.events == s.n}
    sizes_of_parts = {
        (f, group) for f, group in sizes if (f.method, f.protected_attribute, group, f.subgroup) in touched
    }
    return hidden | sizes_of_parts


def _without(over: Collection[str], cell: Cell) -> Cell:
    """What several cells are shares of: the cell without the parameters that distinguish them."""
    rest = {name: value for name, value in json.loads(cell[0].parameters).items() if name not in over}
    return replace(cell[0], parameters=json.dumps(rest, sort_keys=True)), cell[1]


def _whole(cell: Cell) -> Cell:
    """The group that a part belongs to."""
    return replace(cell[0], subgroup=0), cell[1]


def _with_rest(n: dict[Cell, int], hidden: set[Cell], policy: Policy) -> tuple[dict[Cell, int], set[Cell]]:
    """The parts of every group with its unprinted remainder, and the remainders that count as withheld.

    A remainder does where it is small, and where it stands for more than one cell because some part is withheld.
    """
    parts = {cell: count for cell, count in n.items() if cell[0].subgroup}
    group_totals: dict[Cell, int] = defaultdict(int)
    for cell, count in parts.items():
        group_totals[_whole(cell)] += count
    remainders = {
        (replace(family, subgroup=-1), group): n.get((family, group), 0) - group_totals[family, group]
        for family, group in group_totals
    }
    remainders = {cell: count for cell, count in remainders.items() if count > 0}
    partly = {_whole(cell) for cell in parts if cell in hidden}
    return {**parts, **remainders}, {
        cell for cell, count in remainders.items() if small(policy, count) or _whole(cell) in partly
    }


def _small(s: Statistic | Given, policy: Policy) -> bool:
    if isinstance(s, Given):
        event_counts = [s.events, s.n - s.events] if policy.events_too and s.events is not None else []
        return any(small(policy, count) for count in (s.n, *event_counts))
    n, defined = int(s.counts.sum()), int(s.counts[~np.isnan(s.values)].sum())
    counts = [n, defined]
    if policy.events_too and (s.share or is_share(s.values)):
        # how many have no value could be had from a share and its events, or from two shares of unlike denominators;
        # beside a mean stands nothing but its rounded n
        counts += [n - defined, *(s.counts.tolist() if is_share(s.values) else [])]
    return any(small(policy, count) for count in counts)


def _complements(
    n: dict[Cell, int], hidden: set[Cell], total_of: Callable[[Cell], Hashable], policy: Policy
) -> set[Cell]:
    """Further cells to withhold, where one cell of a printed total would be the only one withheld."""
    totals: dict[Hashable, list[Cell]] = defaultdict(list)
    for cell in n:
        totals[total_of(cell)].append(cell)
    out: set[Cell] = set()
    for cells in totals.values():
        flags = np.array([cell in hidden for cell in cells])
        complement_flags = complement(flags, np.array([n[cell] for cell in cells], dtype=np.int64), policy.smallest)
        out |= {cell for cell, gone in zip(cells, complement_flags, strict=True) if gone}
    return out


def complement(withheld: Bools, counts: Longs, smallest: int = 0) -> Bools:
    """Withhold more where what is withheld could be had by subtraction from the total of ``counts``.

    A single withheld count can be, and so can the sum of several, which must not be small either (below ``smallest``).
    The next smallest positive count goes with them, or a zero where there is no other; ``(n,)`` in, ``(n,)`` out.
    """
    out = withheld.copy()
    while out.any() and not out.all() and (out.sum() == 1 or 0 < counts[out].sum() < smallest):
        cost = np.where(counts > 0, counts, counts.max() + 1)
        out[np.argmin(np.where(out, counts.max() + 2, cost))] = True
    return out


# --------------------------------------------------------------------------------------------------------------------
# How far an interval and a p-value reach where counts are rounded: over all counts that are printed alike.
#
# A share of rounded counts is off by more than its sampling error may be. Its interval is the smallest one that holds
# the intervals at both ends of what a reader can tell of the counts; its p is the larger of both, and 1 where no
# difference at all lies between the ends. How often they cover: ``python -m benches published``. Source: decision 0035.


Pair = tuple[Statistic, Statistic]
"""A share at its lowest and at its highest."""


class Spread(NamedTuple):
    """Lower and upper end of an interval and a p-value, NaN where there is none."""

    low: float
    high: float
    p: float


def of_decisions(share: Statistic, n: Span, denied: Span) -> Pair:
    """Approvals or denials at their lowest and highest, by what is known of ``n`` and of the denied."""
    fewest, most = _decided(share, n.high, denied.low), _decided(share, n.low, denied.high)
    return (fewest, most) if _of_denied(share) else (most, fewest)


def _decided(share: Statistic, n: int, denied: int) -> Statistic:
    denied = min(denied, n)
    events = denied if _of_denied(share) else n - denied
    return replace(share, values=np.array([0.0, 1.0]), counts=np.array([n - events, events], dtype=np.int64))


def _of_denied(share: Statistic) -> bool:
    return share.family.measure == "denial_rate"


def of_counts(statistic: Statistic, policy: Policy, base: int) -> Pair:
    """A share at its lowest and highest, where each of its counts is rounded to ``base``; others as they are."""
    if base == 1 or not is_share(statistic.values):
        return statistic, statistic
    spans = [learned(policy, int(count), base, never_small=False) for count in statistic.counts]
    low, high = np.array(spans, dtype=np.int64).T
    event = statistic.values == 1
    lowest, highest = np.where(event, low, high), np.where(event, high, low)
    return replace(statistic, counts=lowest), replace(statistic, counts=highest)


def spreads(
    pairs: Sequence[Pair], plan: Plan, refitted: Mapping[Cell, Floats] = MappingProxyType({})
) -> dict[Cell, Spread]:
    """The spread of shares and of their comparisons: every group is taken against the other end of its reference group.

    A measure that has no interval at one of the ends has none.

    Args:
        pairs: the shares at their lowest and highest.
        plan: references and level of the intervals.
        refitted: (family, group) -> ``(refits,)`` a share of the model's decisions, by the model fitted anew.
    """
    is_group = [low.group != plan.references[low.family.protected_attribute] for low, _ in pairs]
    lowest = [low if other else high for other, (low, high) in zip(is_group, pairs, strict=True)]
    highest = [high if other else low for other, (low, high) in zip(is_group, pairs, strict=True)]
    against = {(m.family, m.group): m for m in summarise(highest, {}, plan, (), refitted)}
    measures = {(m.family, m.group): m for m in summarise(lowest, {}, plan, (), refitted)}
    out = {}
    for cell, a in measures.items():
        if cell in against:
            b = against[cell]
            ends = (a.low, b.low, a.high, b.high)
            low, high = (math.nan, math.nan) if any(map(math.isnan, ends)) else (min(ends), max(ends))
            nothing, p = 1.0 if a.family.measure.endswith("_ratio") else 0.0, 1.0
            if math.isnan(a.p) or math.isnan(b.p):
                p = math.nan
            elif (a.value - nothing) * (b.value - nothing) > 0:
                p = max(a.p, b.p)
            out[cell] = Spread(low, high, p)
    return out
