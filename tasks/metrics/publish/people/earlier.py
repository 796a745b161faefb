"""Earlier published runs over the same rows: what they hand on, and everybody whom their counts and this run's count.

Rows are matched by their identifier. Of a row that is not in a run its groups there are those of rows like it: which
of them does not matter, since it is in no place of that run. What two places of one kind differ by, such as rows that
this run uses and the earlier one left out, is told by subtraction: it is protected where it is small.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from schemas.tables.publication import EARLIER, PUBLICATION_KINDS, PUBLICATION_ROWS
from tasks.metrics.publish.algorithm.populations import (
    ALL,
    Base,
    Count,
    Event,
    People,
    Place,
    Population,
    Published,
)
from tasks.metrics.publish.algorithm.profiles import Policy, small
from tasks.metrics.publish.people.crowd import DENIED, LENDER, Crowd
from tasks.metrics.publish.people.kinds import Marked, Named, kinds_of, linked, people_of
from tasks.numerics.arrays import Bools, Longs

Row = Mapping[str, Any]


class Joint(NamedTuple):
    """Everybody of this run and of earlier ones, with what a reader knows of the earlier ones."""

    people: People
    beside: tuple[Published, ...]
    protect: tuple[Count, ...]


@dataclass(frozen=True, eq=False)
class Earlier:
    """One earlier run."""

    run: str
    numbers: Sequence[Row]
    """Rows of its publication."""
    kinds: Sequence[Row]
    """Rows of ``PUBLICATION_KINDS``."""
    kind_of: pd.Series
    """Kind of each row of its source, by ``row_id``."""

    def called(self, attribute: str) -> str:
        """The name of its attribute beside those of this run: groups of one name may have been others then."""
        return f"{attribute} of {self.run}"

    @cached_property
    def named(self) -> list[Named]:
        """Its attributes."""
        groups: dict[tuple[str, str], dict[str, None]] = {}
        for row in self._told("group"):
            groups.setdefault((row["protected_attribute"], row["columns"]), {})[row["group"]] = None
        return [Named(self.called(name), tuple(json.loads(c)), tuple(of)) for (name, c), of in groups.items()]

    @cached_property
    def marked(self) -> Marked:
        """What is told of each kind of its rows, ``(kinds,)``."""
        size = int(self.kind_of.max()) + 1
        code = {each.name: {group: n for n, group in enumerate(each.groups)} for each in self.named}
        codes = {name: np.full(size, -1, dtype=np.int64) for name in code}
        for row in self._told("group"):
            name = self.called(row["protected_attribute"])
            codes[name][row["kind"]] = code[name][row["group"]]
        bases = {self._population(row).place: np.zeros(size, dtype=bool) for row in self.numbers}
        for row in self._told("place"):
            bases[Place(Base(row["base"]), row["decision_maker"], row["reason"], self.run)][row["kind"]] = True
        makers = dict.fromkeys(place.decision_maker for place in bases if place.decision_maker)
        events = {Event(DENIED, maker, self.run): np.zeros(size, dtype=bool) for maker in makers}
        for row in self._told("denied"):
            events[Event(DENIED, row["decision_maker"], self.run)][row["kind"]] = True
        return Marked(codes, bases, events, np.ones(size, dtype=np.int64))

    def _told(self, what: str) -> Iterator[Row]:
        return (row for row in self.kinds if row["property"] == what)

    def published(self) -> Iterator[Published]:
        """What a reader learned of each of its counts."""
        for row in self.numbers:
            count, *more = [Count(population, row["event"]) for population in self._populations(row)]
            if more:
                yield Published(count, row["low"], row["high"], tuple(more))
                continue
            yield from _within(count, row["low"], row["high"])
            if row["event"]:
                yield from _within(count._replace(rest=True), row["rest_low"], row["rest_high"])

    def withheld(self) -> Iterator[Population]:
        """The populations that it withheld for their size."""
        yield from (self._population(row) for row in self.numbers if row["fate"] == "withheld_small")

    def _populations(self, row: Row) -> list[Population]:
        """The populations that a number is about: several where withheld groups are shown as one."""
        groups = json.loads(row["groups"]) if row["groups"] else [row["group"]]
        return [self._population({**row, "group": group}) for group in groups]

    def _population(self, row: Row) -> Population:
        whose = self.called(row["protected_attribute"]), row["group"], row["part"], row["decision_maker"]
        return Population(*whose, Base(row["base"]), row["reason"], self.run)


def _within(count: Count, low: int | None, high: int | None) -> Iterator[Published]:
    if low is not None or high is not None:
        yield Published(count, -np.inf if low is None else low, np.inf if high is None else high)


def earlier_of(tables: Mapping[str, pa.Table], runs: Sequence[tuple[str, Sequence[int]]]) -> list[Earlier]:
    """The earlier runs, by their ids and the rows of each table of ``EARLIER`` that are theirs, one after another."""
    out, starts = [], [0] * len(EARLIER)
    for run, sizes in runs:
        parts = [tables[t.name].slice(at, n) for t, at, n in zip(EARLIER, starts, sizes, strict=True)]
        numbers, rows, kinds = parts
        kind_of = rows.to_pandas().set_index("row_id")["kind"]
        out.append(Earlier(run, numbers.to_pylist(), kinds.to_pylist(), kind_of))
        starts = [at + n for at, n in zip(starts, sizes, strict=True)]
    return out


def handed_on(crowd: Crowd, lacking: Sequence[tuple[str, str]]) -> dict[str, pa.Table]:
    """In the shapes of ``PUBLICATION_ROWS`` and ``PUBLICATION_KINDS``: whom the numbers of this run count.

    Nothing of a run whose refused rows are kept as a sample: which they are is not known.
    """
    if not crowd.row_by_row:
        return {table.name: table.empty() for table in (PUBLICATION_ROWS, PUBLICATION_KINDS)}
    marked = crowd.marked(lacking)
    first, kind, _ = kinds_of(marked)
    rows = list(_properties(marked.at(first), crowd.named))
    kinds = {c.name: [row.get(c.name, "") for row in rows] for c in PUBLICATION_KINDS.columns}
    return {
        PUBLICATION_ROWS.name: PUBLICATION_ROWS.build(row_id=crowd.frame.index.astype(str), kind=kind),
        PUBLICATION_KINDS.name: PUBLICATION_KINDS.build(**kinds),
    }


def _properties(marked: Marked, named: Sequence[Named]) -> Iterator[Row]:
    for each in named:
        said = {"property": "group", "protected_attribute": each.name, "columns": json.dumps(each.columns)}
        for kind, code in enumerate(marked.codes[each.name].tolist()):
            yield {**said, "kind": kind, "group": each.groups[code]}
    for place, inside in marked.bases.items():
        said = {"base": place.base.value, "decision_maker": place.decision_maker, "reason": place.reason}
        yield from ({**said, "property": "place", "kind": int(kind)} for kind in np.flatnonzero(inside))
    for event, inside in marked.events.items():
        said = {"property": "denied", "decision_maker": event.decision_maker}
        yield from ({**said, "kind": int(kind)} for kind in np.flatnonzero(inside))


def together(crowd: Crowd, lacking: Sequence[tuple[str, str]], runs: Sequence[Earlier], policy: Policy) -> Joint:
    """Everybody of this run and of earlier ones."""
    index = crowd.frame.index
    rows = index.union([row for each in runs for row in each.kind_of.index.difference(index)], sort=False).unique()
    own = index.get_indexer(rows).astype(np.int64)
    marked, there = crowd.marked(lacking).at(own), [own >= 0]
    for each in runs:
        kinds = each.kind_of.reindex(rows).fillna(-1).to_numpy(dtype=np.int64)
        marked = marked.with_(each.marked.at(kinds))
        there.append(kinds >= 0)
    named = [*crowd.named, *(attribute for each in runs for attribute in each.named)]
    alike = _decided_alike(marked, ["", *(each.run for each in runs)], there)
    alone = [{event} for event in marked.events if event not in alike]
    marked = marked._replace(codes=_filled(marked.codes, named))
    people = people_of(marked, named, [alike, *alone])
    protect = [population for each in runs for population in each.withheld()]
    for each in runs:
        people, apart = _apart(people, crowd, each)
        protect += apart
    beside = tuple(published for each in runs for published in each.published())
    return Joint(people, beside, tuple(_small(people, protect, policy)))


def _decided_alike(marked: Marked, runs: Sequence[str], there: Sequence[Bools]) -> set[Event]:
    """The lender's denials of this run, and of those that have the same of all common rows: one decision, not several.

    What one run knows of rows that another lacks is carried over.
    """
    first = Event(DENIED, LENDER)
    known, denied, out = there[0].copy(), marked.events[first].copy(), {first}
    for run, inside in zip(runs[1:], there[1:], strict=True):
        theirs = marked.events.get(Event(DENIED, LENDER, run))
        if theirs is None or (denied != theirs)[known & inside].any():
            continue
        denied = np.where(known, denied, theirs)
        known |= inside
        out.add(Event(DENIED, LENDER, run))
    marked.events.update(dict.fromkeys(out, denied))
    return out


def _filled(codes: Mapping[str, Longs], named: Sequence[Named]) -> dict[str, Longs]:
    """Codes of every row; of attributes that are linked, one that is not known (-1) is that of a row like it."""
    out, column_of = dict(codes), dict(linked(named))
    for column in dict.fromkeys(column_of.values()):
        names = [name for name, of in column_of.items() if of == column]
        table = np.column_stack([codes[name] for name in names])
        kinds, inverse = np.unique(table, axis=0, return_inverse=True)
        whole = kinds[(kinds >= 0).all(axis=1)]
        for number in np.flatnonzero((kinds < 0).any(axis=1)):
            known = kinds[number] >= 0
            like = whole[(whole[:, known] == kinds[number][known]).all(axis=1)]
            kinds[number] = like[0] if like.size else kinds[number]
        out |= dict(zip(names, kinds[inverse.ravel()].T, strict=True))
    return out


def _apart(people: People, crowd: Crowd, earlier: Earlier) -> tuple[People, list[Population]]:
    """Who is in a place of one run alone, by the groups of this run, and the people with these places.

    A place is compared with the one of the same kind.
    """
    bases, events, out = dict(people.bases), dict(people.events), list[Population]()
    for place in [each for each in people.bases if not each.run and each._replace(run=earlier.run) in people.bases]:
        for mine, other in (("", earlier.run), (earlier.run, "")):
            alone = place._replace(run=f"{mine or 'this run'} without {other or 'this run'}")
            bases[alone] = people.bases[place._replace(run=mine)] & ~people.bases[place._replace(run=other)]
            happened = people.events.get(Event(DENIED, place.decision_maker, mine))
            if happened is not None:
                events[Event(DENIED, place.decision_maker, alone.run)] = happened
            names = [(each.name, group) for each in crowd.named for group in (ALL, *each.groups)]
            whose = place.decision_maker, place.base, place.reason, alone.run
            out += [Population(attribute, group, 0, *whose) for attribute, group in names]
    return replace(people, bases=bases, events=events), out


def _small(people: People, populations: Sequence[Population], policy: Policy) -> Iterator[Count]:
    """The counts of small populations, those with and without a denial too."""
    for each in dict.fromkeys(populations):
        if small(policy, people.size(Count(each))):
            yield Count(each)
            if Count(each, DENIED).happening in people.events:
                yield from (Count(each, DENIED, rest) for rest in (False, True))
