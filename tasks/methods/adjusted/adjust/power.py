"""What an audit could have seen: harm planted in honest copies of its table, judged as the audit judges.

Every copy goes through the functions of the stages ``adjust`` and ``measure``: examination, tables, facts, cases,
Holm's procedure, state. Nothing is estimated in another way, and nothing is written.

Scope: targets, copies and counts of states. Labels and planted denials: ``algorithm.planting``.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np
import pyarrow as pa

from schemas.audit.limits import Verdicts
from schemas.audit.spec import AuditSpec, Protected
from schemas.errors import SpecError, nearest
from schemas.tables.applications import APPLICATIONS, DECISIONS, MEMBERSHIPS
from schemas.tables.readings import ABANDONED, ABANDONED_MEMBERSHIPS, COPIED_ROWS, WRITTEN_BY_ADJUST
from schemas.terms import DecisionMaker, State, Theory
from tasks.methods.adjusted.adjust.examination import Examination, Sample, effects_of, tables_of
from tasks.methods.adjusted.adjust.rows import cases, rows_of, table_of
from tasks.methods.adjusted.adjust.settings import AdjustSettings, adjust_settings, check_filled
from tasks.methods.adjusted.algorithm.detection import measure_of
from tasks.methods.adjusted.algorithm.examined import Examined, Files, examine
from tasks.methods.adjusted.algorithm.ladder import climb
from tasks.methods.adjusted.algorithm.planting import Law, harmed, honest, law_of
from tasks.methods.adjusted.method import METHOD
from tasks.methods.adjusted.problem import own
from tasks.methods.adjusted.settings import EFFECT
from tasks.metrics.algorithm.measures import Family, Given
from tasks.metrics.algorithm.verdicts import Counts, Verdict
from tasks.metrics.readings import Facts, Whose, facts_of
from tasks.metrics.verdicts import JUDGED_MEASURE, Gathered, judged
from tasks.numerics.arrays import Bools
from tasks.pipeline.method import ProblemTables

POINTS = (0.02, 0.05, 0.10)
"""Planted, as shares of the decided members."""
PLANTS = 100
QUESTIONS = {Theory.SIMILAR_APPLICANTS: "similar_applicants", Theory.APPROVAL_RATES: "approval_rates"}
"""Questions whose state follows from the lender's decisions alone."""
WORDS = {State.OUTSIDE: "outside", State.WITHIN: "within"}
"""Every other state is ``inconclusive``."""
LENDER = str(DecisionMaker.LENDER)


# --------------------------------------------------------------------------------------------------------------------
# The table of an audit, ready to be judged again and again.


@dataclass(frozen=True)
class Judge:
    """The questions of an audit that rest on the lender's decisions, and what one look at the table settles."""

    examinations: Mapping[str, Examination]
    """By protected attribute."""
    observed: Mapping[Whose, Given]
    """The judged effect of every group in the table as it is: why it is not judged, and what an unseen column does."""
    protected: tuple[Protected, ...]
    verdicts: Verdicts

    @classmethod
    def of(cls, spec: AuditSpec, tables: Mapping[str, pa.Table]) -> "Judge":
        """From the tables that ingest and preprocessing write.

        Raises:
            SpecError: the spec does not run ``adjusted``, or nothing can be judged by the lender's decisions.
        """
        settings = adjust_settings(spec)
        if settings is None:
            raise SpecError("this spec leaves the method `adjusted` out, which judges similar applicants; ask for it")
        if settings.ladder.judged != "expected":
            raise SpecError("`methods.adjusted.judged` is logit; this command is about the estimate `expected`")
        if DecisionMaker.LENDER not in settings.explain.decision_makers:
            raise SpecError("`explain.decision_makers` leaves the lender out, and harm is planted in its decisions")
        examinations = {e.case.attribute: e for e in examinations_of(tables, settings)}
        if not examinations:
            raise SpecError("no protected attribute has its reference group and the block that is judged in this table")
        observed: dict[Whose, Given] = {}
        for examination in examinations.values():
            observed |= observed_by_group(examination)
        return cls(examinations, observed, spec.protected, spec.verdicts)

    def states(self, files: Mapping[str, Files], parts_of: str) -> dict[tuple[Theory, str, str], State]:
        """The state of each judged group and question, by (theory, protected attribute, group).

        Args:
            files: all applications by protected attribute.
            parts_of: the attribute whose parts are looked at; those of others change no state of its groups.
        """
        facts: dict[Whose, Facts] = {}
        counts: dict[Whose, Counts] = {}
        undecided: dict[tuple[str, str], int] = {}
        for attribute, of_attribute in files.items():
            examination = self.examinations[attribute]
            rules = replace(examination.rules, beside=False)
            if attribute != parts_of:
                rules = replace(rules, parts=None)
            facts |= facts_by_group(examination, of_attribute, examine(of_attribute, rules, examination.rng()))
            counts |= {(LENDER, attribute, group): n for group, n in counts_by_group(of_attribute)}
            for number, group in enumerate(of_attribute.groups):
                undecided[attribute, group] = int((of_attribute.undecided & (of_attribute.group == number)).sum())
        return {
            (row.case.theory, row.case.protected_attribute, row.case.group): row.state
            for row in self.judged(facts, counts, undecided)
            if row.case.role == "primary" and row.case.theory in QUESTIONS
        }

    def judged(
        self, facts: Mapping[Whose, Facts], counts: Mapping[Whose, Counts], undecided: Mapping[tuple[str, str], int]
    ) -> tuple[Verdict, ...]:
        """The verdicts on the questions, as the stage ``measure`` makes them."""
        aggregates = {}
        for whose, measured in self.observed.items():
            row = facts[whose].row if whose in facts else None
            if row is None or row["value"] is None:
                measured = replace(measured, value=math.nan, note="not measured" if row is None else row["reason"])
            else:
                measured = replace(measured, value=row["value"])
            aggregates[METHOD.name, JUDGED_MEASURE, *whose] = measured
        gathered = Gathered(
            counts, aggregates, self.protected, (METHOD.name,), self.verdicts, facts=facts, undecided=undecided
        )
        return judged(gathered, [], self.verdicts, ends=False).rows


def examinations_of(tables: Mapping[str, pa.Table], settings: AdjustSettings) -> Iterator[Examination]:
    """What the stage ``adjust`` examines of the lender's decisions, by protected attribute.

    Raises:
        SpecError: a control that the spec names has values on one side of the decision alone.
    """
    applications, copied_rows, memberships, abandoned, abandoned_memberships = (
        tables.get(table.name, table.empty())
        for table in (APPLICATIONS, COPIED_ROWS, MEMBERSHIPS, ABANDONED, ABANDONED_MEMBERSHIPS)
    )
    sample = Sample.of(applications, copied_rows, memberships, abandoned, abandoned_memberships, settings)
    check_filled(sample.sided, settings.named)
    for case in cases(sample.applications, DECISIONS.empty(), memberships, set(sample.sided), settings):
        if case.decision_maker == LENDER and (examination := Examination.of(case, sample, settings)):
            yield examination


def facts_by_group(examination: Examination, files: Files, results: Sequence[Examined]) -> dict[Whose, Facts]:
    """Facts as the stage ``measure`` reads them from the tables of ``adjust``."""
    points = examination.settings.limits.points
    rows = tables_of(examination.identity, files, results, examination.cluster, points)
    return facts_of({table.name: table_of(table, rows[table.name]) for table in WRITTEN_BY_ADJUST})


def counts_by_group(files: Files) -> Iterator[tuple[str, Counts]]:
    """Applications and denials of every group, and of the reference group."""
    decided, count = ~files.undecided, len(files.groups)
    of_group = files.group[decided & (files.group >= 0)]
    sizes = np.bincount(of_group, minlength=count)
    denied = np.bincount(files.group[decided & files.denied & (files.group >= 0)], minlength=count)
    reference = int(sizes[files.reference]), int(denied[files.reference])
    for number, group in enumerate(files.groups):
        if sizes[number]:
            yield group, Counts(int(sizes[number]), int(denied[number]), *reference)


def observed_by_group(examination: Examination) -> Iterator[tuple[Whose, Given]]:
    """The measure of each group as ``detect`` makes it: notes on support and clusters, and what is unseen."""
    case, settings = examination.case, examination.settings
    ladder_settings = settings.ladder.model_copy(update={"estimators": ("lpm",)})
    ladder = climb(case.applications, ladder_settings, settings.level, np.random.default_rng(settings.seed))
    results = examine(examination.files, replace(examination.rules, beside=False, parts=None), examination.rng())
    ladder = ladder.extended(effects_of(examination, results, ladder))
    steps = own(ProblemTables.of(rows_of(case, ladder, settings)), LENDER, case.attribute)
    files = examination.files
    numbers = {group: number for number, group in enumerate(files.groups)}
    family = Family(METHOD.name, LENDER, case.attribute, JUDGED_MEASURE, "{}")
    for step in steps.every:
        if step.primary and step.group in numbers:
            row_counts = steps.counted(step.group, files.groups[files.reference])
            aggregate = measure_of(step, numbers[step.group], {}, EFFECT, row_counts)
            measured = Given(
                family,
                step.group,
                aggregate.value,
                aggregate.n,
                np.zeros(0),
                headline=False,
                compared=False,
                note=aggregate.reason,
                inference=aggregate.inference,
            )
            yield (LENDER, case.attribute, step.group), measured


# --------------------------------------------------------------------------------------------------------------------
# Targets: a group, or a part of one, in which harm is planted.


@dataclass(frozen=True)
class Target:
    """A group, or a part of one, that harm is planted in."""

    attribute: str
    group: str
    part: str = ""
    """``column: level``; empty for the whole group."""
    n: int = 0
    """Decided members."""
    approved: int = 0
    """Of them."""
    reason: str = ""
    """Why no harm is planted in it; else empty."""

    @property
    def key(self) -> str:
        """Names the draws, so that they depend on nothing but the target."""
        return "|".join((self.attribute, self.group, self.part))


def targets_of(judge: Judge, group: str | None = None, part: str | None = None) -> list[Target]:
    """The judged groups that harm is planted in, or the part of each.

    Args:
        judge: the table of an audit.
        group: this one alone, by its name or as ``attribute: name``.
        part: ``COLUMN=LEVEL``: a part of these groups.

    Raises:
        SpecError: there is no such group or part, or it has fewer than the members that a verdict needs.
    """
    protected = {p.name: p for p in judge.protected}
    every = [
        (name, number)
        for name, examination in judge.examinations.items()
        for number, g in enumerate(examination.files.groups)
        if protected[name].judges(g)
    ]
    named = {(name, number): judge.examinations[name].files.groups[number] for name, number in every}
    chosen = [key for key in every if group is None or group in (named[key], f"{key[0]}: {named[key]}")]
    if not chosen:
        raise SpecError(f"--group {group}: no such judged group; {nearest(str(group), sorted(set(named.values())))}")
    targets = []
    for attribute, number in chosen:
        files = judge.examinations[attribute].files
        words = "" if part is None else _part_words(judge, attribute, part)
        members = (files.group == number) & ~files.undecided
        if words:
            members &= rows_of_part(files, words)
        n, approved = int(members.sum()), int((members & ~files.denied).sum())
        least = judge.verdicts.parts.minimum_n if words else judge.verdicts.minimum_n
        reason = "" if n >= least and approved else f"fewer than the {least} decided members that a verdict needs"
        targets.append(Target(attribute, files.groups[number], words, n, approved, reason))
    if all(target.reason for target in targets):
        small = ", ".join(f"{target.attribute}: {target.group}" for target in targets)
        where = "" if part is None else f"--part {part}: "
        raise SpecError(f"{where}too few decided members for a verdict, which needs {least}: {small}")
    return targets


def _part_words(judge: Judge, attribute: str, part: str) -> str:
    """A part as the tables name it.

    Raises:
        SpecError: no column of that name parts the groups, or it has no such level.
    """
    column, sign, level = part.partition("=")
    splits = judge.examinations[attribute].files.splits
    if not splits:
        raise SpecError("--part: `verdicts.parts.by` is empty in this spec, so that no parts are looked at")
    if not sign or not level:
        raise SpecError(
            f"--part {part}: expected COLUMN=LEVEL, such as --part {splits[0].column}={splits[0].levels[0]}"
        )
    of_column = [split for split in splits if split.column == column]
    if not of_column:
        columns = list(dict.fromkeys(split.column for split in splits))
        raise SpecError(f"--part {part}: no column {column!r} parts the groups; {nearest(column, columns)}")
    if level not in (levels := of_column[0].levels):
        raise SpecError(f"--part {part}: {column!r} has no level {level!r}; {nearest(level, list(levels))}")
    return f"{column}: {level}"


def rows_of_part(files: Files, part: str) -> Bools:
    """``(n,)`` rows of a part that is named as ``column: level``."""
    column, _, level = part.partition(": ")
    split = next(s for s in files.splits if s.column == column and level in s.levels)
    rows: Bools = split.code == split.levels.index(level)
    return rows


# --------------------------------------------------------------------------------------------------------------------
# Copies of the table, their states, and how often each came out.


States = list[dict[Theory, State]]
"""Of an honest copy, and of the same copy with harm of each size."""


@dataclass(frozen=True)
class Planting:
    """One target with what all its copies share."""

    judge: Judge
    target: Target
    law: Law
    part: Bools | None
    points: tuple[float, ...]
    seed: int

    @classmethod
    def of(cls, judge: Judge, target: Target, seed: int, points: Sequence[float] = POINTS) -> "Planting":
        """Ready to be drawn."""
        examination = judge.examinations[target.attribute]
        files = examination.files
        part = rows_of_part(files, target.part) if target.part else None
        law = law_of(files, files.groups.index(target.group), part)
        return cls(judge, target, law, part, tuple(points), seed)

    def drawn(self, numbers: Iterable[int]) -> list[States]:
        """The states of copies. The draws of each depend on its number, the seed and the target alone."""
        name = self.target.attribute
        files = self.judge.examinations[name].files
        group = files.groups.index(self.target.group)
        out = []
        for number in numbers:
            rng = np.random.default_rng([self.seed, crc32(self.target.key.encode()), number])
            copy, rows = honest(files, group, self.law, rng)
            draw, part = rng.random(len(rows)), None if self.part is None else self.part[rows]
            other_files = {n: e.files.taken(rows) for n, e in self.judge.examinations.items() if n != name}
            copies = [copy, *(harmed(copy, group, points, draw, part) for points in self.points)]
            out.append([self._states(of, other_files) for of in copies])
        return out

    def _states(self, copy: Files, other_files: Mapping[str, Files]) -> dict[Theory, State]:
        name = self.target.attribute
        files = {name: copy} | {other: replace(of, denied=copy.denied) for other, of in other_files.items()}
        states = self.judge.states(files, name)
        whose = name, self.target.group
        return {theory: states[theory, *whose] for theory in QUESTIONS if (theory, *whose) in states}


@dataclass(frozen=True)
class Power:
    """How often a question would have come out outside, within and inconclusive."""

    question: str
    protected_attribute: str
    group: str
    part: str
    points: float
    """Planted; 0: honest copies."""
    n: int
    """Decided members of the group, or of the part."""
    plants: int
    outside: float | None
    within: float | None
    inconclusive: float | None
    reason: str = ""
    """Why it is never judged, why so much harm could not be planted, or why none was."""


def power_of(planting: Planting, states: Sequence[States]) -> list[Power]:
    """The rows of one target: honest copies first, then each size of harm, by question.

    Args:
        planting: of the target.
        states: of its copies.
    """
    plants = len(states)
    target, judge = planting.target, planting.judge
    whose = LENDER, target.attribute, target.group
    note = judge.observed[whose].note if whose in judge.observed else "not measured"
    limits = {
        Theory.SIMILAR_APPLICANTS: judge.verdicts.limits.similar_applicants,
        Theory.APPROVAL_RATES: judge.verdicts.limits.approval_rates,
    }
    rows = []
    for theory, question in QUESTIONS.items():
        if limits[theory] is not None:
            for place, points in enumerate((0.0, *planting.points)):
                counts = Counter(
                    WORDS.get(of_copy[place].get(theory, State.NOT_RUN), "inconclusive") for of_copy in states
                )
                outside, within, inconclusive = (counts[w] / plants for w in ("outside", "within", "inconclusive"))
                reason = note if theory is Theory.SIMILAR_APPLICANTS else ""
                if points * target.n > target.approved:
                    reason = "fewer members are approved than so much harm takes"
                head = question, target.attribute, target.group, target.part, points, target.n, plants
                rows.append(Power(*head, outside, within, inconclusive, reason))
    return rows
