"""Published measures, verdicts and merged groups, and the fate of every number."""

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.audit.limits import Bootstrap
from schemas.audit.partition import SAMPLED, as_sampled, asked_and_of, unsampled
from schemas.table import Table
from schemas.tables.applications import MODEL_REFITS
from schemas.tables.findings import FINDINGS
from schemas.tables.verdicts import (
    PUBLICATION,
    PUBLISHED_AGREEMENT,
    PUBLISHED_MEASURES,
    PUBLISHED_MERGED,
    PUBLISHED_VERDICTS,
    REPORTED,
    published,
)
from schemas.terms import Note, State
from tasks.metrics.algorithm.agreement import null_ratio
from tasks.metrics.algorithm.measures import Family, Given, Plan, Statistic, base_name
from tasks.metrics.curves import LISTS, rows_of
from tasks.metrics.limits import Tallied, of_families, refitted
from tasks.metrics.publish.algorithm import populations, profiles
from tasks.metrics.publish.algorithm.populations import (
    ALL,
    Base,
    Cell,
    Count,
    Pair,
    People,
    Place,
    Population,
    Published,
    of_counts,
    of_decisions,
    spreads,
)
from tasks.metrics.publish.algorithm.primary import DECISIONS, DESCRIBED, Entry, Fate, Merged, Outcome, Publisher
from tasks.metrics.publish.algorithm.profiles import Policy, Span, is_coarse, learned, rounded, small
from tasks.metrics.publish.people import DENIED, LENDER, Crowd, decided_place, whole_of
from tasks.metrics.verdicts import OUTCOME
from tasks.numerics.statistics.intervals import is_share
from tasks.pipeline.registry import OUTCOMES_METHOD, covering, partitions

# --------------------------------------------------------------------------------------------------------------------
# Looks up the fate of every population by its columns in a table.
#
# A table names an attribute, a group and a decision maker, and gives a number of people. A number that is that of a
# population of this group is printed as the population's is; one of a withheld population is not printed.


_NEAR = 1e-4
"""How near estimators that hold nothing constant come to the difference of two shares."""
GONE = (Fate.WITHHELD_SMALL, Fate.WITHHELD_WITH, Fate.WITHHELD_UNAUDITED)
UNPRINTED = (*GONE, Fate.RANGE)


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

    def are_decisions_gone(self, attribute: str, group: str, maker: str) -> bool:
        """Whether the decisions on a group are withheld: those that its rates are of, whatever else is withheld."""
        entry = self._entries.get(Count(whole_of(attribute, group, decided_place(maker))))
        return self.is_gone(attribute, group, maker) if entry is None else entry.fate in GONE

    @cached_property
    def _gone(self) -> Mapping[str, set[tuple[str, str]]]:
        out: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for count, entry in self._entries.items():
            population = count.population
            if entry.fate in GONE and not population.reason and population.base is not Base.REFUSED:
                for maker in {"", population.decision_maker} if population.decision_maker else {"", *self.crowd.makers}:
                    out[maker].add((population.attribute, population.group))
        return out

    def is_ranged(self, attribute: str, group: str, maker: str = "") -> bool:
        """Whether a range replaces the denied of a group, by this or any decision maker: they are all or nearly all.

        What rests on these decisions is withheld with them: an effect, a ratio of 0, the number of the denied.
        """
        return (attribute, group) in self._ranged[maker]

    @cached_property
    def _ranged(self) -> Mapping[str, set[tuple[str, str]]]:
        out: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for count, entry in self._entries.items():
            population = count.population
            if entry.fate is Fate.RANGE and not population.reason and population.base is not Base.REFUSED:
                for maker in ("", population.decision_maker):
                    out[maker].add((population.attribute, population.group))
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
        """A number of people of a group as published; None where it discloses a withheld one, or is rounded to zero."""
        if not self.policy.protects or count == 0:
            return count
        if 0 < count < self.policy.smallest:
            return None
        alike = self._alike(attribute, group, maker, count)
        if any(entry.fate in UNPRINTED for entry in alike):
            return None
        printed_numbers = [entry.number for entry in alike if entry.number is not None]
        return (printed_numbers[0] if printed_numbers else rounded(self.policy, count, self.base(maker))) or None

    def base_of(self, attribute: str, group: str, maker: str, count: int) -> int:
        """The rounding base of a number of people: that of the population with this number, else the coarsest."""
        bases = [self.outcome.bases.get(entry.count) for entry in self._alike(attribute, group, maker, count)]
        return next((base for base in bases if base is not None), self.base(maker))

    def knows(self, attribute: str, group: str, maker: str, count: int) -> bool:
        """Whether a number of people of a group is that of a population, or of an event, that is held."""
        return count == 0 or bool(self._alike(attribute, group, maker, count))

    def _alike(self, attribute: str, group: str, maker: str, count: int) -> list[Entry]:
        """Populations of a group that have a number of people; first those used, which methods see; n before events."""
        entries = [
            entry
            for entry in self._sized[attribute, group].get(count, ())
            if not maker or entry.count.population.decision_maker in ("", maker)
        ]
        return sorted(
            entries, key=lambda entry: (entry.count.population.base is not Base.USED, bool(entry.count.event))
        )

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
        return profiles.share(events, n) if n else None

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
        denied_number = None if self.is_coarse(population) else denied.number
        if n and denied_number in (0, n):
            base = self.outcome.bases.get(denied.count, 0)
            low, high = learned(self.policy, denied_number, base, self.policy.events_too)
            denied_number = denied_number if low == high else None
        return n, denied_number, denied.text

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
        group_share = self._denied(attribute, group, place)
        for other in self.people.attribute(attribute).groups:
            theirs = self._denied(attribute, other, place)
            if other == group or not math.isclose(group_share - theirs, value, abs_tol=_NEAR):
                continue
            printed_share, against = (
                self.share_denied(attribute, group, place),
                self.share_denied(attribute, other, place),
            )
            return math.nan if printed_share is None or against is None else round(printed_share - against, 3)
        return None

    def of_lender(self, attribute: str, group: str, decision: str) -> int | None:
        """True number of a group that the lender ``approved`` or ``denied`` among those used; None where it is zero."""
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

    def table(self, extra_rows: Iterable[Mapping[str, object]] = ()) -> pa.Table:
        """In the shape of ``PUBLICATION``, with further rows."""
        intervals = {interval.count: interval for interval in self.outcome.intervals}
        known_ends = _known(self.outcome.published)
        rows: list[Mapping[str, object]] = []
        for count, entry in self._entries.items():
            population, interval = count.population, intervals.get(count)
            least, largest = (interval.least, interval.largest) if interval else (None, None)
            rows.append(
                {
                    "protected_attribute": population.attribute,
                    **{name: getattr(population, name) for name in ("group", "part", "decision_maker", "reason")},
                    **{"base": population.base.value, "event": count.event, "fate": entry.fate.value},
                    **{"number": entry.number, "text": entry.text, "least": least, "largest": largest, "groups": ""},
                    **_span_of(known_ends, count),
                }
            )
        rows += extra_rows
        return PUBLICATION.build(**{c.name: [row[c.name] for row in rows] for c in PUBLICATION.columns})


def _known(published: Sequence[Published]) -> dict[Count, tuple[float, float]]:
    """From where to where a reader knows each count to lie."""
    out: dict[Count, tuple[float, float]] = {}
    for statement in published:
        if not statement.other_counts:
            low, high = out.get(statement.count, (-math.inf, math.inf))
            out[statement.count] = max(low, statement.low), min(high, statement.high)
    return out


def _span_of(known_ends: Mapping[Count, tuple[float, float]], count: Count) -> dict[str, int | None]:
    """The columns of a count that later runs take its bounds from."""
    ends = [*known_ends.get(count, (-math.inf, math.inf)), -math.inf, math.inf]
    if count.event:
        ends[2:] = known_ends.get(count._replace(rest=True), (-math.inf, math.inf))
    names = ("low", "high", "rest_low", "rest_high")
    return {name: int(end) if math.isfinite(end) else None for name, end in zip(names, ends, strict=True)}


# --------------------------------------------------------------------------------------------------------------------
# Rounds shares in tables other than the measures so far that they do not disclose the rounded counts.
#
# 0.438 is 28 of 64, whatever these are rounded to elsewhere; 0.4 is a share of 63 and of 65 people, too.


Row = Mapping[str, Any]
_OF_N = ("inside", "comparable", "unmatched", "support", "matched")
_FILLED = {"filled": "n", "filled_reference": "n_reference"}
"""Shares of loans with a price, and at most how many these are at least: those that have the controls, too."""
_OF_CATEGORY = {"factual": "n", "imagined": "n", "there": "n_there"}
"""Shares of those with a category; quantiles where the row has none."""
_METRICS = {
    **{"accuracy": "", "predicted_denial_rate": ""},
    **{"true_positive_rate": "approved", "false_positive_rate": "denied"},
}
"""Shares among the metrics of a model, and of whom."""


def denominator(name: str, row: Row, fates: Fates) -> int | None:
    """How many people a number of a row is a share of; None where it is no share."""
    if name in _OF_N:
        return _count(row["n"])
    if name in _FILLED:
        return _count(row[_FILLED[name]])
    if name in _OF_CATEGORY and row.get("category") is not None:
        return _count(row[_OF_CATEGORY[name]])
    if name == "value" and row.get("metric") in _METRICS:
        of = _METRICS[row["metric"]]
        return fates.of_lender(row["protected_attribute"], row["group"], of) if of else _count(row["n"])
    return None


def _count(n: int | None) -> int | None:
    return n or None


def share(value: float, n: int, row: Row, fates: Fates) -> float | None:
    """A share of ``n`` people as printed; None where those with or without it are few and the profile looks at them."""
    policy, having = fates.policy, value * n
    if policy.events_too and small(policy, n, round(having)):
        return None
    whose = row["protected_attribute"], row.get("group") or "", row.get("decision_maker", "")
    exact = fates.base_of(*whose, n) == 1
    return round(value, profiles.decimals(n) if exact else profiles.blunt(n)) + 0.0


def is_of_few(name: str, row: Row, policy: Policy) -> bool:
    """Whether a number is a quantile over so few that it is one person's value, or a share that all but a few have."""
    if name in _FILLED:
        n, filled = row[_FILLED[name]], row[name]
        return not n or small(policy, n) or (filled < 1 and n / filled - n < policy.smallest)
    if name not in _OF_CATEGORY or row.get("quantile") is None:
        return False
    return (row[_OF_CATEGORY[name]] or 0) < profiles.ENOUGH


# --------------------------------------------------------------------------------------------------------------------
# Withheld groups that are shown as one group, as the auditor allowed: their people, and the denied among them.


def rows(fates: Fates) -> Iterator[dict[str, Any]]:
    """Rows of the publication: one for each number of groups that are one."""
    for merged in fates.outcome.merged:
        first = merged.populations[0]
        for statement in _printed(merged):
            yield {
                **{"protected_attribute": first.attribute, "group": _words(merged), "part": 0},
                **{"decision_maker": first.decision_maker, "base": first.base.value, "reason": first.reason},
                **{"event": statement.count.event, "number": merged.numbers[statement.count.event], "text": ""},
                **{"fate": (Fate.ROUNDED if merged.base > 1 else Fate.SHOWN).value, "least": None, "largest": None},
                **{"low": int(statement.low), "high": int(statement.high), "rest_low": None, "rest_high": None},
                "groups": json.dumps([population.group for population in merged.populations]),
            }


def table(fates: Fates) -> pa.Table:
    """In the shape of ``PUBLISHED_MERGED``: the source, the rows used, and those decided on."""
    merged_groups = [merged for merged in fates.outcome.merged if not merged.populations[0].reason]
    numbers = [
        {statement.count.event: merged.numbers[statement.count.event] for statement in _printed(merged)}
        for merged in merged_groups
    ]
    rows_of_table = [
        (merged.populations[0], _words(merged), n) for merged, n in zip(merged_groups, numbers, strict=True) if "" in n
    ]
    return PUBLISHED_MERGED.build(
        protected_attribute=[first.attribute for first, *_ in rows_of_table],
        groups=[words for _, words, _ in rows_of_table],
        base=[first.base.value for first, *_ in rows_of_table],
        decision_maker=[first.decision_maker for first, *_ in rows_of_table],
        n=[n[""] for *_, n in rows_of_table],
        denied=[n.get(DENIED) for *_, n in rows_of_table],
    )


def _printed(merged: Merged) -> Iterator[Published]:
    """The numbers printed of a merged group, without those rounded to nobody or everybody that stand for a few, too."""
    for statement in merged.published:
        event = statement.count.event
        ends = (0, merged.numbers[""]) if event else (0,)
        if statement.low == statement.high or merged.numbers[event] not in ends:
            yield statement


def _words(merged: Merged) -> str:
    *groups, last = [population.group for population in merged.populations]
    return f"{', '.join(groups)} or {last}"


# --------------------------------------------------------------------------------------------------------------------
# The table of measures as it is published: which statistics are withheld, and their numbers by printed counts.


MATCHED = "matched_with"
"""Parameter of measures of pairs: the group that the other one of a pair is of."""
EXPECTED = "_under_relabelling"
"""End of the name of a mean over draws. A share less this mean is printed beside it, so that both tell the share."""


def hidden(tallied: Tallied, fates: Fates) -> set[Cell]:
    """Statistics that are withheld: small ones, those that add up with them, and all of a withheld group.

    What others find beside a withheld group is of its people, too: ``matched_with`` names it. A mean that gives a share
    back, which is withheld or rounded, goes too: 0.0132 more than 0.225 are 5 of 21.
    """
    statistics: list[Statistic | Given] = [*tallied.statistics, *tallied.aggregates]
    # decisions are counts that the pass itself holds open: what it shows is shown
    of_methods = [s for s in statistics if s.family.method != DECISIONS]
    gone = populations.withheld(
        of_methods, fates.policy, partitions(), effects_by_known_counts(tallied.aggregates, fates)
    )
    gone |= {(s.family, s.group) for s in statistics if any(_gone(s, fates))}
    shares_gone = frozenset(gone)
    if not fates.policy.protects:
        return gone
    for s in tallied.aggregates:
        base_measure, whose = s.family.measure.removesuffix(EXPECTED), s.family.decision_maker
        if base_measure != s.family.measure and (
            (replace(s.family, measure=base_measure), s.group) in shares_gone
            or fates.base_of(s.family.protected_attribute, s.group, whose, s.n) > 1
        ):
            gone.add((s.family, s.group))
    return gone


def effects_by_known_counts(aggregates: Sequence[Given], fates: Fates) -> set[Family]:
    """Families of judged effects with n and events that the pass itself holds, for every group.

    An effect on a group is fitted to its members and the reference group, so that the effects on others do not tell it.
    One stranger then withholds the own figures alone, and not the effect on the next smallest group.
    """
    with_inference = {(s.family.method, s.family.measure) for s in aggregates if s.inference is not None}
    effects = {s.family for s in aggregates if (s.family.method, s.family.measure) in with_inference}
    for s in aggregates:
        whose = s.family.protected_attribute, s.group, s.family.decision_maker
        counts = [s.n] if s.events is None else [s.n, s.events]
        if not all(fates.knows(*whose, count) for count in counts):
            effects.discard(s.family)
    return effects


def _gone(s: Statistic | Given, fates: Fates) -> Iterator[bool]:
    """Whether its group is withheld, or the one that its people are matched with; of decisions, whether these are."""
    if s.family.method == DECISIONS:
        yield fates.are_decisions_gone(s.family.protected_attribute, s.group, s.family.decision_maker)
        return
    for group in (s.group, json.loads(s.family.parameters or "{}").get(MATCHED)):
        yield group is not None and fates.is_gone(s.family.protected_attribute, group, s.family.decision_maker)


def publisher_of(
    tables: Mapping[str, pa.Table],
    tallied: Tallied,
    gone: set[Cell],
    fates: Fates,
    bootstrap: Bootstrap,
    seed: int,
    references: Mapping[str, str],
) -> Publisher:
    """What decides how measures and points of curves are published."""
    every: list[Statistic | Given] = [*tallied.statistics, *tallied.aggregates]
    cells = {(s.family, s.group): s for s in every}
    # Intervals and p of shares that cover, of their differences and ratios, over all counts that are printed alike.
    covered = [s for s in tallied.statistics if s.family.measure in covering()]
    extremes = [
        s for s in covered if s.family.protected_attribute in references and fates.base(s.family.decision_maker) > 1
    ]
    plan = Plan(references, bootstrap.draws, bootstrap.level, seed)
    # each share at its lowest and its highest, of all counts that are printed as its own are
    pairs: list[Pair] = []
    for s in extremes:
        whose = s.family.protected_attribute, s.group, s.family.decision_maker
        if s.family.method == DECISIONS:
            pairs.append(of_decisions(s, *fates.alike(*whose)))
        else:
            pairs.append(of_counts(s, fates.policy, fates.base_of(*whose, int(s.counts.sum()))))
    spread = spreads(pairs, plan, of_families(refitted(tables[MODEL_REFITS.name])))
    return Publisher(
        fates.policy, covering(), gone, cells, fates.printed, fates.base_of, fates.decided,
        spread, _quantiles(tables[FINDINGS.name], fates),
        fates.plainly,
    )  # fmt: skip


def published_measures(measures: pa.Table, publisher: Publisher, fates: Fates) -> pa.Table:
    """The published table."""
    out = []
    for row in publisher.published(measures.to_pylist()):
        if row["value"] is not None and 0 < (row["n"] or 0) < fates.policy.as_counts:
            names = ("method", "decision_maker", "protected_attribute", "measure", "parameters", "subgroup")
            cell = Family(*(row[name] for name in names)), row["group"]
            row = _as_counts(row, publisher.statistics.get(cell))
        out.append({**row, "parameters": _parameters(row, fates)})
    return _built(PUBLISHED_MEASURES, out)


def _parameters(row: Row, fates: Fates) -> str:
    """Parameters as printed: the numbers of people sampled are numbers of people, too."""
    if f'"{SAMPLED}"' not in row["parameters"] or not fates.policy.protects:
        return str(row["parameters"])
    parameters = json.loads(row["parameters"])
    measured = row["protected_attribute"], row["group"], row["decision_maker"]
    sampled, of = (fates.printed(*measured, number) for number in asked_and_of(parameters[SAMPLED]))
    parameters[SAMPLED] = "withheld" if sampled is None or of is None else as_sampled(sampled, of)
    return json.dumps(parameters, sort_keys=True)


def published_curves(
    declared: Table, curves: pa.Table, publisher: Publisher, fates: Fates, references: Mapping[str, str]
) -> pa.Table:
    """A table of curves as it is published: each point as a row of measures would be, its lists withheld together.

    Ends are not published: no interval of a point is known to cover as often as it says.
    """
    rows = curves.to_pylist()
    policy = fates.policy
    points = iter(publisher.published(list(rows_of(rows, references)) if policy.protects else []))
    for row in rows:
        nothing = [None] * len(row["parameters"])
        row |= {"low": nothing, "high": nothing}
        if policy.protects:
            published_points = [_told_of_point(row, i, points, fates) for i in range(len(row["parameters"]))]
            row |= {name: [point[name] for point in published_points] for name in ("parameters", *LISTS)}
        elif policy.as_counts:
            few = [
                None not in (value, n, events) and 0 < n < policy.as_counts
                for value, n, events in zip(row["value"], row["n"], row["events"], strict=True)
            ]
            row["value"] = [None if small else value for small, value in zip(few, row["value"], strict=True)]
            row["note"] = [str(Note.FEW) if small else note for small, note in zip(few, row["note"], strict=True)]
    return _built(published(declared), rows)


def _told_of_point(curve: Row, place: int, points: Iterator[Row], fates: Fates) -> dict[str, Any]:
    """The entries of a point in the lists of its curve, from its published rows, which come next."""
    row = next(points)
    untold = row["value"] is None and (curve["value"][place] is not None or row["reason"].startswith("withheld"))
    entries = {name: row[name] for name in ("value", "n", "events")}
    entries |= {"low": None, "high": None, "parameters": _parameters(row, fates)}
    entries |= {"note": row["reason"] if untold else row["note"].removesuffix(DESCRIBED).rstrip("; ")}
    entries |= {"drawn": None, "drawn_low": None, "drawn_high": None, "draws": None, "drawn_note": ""}
    if curve["drawn"][place] is not None:
        draws_row = next(points)
        entries |= {
            "drawn": draws_row["value"],
            "drawn_low": draws_row["low"],
            "drawn_high": draws_row["high"],
            "draws": draws_row["n"],
        }
        gone = draws_row["value"] is None
        entries["drawn_note"] = draws_row["reason"] if gone else curve["drawn_note"][place]
    return entries


def _as_counts(row: Row, statistic: Statistic | Given | None) -> dict[str, Any]:
    """A rate of few people as its counts, without a state; what compares one has neither. Other numbers stay."""
    events = row["events"]
    if events is None and isinstance(statistic, Statistic) and is_share(statistic.values):
        events = round(row["value"] * row["n"])
    compares = row["measure"].endswith(("_difference", "_ratio")) and row["subgroup"] == 0
    if events is None and not compares:
        return dict(row)
    numbers = dict.fromkeys(("value", "low", "high", "p", "q"))
    reason = f"{events} of {row['n']}" if events is not None else f"compares a rate of {row['n']} people"
    return {**row, **numbers, "state": State.NOT_RUN, "reason": reason, "note": str(Note.FEW)}


def _quantiles(findings: pa.Table, fates: Fates) -> dict[Cell, float]:
    """The 95 % quantile of the costs of recourse, printed in place of the largest cost, which is one person's."""
    if not fates.policy.protects or findings.num_rows == 0:
        return {}
    frame = findings.to_pandas()
    out = {}
    of = ["method", "decision_maker", "protected_attribute", "group"]
    for key, rows in frame[(frame["method"] == "fgce") & (frame["subgroup"] == 0)].groupby(of):
        method, maker, attribute, group = (str(part) for part in key)
        costs = rows["statistic"].dropna().to_numpy(dtype=np.float64)
        value = profiles.extreme(fates.policy, costs, profiles.End.LARGEST)
        if not math.isnan(value):
            out[Family(method, maker, attribute, "d0", "{}"), group] = value
    return out


# --------------------------------------------------------------------------------------------------------------------
# Publishes verdicts and agreement; a withheld group discloses neither its numbers nor its state.

WITHHELD = "withheld: it rests on few people"
COARSE = "its numbers are withheld, since they would tell those of a few people"
_COUNTS = {"n": "group", "events": "group", "n_reference": "reference_group", "events_reference": "reference_group"}
_P = ("p_breach", "p_breach_holm", "p_within")
_PLAIN = (
    *("value", "low", "high", "plain_low", "plain_high", "robustness", "se", "bias", "detectable"),
    *("part_detectable", "expected", "ratio", "ratio_low", "ratio_high", "hull_low", "hull_high"),
)
_MOST_DIGITS = 5
_COARSE: Mapping[str, Callable[[float], int]] = {
    "low": math.floor, "plain_low": math.floor, "hull_low": math.floor,
    "high": math.ceil, "plain_high": math.ceil, "hull_high": math.ceil, "se": math.ceil,
}  # fmt: skip
"""Where counts are rounded, ends go outwards: an interval covers, and so does the band of years pooled by the error."""


def populations_judged(verdicts: Sequence[Row], crowd: Crowd) -> frozenset[Population]:
    """The populations that verdicts are about: the groups and their references, as each decision maker has them."""
    decided = [place for place in crowd.bases(()) if place.reason == ""]
    return frozenset(
        whole_of(row["protected_attribute"], group, place)
        for row in verdicts
        if row["role"] != "theory" and row["limit"] is not None
        for group in (row["group"], row["reference_group"])
        if group
        for place in (crowd.source, crowd.used, *(p for p in decided if p.decision_maker == row["decision_maker"]))
    )


def verdicts(rows: Sequence[Row], hidden: Collection[Cell], fates: Fates) -> pa.Table:
    """The published table, from the rows of ``VERDICTS``."""
    cells = _cells(hidden)
    gone = {id(row): _is_hidden(row, cells, fates) for row in rows}
    out: list[Row] = []
    for row in rows:
        if row["role"] == "theory":
            theory_rows = [other for other in rows if other["theory"] == row["theory"] and other["role"] != "theory"]
            hidden_rows = [other for other in theory_rows if gone[id(other)]]
            out.append({**row, "reason": _published_reason(row["reason"], theory_rows, hidden_rows)})
        else:
            out.append(_withheld(row) if gone[id(row)] else _shown(row, fates))
    return _built(PUBLISHED_VERDICTS, out)


_OF_VERDICT = {"value": "value", "low": "plain_low", "high": "plain_high", "n": "n"}
"""Number beside a sign -> the column of verdicts that it is."""
_NULL = ("null_low", "null_high")


def agreement(
    rows: Sequence[Row], verdict_rows: Sequence[Row], hidden: Collection[Cell], fates: Fates, seed: int = 0
) -> pa.Table:
    """The published table, from the rows of ``AGREEMENT`` and of ``VERDICTS``; the seed permutes labels."""
    names = ("theory", "decision_maker", "protected_attribute", "group", "method", "measure")
    cells = _cells(hidden)
    verdict_of = {tuple(row[name] for name in names): row for row in verdict_rows if row["role"] != "watch"}
    blank = {"sign": "too_few", "state": State.INCONCLUSIVE, **dict.fromkeys(("value", "low", "high", "p", "n"))}
    out, rng = [], np.random.default_rng(seed)
    for row in rows:
        verdict_row = verdict_of[tuple(row[name] for name in names)]
        if _is_hidden(verdict_row, cells, fates):
            out.append({**row, **blank})
            continue
        printed = _shown(verdict_row, fates)
        numbers = {name: printed[of] for name, of in _OF_VERDICT.items()}
        p = row["p"] if row["p"] is None or not fates.policy.protects else profiles.p_value(fates.policy, row["p"])
        counts = [printed[name] for name in _COUNTS]
        if row["measure"] == OUTCOME.measure and None not in counts:
            ends = null_ratio(counts, rng)
            numbers |= {n: round(end, 3) if math.isfinite(end) else None for n, end in zip(_NULL, ends, strict=True)}
        out.append({**row, **numbers, "p": p})
    return _built(PUBLISHED_AGREEMENT, out)


def _cells(hidden: Collection[Cell]) -> set[tuple[str, ...]]:
    """Keys of the withheld measures: attribute, group, decision maker, and the measure unless it is a decision rate."""
    return {
        (f.protected_attribute, group, f.decision_maker, *_measured(f.method, f.measure, f.parameters))
        for f, group in hidden
        if f.method == OUTCOMES_METHOD or not f.subgroup
    }


def _measured(method: str, measure: str, parameters: str) -> tuple[str, ...]:
    return () if method == OUTCOMES_METHOD else (method, measure, unsampled(parameters))


def _is_hidden(row: Row, cells: Collection[tuple[str, ...]], fates: Fates) -> bool:
    if row["role"] == "theory":
        return False
    maker, attribute = row["decision_maker"], row["protected_attribute"]
    name, _, parameters = row["measure"].partition(" ")
    measured = _measured(row["method"], base_name(name), parameters or "{}")
    is_gone = fates.are_decisions_gone if row["method"] == OUTCOMES_METHOD else fates.is_gone
    return any(
        is_gone(attribute, group, maker)
        or fates.is_ranged(attribute, group, maker)
        or (attribute, group, maker) in cells
        or (attribute, group, maker, *measured) in cells
        for group in (row["group"], row["reference_group"])
        if group
    )


def _published_reason(reason: str, theory_rows: Sequence[Row], gone: Sequence[Row]) -> str:
    """The reason for the state of a theory without the withheld groups, whose states it would disclose."""
    words, colon, named = reason.partition(": ")
    if not colon or not gone:
        return reason
    hidden = {row["group"] for row in gone}
    groups = sorted({row["group"] for row in theory_rows}, key=lambda group: (-len(group), group))
    mentions = re.findall(rf"(?:^|, )((?:{'|'.join(map(re.escape, groups))})(?: \([^)]*\))?)(?=, |$)", named)
    about = [(item, next(group for group in groups if item.startswith(group))) for item in mentions]
    remaining = [item for item, group in about if group not in hidden]
    count = len({group for _, group in about if group in hidden})
    mentioned = [*remaining, *([f"{count} withheld"] if count else [])]
    return f"{words}: {', '.join(mentioned)}" if mentioned else words


def _withheld(row: Row) -> Row:
    names = ("theory", "protected_attribute", "group", "reference_group", "decision_maker", "method", "measure", "role")
    published_state = {"state": State.INCONCLUSIVE, "reason": WITHHELD, "withheld": True}
    if row["reason"] == REPORTED:  # that a group is small is no secret where its numbers are withheld
        published_state |= {"state": State.INFORMATION, "reason": REPORTED}
    blank = dict.fromkeys(column.name for column in PUBLISHED_VERDICTS.columns)
    return {**blank, **{name: row[name] for name in (*names, "limit", "side", "assumption")}, **published_state}


def _shown(row: Row, fates: Fates) -> Row:
    """A row with its numbers rounded as all others: two decimals of what is a quotient of rounded counts.

    Where those counts are rounded so coarsely that no rate is printed, the quotient goes, too: only the state stays.
    """
    policy = fates.policy
    if 0 < (row["n"] or 0) < policy.as_counts and row["role"] != "theory":
        counts_alone = f"{row['events']} of {row['n']} denied" if row["events"] is not None else f"{row['n']} people"
        return {**row, **dict.fromkeys((*_PLAIN, *_P, "needed", "se")), "state": State.NOT_RUN, "reason": counts_alone}
    if not policy.protects:
        return row
    maker, attribute = row["decision_maker"], row["protected_attribute"]
    counts = {
        name: None if row[name] is None or not row[group] else fates.printed(attribute, row[group], maker, row[name])
        for name, group in _COUNTS.items()
    }
    coarse = fates.base(maker) > 1 and row["method"] == OUTCOMES_METHOD
    numbers = {
        name: _number(row[name], row["limit"], fates, _COARSE.get(name, round) if coarse else None) for name in _PLAIN
    }
    chances = {name: None if row[name] is None else profiles.p_value(policy, row[name]) for name in _P}
    required = None if row["needed"] is None else profiles.significant(policy, row["needed"], 2)
    reason, exact, printed = row["reason"], row["detectable"], numbers["detectable"]
    if exact is not None and printed is not None:  # the reason names the smallest detectable effect, too
        exact_text = f"{exact:.3f}".rstrip("0").rstrip(".")
        reason = reason.replace(f"; {exact_text} or ", f"; {printed:g} or ")
    published_row = {**row, **counts, **numbers, **chances, "needed": required, "reason": reason}
    groups = [group for group in (row["group"], row["reference_group"]) if group]
    place = decided_place(maker)
    if coarse and any(fates.is_coarse(whole_of(attribute, group, place)) for group in groups):
        published_row |= dict.fromkeys((*_PLAIN, *_P, "needed", "events", "events_reference"))
        published_row["reason"] = f"{row['reason'].partition('; ')[0]}; {COARSE}"
    return published_row


def _number(
    value: float | None, limit: float | None, fates: Fates, coarse: Callable[[float], int] | None
) -> float | None:
    """Three digits, or two decimals; more where it would else seem to lie on the other side of the limit, or on it."""
    if value is None:
        return None
    if coarse:
        return coarse(round(100 * value, 9)) / 100 + 0.0
    for count in range(profiles.SIGNIFICANT, _MOST_DIGITS + 1):
        printed = profiles.significant(fates.policy, value, count) + 0.0
        if limit is None or math.copysign(1, printed - limit) == math.copysign(1, value - limit) != 0:
            break
    return printed


def _built(table: Table, rows: Sequence[Row]) -> pa.Table:
    return table.build(**{column.name: [row[column.name] for row in rows] for column in table.columns})
