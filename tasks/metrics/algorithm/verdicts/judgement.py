"""The state of one row: a measure of a group against its limit, among the rows that are judged with it.

``breach``: the truth lies beyond the limit, by Holm at level alpha over the family. ``within``: it lies inside, by an
equivalence test at level alpha; no correction is needed, as a theory is within only if every row is
(intersection-union; Berger 1982). Everything else is too little evidence, and says what would have been enough.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import scipy

from schemas.terms import State, Theory
from tasks.metrics.algorithm.verdicts.evidence import Estimated, Evidence, RatioOfShares
from tasks.metrics.algorithm.verdicts.holm import step_down

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


def judge(cases: Sequence[Case], rules: Rules) -> list[Verdict]:
    """The states of the rows of one family, in their order. Those beside, and those of a watch level, have their own.

    Rows that cannot be judged (no value, no limit, too few people) cost the others nothing.
    """
    found: dict[int, Verdict] = {}
    for roles in (DECIDING, ("beside",), ("watch",)):
        own = [(at, case) for at, case in enumerate(cases) if case.role in roles]
        tested = [(at, case) for at, case in own if _is_tested(case, rules)]
        stepped = step_down(np.array([_p_breach(case) for _, case in tested]), rules.alpha)
        for row, (at, case) in enumerate(tested):
            of_row = _Tested(float(stepped.adjusted[row]), float(stepped.level[row]), bool(stepped.rejected[row]))
            found[at] = _judged(case, of_row, len(tested), rules)
        found |= {at: _not_judged(case, rules) for at, case in own if at not in found}
    return [found[at] for at in range(len(cases))]


class _Tested(NamedTuple):
    adjusted: float
    level: float
    rejected: bool


def _is_tested(case: Case, rules: Rules) -> bool:
    if case.limit is None or case.problem or (case.evidence is None and not math.isfinite(case.p)):
        return False
    return not too_few(case.counts, rules) or isinstance(case.evidence, RatioOfShares)


def too_few(counts: Counts | None, rules: Rules) -> str:
    """Why a row has too few people for a pass, or for anything but a raw ratio to breach; empty where it has enough."""
    if counts is None:
        return ""
    for who, n, events in (
        ("the group", counts.n, counts.events),
        ("the reference group", counts.n_reference, counts.events_reference),
    ):
        if n < rules.minimum_n:
            return f"{who} has fewer than the {rules.minimum_n} applications that a verdict needs"
        if min(events, n - events) < rules.minimum_events:
            # which of the two is not said: beside a rounded count it would tell the exact one
            return f"{who} has fewer than the {rules.minimum_events} denials or approvals that a verdict needs"
    return ""


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
        state = State.BREACH if tested.rejected else State.INSUFFICIENT_EVIDENCE
        why = _of_test(case, tested, rules)
        return Verdict(case, state, why, p_breach=p, p_breach_holm=tested.adjusted)
    at_most = limit.side == "at_most"
    low = case.evidence.bound(tested.level if at_most else rules.alpha, upper=False)
    high = case.evidence.bound(rules.alpha if at_most else tested.level, upper=True) + case.left_out
    p_within = case.evidence.below(limit.value - case.left_out) if at_most else case.evidence.above(limit.value)
    made = Verdict(
        case, State.INSUFFICIENT_EVIDENCE, "", low, high, p, tested.adjusted, p_within, *_enough(case, m, rules)
    )
    few = too_few(case.counts, rules)
    if tested.rejected:
        return replace(made, state=State.BREACH, reason=f"the whole interval{widened(case)} lies beyond the limit")
    if few:
        return replace(made, reason=few)
    if p_within <= rules.alpha:
        return replace(
            made,
            state=State.WITHIN,
            reason=f"the whole interval{widened(case)}{_with_left_out(case)} lies inside the limit",
        )
    return replace(made, reason=_open(made))


def _not_judged(case: Case, rules: Rules) -> Verdict:
    measured = math.isfinite(case.value)
    if case.limit is None:
        said = "no limit is set" if measured else case.problem or "not measured"
        return Verdict(case, State.NO_LIMIT if measured else State.NOT_RUN, said)
    return Verdict(case, State.INSUFFICIENT_EVIDENCE, case.problem or too_few(case.counts, rules) or "not measured")


def _enough(case: Case, m: int, rules: Rules) -> tuple[float, float]:
    """The smallest effect found with 80 % power, and the number of applications that would settle the row."""
    evidence, limit = case.evidence, _limit(case)
    if evidence is None or not math.isfinite(evidence.error):
        return math.nan, math.nan
    bias = evidence.bias if isinstance(evidence, Estimated) else 0.0
    reach = float(scipy.stats.norm.isf(rules.alpha / m) + scipy.stats.norm.ppf(POWER)) * evidence.error
    sign = 1.0 if limit.side == "at_most" else -1.0
    if evidence.logarithmic:
        if not case.value > 0:
            return math.nan, math.nan
        distance = abs(math.log(case.value / limit.value)) - bias
        found = limit.value * math.exp(sign * (reach + bias))
    else:
        distance = abs(case.value - limit.value) - bias
        found = limit.value + sign * (reach + bias)
    everyone = case.counts.n + case.counts.n_reference if case.counts else math.nan
    return found, everyone * min(reach / distance, _FURTHEST) ** 2 if distance > 0 else math.inf


def widened(case: Case) -> str:
    """What is added to a reason where the interval is widened for columns that the table lacks."""
    if not isinstance(case.evidence, Estimated) or not case.evidence.bias:
        return ""
    return f", widened by {case.evidence.bias:.3f} on both sides for columns that the table lacks,"


def _with_left_out(case: Case) -> str:
    """What is added to a reason where denials are in no part of the value."""
    if not case.left_out:
        return ""
    share = f"{100 * case.left_out:.1f} %"
    return f", with {share} more of the group denied on files that lack a column than of the reference group,"


def _of_test(case: Case, tested: _Tested, rules: Rules) -> str:
    if tested.rejected:
        return f"a difference above {_limit(case).value:g} that relabelled groups seldom reach"
    said = "a test without an interval, which can find a breach and never a pass"
    if _p_breach(case) > rules.alpha:
        return said
    return f"{said}; p {case.p:.2g} is above the level {tested.level:.2g} of so many comparisons: more draws may decide"


def _open(made: Verdict) -> str:
    """Why a row is open, and what would settle it."""
    said = f"the interval{widened(made.case)}{_with_left_out(made.case)} reaches over the limit"
    if math.isfinite(made.detectable):
        limit = _limit(made.case)
        word = "or more" if limit.side == "at_most" else "or less"
        said += f"; {_number(made.detectable)} {word} would be found in 4 of 5 such audits"
    if math.isinf(made.needed) and not widened(made.case):
        return f"{said}; no number of applications settles it, as the estimate lies at the limit"
    if math.isinf(made.needed):
        return f"{said}; no number of applications settles it, as the estimate lies within what unseen columns may do"
    return f"{said}; about {_rounded(made.needed):,} applications would settle it" if made.needed > 0 else said


def _number(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


def _rounded(value: float) -> int:
    """To two digits: it is no more than a forecast."""
    digits = max(math.floor(math.log10(value)) - 1, 0)
    return round(round(value), -digits)
