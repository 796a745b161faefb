"""Everybody whom a published count counts: the records of the source, and which populations are printed.

Attributes over a common column are one column here: the combination of their groups. The groups are a function of it,
as the auditor wants, and what links the attributes stays known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa

from schemas.audit.spec import Protected
from schemas.tables.applications import ANY
from schemas.terms import DecisionMaker, Refusal
from tasks.metrics.publish.algorithm.populations import (
    ALL,
    Base,
    Count,
    Event,
    People,
    Place,
    Population,
    populations_of,
)
from tasks.metrics.publish.people import records
from tasks.metrics.publish.people.kinds import Marked, Named, people_of
from tasks.numerics.arrays import Bools, Longs

DENIED = "denied"
LENDER = DecisionMaker.LENDER.value
SOURCE, USED = Place(Base.SOURCE), Place(Base.USED)
APPLIED = Place(Base.SOURCE, LENDER)
"""Records with a decision that could be read, and of which the lender's approval rate is."""
_LACKS = "lacks "
Line = tuple[str, str, str]
"""Stage, reason and column of refused records."""


def line_place(line: Line) -> Place:
    """The place of the records that one line of the waterfall refuses."""
    return Place(Base.REFUSED, LENDER, ": ".join(part for part in line if part))


def left_place(stage: str) -> Place:
    """The place of the records that are left after a stage."""
    return Place(Base.SOURCE, reason=f"left by {stage}")


def decided_place(maker: str) -> Place:
    """The place of the records that rates of a decision maker are of."""
    return APPLIED if maker == LENDER else Place(Base.USED, maker)


def lacking_place(feature: str, reason: str) -> Place:
    """The place of applications that lack a feature for a reason."""
    return Place(Base.SOURCE, LENDER, f"{_LACKS}{feature}: {reason}")


@dataclass(frozen=True, eq=False)
class Crowd:
    """The records of the source, in one order."""

    frame: pd.DataFrame
    """As ``Records.frame``: an application, or a kind of other refused rows."""
    groups: pd.DataFrame
    """Group of each record by attribute; index and order of ``frame``."""
    decided: pd.DataFrame
    """By decision maker: whether a record was approved; null where it was not decided, or not readably."""
    used_by: pd.DataFrame
    """By decision maker: whether a record is among its decisions."""
    lacks: pd.DataFrame
    """By feature: whether an application lacks it; and ``exempt``."""
    protected: tuple[Protected, ...]

    @classmethod
    def of(
        cls,
        told: records.Told,
        decisions: pa.Table,
        protected: Sequence[Protected],
        features: Sequence[str],
    ) -> "Crowd":
        """From the tables as they are read; ``features`` that somebody lacks."""
        found = records.Records.of(told, [p.name for p in protected], features)
        frame, given, rows = found.frame, found.given, found.frame.index
        made = decisions.select(["row_id", "decision_maker", "favourable"]).to_pandas()
        by = made.pivot(index="row_id", columns="decision_maker", values="favourable").reindex(rows)
        decided = by.astype("boolean").assign(**{LENDER: frame["favourable"].astype("boolean")})
        lacks = given[list(features)].isna().assign(exempt=given["exempt"].notna())
        lacks = lacks.reindex(rows).astype("boolean").fillna(False)
        return cls(frame, found.groups, decided, by.notna(), lacks, tuple(protected))

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """Lines of refusals: by stage in the order of the audit, then by falling size."""
        sizes = self.frame.dropna(subset=["stage"]).groupby(["stage", "reason", "column"])["weight"].sum()
        order = {stage: place for place, stage in enumerate(records.ORDER)}
        named = [(str(stage), str(reason), str(column)) for stage, reason, column in sizes.index]
        ranked = zip(named, sizes.tolist(), strict=True)
        return tuple(line for line, n in sorted(ranked, key=lambda r: (order.get(r[0][0], 99), r[0][0], -r[1], r[0])))

    @cached_property
    def stages(self) -> tuple[str, ...]:
        """Stages that refused records, in order."""
        return tuple(dict.fromkeys(stage for stage, *_ in self.lines))

    @property
    def makers(self) -> tuple[str, ...]:
        """Decision makers with decisions of their own, the lender first."""
        return (LENDER, *(str(maker) for maker in self.used_by if maker != LENDER))

    def group_names(self, attribute: str) -> tuple[str, ...]:
        """Groups of an attribute by falling size in the source."""
        sizes = self.frame["weight"].groupby(self.groups[attribute]).sum()
        return tuple(sorted(sizes.index, key=lambda group: (-sizes[group], group)))

    def lacking(self, feature: str, reason: str) -> Bools:
        """Which applications lack a feature for a reason, ``(rows,)``."""
        exempt = self.lacks["exempt"].to_numpy(dtype=bool)
        if reason == ANY:
            return np.asarray(self.lacks.drop(columns="exempt").any(axis=1).to_numpy(dtype=bool))
        gone = self.lacks[feature].to_numpy(dtype=bool)
        return np.asarray(gone & (exempt if reason == Refusal.EXEMPT_COVARIATE else ~exempt))

    @cached_property
    def source(self) -> Place:
        """The place of all records: that of applications where all are."""
        return APPLIED if self._applied.all() else SOURCE

    @cached_property
    def used(self) -> Place:
        """The place of all that no stage refused: that of the lender's decisions where all have one."""
        return Place(Base.USED, LENDER) if (self._used(LENDER) == (self._first < 0)).all() else USED

    def _used(self, maker: str) -> Bools:
        """Who is among the decisions of a decision maker, ``(rows,)``."""
        used = self.used_by[maker].to_numpy(dtype=bool) if maker in self.used_by else self._first < 0
        return np.asarray(used)

    @property
    def _applied(self) -> Bools:
        return np.asarray(self.frame["applied"].to_numpy(dtype=bool))

    @cached_property
    def _first(self) -> Longs:
        """Number of each record's line, -1 where it is used, ``(rows,)``."""
        if not self.lines:
            return np.full(len(self.frame), -1, dtype=np.int64)
        known = pd.MultiIndex.from_tuples(self.lines)
        named = pd.MultiIndex.from_frame(self.frame[["stage", "reason", "column"]])
        return np.asarray(known.get_indexer(named), dtype=np.int64)

    def readable(self, line: Line) -> bool:
        """Whether every decision on the records of a line could be read: else no share of them is told."""
        mine = self._first == self.lines.index(line)
        return bool(self.decided[LENDER].notna().to_numpy()[mine].all())

    def bases(self, lacking: Sequence[tuple[str, str]]) -> dict[Place, Bools]:
        """Records in each place, ``(rows,)``; ``lacking`` features and reasons."""
        every, applied = np.ones(len(self.frame), dtype=bool), self._applied
        out = {self.source: every, APPLIED: applied, self.used: self._first < 0}
        for number, line in enumerate(self.lines):
            out[line_place(line)] = self._first == number
        for stage in self.stages[:-1]:
            past = [number for number, line in enumerate(self.lines) if self._before(line[0], stage)]
            out[left_place(stage)] = ~np.isin(self._first, past)
        for maker in self.makers:
            out[Place(Base.USED, maker)] = self._used(maker)
        for feature, reason in lacking:
            out[lacking_place(feature, reason)] = self.lacking(feature, reason)
        return out

    def _before(self, one: str, other: str) -> bool:
        return self.stages.index(one) <= self.stages.index(other)

    def denied(self, maker: str) -> Bools:
        """Who was denied, ``(rows,)``; not those whose decision could not be read."""
        return np.asarray((~self.decided[maker]).fillna(False).to_numpy(dtype=bool))

    def people(self, lacking: Sequence[tuple[str, str]]) -> People:
        """The records as the auditor takes them: a row for each kind, and of weight 0 one for what nobody got."""
        return people_of(self.marked(lacking), self.named, [{Event(DENIED, maker)} for maker in self.makers])

    @property
    def row_by_row(self) -> bool:
        """Whether every record is a row of its own, which can be told among those of another run."""
        return bool((self.frame["weight"] == 1).all())

    @property
    def named(self) -> list[Named]:
        """The attributes with their groups by falling size."""
        return [Named(p.name, p.columns, self.group_names(p.name)) for p in self.protected]

    def marked(self, lacking: Sequence[tuple[str, str]]) -> Marked:
        """What is told of each record, in the order of ``frame``."""
        codes = {p.name: self._codes(p.name) for p in self.protected}
        events = {Event(DENIED, maker): self.denied(maker) for maker in self.makers}
        return Marked(codes, self.bases(lacking), events, self.frame["weight"].to_numpy(dtype=np.int64))

    def _codes(self, attribute: str) -> Longs:
        numbers = {group: number for number, group in enumerate(self.group_names(attribute))}
        return np.asarray(self.groups[attribute].map(numbers).to_numpy(dtype=np.int64))


def is_lacking(population: Population) -> bool:
    """Whether a population is of those who lack a feature: it is told of everybody alone."""
    return population.base is Base.SOURCE and population.reason.startswith(_LACKS)


def counts_of(people: People) -> list[Count]:
    """Every count of people that any output may print: n of all populations, and the denied among them."""
    out: list[Count] = []
    for each in populations_of(people):
        if is_lacking(each) and (each.group != ALL or each.attribute != people.attributes[0].name):
            continue
        out.append(Count(each))
        if each.decision_maker:
            out.append(Count(each, DENIED))
    return out


def whole_of(attribute: str, group: str, place: Place) -> Population:
    """A group in a place."""
    return Population(attribute, group, 0, place.decision_maker, place.base, place.reason)
