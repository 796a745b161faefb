"""Primary disclosure control, the loss by withholding, and published measures."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from schemas.questions import STATES
from schemas.terms import Note, State
from tasks.metrics.algorithm.measures import Family, Given, Statistic, base_name, covers
from tasks.metrics.publish.algorithm import profiles
from tasks.metrics.publish.algorithm.audit import Interval
from tasks.metrics.publish.algorithm.populations import (
    ALL,
    Cell,
    Count,
    People,
    Population,
    Published,
    Spread,
    coarsened,
)
from tasks.metrics.publish.algorithm.profiles import Policy, Range, is_coarse, learned, ranged, rounded, small
from tasks.numerics.statistics.intervals import benjamini_hochberg, fisher_p, is_share

# --------------------------------------------------------------------------------------------------------------------
# Primary disclosure control: what each population's own size requires, and which counts need protection.
#
# Source: rules 3 and 4 of the disclosure pass; decision 0034.


@dataclass(frozen=True)
class Target:
    """A count that a reader must not be able to infer."""

    count: Count
    least_width: int
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
        event_counts = [Count(self.population, event, rest) for event in self.events for rest in (False, True)]
        return [Count(self.population), *event_counts]

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
    out = {}
    for population, having in events.items():
        n = people.size(Count(population))
        ranges = {event: ranged(policy, n, size, event in adverse) for event, size in having.items()}
        known_ranges = {event: span for event, span in ranges.items() if span is not None}
        out[population] = Subject(population, n, having, known_ranges, small(policy, n))
    return out


def told(policy: Policy, subject: Subject, bases: Mapping[str, int] = MappingProxyType({})) -> Iterator[Published]:
    """What a reader learns of a population that is shown, n and events rounded to ``bases``, else the profile's."""
    people = Count(subject.population)
    yield Published(people, *learned(policy, subject.n, bases.get("", 0), never_small=policy.protects))
    for event, having in subject.events.items():
        if event in subject.ranges:
            published_range = subject.ranges[event]
            yield Published(Count(subject.population, event, published_range.rest), *published_range.span)
            if published_range.sizes is not None:
                yield Published(people, *published_range.sizes)
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
            published_range = subject.ranges[count.event]
            if published_range.rest == count.rest:
                yield Target(count, published_range.least_width)
            elif policy.events_too and 0 < subject.size(count) < policy.smallest:
                yield Target(count, policy.wanted - 1)


# --------------------------------------------------------------------------------------------------------------------
# What is lost when a further population is withheld: the order in which they are given up.
#
# Source: rule 6 of the disclosure pass; decision 0034 for the three steps that it does not name.


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
    verdict_populations: Collection[Population] = field(default_factory=frozenset)
    """Populations with a verdict."""
    curves: Collection[Population] = field(default_factory=frozenset)
    """Populations that only curves are about."""
    minimum_n: int = 30
    """Groups below this have no verdict."""

    def of(self, population: Population, n: int, beside: Population | None = None) -> Loss:
        """Loss by withholding a population of ``n`` people to protect the population ``beside``."""
        if population.part or population in self.curves:
            return Loss.PART
        if population.group == ALL:
            return Loss.EVERYBODY
        if population.attribute in self.repeating:
            return Loss.REPEAT
        if population in self.verdict_populations:
            return Loss.VERDICT
        if n >= self.minimum_n:
            return Loss.LARGE
        can_merge = (
            beside is not None
            and (population.attribute, population.place) == (beside.attribute, beside.place)
            and population.group != beside.group
        )
        return Loss.MERGE if can_merge else Loss.FEW

    @cached_property
    def repeating(self) -> frozenset[str]:
        """Attributes over a column of an earlier one."""
        out, visited = set(), set[str]()
        for attribute in self.people.attributes:
            if visited & set(attribute.columns):
                out.add(attribute.name)
            visited |= set(attribute.columns)
        return frozenset(out)


# --------------------------------------------------------------------------------------------------------------------
# Defines the request and the outcome of the suppression pass: the fate of every number.
#
# Scope: types. The decisions are made in ``suppression``.


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
        """Every count that is published, protected, or published by earlier runs."""
        return [
            *self.counts,
            *self.protect,
            *(c for statement in self.beside for c in (statement.count, *statement.other_counts)),
        ]

    def narrowed(self, attributes: Collection[str]) -> "Request":
        """The same about everybody and some attributes alone."""
        beside = [statement for statement in self.beside if _of([statement.count], attributes)]
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
    return [count for count in counts if count.population.group == ALL or count.population.attribute in attributes]


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
    """Fate of every number, and the bounds that a reader can infer for those that are not shown."""

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


# --------------------------------------------------------------------------------------------------------------------
# Measures as they are published: counts rounded, shares made of rounded counts, comparisons made of published values.
#
# Rows are those of the table of measures, as mappings. Source: rules 2 to 5 of the disclosure pass; decisions 0034,
# 0035.


Row = Mapping[str, Any]
WITHHELD = "withheld: a small cell, or one that would give a small cell away"
OF_ONE = "withheld: a value of one person"
DESCRIBED = STATES[State.INFORMATION].words
"""Note of a measure whose interval is not printed, since it is not known to cover as often as it says."""
OF_ONE_PERSON = frozenset({"d0", "d0_at_k0", "least_cost", "match_reuse_largest"})
"""Measures that are one person's value: the cost of who is the hardest to reach, or who is taken most often."""
_NUMBERS = ("value", "low", "high", "n", "events", "p", "q")
DECISIONS = "outcomes"
"""What stands for a method in the rows of approvals and denials."""
_CHECKED = (State.OUTSIDE, State.WITHIN, State.INCONCLUSIVE)
FINER = " would be found in "
"""In the reason of a state: the smallest effect that would be found, which tells exact counts."""


@dataclass(frozen=True, eq=False)
class Publisher:
    """What decides how the measures of a run are published."""

    policy: Policy
    covering: Collection[str]
    """Measures whose intervals cover as often as they say."""
    hidden: Collection[Cell]
    """Families and groups that are withheld."""
    statistics: Mapping[Cell, Statistic | Given]
    printed: Callable[[str, str, str, int], int | None]
    """How a number of people is printed, by (attribute, group, decision maker, number)."""
    base: Callable[[str, str, str, int], int]
    """What it is rounded to."""
    decided: Callable[[str, str, str], tuple[int | None, int | None, str]]
    """How the decisions of a decision maker on a group are printed: n, the denied, or a range in words."""
    spreads: Mapping[Cell, Spread] = field(default_factory=dict)
    """Intervals and p of shares and their comparisons, over all counts that are printed alike."""
    quantiles: Mapping[Cell, float] = field(default_factory=dict)
    """What stands for the value of one person."""
    plainly: Callable[[str, str, str, float], float | None] = lambda *_: None
    """A number that is the difference of two shares denied, by counts as printed; None of any other, NaN if untold."""

    def published(self, rows: Sequence[Row]) -> list[Row]:
        """The measures, in their order."""
        plain = {_cell(row): self._plain(row) for row in rows if not _suffix(row)}
        draw_rows = {_cell(row): self._drawn(row) for row in rows if _suffix(row) in ("_size_matched", "_null")}
        published_rows = {**plain, **draw_rows}
        out = [
            published_rows[_cell(row)] if _cell(row) in published_rows else self._compared(row, published_rows)
            for row in rows
        ]
        if not self.policy.protects:
            return out
        # q by each p as printed, 1 where it is withheld: q of the exact p would disclose them
        tested = [(_hypothesis(row), row) for row, exact in zip(out, rows, strict=True) if exact["p"] is not None]
        p_of = {key: 1.0 if row["p"] is None else row["p"] for key, row in tested}
        q_of = dict(zip(p_of, benjamini_hochberg(np.array(list(p_of.values()))).tolist(), strict=True))
        return [row if row["p"] is None else {**row, "q": float(f"{q_of[_hypothesis(row)]:.2g}")} for row in out]

    def _plain(self, row: Row) -> Row:
        cell = _cell(row)
        if self._is_gone(row):
            return blank(row)
        if not self.policy.protects:
            return self._interval(row, row)
        statistic = self.statistics.get(cell)
        if row["method"] == DECISIONS and row["n"]:
            n, denied, words = self.decided(*_whose(row))
            if not n or denied is None:
                return {**blank(row), "reason": f"{WITHHELD}; {words} denied"} if words else {**blank(row), "n": n}
            events = min(denied, n) if row["measure"] == "denial_rate" else n - min(denied, n)
            return self._interval({**row, "n": n, "events": events, "value": _quotient(events, n)}, row)
        printed_n = self.printed(*_whose(row), row["n"]) if row["n"] else row["n"]
        if row["n"] and not printed_n:
            return blank(row)  # a number of people that is rounded to zero is no zero
        numbers: dict[str, Any] = {"n": printed_n, "events": self._events(row, printed_n)}
        value = row["value"]
        if value is None:
            return {**row, **numbers, "low": None, "high": None}
        if row["measure"] in OF_ONE_PERSON:
            return self._of_one({**row, **numbers}, cell)
        if self._is_few(row):
            return blank(row)
        of_events = row["events"] is not None and row["n"] and math.isclose(value, row["events"] / row["n"])
        shares = isinstance(statistic, Statistic) and is_share(statistic.values)
        if (shares or of_events) and is_coarse(self.policy, self._base(row), printed_n or 0):
            return blank(row)
        if isinstance(statistic, Statistic) and shares:
            numbers |= self._share(row, statistic, numbers)
        elif row["events"] is not None and value == row["events"]:
            numbers["value"] = None if numbers["events"] is None else float(numbers["events"])
        elif of_events:
            numbers["value"] = _quotient(numbers["events"], numbers["n"])
        else:
            plain = self.plainly(*_whose(row), value)
            if plain is not None:
                return (
                    blank(row) if math.isnan(plain) else {**row, **numbers, "value": plain, "low": None, "high": None}
                )
            numbers["value"] = profiles.significant(self.policy, value)
        if numbers["value"] is None:
            return blank(row)
        return self._interval({**row, **numbers}, row)

    def _share(self, row: Row, statistic: Statistic, numbers: Row) -> dict[str, Any]:
        """The value of a share, by counts as they are printed; units without a value are not in it."""
        events, n = numbers["events"], numbers["n"]
        if events is None or any(math.isnan(value) for value in statistic.values):
            coarse = coarsened(statistic, self.policy, self._base(row))
            having = dict(zip(coarse.values.tolist(), coarse.counts.tolist(), strict=True))
            events = having.get(1.0, 0)
            n = events + having.get(0.0, 0)
        if events in (0, n) and 0 < row["value"] < 1:
            # a few of many are not nobody: no count, and as many decimals as tell nothing of n
            value = round(row["value"], profiles.blunt(row["n"]))
            return {"events": None, "value": value if 0 < value < 1 else None}
        return {"value": _quotient(events, n)}

    def _is_few(self, row: Row) -> bool:
        """Whether a number that comes without events is a share of a few all the same, where a range would be due."""
        value, n = row["value"], row["n"]
        if row["events"] is not None or not self.policy.events_too or not n or not 0 < value < 1:
            return False
        having = value * n
        return math.isclose(having, round(having), abs_tol=1e-9) and small(self.policy, n, round(having))

    def _base(self, row: Row) -> int:
        """The rounding base of n of a row and of its events: their sum over parts of n would otherwise disclose n."""
        return self.base(*_whose(row), row["n"]) if row["n"] else self.policy.round_to

    def _events(self, row: Row, n: int | None) -> int | None:
        """Events as printed; None for a few events that would be rounded to zero."""
        count = row["events"]
        if count is None or n is None:
            return None
        printed = min(rounded(self.policy, count, self._base(row)), n)
        return printed if printed or not count else None

    def _of_one(self, row: Row, cell: Cell) -> Row:
        value = self.quantiles.get(cell)
        ends = {"value": value, "low": None, "high": None}
        if value is None:
            return {**row, **ends, "state": _state(row), "reason": OF_ONE, "note": ""}
        return {**row, **ends, "note": _noted(row["note"], "the 95 % quantile stands for the largest")}

    def _drawn(self, row: Row) -> Row:
        """Draws next to a group: their n counts draws, and they disclose the size of the group."""
        if self._is_gone(row):
            return blank(row)
        if not self.policy.protects:
            return row
        if base_name(row["measure"]) in OF_ONE_PERSON:
            return {**row, **dict.fromkeys(("value", "low", "high")), "state": _state(row), "reason": OF_ONE}
        statistic = self.statistics.get(_cell(_whole(row)))
        base = self.base(*_whose(row), statistic.n) if isinstance(statistic, Given) else 1
        if isinstance(statistic, Given) and statistic.events is not None and base > 1:
            ends = {
                name: None if row[name] is None else float(round(row[name] / base) * base)
                for name in ("value", "low", "high")
            }
        else:
            ends = {name: self._significant(row[name]) for name in ("value", "low", "high")}
        return {**row, **ends} if Note.RANGE in row["note"].split("; ") else {**row, **ends, "low": None, "high": None}

    def _compared(self, row: Row, published_rows: Mapping[Cell, Row]) -> Row:
        if self._is_gone(row):
            return blank(row)
        if not self.policy.protects:
            return self._interval(row, row)
        suffix = _suffix(row)
        group_row = published_rows.get(_cell(_whole(row)))
        # A comparison holds the group against the reference group, or against what was drawn.
        is_reference = suffix in ("_difference", "_ratio")
        drawn_row = {**row, "measure": row["measure"].removesuffix("_difference")}
        other = published_rows.get(
            _cell({**_whole(row), "group": row["reference_group"]} if is_reference else drawn_row)
        )
        if group_row is None or other is None or group_row["n"] is None:
            return blank(row)
        if base_name(row["measure"]) in OF_ONE_PERSON and group_row["value"] is None:
            return {**row, **dict.fromkeys(("value", "low", "high", "p", "q")), "n": group_row["n"], "reason": OF_ONE,
                    "state": _state(row), "note": ""}  # fmt: skip
        if row["value"] is not None and None in (group_row["value"], other["value"]):
            return {**blank(row), "n": group_row["n"]}
        value = None
        if row["value"] is not None and suffix != "_ratio":
            value = self._significant(round(group_row["value"] - other["value"], 9))
        elif row["value"] is not None and other["value"]:
            value = self._significant(round(group_row["value"] / other["value"], 9))
        # p is the largest of all counts that are printed alike, or that of shares by printed counts
        p, spread = row["p"], self.spreads.get(_cell(row))
        counts = [group_row["events"], group_row["n"], other["events"], other["n"]]
        if p is not None and spread is not None:
            p = _finite(spread.p)
        elif p is not None and "matched" not in row["measure"] and None not in counts:
            p = fisher_p((min(counts[0], counts[1]), min(counts[2], counts[3])), (counts[1], counts[3]))
        p = None if p is None else profiles.p_value(self.policy, p)
        return self._interval({**row, "value": value, "n": group_row["n"], "p": p, "q": None}, row)

    def _interval(self, row: Row, exact: Row) -> Row:
        """The row with its interval as published: of measures that cover alone. Verdicts say what would be found."""
        if self.policy.protects and FINER in row["reason"]:
            row = {**row, "reason": row["reason"].partition("; ")[0]}
        if row["low"] is None and row["high"] is None:
            return row
        if Note.RANGE not in row["note"].split("; ") and not covers(row["measure"], self.covering):
            return {**row, "low": None, "high": None, "note": _noted(row["note"], DESCRIBED)}
        if not self.policy.protects:
            return row
        low, high = exact["low"], exact["high"]
        if (spread := self.spreads.get(_cell(row))) is not None:
            low, high = _finite(spread.low), _finite(spread.high)
        ends = self._significant(low), self._significant(high)
        if low is not None and high is not None and ends[0] == ends[1] and low != high:
            # rounding to three digits must not take the interval its width
            step = 10.0 ** (math.floor(math.log10(max(abs(low), abs(high)))) - profiles.SIGNIFICANT + 1)
            ends = math.floor(low / step) * step, math.ceil(high / step) * step
        return {**row, "low": ends[0], "high": ends[1]}

    def _significant(self, value: float | None) -> float | None:
        return None if value is None else profiles.significant(self.policy, value) + 0.0

    def _is_gone(self, row: Row) -> bool:
        family = replace(_family(row), measure=base_name(row["measure"]))
        groups = (row["group"], row["reference_group"]) if row["reference_group"] else (row["group"],)
        return any((family, group) in self.hidden for group in groups)


def blank(row: Row) -> Row:
    """A row that is withheld: a state that it had becomes inconclusive."""
    return {**row, **dict.fromkeys(_NUMBERS), "state": _state(row), "reason": WITHHELD, "note": ""}


def _state(row: Row) -> str:
    """The state of a withheld row. Whether it was measured at all would disclose that somebody was denied, say."""
    if row["state"] in _CHECKED:
        return State.INCONCLUSIVE
    return State.INFORMATION if row["state"] == State.NOT_RUN else str(row["state"])


def _hypothesis(row: Row) -> tuple[object, ...]:
    """What a difference and its ratio test: they share one p, and so one q."""
    base = row["measure"].removesuffix("_ratio").removesuffix("_difference")
    return replace(_family(row), measure=base), row["group"]


def _whose(row: Row) -> tuple[str, str, str]:
    return row["protected_attribute"], row["group"], row["decision_maker"]


def _family(row: Row) -> Family:
    names = ("method", "decision_maker", "protected_attribute", "measure", "parameters", "subgroup")
    return Family(*(row[name] for name in names))


def _cell(row: Row) -> Cell:
    return _family(row), row["group"]


def _suffix(row: Row) -> str:
    return str(row["measure"]).removeprefix(base_name(row["measure"])) if row["reference_group"] else ""


def _whole(row: Row) -> Row:
    return {**row, "measure": base_name(row["measure"])}


def _quotient(events: int | None, n: int | None) -> float | None:
    return None if events is None or not n else profiles.share(events, n)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _noted(note: str, addition: str) -> str:
    return "; ".join(part for part in (note, addition) if part)
