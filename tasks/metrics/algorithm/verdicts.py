"""Verdicts: evidence about a limit, states of rows, theories and audits."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Literal, NamedTuple, Protocol

import numpy as np
import scipy

from schemas.terms import State, Theory
from tasks.numerics.statistics import intervals
from tasks.numerics.statistics.intervals import Changes, Pair

# --------------------------------------------------------------------------------------------------------------------
# What is known of a measure: tests of both sides of a limit, and one-sided bounds at any level.
#
# Each kind of evidence answers the same three questions. ``above(limit)``: p of "the truth is at or below the limit".
# ``below(limit)``: p of "at or above". ``bound(level, upper)``: the end of a one-sided interval that misses the truth
# with probability ``level``. A bound at level a lies beyond a limit if and only if the p is below a, so that state and
# interval never differ.


OF_REFERENCE = 0.001
"""Share of the level of an exact test that goes to the reference group's own error (Berger and Boos 1994)."""


class Evidence(Protocol):
    """What is known of a measure."""

    def above(self, limit: float) -> float:
        """One-sided p of "the truth is at or below the limit"; small where it lies above."""

    def below(self, limit: float) -> float:
        """One-sided p of "the truth is at or above the limit"."""

    def bound(self, level: float, upper: bool) -> float:
        """End of the one-sided interval that misses the truth with probability ``level``."""

    @property
    def error(self) -> float:
        """Standard error on the scale on which the measure is tested; NaN where there is none."""

    @property
    def logarithmic(self) -> bool:
        """Whether that scale is the logarithm."""


@dataclass(frozen=True)
class Estimated:
    """An estimate with its standard error, on its own scale or on the logarithm, normal or Student's t.

    ``bias`` is how far a column that is not in the table may have moved it: it widens on both sides.
    """

    value: float
    se: float
    logarithmic: bool = False
    df: float = math.inf
    bias: float = 0.0
    robustness: float = math.nan
    """Robustness value: told beside the interval, and in no test."""
    se_above: float = math.nan
    """Standard error towards larger values, where the interval is wider on one side; NaN: as ``se``."""
    plain: tuple[float, float] | None = None
    """Standard error and degrees of freedom of the plain interval, where the test at the limit has others."""

    @property
    def error(self) -> float:
        """Its standard error."""
        return self.se

    def above(self, limit: float) -> float:
        """By the distance from the limit plus the bias."""
        return self._tail((self._at(limit) + self.bias - self._at(self.value)) / self.se)

    def below(self, limit: float) -> float:
        """By the distance from the limit less the bias."""
        return self._tail((self._at(self.value) - self._at(limit) + self.bias) / self._above)

    def bound(self, level: float, upper: bool) -> float:
        """The estimate plus or minus the quantile of its errors, and the bias."""
        quantile = float(scipy.stats.norm.isf(level) if math.isinf(self.df) else scipy.stats.t.isf(level, self.df))
        half = quantile * (self._above if upper else self.se) + self.bias
        end = self._at(self.value) + (half if upper else -half)
        return math.exp(end) if self.logarithmic else end

    @property
    def _above(self) -> float:
        return self.se if math.isnan(self.se_above) else self.se_above

    def _at(self, value: float) -> float:
        return math.log(value) if self.logarithmic else value

    def _tail(self, z: float) -> float:
        """Probability of an error below ``z``: small where the estimate is far beyond the limit."""
        return float(scipy.stats.norm.cdf(z) if math.isinf(self.df) else scipy.stats.t.cdf(z, self.df))


@dataclass(frozen=True)
class RatioOfShares:
    """The ratio of two shares by its score test (Miettinen and Nurminen 1985).

    With few people that test is too ready: at the limit, one application breaches with probability 0.24 where 95 %
    of the reference group are approved. ``few`` asks the exact binomial test as well, at the lower end of what the
    reference group's share may be, whose own error counts in full (Berger and Boos 1994).
    """

    events: int
    n: int
    reference_events: int
    reference_n: int
    few: bool = False
    logarithmic: bool = True

    @property
    def _pair(self) -> Pair:
        counts = (self.events, self.n, self.reference_events, self.reference_n)
        return Pair(*(np.array([count], dtype=np.float64) for count in counts))

    def _ends(self, level: float) -> tuple[float, float]:
        return _score_ends((self.events, self.n, self.reference_events, self.reference_n), level)

    @property
    def error(self) -> float:
        """Of the logarithm, as wide as the score interval; NaN where that is open on a side."""
        low, high = self._ends(0.025)
        if not (low > 0 and math.isfinite(high)):
            return math.nan
        return (math.log(high) - math.log(low)) / (2 * float(scipy.stats.norm.isf(0.025)))

    def above(self, limit: float) -> float:
        """By the score at the limit."""
        return float(scipy.stats.norm.sf(intervals.score(self._pair, limit)[0]))

    def below(self, limit: float) -> float:
        """By the score at the limit; with few people no smaller than the exact p."""
        by_score = float(scipy.stats.norm.cdf(intervals.score(self._pair, limit)[0]))
        if not self.few:
            return by_score
        exact = scipy.stats.binom.cdf(self.events, self.n, min(limit * self._least_reference, 1.0))
        return max(by_score, min(float(exact) + OF_REFERENCE, 1.0))

    def bound(self, level: float, upper: bool) -> float:
        """The ratio that the score test of that level just keeps."""
        end = self._ends(level)[upper]
        if not self.few or not upper:
            return end
        # with few people no smaller than the largest ratio that the exact test of that level keeps
        most = math.inf
        if level > OF_REFERENCE and self.events != self.n and self.reference_events:
            share = scipy.stats.beta.isf(level - OF_REFERENCE, self.events + 1, self.n - self.events)
            most = float(share / self._least_reference)
        return max(end, most)

    @property
    def _least_reference(self) -> float:
        """Lower end of the reference group's share (Clopper and Pearson 1934)."""
        missed = self.reference_n - self.reference_events
        return (
            float(scipy.stats.beta.ppf(OF_REFERENCE, self.reference_events, missed + 1))
            if self.reference_events
            else 0.0
        )


@lru_cache(maxsize=256)
def _score_ends(counts: tuple[int, int, int, int], level: float) -> tuple[float, float]:
    """Both ends at a level; an error, a state and a printed interval ask for the same ones, and each is a search."""
    pair = Pair(*(np.array([count], dtype=np.float64) for count in counts))
    low, high = intervals.ratio_bounds(pair, float(scipy.stats.norm.isf(level)))
    return float(low[0]), float(high[0])


@dataclass(frozen=True)
class PairedDifference:
    """The mean of a difference of -1, 0 or 1 of each member, by the counts of both changes."""

    changes: Changes
    logarithmic: bool = False

    @property
    def error(self) -> float:
        """As wide as the two-sided 95 % interval."""
        return intervals.error(self.changes)

    def above(self, limit: float) -> float:
        """By the lower bounds of all levels."""
        return intervals.above(self.changes, limit)

    def below(self, limit: float) -> float:
        """By the upper ones."""
        return intervals.below(self.changes, limit)

    def bound(self, level: float, upper: bool) -> float:
        """By squaring and adding exact limits of both shares."""
        return (intervals.upper if upper else intervals.lower)(self.changes, level)


@dataclass(frozen=True)
class Hull:
    """Several readings of one number: the state is read from the hull of their intervals.

    A side of the limit is shown only if every reading shows it.
    """

    readings: tuple[Evidence, ...]
    """The judged one first."""

    @property
    def error(self) -> float:
        """Of the judged reading."""
        return self.readings[0].error

    @property
    def logarithmic(self) -> bool:
        """Of the judged reading."""
        return self.readings[0].logarithmic

    def above(self, limit: float) -> float:
        """The largest p of the readings."""
        return max(reading.above(limit) for reading in self.readings)

    def below(self, limit: float) -> float:
        """The largest p of the readings."""
        return max(reading.below(limit) for reading in self.readings)

    def bound(self, level: float, upper: bool) -> float:
        """The farthest end of the readings."""
        ends = [reading.bound(level, upper) for reading in self.readings]
        return max(ends) if upper else min(ends)


def first_reading(evidence: Evidence | None) -> Evidence | None:
    """What an estimate rests on where its state is read from a hull."""
    return evidence.readings[0] if isinstance(evidence, Hull) else evidence


@dataclass(frozen=True)
class Ended:
    """A value with both ends of an interval of ``level``; each half counts as that of a normal distribution.

    For measures that a spec's own thresholds name: their intervals were made once, and not at every level of Holm.
    """

    value: float
    low: float
    high: float
    level: float
    logarithmic: bool = False

    @property
    def error(self) -> float:
        """Half the width, in quantiles of the normal."""
        return abs(self._at(self.high) - self._at(self.low)) / (2 * self._z)

    @property
    def _z(self) -> float:
        return float(scipy.stats.norm.isf((1 - self.level) / 2))

    def above(self, limit: float) -> float:
        """By the lower half."""
        return float(scipy.stats.norm.cdf((self._at(limit) - self._at(self.value)) / self._half(upper=False)))

    def below(self, limit: float) -> float:
        """By the upper half."""
        return float(scipy.stats.norm.cdf((self._at(self.value) - self._at(limit)) / self._half(upper=True)))

    def bound(self, level: float, upper: bool) -> float:
        """The value plus or minus the quantile times the half's width in standard errors."""
        half = float(scipy.stats.norm.isf(level)) * self._half(upper)
        end = self._at(self.value) + (half if upper else -half)
        return math.exp(end) if self.logarithmic else end

    def _half(self, upper: bool) -> float:
        end = self.high if upper else self.low
        width = abs(self._at(end) - self._at(self.value)) / self._z
        return float(max(width, np.finfo(float).tiny))  # a quotient too large is inf, which has a probability

    def _at(self, value: float) -> float:
        return math.log(max(value, np.finfo(float).tiny)) if self.logarithmic else value


# --------------------------------------------------------------------------------------------------------------------
# The state of one row: a measure of a group against its limit, among the rows that are judged with it.
#
# ``breach``: the truth lies beyond the limit, by Holm at level alpha over the family. ``within``: it lies inside, by an
# equivalence test at level alpha; no correction is needed, as a theory is within only if every row is
# (intersection-union; Berger 1982). Everything else is too little evidence, and says what would have been enough.


POWER = 0.8
"""Of the smallest effect that is told, and of the number of applications that would settle a row."""
_FURTHEST = 1e6
DECIDING = ("primary", "adds")
"""Roles of the rows that can decide a theory's state."""
Side = Literal["at_most", "at_least"]


class Limit(NamedTuple):
    """The largest effect that is tolerated, or the smallest ratio."""

    value: float
    side: Side = "at_most"


class Counts(NamedTuple):
    """Applications and denials of a group and of the reference group, with a decision of this decision maker."""

    n: int
    events: int
    n_reference: int
    events_reference: int


@dataclass(frozen=True)
class Case:
    """One row to be judged: a measure of a group."""

    theory: Theory
    method: str
    measure: str
    protected_attribute: str
    group: str
    reference_group: str
    decision_maker: str
    role: Literal["primary", "adds", "beside", "watch"]
    value: float
    evidence: Evidence | None
    """None where it is no more than descriptive, or not measured."""
    limit: Limit | None
    counts: Counts | None
    """None where ``problem`` tells whether there are too few (the spec's own thresholds)."""
    problem: str = ""
    """Why it cannot be judged: not measured, descriptive, poor support."""
    left_out: float = 0.0
    """Share of the group, above that of the reference group, that was denied and is in no part of the value, as its
    files lack a column. It counts against a pass, and never for a breach."""
    p: float = math.nan
    """Of a test without an interval, by which a row of role ``adds`` may breach."""
    part_outside: str = ""
    """The part of the group that is outside the limit of a part, where nothing silences it; else empty."""
    bars: str = ""
    """What keeps the row from being within, in words; else empty."""
    information: str = ""
    """Why the row is for information and has no verdict; else empty."""
    reported: str = ""
    """Why the group is reported and not judged, whatever was measured; else empty. No theory rests on such a row."""
    contradicted: str = ""
    """How these data contradict an assumption that the value rests on; else empty."""
    few_denials: bool = False
    """Whether few denials of the group are no reason against a pass: its error at the limit knows of them."""
    unreliable: str = ""
    """Why no state can rest on the row, where it is neither beyond the limit nor inside; else empty."""
    is_price: bool = False
    """Whether it is a price, and so answers nothing about decisions."""
    sample_settles: bool = True
    """Whether more applications would settle an open row: not where a finding keeps it open."""


@dataclass(frozen=True)
class Verdict:
    """A case with its state."""

    case: Case
    state: State
    reason: str
    low: float = math.nan
    high: float = math.nan
    """The verdict interval: from the bound at Holm's level on the side of a breach to the bound at alpha."""
    p_breach: float = math.nan
    p_breach_holm: float = math.nan
    p_within: float = math.nan
    detectable: float = math.nan
    """Smallest effect (of a ratio: the largest) found with 80 % power."""
    needed: float = math.nan
    """Applications of both groups together that would settle it with 80 % power; infinite where none would."""


@dataclass(frozen=True)
class Rules:
    """Settings of verdicts."""

    alpha: float = 0.05
    minimum_n: int = 30
    minimum_events: int = 10
    fewest: int = 0
    """Fewer people breach nothing, by raw rates either: the profile does not report on them, and the state would."""
    ends: bool = True
    """Whether verdict intervals and forecasts are made; no state needs them, and half of the time goes there."""


def judge(cases: Sequence[Case], rules: Rules) -> list[Verdict]:
    """The states of the rows of one family, in their order; prices, ``beside`` and ``watch`` are families apart.

    Prices have an error rate of their own, so that no price changes the state of a row about decisions.
    Rows that cannot be judged (no value, no limit, too few people) cost the others nothing.
    """
    by_place: dict[int, Verdict] = {}
    for roles, of_prices in product((DECIDING, ("beside",), ("watch",)), (False, True)):
        family_cases = [
            (at, case) for at, case in enumerate(cases) if case.role in roles and case.is_price == of_prices
        ]
        tested = [
            (at, case)
            for at, case in family_cases
            if case.limit is not None
            and not case.problem
            and not case.information
            and not case.reported
            and (case.evidence is not None or math.isfinite(case.p))
            and (not too_few(case.counts, rules) or _breaches_with_few(case, rules))
        ]
        stepped = intervals.step_down(np.array([_p_breach(case) for _, case in tested]), rules.alpha)
        for row, (at, case) in enumerate(tested):
            of_row = _Tested(float(stepped.adjusted[row]), float(stepped.level[row]), bool(stepped.rejected[row]))
            by_place[at] = _judged(case, of_row, len(tested), rules)
        for at, case in family_cases:
            if at in by_place:
                continue
            measured, state = math.isfinite(case.value), State.INCONCLUSIVE
            reason = case.problem or too_few(case.counts, rules) or "not measured"
            if case.information and measured:
                state, reason = State.INFORMATION, case.information
            elif _passes_with_few(case, rules):
                by_place[at] = _of_few(case, rules)
                continue
            if case.limit is None:
                state = State.NO_LIMIT if measured else State.NOT_RUN
                reason = "no limit is set" if measured else case.problem or "not measured"
            if case.reported:
                state, reason = State.INFORMATION, case.reported
            by_place[at] = Verdict(case, state, reason)
    for at, verdict in by_place.items():
        if verdict.case.contradicted and math.isfinite(verdict.case.value):
            by_place[at] = replace(verdict, state=State.UNRELIABLE, reason=verdict.case.contradicted)
    return [by_place[at] for at in range(len(cases))]


class _Tested(NamedTuple):
    adjusted: float
    level: float
    rejected: bool


def too_few(counts: Counts | None, rules: Rules) -> str:
    """Why a row has too few people for a pass, or for anything but a raw ratio to breach; empty where it has enough."""
    if counts is None:
        return ""
    for group_name, n, events in (
        ("the group", counts.n, counts.events),
        ("the reference group", counts.n_reference, counts.events_reference),
    ):
        if n < rules.minimum_n:
            return f"{group_name} has fewer than the {rules.minimum_n} applications that a verdict needs"
        if min(events, n - events) < rules.minimum_events:
            # which of the two is not said: beside a rounded count it would tell the exact one
            return f"{group_name} has fewer than the {rules.minimum_events} denials or approvals that a verdict needs"
    return ""


def _breaches_with_few(case: Case, rules: Rules) -> bool:
    """Whether a row with too few people for a verdict may be a breach by its raw rates."""
    enough = case.counts is None or min(case.counts.n, case.counts.n_reference) >= rules.fewest
    return enough and isinstance(first_reading(case.evidence), RatioOfShares)


def _passes_with_few(case: Case, rules: Rules) -> bool:
    """Whether a row with few denials of the group, and of it alone, may be within; it is never a breach."""
    if not case.few_denials or case.limit is None or case.problem or case.counts is None or case.evidence is None:
        return False
    n, _, n_reference, events_reference = case.counts
    return n >= rules.minimum_n and not too_few(
        Counts(n_reference, events_reference, n_reference, events_reference), rules
    )


def _of_few(case: Case, rules: Rules) -> Verdict:
    """The state of a row with few denials of the group: within, or too little evidence."""
    verdict = _judged(case, _Tested(math.nan, rules.alpha, rejected=False), 1, rules)
    reason = verdict.reason if verdict.state is State.WITHIN else too_few(case.counts, rules)
    return replace(verdict, reason=reason)


def _p_breach(case: Case) -> float:
    limit = _limit(case)
    if case.evidence is None:
        return case.p if case.value > limit.value else 1.0
    return case.evidence.above(limit.value) if limit.side == "at_most" else case.evidence.below(limit.value)


def _limit(case: Case) -> Limit:
    if case.limit is None:
        raise ValueError(f"{case.measure} has no limit, and so no p")
    return case.limit


def _judged(case: Case, tested: _Tested, m: int, rules: Rules) -> Verdict:
    limit, p = _limit(case), _p_breach(case)
    if case.evidence is None:
        state, why = State.INCONCLUSIVE, "a test without an interval, which can find a breach and never a pass"
        if tested.rejected:
            state, why = State.OUTSIDE, f"a difference above {limit.value:g} that relabelled groups seldom reach"
        elif not p > rules.alpha:
            why += (
                f"; p {case.p:.2g} is above the level {tested.level:.2g} of so many comparisons: more draws may decide"
            )
        return Verdict(case, state, why, p_breach=p, p_breach_holm=tested.adjusted)
    at_most = limit.side == "at_most"
    p_within = case.evidence.below(limit.value - case.left_out) if at_most else case.evidence.above(limit.value)
    verdict = Verdict(case, State.INCONCLUSIVE, "", p_breach=p, p_breach_holm=tested.adjusted, p_within=p_within)
    if rules.ends:
        low = case.evidence.bound(tested.level if at_most else rules.alpha, upper=False)
        high = case.evidence.bound(rules.alpha if at_most else tested.level, upper=True) + case.left_out
        detectable, needed = _enough(case, m, rules)
        verdict = replace(verdict, low=low, high=high, detectable=detectable, needed=needed)
    few = "" if _passes_with_few(case, rules) else too_few(case.counts, rules)
    if tested.rejected:
        return replace(verdict, state=State.OUTSIDE, reason=f"the whole interval{widened(case)} lies beyond the limit")
    if few:
        return replace(verdict, reason=few)
    if case.part_outside and not too_few(case.counts, rules):
        return replace(verdict, state=State.OUTSIDE, reason=f"a part lies beyond its limit: {case.part_outside}")
    if p_within <= rules.alpha and case.bars:
        return replace(verdict, reason=f"the whole interval lies inside the limit, and {case.bars}")
    if p_within <= rules.alpha:
        return replace(
            verdict,
            state=State.WITHIN,
            reason=f"the whole interval{widened(case)}{_with_left_out(case)} lies inside the limit",
        )
    if case.unreliable:
        return replace(verdict, state=State.UNRELIABLE, reason=case.unreliable)
    return replace(verdict, reason=_open(verdict))


def _enough(case: Case, m: int, rules: Rules) -> tuple[float, float]:
    """The smallest effect found with 80 % power, and the number of applications that would settle the row."""
    evidence, limit = case.evidence, _limit(case)
    if evidence is None or not math.isfinite(evidence.error):
        return math.nan, math.nan
    bias = bias_of(case)
    reach = float(scipy.stats.norm.isf(rules.alpha / m) + scipy.stats.norm.ppf(POWER)) * evidence.error
    sign = 1.0 if limit.side == "at_most" else -1.0
    if evidence.logarithmic:
        if not case.value > 0:
            return math.nan, math.nan
        distance = abs(math.log(case.value / limit.value)) - bias
        detectable = limit.value * math.exp(sign * (reach + bias))
    else:
        distance = abs(case.value - limit.value) - bias
        detectable = limit.value + sign * (reach + bias)
    everyone = case.counts.n + case.counts.n_reference if case.counts and case.sample_settles else math.nan
    return detectable, everyone * min(reach / distance, _FURTHEST) ** 2 if distance > 0 else math.inf


def bias_of(case: Case) -> float:
    """How far columns that the table does not have may move the value."""
    evidence = first_reading(case.evidence)
    return evidence.bias if isinstance(evidence, Estimated) else 0.0


def widened(case: Case) -> str:
    """Text added to a reason where the interval is widened for columns that the table does not have."""
    if not bias_of(case):
        return ""
    return f", widened by {bias_of(case):.3f} on both sides for columns that the table lacks,"


def _with_left_out(case: Case) -> str:
    """What is added to a reason where denials are in no part of the value."""
    if not case.left_out:
        return ""
    share = f"{100 * case.left_out:.1f} %"
    return f", with {share} more of the group denied on files that lack a column than of the reference group,"


def _open(verdict: Verdict) -> str:
    """Why a row is open, and what would settle it."""
    text = f"the interval{widened(verdict.case)}{_with_left_out(verdict.case)} reaches over the limit"
    if math.isfinite(verdict.detectable):
        limit = _limit(verdict.case)
        word = "or more" if limit.side == "at_most" else "or less"
        number = f"{verdict.detectable:.3f}".rstrip("0").rstrip(".")
        text += f"; {number} {word} would be found in 4 of 5 such audits"
    if not verdict.case.sample_settles:
        return f"{text}; no number of applications settles it, as a finding keeps it open"
    if math.isinf(verdict.needed) and not widened(verdict.case):
        return f"{text}; no number of applications settles it, as the estimate lies at the limit"
    if math.isinf(verdict.needed):
        return f"{text}; no number of applications settles it, as the estimate lies within what unseen columns may do"
    if not verdict.needed > 0:
        return text
    digits = max(math.floor(math.log10(verdict.needed)) - 1, 0)  # two digits count: it is no more than a forecast
    return f"{text}; about {round(round(verdict.needed), -digits):,} applications would settle it"


# --------------------------------------------------------------------------------------------------------------------
# Whether methods that answer the same question say the same: direction and state of each, side by side.


Whose = tuple[str, str, str]
"""Decision maker, protected attribute and group: groups of two attributes may have one name."""


class Disagreement(NamedTuple):
    """Two methods that disagree: one finds a breach, the other finds the group within the limit."""

    whose: Whose
    pair: str


@dataclass(frozen=True)
class Said:
    """The result of one method for a group."""

    case: Case
    sign: str
    """``against`` the group, ``for`` it, ``none_seen``, or ``too_few``."""
    state: State


def compared(verdicts: Iterable[Verdict]) -> list[Said]:
    """The rows of theories to which more than one method speaks."""
    return [Said(verdict.case, _sign(verdict), verdict.state) for verdict in verdicts]


def disagreeing(verdicts: Sequence[Verdict]) -> dict[Theory, list[Disagreement]]:
    """Groups that one method finds in breach and another within the limit, by theory."""
    of: dict[tuple[Theory, Whose], list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        of[verdict.case.theory, whose(verdict.case)].append(verdict)
    disagreements: dict[Theory, list[Disagreement]] = defaultdict(list)
    for (theory, of_group), rows in of.items():
        # a part beyond its limit contradicts no mean of the whole group
        states = {row.state: row for row in rows if not (row.case.part_outside and row.state is State.OUTSIDE)}
        if {State.OUTSIDE, State.WITHIN} <= set(states):
            pair = f"{states[State.OUTSIDE].case.measure} outside, {states[State.WITHIN].case.measure} within"
            disagreements[theory].append(Disagreement(of_group, pair))
    return disagreements


def whose(case: Case) -> Whose:
    """The decision maker, the protected attribute and the group of a case."""
    return case.decision_maker, case.protected_attribute, case.group


def _sign(row: Verdict) -> str:
    """From the whole interval and its side of no effect, never from a point."""
    case = row.case
    if case.evidence is None:
        return "too_few" if case.problem else ("against" if row.state is State.OUTSIDE else "none_seen")
    neutral = 1.0 if case.evidence.logarithmic else 0.0
    low, high = case.evidence.bound(0.025, upper=False), case.evidence.bound(0.025, upper=True)
    if low <= neutral <= high:
        return "none_seen"
    harmful = high < neutral if case.evidence.logarithmic else low > neutral  # ratios are of approvals, and of ease
    return "against" if harmful else "for"


# --------------------------------------------------------------------------------------------------------------------
# The state of a theory of harm from those of its rows, and of an audit from those of its theories.


class Concluded(NamedTuple):
    """A theory as a whole."""

    state: State
    words: str
    about: tuple[tuple[Whose, str], ...] = ()
    """The groups that decide it, each with what more is said of it."""

    @property
    def reason(self) -> str:
        """Why, in words, with every group named."""
        named = dict.fromkeys(f"{group}{qualification}" for (*_, group), qualification in self.about)
        return f"{self.words}: {', '.join(named)}" if named else self.words


def conclude(rows: Sequence[Verdict], disagreeing: Sequence[Disagreement] = (), why_not: str = "") -> Concluded:
    """A theory's state: a breach of one row, else too little evidence in one, else within.

    Args:
        rows: those of the theory, of judged groups.
        disagreeing: groups of which two methods say what excludes each other; it silences no price.
        why_not: why it has no row of a primary measure, where it has none.
    """
    rows = [row for row in rows if not row.case.reported]
    primary = [row for row in rows if row.case.role == "primary"]
    at_odds = {disagreement.whose for disagreement in disagreeing}
    breaching = [r for r in rows if r.case.role in DECIDING and r.state is State.OUTSIDE]
    breached = [row for row in breaching if row.case.is_price or whose(row.case) not in at_odds]
    if breached:  # of a row that adds as well, though the primary measure has no limit, or its method is off
        return Concluded(State.OUTSIDE, "beyond the limit", _breached_groups(breached))
    if not primary:
        return Concluded(State.NOT_RUN, why_not or "no group is judged")
    contradicted = [row for row in primary if row.state is State.UNRELIABLE and row.case.contradicted]
    if contradicted:
        return Concluded(State.UNRELIABLE, contradicted[0].reason)
    if all(row.case.limit is None for row in primary):
        measured = any(row.state is State.NO_LIMIT for row in primary)
        return Concluded(State.NO_LIMIT, "no limit is set") if measured else Concluded(State.NOT_RUN, primary[0].reason)
    if disagreeing:
        pairs = tuple((disagreement.whose, f" ({disagreement.pair})") for disagreement in disagreeing)
        return Concluded(State.INCONCLUSIVE, "methods disagree", pairs)
    informing = [row for row in primary if row.case.information and row.state is State.INFORMATION]
    if len(informing) == len(primary):
        return Concluded(State.INFORMATION, informing[0].reason)
    unsettled = [row for row in primary if row.state is not State.WITHIN and row not in informing]
    unreliable = [row for row in unsettled if row.state is State.UNRELIABLE]
    if unreliable and len(unreliable) == len(unsettled):
        return Concluded(State.UNRELIABLE, unreliable[0].reason, _groups(unreliable))
    if unsettled:
        return Concluded(State.INCONCLUSIVE, "too little evidence", _groups(unsettled))
    return Concluded(State.WITHIN, "every judged group lies inside the limit")


def _breached_groups(rows: Sequence[Verdict]) -> tuple[tuple[Whose, str], ...]:
    """The groups, and whether a price alone is beyond its limit, or a price as well."""
    kinds: dict[Whose, set[bool]] = defaultdict(set)
    for row in rows:
        kinds[whose(row.case)].add(row.case.is_price)
    words = {frozenset((False,)): "", frozenset((True,)): " (price)", frozenset((False, True)): " (price as well)"}
    return tuple((of, words[frozenset(of_group)]) for of, of_group in kinds.items())


def _groups(rows: Sequence[Verdict]) -> tuple[tuple[Whose, str], ...]:
    return tuple((of, "") for of in dict.fromkeys(whose(row.case) for row in rows))


def overall(theories: Mapping[Theory, State], gate: Sequence[Theory], *, named: bool) -> State:
    """The state that decides the exit code.

    Args:
        theories: the state of each.
        gate: theories that count.
        named: whether the spec names them: one that did not run, or has no limit, is then too little evidence.

    An unreliable answer is none: it is too little evidence, and neither outside nor within.
    """
    gated = [theories.get(theory, State.NOT_RUN) for theory in gate]
    if State.OUTSIDE in gated:
        return State.OUTSIDE
    idle = (State.NOT_RUN, State.NO_LIMIT, State.INFORMATION)
    if {State.INCONCLUSIVE, State.UNRELIABLE} & set(gated) or (named and any(state in idle for state in gated)):
        return State.INCONCLUSIVE
    return State.WITHIN if State.WITHIN in gated else State.NOT_RUN
