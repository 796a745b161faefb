"""The people in published counts, also in those of earlier runs."""

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.audit.spec import Protected
from schemas.errors import IntegrityError
from schemas.tables.applications import ANY
from schemas.tables.verdicts import EARLIER, PUBLICATION_KINDS, PUBLICATION_ROWS
from schemas.terms import DecisionMaker, Refusal
from tasks.metrics.publish.algorithm.populations import (
    ALL,
    Attribute,
    Base,
    Count,
    Event,
    People,
    Place,
    Population,
    Published,
    populations_of,
)
from tasks.metrics.publish.algorithm.profiles import Policy, small
from tasks.numerics.arrays import Bools, Longs

if TYPE_CHECKING:
    import pandas as pd

# --------------------------------------------------------------------------------------------------------------------
# The records of the source: applications and refused rows that are kept, each for itself, and the others by kind.
#
# What became of an application is known row by row, from the table ``refusals`` or from what it lacks, as
# ``preprocess`` refuses it; the exact counts say how many other records there are of each kind.


ORDER = ("ingest", "preprocess", "score", "connect")
"""Stages in the order in which they refuse."""
UNKNOWN = "(not readable)"
"""Group of records whose group could not be read."""
_LINE = ["stage", "reason", "column"]
_LACKING = [str(Refusal.MISSING_COVARIATE), str(Refusal.EXEMPT_COVARIATE)]


@dataclass(frozen=True)
class SourceTables:
    """What the stages wrote of the rows, as tables."""

    applications: pa.Table
    memberships: pa.Table
    refusals: pa.Table
    refusal_counts: pa.Table


@dataclass(frozen=True, eq=False)
class Records:
    """Records in one order."""

    frame: "pd.DataFrame"
    """Index ``row_id``, or the kind. Columns: stage, reason, column of the refusal (null where used), favourable,
    ``applied`` and ``weight``, the number of records that a row stands for."""
    groups: "pd.DataFrame"
    """Group of each by attribute; index and order of ``frame``."""
    applications: "pd.DataFrame"
    """Of applications: ``favourable``, ``exempt`` and the features; index ``row_id``."""

    @classmethod
    def of(cls, tables: SourceTables, names: Sequence[str], features: Sequence[str]) -> "Records":
        """From the tables.

        Args:
            tables: the tables.
            names: of the protected attributes.
            features: that some application lacks, in the order in which ``preprocess`` looks at them.

        Raises:
            IntegrityError: more applications are refused than the counts say.
        """
        import pandas as pd

        columns = ["row_id", "favourable", "exempt", *features]
        applications = tables.applications.select(columns).to_pandas().set_index("row_id").sort_index()
        wide = _groups(tables.memberships, applications.index, names)
        lines = _lines(tables, applications, list(features)).assign(applied=True, weight=1)
        refusals = tables.refusals.select(["row_id", *_LINE, "favourable"]).to_pandas().set_index("row_id")
        refusals = refusals[~refusals.index.isin(applications.index)]
        rows = refusals.assign(column=refusals["column"].fillna(""), applied=False, weight=1).astype(
            {"favourable": object}
        )
        whose = _groups(tables.memberships, rows.index, names)
        all_lines = pd.concat([lines.join(wide), rows.join(whose)]) if len(rows) else lines.join(wide)
        other_lines, theirs = _others(tables.refusal_counts, all_lines, list(names))
        lines["favourable"] = applications["favourable"].astype("boolean")
        parts = [
            part
            for part in (lines, rows.assign(favourable=rows["favourable"].astype("boolean")), other_lines)
            if len(part)
        ]
        frame = pd.concat(parts) if len(parts) > 1 else lines
        return cls(frame, pd.concat([wide, whose, theirs]).fillna(UNKNOWN), applications)


def _groups(memberships: pa.Table, ids: "pd.Index[Any]", names: Sequence[str]) -> "pd.DataFrame":
    """Group by attribute; null of a record without one. A pivot of a large file takes gigabytes."""
    import pandas as pd

    wanted, groups = pa.array(ids, pa.string()), dict[str, Any]()
    for name in names:
        of_attribute = memberships.filter(pc.equal(memberships["protected_attribute"], name)).combine_chunks()
        place = pc.index_in(wanted, value_set=of_attribute["row_id"])
        groups[name] = of_attribute["group"].take(place).to_numpy()
    return pd.DataFrame(groups, index=ids, columns=list(names), dtype=object)


def _lines(tables: SourceTables, applications: "pd.DataFrame", features: list[str]) -> "pd.DataFrame":
    """Stage, reason, column and the decision as the refusal has it, of each application; null of one that is used."""
    import pandas as pd

    lines = pd.DataFrame(None, index=applications.index, columns=[*_LINE, "favourable"], dtype=object)
    by_code = pc.any(pc.is_in(tables.refusal_counts["reason"], value_set=pa.array(_LACKING))).as_py()
    gone = applications[features].isna().to_numpy()
    lacks = gone.any(axis=1) if by_code and features else np.zeros(len(applications), dtype=bool)
    if lacks.any():
        exempt, decided = applications["exempt"][lacks], applications["favourable"][lacks]
        reasons = np.where(exempt.notna(), _LACKING[1], _LACKING[0])
        first = np.array(features, dtype=object)[gone[lacks].argmax(axis=1)]
        lines.loc[lacks, _LINE[0]] = "preprocess"
        lines.loc[lacks, _LINE[1]] = reasons
        lines.loc[lacks, _LINE[2]] = np.where(exempt.notna(), exempt, first)
        lines.loc[lacks, "favourable"] = decided.astype(object)
    refusals = tables.refusals.select(["row_id", *_LINE, "favourable"]).to_pandas().set_index("row_id")
    refusals = refusals[refusals.index.isin(applications.index)]
    lines.loc[refusals.index, refusals.columns] = refusals.assign(column=refusals["column"].fillna("")).astype(object)
    return lines


def _others(counts: pa.Table, lines: "pd.DataFrame", names: list[str]) -> "tuple[pd.DataFrame, pd.DataFrame]":
    """Kinds of refused rows that are no applications, as ``Records.frame``, and their groups."""
    import pandas as pd

    long = counts.to_pandas()
    long["column"] = long["column"].fillna("")
    whose = ["stage", "kind"]
    kinds = long.drop_duplicates(whose).set_index(whose)[["reason", "column", "favourable", "n"]].reset_index("stage")
    wide = long.pivot(index=whose, columns="protected_attribute", values="group").reindex(columns=names)
    wide = wide.reset_index("stage", drop=True)
    index = pd.Index([f"{stage} {kind}" for stage, kind in zip(kinds["stage"], kinds.index, strict=True)])
    kinds.index = wide.index = index
    like = [*_LINE, "favourable", *names]
    observed = _keys(lines[lines["stage"].notna()], like).value_counts()
    keys = _keys(kinds.join(wide), like)
    remaining = kinds["n"].to_numpy() - observed.reindex(keys).fillna(0).to_numpy(dtype=np.int64)
    if (remaining < 0).any() or not observed.index.isin(keys).all():
        raise IntegrityError(
            "more applications are refused than the table refusal_counts has: the tables of this run are not of one "
            "audit; run it again"
        )
    remaining_lines = kinds.assign(applied=False, weight=remaining).drop(columns="n")[remaining > 0]
    return remaining_lines.assign(favourable=remaining_lines["favourable"].astype("boolean")), wide[remaining > 0]


def _keys(frame: "pd.DataFrame", columns: list[str]) -> "pd.Series":
    """What rows of one kind have alike, as one text: pandas joins no missing value to another."""
    import pandas as pd

    texts = [frame[name].astype(object).where(frame[name].notna(), "\x00").astype(str) for name in columns]
    joined = pd.Series("", index=frame.index)
    for text in texts:
        joined = joined + "\x1f" + text
    return joined


# --------------------------------------------------------------------------------------------------------------------
# Kinds of rows: rows that are alike in groups, places and events, which no published count distinguishes.
#
# The auditor takes a row for each kind, with its number of people.


class Marked(NamedTuple):
    """Attributes of each row, ``(rows,)`` each: its group by attribute, the places it is in, what happened to it."""

    codes: dict[str, Longs]
    bases: dict[Place, Bools]
    events: dict[Event, Bools]
    weights: Longs
    """Records that each row stands for."""

    def at(self, rows: Longs) -> "Marked":
        """The same of some rows; an unknown row, -1, has group -1 and no place."""
        present = rows >= 0
        codes = {name: np.where(present, code[rows], -1) for name, code in self.codes.items()}
        bases = {place: present & mask[rows] for place, mask in self.bases.items()}
        events = {event: present & mask[rows] for event, mask in self.events.items()}
        return Marked(codes, bases, events, np.where(present, self.weights[rows], 1))

    def with_(self, other: "Marked") -> "Marked":
        """The same with further attributes of the same rows."""
        weights = np.maximum(self.weights, other.weights)
        return Marked(self.codes | other.codes, self.bases | other.bases, self.events | other.events, weights)


class Named(NamedTuple):
    """An attribute by its columns, and the names of its groups."""

    name: str
    columns: tuple[str, ...]
    groups: tuple[str, ...]


def people_of(marked: Marked, named: Sequence[Named], decisions: Sequence[Set[Event]]) -> People:
    """Rows for the auditor: one for each kind, and rows of weight 0 for decisions that did not occur.

    Args:
        marked: the attributes of each row.
        named: the attributes whose codes it has.
        decisions: events that happened to a person in all runs, or in none, where runs do not differ.
    """
    first, _, counts = kinds_of(marked)
    marked = marked.at(first)
    like = np.unique(np.column_stack(list(marked.bases.values())), axis=0, return_index=True)[1].astype(np.int64)
    combinations = list(product(range(len(decisions)), (False, True)))
    rows, whose = np.repeat(like, len(combinations)), np.tile(np.arange(len(combinations)), like.size)
    events = {}
    for event, inside in marked.events.items():
        events[event] = inside[rows]
        for number, (decision, happens) in enumerate(combinations):
            if event in decisions[decision]:
                events[event] = np.where(whose == number, happens, events[event])
    every = np.concatenate([np.arange(first.size), rows])
    column_of, codes = dict(linked(named)), {name: code[every] for name, code in marked.codes.items()}
    columns = {}
    for column in dict.fromkeys(column_of.values()):  # the combinations of the groups of its attributes
        combined = np.column_stack([codes[name] for name, of in column_of.items() if of == column])
        columns[column] = np.unique(combined, axis=0, return_inverse=True)[1].ravel().astype(np.int64)
    return People(
        columns,
        tuple(
            Attribute(attribute.name, (column_of[attribute.name],), attribute.groups, codes[attribute.name])
            for attribute in named
        ),
        {place: inside[every] for place, inside in marked.bases.items()},
        {event: np.concatenate([happened, events[event]]) for event, happened in marked.events.items()},
        weights=np.concatenate([counts, np.zeros_like(rows)]),
    )


def linked(named: Sequence[Named]) -> Iterator[tuple[str, str]]:
    """Each attribute with the one column of all attributes that share columns, directly or through others."""
    sets: list[set[str]] = []
    for attribute in named:
        columns = set(attribute.columns)
        touched = [other for other in sets if other & columns]
        sets = [other for other in sets if not other & columns] + [columns.union(*touched)]
    for attribute in named:
        yield attribute.name, " x ".join(sorted(next(other for other in sets if set(attribute.columns) <= other)))


def kinds_of(marked: Marked) -> tuple[Longs, Longs, Longs]:
    """First row of each kind, ``(kinds,)``, kind of each row, ``(rows,)``, and records of each kind, ``(kinds,)``.

    A kind is alike in groups, places and events.
    """
    import pandas as pd

    packed = np.packbits(np.column_stack([*marked.bases.values(), *marked.events.values()]), axis=1)
    bits = {f"marks {number}": packed[:, number] for number in range(packed.shape[1])}
    frame = pd.DataFrame({**marked.codes, **bits})
    kind = frame.groupby(list(frame), sort=True).ngroup().to_numpy()
    _, first, inverse = np.unique(kind, return_index=True, return_inverse=True)
    counts = np.zeros(len(first), dtype=np.int64)
    np.add.at(counts, inverse, marked.weights)
    return first.astype(np.int64), inverse.astype(np.int64), counts


# --------------------------------------------------------------------------------------------------------------------
# Collects all people in published counts: the records of the source, and the populations that are printed.
#
# Attributes over a common column are one column here: the combination of their groups. The groups are a function of it,
# as the auditor wants, and what links the attributes stays known.


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
    """The place of applications without a feature, by the reason."""
    return Place(Base.SOURCE, LENDER, f"{_LACKS}{feature}: {reason}")


@dataclass(frozen=True, eq=False)
class Crowd:
    """The records of the source, in one order."""

    frame: "pd.DataFrame"
    """As ``Records.frame``: an application, or a kind of other refused rows."""
    groups: "pd.DataFrame"
    """Group of each record by attribute; index and order of ``frame``."""
    decided: "pd.DataFrame"
    """By decision maker: whether a record was approved; null where it was not decided, or not readably."""
    used_by: "pd.DataFrame"
    """By decision maker: whether a record is among its decisions."""
    lacks: "pd.DataFrame"
    """By feature: whether an application lacks it; and ``exempt``."""
    protected: tuple[Protected, ...]

    @classmethod
    def of(
        cls,
        tables: SourceTables,
        decisions: pa.Table,
        protected: Sequence[Protected],
        features: Sequence[str],
    ) -> "Crowd":
        """From the tables as they are read; ``features`` are those with missing values."""
        collected = Records.of(tables, [p.name for p in protected], features)
        frame, applications, rows = collected.frame, collected.applications, collected.frame.index
        maker_decisions = decisions.select(["row_id", "decision_maker", "favourable"]).to_pandas()
        by = maker_decisions.pivot(index="row_id", columns="decision_maker", values="favourable").reindex(rows)
        decided = by.astype("boolean").assign(**{LENDER: frame["favourable"].astype("boolean")})
        lacks = applications[list(features)].isna().assign(exempt=applications["exempt"].notna())
        lacks = lacks.reindex(rows).astype("boolean").fillna(False)
        return cls(frame, collected.groups, decided, by.notna(), lacks, tuple(protected))

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """Lines of refusals: by stage in the order of the audit, then by falling size."""
        sizes = self.frame.dropna(subset=["stage"]).groupby(["stage", "reason", "column"])["weight"].sum()
        order = {stage: place for place, stage in enumerate(ORDER)}
        named = [(str(stage), str(reason), str(column)) for stage, reason, column in sizes.index]
        ranked = zip(named, sizes.tolist(), strict=True)
        return tuple(line for line, n in sorted(ranked, key=lambda r: (order.get(r[0][0], 99), r[0][0], -r[1], r[0])))

    @cached_property
    def stages(self) -> tuple[str, ...]:
        """Stages that refused records, in order."""
        return tuple(dict.fromkeys(stage for stage, *_ in self.lines))

    @property
    def makers(self) -> tuple[str, ...]:
        """Decision makers that made decisions, the lender first."""
        return (LENDER, *(str(maker) for maker in self.used_by if maker != LENDER))

    def group_names(self, attribute: str) -> tuple[str, ...]:
        """Groups of an attribute by falling size in the source."""
        sizes = self.frame["weight"].groupby(self.groups[attribute]).sum()
        return tuple(sorted(sizes.index, key=lambda group: (-sizes[group], group)))

    def lacking(self, feature: str, reason: str) -> Bools:
        """Which applications have no value of a feature for a reason, ``(rows,)``."""
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
        import pandas as pd

        if not self.lines:
            return np.full(len(self.frame), -1, dtype=np.int64)
        line_index = pd.MultiIndex.from_tuples(self.lines)
        named = pd.MultiIndex.from_frame(self.frame[["stage", "reason", "column"]])
        return np.asarray(line_index.get_indexer(named), dtype=np.int64)

    def readable(self, line: Line) -> bool:
        """Whether every decision on the records of a line could be read: else no share of them is published."""
        mask = self._first == self.lines.index(line)
        return bool(self.decided[LENDER].notna().to_numpy()[mask].all())

    def bases(self, lacking: Sequence[tuple[str, str]]) -> dict[Place, Bools]:
        """Records in each place, ``(rows,)``; ``lacking`` has pairs of a missing feature and the reason."""
        every, applied = np.ones(len(self.frame), dtype=bool), self._applied
        out = {self.source: every, APPLIED: applied, self.used: self._first < 0}
        for number, line in enumerate(self.lines):
            out[line_place(line)] = self._first == number
        for stage in self.stages[:-1]:
            until = self.stages[: self.stages.index(stage) + 1]
            past = [number for number, line in enumerate(self.lines) if line[0] in until]
            out[left_place(stage)] = ~np.isin(self._first, past)
        for maker in self.makers:
            out[Place(Base.USED, maker)] = self._used(maker)
        for feature, reason in lacking:
            out[lacking_place(feature, reason)] = self.lacking(feature, reason)
        return out

    def denied(self, maker: str) -> Bools:
        """Denied records, ``(rows,)``, without those that have no readable decision."""
        return np.asarray((~self.decided[maker]).fillna(False).to_numpy(dtype=bool))

    def people(self, lacking: Sequence[tuple[str, str]]) -> People:
        """The records for the auditor: a row for each kind, and rows of weight 0 for decisions that did not occur."""
        return people_of(self.marked(lacking), self.named, [{Event(DENIED, maker)} for maker in self.makers])

    @property
    def row_by_row(self) -> bool:
        """Whether every record is a separate row, which can be found among the rows of another run."""
        return bool((self.frame["weight"] == 1).all())

    @property
    def named(self) -> list[Named]:
        """The attributes with their groups by falling size."""
        return [Named(p.name, p.columns, self.group_names(p.name)) for p in self.protected]

    def marked(self, lacking: Sequence[tuple[str, str]]) -> Marked:
        """Attributes of each record, in the order of ``frame``."""
        codes = {}
        for p in self.protected:
            numbers = {group: number for number, group in enumerate(self.group_names(p.name))}
            codes[p.name] = np.asarray(self.groups[p.name].map(numbers).to_numpy(dtype=np.int64))
        events = {Event(DENIED, maker): self.denied(maker) for maker in self.makers}
        return Marked(codes, self.bases(lacking), events, self.frame["weight"].to_numpy(dtype=np.int64))


def is_lacking(population: Population) -> bool:
    """Whether a population consists of those without a feature; it is published only for all groups together."""
    return population.base is Base.SOURCE and population.reason.startswith(_LACKS)


def counts_of(people: People) -> list[Count]:
    """Every count of people that any output may print: n of all populations, and the denied among them."""
    out: list[Count] = []
    for population in populations_of(people):
        if is_lacking(population) and (population.group != ALL or population.attribute != people.attributes[0].name):
            continue
        out.append(Count(population))
        if population.decision_maker:
            out.append(Count(population, DENIED))
    return out


def whole_of(attribute: str, group: str, place: Place) -> Population:
    """A group in a place."""
    return Population(attribute, group, 0, place.decision_maker, place.base, place.reason)


# --------------------------------------------------------------------------------------------------------------------
# Earlier published runs over the same rows: what they hand on, and everybody whom their counts and this run's count.
#
# Rows are matched by their identifier. Of a row that is not in a run its groups there are those of rows like it: which
# of them does not matter, since it is in no place of that run. What two places of one kind differ by, such as rows that
# this run uses and the earlier one left out, is told by subtraction: it is protected where it is small.


Row = Mapping[str, Any]


class Joint(NamedTuple):
    """Everybody of this run and of earlier ones, with what a reader knows of the earlier ones."""

    people: People
    beside: tuple[Published, ...]
    protect: tuple[Count, ...]
    differing: tuple[Count, ...]
    """The denied among the few in whom runs differ, and among the few of this run and of others."""


@dataclass(frozen=True, eq=False)
class Earlier:
    """One earlier run."""

    run: str
    numbers: Sequence[Row]
    """Rows of its publication."""
    kinds: Sequence[Row]
    """Rows of ``PUBLICATION_KINDS``."""
    kind_of: "pd.Series"
    """Kind of each row of its source, by ``row_id``."""

    def called(self, attribute: str) -> str:
        """The name of its attribute next to those of this run: groups of one name may differ between runs."""
        return f"{attribute} of {self.run}"

    @cached_property
    def named(self) -> list[Named]:
        """Its attributes."""
        groups: dict[tuple[str, str], dict[str, None]] = {}
        for row in self._kinds_with("group"):
            groups.setdefault((row["protected_attribute"], row["columns"]), {})[row["group"]] = None
        return [Named(self.called(name), tuple(json.loads(c)), tuple(of)) for (name, c), of in groups.items()]

    @cached_property
    def marked(self) -> Marked:
        """Attributes of each kind of its rows, ``(kinds,)``."""
        size = int(self.kind_of.max()) + 1
        code = {attribute.name: {group: n for n, group in enumerate(attribute.groups)} for attribute in self.named}
        codes = {name: np.full(size, -1, dtype=np.int64) for name in code}
        for row in self._kinds_with("group"):
            name = self.called(row["protected_attribute"])
            codes[name][row["kind"]] = code[name][row["group"]]
        bases = {self._population(row).place: np.zeros(size, dtype=bool) for row in self.numbers}
        for row in self._kinds_with("place"):
            bases[Place(Base(row["base"]), row["decision_maker"], row["reason"], self.run)][row["kind"]] = True
        makers = dict.fromkeys(place.decision_maker for place in bases if place.decision_maker)
        events = {Event(DENIED, maker, self.run): np.zeros(size, dtype=bool) for maker in makers}
        for row in self._kinds_with("denied"):
            events[Event(DENIED, row["decision_maker"], self.run)][row["kind"]] = True
        return Marked(codes, bases, events, np.ones(size, dtype=np.int64))

    def _kinds_with(self, what: str) -> Iterator[Row]:
        return (row for row in self.kinds if row["property"] == what)

    def published(self) -> Iterator[Published]:
        """What a reader learned of each of its counts."""
        for row in self.numbers:
            groups = json.loads(row["groups"]) if row["groups"] else [row["group"]]
            populations = [self._population({**row, "group": group}) for group in groups]
            count, *other_counts = [Count(population, row["event"]) for population in populations]
            if other_counts:
                yield Published(count, row["low"], row["high"], tuple(other_counts))
                continue
            yield from _within(count, row["low"], row["high"])
            if row["event"]:
                yield from _within(count._replace(rest=True), row["rest_low"], row["rest_high"])

    def withheld(self) -> Iterator[Population]:
        """The populations that it withheld for their size."""
        yield from (self._population(row) for row in self.numbers if row["fate"] == "withheld_small")

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
    """In the shapes of ``PUBLICATION_ROWS`` and ``PUBLICATION_KINDS``: the people in the numbers of this run.

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
    for attribute in named:
        record = {"property": "group", "protected_attribute": attribute.name, "columns": json.dumps(attribute.columns)}
        for kind, code in enumerate(marked.codes[attribute.name].tolist()):
            yield {**record, "kind": kind, "group": attribute.groups[code]}
    for place, inside in marked.bases.items():
        record = {"base": place.base.value, "decision_maker": place.decision_maker, "reason": place.reason}
        yield from ({**record, "property": "place", "kind": int(kind)} for kind in np.flatnonzero(inside))
    for event, inside in marked.events.items():
        record = {"property": "denied", "decision_maker": event.decision_maker}
        yield from ({**record, "kind": int(kind)} for kind in np.flatnonzero(inside))


def together(crowd: Crowd, lacking: Sequence[tuple[str, str]], runs: Sequence[Earlier], policy: Policy) -> Joint:
    """Everybody of this run and of earlier ones."""
    index = crowd.frame.index
    rows = index.union([row for run in runs for row in run.kind_of.index.difference(index)], sort=False).unique()
    positions = index.get_indexer(rows).astype(np.int64)
    marked, presence = crowd.marked(lacking).at(positions), [positions >= 0]
    for run in runs:
        kinds = run.kind_of.reindex(rows).fillna(-1).to_numpy(dtype=np.int64)
        marked = marked.with_(run.marked.at(kinds))
        presence.append(kinds >= 0)
    named = [*crowd.named, *(attribute for run in runs for attribute in run.named)]
    first = Event(DENIED, LENDER)
    decided, denied, alike = presence[0].copy(), marked.events[first].copy(), {first}
    for decided_alike_run, inside in zip(["", *(run.run for run in runs)][1:], presence[1:], strict=True):
        theirs = marked.events.get(Event(DENIED, LENDER, decided_alike_run))
        if theirs is None or (denied != theirs)[decided & inside].any():
            continue
        denied = np.where(decided, denied, theirs)
        decided |= inside
        alike.add(Event(DENIED, LENDER, decided_alike_run))
    marked.events.update(dict.fromkeys(alike, denied))
    makers = dict.fromkeys(event.decision_maker for event in marked.events)
    decisions = [{event for event in marked.events if event.decision_maker == maker} for maker in makers]
    codes = marked.codes
    out, column_of = dict(codes), dict(linked(named))
    for column in dict.fromkeys(column_of.values()):
        names = [name for name, of in column_of.items() if of == column]
        table = np.column_stack([codes[name] for name in names])
        filled_kinds, inverse = np.unique(table, axis=0, return_inverse=True)
        complete_kinds = filled_kinds[(filled_kinds >= 0).all(axis=1)]
        for number in np.flatnonzero((filled_kinds < 0).any(axis=1)):
            present = filled_kinds[number] >= 0
            like = complete_kinds[(complete_kinds[:, present] == filled_kinds[number][present]).all(axis=1)]
            filled_kinds[number] = like[0] if like.size else filled_kinds[number]
        out |= dict(zip(names, filled_kinds[inverse.ravel()].T, strict=True))
    marked = marked._replace(codes=out)
    people = people_of(marked, named, decisions)
    protect, differing = [population for run in runs for population in run.withheld()], list[Count]()
    for run in runs:
        people, apart = _apart(people, crowd, run)
        protect += apart
        differing += [Count(population, DENIED) for population in dict.fromkeys(apart)]
    if len(runs) > 1:
        people, apart = _alone(people, crowd, ["", *(run.run for run in runs)])
        protect += apart
        differing += [Count(population, DENIED) for population in dict.fromkeys(apart)]
    places = [place for place in people.bases if not place.run]
    populations = [population for place in places for population in _groups_in(crowd.named, place)]
    differing += [Count(population, DENIED) for population in (*populations, *protect)]
    differing = [
        count
        for count in dict.fromkeys(differing)
        if count.happening in people.events and small(policy, people.size(Count(count[0])))
    ]
    small_counts = []  # of small populations, those with and without a denial too
    for population in dict.fromkeys(protect):
        if small(policy, people.size(Count(population))):
            small_counts.append(Count(population))
            if Count(population, DENIED).happening in people.events:
                small_counts += [Count(population, DENIED, rest) for rest in (False, True)]
    beside = tuple(published for run in runs for published in run.published())
    return Joint(people, beside, tuple(small_counts), tuple(differing))


def _apart(people: People, crowd: Crowd, earlier: Earlier) -> tuple[People, list[Population]]:
    """Who is in a place or group of one run alone, or denied in one run alone, and the people with these places.

    A place is compared with the one of the same kind, by the groups of this run. Rows that changed their group are a
    group of an attribute of their own, by the group that they have in each run.
    """
    bases, events, out = dict(people.bases), dict(people.events), list[Population]()
    attributes: dict[str, Attribute] = {}
    movers = {name: rows for name in (a.name for a in crowd.named) if (rows := _moved(people, name, earlier)).any()}
    for place in [place for place in people.bases if not place.run and place._replace(run=earlier.run) in people.bases]:
        for run, other in (("", earlier.run), (earlier.run, "")):
            inside, theirs = people.bases[place._replace(run=run)], people.bases[place._replace(run=other)]
            happened = people.events.get(Event(DENIED, place.decision_maker, run))
            so_there = people.events.get(Event(DENIED, place.decision_maker, other))
            apart = f"{run or 'this run'} without {other or 'this run'}"
            alone = place._replace(run=apart)
            bases[alone] = inside & ~theirs
            if happened is not None:
                events[Event(DENIED, place.decision_maker, alone.run)] = happened
            if happened is not None and so_there is not None and place.decision_maker == LENDER:
                denied_alone = place._replace(run=f"{apart}, denied")
                bases[denied_alone] = inside & theirs & happened & ~so_there
                if bases[denied_alone].any():
                    out += _groups_in(crowd.named, denied_alone)
                turned_place = place._replace(run=f"{run or 'this run'} otherwise than {other or 'this run'}")
                bases[turned_place] = inside & theirs & (happened != so_there)
                events[Event(DENIED, place.decision_maker, turned_place.run)] = happened
                out += _groups_in(crowd.named, turned_place)
            out += _groups_in(crowd.named, alone)
            for name, rows in movers.items():  # a function of groups: the auditor would cross a place with all of them
                own = people.attribute(earlier.called(name) if run else name)
                codes = np.where(rows, own.codes, -1)
                changed = Attribute(f"{own.name}, changed", own.columns, own.groups, codes)
                attributes[changed.name] = changed
                common = place._replace(run=f"{run or 'this run'} and {other or 'this run'}")
                bases[common] = inside & theirs
                if happened is not None:
                    events[Event(DENIED, place.decision_maker, common.run)] = happened
                named = [Named(changed.name, (), tuple(np.array(own.groups)[np.unique(codes[codes >= 0])]))]
                out += [population for population in _groups_in(named, common) if population.group != ALL]
    everyone = (*people.attributes, *attributes.values())
    return replace(people, attributes=everyone, bases=bases, events=events), out


def _alone(people: People, crowd: Crowd, runs: Sequence[str]) -> tuple[People, list[Population]]:
    """Who is in a place of one run and of none of two or more others, and the people with these places.

    Everybody less the parts that have runs of their own are such people.
    """
    bases, events, out = dict(people.bases), dict(people.events), list[Population]()
    for place in [place for place in people.bases if not place.run]:
        inside = {run: people.bases[at] for run in runs if (at := place._replace(run=run)) in people.bases}
        for run in inside if len(inside) > 2 else ():
            alone = place._replace(run=f"{run or 'this run'} without all others")
            bases[alone] = inside[run] & ~np.logical_or.reduce([rows for other, rows in inside.items() if other != run])
            happened = people.events.get(Event(DENIED, place.decision_maker, run))
            if happened is not None:
                events[Event(DENIED, place.decision_maker, alone.run)] = happened
            out += _groups_in(crowd.named, alone)
    return replace(people, bases=bases, events=events), out


def _moved(people: People, name: str, earlier: Earlier) -> Bools:
    """Which rows are of another group of an attribute in an earlier run, ``(rows,)``; none where it had no such one."""
    now = people.attribute(name)
    before = next((attribute for attribute in people.attributes if attribute.name == earlier.called(name)), None)
    if before is None:
        return np.zeros(now.codes.size, dtype=bool)
    groups = {group: number for number, group in enumerate(now.groups)}
    code = np.array([*(groups.get(group, -2) for group in before.groups), -1], dtype=np.int64)
    return np.asarray(code[before.codes] != now.codes)


def _groups_in(named: Sequence[Named], place: Place) -> Iterator[Population]:
    """Everybody and each group of attributes in a place."""
    whose = place.decision_maker, place.base, place.reason, place.run
    for attribute in named:
        yield from (Population(attribute.name, group, 0, *whose) for group in (ALL, *attribute.groups))
