"""Rows of the league: one measure of one group in every partition."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.stats import norm

from schemas.errors import SpecError, nearest
from schemas.tables.verdicts import EFFECTS_ON_DENIAL, GONE, approval_of, in_approval, measure_in_approval
from schemas.terms import DecisionMaker, Note, State, Theory
from tasks.metrics.algorithm.measures import base_name, known_names
from tasks.metrics.league.algorithm import (
    APPROVED,
    DENIED,
    Block,
    Known,
    Published,
    Spread,
    hidden_across,
    one_sided,
    pooled,
    screened,
)
from tasks.metrics.league.algorithm import Hidden as Hidden
from tasks.metrics.publish.algorithm.populations import ALL
from tasks.metrics.publish.algorithm.profiles import Policy
from tasks.pipeline.registry import METHODS, comparable, measures_known

# --------------------------------------------------------------------------------------------------------------------
# Selects the subjects of a league: groups, and measures that are comparable across partitions of any size.
#
# Which can is declared with each method (``Method.comparable``), not listed here.


Row = Mapping[str, Any]
SIZE: Final = "size"
"""Parameter of a measure that was taken at one number of rows."""
_ROLES: Final = ("primary", "adds", "beside")
_THEORIES: Final = tuple(theory.value for theory in Theory if theory is not Theory.OWN_LIMITS)


class Subject(NamedTuple):
    """One measure of one group, as one table of the league shows it."""

    theory: str
    """Empty of a measure that no theory is judged by."""
    role: str
    method: str
    measure: str
    parameters: str
    decision_maker: str
    protected_attribute: str
    group: str
    reference_group: str

    def is_of(self, row: Row) -> bool:
        """Whether a row of published measures or verdicts is about it."""
        key = (self.method, self.measure, self.decision_maker, self.protected_attribute, self.group)
        names = ("method", "measure", "decision_maker", "protected_attribute", "group")
        return key == tuple(row[name] for name in names) and row.get("parameters", "{}") == self.parameters


@dataclass(frozen=True)
class Asked:
    """What the caller wants to see; None: all that judges, and all groups."""

    measure: str | None
    group: str | None

    def chosen(self, subjects: Sequence[Subject]) -> list[Subject]:
        """The requested subjects, those of theories first, ``direct`` before all.

        Raises:
            SpecError: no run has the measure or the group, or partitions of different size cannot be compared by it.
        """
        if self.measure is not None:
            check_measure(self.measure, subjects)
        if self.group is not None and self.group not in {subject.group for subject in subjects}:
            groups = sorted({subject.group for subject in subjects})
            raise SpecError(f"--group {self.group}: no partition has a figure of it; {nearest(self.group, groups)}")
        matches = [subject for subject in subjects if self.group in (None, subject.group)]
        if self.measure is None:
            return [subject for subject in matches if subject.theory]
        matches = [subject for subject in matches if subject.measure == self.measure]
        with_verdict = [subject for subject in matches if subject.theory]
        return with_verdict or matches


def check_measure(measure: str, subjects: Iterable[Subject]) -> None:
    """Refuse a measure that no run has, or by which partitions of different size cannot be compared."""
    every = known_names(measures_known())
    allowed = sorted({subject.measure for subject in subjects})
    if measure in allowed:
        return
    if measure not in every:
        raise SpecError(f"--measure {measure}: there is no such measure; {nearest(measure, allowed)}")
    may = f"ask for {', '.join(allowed)}" if allowed else "no measure of these runs can be held beside each other"
    if not is_comparable(measure, "{}"):
        grows = next((m.grows for m in METHODS.values() if base_name(measure) in m.measures), "")
        why = f"depends on the number of rows ({grows})" if grows else "depends on the number of rows"
        raise SpecError(f"--measure {measure} {why}, and a league holds partitions of every size together; {may}")
    raise SpecError(f"--measure {measure}: no partition has a figure of it; {may}")


def is_comparable(measure: str, parameters: str) -> bool:
    """Whether a measure means the same in partitions of every size: by declaration, or since it is taken at one."""
    return SIZE in json.loads(parameters or "{}") or any(
        measure.removesuffix(suffix) in comparable() for suffix in ("", "_difference", "_ratio")
    )


def subjects_of(verdicts: Iterable[Sequence[Row]], measures: Iterable[Sequence[Row]]) -> list[Subject]:
    """Every comparable measure and group of any partition, in the order of theories, roles and names."""
    subjects = dict[Subject, None]()
    for row in (row for rows in verdicts for row in rows):
        if row["theory"] in _THEORIES and row["role"] in _ROLES and is_comparable(row["measure"], "{}"):
            subjects[_subject(row, row["theory"], row["role"], "{}")] = None
    with_verdict = {subject_key[3:] for subject_key in subjects}
    for row in (row for rows in measures for row in rows):
        plain = row["subgroup"] == 0 and (row["parameters"] == "{}" or SIZE in json.loads(row["parameters"]))
        if plain and is_comparable(row["measure"], row["parameters"]):
            subject = _subject(row, "", "", row["parameters"])
            if subject[3:] not in with_verdict:
                subjects[subject] = None
    return sorted(subjects, key=_place)


def _subject(row: Row, theory: str, role: str, parameters: str) -> Subject:
    whose = (row["decision_maker"], row["protected_attribute"], row["group"], row["reference_group"] or "")
    return Subject(theory, role, row["method"], row["measure"], parameters, *whose)


def _place(subject: Subject) -> tuple[int, int, Subject]:
    theory = _THEORIES.index(subject.theory) if subject.theory else len(_THEORIES)
    return theory, _ROLES.index(subject.role) if subject.role else len(_ROLES), subject


# --------------------------------------------------------------------------------------------------------------------
# Counts the partitions of a year by status.


FEW: Final = 11
"""Rows without a partition are counted from here on: the smallest count of the strictest disclosure profile."""


@dataclass(frozen=True)
class Census:
    """Number of partitions of a year by status; None where the year's data are not available."""

    done: int
    too_few: int | None = None
    """Listed, and never audited: too few rows, one decision only, or no groups to compare."""
    failed: int | None = None
    not_begun: int | None = None
    without_value: int | None = None
    """Rows of the year that belong to no partition."""
    stale: int = 0
    """Of those done: partitions whose rows have changed since their run."""
    restricted: bool = False
    """Whether the spec names some partitions alone, so that there are others."""
    withholds: bool = True
    """Whether a few rows without a partition are not counted in public."""

    @property
    def outside(self) -> int | None:
        """Rows that belong to no partition, as they are published."""
        is_hidden = self.withholds and 0 < (self.without_value or 0) < FEW
        return None if is_hidden else self.without_value

    @property
    def is_known(self) -> bool:
        """Whether the year's data were available to count partitions without a run."""
        return self.too_few is not None

    @property
    def is_complete(self) -> bool:
        """Whether every row of the year is known to be in a partition with a run."""
        omitted = self.too_few or self.failed or self.not_begun or self.without_value or self.restricted
        return self.is_known and not omitted

    @property
    def words(self) -> str:
        """All counts in a sentence."""
        if not self.is_known:
            return f"{self.done} have a run; how many have none is not known here, as the year's data are not at hand."
        rest = f"{self.failed} failed, {self.not_begun} not begun"
        n = self.outside
        outside = " A few rows belong to none." if n is None and self.without_value else ""
        outside = f" {n:,} {'row belongs' if n == 1 else 'rows belong'} to none." if n else outside
        stale = (
            f" {self.stale} of the runs are of rows that have changed since; audit them again." if self.stale else ""
        )
        return f"{self.done} have a run, {self.too_few} have too few people, {rest}.{outside}{stale}"


# --------------------------------------------------------------------------------------------------------------------
# What runs have published of counts, as blocks of the disclosure pass across partitions.

BASES: Final = ("source", "used")
"""Populations whose counts the league prints: with a decision, and those of them that were used."""


def hidden(
    attribute: str, runs: Mapping[str, Sequence[Row]], everybody: Sequence[Row], *, has_rest: bool, policy: Policy
) -> Hidden:
    """What must be withheld of an attribute so that nothing follows from all runs together.

    Args:
        attribute: the protected attribute.
        runs: value of a partition -> rows of its table ``publication``.
        everybody: those of the run over all rows.
        has_rest: whether there may be rows of partitions that publish nothing.
        policy: of the profile of disclosure control.
    """
    results = []
    for base in BASES:
        # rows about whole groups of the attribute, as the lender decided
        names = ("protected_attribute", "base", "decision_maker", "part", "reason")
        population = (attribute, base, DecisionMaker.LENDER, 0, "")
        by_partition = {
            value: [row for row in rows if tuple(row[name] for name in names) == population]
            for value, rows in {**runs, ALL: everybody}.items()
        }
        groups = sorted({group for rows in by_partition.values() for row in rows for group in _groups(row)} - {ALL})
        blocks = tuple(block(value, rows, groups) for value, rows in by_partition.items() if value != ALL)
        total = block(ALL, by_partition[ALL], groups)
        results.append(hidden_across(Published(tuple(groups), blocks, total, has_rest, policy)))
    partitions = frozenset[str]().union(*(result.partitions for result in results))
    return Hidden(partitions, any(result.everybody for result in results), any(result.unequal for result in results))


def block(value: str, rows: Sequence[Row], groups: Sequence[str]) -> Block:
    """What is published of one partition, of one attribute and base.

    A group that a partition has no row of is left out of its audit, which its report says: it has nobody there.
    """
    counts = [count for row in rows for count in _known(row)]
    named = {group for row in rows for group in _groups(row)}
    if named:
        counts += [Known((group,), "", 0, 0) for group in groups if group not in named]
    few = [row for row in rows if row["group"] != ALL and not row["groups"]]
    withheld = [(row["group"], row["event"]) for row in few if row["fate"] in GONE]
    ranges = [(row["group"], event) for row in few if row["fate"] == "range" for event in (DENIED, APPROVED)]
    return Block(value, tuple(counts), tuple(dict.fromkeys([*withheld, *ranges])))


def _groups(row: Row) -> list[str]:
    return json.loads(row["groups"]) if row["groups"] else [row["group"]]


def _known(row: Row) -> Iterator[Known]:
    """The bounds from a row: of the count, and of those without the event."""
    groups = tuple(_groups(row))
    yield from _within(groups, row["event"], row["low"], row["high"])
    if row["event"] == DENIED:
        yield from _within(groups, APPROVED, row["rest_low"], row["rest_high"])


def _within(groups: tuple[str, ...], event: str, low: int | None, high: int | None) -> Iterator[Known]:
    if low is not None or high is not None:
        yield Known(groups, event, 0 if low is None else low, math.inf if high is None else high)


# --------------------------------------------------------------------------------------------------------------------
# Rows of the league: one measure of one group in every partition, with pooled estimates, screening and differences.
#
# A state is that of the partition's own verdict. Nothing here changes it, and q decides no state.


NORMAL_95: Final = 1.959963984540054
_COUNTS: Final = re.compile(r"[\d,]+ of [\d,]+( denied)?$")
_POWER: Final = NORMAL_95 + float(norm.isf(0.2))
"""Normal quantiles of a two-sided 5 % test and of 80 % power."""
LEAST_P: Final = 0.001
"""A published p is told as this where it is smaller: then estimate and error tell it."""


@dataclass(frozen=True)
class Entrant:
    """One partition, by the run that represents it."""

    value: str
    """Of the column, such as the LEI of a lender."""
    name: str = ""
    """What the value is called, where that is known."""
    run: str = ""
    usable: int | None = None
    """Rows that were used, as published; None where withheld."""
    sampled: str = ""
    """Which methods asked a sample of the applicants, in words; empty where everybody was asked."""


@dataclass(frozen=True)
class Figure:
    """One measure of one partition, as its run has published it; None where there is no number, or it is withheld."""

    value: float | None = None
    low: float | None = None
    """Ends of the 95 % interval."""
    high: float | None = None
    judged_low: float | None = None
    """Ends of the verdict interval."""
    judged_high: float | None = None
    se: float | None = None
    """Standard error of the value, or of its logarithm."""
    logarithmic: bool = False
    bias: float = 0.0
    """By how much a column that the table lacks may have moved it."""
    limit: float | None = None
    side: str = ""
    p: float | None = None
    """One-sided, of an effect at or inside the limit, as published."""
    detectable: float | None = None
    """Smallest effect (of a ratio: largest) that would be found with 80 % power."""
    robustness: float | None = None
    n: int | None = None
    state: str = State.NOT_RUN
    reason: str = ""
    withheld: bool = False

    @property
    def counts(self) -> str:
        """The counts of a rate of so few people that nothing else is published, such as ``3 of 7``; else empty."""
        match = _COUNTS.match(self.reason) if self.value is None and not self.withheld else None
        return match[0] if match else ""

    @property
    def is_pooled(self) -> bool:
        """Whether it has an estimate with an error on its scale."""
        has_error = self.value is not None and self.se is not None and self.se > 0
        return has_error and not (self.logarithmic and not (self.value or 0.0) > 0)

    @property
    def is_beyond(self) -> bool:
        """Whether the verdict interval lies beyond the limit."""
        if self.limit is None or self.judged_low is None or self.judged_high is None:
            return False
        return self.judged_low > self.limit if self.side == "at_most" else self.judged_high < self.limit


WITHHELD: Final = Figure(state=State.INCONCLUSIVE, reason="withheld: it rests on few people", withheld=True)
ACROSS: Final = replace(WITHHELD, reason="withheld: it would tell the count of few people in another partition")


@dataclass(frozen=True)
class Line:
    """One partition in the league."""

    entrant: Entrant
    figure: Figure
    difference: float | None = None
    """Its value less that of all rows."""
    pooled: float | None = None
    pooled_low: float | None = None
    pooled_high: float | None = None
    p: float | None = None
    q: float | None = None
    q_dependent: float | None = None
    screened: bool = False


@dataclass(frozen=True)
class Standings:
    """All partitions by one measure of one group."""

    lines: tuple[Line, ...]
    """By the end of the pooled interval that is nearer to the limit, those beyond it first; then those without one."""
    everybody: Figure | None
    """Of all rows of the year."""
    spread: Spread
    logarithmic: bool
    tested: int
    by_chance: float
    """Partitions that tests at 5 % would call beyond a limit that they all just keep."""
    false: float
    """Screened partitions that are expected to be false, at most."""

    @property
    def screened(self) -> tuple[Line, ...]:
        """The partitions that are screened."""
        return tuple(line for line in self.lines if line.screened)


def of_verdict(row: Mapping[str, Any]) -> Figure:
    """The figure of a row of the published table of verdicts, in the sign of the pages."""
    stored, row = row, in_approval(row)
    if row["withheld"]:
        return replace(WITHHELD, limit=row["limit"], side=row["side"] or "")
    logarithmic = row["scale"] == "log"
    numbers = {"value": row["value"], "se": row["se"], "logarithmic": logarithmic, "bias": row["bias"] or 0.0}
    ends = {"low": row["plain_low"], "high": row["plain_high"], "judged_low": row["low"], "judged_high": row["high"]}
    limit = {"limit": row["limit"], "side": row["side"] or "", "p": row["p_breach"], "robustness": row["robustness"]}
    figure = Figure(**numbers, **ends, **limit, n=row["n"], state=row["state"], reason=row["reason"])
    if row["detectable"] is not None:
        return replace(figure, detectable=row["detectable"])
    # without a limit: of the effect on denial, in the sign of the row
    smallest = {**stored, "detectable": _detectable(figure)}
    return replace(figure, detectable=in_approval(smallest)["detectable"])


def of_measure(row: Mapping[str, Any], *, covers: bool) -> Figure:
    """The figure of a row of the published table of measures, in the sign of the pages.

    Its error is that of its interval, where that covers.
    """
    turns, row = row["measure"] in EFFECTS_ON_DENIAL, measure_in_approval(row)
    if row["value"] is None and (row["n"] is None or row["reason"].startswith("withheld")):
        return WITHHELD
    ranged = Note.RANGE in (row["note"] or "").split("; ")
    low, high = (None, None) if ranged or not covers else (row["low"], row["high"])
    logarithmic = row["measure"].endswith("_ratio")
    se = None
    if low is not None and high is not None and not (logarithmic and low <= 0):
        ends = (math.log(low), math.log(high)) if logarithmic else (low, high)
        se = (ends[1] - ends[0]) / (2 * NORMAL_95)
    figure = Figure(row["value"], low, high, se=se, logarithmic=logarithmic, n=row["n"], state=row["state"])
    detectable = None if row["reference_group"] is None else _detectable(figure)
    return replace(figure, reason=row["reason"], detectable=approval_of(detectable) if turns else detectable)


def _detectable(figure: Figure) -> float | None:
    """From no difference, where no limit is set; a ratio below 1."""
    if figure.se is None or figure.limit is not None:
        return None
    return math.exp(-_POWER * figure.se) if figure.logarithmic else _POWER * figure.se


def standings(figures: Sequence[tuple[Entrant, Figure]], everybody: Figure | None) -> Standings:
    """Pool, screen and order the figures of partitions, of one measure and group."""
    p = np.array([_p(figure) for _, figure in figures], dtype=np.float64)
    screening = screened(p, np.array([figure.is_beyond for _, figure in figures], dtype=np.bool_))
    usable = np.array([figure.is_pooled for _, figure in figures], dtype=np.bool_)
    logarithmic = any(figure.logarithmic for _, figure in figures)
    pooled_figures = [figure for _, figure in figures]
    pooled_ends = np.full((len(pooled_figures), 3), np.nan)
    usable_figures = [figure for figure, is_known in zip(pooled_figures, usable, strict=True) if is_known]
    values = np.array([figure.value for figure in usable_figures], dtype=np.float64)
    errors = np.array([figure.se for figure in usable_figures], dtype=np.float64)
    pooling = pooled(np.log(values) if logarithmic else values, errors**2)
    stacked = np.column_stack([pooling.values, pooling.low, pooling.high])
    pooled_ends[usable] = np.exp(stacked) if logarithmic else stacked
    ends, spread = pooled_ends, pooling.spread
    base = None if everybody is None else everybody.value
    lines = []
    for number, (entrant, figure) in enumerate(figures):
        difference = None if base is None or figure.value is None else figure.value - base
        value, low, high = (_rows_known(end) for end in ends[number])
        p_value, q, dependent = (_rows_known(tests[number]) for tests in (p, screening.q, screening.q_dependent))
        is_screened = bool(screening.screened[number])
        lines.append(Line(entrant, figure, difference, value, low, high, p_value, q, dependent, is_screened))
    side = next((figure.side for _, figure in figures if figure.side), "at_most")

    def near(line: Line) -> float:
        """The near end: the lower one where large is beyond the limit, turned so that the furthest comes first."""
        return (line.pooled_high or 0.0) if side == "at_least" else -(line.pooled_low or 0.0)

    lines.sort(key=lambda line: (line.pooled_low is None, near(line), line.entrant.value))
    tested = int(np.isfinite(p).sum())
    return Standings(tuple(lines), everybody, spread, logarithmic, tested, screening.by_chance, screening.false)


def _p(figure: Figure) -> float:
    """One-sided, of an effect at or inside the limit; NaN where there is no limit, or no number."""
    if figure.p is None or figure.limit is None:
        return math.nan
    if figure.p > LEAST_P or not figure.is_pooled or figure.low is None or figure.high is None:
        return figure.p
    scale = math.log if figure.logarithmic else float
    if figure.logarithmic and not figure.low > 0:
        return figure.p
    sign = 1.0 if figure.side == "at_most" else -1.0
    beyond = sign * (scale(figure.value or 0.0) - scale(figure.limit)) - figure.bias
    half = (scale(figure.high) - scale(figure.low)) / 2
    p_values = one_sided(np.array([beyond]), np.array([figure.se]), np.array([half]))
    return min(float(p_values[0]), figure.p)


def _rows_known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
